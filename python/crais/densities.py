"""What `log_normalizer` is given, as one plain density: e [B, D] -> log gamma(e) [B].

    function of theta --(forms: rows, one row, float32)--> --(coordinates: theta = T(e))--> Density

A prior, a unit cube, a support and a base are `crais.coordinates`; functions with a gradient of their
own `crais.gradients`; models of other packages `crais.adapters`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crais import adapters, coordinates, gradients, outputs
from crais.captured import Function, required_arguments
from crais.coordinates import Coordinates
from crais.errors import DataError, InternalError, UsageError, first_line
from crais.random_state import OwnNumbers

_PRIOR_DRAWS = 256  # at which a likelihood is looked at before a run
_REFUSALS = (ValueError, torch.linalg.LinAlgError)  # of numbers, and of a matrix without a factor
_MOST_DIM = 1_000_000
_WAYS = 64  # of coordinates, along which a density must fall
_RUNGS = 2.0 ** torch.arange(2, 40, 0.5, dtype=torch.float64)  # distances of e on the way


@dataclass
class Density:
    """log gamma of e, and what is to be said of it.

    log_density  e [B, dim] -> [B], nats
    dtype        the one type of e that the function takes; None where the run chooses
    notes        lines that say what was made of them
    doubts       why results are not to be trusted, whatever they are, and what would mend it
    is_single    the function computes in float32, whatever z is
    inverse      theta -> e, where that is known
    point        e [B, dim] -> theta: what the user's function takes, or a model's values by name
    about        what else ArviZ has of a model: see `adapters.Model`
    explain      raises UsageError in place of an error or a flagged result, of a density without end
    has_prior    e of it are near N(0, I): nothing need be tried far from there
    started      points `starts` of a user -> e
    """

    log_density: Function
    dim: int
    dtype: torch.dtype | None
    name: str
    notes: list[str]
    doubts: list[tuple[str, str]]
    is_single: bool
    inverse: Function | None
    point: Function
    about: Function
    explain: Callable[[InternalError | None], None]
    has_prior: bool
    started: Function


def density_of(
    target: Any,
    *,
    dim: int | None,
    prior: Any = None,
    prior_transform: Function | None = None,
    support: Any = None,
    value_and_grad: Function | None = None,
    base: Any = None,
    dtype: str | None = None,
    device: torch.device | None = None,
) -> Density:
    """The arguments of `log_normalizer`, of which it says the meaning.

    Raises UsageError where they do not go together, or a prior, a shape or a model is none that can be annealed, or
    does not fall along a coordinate; DataError where a likelihood is NaN or +inf at draws of the prior.
    """
    spaces = {"prior": prior, "prior_transform": prior_transform, "support": support, "base": base}
    given = [name for name, value in spaces.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"give {given[0]} or {given[1]}, not both: each says where z lies")
    if (target is None) == (value_and_grad is None):
        raise UsageError("give a log density, or value_and_grad=f, one of the two")
    if dim is not None and not (isinstance(dim, (int, np.integer)) and 1 <= dim <= _MOST_DIM):
        raise UsageError(f"give dim=D, the dimension of z, a whole number from 1 to {_MOST_DIM:,}, not {dim!r:.200}")
    made = None if target is None else adapters.model_of(target)
    model = made or adapters.Model(target, dim, support)
    if made is None:
        if dim is None and prior is None and support is None:
            raise UsageError(f"give dim=D, the dimension of z{adapters.explain_missing(target)}")
    elif given and (given != ["base"] or made.support is not None):
        raise UsageError(f"{given[0]}: the model says itself where z lies")
    elif dim is not None and made.dim not in (None, dim):
        raise UsageError(f"dim is {dim}, and the model is of {made.dim} free numbers")
    space = _coordinates(prior, prior_transform, model.support, base, model.dim or dim)
    free = space if base is None else coordinates.plain(space.dim)
    with contextlib.suppress(Exception), OwnNumbers():  # whatever a model raises whose prior has no draws
        if base is None and space.inverse is not None and (theta := model.drawn()) is not None:
            x = space.inverse(theta)
            space = coordinates.scaled(space, x, lambda count: x[torch.randint(len(x), (count,))]) or space
    has_prior = prior is not None or prior_transform is not None or space.drawn is not None

    def drawn(kind: torch.dtype = torch.float64, count: int | None = None) -> Tensor:
        return space.draw(count or _rows(space.dim)).to(device, kind)

    function, notes, doubts = model.function, model.notes + gradients.notes_of(target), [*model.doubts]
    if value_and_grad is not None:
        theta = space.point(space.draw(_rows(space.dim)))
        if isinstance(theta, Mapping):
            raise UsageError("value_and_grad takes an array z: give the priors as a list, not by name")
        function = gradients.of_numpy(value_and_grad, theta.numpy())
    elif made is None:
        function = _of_one(function, space.point(space.draw(_rows(space.dim))))
        function = gradients.of_jax(function, lambda: space.point(space.draw(1))) or function
    dtypes = [torch.float32] if dtype == "float32" else [torch.float64]
    function, chosen, returned, note = in_rows(
        function, lambda kind: space.point(drawn(kind)), dtypes + [torch.float32] * (dtype is None)
    )
    notes += note
    is_single = returned == torch.float32 != chosen
    e = drawn(chosen)
    lost: list[str] = []
    if prior is not None or prior_transform is not None:
        likelihood = _zero_where_refused(lambda e: function(space.point(e)))
        lost, doubtful = _check_at_prior(likelihood, space, drawn(chosen, _PRIOR_DRAWS))
        notes, doubts = notes + lost, doubts + doubtful
    is_plain = space.point(e) is e  # no coordinates of their own

    def log_density(e: Tensor) -> Tensor:
        value = function(space.point(e))
        if not isinstance(value, Tensor) or value.shape != (len(e),):
            return value  # for those to judge who know what it should be
        value = value.to(e.dtype) if value.is_floating_point() else value
        value = value.masked_fill(value.isnan(), -math.inf) if lost else value
        return value if is_plain else value + space.log_density(e)

    density = _zero_where_refused(log_density)

    def explain(error: InternalError | None) -> None:
        _check_falls(density, space, drawn(chosen, 2))
        if "affine map" in str(error):
            raise UsageError(
                "log density grows without bound: the search for its modes came to no end; has every "
                "parameter a proper prior?"
            ) from error

    if not is_plain and prior_transform is None and made is None:
        _check_falls(density, space, drawn(chosen, 2))
    if once := gradients.once(density, e.float() if is_single else e):
        density = once
        notes.append("second derivatives are differences of gradients: autograd has none")
    names = [getattr(one, "__name__", "") for one in (target, value_and_grad, prior_transform)]
    return Density(
        density,
        int(space.dim),
        None if chosen == dtypes[0] else chosen,
        next(filter(None, names), "function"),
        notes,
        doubts,
        is_single,
        _inverse_of(model, space),
        lambda e: model.named(space.point(e)),
        model.about,
        explain,
        has_prior,
        lambda x: x if space is free or space.inverse is None else space.inverse(free.point(x)),
    )


def _inverse_of(model: adapters.Model, space: Coordinates) -> Function | None:
    inverse = space.inverse
    return None if inverse is None else lambda theta: inverse(model.unnamed(theta))


def _coordinates(prior: Any, prior_transform: Function | None, support: Any, base: Any, dim: int | None) -> Coordinates:
    if prior is not None:
        return coordinates.of_prior(prior, dim)
    if support is not None:
        return coordinates.of_support(support, dim)
    assert dim is not None
    if prior_transform is not None:
        return coordinates.of_transform(_checked_transform(prior_transform, dim), dim)
    return coordinates.plain(dim) if base is None else coordinates.of_base(base, dim)


def _zero_where_refused(log_density: Function) -> Function:
    """A density of rows e at which PyTorch's distributions do not look at their arguments.

    Rows at which it raises one of `_REFUSALS` nonetheless are NaN: zero, and counted. They are found by halves. What it
    raises at eight rows or more, of which it takes none, is raised.
    """

    def of_rows(e: Tensor) -> Tensor:
        rows, refused = len(e), []

        def of_part(e: Tensor) -> Tensor:
            try:
                value: Tensor = log_density(e)
                return value
            except UsageError:
                raise
            except _REFUSALS:
                if len(e) > 1:
                    return torch.cat([of_part(half) for half in e.chunk(2)])
                refused.append(e)
                if len(refused) == rows >= 8:
                    raise
                return math.nan * e.sum(1)

        with outputs.unvalidated():
            return of_part(e)

    return of_rows


def _check_falls(density: Function, space: Coordinates, centres: Tensor) -> None:
    """Raises UsageError where a density does not fall along a coordinate from two centres [2, dim].

    log gamma + log |e| must fall on the way to where floating numbers end: else the integral along
    the coordinate is infinite. Cost: 12 evaluations for each of up to 64 coordinates.
    """
    for i in range(0, space.dim, -(-space.dim // _WAYS)):
        for sign, way in ((1, "up"), (-1, "down")):
            e = centres.unsqueeze(1).repeat(1, len(_RUNGS), 1)
            e[:, :, i] = sign * _RUNGS.to(e)
            ends = space.log_density(e.flatten(0, 1)).isfinite().reshape(2, -1).all(0)
            last = int(ends.long().cumprod(0).sum())
            if last < 3:
                continue
            try:
                with torch.no_grad():
                    value = density(e[:, last - 3 : last].flatten(0, 1)).reshape(2, 3).double()
            except Exception:  # whatever a user's code raises so far away
                continue
            rises = value + _RUNGS[last - 3 : last].log().to(value)
            if bool((rises[:, 1:] >= rises[:, :-1]).all() & value.isfinite().all()):
                own = space.log_density(e[:, last - 3 : last].flatten(0, 1)).reshape(2, 3)
                grows = bool(((value - own).diff() > 1).all())
                raise UsageError(
                    f"log density {'grows without bound' if grows else 'does not fall'} along {space.name(i)}, on the "
                    f"way {way}: log Z is infinite; has every parameter a proper prior?"
                )


def _of_one(function: Function, theta: Any) -> Function:
    """A function of theta, from one that may take theta's parts by their names."""
    by_name = lambda theta: function(**theta)
    names = required_arguments(function) if isinstance(theta, Mapping) else None
    is_by_name = names and {*names} == {*theta} and (len(names) > 1 or isinstance(_tried(by_name, theta), Tensor))
    return by_name if is_by_name else function


def in_rows(
    function: Function, draw: Callable[[torch.dtype], Any], dtypes: list[torch.dtype]
) -> tuple[Function, torch.dtype, torch.dtype | None, list[str]]:
    """A function of rows [B] from one of rows or of one row, the type of its theta and that of its values, and notes.

    One of a row becomes one of rows by torch.vmap, and where that fails is called row by row. The
    first type of `dtypes` that works is taken. A function that fails in every way is returned as it
    is: what it raises is then its caller's to see.
    """
    for dtype in dtypes:
        theta = draw(dtype)
        count = len(next(iter(theta.values()))) if isinstance(theta, Mapping) else len(theta)
        for form, note in _FORMS:
            value = _tried(form(function), theta)
            if not isinstance(value, Tensor) or value.shape != (count,):
                continue
            if value.is_floating_point():
                notes = [note] if note else []
                if dtype != dtypes[0]:
                    notes.append("the function takes float32 alone: dtype is float32")
                return form(function), dtype, value.dtype, notes
    _explain_numpy(
        _tried(function, draw(dtypes[0])),
        "the log density",
        "write it in PyTorch or JAX, or give value_and_grad=f, z -> (values, gradients)",
    )
    return function, dtypes[0], None, []


def _one_by_one(function: Function) -> Function:
    def of_rows(theta: Any) -> Tensor:
        if isinstance(theta, Mapping):
            rows = [dict(zip(theta, parts)) for parts in zip(*theta.values())]
        else:
            rows = list(theta)
        return torch.stack([function(row).reshape(()) for row in rows])

    return of_rows


_FORMS: list[tuple[Callable[[Function], Function], str]] = [
    (lambda function: function, ""),
    (
        lambda function: torch.vmap(lambda row: function(row).reshape(())),
        "the function is of one row: torch.vmap makes it one of many",
    ),
    (_one_by_one, "the function is of one row, and is called row by row: torch.vmap cannot take it"),
]


def _rows(dim: int) -> int:
    """Rows by whose number a function of rows is known: never that of the columns."""
    return 4 if dim == 3 else 3


def _tried(function: Function, theta: Any) -> Any:
    """What a function returns, or the exception: a user's raises any where it was not made for it."""
    try:
        with torch.enable_grad(), outputs.unvalidated():
            return function(_differentiable(theta))
    except Exception as error:
        return error


def _differentiable(theta: Any) -> Any:
    if isinstance(theta, Mapping):
        return {name: _differentiable(part) for name, part in theta.items()}
    return theta.detach().requires_grad_(True)


def _explain_numpy(returned: Any, what: str, instead: str) -> None:
    """Raises UsageError where a function returned an array of NumPy, or NumPy refused a tensor."""
    why = first_line(returned) if isinstance(returned, (RuntimeError, TypeError)) else ""
    why = "it returns a NumPy array" if isinstance(returned, np.ndarray) else why
    if "numpy" in why.lower():
        raise UsageError(f"{what} is of NumPy, whose functions have no gradient: {instead} ({why})")


# What a prior promises.


def _checked_transform(transform: Function, dim: int) -> Function:
    """In the form of rows. Raises UsageError where it is no function of the cube to [B, dim]."""
    if not callable(transform):
        raise UsageError(f"prior_transform is a {type(transform).__name__}: give a function of u")
    u = torch.rand(_rows(dim), dim, dtype=torch.float64)
    for form in (transform, torch.vmap(transform)):
        theta = _tried(form, u)
        if isinstance(theta, Tensor) and theta.shape == u.shape:
            if not theta.requires_grad:
                raise UsageError("prior_transform has no gradient: is there a .detach(), NumPy in it?")
            return form
    theta = _tried(transform, u)
    _explain_numpy(theta, "prior_transform", "write it in PyTorch, or give scipy.stats distributions as prior")
    if isinstance(theta, Exception):
        raise theta
    raise UsageError(
        f"prior_transform: of u {list(u.shape)} as many rows of {dim} numbers are wanted; it "
        f"returns {outputs.described(theta)}"
    )


def _check_at_prior(likelihood: Function, space: Coordinates, e: Tensor) -> tuple[list[str], list[tuple[str, str]]]:
    """At draws e of the prior theta is finite, and the log likelihood a number, -inf or, at few, NaN.

    Returns a note where NaN counts as zero, and doubts: where the likelihood is one number at all draws, or NaN next to
    the posterior. Cost: 256 evaluations, and 16,640 where it is NaN. What a function raises is raised.
    """
    theta = space.point(e)
    named = theta if isinstance(theta, Mapping) else {"theta": theta}
    for name, part in named.items():
        is_finite = part.detach().isfinite().reshape(_PRIOR_DRAWS, -1).all(1)
        _refuse(~is_finite, named, f"{name} is not finite: the prior's transform leaves R^D,")
    value = likelihood(_differentiable(e))
    if not isinstance(value, Tensor) or value.shape != (_PRIOR_DRAWS,):
        return [], []
    value, lost = value.detach(), value.detach().isnan()
    if 20 * int(lost.sum()) > _PRIOR_DRAWS or bool((value == math.inf).any()):
        _refuse(lost | (value == math.inf), named, "return -inf where the likelihood is zero: its log is NaN or +inf")
    value, draws = value[~lost], f"{_PRIOR_DRAWS} draws of the prior"
    if not bool((value != value[0]).any()):
        what = f"the log likelihood is {float(value[0]):.6g} at all {draws}"
        where = f"give `draws` of a chain where it is greater; at a peak, `starts` [S, {space.dim}], of prior N(0, I)"
        return [], [(f"{what}: the prior shows no other", where)]
    if not bool(lost.any()):
        return [], []
    what = f"the log likelihood is NaN at {int(lost.sum())} of {draws}"
    share = _share_lost(likelihood, space, e)
    doubt = (f"{what}, and at {share:.0%} of the steps from the posterior", "make it a number, or -inf")
    return [f"{what}: it counts as zero there"], [doubt] * (share > 0.01)


def _share_lost(likelihood: Function, space: Coordinates, e: Tensor) -> float:
    """The share of NaN among points half as far from the posterior as its points are from each other.

    Draws e of the prior become such of the posterior by 64 tempered Metropolis steps along their
    own differences (ter Braak 2006).
    """

    def apart(length: float) -> Tensor:
        return e + length * (e[torch.randperm(len(e))] - e[torch.randperm(len(e))])

    def at(e: Tensor) -> tuple[Tensor, Tensor]:
        value = likelihood(_differentiable(e)).detach()
        return value, torch.stack([value.nan_to_num(-1e30, neginf=-1e30), space.log_density(e)])

    _, logs = at(e)
    for beta in torch.linspace(0, 1, 65)[1:] ** 4:
        moved = apart(1.7 / math.sqrt(2 * space.dim))
        _, new = at(moved)
        gain = beta * (new - logs)[0] + (new - logs)[1]
        is_taken = torch.rand(len(e)).log().to(gain) < gain
        e, logs = torch.where(is_taken.unsqueeze(1), moved, e), torch.where(is_taken, new, logs)
    return float(at(apart(0.5))[0].isnan().double().mean())


def _refuse(bad: Tensor, named: Mapping[str, Tensor], what: str) -> None:
    if not bool(bad.any()):
        return
    row = int(bad.nonzero()[0])
    numbers = {name: part[row].detach().flatten()[:4].tolist() for name, part in named.items()}
    at = "; ".join(f"{name} = " + " ".join(f"{x:.4g}" for x in xs) for name, xs in numbers.items())
    raise DataError(f"{what} at {int(bad.sum())} of {len(bad)} draws of the prior, first at {at}")

"""Coordinates e of R^D in which a prior, a unit cube or a bounded support is a plain density.

A user's function takes theta, which may be bounded and may have names. Chains move in e, with
theta = T(e). What a density gains by the change of variables, the prior's own density of e or
log |det dT/de|, is `log_density`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import constraints

from crais.captured import Function
from crais.errors import UsageError
from crais.gradients import known_gradient
from crais.priors import Prior

_DRAWS = 1024  # of a prior, for the centre and the width of e
_FARTHEST = 300.0  # of a number that exp or a sigmoid takes to a bounded support
_FARTHEST_FLOAT32 = 80.0
_QUARTILES = 1.349  # distance of a standard normal's quartiles


@dataclass(frozen=True)
class Coordinates:
    """theta = T(e).

    dim          D, of e
    point        e [B, D] -> theta: [B, *shape], or such tensors by name
    log_density  e [B, D] -> what the function's own density is multiplied by [B], nats
    draw         count -> as many e of the prior, or of N(0, I)
    inverse      theta -> e, where that is known
    """

    dim: int
    point: Function
    log_density: Function
    draw: Callable[[int], Tensor]
    inverse: Function | None = None


def plain(dim: int) -> Coordinates:
    """theta = e, and no density of its own."""
    return Coordinates(dim, lambda e: e, lambda e: e.new_zeros(len(e)), _standard(dim))


def of_affine(loc: Tensor, scale_tril: Tensor) -> Coordinates:
    """theta = loc + L e, and log |det L|."""
    log_det = scale_tril.diagonal().log().sum()
    return Coordinates(
        len(loc),
        lambda e: _affine(e, loc, scale_tril),
        lambda e: log_det.to(e).expand(len(e)),
        _standard(len(loc)),
        lambda z: torch.linalg.solve_triangular(scale_tril, (z - loc).T, upper=False).T,
    )


def of_base(base: Any, dim: int) -> Coordinates:
    """z = m + L e: mean and covariance of a distribution, as (mean, covariance), or of samples.

    Raises UsageError where there is no finite mean and covariance.
    """
    loc, covariance = _moments(base, dim)
    if loc.shape != (dim,) or covariance.shape != (dim, dim):
        raise UsageError(
            f"base: give a mean [{dim}] and a covariance [{dim}, {dim}]; these are "
            f"{list(loc.shape)} and {list(covariance.shape)}"
        )
    if not (loc.isfinite().all() and covariance.isfinite().all()):
        raise UsageError("base: it has no finite mean and covariance; give (mean, covariance)")
    scale_tril, failed = torch.linalg.cholesky_ex(covariance)
    if failed:
        raise UsageError("base: the covariance is not positive definite")
    return of_affine(loc, scale_tril)


def of_transform(transform: Function, dim: int) -> Coordinates:
    """theta = transform(u) of u = Phi(e) in the unit cube, where u is uniform.

    Floating numbers end the cube at 1 - 1e-16, so a quantile function ends 8.2 standard deviations
    above its median: give a prior whose tails matter as `prior`.
    """

    def cube(e: Tensor) -> Tensor:
        numbers = torch.finfo(e.dtype)
        return _phi(e).clamp(numbers.tiny, 1 - numbers.eps / 2)

    return Coordinates(dim, lambda e: transform(cube(e)), _log_normal, _standard(dim))


def of_prior(prior: Any, dim: int | None) -> Coordinates:
    """Coordinates in which the prior is a standard normal, or close to one.

    prior   a distribution (torch, scipy.stats, crais), a sequence of them, or a dict by name
    dim     the number of independent copies of a distribution of one number; None for one

    theta is [B, *shape] for one distribution, [B, 1] or [B, dim] for one of a single number,
    [B, D] for a sequence (side by side), and a dict of [B, *shape] for a dict. Raises UsageError
    for a prior that is discrete or improper, or is no such distribution.
    """
    if isinstance(prior, Prior):
        return _of_crais(prior, dim)
    if dim is not None and not isinstance(prior, (Mapping, list, tuple)):
        one = _of_one(prior, "the prior")
        return _side_by_side([one] * dim) if one.dim == 1 else _checked(one, dim, "the prior")
    parts = list(prior) if isinstance(prior, tuple) else prior
    return _together(parts, dim, _of_one, "the prior")


def of_support(support: Any, dim: int | None) -> Coordinates:
    """Coordinates without bounds for a constraint, one for each coordinate, or a dict by name.

    A constraint is one of torch.distributions.constraints, a pair (low, high), whose None or inf
    is no bound, or (constraint, shape) for more than one number. theta is as in `of_prior`.
    """
    if dim is not None and not isinstance(support, (Mapping, list)) and not _has_shape(support):
        return _of_constraint((support, (dim,)), "the support")  # theta's, of a simplex, say
    return _together(support, dim, _of_constraint, "the support")


# Several together.


def _together(
    parts: Any, dim: int | None, make: Callable[[Any, str], Coordinates], what: str
) -> Coordinates:
    """Coordinates of one part, of a list's parts side by side, or of a dict's parts by name."""
    if isinstance(parts, Mapping):
        coordinates = _by_name({name: make(one, name) for name, one in parts.items()})
    elif isinstance(parts, list):
        coordinates = _side_by_side([make(one, f"{what} {i}") for i, one in enumerate(parts)])
    else:
        coordinates = make(parts, what)
        coordinates = _side_by_side([coordinates]) if coordinates.dim == 1 else coordinates
    return _checked(coordinates, dim, what)


def _by_name(each: Mapping[str, Coordinates]) -> Coordinates:
    """A dict of what each gives, of the numbers of e one after another."""
    if not each:
        raise UsageError("a dict without names has no coordinates")
    sizes = [one.dim for one in each.values()]

    def point(e: Tensor) -> dict[str, Any]:
        parts = e.split(sizes, 1)
        return {name: one.point(part) for (name, one), part in zip(each.items(), parts)}

    def log_density(e: Tensor) -> Tensor:
        parts = e.split(sizes, 1)
        return torch.stack([one.log_density(p) for one, p in zip(each.values(), parts)]).sum(0)

    return Coordinates(
        sum(sizes),
        point,
        log_density,
        lambda count: torch.cat([one.draw(count) for one in each.values()], 1),
    )


def _side_by_side(each: Sequence[Coordinates]) -> Coordinates:
    named = _by_name({str(i): one for i, one in enumerate(each)})

    def point(e: Tensor) -> Tensor:
        return torch.cat([theta.reshape(len(e), -1) for theta in named.point(e).values()], 1)

    return Coordinates(named.dim, point, named.log_density, named.draw)


def _checked(coordinates: Coordinates, dim: int | None, what: str) -> Coordinates:
    if dim is not None and dim != coordinates.dim:
        raise UsageError(f"dim is {dim}, and {what} is of {coordinates.dim} free numbers")
    return coordinates


# One distribution.


def _of_one(prior: Any, name: str) -> Coordinates:
    if isinstance(prior, D.Distribution):
        return _on_cpu(_of_torch(prior, name))
    if isinstance(prior, Prior):
        raise UsageError(
            f"{name}: crais's own priors stand alone; name those of torch.distributions"
        )
    return _on_cpu(_of_scipy(prior, name))


def _on_cpu(one: Coordinates) -> Coordinates:
    """Where its numbers are, whatever device and type e has."""

    def point(e: Tensor) -> Tensor:
        largest = torch.finfo(e.dtype).max
        return one.point(e.cpu().double()).clamp(-largest, largest).to(e)

    return Coordinates(
        one.dim,
        point,
        lambda e: one.log_density(e.cpu().double()).to(e),
        one.draw,
    )


def _of_torch(prior: D.Distribution, name: str) -> Coordinates:
    kind = type(prior).__name__
    prior = _in_float64(prior)
    try:
        is_discrete = getattr(prior.support, "is_discrete", False)
    except NotImplementedError:
        is_discrete = False
    if is_discrete:
        raise UsageError(f"{name}: {kind} is discrete: sum over its values in the likelihood")
    shape = tuple(prior.batch_shape + prior.event_shape)
    _check_proper(prior, name, kind)
    while isinstance(prior, D.Independent):
        prior = prior.base_dist
    known = _exact(prior)
    if known is None:
        return _of_bijection(prior, name, kind)
    count = math.prod(shape)
    return Coordinates(count, lambda e: known(e.reshape(-1, *shape)), _log_normal, _standard(count))


def _check_proper(prior: D.Distribution, name: str, kind: str) -> None:
    """Draws of it are numbers, and have a density."""
    try:
        draws = prior.sample((_DRAWS,))
    except NotImplementedError:
        raise UsageError(f"{name}: drawing from {kind} fails: is it improper?") from None
    if not bool(draws.isfinite().all() and (prior.log_prob(draws) > -math.inf).all()):
        raise UsageError(
            f"{name}: {kind} is improper: draws of it or their densities are not finite"
        )


def _exact(prior: D.Distribution) -> Function | None:
    """e ~ N(0, I), in the distribution's shape, as a draw of it; None where none loses no digits.

    A quantile function of Phi(e) loses them: Phi(e) is 1 above e = 8.3.
    """
    if isinstance(prior, D.Normal):
        return lambda e: prior.loc + prior.scale * e
    if isinstance(prior, D.MultivariateNormal):
        return lambda e: prior.loc + (prior.scale_tril @ e.unsqueeze(-1)).squeeze(-1)
    if isinstance(prior, D.Uniform):
        return lambda e: prior.low + (prior.high - prior.low) * _phi(e)
    if isinstance(prior, D.Cauchy):
        return lambda e: prior.loc + prior.scale * _standard_cauchy(e)
    if isinstance(prior, D.TransformedDistribution):
        inner = prior.base_dist
        while isinstance(inner, D.Independent):
            inner = inner.base_dist
        same = inner.batch_shape + inner.event_shape == prior.batch_shape + prior.event_shape
        if same and isinstance(inner, D.Normal) and all(t.bijective for t in prior.transforms):
            return lambda e: D.ComposeTransform(prior.transforms)(inner.loc + inner.scale * e)
    return None


def _standard_cauchy(e: Tensor) -> Tensor:
    """The quantile of Phi(e), by the lesser of both tails."""
    tail = _phi(-e.abs()).clamp_min(torch.finfo(e.dtype).tiny)
    return e.sign() / torch.tan(math.pi * tail) * (e != 0)


def _of_bijection(prior: D.Distribution, name: str, kind: str) -> Coordinates:
    """theta = T(c + s e) with PyTorch's bijection T from R^D, and the prior's density of e.

    c and s are the median and the spread of the prior's draws, so the prior is near N(0, I).
    """
    shape = prior.batch_shape + prior.event_shape
    free = _free(_support_of(prior, name, kind), shape, name)
    assert free.inverse is not None
    inverse = free.inverse
    x = inverse(prior.sample((_DRAWS,))).reshape(_DRAWS, -1)
    outward = x + 0.5 * x.sign() * (1 + x.abs())
    if bool((free.point(x) == free.point(outward)).any()):
        raise UsageError(
            f"{name}: {kind} has draws nearer to the end of its support than floating numbers tell "
            "apart: its evidence would lose that mass"
        )
    low, centre, high = torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]).to(x), 0)
    width = (high - low) / _QUARTILES
    if not bool((width > 0).all()):
        raise UsageError(f"{name}: {kind} has no width: its draws are all the same")

    def point(e: Tensor) -> Tensor:
        return free.point(centre + width * e)

    def log_density(e: Tensor) -> Tensor:
        x = centre + width * e
        log_prob = prior.log_prob(free.point(x)).reshape(len(e), -1).sum(1)
        return log_prob + free.log_density(x) + width.log().sum()

    def draw(count: int) -> Tensor:
        return (inverse(prior.sample((count,))).reshape(count, -1) - centre) / width

    return Coordinates(free.dim, point, log_density, draw)


def _support_of(prior: D.Distribution, name: str, kind: str) -> Any:
    if isinstance(prior, D.MixtureSameFamily):
        prior = prior.component_distribution
    try:
        return prior.support
    except NotImplementedError:
        raise UsageError(f"{name}: {kind} does not say its support") from None


def _in_float64(prior: D.Distribution) -> D.Distribution:
    """A copy with float64 parameters on the CPU that does not refuse numbers on the edge of its support."""
    copied = copy.copy(prior)
    for attribute, value in vars(prior).items():
        if isinstance(value, Tensor) and value.is_floating_point():
            setattr(copied, attribute, value.detach().cpu().double())
        elif isinstance(value, D.Distribution):
            setattr(copied, attribute, _in_float64(value))
    copied._validate_args = False
    return copied


def _of_crais(prior: Prior, dim: int | None) -> Coordinates:
    loc = getattr(prior, "loc", None)
    latent = len(loc) if loc is not None else dim
    if latent is None:
        raise UsageError(f"give dim=D: {type(prior).__name__} does not tell its dimension")
    if dim not in (None, latent):
        raise UsageError(f"dim is {dim}, and the prior is of {latent} free numbers")
    prior = copy.deepcopy(prior).cpu().double().eval()
    affine = of_affine(*(moment.detach().double() for moment in prior.moments(latent)))

    def log_density(e: Tensor) -> Tensor:
        return prior.log_prob(affine.point(e)) + affine.log_density(e)

    return _on_cpu(Coordinates(latent, affine.point, log_density, affine.draw))


def _of_scipy(prior: Any, name: str) -> Coordinates:
    """theta = quantile of Phi(e), by the lesser of both tails: no digits are lost."""
    if hasattr(prior, "pmf"):
        raise UsageError(f"{name} is discrete: sum over its values in the likelihood")
    if hasattr(prior, "cov_object"):
        mean, covariance = torch.as_tensor(prior.mean), torch.as_tensor(prior.cov_object.covariance)
        return _of_torch(D.MultivariateNormal(mean.double(), covariance.double()), name)
    quantile = getattr(prior, "ppf", getattr(prior, "icdf", None))
    from_above = getattr(prior, "isf", getattr(prior, "iccdf", None))
    if quantile is None or from_above is None or not hasattr(prior, "logpdf"):
        raise UsageError(
            f"{name} is a {type(prior).__name__}: give a torch.distributions object, or one of "
            "scipy.stats with ppf, isf and logpdf; give another density with support=..."
        )
    median = torch.as_tensor(quantile(0.5))
    if not bool(median.isfinite().all()):
        raise UsageError(f"{name} is improper: its median is {median.tolist()}")
    shape = tuple(median.shape)

    def value_and_slope(e: Tensor) -> tuple[Tensor, list[Tensor]]:
        tail = _phi(-e.abs()).clamp_min(torch.finfo(e.dtype).tiny).numpy()
        theta = torch.where(
            e < 0, torch.as_tensor(quantile(tail)), torch.as_tensor(from_above(tail))
        )
        log_slope = -0.5 * e.square() - 0.5 * math.log(2 * math.pi)
        log_slope = log_slope - torch.as_tensor(prior.logpdf(theta.numpy()))
        return theta, [log_slope.exp().nan_to_num(0, 0, 0)]

    count = math.prod(shape)
    point = known_gradient(value_and_slope)
    return Coordinates(count, lambda e: point(e.reshape(-1, *shape)), _log_normal, _standard(count))


# One support.


def _free(constraint: Any, shape: Sequence[int], name: str) -> Coordinates:
    """By PyTorch's bijection to a support. Raises UsageError where there is none."""
    if getattr(constraint, "is_discrete", False):
        raise UsageError(f"{name} is discrete: sum over its values in the density")
    try:
        transform = D.biject_to(constraint)
    except NotImplementedError:
        raise UsageError(f"{name}: PyTorch has no bijection from R^D to {constraint}") from None
    free_shape = tuple(transform.inverse_shape(torch.Size(shape)))
    is_identity = isinstance(transform, D.ComposeTransform) and not transform.parts

    def near(x: Tensor) -> Tensor:
        """Beyond, exp is 0 or infinite, and a density of it no number."""
        far = _FARTHEST_FLOAT32 if x.dtype == torch.float32 else _FARTHEST
        return x if is_identity else x.clamp(-far, far)

    def point(x: Tensor) -> Tensor:
        theta: Tensor = transform(near(x).reshape(-1, *free_shape))
        return theta

    def log_det(x: Tensor) -> Tensor:
        own = near(x).reshape(-1, *free_shape)
        log_det_own = transform.log_abs_det_jacobian(own, transform(own)).reshape(len(x), -1).sum(1)
        return log_det_own - (x - near(x)).abs().sum(1)  # falls beyond, where theta stands still

    dim = math.prod(free_shape)
    return Coordinates(dim, point, log_det, _standard(dim), transform.inv)


def _of_constraint(constraint: Any, name: str) -> Coordinates:
    shape: Sequence[int] = ()
    if _has_shape(constraint):
        constraint, shape = constraint
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if isinstance(constraint, tuple) and len(constraint) == 2:
        constraint = _between(*constraint, name)
    if not isinstance(constraint, constraints.Constraint):
        raise UsageError(
            f"{name} is a {type(constraint).__name__}: give one of torch.distributions.constraints, "
            "or a pair (low, high)"
        )
    if len(shape) < constraint.event_dim:
        raise UsageError(
            f"{name}: {constraint} is for vectors: say their size, as ({constraint}, (3,))"
        )
    return _free(constraint, shape, name)


def _between(low: Any, high: Any, name: str) -> Any:
    low = -math.inf if low is None else float(low)
    high = math.inf if high is None else float(high)
    if not low < high:
        raise UsageError(f"{name}: low must be less than high; these are {low:g} and {high:g}")
    if math.isinf(low):
        return constraints.real if math.isinf(high) else constraints.less_than(high)
    return constraints.greater_than(low) if math.isinf(high) else constraints.interval(low, high)


def _has_shape(support: Any) -> bool:
    """It is (constraint, shape), where a constraint may be a pair itself."""
    return isinstance(support, tuple) and isinstance(support[0], (constraints.Constraint, tuple))


# A base.


def _moments(base: Any, dim: int) -> tuple[Tensor, Tensor]:
    """Mean [D] and covariance [D, D], float64."""
    if isinstance(base, D.Distribution):
        mean = base.mean.double().reshape(-1)
        covariance = getattr(base, "covariance_matrix", None)
        if covariance is None or covariance.dim() != 2:
            covariance = torch.diag(base.variance.double().reshape(-1))
        if len(mean) == 1 and dim > 1:
            return mean.expand(dim), covariance.double() * torch.eye(dim, dtype=torch.float64)
        return mean, covariance.double()
    if isinstance(base, tuple) and len(base) == 2:
        mean, covariance = (_numbers(part, "base") for part in base)
        return mean, torch.diag(covariance) if covariance.dim() == 1 else covariance
    samples = _numbers(base, "base")
    if samples.dim() != 2 or samples.shape[1] != dim or len(samples) < 2:
        raise UsageError(
            f"base: give a distribution, (mean, covariance) or samples [S, {dim}]; this is "
            f"{list(samples.shape)}"
        )
    covariance = torch.cov(samples.T).reshape(dim, dim)
    kept = len(samples) / (len(samples) + dim)  # of correlations, which few samples exaggerate
    return samples.mean(0), kept * covariance + (1 - kept) * torch.diag(covariance.diagonal())


def _numbers(values: Any, what: str) -> Tensor:
    try:
        return torch.as_tensor(values).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"{what} is a {type(values).__name__}, not an array of numbers") from None


# Small pieces.


def _affine(e: Tensor, loc: Tensor, scale_tril: Tensor) -> Tensor:
    return loc.to(e) + e @ scale_tril.to(e).T


def _phi(e: Tensor) -> Tensor:
    """The standard normal's distribution function. PyTorch's ndtr is 0 below -8.3; this is not."""
    return 0.5 * torch.erfc(-math.sqrt(0.5) * e)


def _log_normal(e: Tensor) -> Tensor:
    """log N(e; 0, I) [B]."""
    return -0.5 * e.square().sum(1) - 0.5 * e.shape[1] * math.log(2 * math.pi)


def _standard(dim: int) -> Callable[[int], Tensor]:
    return lambda count: torch.randn(count, dim, dtype=torch.float64)

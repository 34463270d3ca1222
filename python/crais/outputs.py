"""What decoders and encoders return in place of tensors: distributions, mappings, tuples, objects with fields.

A probe says which, once; the rest of crais sees tensors, and a likelihood that takes them; of encoders mean and
log_var, or mean and scale_tril.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D

from crais import likelihoods as L
from crais.captured import Function
from crais.errors import UsageError

MEANS = "mean mu loc z_mean embedding qz_m".split()  # as libraries call means
# By which libraries call the parameters of p(x | z), the plainest first.
_NAMES = (
    "logits sample reconstruction reconstructions recon_x x_recon recon x_hat px dist distribution mean loc output out"
).split()

_VALIDATION = threading.Lock()
_found: list[bool] = []  # of the threads in `unvalidated`: whether distributions looked before

# Supports that do not say their bounds, which are 0 and 1.
_UNIT = tuple(type(getattr(D.constraints, name)) for name in "boolean one_hot simplex".split())

# Of a distribution: what it is, and how to get its tensors.
_Taken = tuple[L.Likelihood, Callable[[Any], L.Output]]


class OfDecoder(L.Likelihood):
    """What the decoder returns, a distribution: the user has named none."""


class Distribution(L.Likelihood):
    """Any distribution of PyTorch's, by its own `log_prob` and `sample`."""

    def __init__(self, like: D.Distribution) -> None:
        super().__init__()
        self.name = type(plain(like)).__name__
        support: Any = like.support
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        if getattr(support, "is_discrete", False):
            self.step = 1.0
        if isinstance(support, _UNIT):
            self.low, self.high = 0.0, 1.0
        self.low = float(torch.as_tensor(getattr(support, "lower_bound", self.low)).min())
        self.high = float(torch.as_tensor(getattr(support, "upper_bound", self.high)).max())

    def log_prob(self, x: Tensor, output: Any) -> Tensor:
        L.check_rows(x, shape_of(output) or ())
        return L.total(output.log_prob(x))

    def each(self, x: Tensor, output: Any) -> Tensor:
        if output.event_shape and plain(output).event_shape:
            raise UsageError(f"missing: the elements of {self.name} are not independent")
        log_p: Tensor = plain(output).log_prob(x)
        return log_p

    def draw(self, output: Any, x_shape: Any) -> Tensor:
        drawn: Tensor = output.sample()
        L.check_rows(drawn.new_empty(tuple(x_shape)), drawn.shape[1:])
        return drawn


def adapted(
    decoder: Function, likelihood: L.Likelihood, z: Tensor, x: Tensor, y: tuple[Tensor, ...]
) -> tuple[Function, L.Likelihood]:
    """A decoder whose output is one that the likelihood takes, and that likelihood.

    z and x are rows of any numbers. Cost: two calls of the decoder at most.
    """
    with torch.enable_grad():
        z = z.detach().requires_grad_(True)
        output = decoder(z, *y)
    if isinstance(likelihood, L.LocationScale):
        likelihood, take = _with_scale(output, likelihood, z, x)
        if take is not None:
            decoder, output = _then(decoder, take), take(output)
    take = _choice(output, likelihood, x)
    if take is not None:
        decoder, output = _then(decoder, take), take(output)
    if isinstance(output, D.Distribution):
        family = _FAMILIES.get(type(plain(output))) or _counts
        known, tensors = family(plain(output), z) or (Distribution(output), None)
        if type(likelihood) not in (OfDecoder, type(known)):
            raise UsageError(
                f"the decoder returns a distribution, {described(output)}, and the likelihood is "
                f"{type(likelihood).__name__}: leave the likelihood out"
            )
        return decoder if tensors is None else _then(decoder, lambda o: tensors(plain(o))), known
    if isinstance(likelihood, L.Categorical) and _has_classes_last(output, likelihood, x):
        return _then(decoder, _classes_first), likelihood
    if isinstance(likelihood, OfDecoder):
        raise UsageError(
            "the model has no likelihood: give a decoder with its likelihood, as crais.Bernoulli() where it returns "
            "logits, crais.Bernoulli(probs=True) after a sigmoid, another of crais; or a log_joint"
        )
    return decoder, likelihood


def _has_classes_last(output: Any, likelihood: L.Categorical, x: Tensor) -> bool:
    """As torch.distributions has it; where both orders fit, the classes come first."""
    shape, classes = list(getattr(output, "shape", [])), likelihood.num_classes
    row = list(x.shape[1:])
    return shape[1:] == [*row, classes] and shape[1:] != [classes, *row]


def _classes_first(logits: Tensor) -> Tensor:
    return logits.movedim(-1, 1)


def shape_of(output: Any) -> list[int] | None:
    """The shape of a datum, where the output tells it; else None."""
    if isinstance(output, D.Distribution):
        return [*output.batch_shape, *output.event_shape][1:]
    return list(output.shape[1:]) if isinstance(output, Tensor) else None


@contextlib.contextmanager
def unvalidated() -> Iterator[None]:
    """PyTorch's distributions do not look at their arguments, in any thread.

    While functions are traced, they would look at numbers that are not there. The last thread to
    leave sets what the first one found.
    """
    with _VALIDATION:
        _found.append(_found[0] if _found else D.Distribution._validate_args)
        D.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        with _VALIDATION:
            before = _found.pop()
            if not _found:
                D.Distribution.set_default_validate_args(before)


def _then(function: Function, take: Callable[[Any], Any]) -> Function:
    return lambda *inputs: take(function(*inputs))


# Which part of an output.


def _choice(output: Any, likelihood: L.Likelihood, x: Tensor) -> Callable[[Any], Any] | None:
    """How to get at the part that the likelihood takes; None where that is the output itself."""
    if isinstance(output, (Tensor, D.Distribution)) or _fits(output, likelihood, x):
        return None
    parts = parts_of(output)
    fitting = [name for name, part in parts.items() if _fits(part, likelihood, x)]
    known = [name for name in _NAMES if name in fitting] or (fitting if len(fitting) == 1 else [])
    if not known:
        which = "any" if not fitting else f"{' or '.join(map(repr, fitting))}"
        raise UsageError(
            f"the decoder returns {described(output)}, and crais does not see {which} of these as "
            f"what {type(likelihood).__name__} takes for x {list(x.shape[1:])}: give a decoder that "
            f"returns one, as decoder=lambda z: model.decode(z)[{next(iter(parts), 0)!r}]"
        )
    name = known[0]
    return lambda output: parts_of(output)[name]


def _with_scale(
    output: Any, likelihood: L.LocationScale, z: Tensor, x: Tensor
) -> tuple[L.LocationScale, Callable[[Any], Any] | None]:
    """The likelihood that knows what gives its scale; how to get at both parts, if named."""
    kind = type(likelihood).__name__
    if isinstance(output, D.Distribution):
        return likelihood, None
    if isinstance(output, Tensor):
        halves = output.chunk(2, 1) if output.dim() > 1 and output.shape[1] > 1 else ()
        if likelihood.is_unsaid and len(halves) == 2 and halves[0].shape == x.shape:
            raise UsageError(
                f"the decoder returns {described(output)} for x {list(x.shape)}, twice as many "
                f"numbers: say what the second half is: {likelihood.said()}"
            )
        return likelihood, None
    parts = {name: part for name, part in parts_of(output).items() if _spans(part, z, x)}
    loc = next((name for name in (*MEANS, *_NAMES) if name in parts), None)
    spread = next((name for name in L.SPREADS if name in parts), None)
    if list(parts) == [0, 1] and likelihood.is_unsaid:
        raise UsageError(f"the decoder returns {described(output)}: say what the second one is: {likelihood.said()}")
    if spread is None:
        return likelihood, None
    if loc is None or parts[loc].shape != x.shape:
        raise UsageError(
            f"the decoder returns {described(output)}, and crais does not see which is the "
            f"location of {spread!r} for x {list(x.shape)}: call it {MEANS[0]!r}"
        )
    if likelihood.log_scale is not None and not likelihood.is_unsaid:
        raise UsageError(
            f"the decoder returns {loc!r} and {spread!r}, and the likelihood has a scale of its "
            f"own: leave its number out, as crais.{kind}(), or return {loc!r} alone"
        )
    known = copy.deepcopy(likelihood)
    known.take(spread)
    if likelihood.given is not None and L.SPREADS[likelihood.given] != L.SPREADS[spread]:
        raise UsageError(f"the decoder returns {spread!r}, and the likelihood says {likelihood.given!r}")

    def take(output: Any) -> tuple[Tensor, Tensor]:
        parts = parts_of(output)
        return parts[loc], parts[spread].expand_as(parts[loc])

    return known, take


def _spans(part: Any, z: Tensor, x: Tensor) -> bool:
    """A location or scale of x, not a latent that stands beside it."""
    if not isinstance(part, Tensor) or torch.equal(part, z):
        return False
    if part.dim() != x.dim():
        return part.dim() == 0 or part.shape == x.shape[1:]
    return all(one in (1, row) for one, row in zip(part.shape, x.shape))


def parts_of(output: Any) -> dict[Any, Any]:
    """By name, or by place."""
    if isinstance(output, Mapping):
        return dict(output)
    if hasattr(output, "_asdict"):
        return dict(output._asdict())
    if isinstance(output, (tuple, list)):
        return dict(enumerate(output))
    if dataclasses.is_dataclass(output):
        return {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    return dict(getattr(output, "__dict__", {}))


def _fits(part: Any, likelihood: L.Likelihood, x: Tensor) -> bool:
    if isinstance(part, D.Distribution):
        return shape_of(part) == list(x.shape[1:])
    if isinstance(likelihood, OfDecoder) or not isinstance(part, (Tensor, tuple, list)):
        return False
    try:
        if isinstance(likelihood, L.Categorical) and _has_classes_last(part, likelihood, x):
            return True
        with torch.no_grad():
            return bool(likelihood.log_prob(x, part).shape == x.shape[:1])  # type: ignore[arg-type]
    except Exception:  # whatever a likelihood raises at what it does not take
        return False


def described(output: Any) -> str:
    """The structure, in one line."""
    if isinstance(output, Tensor):
        return str(list(output.shape))
    if isinstance(output, D.Distribution):
        return f"{type(plain(output)).__name__} {[*output.batch_shape, *output.event_shape]}"
    parts = ", ".join(f"{name} {described(part)}" for name, part in list(parts_of(output).items())[:8])
    return f"a {type(output).__name__}" + (f" of {parts}" if parts else "")


# What a distribution is.


def plain(distribution: D.Distribution) -> D.Distribution:
    """Without `Independent` around it. Raises UsageError where its parameters have no numbers."""
    while isinstance(distribution, D.Independent):
        distribution = distribution.base_dist
    if any(isinstance(one, Tensor) and one.is_meta for one in vars(distribution).values()):
        kind = type(distribution).__name__
        raise UsageError(f"{kind} has parameters on the device meta, which has no numbers")
    return distribution


def _fixed(parameter: Tensor, z: Tensor) -> Tensor | None:
    """A parameter of each row, where it is no function of z: a number where all are alike."""
    if parameter.requires_grad:
        grads = torch.autograd.grad(parameter.sum(), z, allow_unused=True, retain_graph=True)
        if grads[0] is not None:
            return None
    row = parameter.detach()[0]
    if not bool((parameter == row).all()):
        return None
    return row.flatten()[0] if bool((row == row.flatten()[0]).all()) else row


def _of_logits(kind: Callable[..., L.Likelihood]) -> Callable[[Any, Tensor], _Taken]:
    def make(base: Any, z: Tensor) -> _Taken:
        probs = "probs" in base.__dict__  # as it was made
        return kind(probs=probs), attrgetter("probs" if probs else "logits")

    return make


def _location_scale(kind: Callable[..., L.Likelihood]) -> Callable[[Any, Tensor], _Taken]:
    def make(base: Any, z: Tensor) -> _Taken:
        scale = _fixed(base.scale, z)
        if scale is not None:
            return kind(scale), attrgetter("loc")
        return kind("log_scale"), lambda output: (output.loc, output.scale.log())

    return make


def _student_t(base: Any, z: Tensor) -> _Taken | None:
    df = _fixed(base.df, z)
    if df is None or df.dim() > 0:
        return None
    return _location_scale(lambda scale: L.StudentT(float(df), scale))(base, z)


def _negative_binomial(base: Any, z: Tensor) -> _Taken | None:
    count = _fixed(base.total_count, z)
    if count is None:
        return None
    theta = L.NegativeBinomial(count, learn=False)
    return theta, lambda output: output.logits + output.total_count.log()


def _categorical(base: Any, z: Tensor) -> _Taken | None:
    classes = base.logits.shape[-1]
    return None if classes < 2 else (L.Categorical(classes), lambda o: _classes_first(o.logits))


def _mixture(base: Any, z: Tensor) -> _Taken | None:
    """A mixture for each element of x, whose components are of one kind in the table."""
    each = base.component_distribution
    family = _FAMILIES.get(type(each))
    taken = family(each, z) if family and each.batch_shape == base.mixture_distribution.logits.shape else None
    if taken is None:
        return None
    kind, tensors = taken
    if not isinstance(kind, L.Elementwise) or kind.uniforms is None:
        return None
    for parameter in kind.parameters():  # of each component, where it has dimensions
        parameter.data = parameter.data.movedim(-1, 0) if parameter.dim() else parameter.data

    def take(output: Any) -> L.Output:
        parts = tensors(output.component_distribution)
        parts = (parts,) if isinstance(parts, Tensor) else parts
        return tuple(one.movedim(-1, 1) for one in (output.mixture_distribution.logits, *parts))

    return L.Mixture(kind), take


def _counts(base: Any, z: Tensor) -> _Taken | None:
    """scvi's negative binomials: a mean `mu` and `theta`; perhaps logits of extra zeros."""
    kind = type(base).__name__
    kinds = ("NegativeBinomial", "ZeroInflatedNegativeBinomial")
    if kind not in kinds or not hasattr(base, "theta"):
        return None
    theta = _fixed(base.theta.expand_as(base.mu), z)
    if theta is None:
        return None
    if kind == "NegativeBinomial":
        return L.NegativeBinomial(theta, learn=False), lambda output: output.mu.log()
    likelihood = L.ZeroInflatedNegativeBinomial(theta, learn=False)
    return likelihood, lambda output: (output.mu.log(), output.zi_logits)


# Those that crais has likelihoods of its own for, which have Fisher weights.
_FAMILIES: dict[type, Callable[[Any, Tensor], _Taken | None]] = {
    D.Bernoulli: _of_logits(L.Bernoulli),
    D.ContinuousBernoulli: _of_logits(L.ContinuousBernoulli),
    D.Normal: _location_scale(L.Gaussian),
    D.Laplace: _location_scale(L.Laplace),
    D.StudentT: _student_t,
    D.Poisson: lambda base, z: (L.Poisson(), lambda output: output.rate.log()),
    D.NegativeBinomial: _negative_binomial,
    D.Categorical: _categorical,
    D.MixtureSameFamily: _mixture,
}


# What an encoder returns: perhaps one tensor of both, or a draw beside them.

Code = tuple[Tensor, Tensor]
# The log variance as a function of what gives it; a root of the covariance as it is.
_LOG_VARS: dict[str, Callable[[Tensor], Tensor]] = {"scale_tril": lambda spread: spread} | {
    name: lambda spread, log=L.LOG_SCALES[kind][0]: 2 * log(spread) for name, kind in L.SPREADS.items()
}
_DISTRIBUTIONS = "latent_dist qz q_z dist distribution posterior".split()


def adapted_encoder(encoder: Function, x: Tensor, y: tuple[Tensor, ...], latent: int | None) -> Function:
    """The encoder as mean and log_var, of any shape, or mean and scale_tril [B, D, D]; itself where it is one already.

    x are rows of any numbers. Cost: two calls.
    """
    with torch.no_grad():
        output = encoder(x, *y)
        take = _reading(output, lambda: encoder(x, *y), latent)
    if take is None:
        raise UsageError(
            f"the encoder must return mean and log_var [B, D] (or maps), or mean and scale_tril [B, D, D]; it returns "
            f"{described(output)}: say which, as encoder=lambda x: (q.mean, q.log_var). Codes have no density"
        )
    if take is _two:
        return encoder
    return lambda *inputs: take(encoder(*inputs))


def _two(output: Any) -> Code:
    mean, spread = output
    return mean, spread


def _reading(output: Any, again: Callable[[], Any], latent: int | None) -> Callable[[Any], Code] | None:
    """How to get mean and log_var; None for what is not known."""
    if isinstance(output, D.Distribution):
        return _of_distribution if _is_normal(output) else None
    if isinstance(output, Tensor):
        is_even = output.dim() > 1 and output.shape[1] % 2 == 0
        is_both = is_even and latent in (None, output[0].numel() // 2)
        return (lambda both: both.chunk(2, 1)) if is_both else None
    if isinstance(output, (tuple, list)) and not hasattr(output, "_asdict"):
        normals = [i for i, part in enumerate(output) if isinstance(part, D.Distribution)]
        if len(normals) == 1 and _is_normal(output[normals[0]]):  # beside a draw of it
            return lambda code: _of_distribution(code[normals[0]])
        return _of_tuple(output, again)
    parts = parts_of(output)
    if found := [name for name in _DISTRIBUTIONS if name in parts]:
        inner = _reading(parts[found[0]], lambda: parts_of(again())[found[0]], latent)
        return None if inner is None else lambda code: inner(parts_of(code)[found[0]])
    mean = next((name for name in MEANS if isinstance(parts.get(name), Tensor)), None)
    spread = next((name for name in _LOG_VARS if isinstance(parts.get(name), Tensor)), None)
    if mean is None or spread is None:
        return None
    log_var = _LOG_VARS[spread]
    return lambda code: (parts_of(code)[mean], log_var(parts_of(code)[spread]))


def _of_tuple(output: Any, again: Callable[[], Any]) -> Callable[[Any], Code] | None:
    """Two tensors, or three of which one is a draw: it differs from call to call, or is the mean."""
    if len(output) == 2 and all(isinstance(part, Tensor) and part.is_floating_point() for part in output):
        return _two
    if len(output) == 1:
        inner = _reading(output[0], lambda: again()[0], None)
        return None if inner is None else lambda code: inner(code[0])
    if len(output) != 3 or len({getattr(part, "shape", None) for part in output}) != 1:
        return None
    drawn = [i for i, (one, two) in enumerate(zip(output, again())) if not torch.equal(one, two)]
    if not drawn:
        drawn = [i for i in (0, 2) if torch.equal(output[i], output[1 if i == 0 else 0])][:1]
    if len(drawn) != 1:
        return None
    mean, log_var = (i for i in range(3) if i != drawn[0])
    return lambda code: (code[mean], code[log_var])


def _is_normal(output: D.Distribution) -> bool:
    return isinstance(plain(output), (D.Normal, D.MultivariateNormal))


def _of_distribution(output: D.Distribution) -> Code:
    normal: Any = plain(output)
    if isinstance(normal, D.MultivariateNormal):
        return normal.loc, normal.scale_tril
    return normal.loc, 2 * normal.scale.log()

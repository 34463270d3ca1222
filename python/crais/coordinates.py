"""Coordinates e of R^D in which a prior, a unit cube, a support or a base is a plain density.

A user's function takes theta, which may be bounded and may have names. Chains move in e, with theta = T(e). What a
density gains by the change of variables, the prior's own density of e or log |det dT/de|, is `log_density`. It is NaN,
zero and counted, where floating numbers end before T does: no number of the user's density is ever another.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import constraints
from torch.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

from crais.captured import Function
from crais.errors import UsageError
from crais.gradients import known_gradient
from crais.outputs import plain as unwrapped
from crais.priors import Prior, StandardNormal, log_normal

_DRAWS = 1024  # of a prior, for the centre and the width of e
_QUARTILES = 1.349  # distance of a standard normal's quartiles
_MOST_LOST = 1.0  # of a free number that comes back from a bounded one


@dataclass(frozen=True)
class Coordinates:
    """theta = T(e).

    dim          D, of e
    point        e [B, D] -> theta: [B, *shape], or such tensors by name
    log_density  e [B, D] -> what the function's own density is multiplied by [B], nats
    drawn        count -> as many e of the prior; None for N(0, I)
    inverse      theta -> e, where that is known
    names        of the D numbers, as messages have them
    """

    dim: int
    point: Function
    log_density: Function = log_normal
    drawn: Callable[[int], Tensor] | None = None
    inverse: Function | None = None
    names: tuple[str, ...] = ()

    def draw(self, count: int) -> Tensor:
        """e [count, D] of the prior, float64."""
        if self.drawn is not None:
            return self.drawn(count)
        return torch.randn(count, self.dim, dtype=torch.float64)

    def name(self, i: int) -> str:
        return self.names[i] if self.names else f"coordinate {i}"


def plain(dim: int) -> Coordinates:
    """theta = e, and no density of its own."""
    return Coordinates(dim, lambda e: e, lambda e: e.new_zeros(e.shape[0]), inverse=lambda e: e)


def of_base(base: Any, dim: int) -> Coordinates:
    """z = m + L e: mean and covariance of a distribution, as (mean, covariance), or of samples.

    Raises UsageError where there is no finite mean and covariance.
    """
    loc, covariance = _moments(base, dim)
    fits = loc.shape == (dim,) and covariance.shape == (dim, dim) and bool(loc.isfinite().all())
    scale_tril, failed = torch.linalg.cholesky_ex(covariance) if fits else (covariance, True)
    if failed:
        raise UsageError(
            f"base: give a mean [{dim}] and a positive definite covariance [{dim}, {dim}], of finite "
            f"numbers; these are {list(loc.shape)} and {list(covariance.shape)}"
        )
    log_det = scale_tril.diagonal().log().sum()
    return Coordinates(
        dim,
        lambda e: loc.to(e) + e @ scale_tril.to(e).T,
        lambda e: log_det.to(e).expand(e.shape[0]),
        inverse=lambda z: torch.linalg.solve_triangular(scale_tril, (z - loc).T, upper=False).T,
    )


def of_transform(transform: Function, dim: int) -> Coordinates:
    """theta = transform(u) of u = Phi(e) in the unit cube, where u is uniform.

    Floating numbers end the cube at 1 - 1e-16, so a quantile function ends 8.2 standard deviations
    above its median: give a prior whose tails matter as `prior`.
    """

    cube = _free(constraints.unit_interval, (dim,), "u")
    return Coordinates(dim, lambda e: transform(cube.point(e)), cube.log_density)


def of_prior(prior: Any, dim: int | None) -> Coordinates:
    """Coordinates in which the prior is a standard normal, or close to one.

    prior   a distribution of torch or scipy.stats, a sequence of them, or a dict by name
    dim     the number of independent copies of a distribution of one number; None for one

    theta is [B, *shape] for one distribution, [B, 1] or [B, dim] for one of a single number,
    [B, D] for a sequence (side by side), and a dict of [B, *shape] for a dict. Raises UsageError
    for a prior that is discrete or improper, or is no such distribution.
    """
    if dim is not None and not isinstance(prior, (Mapping, list, tuple)):
        one = _of_distribution(prior, "the prior")
        if one.point(torch.zeros(1, one.dim)).numel() > 1:
            return _checked(one, dim, "the prior")
        prior = [prior] * dim
    prior = list(prior) if isinstance(prior, tuple) else prior
    return _together(prior, dim, _of_distribution, "the prior")


class _Free(Prior):
    """Of e, for a prior that is not normal there."""

    def __init__(self, space: Coordinates) -> None:
        super().__init__()
        self._space = space

    def log_prob(self, z: Tensor) -> Tensor:
        return self._space.log_density(z)

    def draw(self, rows: int, latent: int) -> Tensor:
        return self._space.draw(rows).float()


def freed(prior: Prior, latent: int) -> tuple[Prior, Function] | None:
    """The prior of e and z [B, D] of e, for one of PyTorch's whose support has an end; else None."""
    distribution: Any = getattr(prior, "distribution", None)
    support: Any = None
    if isinstance(distribution, D.Distribution):
        with contextlib.suppress(NotImplementedError):
            support = _support_of(unwrapped(distribution))
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if support in (None, constraints.real):
        return None
    space = of_prior(distribution, latent)
    free = StandardNormal() if space.drawn is None else _Free(space)
    free.name = prior.name
    return free, lambda e: space.point(e).flatten(1)


def of_support(support: Any, dim: int | None) -> Coordinates:
    """Coordinates without bounds for a constraint, one for each coordinate, or a dict by name.

    A constraint is one of torch.distributions.constraints, a pair (low, high), whose None or inf
    is no bound, or (constraint, shape) for more than one number. theta is as in `of_prior`.
    """
    if dim is not None and not isinstance(support, (Mapping, list)) and not _has_shape(support):
        return _checked(_of_constraint(support, "the support", (dim,)), None, "the support")
    return _together(support, dim, _of_constraint, "the support")


# Several together.


def _together(parts: Any, dim: int | None, make: Callable[[Any, str], Coordinates], what: str) -> Coordinates:
    """Coordinates of one part, of a list's parts side by side, or of a dict's parts by name."""
    if isinstance(parts, Mapping):
        each = [make(one, name) for name, one in parts.items()]
        whole = _joined(each, lambda thetas: dict(zip(parts, thetas)), lambda theta: [theta[name] for name in parts])
        shown = [name if one.dim == 1 else f"{name}[{i}]" for name, one in zip(parts, each) for i in range(one.dim)]
        whole = replace(whole, names=tuple(shown))
    elif isinstance(parts, list):
        whole = _row([make(one, f"{what} {i}") for i, one in enumerate(parts)])
    else:
        whole = make(parts, what)
        whole = _row([whole]) if whole.point(torch.zeros(1, whole.dim).double()).dim() == 1 else whole
    return _checked(whole, dim, what)


def _joined(each: Sequence[Coordinates], join: Callable[[list[Tensor]], Any], divide: Function) -> Coordinates:
    """Of all the numbers of e one after another; `join` makes theta of each one's, `divide` undoes it."""
    if not each:
        raise UsageError("a dict without names has no coordinates")
    sizes = [one.dim for one in each]

    def log_density(e: Tensor) -> Tensor:
        return torch.stack([one.log_density(p) for one, p in zip(each, e.split(sizes, 1))]).sum(0)

    def inverse(theta: Any) -> Tensor:
        parts = [one.inverse(part) for one, part in zip(each, divide(theta)) if one.inverse is not None]
        return torch.cat([part.reshape(part.shape[0], -1) for part in parts], 1)

    return Coordinates(
        sum(sizes),
        lambda e: join([one.point(part) for one, part in zip(each, e.split(sizes, 1))]),
        log_density,
        None
        if all(one.drawn is None for one in each)
        else lambda count: torch.cat([one.draw(count) for one in each], 1),
        None if any(one.inverse is None for one in each) else inverse,
    )


def _row(each: Sequence[Coordinates]) -> Coordinates:
    """Their numbers side by side, theta [B, D]."""
    shapes = [one.point(torch.zeros(1, one.dim, dtype=torch.float64)).shape[1:] for one in each]

    def divide(theta: Tensor) -> list[Tensor]:
        parts = theta.split([math.prod(shape) for shape in shapes], 1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes)]

    return _joined(each, lambda thetas: torch.cat([one.reshape(one.shape[0], -1) for one in thetas], 1), divide)


def _checked(coordinates: Coordinates, dim: int | None, what: str) -> Coordinates:
    if coordinates.dim == 0:
        raise UsageError(f"{what} has no free numbers")
    if dim is not None and dim != coordinates.dim:
        raise UsageError(f"dim is {dim}, and {what} is of {coordinates.dim} free numbers")
    return coordinates


# One distribution.


def _of_distribution(prior: Any, name: str) -> Coordinates:
    """Its numbers stay where they are, whatever device and type e has."""
    if isinstance(prior, Prior):
        raise UsageError(f"{name} is one of crais's, which are for models of images: give one of torch.distributions")
    one = (_of_torch if isinstance(prior, D.Distribution) else _of_scipy)(prior, name)
    return replace(
        one,
        point=lambda e: one.point(e.cpu().double()).to(e),
        log_density=lambda e: one.log_density(e.cpu().double()).to(e),
    )


def _of_torch(prior: D.Distribution, name: str) -> Coordinates:
    shape = tuple(prior.batch_shape + prior.event_shape)
    prior = _in_float64(unwrapped(prior))
    named = f"{name}: {type(prior).__name__}"
    try:
        support = _support_of(prior)
    except NotImplementedError:
        support = None
    if getattr(support, "is_discrete", False):
        raise UsageError(f"{named} is discrete: sum over its values in the likelihood")
    try:
        draws = prior.sample((_DRAWS,))
    except NotImplementedError:
        raise UsageError(f"{named} has no draws: is it improper?") from None
    if not bool(draws.isfinite().all() and (prior.log_prob(draws) > -math.inf).all()):
        raise UsageError(f"{named} is improper: draws of it or their densities are not finite")
    exact = _exact(prior)
    if exact is not None:
        point = lambda e: exact(e.reshape(e.shape[0], *shape))
        return Coordinates(math.prod(shape), point, inverse=_inverse_of(prior, point))
    if support is None:
        raise UsageError(f"{named} does not say its support")
    return _of_bijection(prior, _free(support, shape, name), named)


def _support_of(prior: Any) -> Any:
    """Raises NotImplementedError where it does not say."""
    if isinstance(prior, D.MixtureSameFamily):
        return _support_of(unwrapped(prior.component_distribution))
    if isinstance(prior, D.VonMises):  # PyTorch says R, where its density is periodic
        return constraints.interval(-math.pi, math.pi)
    return prior.support


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
    if isinstance(prior, D.Exponential):  # by the upper tail
        return lambda e: -torch.special.log_ndtr(-e) / prior.rate
    if isinstance(prior, D.HalfNormal):
        return lambda e: -prior.scale * torch.special.ndtri(_phi(-e) / 2)
    if isinstance(prior, D.Cauchy):  # by the lesser of both tails
        return lambda e: prior.loc + prior.scale * (e.sign() / torch.tan(math.pi * _phi(-e.abs())) * (e != 0))
    if isinstance(prior, D.TransformedDistribution):
        inner = unwrapped(prior.base_dist)
        same = inner.batch_shape + inner.event_shape == prior.batch_shape + prior.event_shape
        of_inner = _exact(inner) if isinstance(inner, (D.Normal, D.Exponential)) else None
        if same and of_inner is not None and all(t.bijective for t in prior.transforms):
            return lambda e: D.ComposeTransform(prior.transforms)(of_inner(e))
    return None


def _inverse_of(prior: Any, point: Function) -> Function:
    """theta -> e in [-38, 38], by bisection where each number of theta grows with its own e."""

    def inverse(theta: Tensor) -> Tensor:
        if isinstance(prior, D.MultivariateNormal):
            apart = (theta - prior.loc).unsqueeze(-1)
            return torch.linalg.solve_triangular(prior.scale_tril, apart, upper=False).squeeze(-1)
        low = torch.full((theta.shape[0], theta[0].numel()), -38.0, dtype=torch.float64)
        high = -low
        for _ in range(70):
            e = (low + high) / 2
            is_below = point(e).reshape(e.shape) < theta.reshape(e.shape)
            low, high = torch.where(is_below, e, low), torch.where(is_below, high, e)
        return (low + high) / 2

    return inverse


def _of_bijection(prior: D.Distribution, free: Coordinates, named: str) -> Coordinates:
    """theta = T(c + s e) with PyTorch's bijection T from R^D, and the prior's density of e.

    c and s are those of `scaled`.
    """
    inverse = free.inverse
    assert inverse is not None
    drawn: Callable[[int], Tensor] = lambda count: inverse(prior.sample((count,))).reshape(count, -1)
    x = drawn(_DRAWS)
    if bool(free.log_density(x + 0.1 * x.sign() * (1 + x.abs())).isnan().any()):
        raise UsageError(
            f"{named} has draws nearer to the end of its support than floating numbers tell "
            "apart: its evidence would lose that mass"
        )
    log_prob = lambda x: prior.log_prob(free.point(x)).reshape(x.shape[0], -1).sum(1)
    whole = replace(free, log_density=lambda x: log_prob(x) + free.log_density(x))
    made = scaled(whole, x, drawn)
    if made is None:
        raise UsageError(f"{named} has no width: its draws are all the same")
    return made


def scaled(free: Coordinates, x: Tensor, drawn: Callable[[int], Tensor]) -> Coordinates | None:
    """Coordinates e in which a prior is near N(0, I): x = c + s e, of median and spread of its draws x [N, D].

    None where a spread is 0 or not finite. `drawn` gives further x [count, D].
    """
    low, centre, high = torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]).to(x), 0)
    width = (high - low) / _QUARTILES
    if not bool(((width > 0) & width.isfinite()).all()):
        return None
    to_x = lambda e: centre.to(e) + width.to(e) * e
    to_e = lambda x: (x.reshape(x.shape[0], -1) - centre) / width
    inverse = free.inverse
    return replace(
        free,
        point=lambda e: free.point(to_x(e)),
        log_density=lambda e: free.log_density(to_x(e)) + width.log().sum().to(e),
        drawn=lambda count: to_e(drawn(count)),
        inverse=None if inverse is None else lambda theta: to_e(inverse(theta)),
    )


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
        tail = _phi(-e.abs()).numpy()
        below, above = torch.as_tensor(quantile(tail)), torch.as_tensor(from_above(tail))
        theta = torch.where(e < 0, below, above)
        log_prior = torch.as_tensor(prior.logpdf(theta.numpy()))
        log_slope = -0.5 * e.square() - 0.5 * math.log(2 * math.pi) - log_prior
        return theta, [log_slope.exp().nan_to_num(0, 0, 0)]

    point = known_gradient(value_and_slope)
    shaped = lambda e: point(e.reshape(-1, *shape))
    return Coordinates(math.prod(shape), shaped, inverse=_inverse_of(prior, shaped))


# One support.


class _Triangle(D.Transform):
    """R^(P (P + 1) / 2) -> lower triangles L of P rows, logarithms on the diagonal; or L L^T.

    PyTorch's transforms to these take whole matrices, half of which they do not use.
    """

    bijective = True
    domain = constraints.real_vector

    def __init__(self, is_squared: bool) -> None:
        super().__init__()
        self.is_squared = is_squared
        self.codomain = constraints.positive_definite if is_squared else constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        lower: Tensor = D.LowerCholeskyTransform()(vec_to_tril_matrix(x))
        return lower @ lower.mT if self.is_squared else lower

    def _inverse(self, y: Tensor) -> Tensor:
        if self.is_squared:  # NaN where second derivatives of log det y meet a pivot of 0
            is_lost = torch.linalg.lu_factor_ex(y).info[..., None, None] != 0
            y = torch.linalg.cholesky_ex(y).L.masked_fill(is_lost, math.nan)
        return tril_matrix_to_vec(D.LowerCholeskyTransform()._inverse(y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_diagonal = vec_to_tril_matrix(x).diagonal(dim1=-2, dim2=-1)
        if not self.is_squared:
            return log_diagonal.sum(-1)
        powers = torch.arange(y.shape[-1], 0, -1).to(x) + 1
        return (math.log(2) + powers * log_diagonal).sum(-1)

    def inverse_shape(self, shape: torch.Size) -> torch.Size:
        return shape[:-2] + (shape[-1] * (shape[-1] + 1) // 2,)


class _Phi(D.CumulativeDistributionTransform):
    """x ~ N(0, 1) -> u in [0, 1] of any size. In a sigmoid's x most densities have longer tails."""

    def __init__(self) -> None:
        super().__init__(D.Normal(0.0, 1.0))

    def _call(self, x: Tensor) -> Tensor:
        return _phi(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.special.ndtri(y)


def _bijection_to(constraint: Any) -> Any:
    if constraint is constraints.positive_definite or constraint is constraints.lower_cholesky:
        return _Triangle(constraint is constraints.positive_definite)
    if not isinstance(constraint, constraints.interval):
        return D.biject_to(constraint)
    low, high = constraint.lower_bound, constraint.upper_bound
    return D.ComposeTransform([_Phi(), D.AffineTransform(low, high - low)])


def _free(constraint: Any, shape: Sequence[int], name: str) -> Coordinates:
    """By a bijection to a support. Raises UsageError where there is none."""
    if getattr(constraint, "is_discrete", False):
        raise UsageError(f"{name} is discrete: sum over its values in the density")
    try:
        transform = _bijection_to(constraint)
        free_shape = tuple(transform.inverse_shape(torch.Size(shape)))
        fits = all(transform(torch.zeros(n, *free_shape)).shape == (n, *shape) for n in (2, 3))
    except Exception:  # whatever PyTorch raises of a constraint or a shape
        fits = False
    if not fits:
        what = f"no bijection from R^D to {constraint} of shape {list(shape)}"
        raise UsageError(f"{name}: PyTorch has {what}: give prior_transform, or a density that is -inf outside")

    def kept(x: Tensor) -> tuple[Tensor, Tensor]:
        """x in its shape, 0 in rows from which T loses it: their theta may be no number at all."""
        with torch.no_grad():
            own = x.detach().reshape(x.shape[0], *free_shape)
            lost = (transform.inv(transform(own)) - own).abs().reshape(x.shape[0], -1)
            is_kept = (lost < _MOST_LOST).all(1)
        return torch.where(is_kept.unsqueeze(1), x, 0).reshape(x.shape[0], *free_shape), is_kept

    def point(x: Tensor) -> Tensor:
        theta: Tensor = transform(kept(x)[0])
        return theta

    def log_det(x: Tensor) -> Tensor:
        own, is_kept = kept(x)
        value = transform.log_abs_det_jacobian(own, transform(own)).reshape(x.shape[0], -1).sum(1)
        return torch.where(is_kept, value, math.nan)

    return Coordinates(math.prod(free_shape), point, log_det, inverse=transform.inv)


def _of_constraint(constraint: Any, name: str, shape: Sequence[int] = ()) -> Coordinates:
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
        raise UsageError(f"{name}: {constraint} is for vectors: say their size, as ({constraint}, (3,))")
    return _free(constraint, shape, name)


def _between(low: Any, high: Any, name: str) -> Any:
    try:
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: low and high are numbers, not {low!r} and {high!r}") from None
    if not low < high:
        raise UsageError(f"{name}: low must be less than high; these are {low:g} and {high:g}")
    if math.isinf(low):
        return constraints.real if math.isinf(high) else constraints.less_than(high)
    return constraints.greater_than(low) if math.isinf(high) else constraints.interval(low, high)


def _has_shape(support: Any) -> bool:
    """It is (constraint, shape), where a constraint may be a pair itself."""
    return isinstance(support, tuple) and len(support) == 2 and isinstance(support[0], (constraints.Constraint, tuple))


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
        raise UsageError(f"base: a distribution, (mean, covariance) or samples [S, {dim}], not {list(samples.shape)}")
    covariance = torch.cov(samples.T).reshape(dim, dim)
    kept = len(samples) / (len(samples) + dim)  # of correlations, which few samples exaggerate
    return samples.mean(0), kept * covariance + (1 - kept) * torch.diag(covariance.diagonal())


def _numbers(values: Any, what: str) -> Tensor:
    try:
        return torch.as_tensor(values).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"{what} is a {type(values).__name__}, not an array of numbers") from None


def _phi(e: Tensor) -> Tensor:
    """The standard normal's distribution function. PyTorch's ndtr is 0 below -8.3; this is not."""
    return 0.5 * torch.erfc(-math.sqrt(0.5) * e)

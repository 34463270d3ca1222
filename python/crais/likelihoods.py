"""Likelihoods p(x | output): what a decoder's output says about the data.

A likelihood is a module whose parameters may be learned with the decoder's. `x` is [B, *shape],
`output` what the decoder returned: a tensor, or a tuple of tensors. Log-probabilities are in nats.
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from crais.captured import required_arguments
from crais.errors import RowShapeError, UsageError, did_you_mean

Output: TypeAlias = Tensor | tuple[Tensor, ...]

# What a decoder's second tensor may be: the log scale as a function of it, and its slope, squared.
LOG_SCALES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "log_sd": (lambda spread: spread, torch.ones_like),
    "log_var": (lambda spread: 0.5 * spread, lambda spread: torch.full_like(spread, 0.25)),
    "sd": (torch.log, lambda spread: spread.pow(-2)),
    "var": (lambda spread: 0.5 * spread.log(), lambda spread: 0.25 * spread.pow(-2)),
}
# By which libraries call them.
SPREADS: dict[str, str] = {
    name: kind
    for kind, names in {
        "log_var": "log_var logvar log_variance log_covariance z_log_var",
        "log_sd": "log_sd log_std log_scale log_sigma logstd logsigma logscale",
        "sd": "sd std stddev sigma scale",
        "var": "var variance qz_v",
    }.items()
    for name in names.split()
}
_LARGEST_LOG_SCALE = 10.0  # that a decoder can mean
_MOST_OUTSIDE = 0.05  # of means, outside their domain
Domain: TypeAlias = tuple[float, float]

LEVELS = 256
STEP = 1.0 / (LEVELS - 1)  # 8-bit values are multiples of it
HALF = STEP / 2


class Likelihood(nn.Module):
    """The base class of p(x | output), rows of a batch independent. Derive your own from it.

    x is [B, *shape]; output is what the decoder returns, a tensor or a tuple of tensors. `log_prob`
    alone must be there, or `each`. Export compiles the methods: they may use tensor operations only.
    """

    low: float = -math.inf  # the support of x, both ends included
    high: float = math.inf
    step: float | None = None  # x - low are multiples of it; None: x is continuous
    levels: int | None = None  # that x has, where p is a mass function: 256 of 8-bit x = k / 255
    uniforms: int | None = None  # that `sample` takes for an element of x; None: only `draw`
    name: str = ""  # in results; that of the class where there is none

    def log_prob(self, x: Tensor, output: Output) -> Tensor:
        """Returns log p(x | output) [B], nats, summed over all elements of x."""
        return total(self.each(x, output))

    def each(self, x: Tensor, output: Output) -> Tensor:
        """Returns log p of each element of x [B, *shape], nats, where they are independent."""
        kind = self.name or type(self).__name__
        raise UsageError(f"{kind} does not say log p of each element of x (`each`); a log_joint may say what NaN means")

    def fisher(self, output: Output) -> Output:
        """Returns the diagonal of the Fisher information about the output, with its structure.

        Bases use it as the curvature of the likelihood; without it they take gradients, at D evaluations. A likelihood
        without a closed form returns another non-negative curvature, and its docstring says which.
        """
        raise NotImplementedError

    def sample(self, output: Output, u: Tensor) -> Tensor:
        """Returns x [B, *shape] as a function of uniform u [B, uniforms, *shape] in (0, 1)."""
        raise NotImplementedError

    def draw(self, output: Output, x_shape: Sequence[int]) -> Tensor:
        """Draws x of shape x_shape = [B, *shape] by `sample`, from PyTorch's generator or the one
        that crais has in its place."""
        if self.uniforms is None:
            raise NotImplementedError
        like = output if isinstance(output, Tensor) else output[0]
        u = torch.rand(x_shape[0], self.uniforms, *x_shape[1:], dtype=like.dtype)
        return self.sample(output, u.to(like.device))

    def has(self, method: str) -> bool:
        """Whether a class has brought a method of its own."""
        return getattr(type(self), method) is not getattr(Likelihood, method)

    def check(self, output: Output) -> str | None:
        """Raises UsageError where the output is not what the likelihood takes it for; else returns
        a warning, or None."""
        return None


class Elementwise(Likelihood):
    """Elements of x are independent given the output.

    It has a tensor, or several as a tuple or side by side along dimension 1, with an entry for each
    of x. `parts` are what the other functions take, each [B, *shape] or broadcast to it.
    """

    element: Callable[..., Tensor]  # (x, *parts) -> log p of every element of x
    information: Callable[..., tuple[Tensor, ...]]  # parts -> the Fisher information about each
    quantile: Callable[..., Tensor]  # (u [B, uniforms, *shape], *parts) -> x

    def parts(self, output: Output) -> tuple[Tensor, ...]:
        return (_only(output),)

    def slopes(self, output: Output) -> tuple[Tensor | float, ...]:
        """The squared slope of each part that is in the output, as a function of it."""
        return (1.0,) * len(self.parts(output))

    def each(self, x: Tensor, output: Output) -> Tensor:
        parts = self.parts(output)
        check_rows(x, parts[0].shape[1:])
        return self.element(x, *parts)

    def fisher(self, output: Output) -> Output:
        parts = self.parts(output)
        about = tuple(
            (one * slope).expand_as(parts[0]) for one, slope in zip(self.information(*parts), self.slopes(output))
        )
        return torch.cat(about, 1) if isinstance(output, Tensor) else about

    def sample(self, output: Output, u: Tensor) -> Tensor:
        return self.quantile(u, *self.parts(output))


class _OfLogits(Elementwise):
    """x in [0, 1] whose output holds logits, or with `probs` what a sigmoid makes of them.

    probs=None stands for logits, and an output that lies in [0, 1] all through is then refused as
    probabilities by mistake. probs=False says that these are logits all the same.
    """

    low, high, uniforms = 0.0, 1.0, 1

    def __init__(self, probs: bool | None = None) -> None:
        super().__init__()
        self.probs = probs

    def parts(self, output: Output) -> tuple[Tensor, ...]:
        """Logits, finite where a sigmoid was rounded to 0 or 1."""
        output = _only(output)
        if not self.probs:
            return (output,)
        numbers = torch.finfo(output.dtype)
        below_one = output.clamp(max=1 - numbers.eps / 2)
        return (output.clamp(min=numbers.tiny).log() - torch.log1p(-below_one),)

    def slopes(self, output: Output) -> tuple[Tensor | float, ...]:
        p = _open(_only(output))
        return ((p * (1 - p)).pow(-2) if self.probs else 1.0,)

    def check(self, output: Output) -> str | None:
        output, kind = _only(output), type(self).__name__
        low, high = float(output.min()), float(output.max())
        is_unit = 0 <= low and high <= 1
        if is_unit and self.probs is None:
            raise UsageError(
                f"all that the decoder returns lies in [0, 1], as after a sigmoid, and {kind}() takes logits: say "
                f"{kind}(probs=True) if these are probabilities, probs=False if they are logits"
            )
        if not is_unit and self.probs:
            takes = f"{kind}(probs=True) takes probabilities, in [0, 1]; {kind}() takes logits"
            raise UsageError(f"the decoder returns {low:.4g} to {high:.4g}, and {takes}")
        return (
            "the decoder's outputs all lie in [0, 1], and are taken for logits" if is_unit and not self.probs else None
        )


class Bernoulli(_OfLogits):
    """Bernoulli likelihood of binary x; the output holds logits [B, *shape].

    probs   True: the output holds probabilities, as after a sigmoid. False: it holds logits, even
            where all of them lie in [0, 1]. None: logits, and such an output is a UsageError

    Grey values have no probability under it: see ContinuousBernoulli.
    """

    name, step = "bernoulli", 1.0

    def element(self, x: Tensor, logits: Tensor) -> Tensor:
        return x * logits - F.softplus(logits)

    def information(self, logits: Tensor) -> tuple[Tensor, ...]:
        return (torch.sigmoid(logits) * torch.sigmoid(-logits),)

    def quantile(self, u: Tensor, logits: Tensor) -> Tensor:
        return (u[:, 0] < torch.sigmoid(logits)).to(logits.dtype)


class ContinuousBernoulli(_OfLogits):
    """Density of x in [0, 1], proportional to exp(logit x) (Loaiza-Ganem and Cunningham, 2019).

    The output holds logits [B, *shape]. `probs` is as in `Bernoulli`: the output is then
    sigmoid(logit), which is not the mean of x.
    """

    name = "continuous-bernoulli"

    def element(self, x: Tensor, logits: Tensor) -> Tensor:
        return (x - 0.5) * logits - _log_sinhc(0.5 * logits)

    def information(self, logits: Tensor) -> tuple[Tensor, ...]:
        square = logits.square()
        near = 1 / 12 - square / 240 + square.square() / 6048 - square * square.square() / 172800
        small = square < 0.5
        safe = torch.where(small, 1.0, logits)
        return (torch.where(small, near, safe.pow(-2) - 0.25 * torch.sinh(0.5 * safe).pow(-2)),)

    def quantile(self, u: Tensor, logits: Tensor) -> Tensor:
        u = u[:, 0]
        small = logits.abs() < 1e-3
        steep = -torch.where(small, 1.0, logits.abs())
        mirrored = torch.where(logits > 0, 1 - u, u)
        falling = torch.log1p(mirrored * torch.expm1(steep)) / steep  # for a negative logit
        x = torch.where(logits > 0, 1 - falling, falling)
        return torch.where(small, u + 0.5 * logits * u * (1 - u), x).clamp(0, 1)


class LocationScale(Elementwise):
    """x = location + scale * noise.

    scale   a number or a tensor that broadcasts to x: the output is the location. A name, one of `choices`: the output
            is (location, what the name says), a tuple or one tensor whose halves along dimension 1 are these. None:
            what the keys of the decoder's mapping say, else `default`
    learn   make the scale a parameter
    """

    uniforms = 1
    default: float | None = 1.0
    of_standard: tuple[float, float]  # information about location and log scale, where that is 0
    noise: Callable[[Tensor], Tensor]  # as a function of u [B, uniforms, *shape]
    choices: tuple[str, ...] = ("scale", "log_scale")
    names: Container[str] = choices  # by which a mapping may call what gives the scale

    def __init__(self, scale: float | Tensor | str | None = None, learn: bool = False) -> None:
        super().__init__()
        self.is_unsaid = scale is None
        self.given: str | None = None  # what the decoder gives, by a name of SPREADS
        scale = self.default if scale is None else scale
        self.log_scale = None
        if isinstance(scale, str):
            self.take(scale)
        elif scale is not None:
            self.log_scale = _log_parameter(scale, learn)

    def take(self, name: str) -> None:
        """The decoder's second tensor is what `name` says."""
        if name not in self.names:
            raise UsageError(f"the scale of {type(self).__name__} is {self.said()}, not {name!r}")
        self.given, self.log_scale, self.is_unsaid = name, None, False

    def said(self) -> str:
        """How to say what the decoder's second tensor is."""
        return f"a number, or a name: scale={' or '.join(map(repr, self.choices))}"

    def parts(self, output: Output) -> tuple[Tensor, ...]:
        if self.log_scale is not None:
            return _only(output), self.log_scale
        if self.given is None:
            raise UsageError(f"say what the scale of {type(self).__name__} is: {self.said()}")
        loc, spread = _halves(output)
        return loc, LOG_SCALES[SPREADS[self.given]][0](spread)

    def information(self, loc: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
        about_loc, about_scale = self.of_standard
        return about_loc * torch.exp(-2 * log_scale), torch.full_like(log_scale, about_scale)

    def slopes(self, output: Output) -> tuple[Tensor | float, ...]:
        if self.given is None:
            return (1.0,)
        return 1.0, LOG_SCALES[SPREADS[self.given]][1](_halves(output)[1])

    def quantile(self, u: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        return loc + log_scale.exp() * self.noise(u)

    def check(self, output: Output) -> str | None:
        """A scale that is none, or a large one, is another of the names."""
        if self.given is None:
            return None
        spread, log_scale = _halves(output)[1], self.parts(output)[1]
        is_log = SPREADS[self.given].startswith("log")
        if (log_scale.max() <= _LARGEST_LOG_SCALE) if is_log else (spread.min() > 0):
            return None
        raise UsageError(
            f"the decoder's {self.given!r} reaches {float(spread.max() if is_log else spread.min()):.4g}, "
            f"as no {'logarithm of a ' * is_log}scale does: say what it is: {self.said()}"
        )


class _Normal(LocationScale):
    of_standard = (1.0, 2.0)
    choices, names = ("sd", "log_sd", "log_var"), SPREADS

    def __init__(
        self, sd: float | Tensor | str | None = None, learn: bool = False, *, scale: str | None = None, **domain: Any
    ) -> None:
        if sd is not None and scale is not None:
            raise UsageError("give sd, a number, or scale, what the decoder's second tensor is")
        super().__init__(scale if sd is None else sd, learn, **domain)

    def noise(self, u: Tensor) -> Tensor:
        return math.sqrt(2) * torch.erfinv(2 * _open(u[:, 0]) - 1)


class Gaussian(_Normal):
    """Normal noise around the output, which is the mean [B, *shape].

    sd      the standard deviation, in the units of x: a number or a tensor that broadcasts to x.
            1 where neither it nor the decoder says another
    learn   make `sd` a parameter
    scale   "sd", "log_sd" or "log_var", in place of `sd`: the output is (mean, that), or one tensor
            of both along dimension 1. The keys of a mapping, such as `logvar`, say it by themselves
    """

    name = "gaussian"

    def element(self, x: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        r = (x - loc) * torch.exp(-log_scale)
        return -0.5 * r.square() - log_scale - 0.5 * math.log(2 * math.pi)


class Laplace(LocationScale):
    """Two-sided exponential noise of density exp(-|x - median| / scale) / (2 scale).

    The output is the median. `scale` is a number or a tensor, or "scale" or "log_scale" where the
    output is (median, that); `learn` is as in `Gaussian`.
    """

    name = "laplace"
    of_standard = (1.0, 1.0)

    def element(self, x: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        return -(x - loc).abs() * torch.exp(-log_scale) - log_scale - math.log(2)

    def noise(self, u: Tensor) -> Tensor:
        side = _open(u[:, 0]) - 0.5
        return -side.sign() * torch.log1p(-2 * side.abs())


class StudentT(LocationScale):
    """Student's t noise with `df` degrees of freedom; the output is the location.

    `scale` and `learn` are as in `Laplace`.
    """

    name = "student-t"
    uniforms = 2

    def __init__(self, df: float, scale: float | Tensor | str | None = None, learn: bool = False) -> None:
        super().__init__(scale, learn)
        self.df = float(df)
        self.of_standard = ((df + 1) / (df + 3), 2 * df / (df + 3))

    def element(self, x: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        df = self.df
        constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        r = (x - loc) * torch.exp(-log_scale)
        return constant - (df + 1) / 2 * torch.log1p(r.square() / df) - log_scale

    def noise(self, u: Tensor) -> Tensor:
        """Polar form (Bailey, 1994): a radius and an angle."""
        square = self.df * torch.expm1(-2 / self.df * _open(u[:, 0]).log())
        return square.sqrt() * torch.cos(2 * math.pi * u[:, 1])


class _Discretized(LocationScale):
    """8-bit x = k / 255. Its mass is that of continuous noise in a bin of width 1/255 around x.

    The bins of 0 and 255 take the tails. The Fisher weights are a stand-in: those of continuous noise whose variance
    has the bins' added, times the share that is left where such noise beyond the first and the last bin's inner edge is
    known only to be there. A pixel that is surely black says next to nothing of its mean.
    """

    low, high, step, levels, default = 0.0, 1.0, STEP, LEVELS, None
    # Shares of the information about location and log-scale that standard noise retains where what
    # lies below the first argument or above the second is known only to be there.
    kept: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

    def __init__(
        self, scale: float | Tensor | str | None = None, learn: bool = False, *, domain: Domain | None = None
    ) -> None:
        super().__init__(scale, learn)
        if domain is not None and not domain[0] < domain[1]:
            raise UsageError(f"domain is (low, high), the means of black and white, not {domain}")
        self.domain = domain
        self.width = domain[1] - domain[0] if domain is not None else 1.0

    def parts(self, output: Output) -> tuple[Tensor, ...]:
        """In the units of x."""
        loc, log_scale = super().parts(output)
        if self.domain is None:
            return loc, log_scale
        return (loc - self.domain[0]) / self.width, log_scale - math.log(self.width)

    def slopes(self, output: Output) -> tuple[Tensor | float, ...]:
        return self.width**-2, *super().slopes(output)[1:]

    def quantile(self, u: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        x = super().quantile(u, loc, log_scale)
        return torch.round(x.clamp(0, 1) * (LEVELS - 1)) / (LEVELS - 1)

    def information(self, loc: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
        about_loc, about_scale = self.of_standard
        scale = torch.exp(2 * log_scale)
        blurred = scale + about_loc * STEP**2 / 12
        inverse = torch.rsqrt(blurred)  # the inner edges of the end bins, in units of the noise
        of_loc, of_scale = self.kept((HALF - loc) * inverse, (1 - HALF - loc) * inverse)
        return about_loc / blurred * of_loc, about_scale * (scale / blurred).square() * of_scale

    def check(self, output: Output) -> str | None:
        super().check(output)
        return self.check_means(self.parts(output)[0])

    def check_means(self, means: Tensor) -> str | None:
        """Most of them, in the units of x, lie in [0, 1]: else they have other units."""
        share = float(((means < -HALF) | (means > 1 + HALF)).float().mean())
        if share <= _MOST_OUTSIDE:
            return None
        low, high = self.domain or (0, 1)
        means = low + self.width * means
        found = (
            f"{share:.0%} of the decoder's means lie outside [{low:g}, {high:g}], from "
            f"{float(means.min()):.4g} to {float(means.max()):.4g}"
        )
        if self.domain is not None:
            return f"{found}, their domain"
        raise UsageError(f"{found}: say domain=(black, white) of the decoder, (-1, 1) or (0, 255); (0, 1) if meant so")


class DiscretizedGaussian(_Normal, _Discretized):
    """Mass function of 8-bit values k / 255 under normal noise; the output is the mean.

    `sd`, `learn` and `scale` are as in `Gaussian`; one of `sd` and `scale` must be there. x lies in
    [0, 1], and `domain` is what the decoder calls these two: domain=(-1, 1) for means from -1
    (black) to 1, whose scale is twice as large. log p is that of the 256 values all the same.
    """

    name = "discretized-gaussian"

    def element(self, x: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        first, last = x < HALF, x > 1 - HALF
        # By symmetry a bin's mass is that between two points left of the mean or around it. `away`
        # is the distance to the bin's centre; the bins at the ends have a sign, and no far end.
        away = torch.where(first, loc - x, torch.where(last, x - loc, (x - loc).abs()))
        inverse = torch.exp(-log_scale)
        near = torch.special.log_ndtr((HALF - away) * inverse)
        far = torch.special.log_ndtr((-HALF - away) * inverse)
        inside = near + _log1mexp((far - near).clamp(max=-torch.finfo(x.dtype).eps))
        return torch.where(first | last, near, inside)

    @staticmethod
    def kept(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        log_ndtr = torch.special.log_ndtr  # of float32: ndtr is 0 below -5.6
        at_low, at_high = (torch.exp(-0.5 * t.square()) / math.sqrt(2 * math.pi) for t in (low, high))
        middle = (1 - log_ndtr(low).exp() - log_ndtr(-high).exp()).clamp(min=0)
        slopes = high * at_high - low * at_low
        cubes = high**3 * at_high - low**3 * at_low
        left, right = (torch.exp(-t.square() - log_ndtr(t)) / (2 * math.pi) for t in (low, -high))
        tails = low.square() * left + high.square() * right
        of_scale = (middle + 0.5 * (tails - cubes - slopes)).clamp(min=0)
        return (middle - slopes).clamp(min=0) + left + right, of_scale


class DiscretizedLogistic(_Discretized):
    """Mass function of 8-bit values under logistic noise; the output is the mean.

    `scale` and `learn` are as in `Laplace`, and `scale` must be there; `domain` is as in `DiscretizedGaussian`.
    """

    name = "discretized-logistic"
    of_standard = (1 / 3, (3 + math.pi**2) / 9)

    def element(self, x: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
        """Log mass of the bin around x: b - a is its width in sigmoid(b) - sigmoid(a) =
        sigmoid(b) sigmoid(-a) (1 - e^(a - b)).
        """
        inverse = torch.exp(-log_scale)
        first, last = x < HALF, x > 1 - HALF
        upper = F.logsigmoid((x - loc + HALF) * inverse).masked_fill(last, 0.0)
        lower = F.logsigmoid((loc - x + HALF) * inverse).masked_fill(first, 0.0)
        width = _log1mexp(-STEP * inverse)
        return upper + lower + torch.where(first | last, 0.0, width)

    @staticmethod
    def kept(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The score of standard logistic noise is 2 F - 1, F its rank.

        The middle's share of the information about the scale is a stand-in, exact where the middle
        is everything and where it is a far tail.
        """
        below, above = torch.sigmoid(low), torch.sigmoid(-high)
        left, right = below * torch.sigmoid(-low).square(), above * torch.sigmoid(high).square()
        of_loc = ((1 - 2 * above) ** 3 - (2 * below - 1) ** 3) / 2 + 3 * (left + right)
        whole = DiscretizedLogistic.of_standard[1]
        tails = (low.square() * left + high.square() * right) / whole
        middle = (1 - below - above).clamp(min=0)
        outside = F.relu(low) + F.relu(-high)
        return of_loc.clamp(min=0), middle * (1 + outside.square() / whole) + tails

    def noise(self, u: Tensor) -> Tensor:
        return torch.logit(_open(u[:, 0]))


class Mixture(Likelihood):
    """A mixture for each element of x, of K distributions of one kind.

    The output is the logits of the components' weights, then what the kind takes, each [B, K, *shape]. The Fisher
    weights are a stand-in, no smaller than the exact ones: those of x together with its component.
    """

    def __init__(self, kind: Elementwise) -> None:
        super().__init__()
        self.name = self.name or "mixture"
        self.kind, self.uniforms = kind, 1 + (kind.uniforms or 0)
        self.low, self.high, self.step, self.levels = kind.low, kind.high, kind.step, kind.levels

    def split(self, output: Output) -> tuple[Tensor, Output]:
        """Logits of weights, and the output that the kind takes."""
        weights, *others = output
        return weights, tuple(others) if len(others) > 1 else others[0]

    def each(self, x: Tensor, output: Output) -> Tensor:
        logits, of_kind = self.split(output)
        check_rows(x, logits.shape[2:])
        of_components = self.kind.element(x.unsqueeze(1), *self.kind.parts(of_kind))
        return torch.logsumexp(F.log_softmax(logits, 1) + of_components, 1)

    def fisher(self, output: Output) -> Output:
        logits, of_kind = self.split(output)
        weights, about = torch.softmax(logits, 1), self.kind.fisher(of_kind)
        each = (about,) if isinstance(about, Tensor) else about
        return weights * (1 - weights), *(weights * one for one in each)

    def sample(self, output: Output, u: Tensor) -> Tensor:
        logits, of_kind = self.split(output)
        index = _index(torch.softmax(logits, 1), u[:, 0])
        parts = (part.expand_as(logits).gather(1, index) for part in self.kind.parts(of_kind))
        return self.kind.quantile(u[:, 1:], *(part.squeeze(1) for part in parts))


class DiscretizedLogisticMixture(Mixture):
    """Mass function of 8-bit values x [B, C, *rest] under a mixture of logistics for each element.

    The output [B, 3 * components * C, *rest] is read as [B, 3, components, C, *rest]: the logits of the components'
    weights, their means, their log-scales. Channels are independent given the output; there is no autoregression among
    them. `domain` is as in `DiscretizedGaussian`: PixelCNN++'s is (-1, 1). The Fisher weights are a stand-in: those of
    x together with its component.
    """

    name = "discretized-logistic-mixture"
    kind: DiscretizedLogistic

    def __init__(self, components: int, *, domain: Domain | None = None) -> None:
        super().__init__(DiscretizedLogistic("log_scale", domain=domain))
        self.components = components

    def split(self, output: Output) -> tuple[Tensor, Output]:
        """Logits, and means and log-scales, each [B, components, C, *rest]."""
        output = _only(output)
        channels = output.shape[1] // (3 * self.components)
        shape = (output.shape[0], 3, self.components, channels, *output.shape[2:])
        logits, means, log_scales = output.reshape(shape).unbind(1)
        return logits, (means, log_scales)

    def fisher(self, output: Output) -> Output:
        return torch.stack(list(super().fisher(output)), 1).reshape(_only(output).shape)

    def check(self, output: Output) -> str | None:
        logits, of_kind = self.split(output)
        means = self.kind.parts(of_kind)[0]
        return self.kind.check_means((torch.softmax(logits, 1) * means).sum(1))


class Categorical(Likelihood):
    """Symbols x in 0..num_classes-1; the output has their logits, [B, num_classes, *shape].

    A decoder may return [B, *shape, num_classes] too, as torch.distributions.Categorical takes it.
    Without num_classes, x has 8 bits, k / 255, and num_classes is 256.
    """

    name, low, uniforms = "categorical", 0.0, 1

    def __init__(self, num_classes: int | None = None) -> None:
        super().__init__()
        if num_classes is not None and num_classes < 2:
            raise UsageError(f"Categorical takes at least 2 classes, not {num_classes}")
        self.num_classes = self.levels = LEVELS if num_classes is None else num_classes
        self.step = STEP if num_classes is None else 1.0
        self.high = 1.0 if num_classes is None else float(num_classes - 1)

    def each(self, x: Tensor, output: Output) -> Tensor:
        output = _only(output)
        if output.shape[1] != self.num_classes:
            raise RowShapeError(
                f"Categorical of {self.num_classes} classes takes an output [B, {self.num_classes}, "
                f"{', '.join(map(str, x.shape[1:]))}]; the decoder returns {list(output.shape)}"
            )
        log_weights = F.log_softmax(output, 1)
        check_rows(x, log_weights.shape[2:])
        value = torch.round(x * (self.num_classes - 1) / self.high).long().unsqueeze(1)
        return log_weights.gather(1, value).squeeze(1)

    def fisher(self, output: Output) -> Output:
        weights = torch.softmax(_only(output), 1)
        return weights * (1 - weights)

    def sample(self, output: Output, u: Tensor) -> Tensor:
        weights = torch.softmax(_only(output), 1)
        index = _index(weights, u[:, 0]).squeeze(1).to(weights.dtype)
        return index * self.high / (self.num_classes - 1)


class Poisson(Elementwise):
    """Poisson counts; the output is the logarithm of the rate [B, *shape]."""

    name, low, step = "poisson", 0.0, 1.0

    def element(self, x: Tensor, log_rate: Tensor) -> Tensor:
        return x * log_rate - log_rate.exp() - _lgamma(x + 1).to(x.dtype)

    def information(self, log_rate: Tensor) -> tuple[Tensor, ...]:
        return (log_rate.exp(),)

    def draw(self, output: Output, x_shape: Sequence[int]) -> Tensor:
        return torch.poisson(_only(output).exp())


class NegativeBinomial(Elementwise):
    """Counts with mean mu and variance mu + mu^2 / theta; the output is log mu [B, *shape].

    `theta` (inverse dispersion) is a number or a tensor that broadcasts to x, one a gene for
    instance; `learn` makes it a parameter.
    """

    name, low, step = "negative-binomial", 0.0, 1.0

    def __init__(self, theta: float | Tensor = 1.0, learn: bool = True) -> None:
        super().__init__()
        self.log_theta = _log_parameter(theta, learn)

    def element(self, x: Tensor, log_mean: Tensor) -> Tensor:
        log_odds, theta = log_mean - self.log_theta, self.log_theta.exp()
        chances = _lgamma(x + theta) - _lgamma(theta) - _lgamma(x + 1)
        # log(1 + odds), exact where the odds are small too
        more = F.softplus(log_odds, threshold=40)
        return chances.to(x.dtype) + x * log_odds - (x + theta) * more

    def information(self, log_mean: Tensor) -> tuple[Tensor, ...]:
        mean, theta = log_mean.exp(), self.log_theta.exp()
        return (mean * theta / (mean + theta),)

    def draw(self, output: Output, x_shape: Sequence[int]) -> Tensor:
        log_mean = self.parts(output)[0]
        theta = self.log_theta.exp().expand_as(log_mean)
        return torch.distributions.NegativeBinomial(theta, logits=log_mean - self.log_theta).sample()


class ZeroInflatedNegativeBinomial(NegativeBinomial):
    """Counts that are 0 with an extra probability, else negative binomial (scvi's ZINB).

    The output is (output of `NegativeBinomial`, logits of the extra zeros), or one tensor whose
    halves along dimension 1 are these. The arguments are those of `NegativeBinomial`.
    """

    name = "zero-inflated-negative-binomial"

    def parts(self, output: Output) -> tuple[Tensor, ...]:
        return _halves(output)

    def element(  # type: ignore[override]  # of one part more
        self, x: Tensor, log_mean: Tensor, zeros: Tensor
    ) -> Tensor:
        counted = F.logsigmoid(-zeros) + super().element(x, log_mean)
        return torch.where(x == 0, torch.logaddexp(F.logsigmoid(zeros), counted), counted)

    def information(  # type: ignore[override]
        self, log_mean: Tensor, zeros: Tensor
    ) -> tuple[Tensor, ...]:
        extra = torch.sigmoid(zeros)
        (score,) = super().information(log_mean)  # minus that of a count of 0 to its log mean
        none = torch.exp(super().element(torch.zeros_like(zeros), log_mean))  # of a count of 0
        zero = extra + (1 - extra) * none
        # A zero says less than a count of 0 does: it may be an extra one.
        lost = (1 - extra) * none * score.square() * extra / zero
        about_mean = ((1 - extra) * score - lost).clamp(min=0)
        return about_mean, (1 - extra) * (1 - none) * extra.square() / zero

    def draw(self, output: Output, x_shape: Sequence[int]) -> Tensor:
        counts, (_, zeros) = super().draw(output, x_shape), self.parts(output)
        u = torch.rand(zeros.shape, dtype=zeros.dtype).to(zeros.device)
        return counts * (u > torch.sigmoid(zeros))


class Own(Likelihood):
    """What a user wrote: log_prob(x, output), of rows [B] or elements of x [B, *shape]; perhaps sample(output)."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        if "x" in (required_arguments(own.log_prob) or [])[1:]:
            raise UsageError(f"likelihood: log_prob of {type(own).__name__} takes x first: log_prob(x, output)")
        self.own = own
        for name in ("low", "high", "step", "levels", "uniforms", "name"):
            setattr(self, name, getattr(own, name, getattr(self, name)))
        self.name = self.name or type(own).__name__
        vars(self).update({name: getattr(own, name) for name in ("fisher", "sample", "check") if hasattr(own, name)})

    def has(self, method: str) -> bool:
        return hasattr(self.own, "sample" if method == "draw" else method)

    def each(self, x: Tensor, output: Output) -> Tensor:
        log_p: Tensor = getattr(self.own, "each", self.own.log_prob)(x, output)
        return log_p if log_p.shape == x.shape else super().each(x, output)

    def log_prob(self, x: Tensor, output: Output) -> Tensor:
        log_p: Tensor = self.own.log_prob(x, output)
        if (shape := getattr(log_p, "shape", ()))[:1] != x.shape[:1]:
            raise RowShapeError(f"log_prob of x {list(x.shape)} must return [{len(x)}], not {list(shape)}")
        return total(log_p)

    def draw(self, output: Output, x_shape: Sequence[int]) -> Tensor:
        drawn: Tensor = self.own.sample(output) if self.uniforms is None else super().draw(output, x_shape)
        return drawn


class Seen(Likelihood):
    """What was seen of x, under a likelihood of independent elements: the others are NaN."""

    def __init__(self, kind: Likelihood) -> None:
        super().__init__()
        self.kind, self.name, self.uniforms = kind, f"seen-{kind.name or type(kind).__name__}", kind.uniforms
        self.low, self.high, self.step, self.levels = kind.low, kind.high, kind.step, kind.levels
        self.check, self.sample, self.draw = kind.check, kind.sample, kind.draw  # type: ignore[method-assign]

    def has(self, method: str) -> bool:
        return super().has(method) or method in ("check", "draw") and self.kind.has(method)

    def log_prob(self, x: Tensor, output: Output) -> Tensor:
        seen = ~x.isnan()
        inside = torch.cat([x[seen], x.new_full((1,), max(self.low, 0.0))])[0]  # of the support
        return total(torch.where(seen, self.kind.each(torch.where(seen, x, inside), output), 0.0))


def as_likelihood(own: Any) -> Likelihood:
    """Of a likelihood, its name or class, an object for `Own`, or a function f(x, output). UsageError for all else."""
    if isinstance(own, str):
        return named(own)
    kind = own if isinstance(own, type) else type(own)
    if issubclass(kind, torch.distributions.Distribution):
        raise UsageError(f"likelihood: leave it out and let the decoder return {kind.__name__}(...)")
    if isinstance(own, type):
        try:
            own = own()
        except TypeError as error:
            raise UsageError(f"likelihood: give an instance, {own.__name__}(...): {error}") from error
    if isinstance(own, Likelihood):
        return own
    if isinstance(own, types.FunctionType) and (required_arguments(own) or [""])[0] == "x":
        own = types.SimpleNamespace(log_prob=own, name=own.__name__)
    if not callable(getattr(own, "log_prob", None)):
        raise UsageError("likelihood: give a name, 'bernoulli', a function f(x, output), or an object with log_prob")
    return Own(own)


def named(text: str) -> Likelihood:
    """As on the command line: "bernoulli", "bernoulli:probs", "gaussian:0.1", "poisson".

    Raises UsageError for a name that is none.
    """
    name, _, argument = text.partition(":")
    kinds: dict[str, Any] = {
        kind.name: kind
        for kind in globals().values()
        if isinstance(kind, type) and issubclass(kind, Likelihood) and kind.name
    }
    kind = kinds.get(name)
    with contextlib.suppress(TypeError, ValueError):
        if kind is not None and argument in ("", "probs"):
            return kind(probs=True) if argument else kind()
        if kind is not None and not issubclass(kind, _OfLogits):
            return kind(int(argument) if argument.isdecimal() else float(argument))
    near = "" if name in kinds else did_you_mean(name, kinds)
    known = f"; there are {', '.join(sorted(kinds))}, as bernoulli:probs or gaussian:SD"
    raise UsageError(f"no likelihood {text!r}{near or known}")


def _log_parameter(value: float | Tensor, learn: bool) -> nn.Parameter:
    """The logarithm of a positive number or tensor, learned or not."""
    number = torch.as_tensor(value, dtype=torch.get_default_dtype()).detach()
    if not bool((number > 0).all()):
        raise UsageError(f"a scale must be positive, not {float(number.min()):.4g}")
    return nn.Parameter(number.log(), requires_grad=learn)


def _only(output: Output) -> Tensor:
    """The output of a decoder that has one."""
    if not isinstance(output, Tensor):
        raise TypeError(f"the decoder must return a tensor, not {type(output).__name__}")
    return output


def _halves(output: Output) -> tuple[Tensor, Tensor]:
    """Two tensors, or one whose halves along dimension 1 are these."""
    first, second = output.chunk(2, 1) if isinstance(output, Tensor) else output
    return first, second


def check_rows(x: Tensor, shape: Sequence[int]) -> None:
    """Raises RowShapeError where tensors of unlike shapes would broadcast."""
    row = list(x.shape[1:])
    if row != list(shape):
        raise RowShapeError(f"a row of x has shape {row}, but the decoder's output is for rows of shape {list(shape)}")


def total(values: Tensor) -> Tensor:
    """The sum of elements, for each row [B]."""
    return values.flatten(1).sum(1) if values.dim() > 1 else values


def _open(u: Tensor) -> Tensor:
    """u, kept away from 0 and 1."""
    eps = torch.finfo(u.dtype).eps
    return u.clamp(eps, 1 - eps)


def _index(weights: Tensor, u: Tensor) -> Tensor:
    """Indices [B, 1, *shape] along dimension 1 of the weights [B, K, *shape], drawn by u."""
    below = torch.cumsum(weights, 1) < u.unsqueeze(1)
    return below.sum(1, keepdim=True).clamp(max=weights.shape[1] - 1)


def _lgamma(x: Tensor) -> Tensor:
    """In float64: differences of large values would lose their digits in float32."""
    return torch.lgamma(x.double())


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 - e^x) of x < 0."""
    return torch.log(-torch.expm1(x))


def _log_sinhc(x: Tensor) -> Tensor:
    """log(sinh(x) / x)."""
    square = x.square()
    near = square / 6 - square.square() / 180 + square * square.square() / 2835
    small = square < 0.09
    far = torch.where(small, 1.0, x.abs())
    return torch.where(small, near, far + torch.log1p(-torch.exp(-2 * far)) - torch.log(2 * far))

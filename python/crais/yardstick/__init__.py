"""Densities whose log normaliser is known, as plain functions of PyTorch, for any package.

>>> from crais import yardstick
>>> density = yardstick.get("brownian")
>>> crais.log_normalizer(density.log_density, dim=density.dim).mean - density.log_z

`python3 -m crais.yardstick` estimates all of them by the defaults of `crais.log_normalizer`.
Each function below is a log density, z [B, D] -> [B]; its docstring is the density's `source`.
Scales are logarithms. -nc: a model that is not centred, whose effects are standardised.
"""

from __future__ import annotations

import csv
import inspect
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad, softplus

from crais.errors import NoInputError, UsageError


@dataclass(frozen=True)
class Density:
    """A density and its normaliser.

    log_density  z [B, dim] float64 -> [B], nats
    log_z        its log normaliser, nats
    log_z_error  the standard error of log_z; 0: exact, to the digits given
    source       the definition, and where it is from
    """

    name: str
    log_density: Callable[[Tensor], Tensor]
    dim: int
    log_z: float
    log_z_error: float
    source: str


_MAKERS: dict[str, Callable[[str | os.PathLike[str] | None], Density]] = {}


def names() -> list[str]:
    """The names that `get` takes."""
    return list(_MAKERS)


def get(name: str, data_dir: str | os.PathLike[str] | None = None) -> Density:
    """The density of that name.

    Regressions on Pima, Sonar and Ionosphere read a file of `data_dir`, else of $CRAIS_DATA or ./data, and there also
    of uci and logz. Raises UsageError for an unknown name, NoInputError where the file is missing.
    """
    if name not in _MAKERS:
        raise UsageError(f"no density {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name](data_dir)


def _named(
    name: str,
    dim: int,
    log_z: float,
    error: float = 0.0,
    *,
    file: str = "",
    data: Callable[..., tuple[Any, ...]] = tuple,
    **arguments: Any,
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Enrols log_density(z, *data(), **arguments); `get` calls `data`, with the path of `file`."""

    def add(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        source = " ".join(inspect.cleandoc(function.__doc__ or "").split())

        def make(data_dir: str | os.PathLike[str] | None) -> Density:
            values = data(_find(file, data_dir)) if file else data()

            def log_density(z: Tensor) -> Tensor:
                return function(z, *values, **arguments)

            return Density(name, log_density, dim, log_z, error, source)

        _MAKERS[name] = make
        return function

    return add


def _find(file: str, data_dir: str | os.PathLike[str] | None) -> Path:
    roots = [data_dir] if data_dir else [os.environ.get("CRAIS_DATA"), "data"]
    tried = [Path(root) / below / file for root in roots if root for below in ("", "uci", "logz")]
    for path in tried:
        if path.is_file():
            return path
    raise NoInputError(f"no such file: {file}; tried {', '.join(map(str, tried))}")


def _data(name: str) -> Tensor:
    """An array of data.npz, float64."""
    with np.load(Path(__file__).with_name("data.npz")) as arrays:
        return torch.from_numpy(arrays[name]).double()


def _normal(x: Tensor, mean: float = 0.0, sd: float = 1.0) -> Tensor:
    """log N(x; mean, sd^2) of each element."""
    return -0.5 * ((x - mean) / sd).square() - math.log(sd) - 0.5 * math.log(2 * math.pi)


def _log_half_cauchy(log_x: Tensor, scale: float) -> Tensor:
    """log density of log x, where x is half Cauchy."""
    x = log_x.exp()
    return math.log(2 / (math.pi * scale)) - (x / scale).square().log1p() + log_x


def _effects(own: Tensor, mean: Any, log_sd: Tensor, centred: bool) -> tuple[Tensor, Tensor]:
    """Effects N(mean, sd^2), of which z has these or standardised ones, and log densities of z."""
    if centred:
        return own, _normal((own - mean) * (-log_sd).exp()) - log_sd
    return mean + log_sd.exp() * own, _normal(own)


# --- One mode and several


@_named("beta-binomial", 1, -71.4450859850)
def beta_binomial(z: Tensor) -> Tensor:
    """50 of 100 trials under a Beta(2, 5) prior, on the logit scale."""
    prior = math.lgamma(7) - math.lgamma(2) - math.lgamma(5)
    return (52 * logsigmoid(z) + 55 * logsigmoid(-z)).sum(1) + prior


@_named("half-normal", 1, -math.log(2))
def half_normal(z: Tensor) -> Tensor:
    """N(0, 1) where z > 0, nothing elsewhere."""
    return torch.where(z > 0, _normal(z), -math.inf).sum(1)


_LOG_WELL = 9.3745411738692  # by quadrature


def _log_well(x: Tensor) -> Tensor:
    return 0.5 * x + 6 * x.square() - x.square().square()


@_named("double-well", 1, _LOG_WELL)
def double_well(z: Tensor) -> Tensor:
    """exp(z/2 + 6 z^2 - z^4): the lesser well holds 16%. [Noe et al. 2019]"""
    return _log_well(z).sum(1)


@_named("many-well-6", 6, 3 * (_LOG_WELL + 0.5 * math.log(2 * math.pi)))
@_named("many-well", 32, 16 * (_LOG_WELL + 0.5 * math.log(2 * math.pi)))
def many_well(z: Tensor) -> Tensor:
    """Double wells, each beside a normal: 2^(dim / 2) modes. [Midgley et al. 2023]"""
    return (_log_well(z[:, 0::2]) - 0.5 * z[:, 1::2].square()).sum(1)


@_named("two-normals", 5, 0.0)
def two_normals(z: Tensor) -> Tensor:
    """N(-6, I) / 2 + N(6, I) / 2 in 5 dimensions."""
    return torch.logaddexp(_normal(z, -6).sum(1), _normal(z, 6).sum(1)) + math.log(0.5)


def _forty_means() -> tuple[Tensor]:
    rng = torch.Generator().manual_seed(0)
    return ((torch.rand(40, 2, generator=rng, dtype=torch.float64) * 2 - 1) * 40,)


@_named("forty-normals-near", 2, 0.0, data=_forty_means, scale=40.0)
@_named("forty-normals", 2, 0.0, data=_forty_means, scale=1.0)
def forty_normals(z: Tensor, means: Tensor, scale: float) -> Tensor:
    """40 unit normals in [-40, 40]^2, or near: all divided by 40. [Midgley et al. 2023]"""
    log_weight = 2 * math.log(scale) - math.log(40)
    return _normal(scale * z[:, None, :] - means).sum(2).logsumexp(1) + log_weight


@_named("two-widths", 10, 0.0)
def two_widths(z: Tensor) -> Tensor:
    """N(0, I) / 10 + 9/10 N(3, 0.01^2 I) in 10 dimensions. [blackjax sampling-book, issue 96]"""
    wide, spike = _normal(z).sum(1), _normal(z, 3, 0.01).sum(1)
    return torch.logaddexp(wide + math.log(0.1), spike + math.log(0.9))


def _rotated() -> tuple[Tensor, Tensor, float]:
    rng = torch.Generator().manual_seed(1)
    q = torch.linalg.qr(torch.randn(32, 32, generator=rng, dtype=torch.float64))[0]
    sd = torch.logspace(-3, 0, 32, dtype=torch.float64)
    mean = torch.linspace(-1, 1, 32, dtype=torch.float64)
    return mean, q / sd, float(sd.log().sum()) + 32 * math.log(2000)


@_named("narrow", 32, -32 * math.log(2000), data=_rotated)
def narrow(z: Tensor, mean: Tensor, whiten: Tensor, constant: float) -> Tensor:
    """A rotated normal of sds 0.001 to 1 in 32 dimensions, over a box of side 2,000 that holds
    practically all of it. [dynesty, issue 289]"""
    return _normal((z - mean) @ whiten).sum(1) - constant


# --- Curved, heavy-tailed


@_named("rosenbrock", 2, math.log(2 * math.pi / 10))
def rosenbrock(z: Tensor) -> Tensor:
    """x ~ N(1, 1), y ~ N(x^2, 0.1^2) without the normalising factor. [Rosenbrock 1960]"""
    x, y = z[:, 0], z[:, 1]
    return -0.5 * ((1 - x).square() + 100 * (y - x.square()).square())


@_named("funnel-2", 2, 0.0)
@_named("funnel", 10, 0.0)
def funnel(z: Tensor) -> Tensor:
    """v ~ N(0, 3^2), and the others N(0, e^v). [Neal 2003]"""
    v, x = z[:, :1], z[:, 1:]
    return _normal(v, 0, 3).sum(1) + (_normal(x * (-0.5 * v).exp()) - 0.5 * v).sum(1)


@_named("student-t", 10, 0.0)
def student_t(z: Tensor) -> Tensor:
    """Independent Student-t of 2 degrees of freedom in 10 dimensions."""
    log_peak = math.lgamma(1.5) - math.lgamma(1) - 0.5 * math.log(2 * math.pi)
    return (log_peak - 1.5 * (z.square() / 2).log1p()).sum(1)


# --- Hierarchical


def _schools() -> tuple[Tensor, Tensor]:
    y = torch.tensor([28, 8, -3, 7, -1, 1, 18, 12], dtype=torch.float64)
    return y, torch.tensor([15, 10, 16, 11, 9, 11, 10, 18], dtype=torch.float64)


@_named("eight-schools-nc", 10, -32.0044946, data=_schools, centred=False)
@_named("eight-schools", 10, -32.0044946, data=_schools, centred=True)
def eight_schools(z: Tensor, y: Tensor, sd: Tensor, centred: bool) -> Tensor:
    """z = (mu, log tau, theta [8]): effects of coaching in eight schools. mu ~ N(0, 5^2), tau ~
    half Cauchy(0, 5) without its factor 2, as in Stan. [Rubin 1981; posteriordb]"""
    mu, log_tau, own = z[:, :1], z[:, 1:2], z[:, 2:]
    tau = log_tau.exp()
    theta = own if centred else mu + tau * own
    effects = _normal((theta - mu) / tau) - log_tau if centred else _normal(own)
    prior = _normal(mu, 0, 5) + _log_half_cauchy(log_tau, 5) - math.log(2)
    return prior.sum(1) + (effects + _normal((y - theta) / sd) - sd.log()).sum(1)


def _measurements() -> tuple[Tensor]:
    return (torch.tensor([4, 3, -2.5, 0.3, -0.4, 0.8, -0.1, 0.5, -1, 0.2], dtype=torch.float64),)


@_named("horseshoe-nc", 21, -21.3599678270, data=_measurements, centred=False)
@_named("horseshoe", 21, -21.3599678270, data=_measurements, centred=True)
def horseshoe(z: Tensor, y: Tensor, centred: bool) -> Tensor:
    """z = (log tau, log lambda [10], theta [10]): ten measurements of N(theta_i, 1), theta_i ~
    N(0, (tau lambda_i)^2), tau and lambda_i half Cauchy. [Carvalho, Polson & Scott 2010]"""
    log_scales = z[:, :11]
    theta, effects = _effects(z[:, 11:], 0.0, z[:, :1] + z[:, 1:11], centred)
    prior = math.log(2 / math.pi) + log_scales - softplus(2 * log_scales)
    return prior.sum(1) + (effects + _normal(y - theta)).sum(1)


def _houses() -> tuple[Tensor, ...]:
    y = (0.1 * _data("tenths") + 0.1).log()
    return y, _data("county").long(), _data("first_floor"), _data("uranium").log()


@_named("radon-nc", 90, -1045.5003, data=_houses, centred=False)
@_named("radon", 90, -1045.5003, data=_houses, centred=True)
def radon(z: Tensor, y: Tensor, county: Tensor, floor: Tensor, uranium: Tensor, centred: bool) -> Tensor:
    """z = (log sigma_y, log sigma_a, mu, b [2], a [85]): log radon in 919 houses of 85 counties of
    Minnesota is N(a + b_1 log uranium + b_2 floor, sigma_y^2), a ~ N(mu, sigma_a^2), sigmas half
    N(0, 1), mu and b N(0, 10^2). [Gelman & Hill 2007; radon.csv of PyMC3 3.8, Apache 2.0]"""
    log_sds, mu, b = z[:, :2], z[:, 2:3], z[:, 3:5]
    log_sy, log_sa = log_sds[:, :1], log_sds[:, 1:]
    a, effects = _effects(z[:, 5:], mu, log_sa, centred)
    mean = (a + b[:, :1] * uranium)[:, county] + b[:, 1:] * floor
    prior = (_normal(log_sds.exp()) + math.log(2) + log_sds).sum(1)
    seen = (_normal((y - mean) * (-log_sy).exp()) - log_sy).sum(1)
    return prior + _normal(z[:, 2:5], 0, 10).sum(1) + effects.sum(1) + seen


def _plates() -> tuple[Tensor, Tensor, Tensor, float]:
    r = [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3]
    n = [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7]
    r, n = torch.tensor([r, n], dtype=torch.float64)
    plate = torch.arange(21)
    kind, extract = plate >= 11, ((plate >= 5) & (plate < 11)) | (plate >= 16)
    design = torch.stack([plate >= 0, kind, extract, kind & extract]).double()
    ways = float((torch.lgamma(n + 1) - torch.lgamma(r + 1) - torch.lgamma(n - r + 1)).sum())
    return r, n, design, ways


@_named("seeds", 26, -73.4061794, data=_plates)
def seeds(z: Tensor, r: Tensor, n: Tensor, design: Tensor, ways: float) -> Tensor:
    """z = (log tau, a [4], b [21]): seeds that germinate on 21 plates; tau ~ Gamma(0.01, 0.01) is
    the precision of the plates' effects b, a ~ N(0, 10^2) holds intercept, kind, extract and their
    interaction; binomial coefficients are kept. [Crowder 1978]"""
    log_tau, a, b = z[:, :1], z[:, 1:5], z[:, 5:]
    eta = a @ design + b
    of_tau = 0.01 * math.log(0.01) - math.lgamma(0.01)
    prior = (of_tau + 0.01 * (log_tau - log_tau.exp())).sum(1) + _normal(a, 0, 10).sum(1)
    plates = _normal((0.5 * log_tau).exp() * b) + 0.5 * log_tau
    return prior + ways + (plates + r * logsigmoid(eta) + (n - r) * logsigmoid(-eta)).sum(1)


# --- Series, fields, answers


@_named("brownian", 32, 1.1877491, data=lambda: (_data("walk"),))
def brownian(z: Tensor, y: Tensor) -> Tensor:
    """z = (log a, log b, x [30]): x is a random walk with steps N(0, a^2), observed at steps 1 to
    10 and 21 to 30 with errors N(0, b^2); a and b LogNormal(0, 2). [inference-gym 0.0.5, Brownian
    motion, missing middle observations, Apache 2.0]"""
    log_a, log_b, x = z[:, :1], z[:, 1:2], z[:, 2:]
    walk = _normal((x - pad(x[:, :-1], (1, 0))) * (-log_a).exp()) - log_a
    seen = torch.cat([x[:, :10], x[:, 20:]], 1)
    errors = _normal((y - seen) * (-log_b).exp()) - log_b
    return _normal(z[:, :2], 0, 2).sum(1) + walk.sum(1) + errors.sum(1)


def _changes() -> tuple[Tensor]:
    change = _data("prices").diff()
    return (change - change.mean(),)


@_named("stochastic-volatility", 103, -573.83995, data=_changes)
def stochastic_volatility(z: Tensor, y: Tensor) -> Tensor:
    """z = (logit of (phi + 1) / 2, mu, log sigma, e [100]): daily changes of the S&P 500 less their
    mean are N(0, exp(x)), x = mu + sigma h, h autoregressive with factor phi, shocks e ~ N(0, 1)
    and a stationary start; (phi + 1) / 2 ~ Beta(20, 1.5), mu ~ Cauchy(0, 5), sigma ~ half
    Cauchy(0, 2). [Kim, Shephard & Chib 1998; prices of inference-gym 0.0.5, Apache 2.0]"""
    logit, mu, log_sigma, e = z[:, :1], z[:, 1:2], z[:, 2:3], z[:, 3:]
    share, rest = logsigmoid(logit), logsigmoid(-logit)  # logs
    constant = -math.lgamma(20) - math.lgamma(1.5) + math.lgamma(21.5) - math.log(5 * math.pi)
    prior = constant + 20 * share + 1.5 * rest - (mu / 5).square().log1p()
    # 1 - phi^2 = 4 share (1 - share) is 1 over the variance of the first h.
    h = torch.cat([e[:, :1] * (-0.5 * (share + rest)).exp() / 2, e[:, 1:]], 1)
    phi = 2 * share.exp() - 1
    for k in (1, 2, 4, 8, 16, 32, 64):  # sums of phi^(t - s) e_s over s <= t
        h = h + phi**k * pad(h[:, :-k], (k, 0))
    x = mu + log_sigma.exp() * h
    seen = _normal(y * (-0.5 * x).exp()) - 0.5 * x
    return (prior + _log_half_cauchy(log_sigma, 2)).sum(1) + (_normal(e) + seen).sum(1)


def _pines(cells: int = 40, twice: bool = False) -> tuple[Tensor, Tensor]:
    """Counts [cells^2], and a root of the field's covariance."""
    row, column = (_data("pines") * cells).long().T
    counts = torch.bincount(row * cells + column, minlength=cells**2).double()
    counts[row[0] * cells + column[0]] += twice
    cell = torch.cartesian_prod(*[torch.arange(cells, dtype=torch.float64) / cells] * 2)
    covariance = 1.91 * (-33 * torch.cdist(cell, cell)).exp()
    return counts, torch.linalg.cholesky(covariance).T.contiguous()


@_named("cox-process-twice", 1600, 507.2585, 0.027, data=lambda: _pines(twice=True))
@_named("cox-process-10", 100, 474.4242, 0.006, data=lambda: _pines(10))
@_named("cox-process", 1600, 501.752, 0.017, data=_pines)
def cox_process(z: Tensor, counts: Tensor, root: Tensor) -> Tensor:
    """126 Finnish pines on 40 x 40 cells (or 10 x 10; or with the first pine twice, as some copies
    have it): counts are Poisson without their factorials, log rates a Gaussian field of covariance
    1.91 exp(-33 distance), whitened. [Moller, Syversveen & Waagepetersen 1998]"""
    x = z @ root + (math.log(126) - 1.91 / 2)
    return (counts * x - 1 / len(counts) * x.exp() + _normal(z)).sum(1)


def _answers() -> tuple[Tensor, Tensor]:
    answers = _data("answers")  # [400, 100]: 0 not asked, 1 wrong, 2 right
    return (answers == 2).double(), (answers > 0).double()


@_named("item-response", 501, -16959.4529, 0.015, data=_answers)
def item_response(z: Tensor, right: Tensor, asked: Tensor) -> Tensor:
    """z = (mean, ability [400], difficulty [100]): the logit of a student's right answer to a
    question is mean + ability - difficulty; mean ~ N(0.75, 1), the others N(0, 1). [inference-gym
    0.0.5, synthetic item response, Apache 2.0]"""
    mean, ability, difficulty = z[:, :1], z[:, 1:401], z[:, 401:]
    logit = (mean + ability)[:, :, None] - difficulty[:, None, :]
    seen = (right * logit - asked * softplus(logit)).sum((1, 2))
    return _normal(mean, 0.75).sum(1) + _normal(z[:, 1:]).sum(1) + seen


# --- Uniform priors of nested sampling: theta = low + (high - low) Phi(z)


def _uniform(z: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """theta [B, D], and the log density of z [B]."""
    return low + (high - low) * torch.special.ndtr(z), _normal(z).sum(1)


@_named("eggbox", 2, 235.85594)
def eggbox(z: Tensor) -> Tensor:
    """(2 + cos(x/2) cos(y/2))^5 on [0, 10 pi]^2: 18 modes. [Feroz, Hobson & Bridges 2009]"""
    theta, prior = _uniform(z, 0, 10 * math.pi)
    return (2 + (theta / 2).cos().prod(1)) ** 5 + prior


@_named("shells-10", 10, -14.5905)
@_named("shells-5", 5, -5.6736)
@_named("shells", 2, -1.7456)
def shells(z: Tensor) -> Tensor:
    """Two shells of radius 2, 0.1 thick, 7 apart, on [-6, 6]^dim. [Feroz, Hobson & Bridges 2009]"""
    theta, prior = _uniform(z, -6, 6)
    rest = theta[:, 1:].square().sum(1)
    left, right = (((theta[:, 0] - c).square() + rest).sqrt() for c in (-3.5, 3.5))
    return torch.logaddexp(_normal(left, 2, 0.1), _normal(right, 2, 0.1)) + prior


@_named("rosenbrock-box", 10, -29.995788)
def rosenbrock_box(z: Tensor) -> Tensor:
    """Five bananas side by side on [-10, 10]^10. [Dittmann 2024]"""
    theta, prior = _uniform(z, -10, 10)
    x, y = theta[:, 0::2], theta[:, 1::2]
    return -(10 * (x.square() - y).square() + (x - 1).square()).sum(1) + prior


# --- Regressions


def _signed(features: Tensor, is_first: Tensor, intercept: bool) -> tuple[Tensor]:
    """Standardised features [N, D], each row times 1 for the first class and -1 for the other."""
    x = (features - features.mean(0)) / features.std(0, correction=0)
    if intercept:
        x = torch.cat([torch.ones_like(x[:, :1]), x], 1)
    return ((2.0 * is_first - 1)[:, None] * x,)


def _uci(file: Path, intercept: bool) -> tuple[Tensor]:
    with open(file, newline="") as lines:
        rows = [row for row in csv.reader(lines) if row]
    numbers = [[float(value) for value in row[:-1]] for row in rows]
    features = torch.tensor(numbers, dtype=torch.float64)
    features = features[:, (features != features[0]).any(0)]
    is_first = torch.tensor([row[-1] == rows[0][-1] for row in rows])
    return _signed(features, is_first, intercept)


def _weighted(w: Tensor, signed: Tensor, sd: float | None) -> Tensor:
    likelihood = logsigmoid(w @ signed.T).sum(1)
    return likelihood if sd is None else likelihood + _normal(w, 0, sd).sum(1)


_PLAIN, _WITH_ONE = partial(_uci, intercept=False), partial(_uci, intercept=True)


@_named("ionosphere", 34, -111.6098, 0.0014, file="ionosphere.csv", data=_WITH_ONE, sd=1.0)
@_named("sonar-intercept", 61, -108.3821, 0.006, file="sonar.all-data.csv", data=_WITH_ONE, sd=1.0)
@_named("sonar", 60, -144.500, 0.007, file="sonar.all-data.csv", data=_PLAIN, sd=5.0)
@_named("pima", 8, -438.9807, 0.001, file="pima-indians-diabetes.csv", data=_PLAIN, sd=5.0)
def logistic(w: Tensor, signed: Tensor, sd: float) -> Tensor:
    """Logistic regression on a file of the UCI repository: weights N(0, 5^2) without an intercept
    (Pima, Sonar), N(0, 1) with one (Sonar, and Ionosphere without its constant feature)."""
    return _weighted(w, signed, sd)


def _credits() -> tuple[Tensor]:
    table = _data("german")
    return _signed(table[:, :-1], table[:, -1] == 1, intercept=True)


@_named("german-1", 25, -529.1808, 0.002, data=_credits, sd=1.0)
@_named("german-10", 25, -585.0456, 0.002, data=_credits, sd=10.0)
@_named("german-flat", 25, -504.4888, 0.001, data=_credits, sd=None)
def german(w: Tensor, signed: Tensor, sd: float | None) -> Tensor:
    """Logistic regression on the 24 numerical features of 1,000 German credits, with an intercept:
    weights N(0, 10^2), N(0, 1), or without a prior. [UCI Statlog, CC BY 4.0]"""
    return _weighted(w, signed, sd)

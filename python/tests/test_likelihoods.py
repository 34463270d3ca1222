"""Every likelihood against torch.distributions, sums over its support, and its own gradient."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support import traced_alike
from torch import Tensor
from torch import distributions as D

from crais import likelihoods as L

SHAPE = (2, 3, 3)
GRID = torch.arange(256, dtype=torch.float64) / 255
STEP = 1 / 255

Make = Callable[[], L.Likelihood]
PER_PIXEL = torch.linspace(0.2, 0.9, 18).reshape(SHAPE)
THETA = torch.linspace(0.5, 4.0, 18).reshape(SHAPE)


def normal(rows: int, *shape: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    return shift + scale * torch.randn(rows, *shape, dtype=torch.float64)


def pair(rows: int, scale: float, shift: float, log_scale: float) -> tuple[Tensor, Tensor]:
    first = normal(rows, *SHAPE, scale=scale, shift=shift)
    return first, normal(rows, *SHAPE, scale=0.3, shift=log_scale)


def spread(rows: int, of: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Means, and a function of the log standard deviations."""
    first, log_sd = pair(rows, 1, 0, -0.5)
    return first, of(log_sd)


def mixture_output(rows: int) -> Tensor:
    kinds = ((1.0, 0.0), (0.3, 0.5), (0.3, -2.5))  # logits, means, log scales
    return torch.cat([normal(rows, 4 * 2, 3, 3, scale=scale, shift=shift) for scale, shift in kinds], 1)


class Bins:
    """8-bit values k / 255: log masses of bins around them, from a distribution function."""

    def __init__(self, cdf: Callable[[Tensor], Tensor]) -> None:
        self.cdf = cdf

    def log_prob(self, x: Tensor) -> Tensor:
        upper = torch.where(x > 1 - STEP / 2, 1.0, self.cdf(x + STEP / 2))
        lower = torch.where(x < STEP / 2, 0.0, self.cdf(x - STEP / 2))
        return (upper - lower).log()


def logistic(mean: Tensor, log_scale: Tensor) -> Bins:
    return Bins(lambda x: torch.sigmoid((x - mean) / log_scale.exp()))


class MixtureOfLogistics:
    def __init__(self, output: Tensor) -> None:
        self.logits, means, log_scales = output.reshape(-1, 3, 4, *SHAPE).unbind(1)
        self.bins = logistic(means, log_scales)

    def log_prob(self, x: Tensor) -> Tensor:
        return (self.logits.log_softmax(1) + self.bins.log_prob(x.unsqueeze(1))).logsumexp(1)


class Levels(D.Categorical):
    def log_prob(self, x: Tensor) -> Tensor:
        return super().log_prob((x * 255).round())


def grey(output: Tensor) -> D.Distribution:
    return D.ContinuousBernoulli(logits=output, lims=(0.499999, 0.500001))


def counts(log_mean: Tensor, theta: Tensor) -> D.Distribution:
    return D.NegativeBinomial(theta.double().expand_as(log_mean), logits=log_mean - theta.log())


class Inflated:
    def __init__(self, log_mean: Tensor, zeros: Tensor) -> None:
        self.counts, self.extra = counts(log_mean, THETA), torch.sigmoid(zeros)

    def log_prob(self, x: Tensor) -> Tensor:
        counted = self.counts.log_prob(x).exp()
        return ((1 - self.extra) * counted + self.extra * (x == 0)).log()


def plain(scale: float = 1.0, shift: float = 0.0) -> Callable[[int], Tensor]:
    return lambda rows: normal(rows, *SHAPE, scale=scale, shift=shift)


# name: how it is made, an output for so many rows, what it is by other means
CASES: dict[str, tuple[Make, Callable[[int], L.Output], Callable[[Any], Any]]] = {
    "bernoulli": (L.Bernoulli, plain(2), lambda o: D.Bernoulli(logits=o)),
    "continuous-bernoulli": (L.ContinuousBernoulli, plain(3), grey),
    "bernoulli-probs": (lambda: L.Bernoulli(probs=True), lambda n: plain(2)(n).sigmoid(), D.Bernoulli),
    "continuous-bernoulli-probs": (
        lambda: L.ContinuousBernoulli(probs=True),
        lambda n: plain(3)(n).sigmoid(),
        lambda o: grey(o.logit()),
    ),
    "gaussian": (lambda: L.Gaussian(0.7), plain(), lambda o: D.Normal(o, 0.7)),
    "gaussian-elementwise": (
        lambda: L.Gaussian(PER_PIXEL, learn=True),
        plain(),
        lambda o: D.Normal(o, PER_PIXEL.double()),
    ),
    "gaussian-pair": (
        lambda: L.Gaussian("log_sd"),
        lambda n: pair(n, 1, 0, -0.5),
        lambda o: D.Normal(o[0], o[1].exp()),
    ),
    "gaussian-sd": (lambda: L.Gaussian(scale="sd"), lambda n: spread(n, torch.exp), lambda o: D.Normal(*o)),
    "gaussian-halves": (
        lambda: L.Gaussian(scale="log_var"),
        lambda n: torch.cat(spread(n, lambda log_sd: 2 * log_sd), 1),
        lambda o: D.Normal(o[:, :2], (o[:, 2:] / 2).exp()),
    ),
    "laplace": (lambda: L.Laplace(0.5), plain(), lambda o: D.Laplace(o, 0.5)),
    "student-t": (lambda: L.StudentT(4.0, 0.5), plain(), lambda o: D.StudentT(4.0, o, 0.5)),
    "student-t-pair": (lambda: L.StudentT(4.0, "scale"), lambda n: spread(n, torch.exp), lambda o: D.StudentT(4.0, *o)),
    "discretized-gaussian": (lambda: L.DiscretizedGaussian(0.1), plain(0.3, 0.5), lambda o: Bins(D.Normal(o, 0.1).cdf)),
    "discretized-gaussian-pair": (
        lambda: L.DiscretizedGaussian(scale="log_sd"),
        lambda n: pair(n, 0.3, 0.5, -2),
        lambda o: Bins(D.Normal(o[0], o[1].exp()).cdf),
    ),
    "discretized-logistic": (
        lambda: L.DiscretizedLogistic(0.05, learn=True),
        plain(0.3, 0.5),
        lambda o: logistic(o, torch.tensor(0.05).log().double()),
    ),
    "discretized-logistic-halves": (
        lambda: L.DiscretizedLogistic("log_scale"),
        lambda n: torch.cat(pair(n, 0.3, 0.5, -3), 1),
        lambda o: logistic(*o.chunk(2, 1)),
    ),
    "discretized-logistic-mixture": (lambda: L.DiscretizedLogisticMixture(4), mixture_output, MixtureOfLogistics),
    "mixture": (
        lambda: L.Mixture(L.Laplace("log_scale")),
        lambda n: tuple(normal(n, 4, *SHAPE, scale=s, shift=m) for s, m in ((1, 0), (1, 0), (0.3, -1))),
        lambda o: D.MixtureSameFamily(
            D.Categorical(logits=o[0].movedim(1, -1)), D.Laplace(o[1].movedim(1, -1), o[2].movedim(1, -1).exp())
        ),
    ),
    "categorical": (L.Categorical, lambda n: normal(n, 256, *SHAPE), lambda o: Levels(logits=o.movedim(1, -1))),
    "symbols": (
        lambda: L.Categorical(7),
        lambda n: normal(n, 7, *SHAPE),
        lambda o: D.Categorical(logits=o.movedim(1, -1)),
    ),
    "poisson": (L.Poisson, plain(), lambda o: D.Poisson(o.exp())),
    "negative-binomial": (lambda: L.NegativeBinomial(THETA), plain(), lambda o: counts(o, THETA)),
    "negative-binomial-fixed": (
        lambda: L.NegativeBinomial(2.0, learn=False),
        plain(),
        lambda o: counts(o, torch.tensor(2.0)),
    ),
    "zero-inflated": (
        lambda: L.ZeroInflatedNegativeBinomial(THETA),
        lambda n: pair(n, 1, 0.5, -0.3),
        lambda o: Inflated(*o),
    ),
    "zero-inflated-halves": (
        lambda: L.ZeroInflatedNegativeBinomial(THETA),
        lambda n: torch.cat(pair(n, 1, 0, 0.5), 1),
        lambda o: Inflated(*o.chunk(2, 1)),
    ),
}
NAMES = list(CASES)
COUNTS = [name for name in NAMES if name.startswith(("poisson", "negative", "zero"))]


def case(name: str, rows: int, dtype: torch.dtype = torch.float64) -> tuple[L.Likelihood, L.Output]:
    make, output, _ = CASES[name]
    torch.manual_seed(1)
    return make().to(dtype), cast(output(rows), dtype)


def cast(output: L.Output, dtype: torch.dtype) -> L.Output:
    if isinstance(output, Tensor):
        return output.to(dtype)
    return tuple(part.to(dtype) for part in output)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_seen_is_left_out(name):
    likelihood, output = case(name, 5)
    x, seen = likelihood.draw(output, (5, *SHAPE)), torch.rand(5, *SHAPE) < 0.6
    wanted = (CASES[name][2](output).log_prob(x) * seen).flatten(1).sum(1)
    missing = L.Seen(likelihood)
    torch.testing.assert_close(missing.log_prob(torch.where(seen, x, torch.nan), output), wanted, rtol=1e-5, atol=1e-4)
    assert missing.log_prob(torch.full_like(x, torch.nan), output).tolist() == [0] * 5


def parts(output: L.Output) -> list[Tensor]:
    return [output] if isinstance(output, Tensor) else list(output)


def repeated(output: L.Output, rows: int) -> L.Output:
    if isinstance(output, Tensor):
        return output[:1].expand(rows, *output.shape[1:])
    return tuple(part[:1].expand(rows, *part.shape[1:]) for part in output)


def draw(likelihood: L.Likelihood, output: L.Output) -> Tensor:
    torch.manual_seed(2)
    with torch.no_grad():
        return likelihood.draw(output, (parts(output)[0].shape[0], *SHAPE))


@pytest.mark.parametrize("name", NAMES)
def test_log_prob_is_that_of_the_distribution(name: str) -> None:
    likelihood, output = case(name, 100)
    x = draw(likelihood, output)
    assert x.shape == (100, *SHAPE)
    expected = CASES[name][2](output).log_prob(x).flatten(1).sum(1)
    torch.testing.assert_close(likelihood.log_prob(x, output), expected, rtol=1e-6, atol=2e-5)
    assert likelihood.low <= x.min() and x.max() <= likelihood.high
    if likelihood.step is not None:
        torch.testing.assert_close(x / likelihood.step, (x / likelihood.step).round())
    with pytest.raises(ValueError, match="shape"):
        likelihood.log_prob(x[:, :, :2], output)


STAND_INS = [name for name in NAMES if name.startswith(("discretized", "mixture", "categorical"))]


@pytest.mark.parametrize("name", NAMES)
def test_draws_and_fisher_weights_are_of_log_prob(name: str) -> None:
    """Under draws the score has the mean 0, and its mean square is the Fisher information."""
    likelihood, output = case(name, 1)
    rows = 4000 if name == "categorical" else 40_000
    many = repeated(output, rows)
    x, fisher = draw(likelihood, many), parts(likelihood.fisher(output))
    leaves = [part.detach().clone().requires_grad_() for part in parts(many)]
    log_p = likelihood.log_prob(x, leaves[0] if isinstance(output, Tensor) else tuple(leaves))
    for score, weight, part in zip(torch.autograd.grad(log_p.sum(), leaves), fisher, parts(output)):
        assert weight.shape == part.shape and (weight > 0).all()
        error = (score.square().mean(0) + weight[0]).sqrt() / math.sqrt(rows)
        assert (score.mean(0).abs() < 5 * error + 3 / rows).all()
        square = score.square()
        if name in STAND_INS:
            assert 0.5 < weight.sum() / square.mean(0).sum() < 5
        else:
            error = square.std(0) / math.sqrt(rows)
            assert ((square.mean(0) - weight[0]).abs() < 5 * error + 1e-9).all()


def test_fisher_of_a_categorical_is_the_variance_of_the_score() -> None:
    output = normal(1, 256, 1, scale=2)
    leaf = repeated(output, 256).clone().requires_grad_()
    log_p = L.Categorical().log_prob(GRID.reshape(-1, 1), leaf)
    (score,) = torch.autograd.grad(log_p.sum(), leaf)
    exact = torch.tensordot(log_p.exp(), score.square(), 1)
    torch.testing.assert_close(L.Categorical().fisher(output)[0], exact)


@pytest.mark.parametrize("kind", [L.DiscretizedGaussian, L.DiscretizedLogistic])
@pytest.mark.parametrize("mean", [-0.5, -0.05, 0.0, 0.02, 0.401, 0.97, 1.0, 1.2])
@pytest.mark.parametrize("scale", [0.003, 0.02, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fisher_stand_in_of_bins(kind: type, mean: float, scale: float, dtype: torch.dtype) -> None:
    likelihood = kind("log_scale").double()
    output = (torch.full((256, 1), mean).double(), torch.full((256, 1), math.log(scale)).double())
    leaves = [part.requires_grad_() for part in output]
    log_p = likelihood.log_prob(GRID.unsqueeze(1), tuple(leaves))
    scores = torch.autograd.grad(log_p.sum(), leaves)
    found = likelihood.to(dtype).fisher(tuple(part.detach()[:1].to(dtype) for part in output))
    most = (1.0 / scale**2, 2.0)  # information is small where it is a thousandth of this
    for score, weight, whole in zip(scores, found, most):
        exact = (log_p.exp() * score[:, 0].square()).sum().item()
        assert 0.3 * exact - 1e-3 * whole < weight.item() < 3 * exact + 1e-3 * whole


def extreme(name: str) -> tuple[list[L.Output], Tensor]:
    """Outputs far out, and data at both ends of the support and between."""
    ends = [0, 3, 1000] if name in COUNTS else [0, 3, 6] if name == "symbols" else [0, 128 / 255, 1]
    x = torch.tensor(ends, dtype=torch.float64).reshape(-1, 1, 1, 1).expand(-1, *SHAPE)
    has_logits = "bernoulli" in name or name in ("categorical", "symbols")
    scales = (-40.0, 15.0) if name in COUNTS else (-90.0, 90.0) if has_logits else (-20.0, 20.0)
    _, output = case(name, 3)
    shifted = []
    for shift in scales:
        if isinstance(output, Tensor):
            shifted.append(shift * torch.sin(torch.arange(output.numel())).reshape(output.shape))
        else:
            for i, part in enumerate(output):
                moved = part + (shift / 4 if i else shift)
                shifted.append((*output[:i], moved, *output[i + 1 :]))
    return [cast(item, torch.float64) for item in shifted], x


# Probabilities far out: test_probabilities_that_a_sigmoid_rounds_are_finite. Scales are positive.
POSITIVE = ("-probs", "-sd", "student-t-pair")


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(POSITIVE)])
def test_float32_is_stable_at_extremes(name: str) -> None:
    outputs, x = extreme(name)
    exact, single = case(name, 1)[0], case(name, 1, torch.float32)[0]
    for output in outputs:
        leaves = [part.float().requires_grad_() for part in parts(output)]
        whole = leaves[0] if isinstance(output, Tensor) else tuple(leaves)
        log_p = single.log_prob(x.float(), whole)
        expected = exact.log_prob(x, cast(whole, torch.float64))
        assert log_p.dtype == torch.float32
        assert torch.isfinite(log_p).all()
        torch.testing.assert_close(log_p.double(), expected, rtol=2e-5, atol=2e-3)
        learned = [p for p in single.parameters() if p.requires_grad]
        for grad in torch.autograd.grad(log_p.sum(), leaves + learned, allow_unused=True):
            assert grad is not None and torch.isfinite(grad).all()


@pytest.mark.parametrize("sd", [0.002, 0.05, 1.0])
@pytest.mark.parametrize("kind", [L.DiscretizedGaussian, L.DiscretizedLogistic])
def test_float32_masses_are_near_those_of_float64(kind: type, sd: float) -> None:
    means = torch.linspace(-0.5, 1.5, 21)
    x = GRID.repeat(21).reshape(-1, 1)
    output = means.repeat_interleave(256).reshape(-1, 1)
    single = kind(sd).log_prob(x.float(), output)
    exact = kind(sd).double().log_prob(x, output.double())
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-3)


def test_negative_binomial_with_large_theta_is_poisson_in_float32() -> None:
    x = torch.arange(30.0).reshape(1, -1)
    log_mean = torch.linspace(-2, 3, 30).reshape(1, -1)
    negative = L.NegativeBinomial(1e7).log_prob(x, log_mean)
    assert negative.item() == pytest.approx(L.Poisson().log_prob(x, log_mean).item(), rel=1e-4)


SAME_CODE = ("-fixed", "-elementwise", "-sd", "t-pair", "-halves", "symbols")
TRACED = [name for name in NAMES if not name.endswith(SAME_CODE)]


@pytest.mark.parametrize("name", TRACED)
def test_functions_can_be_traced(name: str) -> None:
    likelihood, output = case(name, 5, torch.float32)
    count = len(parts(output))

    def functions(*inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [part.detach().requires_grad_() for part in inputs[:count]]
        whole = leaves[0] if isinstance(output, Tensor) else tuple(leaves)
        value = likelihood.log_prob(inputs[count], whole)
        grads = torch.autograd.grad(value.sum(), leaves)
        with torch.no_grad():
            results = [value.detach(), *grads, *parts(likelihood.fisher(whole))]
            if likelihood.uniforms is not None:
                results.append(likelihood.sample(whole, inputs[count + 1]))
        return tuple(results)

    def arguments(rows: int) -> list[Tensor]:
        _, output = case(name, rows, torch.float32)
        u = torch.rand(rows, likelihood.uniforms or 1, *SHAPE)
        return [*parts(output), draw(likelihood, output), u]

    traced_alike(functions, arguments)


@pytest.mark.parametrize("kind", [L.Bernoulli, L.ContinuousBernoulli])
def test_probabilities_that_a_sigmoid_rounds_are_finite(kind: type) -> None:
    """Their log-probabilities are those of the logits, as far as float32 tells these apart."""
    logits = torch.tensor([-200.0, -120, -40, -12, 12, 40, 200]).unsqueeze(1)
    for value in (0.0, 1.0):
        x, probs = torch.full_like(logits, value), torch.sigmoid(logits).requires_grad_()
        found = kind(probs=True).log_prob(x, probs)
        (grad,) = torch.autograd.grad(found.sum(), probs)
        assert torch.isfinite(found).all() and torch.isfinite(grad).all()
        assert torch.isfinite(kind(probs=True).fisher(probs.detach())).all()
        known = logits.clamp(-87.3, 16.6)
        torch.testing.assert_close(found, kind().log_prob(x, known), rtol=1e-2, atol=1e-2)


def test_learned_numbers_are_parameters_and_others_are_not() -> None:
    for make in (L.Gaussian, L.Laplace, L.DiscretizedGaussian, L.DiscretizedLogistic):
        assert not any(p.requires_grad for p in make(0.3).parameters())
        learned = make(0.3, learn=True)
        assert [p.exp().item() for p in learned.parameters()] == [pytest.approx(0.3)]
        assert all(p.requires_grad for p in learned.parameters())


UNITS = {
    "gaussian": lambda **domain: L.DiscretizedGaussian(scale="log_sd", **domain),
    "logistic": lambda **domain: L.DiscretizedLogistic("log_scale", **domain),
    "mixture": lambda **domain: L.DiscretizedLogisticMixture(1, **domain),
}


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 255), (0, 1)])
def test_means_and_scales_have_the_units_of_the_domain(kind: str, low: float, high: float) -> None:
    width, weights = high - low, [torch.zeros(5, *SHAPE).double()] * (kind == "mixture")
    loc, log_scale = pair(5, 0.2, 0.5, -2)
    plain, other = UNITS[kind]().double(), UNITS[kind](domain=(low, high)).double()
    known = torch.cat([*weights, loc, log_scale], 1)
    given = torch.cat([*weights, low + width * loc, log_scale + math.log(width)], 1)
    x = draw(plain, known)
    torch.testing.assert_close(draw(other, given), x)
    torch.testing.assert_close(other.log_prob(x, given), plain.log_prob(x, known))
    slopes = torch.cat([*weights, torch.full_like(loc, width), torch.ones_like(loc)], 1)
    expected = plain.fisher(known) / slopes.square().clamp(min=1e-9)
    torch.testing.assert_close(other.fisher(given), expected)
    assert other.check(given) is None
    far = torch.cat([*weights, low - width / 2 + width * loc, log_scale], 1)
    assert re.fullmatch(rf"\d+% of the decoder's means lie outside \[{low}, {high}\].*", other.check(far) or "")
    with pytest.raises(ValueError, match=r"outside \[0, 1\], from .*say domain=\(black, white\)"):
        plain.check(torch.cat([*weights, loc - 0.5, log_scale], 1))
    with pytest.raises(ValueError, match="domain is .low, high."):
        L.DiscretizedLogisticMixture(1, domain=(1, -1))
    with pytest.raises(ValueError, match="at least 2"):
        L.Categorical(1)

"""Every likelihood against torch.distributions, sums over its support, and its own gradient."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch import distributions as D
from torch.fx.experimental.proxy_tensor import make_fx

from crais import likelihoods as L

SHAPE = (2, 3, 3)
GRID = torch.arange(256, dtype=torch.float64) / 255
STEP = 1 / 255
HERE = (slice(0, 1), Ellipsis)

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
    parts = [
        normal(rows, 4 * 2, 3, 3),
        normal(rows, 4 * 2, 3, 3, scale=0.3, shift=0.5),
        normal(rows, 4 * 2, 3, 3, scale=0.3, shift=-2.5),
    ]
    return torch.cat(parts, 1)


# name: how it is made, an output for so many rows
CASES: dict[str, tuple[Make, Callable[[int], L.Output]]] = {
    "bernoulli": (L.Bernoulli, lambda n: normal(n, *SHAPE, scale=2)),
    "continuous-bernoulli": (L.ContinuousBernoulli, lambda n: normal(n, *SHAPE, scale=3)),
    "bernoulli-probs": (
        lambda: L.Bernoulli(probs=True),
        lambda n: torch.sigmoid(normal(n, *SHAPE, scale=2)),
    ),
    "continuous-bernoulli-probs": (
        lambda: L.ContinuousBernoulli(probs=True),
        lambda n: torch.sigmoid(normal(n, *SHAPE, scale=3)),
    ),
    "gaussian": (lambda: L.Gaussian(0.7), lambda n: normal(n, *SHAPE)),
    "gaussian-learned": (lambda: L.Gaussian(0.7, learn=True), lambda n: normal(n, *SHAPE)),
    "gaussian-elementwise": (lambda: L.Gaussian(PER_PIXEL), lambda n: normal(n, *SHAPE)),
    "gaussian-pair": (lambda: L.Gaussian("log_sd"), lambda n: pair(n, 1, 0, -0.5)),
    "gaussian-sd": (lambda: L.Gaussian(scale="sd"), lambda n: spread(n, torch.exp)),
    "gaussian-halves": (
        lambda: L.Gaussian(scale="log_var"),
        lambda n: torch.cat(spread(n, lambda log_sd: 2 * log_sd), 1),
    ),
    "laplace": (lambda: L.Laplace(0.5), lambda n: normal(n, *SHAPE)),
    "laplace-pair": (lambda: L.Laplace("log_scale"), lambda n: pair(n, 1, 0, -0.5)),
    "student-t": (lambda: L.StudentT(4.0, 0.5), lambda n: normal(n, *SHAPE)),
    "student-t-pair": (lambda: L.StudentT(4.0, "scale"), lambda n: spread(n, torch.exp)),
    "discretized-gaussian": (
        lambda: L.DiscretizedGaussian(0.1),
        lambda n: normal(n, *SHAPE, scale=0.3, shift=0.5),
    ),
    "discretized-gaussian-pair": (
        lambda: L.DiscretizedGaussian(scale="log_sd"),
        lambda n: pair(n, 0.3, 0.5, -2),
    ),
    "discretized-logistic": (
        lambda: L.DiscretizedLogistic(0.05, learn=True),
        lambda n: normal(n, *SHAPE, scale=0.3, shift=0.5),
    ),
    "discretized-logistic-halves": (
        lambda: L.DiscretizedLogistic("log_scale"),
        lambda n: torch.cat(pair(n, 0.3, 0.5, -3), 1),
    ),
    "discretized-logistic-mixture": (lambda: L.DiscretizedLogisticMixture(4), mixture_output),
    "categorical": (L.Categorical, lambda n: normal(n, 256, *SHAPE)),
    "symbols": (lambda: L.Categorical(7), lambda n: normal(n, 7, *SHAPE)),
    "poisson": (L.Poisson, lambda n: normal(n, *SHAPE)),
    "negative-binomial": (lambda: L.NegativeBinomial(THETA), lambda n: normal(n, *SHAPE)),
    "negative-binomial-fixed": (
        lambda: L.NegativeBinomial(2.0, learn=False),
        lambda n: normal(n, *SHAPE),
    ),
    "zero-inflated": (
        lambda: L.ZeroInflatedNegativeBinomial(THETA),
        lambda n: pair(n, 1, 0.5, -0.3),
    ),
    "zero-inflated-fixed": (
        lambda: L.ZeroInflatedNegativeBinomial(THETA),
        lambda n: torch.cat(pair(n, 1, 0, 0.5), 1),
    ),
}
NAMES = list(CASES)
DISCRETE = [name for name in NAMES if name.startswith(("discretized", "categorical"))]
COUNTS = [name for name in NAMES if name.startswith(("poisson", "negative", "zero"))]


def case(name: str, rows: int, dtype: torch.dtype = torch.float64) -> tuple[L.Likelihood, L.Output]:
    make, output = CASES[name]
    torch.manual_seed(1)
    return make().to(dtype), cast(output(rows), dtype)


def cast(output: L.Output, dtype: torch.dtype) -> L.Output:
    if isinstance(output, Tensor):
        return output.to(dtype)
    return tuple(part.to(dtype) for part in output)


def parts(output: L.Output) -> list[Tensor]:
    return [output] if isinstance(output, Tensor) else list(output)


def draw(likelihood: L.Likelihood, output: L.Output) -> Tensor:
    torch.manual_seed(2)
    with torch.no_grad():
        return likelihood.draw(output, (parts(output)[0].shape[0], *SHAPE))


def bins(cdf: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Log mass of the bin around x = k / 255, from a distribution function."""
    upper = torch.where(x > 1 - STEP / 2, 1.0, cdf(x + STEP / 2))
    lower = torch.where(x < STEP / 2, 0.0, cdf(x - STEP / 2))
    return (upper - lower).log()


def logistic_cdf(mean: Tensor, log_scale: Tensor | float) -> Callable[[Tensor], Tensor]:
    scale = torch.as_tensor(log_scale, dtype=torch.float64).exp()
    return lambda x: torch.sigmoid((x - mean) / scale)


def mixture_reference(output: Tensor, x: Tensor) -> Tensor:
    logits, means, log_scales = output.reshape(-1, 3, 4, *SHAPE).unbind(1)
    masses = bins(logistic_cdf(means, log_scales), x.unsqueeze(1)).exp()
    return (torch.softmax(logits, 1) * masses).sum(1).log()


def negative_binomial(log_mean: Tensor, theta: Tensor) -> D.Distribution:
    return D.NegativeBinomial(theta.expand_as(log_mean), logits=log_mean - theta.log())


def inflated(x: Tensor, log_mean: Tensor, zeros: Tensor) -> Tensor:
    """log p of each element."""
    extra = torch.sigmoid(zeros)
    counted = negative_binomial(log_mean, THETA.double()).log_prob(x).exp()
    return ((1 - extra) * counted + extra * (x == 0)).log()


# name: log p of each element of x, by other means
REFERENCES: dict[str, Callable[[Tensor, L.Output], Tensor]] = {
    "bernoulli": lambda x, o: D.Bernoulli(logits=o).log_prob(x),
    "continuous-bernoulli": lambda x, o: D.ContinuousBernoulli(
        logits=o, lims=(0.499999, 0.500001)
    ).log_prob(x),
    "bernoulli-probs": lambda x, o: D.Bernoulli(o).log_prob(x),
    "continuous-bernoulli-probs": lambda x, o: D.ContinuousBernoulli(
        o, lims=(0.499999, 0.500001)
    ).log_prob(x),
    "gaussian": lambda x, o: D.Normal(o, 0.7).log_prob(x),
    "gaussian-learned": lambda x, o: D.Normal(o, 0.7).log_prob(x),
    "gaussian-elementwise": lambda x, o: D.Normal(o, PER_PIXEL.double()).log_prob(x),
    "gaussian-pair": lambda x, o: D.Normal(o[0], o[1].exp()).log_prob(x),
    "gaussian-sd": lambda x, o: D.Normal(*o).log_prob(x),
    "gaussian-halves": lambda x, o: D.Normal(o[:, :2], (o[:, 2:] / 2).exp()).log_prob(x),
    "laplace": lambda x, o: D.Laplace(o, 0.5).log_prob(x),
    "laplace-pair": lambda x, o: D.Laplace(o[0], o[1].exp()).log_prob(x),
    "student-t": lambda x, o: D.StudentT(4.0, o, 0.5).log_prob(x),
    "student-t-pair": lambda x, o: D.StudentT(4.0, *o).log_prob(x),
    "discretized-gaussian": lambda x, o: bins(D.Normal(o, 0.1).cdf, x),
    "discretized-gaussian-pair": lambda x, o: bins(D.Normal(o[0], o[1].exp()).cdf, x),
    "discretized-logistic": lambda x, o: bins(logistic_cdf(o, math.log(0.05)), x),
    "discretized-logistic-halves": lambda x, o: bins(logistic_cdf(o[:, :2], o[:, 2:]), x),
    "discretized-logistic-mixture": lambda x, o: mixture_reference(o, x),
    "categorical": lambda x, o: D.Categorical(logits=o.movedim(1, -1)).log_prob(x * 255),
    "symbols": lambda x, o: D.Categorical(logits=o.movedim(1, -1)).log_prob(x),
    "poisson": lambda x, o: D.Poisson(o.exp()).log_prob(x),
    "negative-binomial": lambda x, o: negative_binomial(o, THETA.double()).log_prob(x),
    "negative-binomial-fixed": lambda x, o: negative_binomial(o, torch.tensor(2.0)).log_prob(x),
    "zero-inflated": lambda x, o: inflated(x, *o),
    "zero-inflated-fixed": lambda x, o: inflated(x, *o.chunk(2, 1)),
}


@pytest.mark.parametrize("name", NAMES)
def test_log_prob_is_that_of_the_distribution(name: str) -> None:
    likelihood, output = case(name, 6)
    x = draw(likelihood, output)
    assert x.shape == (6, *SHAPE)
    expected = REFERENCES[name](x, output).flatten(1).sum(1)
    torch.testing.assert_close(likelihood.log_prob(x, output), expected, rtol=1e-6, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_draws_lie_in_the_support(name: str) -> None:
    likelihood, output = case(name, 200)
    x = draw(likelihood, output)
    assert likelihood.low <= x.min() and x.max() <= likelihood.high
    if likelihood.step is not None:
        steps = x / likelihood.step
        torch.testing.assert_close(steps, steps.round())
    assert torch.isfinite(likelihood.log_prob(x, output)).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_masses_sum_to_one(name: str) -> None:
    likelihood, output = case(name, 1)
    rows = repeated(output, 256)
    # One element takes all values; the others are held where they are likely.
    x = draw(likelihood, repeated(output, 1)).expand(256, *SHAPE).clone()
    x[:, 0, 0, 0] = GRID
    log_p = likelihood.log_prob(x, rows)
    held = REFERENCES[name](x[:1], repeated(output, 1)).flatten(1)[:, 1:].sum()
    assert torch.logsumexp(log_p, 0).item() == pytest.approx(held.item(), abs=1e-6)


def repeated(output: L.Output, rows: int) -> L.Output:
    if isinstance(output, Tensor):
        return output[:1].expand(rows, *output.shape[1:])
    return tuple(part[:1].expand(rows, *part.shape[1:]) for part in output)


DENSITIES: dict[str, tuple[L.Likelihood, L.Output, float, float]] = {
    "continuous-bernoulli": (L.ContinuousBernoulli(), torch.tensor([[4.0]]), 0, 1),
    "continuous-bernoulli-flat": (L.ContinuousBernoulli(), torch.tensor([[1e-4]]), 0, 1),
    "gaussian": (L.Gaussian(0.7), torch.tensor([[0.3]]), -10, 10),
    "gaussian-halves": (L.Gaussian(scale="log_sd"), torch.tensor([[0.3, -1.0]]), -10, 10),
    "laplace": (L.Laplace(0.5), torch.tensor([[0.0]]), -20, 20),
    "student-t": (L.StudentT(6.0, 0.5), torch.tensor([[0.3]]), -200, 200),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_integrate_to_one(name: str) -> None:
    likelihood, output, low, high = DENSITIES[name]
    x = torch.linspace(low, high, 400_001, dtype=torch.float64).unsqueeze(1)
    output = repeated(cast(output, torch.float64), x.shape[0])
    p = likelihood.double().log_prob(x, output).exp()
    assert torch.trapezoid(p, x[:, 0]).item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "likelihood", [L.Poisson(), L.NegativeBinomial(1.5), L.ZeroInflatedNegativeBinomial(1.5)]
)
def test_counts_sum_to_one(likelihood: L.Likelihood) -> None:
    x = torch.arange(3000, dtype=torch.float64).unsqueeze(1)
    output: L.Output = torch.full_like(x, 1.2)
    if isinstance(likelihood, L.ZeroInflatedNegativeBinomial):
        output = torch.cat([torch.full_like(x, 1.2), torch.full_like(x, -0.4)], 1)
    log_p = likelihood.double().log_prob(x, output)
    assert torch.logsumexp(log_p, 0).item() == pytest.approx(0, abs=1e-9)


# The exact Fisher information is the mean square of the score.
EXACT = [name for name in NAMES if not name.startswith(("discretized", "negative", "cat"))]
EXACT += ["negative-binomial", "negative-binomial-fixed"]
STAND_INS = [name for name in NAMES if name.startswith("discretized")]


def squared_scores(likelihood: L.Likelihood, output: L.Output, x: Tensor) -> list[Tensor]:
    leaves = [part.detach().clone().requires_grad_() for part in parts(output)]
    log_p = likelihood.log_prob(x, leaves[0] if isinstance(output, Tensor) else tuple(leaves))
    return [grad.square() for grad in torch.autograd.grad(log_p.sum(), leaves)]


@pytest.mark.parametrize("name", EXACT)
def test_fisher_is_the_variance_of_the_score(name: str) -> None:
    likelihood, output = case(name, 1)
    many = repeated(output, 40_000)
    x = draw(likelihood, many)
    fisher = parts(likelihood.fisher(output))
    for square, weight in zip(squared_scores(likelihood, many, x), fisher):
        error = square.std(0) / math.sqrt(square.shape[0])
        assert (weight > 0).all()
        assert ((square.mean(0) - weight[0]).abs() < 5 * error + 1e-9).all()


def test_fisher_of_a_categorical_is_the_variance_of_the_score() -> None:
    output = normal(1, 256, 1, scale=2)
    likelihood, x = L.Categorical(), GRID.reshape(-1, 1)
    p = likelihood.log_prob(x, repeated(output, 256)).exp()
    (square,) = squared_scores(likelihood, repeated(output, 256), x)
    torch.testing.assert_close(likelihood.fisher(output)[0], torch.tensordot(p, square, 1))


@pytest.mark.parametrize("name", STAND_INS)
def test_fisher_stand_ins_are_of_the_scores_order(name: str) -> None:
    likelihood, output = case(name, 1)
    many = repeated(output, 20_000)
    x = draw(likelihood, many)
    fisher = parts(likelihood.fisher(output))
    assert [weight.shape for weight in fisher] == [part.shape for part in parts(output)]
    for square, weight in zip(squared_scores(likelihood, many, x), fisher):
        assert (weight > 0).all()
        ratio = weight.sum() / square.mean(0).sum()
        assert 0.5 < ratio < 5


@pytest.mark.parametrize("kind", [L.DiscretizedGaussian, L.DiscretizedLogistic])
@pytest.mark.parametrize("scale", [0.001, 0.01, 0.1])
def test_fisher_stand_in_of_narrow_and_wide_noise(kind: type, scale: float) -> None:
    means = torch.linspace(0.4, 0.4 + STEP, 41, dtype=torch.float64).reshape(-1, 1)[:-1]
    likelihood = kind(scale).double()
    output = means.repeat_interleave(256, 0).requires_grad_()
    log_p = likelihood.log_prob(GRID.repeat(40).unsqueeze(1), output)
    (score,) = torch.autograd.grad(log_p.sum(), output)
    exact = (log_p.exp() * score[:, 0].square()).sum() / 40
    assert 0.5 < (likelihood.fisher(output)[0] / exact).item() < 2


@pytest.mark.parametrize("kind", [L.DiscretizedGaussian, L.DiscretizedLogistic])
@pytest.mark.parametrize("mean", [-0.5, -0.05, 0.0, 0.02, 0.97, 1.0, 1.2])
@pytest.mark.parametrize("scale", [0.003, 0.02, 0.1])
def test_fisher_stand_in_at_the_ends_of_the_range(kind: type, mean: float, scale: float) -> None:
    likelihood = kind("log_scale").double()
    output = (torch.full((256, 1), mean).double(), torch.full((256, 1), math.log(scale)).double())
    leaves = [part.requires_grad_() for part in output]
    log_p = likelihood.log_prob(GRID.unsqueeze(1), tuple(leaves))
    scores = torch.autograd.grad(log_p.sum(), leaves)
    found = likelihood.fisher(tuple(part.detach()[:1] for part in output))
    most = (1.0 / scale**2, 2.0)  # information is small where it is a thousandth of this
    for score, weight, whole in zip(scores, found, most):
        exact = (log_p.exp() * score[:, 0].square()).sum().item()
        assert 0.3 * exact - 1e-3 * whole < weight.item() < 3 * exact + 1e-3 * whole


MOMENTS: dict[str, Callable[[L.Output], D.Distribution]] = {
    "bernoulli": lambda o: D.Bernoulli(logits=o),
    "continuous-bernoulli": lambda o: D.ContinuousBernoulli(logits=o),
    "bernoulli-probs": lambda o: D.Bernoulli(o),
    "gaussian": lambda o: D.Normal(o, 0.7),
    "gaussian-pair": lambda o: D.Normal(o[0], o[1].exp()),
    "laplace": lambda o: D.Laplace(o, 0.5),
    "poisson": lambda o: D.Poisson(o.exp()),
    "negative-binomial": lambda o: negative_binomial(o, THETA.double()),
    "symbols": lambda o: D.Categorical(logits=o.movedim(1, -1)),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_draws_have_the_moments(name: str) -> None:
    likelihood, output = case(name, 1)
    x = draw(likelihood, repeated(output, 40_000))
    exact = MOMENTS[name](output)
    if isinstance(exact, D.Categorical):  # which PyTorch gives no moments
        exact = numbered(exact)
    root = math.sqrt(x.shape[0])
    assert ((x.mean(0) - exact.mean[0]).abs() < 5 * x.std(0) / root).all()
    squares = (x - exact.mean[0]).square()
    assert ((squares.mean(0) - exact.variance[0]).abs() < 5 * squares.std(0) / root).all()


def test_draws_have_extra_zeros() -> None:
    likelihood, output = case("zero-inflated", 1)
    x = draw(likelihood, repeated(output, 40_000))
    none = inflated(torch.zeros(1, *SHAPE).double(), *output)[0].exp()
    mean = output[0][0].exp() * torch.sigmoid(-output[1][0])
    root = math.sqrt(x.shape[0])
    assert (((x == 0).double().mean(0) - none).abs() < 5 * (none * (1 - none)).sqrt() / root).all()
    assert ((x.mean(0) - mean).abs() < 5 * x.std(0) / root).all()


def numbered(symbols: D.Categorical) -> D.Distribution:
    """Point masses at 0, 1, ..., as near as a normal is to one."""
    values = torch.arange(symbols.logits.shape[-1]).double().expand_as(symbols.logits)
    return D.MixtureSameFamily(symbols, D.Normal(values, 1e-9))


def test_draws_of_student_t_have_its_quartiles() -> None:
    likelihood, output = case("student-t", 1)
    x = (draw(likelihood, repeated(output, 40_000)) - output[0]) / 0.5
    quartile = 0.7406971  # of Student's t with 4 degrees of freedom
    for point, share in ((-quartile, 0.25), (0.0, 0.5), (quartile, 0.75)):
        frequency = (x < point).double().mean(0)
        assert ((frequency - share).abs() < 5 * math.sqrt(share * (1 - share) / 40_000)).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_draws_have_the_frequencies(name: str) -> None:
    likelihood, output = case(name, 1)
    rows = 4000 if name == "categorical" else 40_000
    x = draw(likelihood, repeated(output, rows))[:, 0, 0, 0]
    frequency = torch.bincount((x * 255).round().long(), minlength=256) / rows
    grid = GRID.reshape(-1, 1, 1, 1).expand(-1, *SHAPE)
    p = REFERENCES[name](grid, repeated(output, 256))[:, 0, 0, 0].exp()
    # 5 sigma of a binomial, and one draw where hardly any is expected.
    assert ((frequency - p).abs() < 5 * (p * (1 - p) / rows).sqrt() + 1.5 / rows).all()
    assert p.sum().item() == pytest.approx(1, abs=1e-6)


def extreme(name: str) -> tuple[list[L.Output], Tensor]:
    """Outputs far out, and data at both ends of the support and between."""
    ends = torch.tensor([0.0, 128 / 255, 1.0], dtype=torch.float64)
    if name in COUNTS:
        ends = torch.tensor([0.0, 3.0, 1000.0], dtype=torch.float64)
    if name == "symbols":
        ends = torch.tensor([0.0, 3.0, 6.0], dtype=torch.float64)
    x = ends.reshape(-1, 1, 1, 1).expand(-1, *SHAPE)
    if name in COUNTS:
        scales = (-40.0, 15.0)
    elif "bernoulli" in name or name in ("categorical", "symbols"):
        scales = (-90.0, 90.0)
    else:
        scales = (-20.0, 20.0)
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


@pytest.mark.parametrize("name", NAMES)
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

    trace = make_fx(functions, tracing_mode="symbolic", _allow_non_fake_inputs=True)
    traced = trace(*arguments(5))
    for rows in (1, 5, 7):
        inputs = arguments(rows)
        for found, expected in zip(traced(*inputs), functions(*inputs)):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_shape_is_an_error(name: str) -> None:
    likelihood, output = case(name, 2)
    x = draw(likelihood, output)
    with pytest.raises(ValueError, match="shape"):
        likelihood.log_prob(x[:, :, :2], output)


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


def test_specs_name_likelihoods() -> None:
    assert L.Gaussian(0.5).spec() == {"name": "gaussian", "scale": 0.5}
    assert L.Gaussian(scale="sd").spec() == {"name": "gaussian", "scale": "decoder"}
    assert L.Bernoulli().spec() == L.Bernoulli(probs=False).spec() == {"name": "bernoulli"}
    assert L.ContinuousBernoulli(True).spec() == {"name": "continuous-bernoulli", "probs": True}
    assert L.StudentT(4, 0.5).spec() == {"name": "student-t", "scale": 0.5, "df": 4.0}
    assert L.Categorical().spec() == {"name": "categorical", "levels": 256}
    assert L.Categorical(21).spec() == {"name": "categorical", "levels": 21}
    with pytest.raises(ValueError, match="at least 2"):
        L.Categorical(1)


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
    assert other.spec() == plain.spec() | {"domain": [low, high]}
    assert other.check(given) is None
    far = torch.cat([*weights, low - width / 2 + width * loc, log_scale], 1)
    assert re.fullmatch(
        rf"\d+% of the decoder's means lie outside \[{low}, {high}\].*", other.check(far) or ""
    )
    with pytest.raises(ValueError, match=r"outside \[0, 1\], from .*say domain=\(-1, 1\)"):
        plain.check(torch.cat([*weights, loc - 0.5, log_scale], 1))
    with pytest.raises(ValueError, match="domain is .low, high."):
        L.DiscretizedLogisticMixture(1, domain=(1, -1))

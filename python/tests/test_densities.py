"""`crais.log_normalizer` of priors, unit cubes, supports, bases and gradients of one's own."""

import math
import re
import time

import numpy as np
import pytest
import torch
from support import LOG_2PI, close, log_beta
from torch import distributions as D
from torch.distributions import constraints

import crais
from crais import gradients
from crais.coordinates import of_prior, of_transform
from crais.densities import _zero_where_refused, density_of

pytestmark = pytest.mark.usefixtures("compiled")
WITHOUT_BASE = {"steps": 32, "chains": 32, "problems": 5, "witness": "none", "progress": False}
OPTIONS = {**WITHOUT_BASE, "base": "laplace"}


def normal_likelihood(y, sd=1.0):
    """theta [B, D] -> sum over d of log N(y_d; theta_d, sd^2)."""
    y = torch.as_tensor(y, dtype=torch.float64)
    return lambda theta: D.Normal(theta, sd).log_prob(y).sum(1)


def log_poisson_gamma(counts, shape, rate):
    n, total = len(counts), sum(counts)
    return (
        shape * math.log(rate) - math.lgamma(shape) + math.lgamma(shape + total)
        - (shape + total) * math.log(rate + n) - sum(math.lgamma(k + 1) for k in counts)
    )  # fmt: skip


Y = [0.5, -1.2, 2.0]
COUNTS = torch.tensor([3.0, 5.0, 4.0], dtype=torch.float64)
NORMAL = sum(-0.1 * (y - 1) ** 2 - 0.5 * math.log(10 * math.pi) for y in Y)  # y ~ N(1, 5)
EXACT = [D.Normal(1, 2), D.Uniform(-1, 4), D.Cauchy(1, 2), D.LogNormal(1, 0.5), D.Weibull(2, 3), D.HalfNormal(2)]
POISSON = log_poisson_gamma([3, 5, 4], 2.0, 0.5)


@pytest.mark.parametrize(
    "prior",
    [
        D.Normal(torch.ones(3), 2.0),
        D.Independent(D.Normal(torch.ones(3), 2.0), 1),
        D.Normal(1.0, 2.0),
        D.MultivariateNormal(torch.ones(3), 4 * torch.eye(3)),
        D.TransformedDistribution(D.Normal(torch.zeros(3), 1.0), D.AffineTransform(1.0, 2.0)),
        [D.Normal(1.0, 2.0)] * 3,
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_the_evidence_of_normal_data(prior):
    close(crais.log_normalizer(normal_likelihood(Y), prior=prior, dim=3, **OPTIONS), NORMAL)


def test_a_dict_of_priors_by_name():
    def log_likelihood(theta):
        assert theta["rate"].shape == theta["p"].shape == theta["mu"].shape[:1]
        return (
            D.Poisson(theta["rate"].unsqueeze(1)).log_prob(COUNTS).sum(1)
            + D.Binomial(10, theta["p"]).log_prob(torch.tensor(7.0))
            + normal_likelihood(Y)(theta["mu"])
        )

    prior = {"rate": D.Gamma(2.0, 0.5), "p": D.Beta(2.0, 5.0), "mu": D.Normal(torch.ones(3), 2.0)}
    truth = POISSON + NORMAL + math.log(math.comb(10, 7)) + log_beta(9, 8) - log_beta(2, 5)
    close(crais.log_normalizer(log_likelihood, prior=prior, **OPTIONS), truth)
    by_names = lambda rate, p, mu: log_likelihood({"rate": rate, "p": p, "mu": mu})
    close(crais.log_normalizer(by_names, prior=prior, **OPTIONS), truth)
    close(crais.log_normalizer(lambda mu: normal_likelihood(Y)(mu), prior={"mu": prior["mu"]}, **OPTIONS), NORMAL)


def test_tails_of_a_prior_lose_no_digits():
    """Data far out, before which a quantile function of Phi(e) would end: E exp of a normal that is above zero."""
    close(crais.log_normalizer(normal_likelihood([60.0]), prior=D.Exponential(1.0), dim=1, **OPTIONS), 0.5 - 60)


@pytest.mark.parametrize("prior", EXACT)
def test_exact_priors_are_quantiles(prior):
    e = torch.linspace(-3, 3, 7, dtype=torch.float64).unsqueeze(1)
    theta = of_prior(prior, None).point(e)
    torch.testing.assert_close(theta, prior.icdf(torch.special.ndtr(e)), rtol=1e-6, atol=1e-6)
    far = of_prior(prior, None).point(torch.tensor([[-20.0], [20.0]], dtype=torch.float64))
    assert far.isfinite().all() and far[0] < theta[0] and far[1] > theta[-1]


def test_the_unit_cube_has_a_lower_tail():
    theta = of_transform(lambda u: u.log(), 1).point(torch.tensor([[-20.0]]).double())
    assert theta.item() == pytest.approx(-203.9172, abs=1e-3)  # log Phi(-20)


def test_a_multivariate_prior_has_its_covariance():
    covariance = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    prior = D.MultivariateNormal(torch.ones(2, dtype=torch.float64), covariance)
    root = of_prior(prior, 2).point(torch.eye(2, dtype=torch.float64)) - 1
    torch.testing.assert_close(root.T @ root, covariance)


def test_scipy_priors():
    stats = pytest.importorskip("scipy.stats")
    e = torch.tensor([[-20.0], [-9.0], [0.0], [9.0], [20.0]]).double().requires_grad_(True)
    theta = of_prior(stats.norm(1, 2), None).point(e)
    torch.testing.assert_close(theta, 1 + 2 * e)  # in both tails
    (slope,) = torch.autograd.grad(theta.sum(), e)
    torch.testing.assert_close(slope, torch.full_like(e, 2.0))

    def log_likelihood(theta):
        counts = D.Poisson(theta[:, :1]).log_prob(COUNTS).sum(1)
        return counts + normal_likelihood(Y)(theta[:, 1:])

    of_vector = stats.multivariate_normal(np.ones(3), 4 * np.eye(3))
    prior = [stats.gamma(2.0, scale=2.0), of_vector]
    found = crais.log_normalizer(log_likelihood, prior=prior, **OPTIONS)
    close(found, POISSON + NORMAL)
    assert found.flag_words(0) != "base"  # differences of gradients make the fit
    with pytest.raises(crais.UsageError, match="prior 0 is discrete: sum over its values"):
        crais.log_normalizer(log_likelihood, prior=[stats.poisson(3), stats.norm()], progress=False)


@pytest.mark.parametrize("of_row", [False, True])
def test_a_prior_transform(of_row):
    transform = lambda u: torch.stack([20 * u[..., 0] - 5, 20 * u[..., 1] - 10, 20 * u[..., 2] - 10], -1)
    likelihood = normal_likelihood(Y)
    found = crais.log_normalizer(
        (lambda theta: likelihood(theta.unsqueeze(0))[0]) if of_row else likelihood,
        prior_transform=(lambda u: transform(u.reshape(3))) if of_row else transform,
        dim=3, **OPTIONS,
    )  # fmt: skip
    close(found, -3 * math.log(20))
    assert found.notes == (["the function is of one row: torch.vmap makes it one of many"] * of_row)
    assert ("torch.vmap" in repr(found)) == of_row


def by_name(theta):
    assert theta["w"].shape[1:] == (3,)
    return (
        2 * theta["tau"].log() - 3 * theta["tau"] + theta["p"].log() + 4 * torch.log1p(-theta["p"])
        + (torch.tensor([1.0, 0.5, 2.0]) * theta["w"].log()).sum(1) - 0.5 * theta["x"].square()
    )  # fmt: skip


OF_GAMMA = math.lgamma(3) - 3 * math.log(3)
OF_NAMES = OF_GAMMA + log_beta(2, 5) + 0.5 * LOG_2PI
OF_NAMES += math.lgamma(2) + math.lgamma(1.5) + math.lgamma(3) - math.lgamma(6.5)


@pytest.mark.parametrize(
    ("log_density", "support", "dim", "truth"),
    [
        (by_name, {"tau": constraints.positive, "p": constraints.unit_interval, "w": (constraints.simplex, 3),
                   "x": constraints.real}, None, OF_NAMES),
        *(
            (lambda z: 2 * z.log().sum(1) - 3 * z.sum(1), support, dim, 2 * OF_GAMMA)
            for support, dim in [((0, None), 2), ([(0, math.inf), constraints.positive], None), (constraints.positive, 2)]
        ),
    ],
)  # fmt: skip
def test_supports(log_density, support, dim, truth):
    close(crais.log_normalizer(log_density, support=support, dim=dim, **OPTIONS), truth)


def far(z):
    return -0.5 * ((z - 500) / 4).square().sum(1)


@pytest.mark.parametrize(
    "base",
    [
        D.MultivariateNormal(torch.full((2,), 480.0), 400 * torch.eye(2)),
        D.Normal(480.0, 20.0),
        (np.full(2, 490.0), [[300.0, 50.0], [50.0, 100.0]]),
        ([490.0, 510.0], [300.0, 100.0]),
        np.random.default_rng(1).normal(495, 8, (50, 2)),
    ],
    ids=["distribution", "of one number", "mean and covariance", "variances", "samples"],
)
def test_bases_of_one_s_own(base):
    options = {**WITHOUT_BASE, "starts": [[501.0, 499.0]]}
    close(crais.log_normalizer(far, dim=2, base=base, **options), math.log(2 * math.pi * 16))


def test_starts_are_in_the_user_s_coordinates_of_a_base():
    base = (torch.tensor([1.0, 2.0]), torch.tensor([[4.0, 1.0], [1.0, 3.0]]))
    density = density_of(far, dim=2, base=base)
    z = torch.tensor([[5.0, 7.0], [1.0, 2.0]], dtype=torch.float64)
    e = density.inverse(z)
    assert torch.equal(e[1], torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(density.log_density(e), far(z) + 0.5 * math.log(11))


# Gradients, rows, types.


def with_numpy(z):
    return -0.5 * ((z - 1) ** 2).sum(-1), -(z - 1)


def with_numpy_of_row(z):
    assert z.shape == (2,)
    return with_numpy(z)


@pytest.mark.parametrize("function", [with_numpy, with_numpy_of_row])
def test_value_and_grad_of_numpy(function):
    found = crais.log_normalizer(value_and_grad=function, dim=2, **OPTIONS)
    close(found, LOG_2PI)
    assert set(found.flags) == {0} and found.mc_se < 1e-6  # the Laplace fit is exact
    prior = [D.Normal(1.0, 1.0)] * 2
    close(crais.log_normalizer(value_and_grad=function, prior=prior, **OPTIONS), -math.log(2))


def test_a_call_that_does_not_return_is_said(monkeypatch):
    monkeypatch.setattr(gradients, "_PATIENCE", 0.2)
    with pytest.warns(UserWarning, match="a call takes over a minute: .*bound its steps"):
        gradients.of_rows(lambda row: (time.sleep(0.6) or 0.0, row))(torch.zeros(1, 2))


class OwnGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        value, slope = with_numpy(z.detach().numpy())
        ctx.slope = torch.from_numpy(slope)
        return torch.from_numpy(value)

    @staticmethod
    def backward(ctx, grad):
        return grad[:, None] * ctx.slope


def test_a_gradient_without_second_derivatives():
    found = crais.log_normalizer(OwnGradient.apply, dim=2, **OPTIONS)
    close(found, LOG_2PI)
    assert set(found.flags) == {0} and found.mc_se < 1e-6
    assert "differences of gradients" in found.notes[0]
    mixed = crais.log_normalizer(lambda z: OwnGradient.apply(z) - 0.5 * (z - 1).square().sum(1), dim=2, **OPTIONS)
    assert mixed.mean == pytest.approx(LOG_2PI - math.log(2), abs=1e-6)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: -0.5 * (z - 1).square().sum(), "torch.vmap makes it"),
        (lambda z: -0.5 * (z[0] - 1) ** 2 - 0.5 * (z[1] - 1) ** 2, "torch.vmap makes it"),
        (lambda z: -0.5 * (z - 1).square().sum() if z[0] > -99 else z[0], "row by row"),
    ],
)
def test_functions_of_one_row(function, words):
    found = crais.log_normalizer(function, dim=2, **{**OPTIONS, "chains": 8, "steps": 16})
    close(found, LOG_2PI)
    assert words in found.notes[0]


def test_a_function_of_one_row_that_looks_like_one_of_many_is_refused():
    prior = {"a": D.Normal(0.0, 1.0), "b": D.Normal(torch.zeros(3), 1.0)}
    of_row = lambda theta: -0.5 * (theta["a"] - 1) ** 2 - 0.5 * theta["b"].square().sum()
    with pytest.raises(crais.UsageError, match="depends on the other rows.*torch.vmap"):
        crais.log_normalizer(of_row, prior=prior, **OPTIONS)
    found = crais.log_normalizer(torch.vmap(of_row), prior=prior, **OPTIONS)
    close(found, -0.25 - 2 * math.log(2))


def test_a_module_in_float32_is_run_in_float32():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1)).eval()
    energy = lambda z: net(z).squeeze(1) - 0.5 * z.square().sum(1)
    found = crais.log_normalizer(energy, dim=2, **OPTIONS)
    assert found.summary["settings"]["dtype"] == "float32" and "float32" in found.notes[0]
    asked = crais.log_normalizer(energy, dim=np.int64(2), dtype="float32", **OPTIONS)
    assert asked.mean == found.mean and asked.notes == []
    of_prior = crais.log_normalizer(lambda z: net(z).squeeze(1), prior=D.Normal(torch.zeros(2), 1.0), **OPTIONS)
    assert of_prior.mean == pytest.approx(found.mean - LOG_2PI, abs=5 * found.mc_se + 1e-3)


# What is refused.


def flat(theta):
    return 0 * theta.sum(1)


class Nowhere(D.Distribution):
    """No support, and no quantile function."""

    arg_constraints = {}

    def __init__(self):
        super().__init__(torch.Size([2]), validate_args=False)

    def sample(self, shape=()):
        return torch.zeros(*shape, 2)

    def log_prob(self, value):
        return torch.zeros_like(value)


UNIT, META = D.Normal(0.0, 1.0), torch.ones(2, device="meta")
COVARIANCE = r"base: give a mean \[2\] and a positive definite covariance \[2, 2\], of finite"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": D.Normal(torch.zeros(3), 1.0), "dim": 2}, "dim is 2, and the prior is of 3"),
        ({"prior": [UNIT] * 3, "dim": 2}, "dim is 2, and the prior is of 3"),
        ({"prior": D.Poisson(3.0)}, "the prior: Poisson is discrete: sum over its values"),
        ({"prior": {"k": D.Bernoulli(0.5)}}, "k: Bernoulli is discrete"),
        ({"prior": D.Uniform(0.0, math.inf)}, "the prior: Uniform is improper"),
        ({"prior": D.Normal(0.0, math.inf)}, "the prior: Normal is improper"),
        ({"prior": D.Gamma(0.001, 0.001)}, "Gamma has draws nearer to the end of its support"),
        ({"prior": D.Beta(2.0, 0.1)}, "Beta has draws nearer to the end of its support"),
        ({"prior": Nowhere()}, "Nowhere does not say its support"),
        ({"prior": D.Normal(META, META, validate_args=False)}, "Normal has parameters on the device meta"),
        ({"prior": crais.StandardNormal()}, "one of crais's, which are for models of images"),
        ({"prior": lambda theta: 0}, "is a function: give a torch.distributions object, or"),
        ({"prior": UNIT, "support": (0, 1)}, "give prior or support, not both"),
        ({"prior": {}}, "a dict without names"),
        ({"prior_transform": lambda u: u}, "give dim=D"),
        ({"prior_transform": lambda u: u[:, :1], "dim": 2}, r"it returns \[3, 1\]"),
        ({"prior_transform": lambda u: u.sum(), "dim": 2}, r"it returns \[\]"),
        ({"prior_transform": lambda u: 2.0, "dim": 2}, "it returns a float"),
        ({"prior_transform": lambda u: u.detach(), "dim": 2}, "prior_transform has no gradient"),
        ({"prior_transform": lambda u: np.exp(u), "dim": 2}, "prior_transform is of NumPy"),
        ({"support": constraints.positive_integer, "dim": 2}, "discrete: sum over its values"),
        ({"support": {"w": constraints.simplex}}, "w: .*Simplex.* is for vectors: say their size"),
        ({"support": [(1, 0)]}, "support 0: low must be less than high; these are 1 and 0"),
        ({"support": {"p": "positive"}}, "p is a str: give one of torch.distributions.constraints"),
        ({"support": [(0, 1)] * 3, "dim": 2}, "dim is 2, and the support is of 3"),
        ({"prior": D.Dirichlet(torch.ones(2)), "dim": 2}, "dim is 2, and the prior is of 1 free"),
        ({"support": constraints.interval, "dim": 2}, "the support is a type: give one of torch"),
        ({"support": ("a", 1), "dim": 2}, "low and high are numbers, not 'a' and 1"),
        ({"support": constraints.simplex, "dim": 1}, "the support has no free numbers"),
        ({"support": (constraints.positive, "ab")}, r"no bijection .* of shape \['a', 'b'\]"),
        ({"support": (constraints.positive_definite, (2, 3))}, r"no bijection .* of shape \[2, 3\]"),
        ({"support": constraints.cat([constraints.real] * 2, 0, [1, 1]), "dim": 2}, r"no bijection .* of shape \[2\]"),
        ({"prior": D.Normal(torch.zeros(0), 1.0)}, "the prior has no free numbers"),
        ({"prior_transform": 3, "dim": 2}, "prior_transform is a int: give a function of u"),
        ({"base": D.Cauchy(torch.zeros(2), 1.0), "dim": 2}, COVARIANCE),
        ({"base": (np.zeros(2), -np.eye(2)), "dim": 2}, COVARIANCE),
        ({"base": (np.zeros(3), np.eye(3)), "dim": 2}, r"these are \[3\] and \[3, 3\]"),
        ({"base": np.zeros((50, 3)), "dim": 2}, r"samples \[S, 2\], not \[50, 3\]"),
        ({"base": object(), "dim": 2}, "base is a object, not an array of numbers"),
        ({"target": None}, "give a log density, or value_and_grad=f"),
        ({"target": None, "value_and_grad": with_numpy}, "give dim=D"),
        ({"target": None, "value_and_grad": lambda z: z, "dim": 2}, "returns a ndarray: return"),
        ({"target": None, "value_and_grad": lambda z: (z.sum(), z[:2]), "dim": 3}, r"returns \[\] and \[2\]: does dim"),
        ({"target": None, "value_and_grad": with_numpy, "prior": {"a": UNIT}}, "not by name"),
        ({"value_and_grad": with_numpy, "dim": 2}, "one of the two"),
        ({"target": lambda z: -0.5 * np.sum(z.detach().numpy() ** 2, 1), "dim": 2}, "is of NumPy"),
        ({"target": lambda z: -np.exp(z).sum(1), "dim": 2}, "value_and_grad=f"),
        ({"target": "u1", "prior": UNIT}, "prior is for a function; u1 has its own"),
        ({"target": "u1", "dim": 2}, "dim is for a function; u1 has its own"),
        ({"target": "u1", "chains": 0}, "^chains: must be at least 1"),
        ({"target": "u99"}, "unknown target"),
        ({}, "give dim=D"),
        ({"dim": 1, "bounds": [(0, 1)]}, r"bounds: say support=\[\(low, high\)"),
        ({"dim": 1, "init": [0]}, "say starts="),
        ({"dim": 1, "X": [0]}, "no option X; if it is data of a model, give model_kwargs={'X': ...}"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(crais.UsageError, match=words) as raised:
        crais.log_normalizer(**{"target": flat, "progress": False, **arguments})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_numbers_at_the_prior_s_draws_are_counted(bad):
    def log_likelihood(theta):
        return torch.where(theta["a"] > 1, bad, theta["b"].sum(1) * 0)

    prior = {"a": UNIT, "b": D.Normal(torch.zeros(2), 1.0)}
    words = r"-inf where .* is NaN or \+inf at (\d+) of 256 draws of the prior, first at a = ([\d.]+); b = \S+ \S+"
    with pytest.raises(crais.DataError, match=words) as raised:
        crais.log_normalizer(log_likelihood, prior=prior, progress=False)
    count, first = re.search(words, str(raised.value)).groups()
    assert 20 < int(count) < 70 and float(first) > 1


@pytest.mark.parametrize(("centre", "raises"), [(1.0, False), (1.0, True), (-1.5, False)])
def test_values_that_are_no_numbers_at_few_draws_are_zero(centre, raises):
    """A likelihood N(centre, 0.3^2) is NaN below -2: less than 1e-20 of the evidence, or 1.5%."""

    def log_likelihood(theta):
        if raises and (theta < -2).any():
            raise ValueError("no solution")
        return torch.where(theta < -2, math.nan, D.Normal(centre, 0.3).log_prob(theta)).sum(1)

    z = crais.log_normalizer(log_likelihood, prior=UNIT, progress=False)
    lost = 0.0 if centre > 0 else -0.0151
    assert abs(z.log_z - D.Normal(0.0, math.hypot(1, 0.3)).log_prob(torch.tensor(centre)) - lost) < 5 * z.mc_se
    assert any(re.match(r"the log likelihood is NaN at \d of 256 draws", note) for note in z.notes)
    assert z.flagged == (centre < 0) == any("steps from the posterior" in each for each in z.reasons)


def test_rows_that_are_refused_are_found_in_few_calls():
    def density(e):
        sizes.append(len(e))
        return torch.linalg.cholesky(torch.diag_embed(torch.where(e == 7, -1.0, e + 1)))[:, 0, 0]

    sizes, e = [], torch.arange(256.0).unsqueeze(1)
    found = _zero_where_refused(density)(e)
    assert found.isnan().nonzero().tolist() == [[7]] and len(sizes) < 20
    torch.testing.assert_close(found.nan_to_num(8**0.5), (e[:, 0] + 1).sqrt())


def test_a_transform_that_leaves_the_cube():
    with pytest.raises(crais.DataError, match=r"theta is not finite.* at \d+ of 256 draws"):
        crais.log_normalizer(flat, prior_transform=lambda u: torch.log(u - 0.5), dim=2, progress=False)


# What comes back.


def test_log_z_is_the_log_of_a_mean():
    options = {**OPTIONS, "base": "prior", "chains": 2, "steps": 4, "repeats": 2}
    found = crais.log_normalizer("normal:3,mean=2", **options)
    each = found.to_pandas().log_normalizer
    assert found.log_z == pytest.approx(np.log(np.exp(each).mean()), abs=1e-9)
    assert found.log_z > found.mean + 0.01


def beta_binomial(a, b):
    return crais.log_normalizer(
        lambda theta: D.Binomial(50, theta[:, 0]).log_prob(torch.tensor(20.0)),
        prior=D.Beta(a, b), **{**OPTIONS, "problems": int(a)},
    )  # fmt: skip


def test_a_bayes_factor():
    found = crais.bayes_factor(beta_binomial(10.0, 10.0), beta_binomial(2.0, 5.0))
    truth = log_beta(30, 40) - log_beta(10, 10) - log_beta(22, 35) + log_beta(2, 5)
    assert abs(found.log_ratio - truth) < 5 * found.mc_se + 1e-6 and found.mc_se < 0.02
    assert found.low < found.log_ratio < found.high and not found.flagged and found.reasons == []
    assert f"Bayes factor {math.exp(found.log_ratio):.4g}" in repr(found)


def test_a_bayes_factor_is_flagged_where_a_result_is():
    sure = crais.log_normalizer("normal:1", **OPTIONS)
    plateau = D.Uniform(-torch.ones(1), 1.0)
    doubtful = crais.log_normalizer(flat, prior=plateau, **OPTIONS)  # one value at all draws
    found = crais.bayes_factor(sure, doubtful)
    assert found.flagged and found.reasons[0].startswith("the second: ")
    assert doubtful.reasons[0] in found.reasons[0] and "Flagged: the second" in repr(found)
    assert not crais.bayes_factor(sure, sure).flagged
    few = crais.log_normalizer(
        lambda z: -(1 + z.square() / 1e-6).log().sum(1), dim=3, base="prior", chains=8, steps=4,
        problems=4, witness="none", progress=False,
    )  # fmt: skip
    flags = [word for i in range(4) for word in few.flag_words(i).split("+")]
    assert "4 of 4 replicates" in crais.bayes_factor(few, sure).reasons[-1] and flags[0]
    assert flags[0] in crais.bayes_factor(few, sure).reasons[-1]
    with pytest.raises(crais.UsageError, match="takes two results of log_normalizer"):
        crais.bayes_factor(sure, 3.0)

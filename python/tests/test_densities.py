"""`crais.log_normalizer` of priors, unit cubes, supports, bases and gradients of one's own."""

import math

import numpy as np
import pytest
import torch
from torch import distributions as D
from torch.distributions import constraints

import crais
from crais.coordinates import of_prior, of_transform
from crais.densities import density_of

pytestmark = pytest.mark.usefixtures("compiled")
OPTIONS = {"steps": 64, "chains": 64, "problems": 5, "base": "laplace"}
OPTIONS |= {"witness": "none", "progress": False}
WITHOUT_BASE = {name: value for name, value in OPTIONS.items() if name != "base"}
LOG_2PI = math.log(2 * math.pi)


def close(found, truth):
    assert abs(found.mean - truth) < 5 * found.mc_se + 1e-4, (found.mean, found.mc_se, truth)
    assert found.mc_se < 0.05


def normal_likelihood(y, sd=1.0):
    """theta [B, D] -> sum over d of log N(y_d; theta_d, sd^2)."""
    y = torch.as_tensor(y, dtype=torch.float64)
    return lambda theta: D.Normal(theta, sd).log_prob(y).sum(1)


def log_marginal(y, mean, var):
    """The evidence of numbers y_d ~ N(mean, var)."""
    return sum(-0.5 * (value - mean) ** 2 / var - 0.5 * math.log(2 * math.pi * var) for value in y)


def log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


Y = [0.5, -1.2, 2.0]
NORMAL = log_marginal(Y, 1.0, 5.0)


@pytest.mark.parametrize(
    "prior",
    [
        D.Normal(torch.ones(3), 2.0),
        D.Independent(D.Normal(torch.ones(3), 2.0), 1),
        D.Normal(1.0, 2.0),
        D.MultivariateNormal(torch.ones(3), 4 * torch.eye(3)),
        D.TransformedDistribution(D.Normal(torch.zeros(3), 1.0), D.AffineTransform(1.0, 2.0)),
        [D.Normal(1.0, 2.0)] * 3,
        crais.GaussianPrior(torch.ones(3), sd=2.0),
    ],
    ids=[
        "normal",
        "independent",
        "of one number",
        "multivariate",
        "transformed",
        "list",
        "crais's",
    ],
)
def test_the_evidence_of_normal_data(prior):
    close(crais.log_normalizer(normal_likelihood(Y), prior=prior, dim=3, **OPTIONS), NORMAL)


def log_poisson_gamma(counts, shape, rate):
    n, total = len(counts), sum(counts)
    return (
        shape * math.log(rate) - math.lgamma(shape) + math.lgamma(shape + total)
        - (shape + total) * math.log(rate + n) - sum(math.lgamma(k + 1) for k in counts)
    )  # fmt: skip


def test_a_dict_of_priors_by_name():
    counts = torch.tensor([3.0, 5.0, 4.0], dtype=torch.float64)

    def log_likelihood(theta):
        assert theta["rate"].shape == theta["p"].shape == theta["mu"].shape[:1]
        return (
            D.Poisson(theta["rate"].unsqueeze(1)).log_prob(counts).sum(1)
            + D.Binomial(10, theta["p"]).log_prob(torch.tensor(7.0))
            + normal_likelihood(Y)(theta["mu"])
        )

    prior = {
        "rate": D.Gamma(2.0, 0.5), "p": D.Beta(2.0, 5.0), "mu": D.Normal(torch.ones(3), 2.0),
    }  # fmt: skip
    truth = log_poisson_gamma([3, 5, 4], 2.0, 0.5) + NORMAL
    truth += math.log(math.comb(10, 7)) + log_beta(9, 8) - log_beta(2, 5)
    close(crais.log_normalizer(log_likelihood, prior=prior, **OPTIONS), truth)


@pytest.mark.parametrize(
    "prior",
    [
        D.Exponential(torch.ones(2)),
        D.HalfCauchy(torch.ones(2)),
        D.Cauchy(torch.ones(2), 2.0),
        D.StudentT(torch.full((2,), 4.0)),
        D.LogNormal(torch.zeros(2), 1.0),
        D.Uniform(torch.tensor([-1.0, 2.0]), torch.tensor([4.0, 3.0])),
        D.InverseGamma(torch.full((2,), 3.0), 2.0),
        D.Gamma(torch.tensor([400.0, 0.5]), 1.0),
        D.Dirichlet(torch.tensor([2.0, 3.0, 0.7])),
        D.MixtureSameFamily(
            D.Categorical(torch.ones(2, 2)),
            D.Normal(torch.tensor([[-1.0, 1.0]] * 2), torch.tensor([[0.7, 1.0]] * 2)),
        ),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_priors_have_mass_one(prior):
    """With a likelihood of a half, Z is half of the prior's mass."""
    found = crais.log_normalizer(
        lambda theta: 0 * theta.sum(1) + math.log(0.5), prior=prior, **{**OPTIONS, "base": "prior"}
    )
    close(found, math.log(0.5))


def test_tails_of_a_prior_lose_no_digits():
    """Data far from where the prior is: a quantile function of Phi(e) would end before them."""

    def log_likelihood(theta):
        return D.Normal(theta[:, 0], 1.0).log_prob(torch.tensor(60.0, dtype=torch.float64))

    found = crais.log_normalizer(log_likelihood, prior=D.Exponential(1.0), **OPTIONS)
    close(found, 0.5 - 60)  # E exp of a normal, all of whose mass is above zero


@pytest.mark.parametrize(
    "prior",
    [
        D.Normal(1.0, 2.0),
        D.Uniform(-1.0, 4.0),
        D.Cauchy(1.0, 2.0),
        D.LogNormal(1.0, 0.5),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_exact_priors_are_quantiles(prior):
    e = torch.linspace(-3, 3, 7, dtype=torch.float64).unsqueeze(1)
    coordinates = of_prior(prior, None)
    theta = coordinates.point(e)
    torch.testing.assert_close(theta, prior.icdf(torch.special.ndtr(e)), rtol=1e-6, atol=1e-6)
    far = coordinates.point(torch.tensor([[-20.0], [20.0]], dtype=torch.float64))
    assert far.isfinite().all() and far[0] < theta[0] and far[1] > theta[-1]


def test_the_unit_cube_has_a_lower_tail():
    cube = of_transform(lambda u: u.log(), 1)
    theta = cube.point(torch.tensor([[-20.0]], dtype=torch.float64))
    assert theta.item() == pytest.approx(-203.9172, abs=1e-3)  # log Phi(-20)


def test_a_multivariate_prior_has_its_covariance():
    covariance = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    prior = D.MultivariateNormal(torch.ones(2, dtype=torch.float64), covariance)
    root = of_prior(prior, 2).point(torch.eye(2, dtype=torch.float64)) - 1
    torch.testing.assert_close(root.T @ root, covariance)


@pytest.mark.parametrize("prior", [D.Gamma(0.5, 1.0), D.InverseGamma(3.0, 2.0), D.Beta(0.5, 2.0)])
def test_densities_of_priors_fall_to_where_numbers_end(prior):
    """Where exp and sigmoid have none, it is NaN, in both directions."""
    found = of_prior(prior, None)
    for dtype in (torch.float64, torch.float32):
        far = torch.tensor([[2.0], [4.0], [6.0], [1e4], [1e6]], dtype=dtype)
        for e in (far, -far):
            values = found.log_density(e)
            assert values.dtype == dtype and values[3:].isnan().all()
            assert (values[1:3] < values[:2]).all() and found.point(e[:3]).isfinite().all()


def test_scipy_priors_have_both_tails():
    stats = pytest.importorskip("scipy.stats")
    e = torch.tensor(
        [[-20.0], [-9.0], [0.0], [9.0], [20.0]], dtype=torch.float64, requires_grad=True
    )
    theta = of_prior(stats.norm(1, 2), None).point(e)
    torch.testing.assert_close(theta, 1 + 2 * e)
    (slope,) = torch.autograd.grad(theta.sum(), e)
    torch.testing.assert_close(slope, torch.full_like(e, 2.0))


def test_scipy_priors():
    stats = pytest.importorskip("scipy.stats")

    def log_likelihood(theta):
        counts = torch.tensor([3.0, 5.0, 4.0], dtype=torch.float64)
        return D.Poisson(theta[:, :1]).log_prob(counts).sum(1) + normal_likelihood([2.0])(
            theta[:, 1:]
        )

    truth = log_poisson_gamma([3, 5, 4], 2.0, 0.5) + log_marginal([2.0], 1.0, 5.0)
    prior = [stats.gamma(2.0, scale=2.0), stats.norm(1, 2)]
    found = crais.log_normalizer(log_likelihood, prior=prior, **OPTIONS)
    close(found, truth)
    assert found.flag_words(0) != "base"  # differences of gradients make the fit
    of_vector = stats.multivariate_normal(np.ones(3), 4 * np.eye(3))
    close(crais.log_normalizer(normal_likelihood(Y), prior=of_vector, **OPTIONS), NORMAL)
    with pytest.raises(crais.UsageError, match="prior 0 is discrete: sum over its values"):
        crais.log_normalizer(log_likelihood, prior=[stats.poisson(3), stats.norm()], progress=False)


@pytest.mark.parametrize("of_row", [False, True])
def test_a_prior_transform(of_row):
    def transform(u):
        return 20 * u - torch.tensor([5.0, 10.0, 10.0], dtype=u.dtype)

    likelihood = normal_likelihood(Y)
    found = crais.log_normalizer(
        (lambda theta: likelihood(theta.unsqueeze(0))[0]) if of_row else likelihood,
        prior_transform=transform, dim=3, **OPTIONS,
    )  # fmt: skip
    close(found, -3 * math.log(20))
    assert found.notes == (["the function is of one row: torch.vmap makes it one of many"] * of_row)
    assert ("torch.vmap" in repr(found)) == of_row


def test_supports_by_name():
    def log_density(theta):
        assert theta["w"].shape[1:] == (3,)
        return (
            2 * theta["tau"].log() - 3 * theta["tau"]
            + theta["p"].log() + 4 * torch.log1p(-theta["p"])
            + (torch.tensor([1.0, 0.5, 2.0]) * theta["w"].log()).sum(1)
            - 0.5 * theta["x"].square()
        )  # fmt: skip

    support = {
        "tau": constraints.positive, "p": constraints.unit_interval,
        "w": (constraints.simplex, 3), "x": constraints.real,
    }  # fmt: skip
    truth = math.lgamma(3) - 3 * math.log(3) + log_beta(2, 5) + 0.5 * LOG_2PI
    truth += math.lgamma(2) + math.lgamma(1.5) + math.lgamma(3) - math.lgamma(6.5)
    close(crais.log_normalizer(log_density, support=support, **OPTIONS), truth)


@pytest.mark.parametrize(
    ("support", "dim"),
    [((0, None), 2), ([(0, math.inf), constraints.positive], None), (constraints.positive, 2)],
)
def test_supports_of_coordinates(support, dim):
    found = crais.log_normalizer(
        lambda z: 2 * z.log().sum(1) - 3 * z.sum(1), support=support, dim=dim, **OPTIONS
    )
    close(found, 2 * (math.lgamma(3) - 3 * math.log(3)))


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
    found = crais.log_normalizer(far, dim=2, base=base, **options)
    close(found, math.log(2 * math.pi * 16))


def test_starts_are_in_the_user_s_coordinates_of_a_base():
    base = (torch.tensor([1.0, 2.0]), torch.tensor([[4.0, 1.0], [1.0, 3.0]]))
    density = density_of(far, dim=2, base=base)
    z = torch.tensor([[5.0, 7.0], [1.0, 2.0]], dtype=torch.float64)
    e = density.inverse(z)
    assert torch.equal(e[1], torch.zeros(2, dtype=torch.float64))
    log_det = 0.5 * math.log(11)
    torch.testing.assert_close(density.log_density(e), far(z) + log_det)


# Gradients, rows, types.


def with_numpy(z):
    return -0.5 * ((z - 1) ** 2).sum(1), -(z - 1)


def with_numpy_of_row(z):
    assert z.shape == (2,)
    return -0.5 * ((z - 1) ** 2).sum(), -(z - 1)


@pytest.mark.parametrize("function", [with_numpy, with_numpy_of_row])
def test_value_and_grad_of_numpy(function):
    found = crais.log_normalizer(value_and_grad=function, dim=2, **OPTIONS)
    close(found, LOG_2PI)
    assert set(found.flags) == {0} and found.mc_se < 1e-6  # the Laplace fit is exact
    prior = [D.Normal(1.0, 1.0)] * 2
    close(crais.log_normalizer(value_and_grad=function, prior=prior, **OPTIONS), -math.log(2))


class OwnGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        x = z.detach().numpy()
        ctx.slope = torch.from_numpy(-(x - 1))
        return torch.from_numpy(-0.5 * ((x - 1) ** 2).sum(1))

    @staticmethod
    def backward(ctx, grad):
        return grad[:, None] * ctx.slope


def test_a_gradient_without_second_derivatives():
    found = crais.log_normalizer(OwnGradient.apply, dim=2, **OPTIONS)
    close(found, LOG_2PI)
    assert set(found.flags) == {0} and found.mc_se < 1e-6
    assert "differences of gradients" in found.notes[0]
    mixed = crais.log_normalizer(
        lambda z: OwnGradient.apply(z) - 0.5 * (z - 1).square().sum(1), dim=2, **OPTIONS
    )
    assert mixed.mean == pytest.approx(LOG_2PI - math.log(2), abs=1e-6)
    assert crais.log_normalizer(far, dim=2, **OPTIONS).notes == []


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

    def of_row(theta):
        return -0.5 * (theta["a"] - 1) ** 2 - 0.5 * theta["b"].square().sum()

    with pytest.raises(crais.UsageError, match="depends on the other rows.*torch.vmap"):
        crais.log_normalizer(of_row, prior=prior, **OPTIONS)
    found = crais.log_normalizer(torch.vmap(of_row), prior=prior, **OPTIONS)
    close(found, -0.25 - 2 * math.log(2))


def test_a_module_in_float32_is_run_in_float32():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1)).eval()

    def energy(z):
        return net(z).squeeze(1) - 0.5 * z.square().sum(1)

    found = crais.log_normalizer(energy, dim=2, **OPTIONS)
    assert found.summary["settings"]["dtype"] == "float32" and "float32" in found.notes[0]
    asked = crais.log_normalizer(energy, dim=2, dtype="float32", **OPTIONS)
    assert asked.mean == found.mean and asked.notes == []
    of_prior = crais.log_normalizer(
        lambda z: net(z).squeeze(1), prior=D.Normal(torch.zeros(2), 1.0), **OPTIONS
    )
    assert of_prior.mean == pytest.approx(found.mean - LOG_2PI, abs=5 * found.mc_se + 1e-3)


def test_minus_infinity_is_a_weight_of_zero():
    def log_likelihood(theta):
        return torch.where(theta[:, 0] > 0, 0 * theta[:, 0], -math.inf)

    found = crais.log_normalizer(
        log_likelihood, prior=D.Normal(0.0, 1.0), **{**OPTIONS, "base": "prior", "chains": 2000}
    )
    close(found, -math.log(2))


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": D.Normal(torch.zeros(3), 1.0), "dim": 2}, "dim is 2, and the prior is of 3"),
        ({"prior": [D.Normal(0.0, 1.0)] * 3, "dim": 2}, "dim is 2, and the prior is of 3"),
        ({"prior": D.Poisson(3.0)}, "the prior: Poisson is discrete: sum over its values"),
        ({"prior": {"k": D.Bernoulli(0.5)}}, "k: Bernoulli is discrete"),
        ({"prior": D.Uniform(0.0, math.inf)}, "the prior: Uniform is improper"),
        ({"prior": D.Normal(0.0, math.inf)}, "the prior: Normal is improper"),
        ({"prior": D.Gamma(0.001, 0.001)}, "Gamma has draws nearer to the end of its support"),
        ({"prior": D.Beta(2.0, 0.1)}, "Beta has draws nearer to the end of its support"),
        ({"prior": Nowhere()}, "Nowhere does not say its support"),
        ({"prior": lambda theta: 0}, "is a function: give a torch.distributions object, or"),
        ({"prior": D.Normal(0.0, 1.0), "support": (0, 1)}, "give prior or support, not both"),
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
        ({"base": D.Cauchy(torch.zeros(2), 1.0), "dim": 2}, "no finite mean and covariance"),
        ({"base": np.zeros((50, 3)), "dim": 2}, r"samples \[S, 2\]; this is \[50, 3\]"),
        ({"base": (np.zeros(2), -np.eye(2)), "dim": 2}, "the covariance is not positive definite"),
        ({"base": (np.zeros(3), np.eye(3)), "dim": 2}, r"a mean \[2\] .* these are \[3\]"),
        ({"base": object(), "dim": 2}, "base is a object, not an array of numbers"),
    ],
)
def test_spaces_that_are_refused(arguments, words):
    with pytest.raises(crais.UsageError, match=words) as raised:
        crais.log_normalizer(flat, progress=False, **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give a log density, or value_and_grad=f"),
        ({"value_and_grad": with_numpy}, "give dim=D"),
        ({"value_and_grad": lambda z: z, "dim": 2}, "returns a ndarray: return"),
        (
            {"value_and_grad": lambda z: (z.sum(), z[:2]), "dim": 3},
            r"returns \[\] and \[2\]: does dim",
        ),
        ({"target": flat, "value_and_grad": with_numpy, "dim": 2}, "one of the two"),
        ({"target": lambda z: -0.5 * np.sum(z.detach().numpy() ** 2, 1), "dim": 2}, "is of NumPy"),
        ({"target": lambda z: -np.exp(z).sum(1), "dim": 2}, "value_and_grad=f"),
        ({"value_and_grad": with_numpy, "prior": {"a": D.Normal(0.0, 1.0)}}, "not by name"),
        ({"target": "u1", "prior": D.Normal(0.0, 1.0)}, "prior is for a function; u1 has its own"),
    ],
)
def test_functions_that_are_refused(arguments, words):
    with pytest.raises(crais.UsageError, match=words) as raised:
        crais.log_normalizer(progress=False, **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_numbers_at_the_prior_s_draws_are_counted(bad):
    def log_likelihood(theta):
        return torch.where(theta["a"] > 1, bad, theta["b"].sum(1) * 0)

    prior = {"a": D.Normal(0.0, 1.0), "b": D.Normal(torch.zeros(2), 1.0)}
    words = (
        r"NaN or \+inf at (\d+) of 256 draws of the prior, first at a = ([\d.]+), b = \(.*, .*\)"
    )
    with pytest.raises(crais.DataError, match=words) as raised:
        crais.log_normalizer(log_likelihood, prior=prior, progress=False)
    count, first = __import__("re").search(words, str(raised.value)).groups()
    assert 20 < int(count) < 70 and float(first) > 1


def test_a_transform_that_leaves_the_cube():
    with pytest.raises(crais.DataError, match=r"theta is not finite.* at \d+ of 256 draws"):
        crais.log_normalizer(
            flat, prior_transform=lambda u: torch.log(u - 0.5), dim=2, progress=False
        )


# What comes back.


def test_log_z_is_the_log_of_a_mean():
    options = {**OPTIONS, "base": "prior", "chains": 2, "steps": 4}
    found = crais.log_normalizer("normal:3,mean=2", **options)
    each = np.asarray(found.log_normalizer)
    assert found.log_z == pytest.approx(np.log(np.exp(each).mean()), abs=1e-12)
    assert found.mean == pytest.approx(each.mean(), abs=1e-12)
    assert found.log_z > found.mean + 0.01
    repeated = crais.log_normalizer("normal:3,mean=2", repeats=2, **options)
    table = repeated.to_pandas()
    assert repeated.log_z == pytest.approx(np.log(np.exp(table.log_normalizer).mean()), abs=1e-9)


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
    def double_well(z):
        return 0.5 * z[:, 0] + 6 * z[:, 0] ** 2 - z[:, 0] ** 4

    sure = crais.log_normalizer("normal:1", **OPTIONS)
    doubtful = crais.log_normalizer(double_well, dim=1, base="laplace", progress=False)
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": [(0, 1)]}, r"bounds: say support=\[\(low, high\)"),
        ({"init": [0]}, "say starts="),
    ],
)
def test_names_of_others(options, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.log_normalizer(flat, dim=1, progress=False, **options)

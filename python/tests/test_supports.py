"""Densities on supports and under priors: right, refused or flagged, and never wrong in silence."""

import math

import pytest
import support
import torch
from support import LOG_2PI
from torch import distributions as D
from torch.distributions import constraints

import crais
from crais.coordinates import of_prior, of_support, of_transform
from crais.densities import density_of
from crais.errors import InternalError

pytestmark = pytest.mark.usefixtures("compiled")
OPTIONS = {"steps": 32, "chains": 32, "problems": 5, "base": "laplace"}
OPTIONS |= {"witness": "none", "progress": False}
HALF = constraints.positive


def close(found, truth):
    assert not found.flagged, found.reasons
    support.close(found, truth, slack=1e-3)


# No number of a density is another.


@pytest.mark.parametrize(
    ("support", "ends"), [(HALF, (-800, 720)), (constraints.unit_interval, (-39, 9)), ((2, None), (-40, 720))]
)
def test_where_floating_numbers_end_the_density_is_none(support, ends):
    """Within them, log |dT/de| is what it is; beyond, it is NaN: zero, and counted."""
    space = of_support(support, 1)
    e = torch.tensor([[end] for end in ends], dtype=torch.float64)
    assert space.log_density(e).isnan().all()
    near = 0.4 * e
    theta = space.point(near.requires_grad_(True))
    (slope,) = torch.autograd.grad(theta.sum(), near)
    torch.testing.assert_close(space.log_density(near), slope.log().flatten(), rtol=1e-6, atol=1e-6)


def test_the_cube_ends_where_u_is_1():
    space = of_transform(lambda u: u, 1)
    values = space.log_density(torch.tensor([[-37.0], [8.0], [8.4]], dtype=torch.float64))
    assert values[:2].isfinite().all() and values[2].isnan()


# Densities without an integral.


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (lambda z: 0 * z.sum(1), {"support": HALF, "dim": 1}, "does not fall along coordinate 0"),
        (lambda z: -z.log().sum(1), {"support": HALF, "dim": 1}, "does not fall along coordinate 0"),
        (
            lambda t: -0.5 * t["z"].square(),
            {"support": {"z": constraints.real, "s": HALF}},
            "does not fall along s, on the way up",
        ),
        (
            lambda t: -20 * t["s"].log(),
            {"prior": {"s": D.HalfCauchy(1.0)}},
            "grows without bound along s, on the way down",
        ),
        (lambda z: -torch.log1p(-z).sum(1), {"support": (0, 1), "dim": 2}, "along coordinate 0"),
        (lambda z: -z[:, 0].square(), {"dim": 2, "base": "prior", "steps": 8, "chains": 8}, "fall along coordinate 1"),
    ],
)
def test_densities_without_an_integral_are_refused(function, arguments, words):
    with pytest.raises(crais.UsageError, match=words) as raised:
        crais.log_normalizer(function, progress=False, **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda z: -torch.log1p(z.square().sum(1)) * 2, {"support": constraints.real, "dim": 2}),
        (lambda z: -1.2 * z.log().sum(1), {"support": (1, None), "dim": 3}),
        (lambda z: D.Beta(0.1, 0.1).log_prob(z).sum(1), {"support": (0, 1), "dim": 1}),
        (lambda z: -0.5e12 * (z - 1e6).square().sum(1), {"support": constraints.real, "dim": 1}),
        (lambda z: -z.exp().sum(1) + z.sum(1), {"support": constraints.real, "dim": 1}),
    ],
)
def test_densities_that_fall_slowly_or_late_are_taken(function, arguments):
    density_of(function, dim=arguments.pop("dim", None), **arguments)


def test_what_ends_bases_is_a_density_without_end():
    """Their own errors are of matrices that are not finite."""
    of_linalg = InternalError("linalg.cholesky: the input is not positive-definite")
    with pytest.raises(crais.UsageError, match="grows without bound along coordinate 0, .* up"):
        density_of(lambda z: z[:, 0] - z[:, 1].square(), dim=2).explain(of_linalg)
    with pytest.raises(crais.UsageError, match="grows without bound: the search"):
        density_of(lambda z: -z.square().sum(1), dim=2).explain(InternalError("affine map: loc"))
    density_of(lambda z: -z.square().sum(1), dim=2).explain(of_linalg)  # it is what it says


def test_a_pole_flags_the_whole():
    found = crais.log_normalizer(
        lambda z: -0.5 * z.square().sum(1) - z.abs().log().sum(1),
        dim=2, progress=False, witness="none", max_evals=50_000,
    )  # fmt: skip
    assert any("may have no variance" in reason for reason in found.reasons), found.reasons


# What crais has not seen, and what it must not mind.


def test_one_value_at_all_draws_of_the_prior_is_flagged():
    prior = D.Uniform(-3 * torch.ones(10).double(), 3 * torch.ones(10).double())
    ball = lambda z: torch.where(z.square().sum(1) < 1, 25.0, 0.0) + 0 * z.sum(1)
    found = crais.log_normalizer(ball, prior=prior, **OPTIONS)
    assert "0 at all 256 draws of the prior" in found.reasons[0] and "0 at all" in repr(found)
    inside = torch.nn.functional.normalize(torch.randn(4, 500, 10), dim=2) * torch.rand(4, 500, 1) ** 0.1
    found = crais.log_normalizer(ball, prior=prior, draws=inside, progress=False)  # the remedy that is named
    assert abs(found.mean - (25 + math.log(math.pi**5 / 120 / 6**10))) < 5 * found.mc_se < 0.2


def test_float32_is_said_to_be_coarse():
    coarse = lambda z: (-0.5 * z.square().sum(1) - 90_889).float()
    found = crais.log_normalizer(coarse, dim=2, **OPTIONS)
    assert abs(found.mean - (LOG_2PI - 90_889)) < 0.02
    assert any("float32 resolves 0.008 nats" in note for note in found.notes)
    fine = crais.log_normalizer(lambda z: -0.5 * z.square().sum(1).float(), dim=2, **OPTIONS)
    assert fine.notes == [] and abs(fine.mean - LOG_2PI) < 1e-3


def test_distributions_of_pytorch_do_not_look_at_their_arguments():
    y = torch.tensor([0.3, 1.9, -0.4], dtype=torch.float64)

    def log_density(theta):
        scale = theta["s"].unsqueeze(1)
        data = D.Normal(theta["mu"].unsqueeze(1), scale).log_prob(y).sum(1)
        return data + D.Normal(0.0, 2.0).log_prob(theta["mu"]) - theta["s"]

    found = crais.log_normalizer(
        log_density, support={"mu": constraints.real, "s": HALF}, **{**OPTIONS, "base": "mixture"}
    )
    assert found.mc_se < 0.1 and D.Distribution._validate_args


def picky(z):
    if bool((z > 3).any()):
        raise ValueError("z is above 3")
    return -0.5 * z.square().sum(1)


def of_matrix(z):
    return -0.5 * z.square().sum(1) + 0 * torch.linalg.cholesky((3 - z).unsqueeze(2)).sum((1, 2))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [(picky, ValueError, "z is above 3"), (of_matrix, RuntimeError, "not positive-definite")],
)
def test_points_that_a_function_refuses_are_zero(function, error, words):
    density = density_of(function, dim=1).log_density
    e = torch.tensor([[0.0], [4.0], [1.0]], dtype=torch.float64, requires_grad=True)
    assert density(e).isnan().tolist() == [False, True, False]
    with pytest.raises(error, match=words):
        density(e.detach().repeat(4, 1) + 5)


# Matrices.


def test_a_wishart_prior_is_conjugate():
    torch.manual_seed(5)
    size, count, df = 3, 20, 6.0
    x = torch.randn(count, size, dtype=torch.float64) @ torch.tensor(
        [[1, 0.8, 0], [0, 0.6, 0.3], [0, 0, 0.5]], dtype=torch.float64
    )
    squares, scale = x.T @ x, 0.5 * torch.eye(size, dtype=torch.float64)

    def log_likelihood(theta):
        matrix = theta["precision"]
        return 0.5 * count * torch.logdet(matrix) - 0.5 * (matrix * squares).sum((1, 2))

    def log_constant(df, precision):
        half = torch.tensor(df / 2, dtype=torch.float64)
        gamma = torch.special.multigammaln(half, size) + half * size * math.log(2)
        return float(gamma - half * torch.logdet(precision))

    truth = log_constant(df + count, scale + squares) - log_constant(df, scale)
    prior = D.Wishart(torch.tensor(df, dtype=torch.float64), precision_matrix=scale)
    close(crais.log_normalizer(log_likelihood, prior={"precision": prior}, **OPTIONS), truth)
    found = crais.log_normalizer(
        lambda theta: log_likelihood(theta) + prior.log_prob(theta["precision"]),
        support={"precision": (constraints.positive_definite, (size, size))}, **OPTIONS,
    )  # fmt: skip
    close(found, truth)


@pytest.mark.parametrize(
    "prior",
    [
        D.Wishart(torch.tensor(6.0).double(), torch.eye(3).double()),
        D.LKJCholesky(2, 1.5),
        D.VonMises(0.3, 2.0),
        D.Exponential(torch.ones(2)),
        D.HalfCauchy(torch.ones(2)),
        D.StudentT(torch.full((2,), 4.0)),
        D.InverseGamma(torch.full((2,), 3.0), 2.0),
        D.Gamma(torch.tensor([400.0, 0.5]), 1.0),
        D.Dirichlet(torch.tensor([2.0, 3.0, 0.7])),
        D.MixtureSameFamily(
            D.Categorical(torch.ones(2, 2)), D.Normal(torch.tensor([[-1.0, 1.0]] * 2), torch.tensor([[0.7, 1.0]] * 2))
        ),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_the_mass_of_a_prior_is_1(prior):
    """By importance sampling in its coordinates, from a distribution of heavier tails."""
    space = of_prior(prior, None)
    torch.manual_seed(0)
    proposal = D.Independent(D.StudentT(torch.full((space.dim,), 4.0).double()), 1)
    e = proposal.sample((50_000,))
    ratio = (space.log_density(e) - proposal.log_prob(e)).exp().nan_to_num(0)
    error = ratio.std() / math.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < 5 * error and error < 0.05 and space.point(e).shape[2:] == prior.event_shape[1:]


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


@pytest.mark.parametrize(
    "constraint", [constraints.positive_definite, constraints.lower_cholesky, constraints.corr_cholesky]
)
def test_the_jacobian_of_matrices(constraint):
    space = of_support((constraint, (3, 3)), None)
    rows, columns = torch.tril_indices(3, 3, -1 if "Corr" in str(constraint) else 0)
    e = torch.randn(space.dim, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda e: space.point(e[None])[0][rows, columns], e)
    torch.testing.assert_close(space.log_density(e[None])[0], torch.linalg.slogdet(jacobian)[1])
    far = 10 * torch.randn(20_000, space.dim, dtype=torch.float64).requires_grad_()
    torch.autograd.grad(torch.logdet(space.point(far)).sum(), far, create_graph=True)  # none is singular

"""log Z from draws of chains that somebody else has run, of densities whose log Z is known."""

import functools
import math

import pytest
import torch
from torch.distributions import Gamma, LogNormal, MultivariateNormal, Normal, Uniform

import crais

OPTIONS = {"progress": False, "threads": 1, "seed": 1, "problems": 4}
FAST = {**OPTIONS, "chains": 8, "steps": 32}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def normal(z):
    return -0.5 * z.square().sum(1)


NORMAL = 1.5 * math.log(2 * math.pi)


def two_modes(z):
    """Masses 0.3 at -5 and 0.7 at 5; log Z is 2."""
    low, high = (Normal(m, s).log_prob(z).sum(1) for m, s in ((-5.0, 1.0), (5.0, 0.5)))
    return 2 + torch.logaddexp(math.log(0.3) + low, math.log(0.7) + high)


def of_modes(is_low):
    z = torch.randn(*is_low.shape, 3)
    return torch.where(is_low.unsqueeze(2), z - 5, 0.5 * z + 5)


def regression():
    """y = x b + noise: a posterior of correlated coefficients, its evidence and exact draws."""
    x = torch.randn(20, 1) + 0.2 * torch.randn(20, 4)
    y = x.sum(1) + torch.randn(20)
    covariance = torch.eye(4) + x.T @ x
    posterior = MultivariateNormal(torch.linalg.solve(covariance, x.T @ y), precision_matrix=covariance)
    evidence = MultivariateNormal(torch.zeros(20), torch.eye(20) + x @ x.T).log_prob(y)
    return lambda b: Normal(b @ x.to(b).T, 1.0).log_prob(y.to(b)).sum(1), float(evidence), posterior.sample((2, 400))


def close(z, truth):
    assert abs(z.log_z - truth) < 4 * z.mc_se + 1e-3 and z.mc_se < 0.05, z
    assert z.ratio.lower - 0.05 < truth < z.ratio.upper + 0.05


def test_a_normal():
    z = crais.log_normalizer(normal, dim=3, draws=torch.randn(4, 200, 3), **OPTIONS)
    close(z, NORMAL)
    assert not z.flagged and "Both ways" in repr(z) and z.methods[0]["base"] == "mixture"


def test_a_mixture():
    z = crais.log_normalizer(two_modes, dim=3, draws=of_modes(torch.rand(4, 200) < 0.3), **FAST)
    close(z, 2.0)
    assert not z.flagged, z.reasons


def test_a_correlated_posterior_with_its_prior():
    likelihood, evidence, draws = regression()
    z = crais.log_normalizer(likelihood, prior=Normal(0.0, 1.0), dim=4, draws=draws, **FAST)
    close(z, evidence)
    assert not z.flagged, z.reasons


@pytest.mark.parametrize("wrong", [lambda e: 1.5 * e, lambda e: e + 0.5], ids=["wide", "shifted"])
def test_draws_of_another_density_are_flagged(wrong):
    z = crais.log_normalizer(normal, dim=3, draws=wrong(torch.randn(4, 300, 3)), **FAST)
    assert z.flagged and "not of this density" in " ".join(z.reasons)


def test_draws_of_one_mode_are_flagged():
    z = crais.log_normalizer(two_modes, dim=3, draws=of_modes(torch.zeros(4, 200, dtype=torch.bool)), **FAST)
    assert any("a search has found mass that the draws lack" in reason for reason in z.reasons)
    close(z, 2.0)


def test_chains_that_each_see_one_mode_are_flagged():
    is_low = torch.tensor([True, False, True, False]).unsqueeze(1).expand(4, 200)
    z = crais.log_normalizer(two_modes, dim=3, draws=of_modes(is_low), **FAST)
    assert any("each has seen a part" in reason for reason in z.reasons)
    assert {z.flag_words(i) for i in range(4)} == {"apart"}


def test_draws_by_name_go_back_to_where_chains_move():
    priors = {"a": Normal(1.0, 2.0), "b": Gamma(2.0, 1.0).expand([2])}
    priors |= {"c": Uniform(-1.0, 3.0), "d": LogNormal(0.0, 1.0)}
    draws = {name: prior.sample((2, 100)) for name, prior in priors.items()}
    count = functools.partial(torch.full_like, fill_value=-2.0)
    z = crais.log_normalizer(lambda theta: count(theta["a"]), prior=priors, draws=draws, **FAST)
    close(z, -2.0)  # a constant likelihood, which is flagged: the posterior is the prior
    assert not any("of this density" in reason for reason in z.reasons)


@pytest.mark.parametrize(
    ("draws", "options", "message"),
    [
        (torch.zeros(3), {}, r"shape \[3\]: give \[chains, draws\] \+ \[3\]"),
        (torch.zeros(4, 6, 3), {}, "give 20 or more of each chain"),
        (torch.full((4, 20, 3), math.nan), {}, "80 of 80 are not finite"),
        ({"a": torch.zeros(4, 20)}, {}, "draws: give an array"),
        (torch.zeros(4, 20, 3), {"base": "laplace"}, "draws or base, not both"),
        (torch.zeros(4, 20, 3), {"method": "ais"}, "the method is bidirectional"),
        (torch.full((4, 20, 3), -1.0), {"prior": Gamma(2.0, 1.0)}, "80 of 80 are not finite, or outside"),
    ],
)
def test_draws_that_do_not_fit_are_refused(draws, options, message):
    with pytest.raises((crais.UsageError, crais.DataError), match=message):
        crais.log_normalizer(normal, dim=3, draws=draws, **{**OPTIONS, **options})

"""Densities and decoders that chains from one normal get wrong: right, or flagged."""

import math

import pytest
import torch

import crais

LOG_2PI = math.log(2 * math.pi)


def normal(x):
    return -0.5 * x * x - 0.5 * LOG_2PI


DOUBLE_WELL = crais.yardstick.get("double-well").log_density


@pytest.mark.parametrize("name", ["double-well", "rosenbrock"])
def test_densities_without_options_are_right(name):
    density = crais.yardstick.get(name)
    z = crais.log_normalizer(density.log_density, dim=density.dim, progress=False)
    assert not z.flagged and not z.reasons
    assert abs(z.mean - density.log_z) < max(5 * z.mc_se, 0.005)
    assert math.hypot(z.mc_se, z.bias) < 0.1  # the default `error`
    spent = z.methods[0]["evaluations_per_problem"]
    assert spent["base"] + spent["tuning"] + spent["estimating"] <= 1.02e5


def test_starts_lead_to_a_spike_that_no_search_finds():
    spike = crais.yardstick.get("two-widths").log_density  # 0.1 N(0, I) + 0.9 N(3, 0.01^2 I)
    missed = crais.log_normalizer(spike, dim=10, progress=False)
    assert missed.mean == pytest.approx(math.log(0.1), abs=0.01)
    z = crais.log_normalizer(spike, dim=10, starts=torch.full((1, 10), 3.001), progress=False)
    assert abs(z.mean) < max(5 * z.mc_se, 0.005)
    with pytest.raises(crais.UsageError, match="starts are .S, 10.; these are .10."):
        crais.log_normalizer(spike, dim=10, starts=[3.0] * 10, progress=False)
    with pytest.raises(crais.UsageError, match="laplace looks for no modes"):
        crais.log_normalizer(spike, dim=10, base="laplace", starts=[[3.0] * 10], progress=False)


def test_a_base_that_misses_a_mode_is_flagged():
    z = crais.log_normalizer(DOUBLE_WELL, dim=1, base="laplace", progress=False)
    assert z.flagged and "second opinion" in z.reasons[0]
    assert ">=9.2" in repr(z) and "Flagged as a whole" in repr(z)
    assert z.summary["second_opinion"]["log_normalizer"] == pytest.approx(9.3745, abs=0.02)
    silent = crais.log_normalizer(DOUBLE_WELL, dim=1, base="laplace", witness="none", progress=False)
    assert not silent.flagged


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_region_without_numbers_is_said_where_chains_seldom_go(bad):
    def density(z):
        modes = torch.logaddexp(normal(z[:, 0]) + math.log(0.7), normal(z[:, 0] - 6) + math.log(0.3))
        return torch.where(z[:, 0] < 4, modes, bad)

    z = crais.log_normalizer(density, dim=1, base="prior", witness="none", progress=False)
    assert z.methods[0]["nonfinite_proposals"] < 0.01 * z.evaluations.sum()
    assert z.flagged and any("NaN" in reason for reason in z.reasons)


class Decoder(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear, self.features = torch.nn.Linear(2, 10), features

    def decode(self, z):
        return self.linear(self.features(z))


@pytest.mark.parametrize(
    ("features", "sd"),
    [(lambda z: torch.stack([z[:, 0] ** 2, z[:, 1]], 1), 0.1), (torch.relu, 0.05)],
    ids=["two modes", "a plain beside a kink"],
)
def test_images_of_several_modes_are_right_or_flagged(features, sd):
    torch.manual_seed(0)
    model = Decoder(features).eval()
    with torch.no_grad():
        x = model.decode(torch.randn(24, 2))
        x = x + sd * torch.randn_like(x)
        grid = torch.linspace(-6, 6, 801, dtype=torch.float64)
        z = torch.cartesian_prod(grid, grid)
        mean = model.double().decode(z)
        model.float()
        log_prior = normal(z).sum(1) + 2 * math.log(0.015)
        log_x = [normal((row - mean) / sd).sum(1) - 10 * math.log(sd) for row in x.double()]
        truth = torch.stack([(log_prior + each).logsumexp(0) for each in log_x]).numpy()
    r = crais.evaluate(model, x, likelihood=crais.Gaussian(sd), latent=2, progress=False)
    error = r.log_likelihood - truth
    wrong = abs(error) > 5 * r.std_error + abs(r.bias_each) + 0.02
    assert (wrong & (r.flags == 0)).sum() <= 1
    assert (r.flags != 0).sum() <= 8
    assert r.flagged or abs(error[r.flags == 0].mean()) < 0.1


def test_modes_between_the_points_of_a_sweep_are_found():
    torch.manual_seed(6)
    w = 1.5 * torch.randn(2, 6)
    x = torch.sin(3 * torch.randn(6, 2) @ w) + 0.15 * torch.randn(6, 6)
    model = {"decoder": lambda z: torch.sin(3 * z @ w), "latent": 2, "likelihood": crais.Gaussian(0.15)}
    r = crais.evaluate(images=x[1:2], control=0, progress=False, **model)
    assert r.log_likelihood[0] == pytest.approx(-6.976, abs=0.1)  # by a grid of 1600^2 points


def test_the_neck_of_a_model_that_is_not_rewritten_is_found():
    schools = crais.yardstick.get("eight-schools")
    z = crais.log_normalizer(schools.log_density, dim=10, seed=1, progress=False)
    assert not z.flagged
    assert z.mean == pytest.approx(schools.log_z, abs=max(5 * z.mc_se, 0.005))
    assert z.mc_se < 0.02
    # The share of the neck, by quadrature over log tau and mu.
    weights = torch.as_tensor(z.log_weights).double().softmax(0)
    in_neck = torch.as_tensor(z.samples)[:, 1] < math.log(0.5)
    assert float(weights[in_neck].sum()) == pytest.approx(0.1009, abs=0.03)


def test_vague_modes_give_way_to_what_settles():
    shells = crais.yardstick.get("shells-10")
    z = crais.log_normalizer(shells.log_density, dim=10, seed=5003, progress=False)
    assert not z.flagged  # although the search of this seed may have missed a mode
    assert z.mean == pytest.approx(shells.log_z, abs=max(5 * z.mc_se, 0.005))
    assert z.mc_se < 0.02

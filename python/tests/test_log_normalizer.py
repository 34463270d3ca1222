"""`crais.log_normalizer`: densities that are Python functions."""

import math
import signal
import time

import numpy as np
import pytest
import torch

import crais
from crais.particles import resampled

pytestmark = pytest.mark.usefixtures("compiled")


def skewed(z):
    """A banana of the first two: exp(-z1^2/2 - (z2 - z1^2 / 4)^2 / 0.5), Z = 2 pi 0.5."""
    x, y = z[:, 0], z[:, 1]
    return -0.5 * x.square() - 0.5 * ((y - x.square() / 4) / 0.5).square()


def narrow(z):
    """N(1, 0.3^2) in each coordinate, with Z = 1."""
    return -0.5 * ((z - 1) / 0.3).square().sum(1) - z.shape[1] * math.log(0.3 * math.sqrt(2 * math.pi))


# No search for a base, no second opinion: seconds each.
ALONE = {"base": "prior", "witness": "none"}


def normalizer(density, dim=None, **options):
    return crais.log_normalizer(density, dim=dim, progress=False, **options)


def test_a_generator_of_numpy_draws_the_seed():
    rng, alike = np.random.default_rng(3), np.random.default_rng(3)
    first, second = (normalizer(narrow, 2, rng=rng, **ALONE) for _ in range(2))
    assert normalizer(narrow, 2, rng=alike, **ALONE).log_z == first.log_z != second.log_z
    assert first.summary["settings"]["seed"] == np.random.default_rng(3).integers(2**63)
    with pytest.raises(crais.UsageError, match="^give seed or rng, not both"):
        normalizer(narrow, 2, rng=rng, seed=1)


def weights_of(found):
    return np.exp(found.log_weights - found.log_weights.max())


def test_a_known_normaliser():
    found = normalizer(skewed, 2, steps=200, problems=20, chains=64, **ALONE)
    assert abs(found.mean - math.log(math.pi)) < 5 * found.mc_se
    assert found.mc_se < 0.05 and len(found.log_normalizer) == 20
    assert max(map(len, repr(found).splitlines())) <= 80 and not hasattr(found, "log_likelihood")
    plain = normalizer(lambda z: -0.5 * z.square().sum(1), 2)
    assert plain.methods[0]["evaluations_per_problem"]["total"] * 10 < 20_000


def test_a_target_has_the_program_s_bits_and_page(program, page_run, tmp_path):
    options = {"seed": 4, "steps": 20, "problems": 4, "chains": 32}
    flags = [f"--{name}={value}" for name, value in options.items()]
    out = tmp_path / "out"
    printed = program("estimate-logz", "u5", *flags, "--format=csv", "--quiet", "--out", out)
    header, row = (line.split(",") for line in printed.splitlines()[:2])
    named = normalizer("u5", **options)
    assert float(row[header.index("log_normalizer")]) == named.mean
    named.report(tmp_path / "page.html")
    page, wanted = (page_run(file) for file in (tmp_path / "page.html", out / "report.html"))
    for part in ("title", "tables", "estimates", "schedule", "particles"):
        assert page[part] == wanted[part], part
    assert page["command"].startswith("estimate-logz u5 --chains 32")


def test_a_function_has_the_estimates_of_the_same_target():
    named = normalizer("normal:3,mean=1,sd=0.5", steps=20)
    function = normalizer(lambda z: -0.5 * ((z - 1) / 0.5).square().sum(1), 3, steps=20)
    np.testing.assert_allclose(function.log_normalizer, named.log_normalizer, atol=1e-9)


def test_the_page_of_a_function_has_its_notes_and_names_no_command(page_run, tmp_path):
    found = normalizer(lambda z: -0.5 * z.square().sum(), 3, steps=8, problems=2, chains=8)
    found.report(tmp_path / "page.html")
    page = page_run(tmp_path / "page.html")
    assert page["summary"]["notes"] == found.notes and found.notes[0] in repr(found)
    assert page["summary"]["in_memory"]


def in_mode(layer, training):
    net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.SiLU(), layer, torch.nn.Linear(32, 1))
    net.double().train(training)
    return lambda z: 3 * net(z).squeeze(1) - 0.5 * z.square().sum(1)


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(32)])
def test_layers_in_training_mode_are_refused(layer):
    with pytest.raises(crais.UsageError, match=rf"2 \({type(layer).__name__}\) is in training mode: call"):
        normalizer(in_mode(layer, True), 4)
    assert math.isfinite(normalizer(in_mode(layer, False), 4, steps=8).mean)


def test_a_density_that_changes_during_a_run_is_found_out():
    calls = []

    def drifting(z):
        calls.append(1)
        return skewed(z) + 0.01 * max(0, len(calls) - 50)

    with pytest.raises(crais.UsageError, match="log density has changed while it was evaluated"):
        normalizer(drifting, 2, steps=50, **ALONE)


def test_points_and_values_are_freed():
    seen = []

    def density(z):
        both = z, narrow(z)
        seen.extend(one.untyped_storage()._weak_ref() for one in both)
        return both[1]

    normalizer(density, 2, steps=4, **ALONE)
    assert seen and all(map(torch.UntypedStorage._expired, seen))


def test_a_density_that_is_nowhere_at_the_checks_is_the_run_s_to_judge():
    with pytest.raises(crais.DataError, match="-inf"):
        normalizer(lambda z: torch.where(z[:, 0] > 50, skewed(z), -math.inf), 2, **ALONE)


def funnel(z):
    """v ~ N(0, 9) and nine others of variance exp(v): log Z = 0."""
    v, x = z[:, :1], z[:, 1:]
    log_scale = 0.5 * (1 + x.shape[1]) * math.log(2 * math.pi) + math.log(3)
    return (-(v**2) / 18).sum(1) - 0.5 * (x**2 * torch.exp(-v) + v).sum(1) - log_scale


def test_a_funnel_is_right_and_its_samples_are_those_of_the_density():
    """The base changes variables; results are in the user's own."""
    z = normalizer(funnel, 10, seed=3)
    assert not z.flagged
    assert abs(z.log_z) < 0.02
    v, x, weights = z.samples[:, 0], z.samples[:, 1], weights_of(z)
    assert np.log(np.exp(z.log_weights).mean()) == pytest.approx(z.log_z, abs=1e-9)
    assert abs(np.average(v, weights=weights)) < 0.3
    assert abs(np.average(v**2, weights=weights) - 9) < 1
    for neck in (v < -4, v > 4):  # in the neck and in the mouth alike
        assert abs(np.average(x**2 * np.exp(-v), weights=weights * neck) - 1) < 0.2


def test_samples_of_names_are_in_the_users_coordinates():
    prior = {"scale": torch.distributions.LogNormal(0.0, 0.5), "shift": torch.distributions.Normal(2, 1)}
    likelihood = lambda theta: -0.5 * (theta["shift"] - 3).square() - 0 * theta["scale"]
    z = normalizer(likelihood, prior=prior, budget=60_000)
    weights = weights_of(z)
    mean = {name: np.average(value, weights=weights) for name, value in z.samples.items()}
    error = 1 / math.sqrt(weights.sum() ** 2 / (weights**2).sum())  # of a mean, in standard deviations
    assert error < 0.05
    assert mean["shift"] == pytest.approx(2.5, abs=4 * math.sqrt(0.5) * error)
    assert mean["scale"] == pytest.approx(np.exp(0.125), abs=4 * 0.6 * error)
    assert z.samples["scale"].min() > 0
    one = normalizer(lambda theta: 0 * theta["theta"], prior={"theta": prior["shift"]}, chains=4, steps=4)
    assert list(one.samples) == ["theta"]


def test_draws_of_equal_weight():
    z, weights = torch.arange(4.0).view(1, 4, 1), torch.tensor([[0.5, 0.25, 0.25, 0.0]])
    counts = resampled(z, weights.log().double(), 400, seed=1).flatten().long().bincount(minlength=4)
    assert counts.tolist() == [200, 100, 100, 0]


def test_arviz_has_a_chain_for_each_replicate():
    pytest.importorskip("arviz")
    z = normalizer(narrow, 2, budget=20_000, problems=5)
    posterior = z.to_arviz(draws=100).posterior["theta"]
    assert posterior.shape == (5, 100, 2)
    assert float(posterior.mean()) == pytest.approx(1, abs=0.2)


def test_particles_that_were_not_kept():
    z = normalizer(narrow, 2, method="iwae:100", base="prior")
    with pytest.raises(crais.UsageError, match="the run kept no particles"):
        z.samples  # noqa: B018


# How far to go.


def test_a_slow_density_says_how_long_a_run_takes():
    def slow(z):
        time.sleep(0.3 * (len(z) == 4))  # as the checks call it
        return narrow(z)

    with pytest.warns(UserWarning, match=r"a call of the density takes 0.3 s, .*: 1 to 1\d minutes; chunk=10"):
        normalizer(slow, 2, steps=4, **ALONE)


def test_rounds_go_on_until_the_error_is_small():
    found = normalizer(narrow, 4, error=0.01, **ALONE)
    sizes = [each["evaluations"] for each in found.rounds]
    assert len(sizes) >= 3 and sizes[0] == 2000  # draws of the base, then rounds of chains
    assert all(1.6 < b / a < 2.4 for a, b in zip(sizes[1:], sizes[2:], strict=False))
    farthest = 0.01 * math.sqrt(8 / 1.5)  # an error from which eight times the length leads to 0.01
    assert found.rounds[-1]["error"] < farthest < found.rounds[0]["error"]
    assert abs(found.mean) < 5 * found.mc_se and found.mc_se < 0.02
    assert found.mean not in [each["log_z"] for each in found.rounds]
    assert 2 < found.barrier < 20
    assert "barrier" in found.details().partition("Rounds")[2]
    assert found.to_dict()["rounds"][0]["evaluations"] == sizes[0]
    exact = normalizer(narrow, 4, steps=16, chains=16, **ALONE)
    assert exact.rounds == [] and exact.barrier is None


def test_evaluations_that_do_not_suffice_are_said():
    found = normalizer(narrow, 4, error=1e-3, max_evals=40_000, **ALONE)
    assert found.flagged and all(found.flag_words(i) == "target" for i in range(len(found)))
    assert "(target)" in found.reasons[0] and "`max_evals`" in repr(found)


def test_ctrl_c_keeps_the_last_round():
    calls = []

    def slow(z):
        calls.append(1)
        if len(calls) == 1000:
            signal.raise_signal(signal.SIGINT)
        return narrow(z)

    with pytest.raises(crais.Interrupted) as stopped:
        normalizer(slow, 2, error=1e-6, threads=1, problems=5, **ALONE)
    found = stopped.value.result
    assert found.mean == found.rounds[-1]["log_z"] and abs(found.mean) < 0.1
    assert found.flagged and found.flag_words(0) == "target"

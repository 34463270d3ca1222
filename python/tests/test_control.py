"""The control of a run: base and plan on images that the model draws."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import crais

OPTIONS = {"latent": 3, "seed": 5, "progress": False}


class Sphere(nn.Module):
    """A decoder of directions alone: the posterior is a cone, and few chains reach all of it."""

    def __init__(self, is_on_sphere: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 40)).eval()
        self.is_on_sphere = is_on_sphere
        with torch.no_grad():
            for one in self.net.parameters():
                one.normal_(0, (1.5 if is_on_sphere else 0.5) / math.sqrt(one.shape[-1]))

    def decode(self, z: Tensor) -> Tensor:
        return self.net(nn.functional.normalize(z, dim=1) if self.is_on_sphere else z)

    def images(self) -> Tensor:
        with torch.no_grad():
            mean = self.decode(torch.randn(20, 3))
        return mean + 0.2 * torch.randn_like(mean)


@pytest.fixture(scope="module")
def normal():
    model = Sphere(is_on_sphere=False)
    return model, model.images(), crais.evaluate(model, model.images(), **GAUSSIAN)


GAUSSIAN = {"likelihood": crais.Gaussian(0.2), **OPTIONS}


def test_a_run_that_is_right_has_no_doubt(normal):
    _, _, r = normal
    assert not r.flagged and r.control.missed == 0 and r.control.images == 16
    assert abs(r.control.gap) < 5 * r.control.se + 0.01
    assert r.control.upper - r.control.lower == pytest.approx(r.control.gap)
    assert "on 16 images that the model draws" in repr(r) and "ESS" in r.details()


def test_a_run_that_misses_a_part_is_doubtful():
    model = Sphere(is_on_sphere=True)
    r = crais.evaluate(model, model.images(), control=48, **GAUSSIAN)
    assert r.flagged and r.control.gap > 1 and r.control.missed > 1
    assert "upper bound of log p(x) is higher" in r.reasons[0]
    assert "Flagged as a whole" in repr(r)


def test_estimates_do_not_depend_on_it(normal):
    model, images, r = normal
    without = crais.evaluate(model, r.images, control=0, **GAUSSIAN)
    assert without.control is None and "Control: none" in repr(without)
    assert np.array_equal(without.log_likelihood, r.log_likelihood)
    more = crais.evaluate(model, r.images, control=24, **GAUSSIAN)
    assert more.control.images == 24 and more.control.gap != r.control.gap


def test_chains_double_while_that_brings_the_bounds_nearer(normal):
    model, _, r = normal
    by_default, fixed, *short = (
        crais.evaluate(model, r.images, base="prior", **options, **GAUSSIAN)
        for options in ({}, {"steps": 96}, {"error": 1e-3, "max_evals": 1000}, {"max_evals": 1000})
    )
    assert [one.methods[0]["transitions"] for one in (by_default, fixed, r)] == [768, 96, 96]
    assert by_default.control.gap < 0.75 * fixed.control.gap
    for flagged in short:
        assert flagged.reasons[0].startswith("on images that the model draws, the gap")
    assert not fixed.flagged and not by_default.flagged


def test_resume_reads_it(normal, tmp_path):
    model, _, r = normal
    r.save(tmp_path / "out")
    again = crais.evaluate(model, r.images, out=tmp_path / "out", resume=True, **GAUSSIAN)
    assert again.to_dict()["control"] == r.to_dict()["control"]


def test_images_that_the_model_hardly_draws_are_harder(normal):
    model, _, _ = normal
    r = crais.evaluate(model, 10 * torch.randn(20, 40), base="prior", **GAUSSIAN)
    assert r.flagged and "clearly harder" in r.reasons[0]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "iwae:20"}, "no method anneals"),
        ({"resample": "systematic"}, "chains that resample do not run back"),
    ],
)
def test_runs_without_one_say_why(normal, options, why):
    model, _, r = normal
    found = crais.evaluate(model, r.images, **options, **GAUSSIAN)
    assert found.control is None and why in repr(found)
    with pytest.raises(crais.UsageError, match=why):
        crais.evaluate(model, r.images, control=16, **options, **GAUSSIAN)


def test_a_model_that_cannot_draw_has_none():
    log_joint = lambda z, x: -0.5 * (z.square().sum(1) + (x - z).square().sum(1))
    r = crais.evaluate(log_joint=log_joint, images=torch.zeros(4, 3), **OPTIONS)
    assert r.control is None and "the model cannot draw images" in repr(r)


def test_a_model_whose_draws_are_its_own_has_one():
    for control, images in ((None, 16), (40, 40)):
        made = {"decoder": lambda z: torch.distributions.Poisson(z.exp()), "images": torch.ones(4, 3)}
        found = crais.evaluate(**made, control=control, **OPTIONS).control
        assert found.images == images and abs(found.gap) < 0.05 + 4 * found.se

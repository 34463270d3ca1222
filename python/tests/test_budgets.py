"""Budgets of decoders that crais does not recognise: always an estimate, never more than asked for."""

import pytest
import torch
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")

OPTIONS = {"latent": 20, "likelihood": crais.Bernoulli(), "progress": False}


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 30)).eval()


@pytest.mark.parametrize(("budget", "count"), [(256, 1), (400, 3), (1024, 40), (3000, 1)])
def test_a_budget_ends_in_an_estimate(decoder, budget, count):
    torch.manual_seed(1)
    images = torch.bernoulli(decoder(torch.randn(count, 20)).sigmoid())
    r = crais.evaluate(decoder=decoder, images=images, budget=budget, **OPTIONS)
    spent = r.methods[0]["evaluations_per_image"]
    parts = spent["base"] + spent["tuning"] + spent["estimating"]
    assert spent["total"] == pytest.approx(parts, abs=1e-6)
    assert 0.9 * budget < spent["total"] <= budget
    assert spent["base"] + spent["tuning"] <= 0.55 * budget
    assert -30 < r.mean < -10


def test_few_images_are_cut_for_several_threads(decoder):
    one, two = (
        crais.evaluate(decoder=decoder, images=torch.zeros(50, 30), threads=n, budget=400, **OPTIONS) for n in (1, 2)
    )
    assert one.summary["settings"]["chunk"] == 7
    assert (one.log_likelihood == two.log_likelihood).all()
    for result in (one, two):
        del result.summary["settings"]["threads"]
    assert one.summary["settings"] == two.summary["settings"]

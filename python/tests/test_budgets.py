"""Budgets of decoders that crais does not recognise: always an estimate, never more than asked for."""

import pytest
import torch
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 30)).eval()


@pytest.mark.parametrize("budget", [256, 400, 1024, 3000])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_budget_ends_in_an_estimate(decoder, budget, count):
    torch.manual_seed(1)
    images = torch.bernoulli(decoder(torch.randn(count, 20)).sigmoid())
    r = crais.evaluate(
        decoder=decoder,
        images=images,
        latent=20,
        likelihood=crais.Bernoulli(),
        budget=budget,
        progress=False,
    )
    spent = r.methods[0]["evaluations_per_image"]
    assert spent["total"] == pytest.approx(
        spent["base"] + spent["tuning"] + spent["estimating"], abs=1e-6
    )
    assert 0.9 * budget < spent["total"] <= budget
    assert spent["base"] + spent["tuning"] <= 0.55 * budget
    assert -30 < r.mean < -10


def test_few_images_are_cut_for_several_threads(decoder):
    images = torch.zeros(50, 30)
    options = {"latent": 20, "likelihood": crais.Bernoulli(), "progress": False, "budget": 400}
    one = crais.evaluate(decoder=decoder, images=images, threads=1, **options)
    assert one.summary["settings"]["chunk"] == 7
    two = crais.evaluate(decoder=decoder, images=images, threads=2, **options)
    assert (one.log_likelihood == two.log_likelihood).all()
    assert one.summary["settings"] == two.summary["settings"] | {
        "threads": one.summary["settings"]["threads"]
    }

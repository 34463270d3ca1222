"""Encoders that return distributions, mappings, one tensor of both, a draw beside them."""

from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import distributions as D
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")

CHEAP = {"steps": 8, "chains": 8, "base": "encoder", "chunk": 8, "progress": False}


class Output(OrderedDict):
    """As in pythae and transformers."""


def draw(m, s):
    return m + torch.randn_like(m)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda m, s: [m, s],
        lambda m, s: torch.cat([m, s], 1),
        lambda m, s: (torch.cat([m, s], 1),),
        lambda m, s: (draw(m, s), m, s),
        lambda m, s: (m, s, draw(m, s)),
        lambda m, s: (m, m, s),
        lambda m, s: (m, s, m),
        lambda m, s: {"mean": m, "log_var": s},
        lambda m, s: {"z": draw(m, s), "mu": m, "std": (0.5 * s).exp()},
        lambda m, s: {"loc": m, "log_scale": 0.5 * s},
        lambda m, s: {"qz_m": m, "qz_v": s.exp()},
        lambda m, s: {"loc": m, "scale_tril": (0.5 * s).exp().diag_embed()},
        lambda m, s: Output(embedding=m, log_covariance=s),
        lambda m, s: SimpleNamespace(latent_dist=SimpleNamespace(mean=m, logvar=s)),
        lambda m, s: (D.Normal(m, (0.5 * s).exp()), draw(m, s)),
        lambda m, s: {"qz": D.Normal(m, (0.5 * s).exp()), "z": draw(m, s)},
        lambda m, s: D.Normal(m, (0.5 * s).exp()),
        lambda m, s: D.Independent(D.Normal(m, (0.5 * s).exp()), 1),
        lambda m, s: D.MultivariateNormal(m, scale_tril=(0.5 * s).exp().diag_embed()),
    ],
)
def test_the_code_is_found(curved, images, wrap):
    same = {"likelihood": crais.Bernoulli(), **CHEAP}
    wanted = crais.evaluate(curved, images, **same)
    found = crais.evaluate(curved, images, encoder=lambda x: wrap(*curved.encode(x)), **same)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda m, s: m[:, :3], r"mean and log_var .*\[2, 3\]"),
        (lambda m, s: {"mean": m}, r"a dict of mean \[2, 4\]"),
        (lambda m, s: (m, s, s.exp()), r"a tuple of 0 \[2, 4\], 1 \[2, 4\], 2 \[2, 4\]"),
        (lambda m, s: D.Laplace(m, s.exp()), "Laplace"),
        (lambda m, s: None, "a NoneType"),
        (lambda m, s: (draw(m, s), s), "differs from call to call: is a latent drawn"),
        (lambda m, s: (m, s[:, :2]), "mean and log_var"),
    ],
)
def test_codes_that_are_refused(curved, images, wrap, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.evaluate(
            curved, images, likelihood=crais.Bernoulli(), latent=4, encoder=lambda x: wrap(*curved.encode(x)), **CHEAP
        )


class Lit(nn.Module):
    """A module of training around the model."""

    def __init__(self, vae):
        super().__init__()
        self.vae, self.loss = vae, nn.MSELoss()


@pytest.mark.parametrize(
    "around",
    [nn.DataParallel, Lit, torch.compile, lambda m: nn.DataParallel(Lit(m)), lambda m: Lit(nn.DataParallel(m))],
)
def test_wrappers_are_unwrapped(curved, images, around):
    same = {"likelihood": crais.Bernoulli(), **CHEAP}
    wanted = crais.evaluate(curved, images, **same)
    found = crais.evaluate(around(curved).eval(), images, **same)
    assert np.array_equal(found.log_likelihood, wanted.log_likelihood)


def test_two_models_in_one_are_not_chosen_between(curved, mlp, images):
    both = Lit(curved)
    both.other = mlp
    with pytest.raises(crais.UsageError, match="neither decode"):
        crais.evaluate(both.eval(), images, likelihood=crais.Bernoulli(), **CHEAP)


@pytest.mark.parametrize("around", [nn.DataParallel, torch.compile])
def test_functions_are_unwrapped(mlp, images, around, tmp_path):
    """The evaluator is the one of the bare function: its layers are known."""
    same = {"images": images.flatten(1), "likelihood": crais.Bernoulli(), "latent": 4, **CHEAP}
    decoder, encoder = mlp.decoder, lambda x: mlp.encode(x)
    wanted = crais.evaluate(decoder=decoder, encoder=encoder, **same)
    wrapped = encoder if around is nn.DataParallel else around(encoder)
    found = crais.evaluate(decoder=around(decoder), encoder=wrapped, **same)
    assert found.summary["evaluator"] == wanted.summary["evaluator"] != "pytorch"
    report = crais.export(
        tmp_path / "m.pt", decoder=around(decoder), likelihood=crais.Bernoulli(), latent=4,
        image_shape=(36,), quiet=True,
    )  # fmt: skip
    assert report.kind == "weights"
    assert np.array_equal(found.log_likelihood, wanted.log_likelihood)

"""Encoders that return distributions, mappings, one tensor of both, a draw beside them."""

from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from support import alike, equal, evaluate
from torch import distributions as D
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")


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
    encode = lambda x: wrap(*curved.encode(x))
    alike(*(evaluate(curved, images, base="encoder", encoder=one) for one in (encode, curved.encode)))


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda m, s: m[:, :3], r"mean and log_var .*\[2, 3\]"),
        (lambda m, s: {"mean": m}, r"a dict of mean \[2, 4\]"),
        (lambda m, s: (m, s, s.exp()), r"a tuple of 0 \[2, 4\], 1 \[2, 4\], 2 \[2, 4\]"),
        (lambda m, s: D.Laplace(m, s.exp()), "Laplace"),
        (lambda m, s: None, "a NoneType"),
        (lambda m, s: (draw(m, s), s), "differs from call to call .a latent drawn"),
        (lambda m, s: (m, s[:, :2]), "mean and log_var"),
    ],
)
def test_codes_that_are_refused(curved, images, wrap, words):
    with pytest.raises(crais.UsageError, match=words):
        evaluate(curved, images, latent=4, encoder=lambda x: wrap(*curved.encode(x)))


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
    equal(evaluate(around(curved).eval(), images, base="encoder"), evaluate(curved, images, base="encoder"))


def test_two_models_in_one_are_not_chosen_between(curved, mlp, images):
    both = Lit(curved)
    both.other = mlp
    with pytest.raises(crais.UsageError, match="neither decode"):
        evaluate(both.eval(), images)
    with pytest.raises(crais.UsageError, match="neither decode"):
        evaluate(mlp.decoder, images.flatten(1), latent=5)


@pytest.mark.parametrize("around", [nn.DataParallel, torch.compile])
def test_functions_are_unwrapped(mlp, images, around, tmp_path):
    same = {"images": images.flatten(1), "latent": 4, "base": "encoder"}
    decoder, encoder = mlp.decoder, lambda x: mlp.encode(x)
    wanted = evaluate(decoder=decoder, encoder=encoder, **same)
    wrapped = encoder if around is nn.DataParallel else around(encoder)
    found = evaluate(decoder=around(decoder), encoder=wrapped, **same)
    assert found.summary["evaluator"] == wanted.summary["evaluator"] != "pytorch"
    equal(found, wanted)
    equal(evaluate(decoder, encoder=encoder, **same), wanted)
    described = {"likelihood": crais.Bernoulli(), "latent": 4, "image_shape": (36,)}
    assert crais.export(tmp_path / "m.pt", decoder=around(decoder), **described).kind == "weights"

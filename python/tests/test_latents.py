"""Latents of any shape: numbers are those of the same model with rows."""

import numpy as np
import pytest
import torch
from torch import distributions as D
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")

CHEAP = {"steps": 20, "chains": 8, "base": "laplace", "chunk": 8, "progress": False}


class Maps(nn.Module):
    """Latents [B, 3, 2, 2], of convolutions."""

    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(3)
        self.to_maps = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 6, 3, 2, 1))
        self.from_maps = nn.Sequential(
            nn.ConvTranspose2d(3, 5, 4, 2, 1),
            activation,
            nn.Conv2d(5, 1, 3, padding=1),
            nn.Flatten(),
        )

    def encode(self, x):
        mean, log_var = self.to_maps(x).chunk(2, 1)
        return mean, log_var

    def decode(self, z):
        assert z.shape[1:] == (3, 2, 2)
        return self.from_maps(z)


@pytest.fixture(params=["known layers", "others"])
def maps(request):
    return Maps(nn.ReLU() if request.param == "known layers" else nn.GELU("tanh")).eval()


@pytest.fixture
def binary():
    return (torch.rand(12, 16, generator=torch.Generator().manual_seed(4)) < 0.4).float()


def rows(model, images, **options):
    """What crais makes of it by hand-written views."""
    return crais.evaluate(
        decoder=lambda z: model.decode(z.view(-1, 3, 2, 2)), images=images, latent=12,
        **({"likelihood": crais.Bernoulli(), **CHEAP} | options),
    )  # fmt: skip


def same(found, wanted):
    assert found.summary["evaluator"] == wanted.summary["evaluator"]
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-4, atol=1e-3)


def test_maps_are_given_back_in_shape(maps, binary):
    options = {"likelihood": crais.Bernoulli(), **CHEAP}
    wanted = rows(maps, binary)
    same(crais.evaluate(decoder=maps.decode, images=binary, latent=(3, 2, 2), **options), wanted)
    maps.latent = (3, 2, 2)
    same(crais.evaluate(decoder=maps.decode, images=binary, latent=maps.latent, **options), wanted)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda mean, log_var: (mean, log_var),
        lambda mean, log_var: torch.cat([mean, log_var], 1),
        lambda mean, log_var: D.Normal(mean, (0.5 * log_var).exp()),
        lambda mean, log_var: {"mean": mean, "logvar": log_var},
    ],
)
def test_the_encoder_says_the_shape(maps, binary, wrap):
    def encode(x):
        mean, log_var = maps.encode(x)
        return mean.flatten(1), log_var.flatten(1)

    wanted = rows(maps, binary, encoder=encode, base="encoder")
    options = {"likelihood": crais.Bernoulli(), **CHEAP, "base": "encoder"}
    found = crais.evaluate(maps, binary, encoder=lambda x: wrap(*maps.encode(x)), **options)
    same(found, wanted)


def test_priors_and_joints_of_maps(maps, binary):
    wanted = rows(maps, binary, prior=crais.GaussianPrior(torch.full((12,), 0.5), 0.8))
    options = {"images": binary, "latent": (3, 2, 2), **CHEAP}
    prior = D.Independent(D.Normal(torch.full((3, 2, 2), 0.5), 0.8), 3)
    for given in ({"prior": prior}, {"log_prior": prior.log_prob}):
        found = crais.evaluate(decoder=maps.decode, likelihood=crais.Bernoulli(), **given, **(options | {"steps": 100}))
        assert found.mean == pytest.approx(wanted.mean, abs=0.05)
    likelihood = crais.Bernoulli()
    joint = lambda z, x: prior.log_prob(z) + likelihood.log_prob(x, maps.decode(z))
    found = crais.evaluate(log_joint=joint, **(options | {"steps": 100}))
    assert found.mean == pytest.approx(wanted.mean, abs=0.05)


def test_certificates_and_exports_of_maps(maps, binary, tmp_path):
    given = {"likelihood": crais.Bernoulli(), "encoder": maps.encode, "latent": (3, 2, 2)}
    bounds = crais.certify(decoder=maps.decode, num_images=20, image_shape=(16,), steps=50, progress=False, **given)
    assert abs(bounds.gap) < 0.5
    path = tmp_path / "maps.pt"
    crais.export(path, decoder=maps.decode, image_shape=(16,), quiet=True, **given)
    found, wanted = crais.evaluate(path, binary, **CHEAP), rows(maps, binary)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.02)


@pytest.mark.parametrize("latent", [0, (), (3, 0), "many", (3, "a"), 10**9, (4096, 4097)])
def test_shapes_that_are_none(maps, binary, latent):
    with pytest.raises(crais.UsageError, match="latent is a number D or a shape"):
        crais.evaluate(decoder=maps.decode, images=binary, latent=latent, likelihood=crais.Bernoulli(), **CHEAP)


def test_without_a_shape_the_message_says_what_to_type(maps, binary):
    with pytest.raises(crais.UsageError, match=r"or its shape, as latent=\(4, 8, 8\)"):
        crais.evaluate(decoder=maps.decode, images=binary, likelihood=crais.Bernoulli(), **CHEAP)

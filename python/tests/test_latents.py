"""Latents of any shape: numbers are those of the same model with rows."""

import pytest
import torch
from support import alike, evaluate
from torch import distributions as D
from torch import nn

import crais

pytestmark = pytest.mark.usefixtures("compiled")


class Maps(nn.Module):
    """Latents [B, 3, 2, 2], of convolutions."""

    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(3)
        self.to_maps = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 6, 3, 2, 1))
        convolutions = nn.ConvTranspose2d(3, 5, 4, 2, 1), activation, nn.Conv2d(5, 1, 3, padding=1)
        self.from_maps = nn.Sequential(*convolutions, nn.Flatten())

    def encode(self, x):
        mean, log_var = self.to_maps(x).chunk(2, 1)
        return mean, log_var

    def decode(self, z):
        assert z.shape[1:] == (3, 2, 2)
        return self.from_maps(z)


@pytest.fixture(params=["known layers", "others"])
def maps(request):
    return Maps(nn.ReLU() if request.param == "known layers" else nn.GELU("tanh")).eval()


BINARY = (torch.rand(12, 16, generator=torch.Generator().manual_seed(4)) < 0.4).float()
LAPLACE = {"base": "laplace", "steps": 20}


def rows(model, **options):
    """What crais makes of it by hand-written views."""
    decoder = lambda z: model.decode(z.view(-1, 3, 2, 2))
    return evaluate(decoder=decoder, images=BINARY, latent=12, **{**LAPLACE, **options})


def test_maps_are_given_back_in_shape(maps):
    alike(evaluate(decoder=maps.decode, images=BINARY, latent=(3, 2, 2), **LAPLACE), rows(maps))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda mean, log_var: (mean, log_var),
        lambda mean, log_var: torch.cat([mean, log_var], 1),
        lambda mean, log_var: D.Normal(mean, (0.5 * log_var).exp()),
        lambda mean, log_var: {"mean": mean, "logvar": log_var},
    ],
)
def test_the_encoder_says_the_shape(maps, wrap):
    options = {"base": "encoder", "steps": 20}
    wanted = rows(maps, encoder=lambda x: [part.flatten(1) for part in maps.encode(x)], **options)
    alike(evaluate(maps, BINARY, encoder=lambda x: wrap(*maps.encode(x)), **options), wanted)


def test_priors_and_joints_of_maps(maps):
    wanted = rows(maps, prior=crais.GaussianPrior(torch.full((12,), 0.5), 0.8))
    prior, likelihood = D.Independent(D.Normal(torch.full((3, 2, 2), 0.5), 0.8), 3), crais.Bernoulli()
    for given in (
        {"decoder": maps.decode, "prior": prior},
        {"decoder": maps.decode, "log_prior": prior.log_prob},
        {"log_joint": lambda z, x: prior.log_prob(z) + likelihood.log_prob(x, maps.decode(z))},
    ):
        found = evaluate(images=BINARY, latent=(3, 2, 2), base="laplace", steps=100, **given)
        assert found.mean == pytest.approx(wanted.mean, abs=0.05)


def test_certificates_and_exports_of_maps(maps, tmp_path):
    given = {"likelihood": crais.Bernoulli(), "encoder": maps.encode, "latent": (3, 2, 2), "image_shape": (16,)}
    bounds = crais.certify(decoder=maps.decode, num_images=20, steps=50, progress=False, **given)
    assert abs(bounds.gap) < 0.5
    crais.export(tmp_path / "maps.pt", decoder=maps.decode, quiet=True, **given)
    found = evaluate(tmp_path / "maps.pt", BINARY, likelihood=None, **LAPLACE)
    assert found.log_likelihood == pytest.approx(rows(maps).log_likelihood, abs=0.02)


@pytest.mark.parametrize("latent", [0, (), (3, 0), "many", (3, "a"), 10**9, (4096, 4097), None])
def test_shapes_that_are_none(maps, latent):
    words = "latent is D or a shape" if latent is not None else r"or its shape, as latent=\(4, 8, 8\)"
    with pytest.raises(crais.UsageError, match=words):
        evaluate(decoder=maps.decode, images=BINARY, latent=latent)

"""Writes the exported models that the tests read: run it again where the manifest changes."""

import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

import crais

# Each function returns the arguments of crais.export for the file of its name.


def linear_gaussian() -> dict[str, Any]:
    """x = W z + b + 0.5 noise, whose log p(x) is known; the encoder is the exact posterior."""
    torch.manual_seed(1)
    decoder = nn.Linear(3, 6)
    weight, bias = decoder.weight.detach(), decoder.bias.detach()
    precision = torch.eye(3) + weight.T @ weight / 0.25
    covariance = torch.linalg.inv(precision)
    root = torch.linalg.cholesky(covariance)

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.reshape(x.shape[0], 6)
        mean = (rows - bias) @ weight @ covariance / 0.25
        return mean, root.expand(x.shape[0], 3, 3)

    shaped = lambda z: decoder(z).reshape(z.shape[0], 2, 3)
    described = dict(likelihood=crais.Gaussian(0.5), latent=3, image_shape=(2, 3), fused=False)
    return dict(decoder=shaped, encoder=encode, **described)


def linear_mlp() -> dict[str, Any]:
    """The weights of a linear decoder: no code."""
    torch.manual_seed(3)
    decoder = nn.Linear(3, 6)
    encoder = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), _Halves(4, 3))
    described = dict(likelihood=crais.Gaussian(0.5), latent=3, image_shape=(6,))
    return dict(decoder=decoder, encoder=encoder, **described)


class _Halves(nn.Linear):
    """Mean and log-variance."""

    def __init__(self, inputs: int, latent: int) -> None:
        super().__init__(inputs, 2 * latent)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return super().forward(rows).chunk(2, 1)


def convolutional() -> dict[str, Any]:
    """Binary pixels from convolutions, whose description alone is kept."""
    torch.manual_seed(6)
    decoder = nn.Sequential(
        nn.Linear(4, 8 * 2 * 3), nn.Unflatten(1, (8, 2, 3)), nn.ELU(),
        nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.BatchNorm2d(3), nn.ELU(),
        nn.Conv2d(3, 2, 3, 1, 1),
    )  # fmt: skip
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(2 * parameter + 0.1)
        decoder[4].running_mean.normal_()
        decoder[4].running_var.uniform_(0.5, 2.0)
    encoder = nn.Sequential(nn.Flatten(), _Halves(48, 4))
    described = dict(likelihood=crais.Bernoulli(), latent=4, image_shape=(2, 4, 6))
    return dict(decoder=decoder.eval(), encoder=encoder, binarisation="none", **described)


if __name__ == "__main__":
    here = Path(__file__).parent
    crais.export(here / "linear_mlp.pt2", **linear_mlp())
    crais.export(here / "linear_gaussian.pt", **linear_gaussian())
    crais.export(here / "code.pt", **convolutional())
    with zipfile.ZipFile(here / "code.pt") as archive:
        (here / "convolutional.safetensors").write_bytes(archive.read("model/extra/crais.safetensors"))
    (here / "code.pt").unlink()

"""Writes the exported models that the tests read: run it again where the manifest changes."""

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


def mixture_prior() -> dict[str, Any]:
    """Binary pixels under a prior of two normals."""
    torch.manual_seed(2)
    decoder = nn.Linear(2, 5)
    prior = crais.Mixture(
        torch.tensor([0.3, 0.7]).log(),
        torch.tensor([[-1.0, 0.5], [1.5, 0.0]]),
        torch.tensor([[0.5, 1.0], [1.0, 0.7]]),
    )
    described = dict(likelihood=crais.Bernoulli(), latent=2, image_shape=(5,))
    return dict(decoder=decoder, prior=prior, binarisation="dynamic", **described)


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


def conditional() -> dict[str, Any]:
    """x = W z + b_y + 0.5 noise for labels y of 0 to 3."""
    torch.manual_seed(4)
    decoder, offsets = nn.Linear(2, 5), nn.Embedding(4, 5)
    decode = lambda z, y: decoder(z) + offsets(y)
    encode = lambda x, y: (0.1 * (x - offsets(y))[:, :2], torch.zeros(x.shape[0], 2))
    described = dict(likelihood=crais.Gaussian(0.5), latent=2, image_shape=(5,))
    return dict(decoder=decode, encoder=encode, labels=torch.arange(4), **described)


def convolutional() -> dict[str, Any]:
    """Binary pixels from convolutions; their weights stand beside the code."""
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


class _Residual(nn.Module):
    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


def residual() -> dict[str, Any]:
    """Normal pixels from blocks x + f(x), means by a sigmoid."""
    torch.manual_seed(7)
    decoder = nn.Sequential(
        nn.Linear(3, 4 * 2 * 3), nn.Unflatten(1, (4, 2, 3)),
        _Residual(nn.SiLU(), nn.Conv2d(4, 4, 3, 1, 1)), nn.ReLU(),
        _Residual(nn.Conv2d(4, 5, 2), nn.GELU(), nn.ConvTranspose2d(5, 4, 2)),
        nn.LeakyReLU(0.2), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip
    described = dict(likelihood=crais.Gaussian(0.2), latent=3, image_shape=(1, 4, 6))
    return dict(decoder=decoder.eval(), **described)


def normalised() -> dict[str, Any]:
    """Binary pixels from normalised units and bilinear interpolation."""
    torch.manual_seed(8)
    decoder = nn.Sequential(
        nn.Linear(3, 4 * 2 * 3), nn.LayerNorm(24), nn.SiLU(), nn.Unflatten(1, (4, 2, 3)),
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 4, 3, 1, 1),
        nn.GroupNorm(2, 4, eps=1e-3), nn.ReLU(), nn.Conv2d(4, 1, 3, 1, 1),
    )  # fmt: skip
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    described = dict(likelihood=crais.Bernoulli(), latent=3, image_shape=(1, 4, 6))
    return dict(decoder=decoder.eval(), **described)


if __name__ == "__main__":
    for make in (normalised, convolutional, residual, linear_mlp, conditional, linear_gaussian, mixture_prior):
        ending = "pt2" if make is linear_mlp else "pt"
        crais.export(Path(__file__).with_name(f"{make.__name__}.{ending}"), **make())

"""Exports models that are linear, so that log p(x) is known; images under them.

    python -m models plain|compiled

A package that is compiled wants half a minute: there is one.
"""

import sys
from typing import Any

import numpy
import torch

import crais

torch.manual_seed(0)
decoder = torch.nn.Linear(4, 6)
noise = 0.5
weight, bias = decoder.weight.detach().double(), decoder.bias.detach().double()

# Linear too, in layers that are not one.
wide = torch.nn.Sequential(torch.nn.Linear(4, 256), torch.nn.Linear(256, 512))
with torch.no_grad():
    back = torch.linalg.pinv(wide(torch.eye(4)) - wide(torch.zeros(1, 4)))  # [512, 4]
    start = wide(torch.zeros(1, 4))

offsets = torch.randn(3, 2, 3)


def describe() -> dict[str, Any]:
    return dict(
        decoder=lambda z: decoder(z).reshape(z.shape[0], 2, 3),
        likelihood=crais.Gaussian(noise),
        latent=4,
        image_shape=(2, 3),
    )


def conditional() -> dict[str, Any]:
    return describe() | dict(
        decoder=lambda z, y: decoder((wide(z) - start) @ back).reshape(z.shape[0], 2, 3) + offsets[y],
        labels=torch.arange(3),
    )


def store_images(file: str, exact: str) -> None:
    """Stores images, and their log p(x), one a line."""
    x, y = torch.randn(20, 2, 3), torch.arange(20) % 3
    arrays = {
        "far": 300 * x,
        "later": y + 1,
        "shifted": x + offsets[y],
        "test": x,
        "wide": torch.zeros(3, 7),
        "y": y,
    }
    covariance = weight @ weight.T + noise**2 * torch.eye(6, dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(bias, covariance)
    numpy.savez(file, **{name: tensor.numpy() for name, tensor in arrays.items()})
    with open(exact, "w") as values:
        values.writelines(f"{v!r}\n" for v in normal.log_prob(x.double().flatten(1)).tolist())


if __name__ == "__main__":
    store_images("x.npz", "exact.txt")
    if sys.argv[1] == "compiled":
        crais.export("conditional.pt2", **conditional())
        sys.exit()
    crais.export("weights.pt2", **describe())
    crais.export("linear.pt", **describe(), fused=False)
    crais.export("conditional.pt", **conditional())

"""A VAE of counts, as of RNA in single cells: negative binomial, 500 genes, 10 latents.

PYTHONPATH=python python3 examples/models/counts_vae.py counts_vae.pt2
build/release/bin/eval-loglik counts_vae.pt2 --data counts_vae.npy --limit 100
"""

from pathlib import Path

import common
import numpy as np
import torch
from torch import Tensor, nn

import crais

GENES, LATENT = 500, 10


def counts(cells: int) -> Tensor:
    """Counts [cells, 500] of eight types of cell, each with a direction of its own."""
    kinds = torch.randn(8, LATENT)
    kind = torch.randint(8, (cells,))
    state = 1.5 * kinds[kind] + 0.4 * torch.randn(cells, LATENT)
    loadings = torch.randn(LATENT, GENES) / LATENT**0.5
    abundance = 1.5 * torch.randn(GENES)
    library = torch.exp(7.5 + 0.3 * torch.randn(cells, 1))
    mean = library * torch.softmax(abundance + torch.tanh(state) @ loadings, 1)
    theta = torch.exp(1 + 0.5 * torch.randn(GENES))
    return torch.poisson(mean * torch.distributions.Gamma(theta, theta).sample((cells,)))


class Logarithms(nn.Module):
    """Counts vary over magnitudes; networks like numbers around 1."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.log1p(x)


flags = common.arguments(__doc__)
data = counts(12_000)
train, test = data[:10_000], data[10_000:]
encoder = common.Code(nn.Sequential(Logarithms(), common.mlp(GENES, 128, 2 * LATENT)))
likelihood = crais.NegativeBinomial(torch.ones(GENES))
vae = common.Vae(encoder, common.mlp(LATENT, 128, GENES), likelihood)
np.save(Path(flags.out).with_suffix(".npy"), test.numpy())
common.fit_and_export(
    vae, flags, latent=LATENT, prepare=lambda rows: rows, epochs=40, data=(train, test),
    binarisation=None,
)  # fmt: skip

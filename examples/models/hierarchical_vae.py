"""A VAE with two levels of latents, z = (top, bottom): 10 and 30 of them in one vector of 40.

PYTHONPATH=python python3 examples/models/hierarchical_vae.py hierarchical_vae.pt2
build/release/bin/eval-loglik hierarchical_vae.pt2 --limit 100
"""

import common
import torch
from torch import Tensor, nn

import crais

TOP, BOTTOM = 10, 30


class Levels(nn.Module):
    """p(top) = N(0, I); p(bottom | top) is normal, its moments a network's of the top."""

    def __init__(self) -> None:
        super().__init__()
        self.code = common.Code(common.mlp(TOP, 100, 2 * BOTTOM))
        self.normal = crais.StandardNormal()

    def forward(self, z: Tensor) -> Tensor:
        top, bottom = z.split([TOP, BOTTOM], 1)
        mean, log_var = self.code(top)
        e = (bottom - mean) * torch.exp(-0.5 * log_var)
        return self.normal.log_prob(torch.cat([top, e], 1)) - 0.5 * log_var.sum(1)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        top, noise = e.split([TOP, BOTTOM], 1)
        mean, log_var = self.code(top)
        return torch.cat([top, mean + torch.exp(0.5 * log_var) * noise], 1)


class Decoder(nn.Module):
    """Both levels -> logits; the image depends on the bottom alone."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(common.mlp(BOTTOM, 200, 784), nn.Unflatten(1, (1, 28, 28)))

    def forward(self, z: Tensor) -> Tensor:
        return self.network(z[:, TOP:])


flags = common.arguments(__doc__)
levels = Levels()
encoder = common.Code(nn.Sequential(nn.Flatten(), common.mlp(784, 300, 2 * (TOP + BOTTOM))))
prior = crais.Hierarchical(levels, levels.sample)
vae = common.Vae(encoder, Decoder(), crais.Bernoulli(), prior)
common.fit_and_export(
    vae, flags, latent=TOP + BOTTOM, prepare=common.binarised, epochs=15, rate=2e-3,
    binarisation="dynamic",
)  # fmt: skip

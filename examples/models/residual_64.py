"""A residual decoder of 64 x 64 colour images, 128 latents, with random weights: large and hard.

PYTHONPATH=python python3 examples/models/residual_64.py residual_64.pt2
build/release/bin/eval-loglik residual_64.pt2 --method bidirectional --simulate 20
"""

import common
import torch
from torch import Tensor, nn

import crais

LATENT = 128


class Block(nn.Module):
    """x + f(x), with two convolutions in f."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def up(inputs: int, outputs: int) -> nn.Sequential:
    """Twice the height and width."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.Upsample(scale_factor=2, mode="nearest"), Block(outputs))


def decoder() -> nn.Sequential:
    """25 million multiplications an image. Its weights keep the size of what passes through."""
    network = nn.Sequential(
        nn.Linear(LATENT, 64 * 8 * 8),
        nn.Unflatten(1, (64, 8, 8)),
        Block(64),
        up(64, 32),
        up(32, 16),
        up(16, 8),
        nn.SiLU(),
        nn.Conv2d(8, 3, 3, padding=1),
        nn.Sigmoid(),
    )
    for weights in network.parameters():
        if weights.dim() > 1:
            nn.init.kaiming_normal_(weights)
        else:
            nn.init.normal_(weights, std=0.1)
    return network


flags = common.arguments(__doc__)
network = decoder().eval()
with torch.no_grad():
    images = network(torch.randn(500, LATENT))
print(f"pixels: mean {images.mean():.3f}, standard deviation over images {images.std(0).mean():.3f}")
crais.export(
    flags.out, decoder=network, likelihood=crais.DiscretizedLogistic(0.1), latent=LATENT, image_shape=(3, 64, 64)
)

"""A VAE whose prior is a mixture of 200 encoded pseudo-inputs (VampPrior), 40 latents.

PYTHONPATH=python python3 examples/models/vamp_vae.py vamp_vae.pt2
build/release/bin/eval-loglik vamp_vae.pt2 --limit 100
"""

import common
import torch
from torch import Tensor, nn

import crais


class PseudoImages(nn.Module):
    """Learned images [200, 1, 28, 28] with pixels in (0, 1), which begin as training images."""

    def __init__(self, images: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.logit(common.grey(images), eps=0.05))

    def forward(self) -> Tensor:
        return torch.sigmoid(self.logits)


flags = common.arguments(__doc__)
prior_images = PseudoImages(common.mnist(flags.data, "train")[:200])
encoder = common.Code(nn.Sequential(nn.Flatten(), common.mlp(784, 300, 80)))
decoder = nn.Sequential(common.mlp(40, 300, 784), nn.Unflatten(1, (1, 28, 28)))
vae = common.Vae(encoder, decoder, crais.Bernoulli(), crais.VampPrior(encoder, prior_images))
common.fit_and_export(vae, flags, latent=40, prepare=common.binarised, epochs=12, rate=2e-3, binarisation="dynamic")

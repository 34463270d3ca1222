"""The generator of a GAN on MNIST, with normal noise around its images (Wu et al., 2017).

PYTHONPATH=python python3 examples/models/gan.py gan.pt2
build/release/bin/eval-loglik gan.pt2 --limit 100 --binarisation none
"""

import time

import common
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import crais

LATENT, BATCH, EPOCHS, RATE = 20, 64, 4, 5e-4


def discriminator() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1),
        nn.BatchNorm2d(32),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 1),
    )


def train(generator: nn.Module, images: Tensor, epochs: int) -> None:
    """The two networks in turn, a step each; the generator's loss is the non-saturating one."""
    critic = discriminator()
    of_critic = torch.optim.Adam(critic.parameters(), RATE, betas=(0.5, 0.999))
    of_generator = torch.optim.Adam(generator.parameters(), RATE, betas=(0.5, 0.999))
    started = time.monotonic()
    for epoch in range(epochs):
        losses = torch.zeros(2)
        for rows in torch.randperm(len(images)).split(BATCH):
            made = generator(torch.randn(len(rows), LATENT))
            loss = F.softplus(-critic(common.grey(images[rows]))).mean()
            loss = loss + F.softplus(critic(made.detach())).mean()
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
            fooled = F.softplus(-critic(made)).mean()
            of_generator.zero_grad()
            fooled.backward()
            of_generator.step()
            losses += torch.stack([loss.detach(), fooled.detach()])
        mean = losses / (len(images) / BATCH)
        seconds = time.monotonic() - started
        print(f"epoch {epoch + 1}: critic {mean[0]:.3f}, generator {mean[1]:.3f}, {seconds:.0f} s")


def noise_scale(generator: nn.Module, x: Tensor, steps: int = 500) -> float:
    """The standard deviation, from the best reconstructions of validation images.

    Latents and scale maximise log p(x, z) together. The scale then counts the residuals'
    degrees of freedom: pixels less latents.
    """
    z = nn.Parameter(torch.zeros(len(x), LATENT))
    optimiser = torch.optim.Adam([z], 0.1)
    variance = 0.1
    for _ in range(steps):
        errors = (generator(z) - x).square().flatten(1).sum(1)
        loss = (errors / (2 * variance) + z.square().sum(1) / 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        variance = float(errors.mean()) / (x[0].numel() - LATENT)
    return variance**0.5


flags = common.arguments(__doc__)
images = common.mnist(flags.data, "train")
generator = nn.Sequential(common.conv_decoder(LATENT), nn.Sigmoid())
common.train_or_load(generator, flags, lambda: train(generator, images[:-1000], flags.epochs or EPOCHS))
sd = noise_scale(generator, common.grey(images[-200:]))
print(f"standard deviation of the noise {sd:.4f}")
crais.export(
    flags.out,
    decoder=generator,
    likelihood=crais.Gaussian(sd),
    latent=LATENT,
    image_shape=(1, 28, 28),
    binarisation="none",
)

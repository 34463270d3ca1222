"""What these scripts share: MNIST, a VAE, the training loop."""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import crais

Prepare = Callable[[Tensor], Tensor]  # a batch as it is stored -> x


def arguments(doc: str | None) -> argparse.Namespace:
    """The flags of every script; also one thread and a fixed seed."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the .pt2 file to write")
    parser.add_argument("--data", help="folder with MNIST's IDX files ($CRAIS_DATA)")
    parser.add_argument("--weights", help="keep trained weights here; if it exists, do not train")
    parser.add_argument("--epochs", type=int, help="passes over the training data")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return parser.parse_args()


def mnist(folder: str | None, split: str) -> Tensor:
    """Images [N, 1, 28, 28], uint8, of "train" or "t10k"."""
    root = Path(folder or os.environ.get("CRAIS_DATA", "data"))
    name = f"{split}-images-idx3-ubyte.gz"
    file = next(root.rglob(name), None)
    if file is None:
        raise SystemExit(f"no {name} in {root}; --data names its folder")
    pixels = torch.frombuffer(bytearray(gzip.decompress(file.read_bytes())), dtype=torch.uint8)
    return pixels[16:].reshape(-1, 1, 28, 28)


def grey(images: Tensor) -> Tensor:
    """Pixels as x = pixel / 255."""
    return images.float() / 255


def binarised(images: Tensor) -> Tensor:
    """A fresh draw of black and white for every pixel."""
    return torch.bernoulli(grey(images))


def dequantised(images: Tensor) -> Tensor:
    """Pixels with uniform noise of one grey level around them."""
    return grey(images) + (torch.rand(images.shape) - 0.5) / 255


class Code(nn.Module):
    """x -> mean, log_var of q(z | x), from a network with twice as many outputs as latents."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = self.network(x).chunk(2, 1)
        return mean, log_var


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers of these widths, with tanh between them."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for inputs, outputs in zip(widths[1:], widths[2:]):
        layers += [nn.Tanh(), nn.Linear(inputs, outputs)]
    return nn.Sequential(*layers)


def conv_encoder(latent: int) -> Code:
    """For images [B, 1, 28, 28]."""
    return Code(
        nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 2 * latent),
        )
    )


def conv_decoder(latent: int, channels: int = 1) -> nn.Sequential:
    """To images [B, channels, 28, 28]: 0.5 million multiplications an image."""
    return nn.Sequential(
        nn.Linear(latent, 32 * 7 * 7),
        nn.Unflatten(1, (32, 7, 7)),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, channels, 4, 2, 1),
    )


class Vae(nn.Module):
    """A decoder with its likelihood and prior, and an encoder to train them."""

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, likelihood: crais.Likelihood, prior: crais.Prior | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.likelihood = encoder, decoder, likelihood
        self.prior = prior or crais.StandardNormal()

    def elbo(self, x: Tensor, beta: float = 1.0) -> Tensor:
        """One draw's lower bound of log p(x) [B], nats; beta weighs the divergence from p(z)."""
        mean, log_var = self.encoder(x)
        e = torch.randn_like(mean)
        z = mean + torch.exp(0.5 * log_var) * e
        log_q = crais.StandardNormal().log_prob(e) - 0.5 * log_var.sum(1)
        divergence = log_q - self.prior.log_prob(z)
        return self.likelihood.log_prob(x, self.decoder(z)) - beta * divergence


def fit_and_export(
    vae: Vae,
    flags: argparse.Namespace,
    latent: int,
    prepare: Prepare,
    epochs: int,
    rate: float = 3e-3,
    data: tuple[Tensor, Tensor] | None = None,
    binarisation: str | None = "none",
) -> None:
    """Maximises the ELBO of training data, prints that of test data, and exports the model.

    `data` are both of them; MNIST's if they are left out.
    """
    train, test = data or (mnist(flags.data, "train"), mnist(flags.data, "t10k"))
    train_or_load(vae, flags, lambda: _train(vae, train, prepare, flags.epochs or epochs, rate))
    torch.manual_seed(2)
    with torch.no_grad():
        elbos = torch.cat([vae.elbo(prepare(rows)) for rows in test.split(500)])
    error = elbos.std() / len(elbos) ** 0.5
    print(f"test ELBO {elbos.mean():.2f} +- {error:.2f} nats, {len(elbos)} rows")
    crais.export(
        flags.out,
        decoder=vae.decoder,
        likelihood=vae.likelihood,
        prior=vae.prior,
        encoder=vae.encoder,
        latent=latent,
        image_shape=train.shape[1:],
        binarisation=binarisation,
    )


def train_or_load(module: nn.Module, flags: argparse.Namespace, train: Callable[[], None]) -> None:
    """Weights of an earlier run, if they are kept, or new ones; ends in eval mode."""
    if flags.weights and Path(flags.weights).exists():
        module.load_state_dict(torch.load(flags.weights))
    else:
        train()
        if flags.weights:
            torch.save(module.state_dict(), flags.weights)
    module.eval()


def _train(vae: Vae, train: Tensor, prepare: Prepare, epochs: int, rate: float) -> None:
    batch = 128
    steps = epochs * (len(train) // batch)
    optimiser = torch.optim.Adam(vae.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    started, step = time.monotonic(), 0
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(train)).split(batch):
            if len(rows) < batch:
                continue
            step += 1
            bound = vae.elbo(prepare(train[rows]), beta=min(1.0, 5 * step / steps)).mean()
            optimiser.zero_grad()
            (-bound).backward()
            nn.utils.clip_grad_norm_(vae.parameters(), 1000.0)
            optimiser.step()
            schedule.step()
            total += float(bound)
        mean = total / (len(train) // batch)
        print(f"epoch {epoch + 1}: ELBO {mean:.2f}, {time.monotonic() - started:.0f} s", flush=True)

"""log p(x) of held-out images after each epoch of training, beside the ELBO that training sees.

python3 examples/training_loop.py [--data FOLDER of MNIST's files] [--epochs N] [--logs FOLDER]

Evaluating 256 images takes less than a tenth of the training time. Without MNIST's files the model
learns drawn boxes. `--logs` writes the scalars for TensorBoard, which must be installed.
"""

import argparse
import gzip
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import crais


class Vae(nn.Module):
    likelihood = crais.Bernoulli()  # of logits

    def __init__(self, latent: int = 50, hidden: int = 200) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(784, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 2 * latent),
        )  # fmt: skip
        self.decode = nn.Sequential(
            nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 784),
        )  # fmt: skip

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, 1)
        return mean, log_var

    def elbo(self, x: Tensor) -> Tensor:
        mean, log_var = self.encode(x)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1)
        log_p = -F.binary_cross_entropy_with_logits(self.decode(z), x, reduction="none").sum(1)
        return log_p - kl


def images_of(folder: str | None, count: int = 60_000) -> Tensor:
    """Grey images [N, 784] in [0, 1]."""
    if folder is not None:
        file = next(Path(folder).rglob("train-images-idx3-ubyte.gz"))
        pixels = torch.frombuffer(bytearray(gzip.open(file).read()), dtype=torch.uint8)[16:]
        return pixels.reshape(-1, 784)[:count] / 255
    row, column = torch.arange(28).view(1, 28, 1), torch.arange(28).view(1, 1, 28)
    low, size = torch.randint(0, 20, (2, count, 1, 1)), torch.randint(3, 12, (2, count, 1, 1))
    inside = [(n >= a) & (n < a + b) for n, a, b in zip((row, column), low, size, strict=True)]
    return (inside[0] & inside[1]).flatten(1) * 0.9 + 0.05


flags = argparse.ArgumentParser()
flags.add_argument("--data")
flags.add_argument("--epochs", type=int, default=5)
flags.add_argument("--images", type=int, default=60_000)
flags.add_argument("--logs")
arguments = flags.parse_args()

torch.manual_seed(0)
images = images_of(arguments.data, arguments.images)
held_out, images = torch.bernoulli(images[-256:]), images[:-256]
vae = Vae()
optimiser = torch.optim.Adam(vae.parameters(), lr=1e-3)
monitor = crais.callbacks.Monitor(held_out)
writer = None
if arguments.logs is not None:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(arguments.logs)
training = evaluating = 0.0
for epoch in range(1, arguments.epochs + 1):
    started, elbo = time.perf_counter(), 0.0
    for rows in torch.randperm(len(images)).split(128):
        bound = vae.elbo(torch.bernoulli(images[rows])).mean()
        optimiser.zero_grad()
        (-bound).backward()
        optimiser.step()
        elbo += float(bound) * len(rows) / len(images)
    trained = time.perf_counter()

    scalars = monitor(vae)

    training, evaluating = training + trained - started, evaluating + time.perf_counter() - trained
    scalars = {"elbo": elbo, **scalars}
    print(f"epoch {epoch}: " + ", ".join(f"{k} {v:.2f}" for k, v in scalars.items()), flush=True)
    for name, value in scalars.items() if writer is not None else ():
        writer.add_scalar(name, value, epoch)
if writer is not None:
    writer.close()
print(f"evaluating took {evaluating / training:.1%} of the training time")

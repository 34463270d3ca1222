"""Lightning trains a VAE; crais logs log p(x) of held-out images to TensorBoard every few epochs.

python3 examples/lightning_loop.py [--epochs N] [--every N] [--logs FOLDER]

Needs Lightning and TensorBoard: pip install lightning tensorboard. `tensorboard --logdir logs`
shows log_p/mean beside the ELBO. The checkpoint with the best log p(x) is kept.
"""

import argparse

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import crais


class Vae(nn.Module):
    def __init__(self, latent: int = 8, hidden: int = 100) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(784, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent)
        )
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 784))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, 1)
        return mean, log_var


class Training(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.vae = Vae()

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        (x,) = batch
        mean, log_var = self.vae.encode(x)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1)
        log_p = -F.binary_cross_entropy_with_logits(self.vae.decode(z), x, reduction="none").sum(1)
        elbo = (log_p - kl).mean()
        self.log("elbo", elbo, on_step=False, on_epoch=True)
        return -elbo

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def boxes(count: int) -> Tensor:
    """Binary images [count, 784], each with a filled box."""
    row, column = torch.arange(28).view(1, 28, 1), torch.arange(28).view(1, 1, 28)
    low, size = torch.randint(0, 20, (2, count, 1, 1)), torch.randint(3, 12, (2, count, 1, 1))
    tall = (row >= low[0]) & (row < low[0] + size[0])
    wide = (column >= low[1]) & (column < low[1] + size[1])
    return (tall & wide).flatten(1).float()


flags = argparse.ArgumentParser()
flags.add_argument("--epochs", type=int, default=10)
flags.add_argument("--every", type=int, default=2)
flags.add_argument("--images", type=int, default=10_000)
flags.add_argument("--logs", default="logs")
arguments = flags.parse_args()

pl.seed_everything(0)
images = TensorDataset(boxes(arguments.images))
callback = crais.callbacks.Lightning(
    boxes(128), every=arguments.every, likelihood=crais.Bernoulli()
)
best = ModelCheckpoint(monitor="log_p/mean", mode="max", every_n_epochs=arguments.every)
logger = TensorBoardLogger(arguments.logs)
trainer = pl.Trainer(max_epochs=arguments.epochs, callbacks=[callback, best], logger=logger)
trainer.fit(Training(), DataLoader(images, batch_size=100, shuffle=True))
print(f"{best.best_model_path}: log p(x) {float(best.best_model_score):.2f} nats")
print(f"scalars: {logger.log_dir}")

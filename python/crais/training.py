"""`crais.train_vae`: the program train-vae in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crais import native
from crais.errors import Interrupted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crais._options import TrainOptions

Metrics = dict[str, Any]


@dataclass
class Training:
    """A trained VAE.

    checkpoint  its file, which `evaluate` takes
    epochs      the metrics of each epoch, nats an image
    best        the metrics of the epoch whose weights the file has
    """

    checkpoint: str
    epochs: list[Metrics]
    best: Metrics

    def __repr__(self) -> str:
        return (
            f"{self.checkpoint}: validation ELBO {self.best['validation']['elbo']:.2f} nats, epoch "
            f"{self.best['epoch']} of {len(self.epochs)}"
        )


@native.awaited()
def train_vae(
    *,
    on_epoch: Callable[[Metrics], None] | None = None,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **options: Unpack[TrainOptions],
) -> Training:
    """Trains a VAE of MLPs on MNIST, or on drawn digits (data="synthetic:N"), into a folder `out`.

    >>> t = crais.train_vae(out="runs/vae", epochs=10)
    >>> crais.evaluate(t.checkpoint, limit=1000)

    on_epoch     a function that gets each epoch's metrics as a dictionary, for a logger
    rng          a NumPy Generator that draws the seed, in place of seed=
    progress     show a bar, if tqdm is installed

    Returns a `Training`. Ctrl-C discards the current epoch and raises Interrupted; a call with
    resume=True continues after the last saved epoch (checkpoint_every). Raises UsageError for a
    wrong option, NoInputError for missing data and OutputError for a failed write.

    Other options are the flags of train-vae:
    """

    def train(run: native.Run) -> Any:
        if on_epoch is not None:
            run.epoch = on_epoch
        return native.extension().train_vae(native.by_flag(native.seeded(options, rng)), run=run)

    (checkpoint, epochs, best), run = native.call("train-vae", train, progress=progress, unit="images")
    if run.stopped:
        raise Interrupted(f"interrupted; the training is complete: {checkpoint}")
    return Training(checkpoint, epochs, epochs[best - 1])


train_vae.__doc__ = (train_vae.__doc__ or "") + native.options("train-vae")

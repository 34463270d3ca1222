"""`crais.train_vae`: the program train-vae in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crais import native
from crais.errors import Interrupted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crais._options import TrainOptions

Metrics = dict[str, Any]


@dataclass
class Training:
    """A trained VAE: its file, and what each epoch came to, nats an image."""

    checkpoint: str
    epochs: list[Metrics]
    best: Metrics  # the epoch whose weights the file has

    def __repr__(self) -> str:
        return (
            f"{self.checkpoint}: validation ELBO {self.best['validation']['elbo']:.2f} nats, epoch "
            f"{self.best['epoch']} of {len(self.epochs)}"
        )


@native.awaited()
def train_vae(
    *,
    on_epoch: Callable[[Metrics], None] | None = None,
    progress: bool = True,
    **options: Unpack[TrainOptions],
) -> Training:
    """Trains a VAE of MLPs on MNIST, or on drawn digits (data="synthetic:N"), into a folder.

    >>> t = crais.train_vae(out="runs/vae", epochs=10)
    >>> crais.evaluate(t.checkpoint, limit=1000)

    on_epoch     is called with each epoch's metrics, as a dictionary: for TensorBoard, say
    progress     a bar, if tqdm is installed

    Ctrl-C gives up the epoch under way and raises Interrupted; resume=True goes on after the last
    one that was saved (checkpoint_every). Raises as `evaluate` does.

    Other options are the flags of train-vae:
    """
    watcher = _Watcher(on_epoch)

    def train(run: native.Run) -> Any:
        watcher.run = run
        return native.extension().train_vae(native.arguments(options), watcher)

    (checkpoint, epochs, best), _ = native.call(
        "train-vae", train, {}, progress=progress, unit="images"
    )
    if watcher.stopped:
        raise Interrupted(f"interrupted; the training is complete: {checkpoint}")
    metrics = [json.loads(epoch) for epoch in epochs]
    return Training(checkpoint, metrics, metrics[best - 1])


class _Watcher:
    """What the extension tells of a training."""

    def __init__(self, on_epoch: Callable[[Metrics], None] | None) -> None:
        self.run: native.Run | None = None
        self.stopped = False  # the extension sets it
        self._on_epoch = on_epoch

    def show(self, done: int, total: int, status: str) -> None:
        if self.run is not None:
            self.run.show(done, total, status)

    def notice(self, line: str) -> None:
        if self.run is not None:
            self.run.warn(line)

    def epoch(self, metrics: str) -> None:
        if self._on_epoch is not None:
            self._on_epoch(json.loads(metrics))


train_vae.__doc__ = (train_vae.__doc__ or "") + native.options("train-vae")

"""`crais.callbacks.Lightning`: log p(x) in the logs of a Trainer, of `lightning` or an older `pytorch_lightning`."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from crais.callbacks import Monitor
from crais.errors import UsageError


def _callback_classes() -> tuple[type, ...]:
    """`Callback` of each package that the process uses already, else of one that is installed."""
    packages = ("lightning.pytorch", "pytorch_lightning")
    used: list[str] = [name for name in packages if name in sys.modules]
    found: list[Any] = []
    for name in used or packages:
        with contextlib.suppress(ImportError):
            if used or not found:
                found.append(importlib.import_module(name))
    if not found:
        raise ImportError("crais.callbacks.Lightning needs Lightning: pip install lightning")
    return tuple(package.Callback for package in found)


class Lightning(*_callback_classes()):  # type: ignore[misc]
    """Logs log p(x) of held-out images after every `every`-th epoch of Lightning's Trainer.

    >>> callback = crais.callbacks.Lightning(held_out, every=5, likelihood=crais.Bernoulli())
    >>> Trainer(callbacks=[callback], logger=TensorBoardLogger("logs"))

    The scalars of `Monitor` go to the Trainer's loggers, be it TensorBoard, W&B or MLflow, through the module's
    `log_dict`. Early stopping and checkpoints can watch them: ModelCheckpoint(monitor="log_p/mean", mode="max").

    images       the held-out images [N, *shape], as in `Monitor`
    every        how many epochs lie between two evaluations
    model        what to evaluate; None for the LightningModule, or the one model in it
    options      further arguments of `Monitor`, such as `max_images` and `budget`, and of `evaluate`

    Cost of a logged epoch: at most `max_images` times `budget` evaluations of the decoder, on the
    first process while the others wait. Each process must hold all parameters (DDP, not FSDP). The
    training's numbers are the same as without the callback. `monitor.result` is the last `Result`.
    """

    def __init__(self, images: Any, *, every: int = 1, model: Any = None, **options: Any) -> None:
        super().__init__()
        if every < 1:
            raise UsageError(f"every must be at least 1 epoch, not {every}")
        self.monitor = Monitor(images, **options)
        self._every, self._model = every, model

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if (trainer.current_epoch + 1) % self._every:
            return
        scalars = None
        if trainer.is_global_zero:
            scalars = self.monitor(pl_module if self._model is None else self._model)
        scalars = trainer.strategy.broadcast(scalars)
        pl_module.log_dict(scalars, on_step=False, on_epoch=True, sync_dist=True)

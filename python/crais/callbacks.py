"""log p(x) of held-out images during training, for any loop and any logger.

>>> monitor = crais.callbacks.Monitor(held_out, likelihood=crais.Bernoulli())
>>> for name, value in monitor(vae).items():                    # after an epoch of your loop
...     writer.add_scalar(name, value, epoch)
>>> Trainer(callbacks=[crais.callbacks.Lightning(held_out, every=5)])         # Lightning's loop
"""

from __future__ import annotations

import importlib
from typing import Any

from torch.utils.data import TensorDataset

from crais import random_state
from crais.captured import device_of, in_eval_mode, modules_of
from crais.errors import UsageError
from crais.evaluation import evaluate
from crais.images import read, tensor_of
from crais.results import Result


def __getattr__(name: str) -> Any:
    """Imports the class `Lightning` on its first use, since it needs Lightning itself."""
    if name != "Lightning":
        raise AttributeError(f"module 'crais.callbacks' has no attribute '{name}'")
    return importlib.import_module("crais.lightning_callback").Lightning


class Monitor:
    """Estimates log p(x) of the same held-out images at each call, without a trace in the training.

    >>> monitor = crais.callbacks.Monitor(held_out, likelihood=crais.Bernoulli())
    >>> monitor(vae)                                                # {"log_p/mean": -87.3, ...}
    >>> monitor.result.report("epoch.html")

    images       [N, *shape], in the forms that `evaluate` takes. The monitor reads the first
                 `max_images` once and keeps them on the CPU
    max_images   how many images to evaluate; None for all
    budget       evaluations of the decoder an image, at most
    name         what the names of the scalars begin with
    labels       as in `evaluate`; so are `key` and `layout`
    options      further arguments of `evaluate`

    Cost of a call: at most `max_images` times `budget` evaluations of the decoder. The defaults
    are enough to follow a training run: with these 51,200 evaluations, the Monte Carlo error is far
    below the error of so few images. Use `evaluate` for a number that you publish.

    `result` is the `Result` of the last call, None before the first.
    """

    def __init__(
        self,
        images: Any,
        *,
        max_images: int | None = 256,
        budget: int = 200,
        name: str = "log_p",
        labels: Any = None,
        key: str | None = None,
        layout: str | None = None,
        **options: Any,
    ) -> None:
        if max_images is not None and max_images < 1:
            raise UsageError(f"max_images must be at least 1, not {max_images}")
        with random_state.all_kept(device_of([])):
            kept, beside = read(images, key, layout, limit=max_images)
        beside = beside if labels is None else tensor_of(labels, "labels")
        if beside is not None and len(beside) < len(kept):
            raise UsageError(f"there are {len(kept)} images and {len(beside)} labels")
        self._images = kept if beside is None else TensorDataset(kept, beside[: len(kept)])
        self._options = {"budget": budget, "control": 0, "progress": False, **options}
        self._name = name
        self.result: Result | None = None

    def __call__(self, model: Any = None) -> dict[str, float]:
        """Evaluates the model as it is now, in eval mode.

        Modes of modules, gradients and the random states of PyTorch, NumPy and Python are the same afterwards.

        model        as in `evaluate`; None where the options have the model's functions

        Returns scalars by name:

        log_p/mean         the mean log p(x), nats
        log_p/data_se      its standard error because there are only these images, nats
        log_p/mc_se        its Monte Carlo error, nats
        log_p/bias         its expected bias, nats, at most 0; NaN where unknown
        log_p/flagged      the share of images whose estimate is doubtful, in [0, 1]
        log_p/evaluations  evaluations of the decoder an image

        Raises what `evaluate` raises.
        """
        parts = [model, *self._options.values()]
        with random_state.all_kept(device_of(parts)), in_eval_mode(modules_of(parts)):
            found = self.result = evaluate(model, self._images, **self._options)
        scalars = {name: getattr(found, name) for name in ("mean", "data_se", "mc_se", "bias")}
        scalars |= {"flagged": float((found.flags != 0).mean()), "evaluations": float(found.evaluations.mean())}
        return {f"{self._name}/{key}": value for key, value in scalars.items()}

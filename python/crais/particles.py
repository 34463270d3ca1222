"""Weighted particles of a density as draws of equal weight, and as ArviZ has them."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor


def resampled(z: Tensor, log_weights: Tensor, count: int, seed: int) -> Tensor:
    """Draws [R, count, dim] of equal weight, by systematic resampling and in random order.

    z [R, K, dim] and log_weights [R, K], nats, are particles of R replicates.
    """
    generator = torch.Generator().manual_seed(seed)
    start, order = torch.rand(2, len(z), count, generator=generator)
    steps = log_weights.softmax(1).cumsum(1)
    places = (torch.arange(count) + start[:, :1]).double() / count
    index = torch.searchsorted(steps, places).clamp_max(steps.shape[1] - 1)
    index = index.gather(1, order.argsort(1)).unsqueeze(2)
    return z.gather(1, index.expand(-1, -1, z.shape[2]))


def inference_data(groups: dict[str, Any]) -> Any:
    """ArviZ's, of any version, with `coords` and `dims` among its groups."""
    try:
        arviz = importlib.import_module("arviz")
    except ImportError:
        raise ImportError("to_arviz needs arviz: pip install arviz") from None
    about = {key: groups.pop(key) for key in ("coords", "dims") if key in groups}
    is_old = int(arviz.__version__.split(".")[0]) < 1
    return arviz.from_dict(**groups, **about) if is_old else arviz.from_dict(groups, **about)

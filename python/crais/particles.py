"""Weighted particles of a density, in the coordinates of whoever asked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from crais.captured import Function


class Particles:
    """K particles of each of R replicates.

    z            [R, K, dim], where chains moved
    log_weights  [R, K], nats; the mean of a replicate's weights is its estimate of Z
    point        z [B, dim] -> theta [B, ...], or a dict of them by name
    """

    def __init__(self, z: Tensor, log_weights: Tensor, point: Function) -> None:
        self.z, self.log_weights = z, log_weights
        self._point = point

    def theta(self, z: Tensor | None = None) -> Any:
        """theta [N, ...] of z [N, dim], or of all particles; a dict where theta has names."""
        with torch.no_grad():
            theta = self._point(self.z.flatten(0, 1) if z is None else z)
        if isinstance(theta, Mapping):
            return {str(name): one.numpy(force=True) for name, one in theta.items()}
        return theta.numpy(force=True)

    def draws(self, count: int, seed: int) -> Tensor:
        """z [R, count, dim] of equal weights: systematic resampling, in random order."""
        generator = torch.Generator().manual_seed(seed)
        start, order = torch.rand(2, len(self.z), count, generator=generator)
        steps = self.log_weights.softmax(1).cumsum(1)
        places = (torch.arange(count) + start[:, :1]).double() / count
        index = torch.searchsorted(steps, places).clamp_max(steps.shape[1] - 1)
        index = index.gather(1, order.argsort(1)).unsqueeze(2)
        return self.z.gather(1, index.expand(-1, -1, self.z.shape[2]))

    def to_arviz(self, count: int | None, seed: int, about: Function) -> Any:
        """Draws as ArviZ has them: a chain for each replicate. Needs arviz.

        about   draws by name [R, count, ...] -> other groups of `inference_data`, dims and coords
        """
        z = self.draws(count or self.z.shape[1], seed)
        theta = self.theta(z.flatten(0, 1))
        named = theta if isinstance(theta, dict) else {"theta": theta}
        draws = {name: one.reshape(*z.shape[:2], *one.shape[1:]) for name, one in named.items()}
        return inference_data({"posterior": draws, **about(draws)})


def inference_data(groups: dict[str, Any]) -> Any:
    """ArviZ's, of any version, with `coords` and `dims` among its groups."""
    try:
        arviz = importlib.import_module("arviz")
    except ImportError:
        raise ImportError("to_arviz needs arviz: pip install arviz") from None
    about = {key: groups.pop(key) for key in ("coords", "dims") if key in groups}
    is_old = int(arviz.__version__.split(".")[0]) < 1
    return arviz.from_dict(**groups, **about) if is_old else arviz.from_dict(groups, **about)

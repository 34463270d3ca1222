"""Weighted particles of a density, in the coordinates of whoever asked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crais.captured import Function

Array = NDArray[Any]


class Particles:
    """K particles of each of R replicates.

    z            [R, K, dim], where chains moved
    log_weights  [R, K], nats; the mean of a replicate's weights is its estimate of Z
    point        z [B, dim] -> theta [B, ...], or a dict of them by name
    """

    def __init__(self, z: Tensor, log_weights: Tensor, point: Function) -> None:
        self.z, self.log_weights = z, log_weights
        self._point = point

    def by_name(self, z: Tensor) -> dict[str, Array]:
        """theta of z [R, N, dim] by name, [R, N, ...]; a theta without names is "theta"."""
        with torch.no_grad():
            theta = self._point(z.flatten(0, 1))
        named = theta if isinstance(theta, Mapping) else {"theta": theta}
        return {
            str(name): value.detach().cpu().numpy().reshape(*z.shape[:2], *value.shape[1:])
            for name, value in named.items()
        }

    @property
    def flat(self) -> Array | dict[str, Array]:
        """All replicates together, [R * K, ...]; an array where there are no names."""
        named = {name: np.concatenate(list(one)) for name, one in self.by_name(self.z).items()}
        return named["theta"] if list(named) == ["theta"] else named

    def draws(self, count: int, seed: int) -> Tensor:
        """z [R, count, dim] of equal weights: systematic resampling, in random order."""
        generator = torch.Generator().manual_seed(seed)
        start, order = torch.rand(2, len(self.z), count, generator=generator)
        steps = self.log_weights.softmax(1).cumsum(1)
        places = (torch.arange(count) + start[:, :1]).double() / count
        index = torch.searchsorted(steps, places).clamp_max(steps.shape[1] - 1)
        index = index.gather(1, order.argsort(1)).unsqueeze(2)
        return self.z.gather(1, index.expand(-1, -1, self.z.shape[2]))

    def to_arviz(self, count: int | None, seed: int) -> Any:
        """Draws as ArviZ has them: a chain for each replicate. Needs arviz."""
        try:
            arviz = importlib.import_module("arviz")
        except ImportError:
            raise ImportError("to_arviz needs arviz: pip install arviz") from None
        draws = self.by_name(self.draws(count or self.z.shape[1], seed))
        is_old = int(arviz.__version__.split(".")[0]) < 1
        return arviz.from_dict(posterior=draws) if is_old else arviz.from_dict({"posterior": draws})

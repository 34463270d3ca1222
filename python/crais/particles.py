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

    def draws(self, count: int, seed: int) -> Tensor:
        """z [R, count, dim] of equal weights: systematic resampling, in random order."""
        generator = torch.Generator().manual_seed(seed)
        chosen = []
        for z, log_w in zip(self.z, self.log_weights):
            steps = log_w.softmax(0).cumsum(0)
            places = (torch.arange(count) + torch.rand((), generator=generator)) / count
            index = torch.searchsorted(steps, places.double()).clamp_max(len(steps) - 1)
            chosen.append(z[index[torch.randperm(count, generator=generator)]])
        return torch.stack(chosen)


def to_arviz(particles: Particles, count: int | None, seed: int) -> Any:
    """Draws as ArviZ has them: a chain for each replicate. Needs arviz."""
    try:
        arviz = importlib.import_module("arviz")
    except ImportError:
        raise ImportError("to_arviz needs arviz: pip install arviz") from None
    posterior = particles.by_name(
        particles.draws(count or particles.log_weights.shape[1], seed)
    )
    is_old = int(arviz.__version__.split(".")[0]) < 1
    return arviz.from_dict(posterior=posterior) if is_old else arviz.from_dict({"posterior": posterior})


def flattened(values: Mapping[str, Array]) -> Array | dict[str, Array]:
    """All replicates together, [R * K, ...]; an array where there are no names."""
    flat = {name: np.reshape(value, (-1, *value.shape[2:])) for name, value in values.items()}
    return flat["theta"] if list(flat) == ["theta"] else flat

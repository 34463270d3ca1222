"""Draws of chains that somebody else has run, in the coordinates of a density."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crais.captured import Function
from crais.densities import Density
from crais.errors import DataError, UsageError
from crais.gradients import with_gradient
from crais.images import tensor_of

_MOST = 2048  # draws at which the density is looked at
_FAR = 6.5  # standard errors of 20 batches or more: of 256 numbers chance reaches it once in 1,000 runs
_MOST_LOST = 1e-3  # of a draw that comes back from its coordinates, relative to 1 + its size


def chains_of(draws: Any, density: Density, replicates: int) -> Tensor:
    """e [chains, draws, dim], float64, of draws as `log_normalizer` takes them.

    Raises UsageError where names or shapes are others than the density's, or they are too few for
    `replicates`; DataError where a draw is not finite, or lies outside the prior or the support.
    """
    if density.inverse is None:
        raise UsageError("draws: prior_transform does not say the u of a draw; give prior=... in its place")
    posterior = getattr(draws, "posterior", draws)
    theta = _named(density.point(torch.zeros(1, density.dim, dtype=torch.float64)))
    if (isinstance(posterior, Mapping) or hasattr(posterior, "data_vars")) == ("draws" in theta):
        raise UsageError(f"draws: give {'an array' if 'draws' in theta else ', '.join(theta)}")
    given = {"draws": posterior} if "draws" in theta else posterior
    rows: dict[str, Tensor] = {}
    for name in (name for name in theta if name in given):
        one, shape = given[name], tuple(theta[name].shape[1:])
        array = tensor_of(one if isinstance(one, Tensor) else np.asarray(one), name).double()
        lead = tuple(array.shape[: array.dim() - len(shape)])
        if tuple(array.shape) != lead + shape or len(lead) not in (1, 2):
            raise UsageError(f"{name} has shape {list(array.shape)}: give [chains, draws] + {list(shape)}, or [draws]")
        chains, count = lead if len(lead) == 2 else (1, *lead)
        rows[name] = array.reshape(chains * count, *shape)
    least = 2 * max(replicates, 10)
    if len({len(part) for part in rows.values()}) != 1 or count < least:
        raise UsageError(f"draws: give {least} or more of each chain, of every name alike")
    try:
        e = density.inverse(rows.get("draws", rows))
    except KeyError as error:
        raise UsageError(f"draws lack {error}") from None
    back = _named(density.point(e))
    for name, part in rows.items():
        lost = ((back[name].detach().cpu() - part).abs() / (1 + part.abs())).reshape(len(part), -1)
        if wrong := int((~(lost < _MOST_LOST)).any(1).sum()):
            raise DataError(f"{name}: {wrong} of {len(part)} are not finite, or outside the support")
    return e.detach().cpu().double().reshape(chains, count, density.dim)


def doubts_of(chains: Tensor, log_density: Function) -> list[tuple[str, str]]:
    """Why chains e [chains, draws, dim] are not of a density, and what would mend it; or nothing.

    Where z has the density, each coordinate of its gradient g has the mean 0, and g (z - c) has -1
    [Stein 1972]. Raises DataError where the density is zero at a draw. Cost: 2,048 evaluations.
    """
    count = len(chains)
    chains = chains[:, :: -(-count * chains.shape[1] // _MOST)]
    batches = min(-(-20 // count), chains.shape[1])
    chains = chains[:, : chains.shape[1] // batches * batches]
    value, grad = with_gradient(log_density, chains.flatten(0, 1))
    if wrong := int((~(value > -math.inf)).sum()):
        raise DataError(f"draws: at {wrong} of {len(value)} the density is zero or NaN: are they of this density?")
    grad = grad.cpu().double().reshape(chains.shape)
    zero = torch.cat([grad, grad * (chains - chains.mean((0, 1))) + 1], 2)
    zero = zero.reshape(count * batches, -1, zero.shape[2]).mean(1)
    far = float((zero.mean(0).abs() / (zero.std(0) / math.sqrt(len(zero)) + 1e-9)).nan_to_num(0).max())
    what = f"the draws are not of this density: gradients at them are {far:.0f} standard errors from what they must be"
    return [(what, "give draws of this very density, and without warm-up")] * (far > _FAR)


def _named(theta: Any) -> dict[str, Tensor]:
    return dict(theta) if isinstance(theta, Mapping) else {"draws": theta}

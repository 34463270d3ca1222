"""Latents of any shape: crais has rows [B, D], a model may have maps [B, C, H, W]."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from crais.captured import Function
from crais.errors import UsageError

_MOST = 1 << 24
Latent: TypeAlias = int | Sequence[int]


def sizes_of(latent: Any, name: str = "latent") -> tuple[int, ...]:
    """The shape of one z, or of one x: (D,), or (C, H, W). Raises UsageError for what is none."""
    is_number = hasattr(latent, "__index__") and not getattr(latent, "shape", ())  # arrays have it
    try:
        sizes = tuple(map(operator.index, (latent,) if is_number else latent))
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 1 or math.prod(sizes) > _MOST:
        raise UsageError(f"{name} is a number D or a shape as (4, 8, 8), of 1 to {_MOST:,} numbers, not {latent!r}")
    return sizes


def shaped(function: Function, sizes: tuple[int, ...]) -> Function:
    """A function of rows z [B, D], in place of one of z [B, *sizes]."""
    if len(sizes) == 1:
        return function
    return lambda z, *others: function(z.reshape(-1, *sizes), *others)

"""Random numbers of crais's own: those that a user draws, in any thread, stay what they were."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crais.forces import EagerMode


class OwnNumbers(EagerMode):
    """What this thread draws by PyTorch's global generators comes from a generator of this object.

    It is then a function of the seed, whatever other threads draw, and the global generators stay
    as they are. PyTorch's distributions take no generator, so it is given to them from below.
    Numbers are drawn on the CPU, so that they are the same on every device.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        fill = _FILLS.get(function)
        drawing = fill or _taking_generator(function)
        given = (*args, *kwargs.values())
        if drawing is None or any(isinstance(one, torch.Generator) for one in given):
            return function(*args, **kwargs)
        tensor = next((one for one in args if isinstance(one, Tensor)), None)
        device = kwargs.get("device") or (torch.device("cpu") if tensor is None else tensor.device)
        here = [one.cpu() if isinstance(one, Tensor) else one for one in args]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        if fill is not None:
            here, kwargs = [torch.empty_like(here[0], **kwargs)], {}
        drawn = drawing(*here, **{**kwargs, "generator": self._generator})
        if function._schema.is_mutable and tensor is not None:
            return tensor if here[0] is tensor else tensor.copy_(drawn)
        return drawn.to(device)


_FILLS = {
    torch.ops.aten.rand_like.default: torch.ops.aten.uniform_.default,
    torch.ops.aten.randn_like.default: torch.ops.aten.normal_.default,
}


@functools.cache
def _taking_generator(function: Any) -> Any:
    """The overload of an operation of PyTorch's that takes a generator; None where it draws nothing."""
    if any(one.name == "generator" for one in function._schema.arguments):
        return function
    name = function._schema.overload_name
    return getattr(function.overloadpacket, f"{name}_generator" if name else "generator", None)


@contextmanager
def all_kept(device: torch.device) -> Iterator[None]:
    """Restores PyTorch's random state on the CPU and on the device, Python's and NumPy's.

    For a training alone: threads that draw meanwhile get the same numbers twice.
    """
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)

"""Forces in bfloat16: the gradient of log p(x, z), whose products are computed in a shorter type.

Hamiltonian Monte Carlo with an accept step is exact under any force that is a function of z alone; only the density
that accepts and weighs must be right. So the pass forward, which gives the value, is left as it is, and the products of
the pass backward are cast: where a processor has instructions for bfloat16, they take an eighth of their time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

_aten = torch.ops.aten

# Products of matrices, the last argument first.
_MATRICES: dict[Any, tuple[int, ...]] = dict.fromkeys((_aten.mm.default, _aten.bmm.default), (1, 0))
_MATRICES |= dict.fromkeys((_aten.addmm.default, _aten.baddbmm.default), (2, 1, 0))
# Multiplications for each number that is cast: with fewer, casting costs more than it brings.
_LEAST_WORK = 64
MUCH_WORK = 2_000_000  # multiplications a row, which make up for the mode's own cost in Python


class EagerMode(TorchDispatchMode):
    """A mode that nothing of dynamo's looks at: to be asked that would import it, for seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class ShorterProducts(EagerMode):
    """Convolutions, and products of large matrices, of float32 tensors in bfloat16.

    What they give is float32 again. `count` says how many there were, `work` how many multiplications a row they have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = self.work = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if not kwargs:
            if func is _aten.convolution_backward.default and _are_float32(args[:3]):
                grad, x, weight, transposed = args[0], args[1], args[2], args[7]
                small = x if transposed else grad  # each of whose numbers meets the whole kernel
                work = weight.numel() // weight.shape[0] * math.prod(small.shape[1:])
                if self._pays(work, math.prod(x.shape[1:]) + math.prod(grad.shape[1:])):
                    return self._shorter(func, args, (0, 1, 2))
            places = _MATRICES.get(func)
            if places is not None and _are_float32([args[i] for i in places]):
                inner, outer = args[places[0]].shape[-2:]
                rows = math.prod(args[places[1]].shape[1:-1])
                if self._pays(rows * inner * outer, rows * (inner + outer)):
                    return self._shorter(func, args, places)
        return func(*args, **(kwargs or {}))

    def _pays(self, work: Any, numbers: Any) -> bool:
        """Counts a product of so many multiplications a row, if casting its numbers pays."""
        if work < _LEAST_WORK * numbers:
            return False
        self.count += 1
        self.work += int(work)
        return True

    def _shorter(self, func: Any, args: tuple[Any, ...], places: tuple[int, ...]) -> Any:
        cast = [_cast(one) if i in places else one for i, one in enumerate(args)]
        return tree_map_only(Tensor, Tensor.float, func(*cast))


def _cast(tensor: Tensor) -> Tensor:
    if tensor.dim() != 4:
        return tensor.bfloat16()
    return tensor.to(torch.bfloat16, memory_format=torch.channels_last)  # as oneDNN is fastest


def _are_float32(tensors: Any) -> bool:
    return all(isinstance(one, Tensor) and one.dtype == torch.float32 for one in tensors)


def processor_has_bfloat16(device: torch.device) -> bool:
    """True where a device multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(processor_flags())


def processor_flags() -> list[str]:
    """Instruction sets of this processor, as /proc/cpuinfo calls them; [] where it is not there."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return []
    return flags.partition(":")[2].split()

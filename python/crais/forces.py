"""Forces in bfloat16: the gradient of log p(x, z), whose products are computed in a shorter type.

Hamiltonian Monte Carlo with an accept step is exact under any force that is a function of z alone;
only the density that accepts and weighs must be right. So the pass forward, which gives the value,
is left as it is, and the products of the pass backward are cast: where a processor has instructions
for bfloat16, they take an eighth of their time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from crais.captured import Function

_aten = torch.ops.aten

# Products of matrices, the last argument first.
_MATRICES: dict[Any, tuple[int, ...]] = {
    _aten.mm.default: (1, 0),
    _aten.bmm.default: (1, 0),
    _aten.addmm.default: (2, 1, 0),
    _aten.baddbmm.default: (2, 1, 0),
}
# Multiplications for each number that is cast: with fewer, casting costs more than it brings.
_LEAST_WORK = 64
_MUCH_WORK = 2_000_000  # multiplications a row, which make up for the mode's own cost in Python


class ShorterProducts(TorchDispatchMode):
    """Convolutions, and products of large matrices, of float32 tensors in `dtype`.

    What they give is float32 again. `count` says how many there were, `work` how many
    multiplications a row they have.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.count = self.work = 0
        self._dtype = dtype

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled by dynamo: asking it to look away would import it, for seconds."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if not kwargs:
            if func is _aten.convolution_backward.default and _are_float32(args[:3]):
                grad, x, weight, transposed = args[0], args[1], args[2], args[7]
                small = x if transposed else grad  # each of whose numbers meets the whole kernel
                work = weight.numel() // weight.shape[0] * math.prod(small.shape[1:])
                if self._pays(work, math.prod(x.shape[1:]) + math.prod(grad.shape[1:])):
                    return self._convolution_backward(*args)
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

    def _convolution_backward(self, *args: Any) -> Any:
        grad, x, weight, _, stride, padding, dilation, transposed, _, groups, mask = args
        if list(mask) != [True, False, False]:
            found = _aten.convolution_backward.default(*map(self._cast, args[:3]), *args[3:])
            return tuple(one if one is None else one.to(torch.float32) for one in found)
        # The gradient of the input alone is a convolution too, which needs no input.
        over = [0] * len(stride)
        if not transposed:
            for i, (s, p, d) in enumerate(zip(stride, padding, dilation)):
                whole = (grad.shape[2 + i] - 1) * s - 2 * p + d * (weight.shape[2 + i] - 1) + 1
                over[i] = x.shape[2 + i] - whole
        made = _aten.convolution.default(
            self._cast(grad), self._cast(weight), None, stride, padding, dilation,
            not transposed, over, groups,
        )  # fmt: skip
        return made.to(torch.float32), None, None

    def _shorter(self, func: Any, args: tuple[Any, ...], places: tuple[int, ...]) -> Tensor:
        shorter = list(args)
        for i in places:
            shorter[i] = self._cast(args[i])
        return func(*shorter).to(torch.float32)

    def _cast(self, tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.dim() != 4:
            return tensor if tensor is None else tensor.to(self._dtype)
        return tensor.to(self._dtype, memory_format=torch.channels_last)  # as oneDNN is fastest


def _are_float32(tensors: Any) -> bool:
    return all(isinstance(one, Tensor) and one.dtype == torch.float32 for one in tensors)


def with_forces(function: Function, z: Tensor, products: ShorterProducts) -> tuple[Tensor, Tensor]:
    """A function's values [B] at z [B, D] in float32; their gradients by shorter products."""
    with torch.enable_grad():
        z = z.detach().requires_grad_(True)
        value = function(z)
        total = value.sum()
        with products:
            (grad,) = torch.autograd.grad(total, z)
    return value.detach(), grad


def joint_with_forces(log_joint: Function, dtype: torch.dtype) -> Function:
    """(z, x, labels) -> log p(x, z) in float32, and its gradient, whose products are in `dtype`."""

    def joint(z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return with_forces(lambda z: log_joint(z, x, *y), z, ShorterProducts(dtype))

    return joint


def shorter_products(
    log_joint: Function, inputs: tuple[Tensor, ...], dtype: torch.dtype
) -> ShorterProducts:
    """What `joint_with_forces` computes in `dtype`."""
    products = ShorterProducts(dtype)
    with_forces(lambda z: log_joint(z, *inputs[1:]), inputs[0], products)
    return products


def pays_in_python(products: ShorterProducts, device: torch.device) -> bool:
    """True where eager PyTorch is faster by them. Decided by the model, not by a clock."""
    return products.work >= _MUCH_WORK and processor_has_bfloat16(device)


def processor_has_bfloat16(device: torch.device) -> bool:
    """True where a device multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((line.split() for line in file if line.startswith(("flags", "Features"))), [])
    except OSError:
        return False
    return any(flag in flags for flag in ("amx_bf16", "avx512_bf16"))

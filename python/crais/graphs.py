"""Transposed convolutions with few output channels, as compiled code computes them fastest.

They are the last layers of most decoders, and slow in oneDNN. Written as convolutions of fewer
pixels, whose channels are then spread over the pixels, they are the same sums in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

_convolution = torch.ops.aten.convolution.default
_FEW = 16  # output channels; with more, transposed convolutions are as fast as others


def spread(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> Any:  # fmt: skip
    """What make_fx traces for a convolution; NotImplemented: the convolution itself."""
    kernel, channels, dims = weight.shape[2:], weight.shape[1], len(stride)
    if not transposed or groups != 1 or max(stride) == 1 or set(dilation) != {1}:
        return NotImplemented
    if channels > _FEW or weight.dtype != torch.float32:
        return NotImplemented
    if not all(isinstance(size, int) for size in x.shape[2:]):
        return NotImplemented
    sizes = [
        (size - 1) * s - 2 * p + k + more
        for size, s, p, k, more in zip(x.shape[2:], stride, padding, kernel, output_padding)
    ]
    taps = [-(-k // s) for k, s in zip(kernel, stride)]  # that a pixel of a phase has
    per_axis = [_padding(*one) for one in zip(padding, stride, taps, x.shape[2:], sizes)]
    pads = [pad for pad in per_axis if pad is not None]
    if len(pads) < dims or any(size % s != 0 for size, s in zip(sizes, stride)):
        return NotImplemented
    phased = _phased(weight, stride, taps)
    made = _convolution(x, phased, None, [1] * dims, pads, [1] * dims, False, [0] * dims, 1)
    firsts = [p - s * (j - 1 - pad) for p, s, j, pad in zip(padding, stride, taps, pads)]
    made = _interleaved(made, channels, stride, firsts, sizes)
    return made if bias is None else made + bias.view(1, channels, *[1] * dims)


def _padding(padding: int, stride: int, taps: int, size: int, out: int) -> int | None:
    """The least that gives all pixels of a transposed convolution along one axis."""
    for pad in range(max(0, taps - 1 - padding // stride), taps):
        first = padding - stride * (taps - 1 - pad)
        if first >= 0 and first + out <= stride * (size + 2 * pad - taps + 1):
            return pad
    return None


def _phased(weight: Tensor, stride: Sequence[int], taps: Sequence[int]) -> Tensor:
    """[in, out, *k] -> [phases * out, in, *taps]: pixel s q + r is phase r of pixel q."""
    if type(weight) in (Tensor, torch.nn.Parameter):  # no input decides it: computed here, once
        with _disable_current_modes():
            return _of_phases(weight.detach(), stride, taps)
    return _of_phases(weight, stride, taps)


def _of_phases(kernel: Tensor, stride: Sequence[int], taps: Sequence[int]) -> Tensor:
    dims = len(stride)
    whole = kernel
    for i, (s, j) in enumerate(zip(stride, taps)):
        zeros = (0, 0) * (dims - 1 - i) + (0, s * j - kernel.shape[2 + i])
        whole = torch.nn.functional.pad(whole, zeros)
    split = whole.reshape(*kernel.shape[:2], *(n for j, s in zip(taps, stride) for n in (j, s)))
    split = split.flip([2 + 2 * i for i in range(dims)])
    phases = [3 + 2 * i for i in range(dims)]
    rest = [2 + 2 * i for i in range(dims)]
    kernels = split.permute(*phases, 1, 0, *rest).reshape(-1, kernel.shape[0], *taps)
    if dims == 2:  # as a convolution reads it fastest
        return kernels.contiguous(memory_format=torch.channels_last)
    return kernels.contiguous()


def _interleaved(
    made: Tensor, channels: int, stride: list[int], firsts: list[int], sizes: list[int]
) -> Tensor:
    """Phases [N, phases * channels, *] as pixels [N, channels, *], from `firsts` on.

    By concatenations, which the compiler keeps apart from what follows: that would otherwise
    gather the pixels one by one.
    """
    parts = [made.narrow(1, i * channels, channels) for i in range(math.prod(stride))]
    for axis in reversed(range(len(stride))):
        step, dim, merged = stride[axis], 2 + axis, []
        for group in range(0, len(parts), step):
            turns = []
            for i in range(step):
                first, phase = divmod(firsts[axis] + i, step)
                turns.append(parts[group + phase].narrow(dim, first, sizes[axis] // step))
            merged.append(torch.stack(turns, dim + 1).flatten(dim, dim + 1))
        parts = merged
    return parts[0]

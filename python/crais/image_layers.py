"""Layers of the fused evaluator, and what becomes one: crops, pads, pools and interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

Image: TypeAlias = tuple[int, int, int]  # channels, rows, columns

MOST_UNITS = 1 << 21  # of an image
MOST_CONNECTIONS = 1 << 22  # places times taps, which are listed in memory


class Unknown(Exception):
    """The fused evaluator does not compute this."""


def require(condition: bool) -> None:
    if not condition:
        raise Unknown


@dataclass
class Convolution:
    """A convolution of one group, or a transposed one, of images of these shapes."""

    transposed: bool
    input: Image
    output: Image
    stride: Sequence[int] = (1, 1)
    padding: Sequence[int] = (0, 0)
    dilation: Sequence[int] = (1, 1)
    output_padding: Sequence[int] = (0, 0)

    @property
    def places(self) -> int:
        """Those that meet the whole kernel."""
        return math.prod((self.input if self.transposed else self.output)[1:])


@dataclass
class Interpolation:
    """A place of the output is a sum of some places of the input, the same for each channel."""

    input: Image
    output: Image
    places: Tensor  # int64 [places of the output, taps]: of the input


@dataclass(frozen=True)
class Skip:
    """A residual connection from an earlier layer."""

    start: int  # its index
    before_activation: bool


@dataclass
class Normalisation:
    """Normalises groups of consecutive units, then scales and shifts each unit."""

    groups: int
    eps: float  # added to variances
    scale: Tensor  # [units]
    shift: Tensor

    def __call__(self, rows: Tensor) -> Tensor:
        """[B, units] -> [B, units]."""
        return F.group_norm(rows, self.groups, self.scale, self.shift, self.eps)


@dataclass
class Layer:
    """A linear map with a bias, then what may follow in this order: units of an earlier layer are
    added, all are normalised, an activation.
    """

    # [out, in], or as torch.nn.Conv2d and ConvTranspose2d have it, or of an interpolation's taps
    weight: Tensor
    bias: Tensor  # [out], of units or of channels
    convolution: Convolution | None = None
    activation: str | None = None  # as crais names it: "elu", "leaky-relu:0.2"
    skip: Skip | None = None
    normalisation: Normalisation | None = None
    interpolation: Interpolation | None = None  # in place of a convolution

    @property
    def kind(self) -> str:
        if self.interpolation is not None:
            return "interpolation"
        return "dense" if self.convolution is None else "convolution"

    def describe(self) -> dict[str, Any]:
        """What a reader must know of it besides its tensors (models/model_manifest.h)."""
        description: dict[str, Any] = {"kind": self.kind, "activation": self.activation}
        if s := self.skip:
            description["skip"] = {"from": s.start, "before_activation": s.before_activation}
        if n := self.normalisation:
            description["normalisation"] = {"groups": n.groups, "eps": n.eps}
        if c := self.convolution:
            sizes = {"stride": c.stride, "padding": c.padding, "dilation": c.dilation}
            description |= {"transposed": c.transposed, **sizes}
        if image := self.convolution or self.interpolation:
            description |= {"input": image.input, "output": image.output}
        return description

    @property
    def is_plain(self) -> bool:
        """True if nothing but an activation follows its linear map."""
        return self.skip is None and self.normalisation is None

    def linear(self, rows: Tensor) -> Tensor:
        """[B, in units] -> [B, out units], with nothing added and no activation."""
        if one := self.interpolation:
            units = rows.view(-1, one.input[0], math.prod(one.input[1:]))
            sums = self.bias.view(-1, 1)
            for places, weight in zip(one.places.t(), self.weight.t()):
                sums = sums + units[:, :, places] * weight
            return sums.flatten(1)
        if (c := self.convolution) is None:
            return F.linear(rows, self.weight, self.bias)
        images, sizes = rows.unflatten(1, c.input), (c.stride, c.padding, c.dilation)
        return torch.convolution(images, self.weight, self.bias, *sizes, c.transposed, c.output_padding, 1).flatten(1)

    @property
    def multiplications(self) -> int:
        if self.interpolation is not None:
            return self.weight.numel() * self.interpolation.output[0]
        return self.weight.numel() * (self.convolution.places if self.convolution else 1)

    @property
    def _outputs(self) -> int:
        """The dimension of the weight that is of outputs, units or channels."""
        return 1 if self.convolution and self.convolution.transposed else 0

    def scaled(self, scale: Tensor, shift: Tensor) -> Layer:
        """The linear map, then times `scale` and plus `shift` [out]."""
        shape = [1] * self.weight.dim()
        shape[self._outputs] = -1
        return replace(self, weight=self.weight * scale.view(shape), bias=self.bias * scale + shift)

    def picked(self, outputs: Tensor) -> Layer:
        """The linear map to some of its units or channels, by their numbers."""
        weight = self.weight.index_select(self._outputs, outputs)
        c = self.convolution
        fewer = c and replace(c, output=(len(outputs), *c.output[1:]))
        return replace(self, weight=weight, bias=self.bias[outputs], convolution=fewer)


def of_smaller(weight: Tensor, convolution: Convolution, factors: tuple[int, int]) -> tuple[Tensor, Convolution]:
    """A convolution of an image enlarged by nearest neighbours, as a transposed one of the image.

    Its pixels meet sums of the kernel's entries: a quarter of the work, or less, at a factor of 2.
    """
    c = convolution
    padding = [kernel - 1 - pad for kernel, pad in zip(weight.shape[2:], c.padding)]
    has_steps = max(*c.stride, *c.dilation) > 1
    require(not c.transposed and not has_steps and min(padding) >= 0)
    weight = weight.detach().float().transpose(0, 1)
    for axis, factor in zip((2, 3), factors):
        kernel = weight.shape[axis]
        taps = torch.arange(kernel + factor - 1).view(-1, 1)
        distance = torch.arange(kernel) - (kernel - 1 - taps)  # of a pixel's copy from its first
        sums = ((distance >= 0) & (distance < factor)).to(weight)
        weight = torch.tensordot(weight, sums, ([axis], [1])).movedim(-1, axis)
    channels, rows, columns = c.input
    image = (channels, rows // factors[0], columns // factors[1])
    return weight, Convolution(True, image, c.output, factors, padding)


def enlarged(layer: Layer, factors: tuple[int, int]) -> Layer:
    """A convolution of one tap, its image then enlarged by nearest neighbours: a transposed one."""
    c = layer.convolution
    if c is None or c.transposed or math.prod(layer.weight.shape[2:]) > 1:
        raise Unknown
    require(max(c.stride) == 1 and max(c.padding) == 0)
    image = (c.output[0], c.output[1] * factors[0], c.output[2] * factors[1])
    require(math.prod(image) <= MOST_UNITS)
    weight = layer.weight.transpose(0, 1).expand(-1, -1, *factors)
    return replace(layer, weight=weight, convolution=Convolution(True, c.input, image, factors))


def some_channels(image: Image, channels: Tensor) -> tuple[Tensor, Convolution]:
    """A part of an image's channels: a convolution of one tap."""
    weight = torch.eye(image[0], dtype=torch.float32)[channels, :, None, None]
    return weight, Convolution(False, image, (len(channels), *image[1:]))


def interpolated(image: Image, function: Callable[[Tensor], Tensor], device: torch.device) -> Layer:
    """What a linear function does with images [1, 1, rows, columns], along each axis by itself."""
    channels, rows, columns = image
    whole = function(torch.ones(1, 1, rows, columns, dtype=torch.float64))[0, 0]
    at = divmod(int(whole.abs().argmax()), whole.shape[1])  # a place that sees some

    def along(axis: int) -> tuple[Tensor, Tensor]:
        """For each place of one axis, the places that it sees and their weights: [out, taps] each."""
        lines = []
        for one in torch.eye(image[1 + axis], dtype=torch.float64):
            line = one.view(1, 1, *([-1, 1] if axis == 0 else [1, -1])).expand(1, 1, rows, columns)
            lines.append(function(line)[0, 0].select(1 - axis, at[1 - axis]))
        matrix = torch.stack(lines)  # [in, out]
        taps = max(1, int((matrix != 0).sum(0).max()))
        places = matrix.abs().topk(taps, 0).indices.sort(0).values
        return places.t(), matrix.gather(0, places).t()

    (vertical, heights), (horizontal, widths) = along(0), along(1)
    output = (channels, len(vertical), len(horizontal))
    number = len(vertical) * len(horizontal)
    taps = vertical.shape[1] * horizontal.shape[1]
    require(number * taps <= MOST_CONNECTIONS)
    require(max(math.prod(image), math.prod(output)) <= MOST_UNITS)
    places = vertical[:, None, :, None] * columns + horizontal[None, :, None, :]
    weight = heights[:, None, :, None] * widths[None, :, None, :] / whole[at]
    places = places.reshape(number, taps).contiguous().to(device)
    return Layer(
        weight.reshape(number, taps).float().contiguous().to(device),
        torch.zeros(channels, device=device),
        interpolation=Interpolation(image, output, places),
    )


def shuffling(image: Image, factor: int) -> tuple[Tensor, Convolution]:
    """Pixels from channels, as torch.nn.PixelShuffle has it: a transposed convolution."""
    channels = image[0] // factor**2
    output = (channels, image[1] * factor, image[2] * factor)
    weight = torch.eye(image[0], dtype=torch.float32).view(image[0], channels, factor, factor)
    return weight, Convolution(True, image, output, (factor, factor))

"""Images as a tensor [N, ...], whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from crais.errors import UsageError

_TYPES = (torch.uint8, torch.float32, torch.int32, torch.int64)


def as_tensor(images: Any) -> Tensor:
    """[N, ...] on the CPU. Of a Dataset or DataLoader the first part of each item is the image."""
    if isinstance(images, (DataLoader, Dataset)):
        has_batches = isinstance(images, DataLoader) and images.batch_sampler is not None
        found = _joined([_image_of(item) for item in _items(images)], has_batches)
    elif isinstance(images, (list, tuple)):
        raise UsageError("images is a list: give a tensor or an array, as torch.stack(images)")
    else:
        found = tensor_of(images, "images")
    if found.dtype in (torch.float64, torch.float16, torch.bfloat16):
        found = found.float()
    elif found.dtype == torch.bool:
        found = found.to(torch.uint8)
    if found.shape[:1] in ((), (0,)):
        raise UsageError(f"images has shape {list(found.shape)}: [N, ...] with N > 0 is expected")
    if found.dtype not in _TYPES:
        raise UsageError(f"images are {found.dtype}; uint8 or float32 is expected")
    return found.reshape(len(found), -1) if found.dim() == 1 else found


def tensor_of(values: Any, what: str) -> Tensor:
    """A plain tensor on the CPU, a copy where the memory is not PyTorch's order of it."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise UsageError(f"{what} is a masked array, and masks are not read: fill it, as .filled(0)")
        values = values.data
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "buif":
            raise UsageError(f"{what} is an array of {values.dtype}: real numbers are expected")
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        if not values.flags.writeable:
            values = values.copy()
    if isinstance(values, Tensor) and (kind := _unusual(values)):
        raise UsageError(f"{what} is a {kind} tensor: give a plain one, as of .to_dense()")
    try:
        return torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        dtype = f" of {values.dtype}" if isinstance(values, (np.ndarray, Tensor)) else ""
        raise UsageError(
            f"{what} must be a tensor, an array, a Dataset or a DataLoader, not "
            f"{type(values).__name__}{dtype}"
        ) from None


def _unusual(values: Tensor) -> str:
    """A word for a tensor that does not say all of its numbers plainly; "" for any other."""
    if torch.masked.is_masked_tensor(values):
        return "masked"
    if values.is_nested:
        return "nested"
    if values.is_quantized:
        return "quantized"
    return "" if values.layout == torch.strided else "sparse"


def _items(images: Any) -> Iterable[Any]:
    if isinstance(images, (DataLoader, IterableDataset)):
        return images
    return (images[i] for i in range(len(images)))


def _image_of(item: Any) -> Tensor:
    """The image, or the batch of them, of an item (image, label)."""
    first = item[0] if isinstance(item, (tuple, list)) and len(item) > 0 else item
    if not isinstance(first, (Tensor, np.ndarray)):
        first = np.asarray(first)
        if first.dtype.kind not in "buif":
            kind = type(item[0] if isinstance(item, (tuple, list)) and item else item).__name__
            raise UsageError(
                f"an item of images begins with a {kind}: a tensor or an array is expected, alone "
                "or before the labels"
            )
    return tensor_of(first, "an item of images")


def _joined(images: list[Tensor], are_batches: bool) -> Tensor:
    if not images:
        return torch.empty(0)
    try:
        return torch.cat(images) if are_batches else torch.stack(images)
    except RuntimeError:
        shapes = sorted({str(list(image.shape[are_batches:])) for image in images})
        raise UsageError(f"images differ in shape: {', '.join(shapes[:3])}") from None

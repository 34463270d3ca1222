"""Images as a tensor [N, ...], whatever holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from crais.errors import UsageError

_TYPES = (torch.uint8, torch.float32, torch.int32, torch.int64)
# By which data sets of dictionaries call them.
_IMAGES = "image images img pixel_values x data".split()
_LABELS = "label labels target targets y class".split()


def read(
    images: Any, key: str | None = None, layout: str | None = None, limit: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """Images [N, ...] on the CPU, and the labels that lie beside them, if any do.

    Each item of a Dataset, a DataLoader or a list is an image, begins with one, or is a dictionary
    that holds one under `key`. layout="NHWC": channels come last. `limit` images at most are read.
    """
    labels = None
    images = np.asarray(images) if isinstance(images, memoryview) else images
    if isinstance(images, (list, tuple)):
        _check_list(images)
    is_plain = isinstance(images, (str, bytes, Mapping)) or hasattr(images, "__array__")
    has_items = hasattr(images, "__getitem__") and hasattr(images, "__len__")  # of any library
    if isinstance(images, (DataLoader, Dataset)) or has_items and not is_plain:
        has_batches = isinstance(images, DataLoader) and images.batch_sampler is not None
        items = _first_items(images, key, has_batches, limit)
        batch = _joined([image for image, _ in items], has_batches)
        labels = _labels_of([label for _, label in items], has_batches)
    elif isinstance(images, Mapping):
        image, label = _parts_of(images, key)
        batch, labels = tensor_of(image, "images"), _labels_of([label], True)
    elif key is not None:
        raise UsageError(f"key is for images in dictionaries; these are a {type(images).__name__}")
    else:
        batch = tensor_of(images, "images")
    if batch.dtype in (torch.float64, torch.float16, torch.bfloat16):
        batch = batch.float()
    elif batch.dtype == torch.bool:
        batch = batch.to(torch.uint8)
    if batch.shape[:1] in ((), (0,)):
        raise UsageError(f"images has shape {list(batch.shape)}: give [N, ...] with N > 0")
    if batch.dtype not in _TYPES:
        raise UsageError(f"images are {batch.dtype}: give uint8 or float32")
    batch = batch.reshape(len(batch), -1) if batch.dim() == 1 else batch
    if layout not in (None, "NCHW", "NHWC"):
        raise UsageError(f"layout is NCHW or NHWC, not {layout}")
    if layout == "NHWC" and batch.dim() != 4:
        raise UsageError(f'layout="NHWC" is for images [N, H, W, C]; these are {list(batch.shape)}')
    batch = batch[:limit].permute(0, 3, 1, 2).contiguous() if layout == "NHWC" else batch[:limit]
    return batch, None if labels is None else labels[:limit]


def shapes_for(images: Tensor | None) -> list[Sequence[int]]:
    """An image's own shape, and others in which a model may take its numbers, the likeliest first.

    At the end those of one image that has no axis of images.
    """
    if images is None:
        return []
    shapes = [*_shapes(images.shape[1:]), *(_shapes(images.shape) if images.dim() > 1 else [])]
    return [shape for i, shape in enumerate(shapes) if shape not in shapes[:i]]


def as_batch(images: Tensor, shape: Sequence[int]) -> Tensor:
    """Images of this shape; where all numbers are one image's, a batch of one.

    Raises UsageError where the channels would have to change their place.
    """
    own = tuple(images.shape[1:])
    if len(own) == 3 and own[2] > 1 and tuple(shape) == (own[2], *own[:2]) != own:
        raise UsageError(
            f"the model takes images {list(shape)}, and these are {list(own)}: give "
            'images.permute(0, 3, 1, 2), or layout="NHWC"'
        )
    is_one = math.prod(shape) == images.numel() != math.prod(own)
    is_same = [n for n in shape if n > 1] == [n for n in own if n > 1]
    return images.reshape(-1, *shape) if is_one or is_same else images


def _shapes(own: Sequence[int]) -> list[tuple[int, ...]]:
    own = tuple(own)
    shapes = [own, (math.prod(own),)]
    if len(own) == 2:
        shapes.append((1, *own))
    if len(own) == 3 and own[2] == 1:  # one channel may as well come first
        shapes += [(1, *own[:2]), own[:2]]
    return shapes


def _check_list(images: Sequence[Any]) -> None:
    """Raises UsageError for a list of numbers, or of lists of these."""
    if not images:
        raise UsageError("images is empty")
    first = images[0]
    if isinstance(first, (list, tuple)):
        first = first[0] if len(first) else None
    is_array = hasattr(first, "__array__") or hasattr(first, "__array_interface__")
    if not isinstance(first, (Tensor, Mapping)) and not (is_array and np.ndim(first) > 0):
        raise UsageError(
            f"images is a {type(images).__name__} of {type(images[0]).__name__}: give a list of "
            "tensors or arrays, or one array"
        )


def tensor_of(values: Any, what: str) -> Tensor:
    """A plain tensor on the CPU, a copy where the memory is not PyTorch's order of it."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise UsageError(f"{what} is a masked array, and crais does not read masks: fill it, as by .filled(0)")
        values = values.data
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "buif":
            raise UsageError(f"{what} is an array of {values.dtype}: give real numbers")
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        if not values.flags.writeable:
            values = values.copy()
    if isinstance(values, Tensor) and (
        torch.masked.is_masked_tensor(values)
        or values.is_nested
        or values.is_quantized
        or values.is_meta
        or values.layout != torch.strided
    ):
        raise UsageError(f"{what} is a masked, nested, quantized, sparse or meta tensor: give a plain one with numbers")
    try:
        return torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        dtype = f" of {values.dtype}" if isinstance(values, (np.ndarray, Tensor)) else ""
        raise UsageError(
            f"{what} must be a tensor, an array, a Dataset or DataLoader, not {type(values).__name__}{dtype}"
        ) from None


def _first_items(images: Any, key: str | None, are_batches: bool, limit: int | None) -> list[tuple[Tensor, Any]]:
    """The image (or batch of images) and the label of each item, until there are `limit` images."""
    items: list[tuple[Tensor, Any]] = []
    num_images = 0
    is_stream = isinstance(images, (DataLoader, IterableDataset))
    for item in images if is_stream else (images[i] for i in range(len(images))):
        first, label = _parts_of(item, key)
        items.append((_image_of(first), label))
        num_images += len(items[-1][0]) if are_batches else 1
        if limit is not None and num_images >= limit:
            break
    return items


def _parts_of(item: Any, key: str | None) -> tuple[Any, Any]:
    """The image of an item, or a batch of them, and its label; None without one."""
    if isinstance(item, Mapping):
        known = [name for name in _IMAGES if name in item]
        name = key if key is not None else known[0] if len(known) == 1 else None
        if name not in item:
            raise UsageError(
                f"an item of images is a dictionary of {', '.join(map(str, item))}: say which is "
                f"the image, as key={next(iter(item), 'image')!r}"
            )
        return item[name], next((item[label] for label in _LABELS if label in item), None)
    if key is not None:
        raise UsageError(f"key is for items that are dictionaries; these are {type(item).__name__}")
    if isinstance(item, (tuple, list)) and len(item) > 0:
        if isinstance(item[0], Mapping):
            return _parts_of(item[0], key)
        return item[0], item[1] if len(item) > 1 else None
    return item, None


def _image_of(first: Any) -> Tensor:
    """The image, or the batch of them."""
    if not isinstance(first, (Tensor, np.ndarray)):
        kind, first = type(first).__name__, np.asarray(first)
        if first.dtype.kind not in "buif":
            raise UsageError(f"an item of images begins with a {kind}: give a tensor or array, alone or before labels")
    return tensor_of(first, "an item of images")


def _labels_of(labels: list[Any], are_batches: bool) -> Tensor | None:
    """As a tensor [N, ...]; None where they are none that a model could take."""
    if not labels or any(label is None for label in labels):
        return None
    try:
        tensors = [torch.as_tensor(label).detach().cpu() for label in labels]
        return torch.cat(tensors) if are_batches else torch.stack(tensors)
    except (TypeError, ValueError, RuntimeError):
        return None


def _joined(images: list[Tensor], are_batches: bool) -> Tensor:
    if not images:
        return torch.empty(0)
    try:
        return torch.cat(images) if are_batches else torch.stack(images)
    except RuntimeError:
        shapes = sorted({str(list(image.shape[are_batches:])) for image in images})
        raise UsageError(f"images differ in shape: {', '.join(shapes[:3])}") from None

"""Images as a tensor [N, ...], whatever holds them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from crais.errors import UsageError

_TYPES = (torch.uint8, torch.float32, torch.int32, torch.int64)


def as_tensor(images: Any) -> Tensor:
    """[N, ...] on the CPU. Of a Dataset or DataLoader the first part of each item is the image."""
    if isinstance(images, DataLoader):
        batches = [_first(batch) for batch in images]
        found = torch.cat([batch.cpu() for batch in batches]) if batches else torch.empty(0)
    elif isinstance(images, Dataset):
        items = [_first(images[i]) for i in range(len(images))]  # type: ignore[arg-type]
        found = torch.stack([torch.as_tensor(item).cpu() for item in items]) if items else _NONE
    elif isinstance(images, (list, tuple)):
        raise UsageError("images is a list: give a tensor or an array, as torch.stack(images)")
    else:
        try:
            found = torch.as_tensor(images).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            raise UsageError(
                "images must be a tensor, an array, a Dataset or a DataLoader, not "
                f"{type(images).__name__}"
            ) from None
    if found.dtype in (torch.float64, torch.float16, torch.bfloat16):
        found = found.float()
    elif found.dtype == torch.bool:
        found = found.to(torch.uint8)
    if found.shape[:1] in ((), (0,)):
        raise UsageError(f"images has shape {list(found.shape)}: [N, ...] with N > 0 is expected")
    if found.dtype not in _TYPES:
        raise UsageError(f"images are {found.dtype}; uint8 or float32 is expected")
    return found.reshape(len(found), -1) if found.dim() == 1 else found


_NONE = torch.empty(0)


def _first(item: Any) -> Any:
    """The image of an item (image, label)."""
    return item[0] if isinstance(item, (tuple, list)) else item

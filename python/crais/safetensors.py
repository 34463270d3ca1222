"""The safetensors format, written and read: named tensors and string pairs in one block of bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch

_NAMES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.uint8: "U8"}


def dumps(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> bytes:
    """The tensors (float32, float64, int64, uint8) and the metadata as the bytes of one file."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    blocks: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        block = tensor.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(block)],
        }
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blocks)


def load(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of the bytes of one file, by name. Raises KeyError for another dtype than `dumps` takes."""
    types = {name: dtype for dtype, name in _NAMES.items()}
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, about in header.items():
        begin, end = (start + place for place in about["data_offsets"])
        found[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=types[about["dtype"]]).view(about["shape"])
    return found

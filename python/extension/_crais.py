"""crais._crais: the library for the torch that is there, as crais/native.py calls it.

A function that is not here is the library's own: its arguments and result cross as JSON.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import json
import signal
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from crais import errors, programs

# PyTorch's shim: a capsule has the address of a tensor on the heap, with its graph. What steals just one leaks it.
_SHIM, _C = torch._C._aoti, ctypes.PyDLL(None)
_C.PyCapsule_GetPointer.restype, _C.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_C.PyCapsule_New.restype, _C.PyCapsule_New.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)


def _load() -> Any:
    loader = importlib.machinery.ExtensionFileLoader("_native", str(programs.library() / "_native.abi3.so"))
    module = loader.create_module(importlib.machinery.ModuleSpec("_native", loader, origin=loader.path))
    loader.exec_module(module)
    return module


_native = _load()


def _encoded(value: object) -> Any:
    if isinstance(value, Tensor):
        return {"tensor": _C.PyCapsule_GetPointer(_SHIM.unsafe_alloc_void_ptr_from_tensor(value), None)}
    raise TypeError(f"{type(value).__name__} is no tensor")


def _decoded(found: dict[str, Any]) -> Any:
    if found.keys() == {"report"}:
        return Report(found["report"])
    if found.keys() != {"tensor"}:
        return found
    return _SHIM.alloc_tensors_by_stealing_from_void_ptrs([_C.PyCapsule_New(found["tensor"], None, None)])[0]


def _call(name: str, *arguments: object, run: Any = None) -> Any:
    """What the library's function returns. `run`, a crais.native.Run, answers what it asks meanwhile."""

    def answer(asked: str, text: str) -> str:
        found = getattr(run, asked, None)
        if asked == "interrupt":
            run.stopped = True
        elif asked == "poll" and run.stopped:
            raise KeyboardInterrupt
        elif callable(found):
            found = found(*json.loads(text, object_hook=_decoded))
        return json.dumps(found, default=_encoded)

    is_main = threading.current_thread() is threading.main_thread()
    heeds_signals = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    found = _native.call(name, json.dumps(arguments, default=_encoded), answer, heeds_signals)
    return json.loads(found, object_hook=_decoded)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return functools.partial(_call, name)


class Report:
    """What a run has found: it lies in the library, and nothing changes it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.done, self.total, self.summary, self.indices = _call("about", handle)

    def __getattr__(self, name: str) -> Any:
        if name in ("methods", "particles", "works", "plan", "learning_seconds"):
            return _call(name, self._handle)
        if name in ("cloud", "text", "details", "file", "save"):
            return functools.partial(_call, name, self._handle)
        raise AttributeError(name)

    def __del__(self) -> None:
        _call("drop", self._handle)

    def __deepcopy__(self, memo: object) -> Report:
        return self

    def __reduce__(self) -> Any:
        raise errors.UsageError(
            "a result cannot be pickled: `save` keeps it in a folder, and `to_dict` gives its numbers"
        )

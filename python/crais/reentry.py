"""Whether functions may be called from several threads side by side.

A function that keeps what it was given (`self.z = z`), or that may be entered once only, fails
there, or mixes up its rows. A probe finds it without chance: between the operations of one call,
another thread makes a whole call with other rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from crais.captured import Function

_MOST_PLACES = 24  # at which the other call comes
_PATIENCE = 0.5  # seconds for another call, which may wait for a lock that the first one holds


def keeps_state(
    functions: Mapping[str, Function], inputs: Callable[[str, int], tuple[Tensor, ...]]
) -> bool:
    """True where a function's values are others, or it fails, while another thread calls it.

    `inputs(name, rows)` are a function's. Cost for each: 27 calls at most, of few rows.
    """
    return any(
        _disturbed(function, inputs(name, 3), inputs(name, 2))
        for name, function in functions.items()
    )


def _disturbed(function: Function, mine: tuple[Tensor, ...], others: tuple[Tensor, ...]) -> bool:
    count = _Between(lambda: None)
    try:
        with count:
            alone = _tensors(function(*mine))
        wanted = _tensors(function(*others))
    except Exception:
        return False  # it cannot be watched
    others_agree: list[Any] = []

    def call() -> None:
        try:
            with torch.inference_mode(False):
                others_agree.append(_same(_tensors(function(*others)), wanted))
        except BaseException as error:  # whatever it is: it came of being called here
            others_agree.append(error)

    between = _Between(
        lambda: _in_another_thread(call), max(1, -(-count.operations // _MOST_PLACES))
    )
    try:
        with between:
            disturbed = _tensors(function(*mine))
    except Exception:
        return True
    return not _same(disturbed, alone) or any(one is not True for one in others_agree)


class _Between(TorchFunctionMode):
    """Does something before every n-th operation of this thread."""

    def __init__(self, act: Callable[[], Any], every: int = 1) -> None:
        super().__init__()
        self.operations = 0
        self._act, self._every = act, every

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if self.operations % self._every == self._every // 2 and self._act() is False:
            self._every = 1 << 60  # it has waited for nothing once
        self.operations += 1
        return function(*args, **(kwargs or {}))


def _in_another_thread(call: Callable[[], None]) -> bool:
    """False where it has not come to its end: the function lets one in at a time."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return not thread.is_alive()


def _tensors(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        for a, b in zip(one, other)
    )

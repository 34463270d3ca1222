"""Whether functions may be called from several threads side by side.

A function that keeps what it was given (`self.z = z`), or that may be entered once only, fails
there, or mixes up its rows. A probe finds it without chance: between the operations of one call,
another thread makes a whole call with other rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from crais.captured import Function

_MOST_PLACES = 24  # at which the other call comes
_PATIENCE = 0.5  # seconds for another call, which may wait for a lock that the first one holds


def keeps_state(function: Function, inputs: Callable[[int], tuple[Tensor, ...]]) -> bool:
    """True where a function's values are others, or it fails, while another thread calls it.

    `inputs(rows)` are the function's. Cost: 27 calls at most, of few rows.
    """
    mine, others = inputs(3), inputs(2)
    count = _Between(lambda: None)
    try:
        with count:
            alone = function(*mine)
        wanted = function(*others)
    except Exception:
        return False  # it cannot be watched
    others_agree: list[Any] = []

    def call() -> None:
        try:
            with torch.inference_mode(False):
                others_agree.append(_same(function(*others), wanted))
        except BaseException as error:  # whatever it is: it came of being called here
            others_agree.append(error)

    def call_beside() -> bool:
        """False where it has not come to its end: the function lets one in at a time."""
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        return not thread.is_alive()

    try:
        with _Between(call_beside, max(1, -(-count.operations // _MOST_PLACES))):
            disturbed = function(*mine)
    except Exception:
        return True
    return not _same(disturbed, alone) or any(one is not True for one in others_agree)


class _Between(TorchFunctionMode):
    """Does something before every n-th operation of this thread."""

    def __init__(self, act: Callable[[], Any], every: int = 1) -> None:
        super().__init__()
        self.operations = 0
        self._act, self._every = act, every

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.operations % self._every == self._every // 2 and self._act() is False:
            self._every = 1 << 60  # it has waited for nothing once
        self.operations += 1
        return function(*args, **(kwargs or {}))


def _same(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) for a, b in zip(one, other)
    )

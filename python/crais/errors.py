"""What crais raises. Each message is one line: what is wrong, where, and what would be right."""

from __future__ import annotations

from typing import Any


class UsageError(ValueError):
    """A value that was given: an option, a name, a shape, a model that cannot be evaluated."""


class RowShapeError(UsageError):
    """Rows of a shape that the model does not take; its own error, if it raised one, is the cause."""


class PlanError(UsageError):
    """No plan of annealing gets from the base to the target."""


class DataError(ValueError):
    """A file's content, numbers outside the likelihood's support, a density that is not finite."""


class NoInputError(FileNotFoundError):
    """A file that is missing or cannot be read."""


class DeviceError(RuntimeError):
    """A device that is not there."""


class OutputError(OSError):
    """An output that cannot be made, or a write that failed."""


class InternalError(RuntimeError):
    """A fault of crais or of LibTorch."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. `result` holds what was done before; None if nothing was."""

    result: Any = None


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


# In the order of ErrorKind (src/util/error.h).
_KINDS: list[type[BaseException]] = [
    UsageError,
    DataError,
    NoInputError,
    DeviceError,
    InternalError,
    OutputError,
    OutputError,
    Interrupted,
]


def of_kind(kind: int, message: str, is_plan: bool) -> BaseException:
    """The exception for an error of the library."""
    return PlanError(message) if is_plan else _KINDS[kind](message)

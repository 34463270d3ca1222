"""The exceptions of crais. A message is one line: what is wrong, where, what would be right."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn


class _Brief(Exception):
    """Of a word or value of more than 200 characters it shows the first 200, on one line."""

    def __str__(self) -> str:
        text = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: repr(found[0])[1:-1], super().__str__())
        text = re.sub(r"(?<!\w)'([^']{200})[^']{4,}'", r"'\1...'", text)
        return re.sub(r"(\S{200})\S{4,}", r"\1...", text)


class UsageError(_Brief, ValueError):
    """An argument is wrong: an option, a name, a shape, or a model that cannot be evaluated."""


class RowShapeError(UsageError):
    """The model does not take rows of this shape; its own error, if it raised one, is the cause."""


class PlanError(UsageError):
    """No annealing plan reaches the target from the base, or none within the budget."""


class DataError(_Brief, ValueError):
    """Data are wrong: a damaged file, numbers outside the support, a density that is not finite."""


class NoInputError(_Brief, FileNotFoundError):
    """A file or repository is missing or cannot be read."""


class DeviceError(_Brief, RuntimeError):
    """This machine has no such device."""


class OutputError(_Brief, OSError):
    """An output cannot be made, or a write failed."""


class InternalError(_Brief, RuntimeError):
    """crais or LibTorch has a fault: please report it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the run. `result` holds the finished part, or None."""

    result: Any = None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What to say after a name that is none: "; did you mean likelihood?", or "" where none is near."""
    near = difflib.get_close_matches(name, names, 1, 0.7)
    return f"; did you mean {near[0]}?" if near else ""


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


# In the order of ErrorKind (src/util/error.h), with the exit codes of the programs.
_KINDS: list[tuple[type[BaseException], int]] = [
    (UsageError, os.EX_USAGE),
    (DataError, os.EX_DATAERR),
    (NoInputError, os.EX_NOINPUT),
    (DeviceError, os.EX_UNAVAILABLE),
    (InternalError, os.EX_SOFTWARE),
    (OutputError, os.EX_CANTCREAT),
    (OutputError, os.EX_IOERR),
    (Interrupted, os.EX_TEMPFAIL),
]


class Parser(argparse.ArgumentParser):
    """What is wrong with a command line is a UsageError."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("unrecognized arguments:", "unknown flag")
        raise UsageError(f"{message[:200]}; see {self.prog} --help")


@contextlib.contextmanager
def one_line(program: str) -> Iterator[None]:
    """An error of crais's becomes one line on stderr, and the exit code of the programs."""
    try:
        yield
    except tuple(kind for kind, _ in _KINDS) as error:
        print(f"{program}: {first_line(error)}", file=sys.stderr)
        code = next(code for kind, code in _KINDS if isinstance(error, kind))
        sys.exit(getattr(error, "exit_code", code))


def of_kind(kind: int, message: str, is_plan: bool) -> Any:
    """The exception for an error of the library."""
    error: Any = PlanError(message) if is_plan else _KINDS[kind][0](message)
    error.exit_code = _KINDS[kind][1]
    return error

"""`estimate-logz my_model.py:log_density --dim 61`: the log density is a function of a Python file."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from crais import errors, native
from crais.evaluation import log_normalizer
from crais.programs import FUNCTION

_CODES = {
    errors.UsageError: os.EX_USAGE,
    errors.DataError: os.EX_DATAERR,
    errors.NoInputError: os.EX_NOINPUT,
    errors.DeviceError: os.EX_UNAVAILABLE,
    errors.InternalError: os.EX_SOFTWARE,
    errors.OutputError: os.EX_IOERR,
    errors.Interrupted: os.EX_TEMPFAIL,
}
_REPEATABLE = {"method", "expect"}


def run(arguments: list[str]) -> int:
    """Estimates the log normaliser that `arguments` name, and prints the report of estimate-logz.

    Flags are those of estimate-logz, and --dim. Returns its exit code. An error of crais's is one
    line on stderr; what the user's own code raises goes through.
    """
    try:
        options = vars(_parser().parse_args(arguments))
        function, form = _function(options.pop("target")), options.pop("format", "table")
        result = log_normalizer(function, progress=not options.pop("quiet", False), **options)
        result._report.print(options.get("out", ""), form)
        return 0
    except tuple(_CODES) as error:
        print(f"estimate-logz: {errors.first_line(error)}", file=sys.stderr)
        return next(code for kind, code in _CODES.items() if isinstance(error, kind))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise errors.UsageError(f"{message}; see estimate-logz --help")


def _parser() -> argparse.ArgumentParser:
    """The flags that estimate-logz has, whose values it will check itself."""
    parser = _Parser(
        "estimate-logz", allow_abbrev=False, add_help=False, argument_default=argparse.SUPPRESS
    )
    parser.add_argument("target")
    parser.add_argument("--dim", type=int)
    for flag in native.extension().options("estimate-logz"):
        name = flag["name"]
        if name.replace("-", "_") in native.TERMINAL - {"format", "quiet"}:
            continue
        if not flag["value"]:
            parser.add_argument(f"--{name}", action="store_true")
        elif name in _REPEATABLE:
            parser.add_argument(f"--{name}", action="append")
        else:
            parser.add_argument(f"--{name}")
    return parser


def _function(operand: str) -> Callable[..., Any]:
    """The function NAME of FILE.py, which is run as a module beside its neighbours.

    Raises NoInputError where there is no such file, UsageError where it has no such function.
    """
    parts = FUNCTION.fullmatch(operand)
    assert parts is not None
    path, name = Path(parts["file"]), parts["name"]
    if not path.is_file():
        raise errors.NoInputError(f"no such file: {path}")
    sys.path.insert(0, str(path.parent.absolute()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        functions = sorted(
            n for n, v in vars(module).items() if callable(v) and not n.startswith("_")
        )
        raise errors.UsageError(f"{path} has no function {name}; it has {', '.join(functions)}")
    return function

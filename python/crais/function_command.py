"""`estimate-logz my_model.py:log_density --dim 61`: the log density is a function of a Python file."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crais import errors, native
from crais.evaluation import log_normalizer
from crais.programs import FUNCTION

_REPEATABLE = {"method", "expect"}


@errors.one_line("estimate-logz")
def run(arguments: list[str]) -> None:
    """Does what estimate-logz does with the function that `arguments` name.

    Flags are those of estimate-logz, and --dim. What the user's own code raises goes through.
    """
    native.is_program = True
    native.extension().begin_program()
    options = vars(_parser().parse_args(arguments))
    log_normalizer(_function(options.pop("target")), progress=False, **options)
    native.extension().finish_output()


def _parser() -> argparse.ArgumentParser:
    """The flags that estimate-logz has, whose values it will check itself."""
    parser = errors.Parser("estimate-logz", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("target")
    parser.add_argument("--dim", type=int)
    for flag in native.extension().options("estimate-logz"):
        action = "store" if flag["value"] else "store_true"
        action = "append" if flag["name"] in _REPEATABLE else action
        parser.add_argument(f"--{flag['name']}", action=action)
    return parser


def _function(operand: str) -> Callable[..., Any]:
    """The function NAME of FILE.py, which is run beside its neighbours.

    Raises NoInputError where there is no such file, UsageError where it has no such function.
    """
    parts = FUNCTION.fullmatch(operand)
    assert parts is not None
    path, name = Path(parts["file"]), parts["name"]
    if not path.is_file():
        raise errors.NoInputError(f"no such file: {path}")
    sys.path.insert(0, str(path.parent.absolute()))
    functions = {name: one for name, one in runpy.run_path(str(path)).items() if callable(one)}
    if name not in functions:
        others = ", ".join(sorted(one for one in functions if not one.startswith("_")))
        raise errors.UsageError(f"{path} has no function {name}; it has {others}")
    return functions[name]

"""The programs as console commands: the executables that lie in the package."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def run() -> None:
    """Becomes the program of the command's name, which is told where torch is unless torch lies
    beside the package.
    """
    name = Path(sys.argv[0]).name
    package = Path(__file__).absolute().parent
    program = package / "bin" / name
    environment = dict(os.environ)
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        folder = Path(torch.origin).resolve().parent
        if folder != package.parent / "torch":
            others = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [f"{folder}/lib", others]))
    try:
        os.execve(program, [name, *sys.argv[1:]], environment)
    except OSError as error:
        sys.exit(f"{name}: {program}: {error.strerror}")

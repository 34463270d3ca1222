"""The programs as console commands: the executables that lie in the package."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def _leave(*_: object) -> None:
    os.write(2, b"estimate-logz: interrupted; nothing is done yet\n")
    os._exit(os.EX_TEMPFAIL)


def run() -> None:
    """Becomes the program of the command's name, which is told where torch is unless torch lies
    beside the package. `estimate-logz FILE.py:NAME` stays in this process: see function_command.
    """
    name = Path(sys.argv[0]).name
    explains = {"--help", "--version"} & {*sys.argv[1:]}
    if name == "estimate-logz" and not explains and any(map(FUNCTION.fullmatch, sys.argv[1:])):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            if signal.getsignal(number) != signal.SIG_IGN:  # until torch is here, and the library
                signal.signal(number, _leave)
        importlib.import_module("crais.function_command").run(sys.argv[1:])
        return
    package = Path(__file__).absolute().parent
    program = package / "bin" / "crais"
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

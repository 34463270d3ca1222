"""The programs as console commands: the executables that lie in the package."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

INSTALL = "pip install . in the folder of crais"
_PACKAGE = Path(__file__).absolute().parent
FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def torch_version(folder: Path) -> str:
    """Of the torch in this folder, without loading it: "2.14.1+cpu"."""
    found = re.search(r"^__version__ = '(.+)'", (folder / "version.py").read_text(), re.MULTILINE)
    return found[1] if found else "of no version"


def torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ImportError("crais needs PyTorch: pip install torch")
    return Path(spec.origin).resolve().parent


def library() -> Path:
    """The folder of what fits the torch that is there. Raises ImportError, which says what to type."""
    folders = {folder.name.removeprefix("torch-"): folder for folder in _PACKAGE.glob("torch-*")}
    if not folders:
        raise ImportError(f"this part of crais is compiled, and it is not installed: {INSTALL}")
    version = torch_version(torch_folder())
    minor, known = ".".join(version.split(".")[:2]), sorted(folders, key=lambda one: int(one.split(".")[1]))
    if minor not in folders:
        raise ImportError(
            f"this crais is for torch {', '.join(known)}, and this is torch {version}; "
            f"pip install 'torch=={known[-1]}.*', or build crais for it: {INSTALL}"
        )
    return folders[minor]


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
    environment = dict(os.environ)
    try:
        program, torch = library() / "crais", torch_folder()
        if torch != _PACKAGE.parent / "torch":
            others = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [f"{torch}/lib", others]))
        os.execve(program, [name, *sys.argv[1:]], environment)
    except (ImportError, OSError) as error:
        sys.exit(f"{name}: {error}")

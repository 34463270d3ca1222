"""Models that crais.export wrote, for the tests of files and of packages."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .programs import SOURCE, Done, Program, environment, lines


@dataclass
class Exports:
    """What exports/models.py makes, all in one run."""

    python: str
    folder: Path

    def run(self, *args: str | Path) -> Done:
        here = Path(__file__).with_name("exports")
        paths = [SOURCE / "python", here]
        own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "CXX": str(here / "linker")}
        done = subprocess.run(
            [self.python, "-W", "ignore", *args],
            cwd=self.folder,
            env=environment(own),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done

    def model(self, name: str) -> Path:
        return self.folder / name

    def images(self, name: str) -> str:
        """Images, as --data takes them."""
        return f"{self.folder / 'x.npz'}:{name}".rstrip(":")

    @property
    def labelled(self) -> list[str]:
        """Images, and the labels that moved them."""
        return ["--data", self.images("shifted"), "--labels", self.images("y")]

    def agree(self, out: str) -> None:
        """Every estimate is within 5 of its standard errors of the truth."""
        exact = [float(line) for line in lines(self.folder / "exact.txt")]
        rows = list(csv.DictReader(lines(f"{out}/per_image.csv")))
        assert len(rows) == len(exact) == 20
        for row, truth in zip(rows, exact):
            apart = abs(float(row["log_likelihood"]) - truth)
            assert apart < 5 * float(row["std_error"]) + 1e-4, (row, truth)


def python_with_torch(minor: str = "") -> str:
    """A Python that has PyTorch, of this minor version if one is asked for; skips the test without one."""
    script = 'import torch; print(".".join(torch.__version__.split(".")[:2]))'
    for python in (str(SOURCE / ".venv/bin/python"), sys.executable, "python3"):
        with contextlib.suppress(FileNotFoundError):
            done = subprocess.run([python, "-W", "ignore", "-c", script], capture_output=True, text=True)
            if done.returncode == 0 and minor in ("", done.stdout.strip()):
                return python
    pytest.skip(f"no Python has PyTorch {minor}")


def exported(folder: Path, what: str) -> Exports:
    """Exports, "plain" or "compiled", in the folder, by a Python with a PyTorch of the LibTorch of crais."""
    said = Program("eval-loglik").succeed("--version").stdout
    found = re.search(r"LibTorch (\d+\.\d+)", said)
    assert found, said
    exports = Exports(python_with_torch(found[1]), folder)
    exports.run("-m", "models", what)
    return exports

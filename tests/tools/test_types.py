"""The Python package's types hold."""

import sys

import pytest
from cli.programs import SOURCE

from .projects import run


def test_mypy_finds_nothing() -> None:
    pytest.importorskip("mypy")
    done = run(sys.executable, "-m", "mypy", "--no-incremental", folder=SOURCE)
    assert done.returncode == 0, done.stdout + done.stderr

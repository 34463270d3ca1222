"""A short form of tests/chaos/chaos.py.

Some programs are ended at random moments, and all goes wrong that can with a disk or a folder.
"""

import sys

import pytest
from cli.programs import BIN, SOURCE

from .projects import run


@pytest.mark.parametrize("program", ["train-vae", "ais"])
def test_nothing_is_found(program: str) -> None:
    done = run(sys.executable, SOURCE / "tests/chaos/chaos.py", BIN, program)
    assert done.returncode == 0, done.stdout + done.stderr

"""A short form of tests/chaos/chaos.py.

Some programs are ended at random moments, and all goes wrong that can with a disk or a folder.
"""

import sys

from cli.programs import BIN, SOURCE

from .projects import run


def test_nothing_is_found() -> None:
    done = run(sys.executable, SOURCE / "tests/chaos/chaos.py", BIN, "train-vae", "ais")
    assert done.returncode == 0, done.stdout + done.stderr

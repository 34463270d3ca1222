"""Finds the package: an installed one, one of a build folder, or the sources without extension."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def _place() -> Path | None:
    """The folder to take crais from; None for the one that Python finds."""
    built = Path(os.environ.get("CRAIS_BUILD", "/nowhere")) / "python"
    if (built / "crais" / "_built.py").exists():
        return built
    installed = importlib.util.find_spec("crais")
    return None if installed and importlib.util.find_spec("crais._built") else ROOT / "python"


if place := _place():
    sys.path.insert(0, str(place))
torch.set_num_threads(1)


@pytest.fixture
def compiled():
    """Skips a test where crais is not compiled."""
    pytest.importorskip("crais._built", reason="crais is not compiled: pip install .")


@pytest.fixture
def program():
    """Where the programs are."""
    compiled_in = Path(importlib.util.find_spec("crais._built").origin).parent
    return lambda name: str(compiled_in / "bin" / name)

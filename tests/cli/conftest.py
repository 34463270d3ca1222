"""Programs to run and a checkpoint to run them on. CRAIS_BIN names the folder of the programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .programs import BIN, Program, small_vae


def pytest_configure() -> None:
    if not (BIN / "eval-loglik").exists():
        raise pytest.UsageError(f"CRAIS_BIN must name the folder of the programs, not {BIN}")


def _running(name: str) -> Iterator[Program]:
    program = Program(name)
    yield program
    program.stop()


@pytest.fixture
def eval_loglik() -> Iterator[Program]:
    yield from _running("eval-loglik")


@pytest.fixture
def estimate_logz() -> Iterator[Program]:
    yield from _running("estimate-logz")


@pytest.fixture
def train_vae() -> Iterator[Program]:
    yield from _running("train-vae")


@pytest.fixture(scope="session")
def vae(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; nobody changes it."""
    return small_vae(tmp_path_factory.mktemp("model") / "vae", "--epochs", "2")

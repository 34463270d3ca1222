"""The digest of sources: the same without git, another where something decides estimates."""

import re
import shutil
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import succeed


def digest(root: Path, out: Path) -> str:
    script = SOURCE / "cmake/source_digest.cmake"
    succeed("cmake", f"-DROOT={root}", f"-DOUT={out}", "-P", script)
    return re.findall('"[0-9a-f]{16}"', out.read_text())[0]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources; a test undoes what it does to them."""
    folder = tmp_path_factory.mktemp("copied")
    for name in ("src", "models"):
        shutil.copytree(SOURCE / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def before(copied: Path) -> str:
    return digest(copied, copied / "digest.cpp")


def test_is_that_of_a_copy(before: str, tmp_path: Path) -> None:
    assert digest(SOURCE, tmp_path / "digest.cpp") == before


@pytest.mark.parametrize(
    ("file", "decides"),
    [
        ("src/report/table.cpp", False),
        ("src/programs/eval_loglik/report.cpp", False),
        ("src/samplers/anneal.cpp", True),
        ("src/core/rng.h", True),
        ("src/kernels/simd.h", True),
        ("models/vae.cpp", True),
        ("src/evaluation/parts.cpp", True),
        ("src/schedules/another.cpp", True),
    ],
)
def test_changes_with_what_decides(copied: Path, before: str, file: str, decides: bool) -> None:
    changed = copied / file
    kept = changed.read_bytes() if changed.exists() else None
    with open(changed, "a") as text:
        text.write("// a comment\n")
    try:
        assert (digest(copied, copied / "digest.cpp") != before) == decides
    finally:
        changed.write_bytes(kept) if kept is not None else changed.unlink()

"""How a build that cannot succeed says so."""

import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[2] / "python" / "packaging"


def build(*places: Path) -> str:
    """What the build says where Python sees these folders and its own library alone."""
    script = (
        f"import sys; sys.path[:0] = {[str(place) for place in (BACKEND, *places)]!r}; "
        "import build_backend; build_backend.get_requires_for_build_wheel()"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("with_scikit", [False, True])
def test_one_line_says_what_to_type(tmp_path, with_scikit):
    if with_scikit:  # as a build in isolation has it
        (tmp_path / "scikit_build_core").mkdir()
        (tmp_path / "scikit_build_core" / "__init__.py").touch()
        (tmp_path / "scikit_build_core" / "build.py").touch()
    said = build(tmp_path)
    assert said.count("\n") == 1
    assert "pip install torch scikit-build-core, then pip install . --no-build-isolation" in said
    assert ("sees none" in said) == with_scikit

"""Which torch a build takes, and what its wheel then requires."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[2] / "python" / "packaging"
ASKED = "(build_backend.get_requires_for_build_wheel(), build_backend.dynamic_metadata('dependencies'))"


@pytest.fixture
def asked(tmp_path):
    """What the backend answers with scikit-build-core made up, in the environment `platlib`."""
    scikit = tmp_path / "isolated" / "scikit_build_core"
    scikit.mkdir(parents=True)
    (scikit / "__init__.py").touch()
    requires = "def get_requires_for_build_wheel(settings): return ['ninja']\n"
    (scikit / "build.py").write_text(requires)

    def ask(platlib: Path, question: str) -> "subprocess.CompletedProcess[str]":
        script = (
            f"import sys, sysconfig; sys.path[:0] = {[str(BACKEND), str(scikit.parent)]!r}; "
            f"sysconfig.get_path = lambda name: {str(platlib)!r}; "
            f"import build_backend; print({question})"
        )
        return subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True)

    return ask


def test_a_wheel_requires_the_torch_of_its_environment(asked, tmp_path):
    torch = tmp_path / "torch-2.7.1+cpu.dist-info"
    torch.mkdir()
    (torch / "METADATA").write_text("Name: torch\nVersion: 2.7.1+cpu")
    done = asked(tmp_path, ASKED)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == (["ninja"], ["torch==2.7.*", "jinja2", "numpy"])


def test_without_torch_the_build_requires_one(asked, tmp_path):
    done = asked(tmp_path, ASKED)
    assert done.returncode == 0, done.stderr
    needed, dependencies = ast.literal_eval(done.stdout)
    assert needed == ["ninja", dependencies[0]] and dependencies[0].startswith("torch>=2.7,<")


def test_one_line_says_that_there_is_no_torch(asked, tmp_path):
    done = asked(tmp_path, "build_backend.build_wheel('.')")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "there is none: pip install torch" in done.stderr

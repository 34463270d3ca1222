"""scripts/quickstart: what it says on a first run, and how it calls setup and eval-loglik.

Nothing is installed or built.
"""

import re
from pathlib import Path

import pytest

from .projects import Project, run


@pytest.fixture(autouse=True)
def _builds_at_once(project: Project) -> None:
    project.take("common.sh", "quickstart")
    (project.folder / "build/libtorch").write_text("/libtorch\n")
    project.fake("scripts/setup", 'echo "setup $*"')
    program = project.fake("eval-loglik", 'echo "eval-loglik $*"')
    build = "mkdir -p build/release/bin && touch build/release/build.ninja"
    project.fake("cmake", f"{build} && cp {program} build/release/bin")


def test_a_first_run_says_what_it_will_do(project: Project) -> None:
    done = project.run("scripts/quickstart", "--limit", "5")
    assert done.returncode == 0, done.stderr
    setup, evaluation = done.stdout.splitlines()
    assert setup == "setup --for run"
    flags = "--limit 5 --out results/quickstart --overwrite"
    assert re.fullmatch(f"eval-loglik .*mnist.safetensors {flags}", evaluation)
    for word in ("the first run", "packages", "LibTorch", "build", "evaluation"):
        assert word in done.stderr


def test_a_second_run_only_evaluates(project: Project) -> None:
    project.run("scripts/quickstart")
    done = project.run("scripts/quickstart")
    assert done.returncode == 0, done.stderr
    assert "setup --for run" in done.stdout.splitlines()
    assert "the first run" not in done.stderr


def test_help_from_anywhere(project: Project) -> None:
    done = run(project.folder / "scripts/quickstart", "--help", folder=Path("/"))
    assert "A second run only evaluates" in done.stdout

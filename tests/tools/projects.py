"""Scripts of this project in another that is made up, on a machine that is made up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.programs import SOURCE, Argument, Done

BUILD = Path(os.environ.get("CRAIS_BUILD", "/nowhere")).resolve()


def run(
    *command: Argument,
    env: dict[str, str] | None = None,
    without: Sequence[str] = (),
    folder: Path | None = None,
) -> Done:
    """A command, in this environment with `env` and without the variables `without`."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def succeed(*command: Argument, **settings: object) -> str:
    """What a command says that must end well."""
    done = run(*command, **settings)  # type: ignore[arg-type]
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def tracked(*patterns: str) -> list[str]:
    """The files of this project that git tracks; skips the test where there is no checkout."""
    if not shutil.which("git"):
        pytest.skip("there is no git")
    files = run("git", "ls-files", "--", *patterns, folder=SOURCE).stdout.split()
    if not files:
        pytest.skip("no checkout of git")
    return files


class Project:
    """A folder with some of the scripts. Programs of `fake` come before those of the machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.programs = folder / "programs"
        for name in ("scripts", "build"):
            (self.folder / name).mkdir(parents=True)
        self.programs.mkdir()

    def take(self, *scripts: str) -> None:
        """Copies scripts of this project."""
        for name in scripts:
            copy = shutil.copytree if (SOURCE / "scripts" / name).is_dir() else shutil.copy
            copy(SOURCE / "scripts" / name, self.folder / "scripts" / name)

    def fake(self, name: str, body: str) -> Path:
        """A program of the machine, in bash; with a slash in its name, one of the project."""
        file = (self.folder if "/" in name else self.programs) / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)
        return file

    def run(self, *command: Argument, env: dict[str, str] | None = None) -> Done:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        without = ("Torch_DIR", "CMAKE_PREFIX_PATH")
        return run(*command, env={"PATH": path, **(env or {})}, without=without, folder=self.folder)

    def expect(self, code: int, words: str, *command: Argument, env: dict[str, str] | None = None) -> None:
        """The exit code, and words of what the command says."""
        done = self.run(*command, env=env)
        said = done.stdout + done.stderr
        assert (done.returncode, words in said) == (code, True), f"exit {done.returncode}: {said}"

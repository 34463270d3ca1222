"""Runs programs as a user does: arguments and files go in; a code, words and files come out."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(os.environ.get("CRAIS_SOURCE") or Path(__file__).parents[2]).resolve()
BIN = Path(os.environ.get("CRAIS_BIN", "/nowhere")).resolve()

DENSITY = f"{Path(__file__).parent / 'density.py'}:normal"

# What a launcher says to the processes that it starts, and where images lie.
_FOREIGN = re.compile(r"CRAIS_DATA|RANK|WORLD_SIZE|(MASTER|LOCAL|TORCHELASTIC|SLURM)_\w+")

Argument = str | bytes | os.PathLike[str]
Done = subprocess.CompletedProcess[str]


def environment(changes: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of programs under test."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
    return {"OMP_NUM_THREADS": "1", **kept, **(changes or {})}


def _begin_as_a_job() -> None:
    """Shells start jobs that ignore SIGINT; a program must listen all the same."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup


class Job:
    """A process beside the test."""

    def __init__(self, command: list[Argument], env: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_begin_as_a_job,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Waits for what the job does; fails if it ends before, or takes too long."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline or (self.process.poll() is not None and not holds()):
                self.kill()
                pytest.fail(f"the job ended before, or did not come so far: {self.end().stderr}")
            time.sleep(0.02)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()

    def end(self, seconds: float = 300) -> Done:
        """Waits for the end."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


def _command(name: str) -> list[Argument]:
    """How a program starts; estimate-logz.py is that of the Python package, for FILE.py:NAME."""
    start = "import sys; sys.argv[0] = 'estimate-logz'; from crais.programs import run; run()"
    return [sys.executable, "-Wignore", "-c", start] if name.endswith(".py") else [BIN / name]


class Program:
    """A program, run in `folder`; without one, in the folder of the test."""

    def __init__(self, name: str, folder: Path | None = None, env: dict[str, str] | None = None) -> None:
        self.command = _command(name)
        self.folder = folder
        self.env = {"PYTHONPATH": str(BIN.parent / "python"), **(env or {})}
        self.jobs: list[Job] = []

    def run(self, *args: Argument, env: dict[str, str] | None = None) -> Done:
        return subprocess.run(
            [*self.command, *args],
            cwd=self.folder,
            env=environment({**self.env, **(env or {})}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
        )

    def succeed(self, *args: Argument, env: dict[str, str] | None = None) -> Done:
        done = self.run(*args, env=env)
        assert done.returncode == 0, f"{_said(args)}: exit {done.returncode}: {done.stderr}"
        return done

    def expect(self, code: int, *words: str, args: Iterable[Argument], env: dict[str, str] | None = None) -> None:
        """The exit code, one line on stderr, and each of the words in it."""
        args = list(args)
        done = self.run(*args, env=env)
        assert done.returncode == code, f"{_said(args)}: exit {done.returncode}: {done.stderr}"
        assert done.stderr.count("\n") == 1, f"{_said(args)}: not one line: {done.stderr}"
        for word in words:
            assert word in done.stderr, f"{_said(args)}: no '{word}' in: {done.stderr}"

    def refuse(self, case: Case, *args: Argument) -> None:
        self.expect(case.code, *case.words, args=[*args, *case.args])

    def start(self, *args: Argument, env: dict[str, str] | None = None) -> Job:
        """Runs it beside the test; `stop` ends what the test leaves."""
        changes = {**self.env, **(env or {})}
        job = Job([*self.command, *args], environment(changes), self.folder or Path.cwd())
        self.jobs.append(job)
        return job

    def stop(self) -> None:
        for job in self.jobs:
            if job.process.poll() is None:
                job.kill()
            job.process.communicate()


def _said(args: Iterable[Argument]) -> str:
    return " ".join(str(arg) for arg in args)[:300]


def small_vae(folder: Path, *args: str) -> Path:
    """Trains a checkpoint in seconds; its file."""
    Program("train-vae").succeed(*"--data synthetic:600 --hidden 20 --latent 5 --quiet --out".split(), folder, *args)
    return folder / "vae.safetensors"


class Case(NamedTuple):
    """Arguments that a program refuses: by what exit code, and with what words."""

    code: int
    args: list[str]
    words: list[str]


def refusals(*rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Cases of a test: rows of an exit code, arguments in one string, and words of the message."""
    cases = [Case(code, args.split(), words) for code, args, *words in rows]
    return pytest.mark.parametrize("case", cases, ids=[args for _, args, *_ in rows])


def same(one: Path | str, other: Path | str) -> None:
    assert filecmp.cmp(one, other, shallow=False), f"{one} and {other} differ"


def differ(one: Path | str, other: Path | str) -> None:
    assert not filecmp.cmp(one, other, shallow=False), f"{one} and {other} are the same"


def edit(file: Path | str, pattern: str, text: str) -> None:
    """Replaces a pattern in a file that has it."""
    changed, count = re.subn(pattern, lambda _: text, Path(file).read_text(), flags=re.MULTILINE)
    assert count, f"{file} has no {pattern}"
    Path(file).write_text(changed)


def copy(folder: Path | str, to: Path | str) -> Path:
    """A copy that a test may change, instead of what was there."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def read_json(file: Path | str) -> Any:
    return json.loads(Path(file).read_text())


def lines(file: Path | str) -> list[str]:
    return Path(file).read_text().splitlines()


def idx_images(count: int, height: int, width: int, pixels: bytes) -> bytes:
    """A file of images in MNIST's format."""
    return struct.pack(">4i", 2051, count, height, width) + pixels

"""Ends runs at random moments and goes on with them: the results must be those of a run left alone.

    python3 tests/chaos/chaos.py BIN [--kills N] [--seed S] [ROUND...]

Every round runs a program once to its end, then again from the start, ending it again and again by
SIGKILL, SIGTERM, SIGINT or SIGHUP, each at a random moment, until the same command has brought it
to its end. Then the files of both are compared, byte by byte. Further rounds fill the disk, take the
folder away, let two processes work in one folder, and replace the model between two commands. Prints
a line a round; exits with 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
INTERRUPTED = 75
FUNCTION = f"{Path(__file__).parents[1]}/cli/density.py:normal"
# estimate-logz of the Python package, which takes FILE.py:NAME.
START = "import sys; sys.argv[0] = 'estimate-logz'; from crais.programs import run; run()"
STOPS_WITHIN = 2.0  # seconds, of processor time if the machine is busy


@dataclass
class Round:
    """A command, and which of its files must be the same however often it was ended."""

    command: list[str]  # without --out
    files: list[str]


@dataclass
class Tally:
    kills: int = 0
    slowest: float = 0.0  # seconds from a signal to the end
    findings: list[str] = field(default_factory=list)

    def find(self, what: str) -> None:
        self.findings.append(what)
        print(f"FOUND: {what}", flush=True)


def rounds(model: Path) -> dict[str, Round]:
    train = ["train-vae", "--data=synthetic:2000", "--hidden=100", "--latent=10", "--epochs=6",
             "--checkpoint-every=2", "--quiet"]  # fmt: skip
    images = ["eval-loglik", str(model), "--simulate=64", "--chunk=8", "--quiet"]
    results = ["per_image.csv", "schedule.csv"]
    density = [
        "estimate-logz",
        "student-t:20",
        "--problems=40",
        "--chunk=2",
        "--base=prior",
        "--witness=none",
        "--quiet",
    ]
    estimates = ["per_problem.csv", "schedule.csv"]
    return {
        "train-vae": Round(train, ["vae.safetensors", "samples.png"]),
        "ais": Round([*images, "--steps=64"], results),
        "ais, threads": Round([*images, "--steps=64", "--threads=2"], results),
        "importance": Round([*images, "--method=iwae:2000", "--method=elbo:500"], results),
        "bidirectional": Round([*images, "--method=bidirectional", "--steps=64"], results),
        "error": Round([*images, "--error=0.02", "--steps=16"], results),
        "budget": Round([*images, "--budget=1500"], results),
        "smc": Round([*images, "--schedule=cess:0.98", "--resample=systematic:0.5"], results),
        "mcd": Round([*images, "--method=mcd:steps=8,iterations=60,hidden=32"], results),
        "learned path": Round([*images, "--path=f:jensen-shannon", "--steps=32"], results),
        "one plan a chunk": Round([*images, "--per-image", "--schedule=cess:0.95"], results),
        "estimate-logz": Round([*density, "--steps=128"], estimates),
        "a function": Round(["estimate-logz.py", FUNCTION, "--dim=20", *density[2:], "--steps=64"], estimates),
        "expectations": Round([*density, "--steps=64", "--expect=moments"], [*estimates, "expectations.csv"]),
    }


def heed_signals() -> None:
    """Undoes what nohup or a shell's & has this process ignore: its children would go on."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


class Machine:
    """Starts programs, and ends them at random moments."""

    def __init__(self, programs: Path, chance: random.Random, tally: Tally) -> None:
        self.programs = programs
        self.models: list[Path] = []
        self.chance = chance
        self.tally = tally
        package = str(programs.parent / "python")
        self.environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=package)

    def start(self, command: list[str], out: Path) -> subprocess.Popen[str]:
        program, *arguments = command
        is_python = program.endswith(".py")
        start = [sys.executable, "-Wignore", "-c", START] if is_python else [self.programs / program]
        return subprocess.Popen(
            [*start, *arguments, f"--out={out}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            preexec_fn=heed_signals,
        )

    def run(self, command: list[str], out: Path) -> tuple[int, str]:
        process = self.start(command, out)
        _, errors = process.communicate()
        return process.returncode, errors

    def end(self, process: subprocess.Popen[str], after: float, what: str) -> int:
        """Sends a signal after so many seconds; the code it ended with, 0 if it was done before."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=after)
            return process.returncode
        name = self.chance.choice(SIGNALS)
        process.send_signal(name)
        sent = time.monotonic()
        _, errors = process.communicate()
        waited = time.monotonic() - sent
        self.tally.kills += 1
        self.tally.slowest = max(self.tally.slowest, waited)
        if waited > STOPS_WITHIN * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)):
            self.tally.find(f"{what}: {name.name} took {waited:.1f} s")
        code = process.returncode
        if code not in (0, INTERRUPTED, -name):
            self.tally.find(f"{what}: code {code} after {name.name}: {errors.strip()}")
        return code


def differences(there: Path, here: Path, files: list[str]) -> list[str]:
    return [name for name in files if (there / name).read_bytes() != (here / name).read_bytes()]


def chunks(out: Path) -> dict[str, tuple[bytes, int]]:
    """Content and age of the chunks that are finished."""
    found = (out / "chunks").glob("*.json")
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in found}


def to_its_end(machine: Machine, name: str, command: list[str], out: Path, seconds: float) -> bool:
    """Ends a command that takes so many seconds again and again, until it has come to its end."""
    before: dict[str, tuple[bytes, int]] = {}
    for attempt in range(100):
        # Later attempts get longer: what loses its work to every signal comes to an end as well.
        after = machine.chance.uniform(0, seconds) * (1 + 0.2 * attempt)
        code, found = machine.end(machine.start(command, out), after, name), chunks(out)
        if not before.items() <= found.items():
            machine.tally.find(f"{name}: a finished chunk was lost or computed again")
        if code == 0:
            return True
        before = found
        if "--resume" not in command:
            command = [*command, "--resume"]
    machine.tally.find(f"{name}: never came to its end")
    return False


def replaced_model(machine: Machine, name: str, one: Round, work: Path) -> None:
    """Another model of the same shape in the file's place: the command refuses, and goes on later."""
    model, other = work / "model", machine.models[1]
    command = [str(model) if each == str(machine.models[0]) else each for each in one.command]
    one = Round(command, one.files)
    shutil.copy(machine.models[0], model)
    straight, stopped = work / "straight", work / "stopped"
    start = time.monotonic()
    machine.run(one.command, straight)
    after = machine.chance.uniform(0.3, 0.9) * (time.monotonic() - start)
    if machine.end(machine.start(one.command, stopped), after, name) == 0:
        return
    if not any(stopped.rglob("run.json")):
        return  # it was ended before it said what it is of
    before = {each: each.read_bytes() for each in stopped.rglob("*") if each.is_file()}
    shutil.copy(other, model)
    code, errors = machine.run([*one.command, "--resume"], stopped)
    if code != 64 or "sha256" not in errors:
        machine.tally.find(f"{name}, another model: code {code}: {errors.strip()}")
    if before != {each: each.read_bytes() for each in stopped.rglob("*") if each.is_file()}:
        machine.tally.find(f"{name}, another model: files have changed")
    shutil.copy(machine.models[0], model)
    if to_its_end(machine, name, [*one.command, "--resume"], stopped, 2 * after + 1):
        for file in differences(straight, stopped, one.files):
            machine.tally.find(f"{name}: {file} differs after another model was refused")


def interrupted(machine: Machine, name: str, one: Round, work: Path) -> None:
    straight, stopped = work / "straight", work / "stopped"
    start = time.monotonic()
    code, errors = machine.run(one.command, straight)
    seconds = time.monotonic() - start
    if code != 0:
        machine.tally.find(f"{name}: code {code}: {errors.strip()}")
        return
    if not to_its_end(machine, name, one.command, stopped, seconds):
        return
    for file in differences(straight, stopped, one.files):
        machine.tally.find(f"{name}: {file} differs after interruptions")


def sharded(machine: Machine, name: str, one: Round, work: Path) -> None:
    start = time.monotonic()
    machine.run(one.command, work / "straight")
    seconds = (time.monotonic() - start) / 2
    parts = [work / "1", work / "2"]
    for part in parts:
        command = [*one.command, f"--shard={part.name}/2"]
        if not to_its_end(machine, name, command, part, seconds):
            return
    merge = [one.command[0], "merge", *map(str, parts), "--quiet"]
    code, errors = machine.run(merge, work / "merged")
    if code != 0:
        machine.tally.find(f"{name}, merged: code {code}: {errors.strip()}")
    elif found := differences(work / "straight", work / "merged", one.files[:1]):
        machine.tally.find(f"{name}: {found[0]} of merged shards differs")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[str], None]]:
    """A disk of a few kilobytes; a function that makes it larger. PermissionError if not root."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise PermissionError("needs to mount a small tmpfs")
    try:
        yield lambda size: subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def full_disk(machine: Machine, name: str, one: Round, work: Path) -> None:
    machine.run(one.command, work / "straight")
    with small_disk(work / "disk") as resize:
        out = work / "disk" / "out"
        code, errors = machine.run(one.command, out)
        if code not in (73, 74) or errors.count("\n") != 1:
            machine.tally.find(f"{name} on a full disk: code {code}: {errors.strip()}")
        if left := list(out.rglob("*.tmp")):
            machine.tally.find(f"{name} on a full disk left {left[0]}")
        resize("32m")
        code, errors = machine.run([*one.command, "--resume"], out)
        if code != 0:
            machine.tally.find(f"{name} after a full disk: code {code}: {errors.strip()}")
        elif found := differences(work / "straight", out, one.files):
            machine.tally.find(f"{name} after a full disk: {found[0]} differs")


def vanishing_folder(machine: Machine, name: str, one: Round, work: Path) -> None:
    process = machine.start(one.command, work / "gone")
    while process.poll() is None and not any((work / "gone").rglob("*.json")):
        time.sleep(0.01)
    time.sleep(machine.chance.uniform(0, 0.3))
    shutil.rmtree(work / "gone", ignore_errors=True)
    _, errors = process.communicate()
    if process.returncode not in (0, 73, 74) or errors.count("\n") > 1:
        machine.tally.find(f"{name} without its folder: {process.returncode}: {errors.strip()}")


def two_at_once(machine: Machine, name: str, one: Round, work: Path) -> None:
    """One of them computes, and the other is refused."""
    machine.run(one.command, work / "straight")
    both = [machine.start([*one.command, "--resume"], work / "both") for _ in range(2)]
    errors = [process.communicate()[1].strip() for process in both]
    codes = [process.returncode for process in both]
    refused = [error for error in errors if "another process" in error]
    if 0 not in codes or any(code not in (0, 64) for code in codes) or len(refused) != codes.count(64):
        machine.tally.find(f"{name}, two at once: {codes}: {errors}")
    if found := differences(work / "straight", work / "both", one.files):
        machine.tally.find(f"{name}, two at once: {found[0]} differs")


Way = tuple[str, Callable[..., None], str]  # a label, what is done, to which round


def ways_of_ending(name: str, one: Round, model: Path) -> Iterator[Way]:
    yield name, interrupted, name
    if one.command[:2] == ["eval-loglik", str(model)]:
        yield f"{name}, two shards", sharded, name
    if str(model) in one.command:
        yield f"{name}, another model", replaced_model, name


def ways_of_harm(name: str, one: Round) -> Iterator[Way]:
    yield f"{name}, full disk", full_disk, name
    yield f"{name}, vanishing folder", vanishing_folder, name
    if not name.startswith("train"):
        yield f"{name}, two at once", two_at_once, name


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", type=Path, help="the folder of the programs")
    parser.add_argument("names", nargs="*", help="rounds (all)")
    parser.add_argument("--kills", type=int, default=0, help="at least so many; 0: a pass (0)")
    parser.add_argument("--seconds", type=float, default=0, help="rounds by chance, none begun after so many")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_intermixed_args()
    tally = Tally()
    machine = Machine(arguments.programs.resolve(), random.Random(arguments.seed), tally)
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        small = ["train-vae", "--data=synthetic:600", "--hidden=50", "--latent=10", "--epochs=2"]
        code, errors = machine.run([*small, "--quiet"], base / "vae")
        if code != 0:
            sys.exit(f"no model: {errors.strip()}")
        code, errors = machine.run([*small, "--quiet", "--seed=2"], base / "other")
        machine.models = [base / folder / "vae.safetensors" for folder in ("vae", "other")]
        available = rounds(machine.models[0])
        if importlib.util.find_spec("torch") is None:
            print(f"left out, for want of torch: {available.pop('a function').command[0]}")
        unknown = [name for name in arguments.names if name not in available]
        if unknown:
            sys.exit(f"unknown round '{unknown[0]}'; choose from {', '.join(available)}")
        chosen = {name: available[name] for name in arguments.names or available}

        def play(label: str, way: Callable[..., None], name: str) -> None:
            before, start = tally.kills, time.monotonic()
            with tempfile.TemporaryDirectory() as work:
                try:
                    way(machine, name, chosen[name], Path(work))
                except PermissionError as error:
                    print(f"skipped: {label}: {error}")
                    return
            kills, seconds = tally.kills - before, time.monotonic() - start
            print(f"{label:36} {kills:4} kills  {seconds:6.1f} s", flush=True)

        ended = [each for name in chosen for each in ways_of_ending(name, chosen[name], machine.models[0])]
        harmed = [each for name in chosen for each in ways_of_harm(name, chosen[name])]
        if arguments.seconds:
            begun, both = time.monotonic(), [*ended, *harmed]
            while time.monotonic() - begun < arguments.seconds:
                play(*machine.chance.choice(both))
        else:
            while True:
                for each in ended:
                    play(*each)
                if tally.kills >= arguments.kills:
                    break
            for each in harmed:
                play(*each)
    print(f"{tally.kills} kills, {len(tally.findings)} findings; "
          f"slowest to stop {tally.slowest:.1f} s")  # fmt: skip
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs that share a folder under torchrun, and runs that must not.

Whatever is killed, the results are those of one process.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .programs import BIN, DENSITY, SOURCE, Job, Program, same

PLAIN = "--simulate 32 --steps 200 --chains 8 --chunk 1 --step-size 0.5 --threads 1".split()
LOGZ = "u1 --base prior --witness none --problems 12 --chunk 1".split()


@pytest.fixture(scope="module")
def whole(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one process."""
    folder = tmp_path_factory.mktemp("whole")
    Program("eval-loglik", folder).succeed(vae, *PLAIN, "--out", "whole")
    return folder / "whole"


def rank(index: int, count: int) -> dict[str, str]:
    return {"RANK": str(index), "WORLD_SIZE": str(count)}


def alike(whole: Path, folder: str) -> None:
    same(whole / "per_image.csv", f"{folder}/per_image.csv")
    same(whole / "run.json", f"{folder}/run.json")
    assert not list(Path(folder).rglob("*.tmp")), "temporary files were left"


def until_chunks(job: Job, folder: str, count: int) -> None:
    chunks = Path(folder, "chunks")
    job.until(lambda: len(list(chunks.glob("*.json"))) >= count, seconds=300)


def tables(said: str) -> int:
    return sum(line.startswith("Files: ") for line in said.splitlines())


def test_half_of_the_processes_are_killed(eval_loglik: Program, vae: Path, whole: Path) -> None:
    """Then fewer come back, and divide what is missing."""
    share = [vae, *PLAIN, "--out", "halved"]
    jobs = [eval_loglik.start(*share, env=rank(i, 4)) for i in range(4)]
    until_chunks(jobs[0], "halved", 4)
    for job in jobs[:2]:
        job.kill()
    for index, done in enumerate(job.end() for job in jobs[2:]):
        assert done.returncode == 0, done.stderr
        assert f"part {index + 3} of 4 is done" in done.stderr
        assert "chunks are still missing in halved" in done.stderr and not tables(done.stdout)
    ends = [job.end() for job in [eval_loglik.start(*share, env=rank(i, 3)) for i in range(3)]]
    assert [done.returncode for done in ends] == [0, 0, 0], [done.stderr for done in ends]
    assert sum(tables(done.stdout) for done in ends) == 1
    alike(whole, "halved")
    late = eval_loglik.succeed(*share, env=rank(0, 3))
    assert "another process writes the report in halved" in late.stderr


def test_torchrun_starts_processes_again(vae: Path, whole: Path) -> None:
    places = [SOURCE / ".venv/bin/torchrun", Path(sys.executable).parent / "torchrun"]
    found = next((str(p) for p in places if p.exists()), None) or shutil.which("torchrun")
    if not found:
        pytest.skip("there is no torchrun")
    agent = Program("torchrun")
    agent.command = [found]
    flags = "--standalone --nproc-per-node 3 --max-restarts 20 --no-python".split()
    job = agent.start(*flags, BIN / "eval-loglik", vae, *PLAIN, "--out", "killed")
    for count in (2, 9, 16):
        until_chunks(job, "killed", count)
        command = ["pgrep", "-P", str(job.pid), "-f", "eval-loglik"]
        workers = subprocess.run(command, capture_output=True, text=True).stdout.split()
        with contextlib.suppress(IndexError, ProcessLookupError):  # none lives just now
            os.kill(int(random.choice(workers)), signal.SIGKILL)
    done = job.end()
    assert done.returncode == 0, done.stderr
    assert tables(done.stdout) == 1, done.stdout
    alike(whole, "killed")


def test_a_stopped_process_goes_on(eval_loglik: Program, vae: Path, whole: Path) -> None:
    """Without --resume, the same command goes on."""
    share = [vae, *PLAIN, "--out", "stopped"]
    job = eval_loglik.start(*share, env=rank(0, 1))
    until_chunks(job, "stopped", 2)
    job.send(signal.SIGTERM)
    done = job.end()
    assert done.returncode == 75 and "the same command goes on" in done.stderr, done.stderr
    eval_loglik.succeed(*share, env=rank(0, 1))
    alike(whole, "stopped")


def test_estimate_logz_with_more_processes_than_chunks(estimate_logz: Program) -> None:
    estimate_logz.succeed(*LOGZ, "--out", "logz")
    jobs = [estimate_logz.start(*LOGZ, "--out", "logz2", env=rank(i, 14)) for i in range(14)]
    assert {job.end().returncode for job in jobs} == {0}
    same("logz/per_problem.csv", "logz2/per_problem.csv")


def test_a_shard_is_not_divided(eval_loglik: Program, vae: Path) -> None:
    shard = "--simulate 8 --steps 2 --chunk 2 --quiet --shard 1/2 --control 0 --out part".split()
    eval_loglik.succeed(vae, *shard, env=rank(1, 3))
    assert sorted(os.listdir("part/chunks")) == ["000000.json", "000002.json"]


@pytest.mark.parametrize(
    ("env", "more", "words"),
    [
        ({"RANK": "0"}, "--out never", ["RANK is set, but WORLD_SIZE is not"]),
        ({"WORLD_SIZE": "2"}, "--out never", ["WORLD_SIZE is set, but RANK is not"]),
        (rank(2, 2), "--out never", ["RANK is 2", "the first is 0"]),
        (rank(0, 2), "", ["--out DIR"]),
        (rank(0, 2), "--out never --overwrite", ["--overwrite", "never"]),
        ({**rank(0, 2), "LOCAL_WORLD_SIZE": "many"}, "--out never", ["LOCAL_WORLD_SIZE", "'many'"]),
    ],
)
@pytest.mark.parametrize("name", ["estimate-logz", "estimate-logz.py"])
def test_refuses(name: str, env: dict[str, str], more: str, words: list[str]) -> None:
    target = [DENSITY, "--dim", "2"] if name.endswith(".py") else ["u1"]
    args = [*target, *LOGZ[1:], *more.split()]
    Program(name).expect(64, "under torchrun", *words, args=args, env=env)
    assert not Path("never").exists(), "a refused process made a folder"


def test_only_processes_that_share_it_write_to_a_folder(eval_loglik: Program, vae: Path, whole: Path) -> None:
    run, merge = [vae, *PLAIN, "--out", "busy"], ["merge", whole, "--out", "busy", "--overwrite"]
    for mine, others in ({}, rank(1, 2)), (rank(0, 2), {}):
        done = len(list(Path("busy").glob("chunks/*.json")))
        job = eval_loglik.start(*run, *["--resume"][: not mine], env=mine)
        until_chunks(job, "busy", done + 1)  # it holds the lock
        job.send(signal.SIGSTOP)  # it must not end before the others ask
        eval_loglik.expect(64, "busy", "another process", args=[*run, "--resume"], env=others)
        eval_loglik.expect(64, "busy", "another process", args=merge)
        job.kill()
        job.end()
    eval_loglik.succeed(*run, "--resume")
    alike(whole, "busy")

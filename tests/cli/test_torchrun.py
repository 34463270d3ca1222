"""eval-loglik on a folder that several workers share: under torchrun, and as it would start them.

Whatever is killed or paused, the results are those of one process.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .programs import BIN, SOURCE, Job, Program, refusals, same

PLAIN = "--simulate 64 --steps 1000 --chains 8 --chunk 2 --step-size 0.5".split()
LEASE = ["--lease", "5s"]
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}


@pytest.fixture(scope="module")
def whole(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one process."""
    folder = tmp_path_factory.mktemp("whole")
    Program("eval-loglik", folder).succeed(vae, *PLAIN, "--out", "whole")
    return folder / "whole"


@pytest.fixture
def run(vae: Path) -> list[str]:
    return [str(vae), *PLAIN, *LEASE]


def alike(whole: Path, folder: str) -> None:
    same(whole / "per_image.csv", f"{folder}/per_image.csv")
    same(whole / "run.json", f"{folder}/run.json")
    assert not list(Path(folder).rglob("*.tmp")), "temporary files were left"


def until_chunks(job: Job, folder: str, count: int) -> None:
    chunks = Path(folder, "chunks")
    job.until(lambda: len(list(chunks.glob("*.json"))) >= count, seconds=300)


def tables(said: str) -> int:
    return sum(line.startswith("Files: ") for line in said.splitlines())


@pytest.fixture
def worker() -> Callable[[int], dict[str, str]]:
    """The environment of a worker, of which the first has the store."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    return lambda rank: {**shared, "RANK": str(rank)}


# --- Workers that a signal stops.
def test_a_stopped_worker_goes_on(
    eval_loglik: Program, run: list[str], whole: Path, worker: Callable[[int], dict[str, str]]
) -> None:
    """A signal stops it, and the same command goes on without --resume."""
    share = [*run, "--out", "stopped"]
    job = eval_loglik.start(*share, "--threads", "1", env=worker(0))
    until_chunks(job, "stopped", 2)
    job.send(signal.SIGTERM)
    done = job.end()
    assert done.returncode == 75, done.stderr
    _, _, end = done.stderr.partition("interrupted; ")
    assert "of 64 images done; the same command goes on" in end, done.stderr
    eval_loglik.succeed(*share, env=worker(0))
    alike(whole, "stopped")


# --- What is refused: other settings, half an environment, no folder, no store.
def test_refuses_other_settings(eval_loglik: Program, run: list[str], whole: Path) -> None:
    shutil.copytree(whole, "folder")
    words = ["other settings", "settings repeats is 2 here and 1 there"]
    args = [*run, "--repeats", "2", "--out", "folder"]
    eval_loglik.expect(64, *words, args=args, env=ALONE)
    args = [*run, "--overwrite", "--out", "folder"]
    eval_loglik.expect(64, "under torchrun", "--overwrite", args=args, env=ALONE)


@refusals(
    (64, "--out never --lease soon", "--lease"),
    (64, "--out never --lease 5s", "--lease", "as under torchrun"),
    (64, "--queue folder --out never", "--queue", "auto, none"),
)
def test_refuses(
    eval_loglik: Program, vae: Path, code: int, args: list[str], words: list[str]
) -> None:
    eval_loglik.expect(code, *words, args=[vae, *PLAIN, *args])
    assert not Path("never").exists(), "a refused worker made a folder"


def test_tasks_of_a_cluster_share_no_queue(eval_loglik: Program, vae: Path) -> None:
    args = ["submit", "slurm", vae, "--tasks", "2", "--queue", "none", "--out", "never"]
    eval_loglik.expect(64, "--queue", "each task", args=args)
    assert not Path("never").exists(), "a refused worker made a folder"


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["WORLD_SIZE is not"], {"RANK": "0"}),
        (["RANK is not"], {"WORLD_SIZE": "2"}),
        (["MASTER_ADDR"], {"RANK": "0", "WORLD_SIZE": "2"}),
        (["MASTER_PORT", "99999"],
         {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "99999"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_refuses_half_an_environment(
    eval_loglik: Program, run: list[str], words: list[str], env: dict[str, str]
) -> None:
    eval_loglik.expect(64, *words, args=[*run, "--out", "never"], env=env)
    assert not Path("never").exists(), "a refused worker made a folder"


def test_workers_need_a_folder(eval_loglik: Program, run: list[str]) -> None:
    eval_loglik.expect(64, "under torchrun", "--out", args=run, env=ALONE)


def test_a_worker_alone_needs_no_store(eval_loglik: Program, vae: Path, whole: Path) -> None:
    eval_loglik.succeed(vae, *PLAIN, "--queue", "none", "--out", "none", env=ALONE)
    alike(whole, "none")


# --- estimate-logz shares its chunks too.
def test_estimate_logz_shares_its_chunks(
    estimate_logz: Program, worker: Callable[[int], dict[str, str]]
) -> None:
    logz = "u1 --base prior --witness none --problems 12 --chunk 1".split()
    estimate_logz.succeed(*logz, "--out", "logz")
    share = [*logz, *"--lease 2s --out logz2".split()]
    jobs = [estimate_logz.start(*share, env=worker(rank)) for rank in range(2)]
    for done in [job.end() for job in jobs]:
        assert done.returncode == 0, done.stderr
    same("logz/per_problem.csv", "logz2/per_problem.csv")


def test_a_worker_that_is_late_finds_the_run_finished(
    estimate_logz: Program, worker: Callable[[int], dict[str, str]]
) -> None:
    """The first worker has the store, and takes it along when it ends."""
    share = "u1 --base prior --witness none --problems 12 --chunk 1 --lease 1s --out logz".split()
    estimate_logz.expect(75, "cannot reach the store", args=share, env=worker(1))
    estimate_logz.succeed(*share, env=worker(0))
    late = estimate_logz.succeed(*share, env=worker(1))
    assert "all 12 problems are done; another worker has written" in late.stderr


# --- Under torchrun, whose LibTorch must be that of the program.
@pytest.fixture(scope="module")
def torchrun(vae: Path) -> str:
    places = [SOURCE / ".venv/bin/torchrun", Path(sys.executable).parent / "torchrun"]
    found = next((str(p) for p in places if p.exists()), None) or shutil.which("torchrun")
    if not found:
        pytest.skip("there is no torchrun")
    script = 'import torch; print(".".join(torch.__version__.split(".")[:2]))'
    python = Path(found).parent / "python3"
    version = subprocess.run([python, "-c", script], capture_output=True, text=True).stdout
    said = Program("eval-loglik").run("--version").stdout
    if not version.strip() or f"LibTorch {version.strip()}" not in said:
        pytest.skip("torchrun and eval-loglik have another LibTorch each")
    return found


class Agent(Program):
    """torchrun, which starts workers, and starts them again if they fail."""

    def __init__(self, torchrun: str, run: list[str]) -> None:
        super().__init__("torchrun")
        self.path = Path(torchrun)
        self.work = [str(BIN / "eval-loglik"), *run]

    def begin(self, out: str, *flags: str, workers: int = 3) -> Job:
        many = ["--standalone", "--nproc-per-node", str(workers), *flags, "--no-python"]
        return self.start(*many, *self.work, "--out", out)

    @staticmethod
    def workers(job: Job) -> list[int]:
        command = ["pgrep", "-P", str(job.pid), "-f", "eval-loglik"]
        found = subprocess.run(command, capture_output=True, text=True).stdout
        return [int(pid) for pid in found.split()]


@pytest.fixture
def agent(torchrun: str, run: list[str]) -> Iterator[Agent]:
    agent = Agent(torchrun, run)
    yield agent
    agent.stop()


def test_killed_workers_are_started_again(agent: Agent, whole: Path) -> None:
    job = agent.begin("killed", "--max-restarts", "20")
    for count in (2, 9, 16):
        until_chunks(job, "killed", count)
        with contextlib.suppress(IndexError, ProcessLookupError):  # no worker lives just now
            os.kill(random.choice(agent.workers(job)), signal.SIGKILL)
    done = job.end()
    assert done.returncode == 0, done.stderr
    alike(whole, "killed")
    assert tables(done.stdout) == 1, done.stdout


def test_a_paused_worker_comes_back_to_a_finished_run(agent: Agent, whole: Path) -> None:
    """It is paused over its lease: the others do without it."""
    job = agent.begin("paused", "--max-restarts", "0")
    until_chunks(job, "paused", 2)
    worker = random.choice(agent.workers(job))
    os.kill(worker, signal.SIGSTOP)
    try:
        job.until(Path("paused/summary.json").exists)
        same(whole / "per_image.csv", "paused/per_image.csv")
    finally:
        os.kill(worker, signal.SIGCONT)
    done = job.end()
    assert done.returncode == 0, done.stderr
    alike(whole, "paused")


def test_workers_outlive_no_store(agent: Agent, whole: Path) -> None:
    """The agent is killed, and its store with it: workers end with 75 and say why."""
    job = agent.begin("orphaned", "--max-restarts", "0")
    until_chunks(job, "orphaned", 2)
    assert len(agent.workers(job)) == 3
    job.kill()
    done = job.end()  # with the last worker
    lost = [line for line in done.stderr.splitlines()
            if "the store at " in line and " is lost: " in line
            and "the same command goes on" in line]  # fmt: skip
    assert len(lost) == 3, done.stderr
    assert not Path("orphaned/summary.json").exists(), "finished before"
    done = agent.begin("orphaned", "--max-restarts", "0").end()
    assert done.returncode == 0, done.stderr
    alike(whole, "orphaned")


def test_torchrun_refuses_other_settings(agent: Agent, whole: Path) -> None:
    shutil.copytree(whole, "killed")
    agent.work += ["--repeats", "2"]
    done = agent.begin("killed", workers=2).end()
    assert done.returncode != 0, "other settings were accepted"
    words = "eval-loglik: killed holds results of other settings: settings repeats is 2"
    assert words in done.stderr, done.stderr


def test_says_that_a_store_is_not_there(torchrun: str, eval_loglik: Program, vae: Path) -> None:
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    args = [vae, *PLAIN, "--lease", "1s", "--out", "away"]
    words = ["cannot reach the store at localhost:1", "waited"]
    eval_loglik.expect(75, *words, args=args, env=env)


def test_the_first_process_has_the_store(
    eval_loglik: Program, run: list[str], whole: Path, worker: Callable[[int], dict[str, str]]
) -> None:
    """Without an agent's store, as under TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1. One is killed."""
    hosted = [*run, "--threads", "1", "--out", "hosted"]
    jobs = [eval_loglik.start(*hosted, env=worker(rank)) for rank in range(3)]
    until_chunks(jobs[2], "hosted", 3)
    jobs[2].kill()
    ends = [job.end() for job in jobs[:2]]
    alike(whole, "hosted")
    said = [tables(done.stdout) for done in ends]
    assert sorted(said) == [0, 1], [done.stderr for done in ends]
    assert any("all 64 images are done; another worker" in done.stderr for done in ends)

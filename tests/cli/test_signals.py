"""A signal under each way to estimate: an end within two seconds, nothing lost, the same bytes."""

import os
import resource
import signal
import time
from pathlib import Path

import pytest

from .programs import Job, Program, beside, read_json, same

SIMULATED = "--simulate 32 --chunk 8 --step-size 0.5 --quiet".split()
WAYS = {
    "mcd": "--method mcd:steps=8,iterations=80,hidden=32 --chains 2500",
    "error": "--error 0.001 --steps 48 --base prior",
}
FILES = ["per_image.csv", "run.json", "schedule.csv"]
STOPS_WITHIN = 2.0


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS)
def way(
    request: pytest.FixtureRequest, vae: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], Path]:
    """The arguments of a run, and the folder of one that was left alone."""
    folder = tmp_path_factory.mktemp("whole")
    args = [str(vae), *beside(request.param, SIMULATED)]
    Program("eval-loglik", folder).succeed(*args, "--threads", "2", "--out", "whole")
    return args, folder / "whole"


def processor_seconds(job: Job) -> float:
    """What a running process has had: a busy machine takes longer, and no more of these."""
    fields = Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_children() -> float:
    """Those of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chunks(folder: str | Path) -> dict[str, tuple[bytes, int]]:
    """Content and age of the chunk files."""
    found = Path(folder, "chunks").glob("*.json")
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in found}


@pytest.mark.parametrize(
    ("seen", "number"),
    [("run.json", signal.SIGTERM), ("chunks/000001.json", signal.SIGINT)],
    ids=["tuning", "a chunk"],
)
def test_stops_soon_and_loses_nothing(
    eval_loglik: Program, way: tuple[list[str], Path], seen: str, number: signal.Signals
) -> None:
    args, whole = way
    before = of_children()
    job = eval_loglik.start(*args, "--threads", "1", "--out", "stopped")
    job.until(Path("stopped", seen).exists)
    kept, had = chunks("stopped"), processor_seconds(job)
    job.send(number)
    done = job.end()
    assert done.returncode == 75, f"finished before the signal, or failed: {done.stderr}"
    assert "interrupted" in done.stderr and done.stderr.count("\n") == 1
    assert "--resume" in done.stderr or not kept
    assert of_children() - before - had < STOPS_WITHIN
    left = chunks("stopped")
    assert kept.items() <= left.items(), "a finished chunk was lost"
    assert not Path("stopped/summary.json").exists()

    eval_loglik.succeed(*args, "--threads", "2", "--out", "stopped", "--resume")
    assert left.items() <= chunks("stopped").items(), "a finished chunk was computed again"
    for file in (file for file in FILES if (whole / file).exists()):
        same(whole / file, f"stopped/{file}")


def test_a_second_signal_ends_at_once(eval_loglik: Program, vae: Path) -> None:
    job = eval_loglik.start(
        vae, *"--simulate 64 --threads 1 --method iwae:100000000 --out ended".split()
    )
    job.until(Path("ended/run.json").exists)
    job.send(signal.SIGINT)
    time.sleep(0.01)
    job.send(signal.SIGINT)
    assert job.end(seconds=20).returncode in (75, -signal.SIGINT, 128 + signal.SIGINT)
    assert read_json("ended/run.json")["program"] == "eval-loglik"

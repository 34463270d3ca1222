"""What a hostile file, flag or folder does to the programs.

One clear line, a code that is not 70 (a fault of ours), and nothing of anybody's touched.
"""

import array
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from .programs import DENSITY, Argument, Case, Program, copy, edit, environment, refusals

SMALL = "--simulate 24 --steps 8 --chains 4 --chunk 8 --quiet".split()
LONG = "n" * 300
WORD = "a" * 50000
HUGE = "9223372036854775807"

# Each program, with the arguments of a short run.
SHORT = "--base prior --witness none --steps 4 --quiet".split()
QUICK = {
    "train-vae": "--data synthetic:60 --epochs 1 --quiet".split(),
    "estimate-logz": ["normal:2", *SHORT],
    "estimate-logz.py": [DENSITY, "--dim", "2", *SHORT],
}
OTHERS = pytest.mark.parametrize("name", QUICK)


def test_the_file_of_all_programs_says_their_names() -> None:
    Program("crais").expect(64, "crais: start it as estimate-logz, eval-loglik or train-vae", args=[])


@pytest.fixture(scope="module")
def run(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("run")
    Program("eval-loglik", folder).succeed(vae, *SMALL, "--out", "run")
    return folder / "run"


@pytest.fixture
def lying(run: Path) -> Path:
    """A copy of it, to be falsified."""
    return copy(run, "lying")


# --- Names that no file system takes, links that lead nowhere, a folder in a file's place.
@OTHERS
@pytest.mark.parametrize(
    ("code", "word", "out"),
    [
        (73, "too long", LONG),
        (73, "symbolic links", "loop"),
        (64, "UTF-8", b"caf\xe9"),
        (73, r"in\nthe", "/proc/in\nthe way"),
    ],
    ids=["long", "a circle", "no text", "two lines"],
)
def test_names_of_folders(name: str, code: int, word: str, out: Argument) -> None:
    os.symlink("loop", "loop")
    Program(name).expect(code, word, args=[*QUICK[name], "--out", out])


# --- A stdout that takes nothing, and signals that come where no step ends for long.
@OTHERS
@pytest.mark.parametrize("where", ["/dev/full", ""], ids=["full", "closed"])
def test_output_that_cannot_be_written(name: str, where: str) -> None:
    program, out = Program(name), None if not where else os.open(where, os.O_WRONLY)
    done = subprocess.run(
        [*program.command, *QUICK[name]], env=environment(program.env), stderr=subprocess.PIPE,
        stdout=out, text=True, preexec_fn=None if out else lambda: os.close(1),
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (74, 1), done.stderr
    assert "cannot write to standard output" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize("target", ["normal:2 --leapfrog 100000000", "slow", "hanging", "imports"])
def test_signals_end_everything_in_two_seconds(target: str, number: signal.Signals) -> None:
    is_python = "normal" not in target
    args = [DENSITY.replace("normal", target), "--dim", "2"] if is_python else target.split()
    program = Program("estimate-logz.py" if is_python else "estimate-logz")
    job = program.start(*args, *"--base prior --steps 400 --threads 1 --quiet".split())
    status = Path(f"/proc/{job.pid}/status")
    caught = lambda: int(re.findall("SigCgt:\t(.*)", status.read_text())[0], 16) >> (number - 1) & 1
    job.until(Path("begun").exists if target in ("slow", "hanging") else caught)
    time.sleep(target != "imports")  # which is torch's, at first
    job.send(number)
    sent = time.monotonic()
    done = job.end()
    assert done.returncode == 75 and "interrupted" in done.stderr, (done.returncode, done.stderr)
    assert time.monotonic() - sent < 2.5 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


# --- Numbers beyond reason.
@refusals(
    (64, f"--steps {HUGE} --dry-run", "--steps", "1000000000"),
    (64, "--steps 1000000000 --chains 1000000000 --dry-run", "more evaluations"),
    (64, "--steps 100000000 --dry-run", "--steps", "this machine has"),
    (64, "--steps 4 --max-evals 1000", "--max-evals does nothing without --error"),
    (64, "--error 0.1 --control 0", "--error needs a control", "--control is 0"),
    (64, "--control 16 --method iwae:9", "--control", "no method anneals"),
    (64, "--pilot-chains 900000000 --quiet", "--pilot-chains", "this machine has"),
    (64, "--chains 900000000 --resample systematic:0.5 --steps 4 --quiet", "--chains", "this machine has"),
)
def test_numbers(eval_loglik: Program, vae: Path, case: Case) -> None:
    eval_loglik.refuse(case, vae, "--simulate", "24")


# --- Words of any length, and of several lines, from the command line and from files.
@pytest.mark.parametrize("name", ["eval-loglik", *QUICK])
def test_long_flags(name: str) -> None:
    Program(name).expect(64, "unknown flag --flag", args=[f"--flag={WORD}"])
    Program(name).expect(64, "unknown flag", args=[f"--{WORD}"])


def test_long_words_in_files(eval_loglik: Program, vae: Path, lying: Path) -> None:
    three = [vae, "--simulate", "3"]
    eval_loglik.expect(64, "unknown schedule", args=[*three, f"--schedule=`{WORD}`"])
    eval_loglik.expect(64, r"unknown schedule 'a\nb'", args=[*three, "--schedule", "a\nb"])
    Path("backticks").write_text(f"0\n`{WORD}`\n1\n")
    args = [*three, "--schedule", "file:backticks"]
    eval_loglik.expect(65, "backticks: line 2", args=args)
    edit(lying / "run.json", r'"method": \[', f'"method": [ "`{WORD}`", ')
    eval_loglik.expect(65, "lying", args=["merge", "lying", "--out", "merged"])


# --- Arrays of other dimensions than images have.
def test_arrays_of_other_dimensions(eval_loglik: Program, vae: Path) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.save("flat.npy", numpy.zeros(100, "float32"))
    numpy.save("one.npy", numpy.zeros((), "float32"))
    numpy.save("many.npy", numpy.zeros((2, 1, 1, 1, 28, 28), "float32"))
    words = "flat.npy: images are 1, the checkpoint's are 28 x 28"
    eval_loglik.expect(65, words, args=[vae, "--data", "flat.npy"])
    eval_loglik.expect(65, "one.npy", "single number", args=[vae, "--data", "one.npy"])
    eval_loglik.succeed(vae, *"--data many.npy --steps 4 --chains 2 --quiet".split())


# --- A run.json that lies.
@pytest.mark.parametrize(
    ("pattern", "lie", "word"),
    [
        ('"chunk": 8', '"chunk": 0', "no run"),
        ('"chunk": 8', f'"chunk": {HUGE}', "no run"),
        ('"count": 24', '"count": 4611686018427387904', "no run"),
        ('"repeats": 1', '"repeats": 0', "no run"),
        ('"chunk": 8', '"chunk": "8"', "chunk"),
        (r"\A{", "[", "not valid JSON"),
    ],
)
def test_a_run_that_lies(eval_loglik: Program, lying: Path, pattern: str, lie: str, word: str) -> None:
    edit(lying / "run.json", pattern, lie)
    args = ["merge", "lying", "--out", "merged"]
    eval_loglik.expect(65, "lying/run.json", word, args=args)
    assert not Path("merged").exists(), "a refused merge left a folder"


@pytest.mark.parametrize("command", ["merge lying --out merged", "diagnose lying", "compare lying run"])
def test_a_run_without_chunks(eval_loglik: Program, run: Path, lying: Path, command: str) -> None:
    os.symlink(run, "run")
    shutil.rmtree(lying / "chunks")
    eval_loglik.expect(65, "lying/chunks", "holds no chunk", args=command.split())


def test_a_run_without_a_plan(eval_loglik: Program, lying: Path) -> None:
    (lying / "plan.json").unlink()
    eval_loglik.expect(65, "plan.json", args=["merge", "lying", "--out", "merged"])


# --- Another program's folder, somebody's files, links.
def test_the_folder_of_another_program(eval_loglik: Program, estimate_logz: Program, vae: Path, run: Path) -> None:
    normal = "normal:2 --steps 4 --quiet --out".split()
    estimate_logz.succeed(*normal, "density")
    copy(run, "run")
    estimate_logz.expect(64, "other settings", args=[*normal, "run", "--resume"])
    density = [vae, *SMALL, "--out", "density"]
    eval_loglik.expect(64, "already holds results", args=density)
    eval_loglik.expect(64, "other settings", args=[*density, "--resume"])


def test_the_files_of_somebody(eval_loglik: Program, train_vae: Program, vae: Path) -> None:
    for folder in ("mine", "theirs", "linked", "foreign"):
        os.mkdir(folder)
    Path("mine/summary.json").write_text("mine\n")
    words = ["summary.json", "--overwrite"]
    eval_loglik.expect(64, *words, args=[vae, *SMALL, "--out", "mine"])
    assert Path("mine/summary.json").read_text() == "mine\n"

    Path("theirs/000001.json").write_text("theirs\n")
    os.symlink("../theirs", "linked/chunks")
    linked = [vae, *SMALL, "--out", "linked", "--overwrite"]
    eval_loglik.expect(64, "is a link", args=linked)
    assert os.listdir("theirs") == ["000001.json"], "a link was followed"

    Path("foreign/vae.safetensors").write_text("weights\n")
    flags = "--data synthetic:600 --hidden 20 --latent 5 --epochs 2 --quiet --out foreign --resume"
    train_vae.expect(64, "foreign", "--overwrite", args=flags.split())
    assert Path("foreign/vae.safetensors").read_text() == "weights\n"


# --- A schedule that changes under a run.
def test_a_schedule_that_changes(eval_loglik: Program, vae: Path) -> None:
    scheduled = [vae, *SMALL, "--schedule", "file:betas", "--out", "scheduled"]
    Path("betas").write_text("0\n0.2\n1\n")
    eval_loglik.succeed(*scheduled)
    Path("scheduled/chunks/000001.json").unlink()
    Path("scheduled/summary.json").unlink()
    Path("betas").write_text("0\n0.5\n1\n")
    eval_loglik.expect(64, "schedule_sha256", args=[*scheduled, "--resume"])
    Path("betas").write_text("0\n0.2\n1\n")
    eval_loglik.succeed(*scheduled, "--resume")


# --- Weights that are finite and huge.
def test_huge_weights(eval_loglik: Program, vae: Path) -> None:
    data = vae.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    numbers = array.array("f", (x * 1e30 for x in array.array("f", data[start:])))
    Path("huge.safetensors").write_bytes(data[:start] + numbers.tobytes())
    huge = "huge.safetensors --simulate 8 --quiet".split()
    eval_loglik.expect(65, "encoder", args=[*huge, "--steps", "4"])
    prior = eval_loglik.run(*huge, "--steps", "4", "--base", "prior")
    assert "encoder" not in prior.stderr, "--base prior asks the encoder"
    iwae = "--method iwae:10 --base encoder".split()
    eval_loglik.expect(65, "encoder", args=[*huge, *iwae])

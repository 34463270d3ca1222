"""train-vae as a user meets it: files, resuming after every kind of end, and bad input."""

import json
import os
import re
import signal
import struct
from pathlib import Path

import pytest

from .programs import Case, Done, Program, copy, differ, lines, refusals, same

SMALL = "--data synthetic:600 --hidden 20 --latent 5 --quiet".split()
LONG = "--data synthetic:6000 --hidden 100 --epochs 8 --quiet".split()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run of four epochs, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    done = Program("train-vae", folder).succeed(*SMALL, "--epochs", "4", "--out", "straight")
    return folder / "straight", done


@pytest.fixture(scope="module")
def straight(run: tuple[Path, Done]) -> Path:
    return run[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of the long run, left alone."""
    folder = tmp_path_factory.mktemp("whole")
    Program("train-vae", folder).succeed(*LONG, "--out", "long")
    return folder / "long/vae.safetensors"


# --- What a run leaves behind.
def test_says_the_bound(run: tuple[Path, Done]) -> None:
    assert run[1].stderr == ""
    said = r"^validation ELBO -[0-9.]* nats \(epoch [1-4] of 4\)$"
    assert re.search(said, run[1].stdout, re.MULTILINE), run[1].stdout


def test_leaves_files(straight: Path) -> None:
    found = {str(file.relative_to(straight)) for file in straight.rglob("*") if file.is_file()}
    assert found == {
        "metrics.jsonl", "reconstructions.png", "samples.png",
        "training-state.safetensors", "vae.safetensors",
    }  # fmt: skip
    assert len(lines(straight / "metrics.jsonl")) == 4


def test_the_checkpoint_describes_itself(straight: Path) -> None:
    data = (straight / "vae.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["crais"])
    assert metadata["format_version"] == 1 and metadata["prior"] == "standard-normal"
    assert metadata["likelihood"] == "bernoulli" and metadata["binarisation"] == "dynamic"
    assert metadata["data"] == "synthetic:600" and len(metadata["data_md5"]) == 32
    assert {name: tensor["shape"] for name, tensor in header.items()} == {
        "encoder.0.weight": [20, 784], "encoder.0.bias": [20],
        "encoder.2.weight": [10, 20], "encoder.2.bias": [10],
        "decoder.0.weight": [20, 5], "decoder.0.bias": [20],
        "decoder.2.weight": [784, 20], "decoder.2.bias": [784],
    }  # fmt: skip
    ends = sorted(tensor["data_offsets"] for tensor in header.values())
    assert ends[0][0] == 0 and 8 + length + ends[-1][1] == len(data)
    metrics = [json.loads(line) for line in lines(straight / "metrics.jsonl")]
    assert [m["epoch"] for m in metrics] == [1, 2, 3, 4]
    best = max(metrics, key=lambda m: m["validation"]["bound"])
    assert metadata["epochs"] == best["epoch"]
    assert metadata["validation_elbo"] == best["validation"]["elbo"]


# --- The same again; on from the middle; a run that is over already; flags from a file.
def test_goes_on_from_the_middle(train_vae: Program, straight: Path) -> None:
    train_vae.succeed(*SMALL, "--epochs", "2", "--out", "parts")
    train_vae.succeed(*SMALL, "--epochs", "4", "--out", "parts", "--resume")
    same(straight / "vae.safetensors", "parts/vae.safetensors")
    same(straight / "samples.png", "parts/samples.png")
    train_vae.succeed(*SMALL, "--epochs", "4", "--out", "parts", "--resume")
    same(straight / "vae.safetensors", "parts/vae.safetensors")

    state = Path("parts/training-state.safetensors")
    state.write_bytes(state.read_bytes()[:1000])
    args = [*SMALL, "--epochs", "4", "--out", "parts", "--resume"]
    train_vae.expect(65, "training-state.safetensors", "truncated", args=args)


# --- Ctrl-C, then kill -9, each in the middle of an epoch.
def test_ctrl_c_keeps_what_was_learnt(train_vae: Program, whole: Path) -> None:
    job = train_vae.start(*LONG, "--out", "stopped")
    job.until(Path("stopped/training-state.safetensors").exists)
    job.send(signal.SIGINT)
    done = job.end()
    assert done.returncode == 75, done.stderr
    assert "--resume" in done.stderr
    assert Path("stopped/vae.safetensors").stat().st_size > 0
    Path("stopped/metrics.jsonl").unlink()  # rewritten from the training state
    train_vae.succeed(*LONG, "--out", "stopped", "--resume")
    same(whole, "stopped/vae.safetensors")
    assert len(lines("stopped/metrics.jsonl")) == 8


def test_goes_on_from_before_the_first_checkpoint(train_vae: Program, straight: Path) -> None:
    os.mkdir("early")
    args = [*SMALL, "--epochs", "4", "--out", "early", "--resume"]
    train_vae.expect(0, "starting from the beginning", args=args)
    same(straight / "vae.safetensors", "early/vae.safetensors")


# --- Results are not lost by mistake.
@refusals(
    (64, "--epochs 1 --out straight", "straight", "--resume", "--overwrite"),
    (64, "--lr 0.01 --out straight --resume", "lr 0.001", "0.01"),
    (64, "--seed 2 --out straight --resume", "seed 1"),
    (64, "--out straight --resume --overwrite", "exclude"),
)
def test_keeps_results(train_vae: Program, straight: Path, case: Case) -> None:
    copy(straight, "straight")
    train_vae.refuse(case, *SMALL)
    same(straight / "vae.safetensors", "straight/vae.safetensors")


def test_overwrites_if_asked(train_vae: Program, straight: Path) -> None:
    copy(straight, "straight")
    train_vae.succeed(*SMALL, *"--seed 2 --epochs 1 --out straight --overwrite".split())
    differ(straight / "vae.safetensors", "straight/vae.safetensors")


# --- Places that cannot be written.
@pytest.mark.parametrize("place", ["file", "file/sub"])
def test_a_file_is_no_folder(train_vae: Program, place: str) -> None:
    Path("file").touch()
    train_vae.expect(73, place, args=[*SMALL, "--out", place])


# --- Bad input, named.
@refusals(
    (64, "--data cifar", "synthetic", "mnist"),
    (64, "--data synthetic:0", "synthetic:0"),
    (64, "--data synthetic --data-dir .", "--data-dir does nothing for --data synthetic"),
    (64, "--act sine", "sine", "tanh"),
    (64, "--betas 0.9", "--betas"),
    (64, "--binarisation amat", "amat"),
)
def test_refuses(train_vae: Program, case: Case) -> None:
    train_vae.refuse(case)


def test_without_data_no_folder_is_made(train_vae: Program, tmp_path: Path) -> None:
    args: list[str | Path] = ["--data-dir", tmp_path / "none", "--out", "none"]
    train_vae.expect(66, "train-images", args=args)
    os.mkdir("broken")
    Path("broken/train-images-idx3-ubyte").write_text("nonsense\n")
    args = ["--data-dir", "broken", "--out", "none"]
    train_vae.expect(65, "broken/train-images-idx3-ubyte", args=args)
    assert not Path("none").exists()

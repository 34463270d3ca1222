"""eval-loglik extend: the bytes of one run, whatever stops it, and what it refuses."""

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from .programs import (
    Program,
    beside,
    copy,
    edit,
    idx_images,
    read_json,
    refusals,
    same,
    same_files,
    small_vae,
)

METHODS = "--method ais --method iwae:20 --base laplace --steps 8 --quiet".split()
IMAGES = "--data images.npy --binarisation static:0".split()


@pytest.fixture
def small(vae: Path) -> list[str]:
    return [str(vae), *METHODS]


@pytest.fixture(scope="module")
def more(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, to be refused."""
    folder = tmp_path_factory.mktemp("more")
    program = Program("eval-loglik", folder)
    program.succeed(vae, *METHODS, *"--simulate 10 --chains 8 --out more".split())
    return folder / "more"


def extend(program: Program, folder: str, *more: str) -> str:
    return program.succeed("extend", folder, *more, "--quiet").stdout


def alike(program: Program, folder: str, *args: str) -> None:
    """The folder is that of one run with these arguments."""
    shutil.rmtree("whole", ignore_errors=True)
    program.succeed(*args, "--out", "whole")
    for file in ("per_image.csv", "run.json", "plan.json", "schedule.csv", "thumbnails.npy"):
        same(f"{folder}/{file}", f"whole/{file}")
    results = [read_json(f"{f}/summary.json")["results"] for f in (folder, "whole")]
    assert results[0][0].pop("seconds", 0) >= 0
    timeless = [
        [{k: v for k, v in r.items() if "second" not in k} for r in found] for found in results
    ]
    assert timeless[0] == timeless[1]


def draw_images() -> Any:
    """images.npy, of 60; what was drawn."""
    numpy = pytest.importorskip("numpy")
    images = numpy.random.default_rng(1).integers(0, 256, (60, 28, 28)).astype("uint8")
    numpy.save("images.npy", images)
    return images


# --- Chains, then images, then both: each the bytes of a run that had asked for all.
def test_chains_then_images_then_both(eval_loglik: Program, small: list[str]) -> None:
    simulated = "--simulate 40 --chunk 16 --chains 420 --out more".split()
    eval_loglik.succeed(*small, *simulated)
    said = extend(eval_loglik, "more", "--chains", "+60")
    whole = "--simulate {} --chunk 16 --chains {} --pilot-chains 256"
    alike(eval_loglik, "more", *small, *whole.format(40, 480).split())
    assert re.search("^ais ", said, re.MULTILINE), said
    extend(eval_loglik, "more", "--images", "+30")
    alike(eval_loglik, "more", *small, *whole.format(70, 480).split())
    extend(eval_loglik, "more", "--images", "+2", "--chains", "+500", "--threads", "2")
    alike(eval_loglik, "more", *small, *whole.format(72, 980).split())


def test_chains_without_a_pilot(eval_loglik: Program, small: list[str]) -> None:
    fixed = [*small, *"--simulate 24 --chunk 8 --step-size 0.3 --chains".split()]
    eval_loglik.succeed(*fixed, "8", "--out", "fixed")
    extend(eval_loglik, "fixed", "--chains", "+8")
    alike(eval_loglik, "fixed", *fixed, "16")


def test_images_of_a_range_of_a_file(eval_loglik: Program, small: list[str]) -> None:
    images = draw_images()
    ranged = [*small, *IMAGES, *"--chains 16 --chunk 16 --indices".split()]
    eval_loglik.succeed(*ranged, "10:40", "--out", "of-a-file")
    extend(eval_loglik, "of-a-file", "--images", "+10")
    alike(eval_loglik, "of-a-file", *ranged, "10:50")
    args = ["extend", "of-a-file", "--quiet", "--images"]
    eval_loglik.expect(64, "--indices", "beyond the 60 images", args=[*args, "+20"])

    import numpy

    images[12] = 0
    numpy.save("images.npy", images)
    eval_loglik.expect(65, "the data have changed", args=[*args, "+5"])


def test_images_of_a_file_up_to_its_end(eval_loglik: Program, small: list[str]) -> None:
    draw_images()
    limited = [*small, *IMAGES, *"--chains 16 --chunk 16 --limit".split()]
    eval_loglik.succeed(*limited, "50", "--out", "limited")
    args = "extend limited --images +20 --quiet".split()
    eval_loglik.expect(64, "--images", "has 50 images", "there are 60", args=args)
    extend(eval_loglik, "limited", "--images", "+10")
    alike(eval_loglik, "limited", *limited, "60")


# --- Stopped and killed, it goes on; until it has, the folder is what it was.
@pytest.fixture(scope="module")
def long(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 1700 chains, read only."""
    folder = tmp_path_factory.mktemp("long")
    flags = "--simulate 64 --chunk 4 --chains 1700 --out long".split()
    Program("eval-loglik", folder).succeed(vae, *METHODS, *flags)
    return folder / "long"


def test_stopped_it_leaves_the_folder_as_it_was(eval_loglik: Program, long: Path) -> None:
    copy(long, "stopped")
    stop = "extend stopped --chains +20000 --quiet --threads 1 --max-time 1s".split()
    eval_loglik.expect(75, "time is up", "the same command goes on", args=stop)
    assert Path("stopped/extension/run.json").exists(), "nothing tells of an extension"
    same_files("stopped", long, ignore="extension")
    another = "extend stopped --chains +1 --quiet".split()
    eval_loglik.expect(64, "another extension is under way", args=another)


def test_killed_it_goes_on(eval_loglik: Program, small: list[str], long: Path) -> None:
    copy(long, "killed")
    job = eval_loglik.start(*"extend killed --chains +1300 --quiet --threads 1".split())
    job.until(Path("killed/extension/run.json").exists)
    time.sleep(0.3)
    job.kill()
    job.end()
    extend(eval_loglik, "killed", "--chains", "+1300")  # the same command
    assert not Path("killed/extension").exists(), "an extension that is over is under way"
    whole = "--simulate 64 --chunk 4 --chains 3000 --pilot-chains 256".split()
    alike(eval_loglik, "killed", *small, *whole)


def test_a_full_disk_adds_no_second_time(eval_loglik: Program, small: list[str]) -> None:
    eval_loglik.succeed(*small, *"--simulate 24 --chunk 8 --chains 8 --out full".split())
    copy("full", "before")
    os.makedirs("full/extension/report.html/in-the-way")
    args = "extend full --chains +2 --quiet".split()
    eval_loglik.expect(73, "report.html", args=args)
    same_files("full", "before", ignore="extension")
    shutil.rmtree("full/extension/report.html")
    extend(eval_loglik, "full", "--chains", "+2")
    whole = "--simulate 24 --chunk 8 --chains 10 --pilot-chains 8".split()
    alike(eval_loglik, "full", *small, *whole)
    assert not Path("full/extension").exists(), "an extension that is over is under way"


# --- A shard stays one.
def test_a_shard_stays_one(eval_loglik: Program, small: list[str]) -> None:
    simulated = [*small, *"--simulate 40 --chunk 8 --chains".split()]
    for i in "12":
        eval_loglik.succeed(*simulated, "8", "--shard", f"{i}/2", "--out", f"part{i}")
        extend(eval_loglik, f"part{i}", "--chains", "+8")
        assert f'"shard": "{i}/2"' in Path(f"part{i}/summary.json").read_text()
    assert len(list(Path("part1/chunks").glob("*.json"))) == 3, "part1 has chunks of part2"
    eval_loglik.succeed("merge", "part1", "part2", "--out", "parts")
    eval_loglik.succeed(*simulated, "16", "--pilot-chains", "8", "--out", "unparted")
    same("parts/per_image.csv", "unparted/per_image.csv")
    args = "extend part1 --chains +8".split()
    whole = Path("part1/summary.json").read_text()
    for lie in ('"auto"', '"3"', '"0/2"', "7"):
        edit("part1/summary.json", '"shard": "1/2"', f'"shard": {lie}')
        eval_loglik.expect(65, "part1/summary.json", "shard", args=args)
        Path("part1/summary.json").write_text(whole)


# --- Another model in the file's place, another build, another schedule.
@pytest.fixture
def mine(eval_loglik: Program, vae: Path) -> Path:
    """A run on a model of the test's own, model.safetensors."""
    shutil.copy(vae, "model.safetensors")
    flags = "--simulate 24 --chunk 8 --chains 8 --out mine".split()
    eval_loglik.succeed("model.safetensors", *METHODS, *flags)
    return copy("mine", "before")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_vae(tmp_path_factory.mktemp("other") / "vae", "--epochs", "2", "--seed", "9")


def test_refuses_another_model(eval_loglik: Program, mine: Path, other: Path) -> None:
    shutil.copy(other, "model.safetensors")
    said = "mine: its model or data have changed: checkpoint sha256"
    for more in ("--chains +16", "--images +20", "--images +20 --chains +8"):
        eval_loglik.expect(64, said, args=["extend", "mine", *more.split(), "--quiet"])
        same_files("mine", mine)


def test_refuses_another_build(eval_loglik: Program, mine: Path) -> None:
    args = "extend mine --chains +16 --quiet".split()
    words = ["another build", "--accept-other-version"]
    eval_loglik.expect(64, *words, args=args, env={"CRAIS_EVALUATOR": "aten"})
    same_files("mine", mine)


def test_refuses_another_schedule(eval_loglik: Program, vae: Path) -> None:
    Path("betas").write_text("0\n0.5\n1\n")
    flags = "--simulate 24 --chains 8 --schedule file:betas --quiet --out scheduled".split()
    eval_loglik.succeed(vae, *flags)
    Path("betas").write_text("0\n0.6\n1\n")
    args = "extend scheduled --chains +8 --quiet".split()
    eval_loglik.expect(64, "schedule_sha256", args=args)


# --- MNIST that is not at hand is not replaced by simulated images.
def test_asks_where_mnist_is(eval_loglik: Program, small: list[str]) -> None:
    numpy = pytest.importorskip("numpy")
    pixels = numpy.random.default_rng(3).integers(0, 256, (60, 28, 28)).astype("uint8")
    os.makedirs("away/mnist")
    Path("away/mnist/t10k-images-idx3-ubyte").write_bytes(idx_images(60, 28, 28, pixels.tobytes()))
    few = "--data-dir away/mnist --limit 20 --chunk 8 --chains".split()
    eval_loglik.succeed(*small, *few, "8", "--out", "digits")
    copy("digits", "before")
    args = "extend digits --chains +8 --quiet".split()
    eval_loglik.expect(64, "digits", "MNIST", "--data-dir", args=args)
    same_files("digits", "before")
    extend(eval_loglik, "digits", "--chains", "+8", "--data-dir", "away/mnist")
    alike(eval_loglik, "digits", *small, *few, "16", "--pilot-chains", "8")


# --- What cannot be extended says why.
@refusals(
    (64, "extend more", "how many more", "--chains +N"),
    (64, "extend more --chains 16", "chains to add, such as +16"),
    (64, "extend more --images 16", "images to add, such as +16"),
    (64, "extend more --chains +0", "from +1"),
    (64, "extend more --images +many", "whole number"),
    (66, "extend vae --chains +1", "holds no evaluation"),
    (64, "extend more whole --chains +1", "unexpected"),
    (64, "extend more --chains +1 --steps 9", "--steps"),
)
def test_refuses(
    eval_loglik: Program,
    more: Path,
    vae: Path,
    code: int,
    args: list[str],
    words: list[str],
) -> None:
    copy(more, "more")
    copy(vae.parent, "vae")
    eval_loglik.expect(code, *words, args=args)


@pytest.mark.parametrize(
    "flags",
    ["--budget 500", "--target-error 0.5", "--resample systematic:0.5", "--method elbo"],
)
def test_refuses_chains_where_they_do_not_add_up(
    eval_loglik: Program, vae: Path, flags: str
) -> None:
    small = "--simulate 10 --chains 8 --steps 8 --quiet --out other".split()
    eval_loglik.succeed(vae, *beside(flags, small))
    args = "extend other --chains +8".split()
    eval_loglik.expect(64, "other: chains cannot be added", args=args)


def test_refuses_a_run_that_lies(eval_loglik: Program, more: Path) -> None:
    copy(more, "more")
    args = "extend more --chains +8".split()
    Path("more/summary.json").write_text('{"checkpoint": {"path": 7}}\n')
    eval_loglik.expect(65, "more/summary.json", "model's file", args=args)
    Path("more/summary.json").unlink()
    eval_loglik.expect(64, "finish the run first", args=args)
    copy(more, "more")
    edit("more/run.json", '"chains": 8', '"chains": -8')
    eval_loglik.expect(65, "more/run.json", "--chains", args=args)

"""eval-loglik compare and diagnose: what they find in folders, what they refuse."""

import csv
import json
import math
import os
import re
import shutil
import statistics
from pathlib import Path

import pytest

from .programs import Case, Program, copy, edit, lines, refusals, small_vae

SETTINGS = "--steps 8 --chunk 16 --quiet".split()
STATIC = ["--binarisation", "static:0"]
SMALL = ["--data", "images.npy", *STATIC, *SETTINGS, "--chains", "4"]
EARLY, LATE = "early/vae.safetensors", "late/vae.safetensors"


def draw_images(folder: Path) -> None:
    """images.npy, and others."""
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(1)
    for name in ("images.npy", "others.npy"):
        numpy.save(folder / name, rng.integers(0, 256, (40, 28, 28)).astype("uint8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images, two models, and their results on the images: a and b."""
    folder = tmp_path_factory.mktemp("runs")
    draw_images(folder)
    small_vae(folder / "early", "--epochs", "2")
    copy(folder / "early", folder / "late")
    small_vae(folder / "late", "--epochs", "12", "--resume")
    program = Program("eval-loglik", folder)
    program.succeed(EARLY, *SMALL, "--out", "a")
    program.succeed(LATE, *SMALL, "--out", "b")
    return folder


@pytest.fixture(scope="module")
def poor(runs: Path) -> Path:
    """A run that flags most images."""
    flags = "--steps 2 --chains 4 --chunk 16 --base prior --quiet --out poor".split()
    program = Program("eval-loglik", runs)
    program.succeed(EARLY, "--data", "images.npy", *STATIC, *flags)
    return runs / "poor"


@pytest.fixture(autouse=True)
def _here(runs: Path) -> None:
    """What the runs' folder has, to read; what a test changes, it copies first."""
    for name in ("early", "late", "images.npy", "others.npy", "a", "b"):
        os.symlink(runs / name, name)


# --- Two folders: what is printed agrees with what their own summaries say.
def test_two_folders_agree_with_their_summaries(eval_loglik: Program) -> None:
    said = eval_loglik.succeed("compare", "a", "b").stdout
    assert re.search("^A - B ", said, re.MULTILINE), said
    assert "is better." in said

    (r,) = json.loads(eval_loglik.succeed("compare", "a", "b", "--format", "json").stdout)["results"]
    first, second = (
        [float(row["log_likelihood"]) for row in csv.DictReader(lines(f"{f}/per_image.csv"))] for f in "ab"
    )
    d = [a - b for a, b in zip(first, second, strict=True)]
    assert r["images"] == len(d) == 40
    assert abs(r["difference"] - statistics.fmean(d)) < 1e-9
    assert abs(r["data_std_error"] - statistics.stdev(d) / math.sqrt(40)) < 1e-9
    errors = [statistics.stdev(values) / math.sqrt(40) for values in (first, second)]
    assert abs(r["unpaired_std_error"] - math.hypot(*errors)) < 1e-9
    assert r["interval_low"] < r["difference"] < r["interval_high"]
    assert abs(r["share_better"] - sum(x > 0 for x in d) / 40) < 1e-12


def test_three_models_make_three_pairs(eval_loglik: Program) -> None:
    table = eval_loglik.succeed("compare", "a", "b", "b", "--format", "csv").stdout
    assert table.count("\n") == 4, table
    said = eval_loglik.succeed("compare", "a", "b", "b").stdout
    assert re.search(r"^B - C .* 0\.000 ", said, re.MULTILINE), said


def test_another_number_of_chains_is_said(eval_loglik: Program) -> None:
    more = ["--data", "images.npy", *STATIC, *SETTINGS, "--chains", "8", "--out", "c"]
    eval_loglik.succeed(LATE, *more)
    said = eval_loglik.succeed("compare", "a", "c").stdout
    assert "were not evaluated alike (chains 4 and 8)" in said.replace("\n", " ")


def test_one_image_decides_nothing(eval_loglik: Program) -> None:
    for model in ("early", "late"):
        one = ["--limit", "1", "--out", f"one-{model}"]
        eval_loglik.succeed(f"{model}/vae.safetensors", *SMALL, *one)
    said = eval_loglik.succeed("compare", "one-early", "one-late").stdout
    assert "no difference is seen" in said


def test_the_name_of_the_file_does_not_matter(eval_loglik: Program) -> None:
    shutil.copy("images.npy", "copy.npy")
    copied = ["--data", "copy.npy", *STATIC, *SETTINGS, "--chains", "4", "--out", "copied"]
    eval_loglik.succeed(LATE, *copied)
    assert "not evaluated alike" not in eval_loglik.succeed("compare", "a", "copied").stdout


# --- What cannot be compared.
@pytest.mark.parametrize(
    ("code", "words", "flags"),
    [
        (64, ["different images", "count 40 and 20"], ["--limit", "20"]),
        (64, ["different images", "binarisation"], ["--binarisation", "threshold:1"]),
        (64, ["different images", "file_md5"], ["--data", "others.npy"]),
        (65, ["other", "--resume"], ["--shard", "1/2"]),
        (64, ["--method"], ["--method", "iwae:10"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else str(value),
)
def test_refuses_runs_of_other_things(eval_loglik: Program, code: int, words: list[str], flags: list[str]) -> None:
    settings = {"--data": "images.npy", "--binarisation": "static:0", "--chains": "4", "--steps": "8"}
    for flag in ["--chains", "--steps"] if flags[0] == "--method" else flags[:1]:
        settings.pop(flag, None)
    given = [word for pair in settings.items() for word in pair]
    eval_loglik.succeed(LATE, *given, *"--chunk 16 --quiet --out other".split(), *flags)
    eval_loglik.expect(code, *words, args=["compare", "a", "other"])


@refusals(
    (64, "compare a", "2 to 26"),
    (64, "compare a b --steps 4", "--steps", "compare only reads results"),
    (64, "compare a b --out c", "--out", "compare only reads results"),
    (66, "compare a nowhere", "nowhere"),
    (66, "compare a empty", "run.json"),
    (64, "merge a b --out m --steps 4", "--steps", "merge only reads results"),
    (64, "diagnose a --out m", "--out", "diagnose only reads results"),
)
def test_refuses(eval_loglik: Program, case: Case) -> None:
    os.mkdir("empty")
    eval_loglik.refuse(case)


@pytest.mark.parametrize(
    "command",
    ["compare a z", "compare z z", "diagnose z", "merge z --out m"],
)
def test_refuses_runs_of_densities(eval_loglik: Program, estimate_logz: Program, command: str) -> None:
    normal = "normal:2 --base prior --witness none --steps 4 --quiet --out z".split()
    estimate_logz.succeed(*normal)
    words = ["z", "a run of estimate-logz", "crais.compare"]
    eval_loglik.expect(65, *words, args=command.split())


# --- diagnose: in words, with a remedy that helps.
def test_diagnoses_a_poor_run(eval_loglik: Program, poor: Path) -> None:
    done = eval_loglik.run("diagnose", poor)
    assert done.returncode == 1, done.stdout + done.stderr
    said = done.stdout.replace("\n", " ")
    assert re.search("few chains carry the estimate.*Remedy: .*--steps 8", said), said
    assert "Remedy: anneal longer" in (poor / "report.html").read_text()

    found = json.loads(eval_loglik.run("diagnose", poor, "--format", "json").stdout)["results"]
    rows = csv.DictReader(lines(poor / "per_image.csv"))
    flagged = [int(row["image"]) for row in rows if "ess" in row["flags"]]
    assert flagged
    assert any(f["images"] == flagged and f["evaluations_per_image"] == 4 * 12 for f in found), found


def test_diagnoses_a_good_run(eval_loglik: Program) -> None:
    good = "--simulate 12 --steps 64 --chains 16 --quiet --out good".split()
    eval_loglik.succeed(EARLY, *good)
    assert "Nothing is wrong" in eval_loglik.succeed("diagnose", "good").stdout


def test_diagnoses_one_finished_run(eval_loglik: Program, poor: Path) -> None:
    eval_loglik.succeed(LATE, *SMALL, "--shard", "1/2", "--out", "half")
    eval_loglik.expect(65, "half", "--resume", args=["diagnose", "half"])
    eval_loglik.expect(64, "1 result folder", args=["diagnose", poor, "a"])
    eval_loglik.expect(64, "--steps", args=["diagnose", poor, "--steps", "4"])
    edit(copy(poor, "bad") / "run.json", '"steps": 2,', '"steps": -2,')
    eval_loglik.expect(65, "other settings", args=["diagnose", "bad"])

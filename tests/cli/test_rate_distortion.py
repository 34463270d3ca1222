"""eval-loglik curve: files, repetition to the byte, bad input."""

import csv
import math
from pathlib import Path

import pytest

from .programs import SOURCE, Done, Program, copy, differ, edit, lines, read_json, refusals, same

DATA = SOURCE / "tests/models/data"
CURVE = "--simulate 40 --schedule constant-length:0.3 --chains 4 --chunk 8 --quiet".split()
NLL = ["--distortion", "nll"]
ALONE = "--schedule constant-length:0.3 --chains 4 --quiet --simulate 20".split()


@pytest.fixture(scope="module")
def run(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run's folder, and what it said."""
    folder = tmp_path_factory.mktemp("curve")
    program = Program("eval-loglik", folder)
    done = program.succeed("curve", vae, *CURVE, *NLL, "--threads", "1", "--out", "straight")
    return folder / "straight", done


@pytest.fixture
def straight(run: tuple[Path, Done]) -> Path:
    return run[0]


def same_curve(one: Path, other: str) -> None:
    for file in ("rate_distortion.csv", "per_image.csv", "schedule.csv"):
        same(one / file, Path(other) / file)


def test_says_the_curve(run: tuple[Path, Done]) -> None:
    assert run[1].stderr == ""
    head = "Rate and distortion (negative log-likelihood), means over 40 images"
    assert any(line.startswith(head) for line in run[1].stdout.splitlines()), run[1].stdout


def test_leaves_files(straight: Path) -> None:
    for file in ("rate_distortion.csv", "summary.json", "report.html"):
        assert (straight / file).stat().st_size > 0


def test_draws_the_curve(straight: Path) -> None:
    assert "<svg" in (straight / "rate_distortion.svg").read_text()
    assert "Rate and distortion" in (straight / "report.html").read_text()


def test_the_curve_keeps_its_identities(straight: Path) -> None:
    summary = read_json(straight / "summary.json")
    (result,) = summary["results"]
    table = csv.DictReader(lines(straight / "rate_distortion.csv"))
    rows = [{k: float(v) for k, v in row.items()} for row in table]
    assert result["method"] == "rate-distortion:reverse=1" and result["base"] == "prior"
    assert len(rows) == result["transitions"] + 1 == summary["rate_distortion"]["temperatures"]
    assert result["evaluations_per_image"]["estimating"] == 2 * 4 * len(rows)
    first, last = rows[0], rows[-1]
    assert first["beta"] == first["rate"] == 0 and last["beta"] == 1
    assert all(a["beta"] < b["beta"] for a, b in zip(rows, rows[1:]))
    for row in rows:  # R + beta D = -log Z
        assert abs(row["rate"] + row["beta"] * row["distortion"] + row["log_normalizer"]) < 1e-6
    assert abs(last["rate"] + last["distortion"] + result["log_likelihood"]) < 1e-6
    assert abs(last["gap"] - result["certificate"]["gap"]) < 1e-6
    assert abs(last["reverse_rate"] - last["rate"] + last["gap"]) < 1e-9
    assert abs(last["rate_bits_per_dim"] * 784 * math.log(2) - last["rate"]) < 1e-6
    assert last["rate"] > rows[len(rows) // 2]["rate"] > 0
    assert last["distortion"] < first["distortion"]
    point = summary["rate_distortion"]["points"][-1]
    assert point["beta"] == 1 and abs(point["rate"]["mean"] - last["rate"]) < 1e-9


def test_threads_change_no_byte(eval_loglik: Program, vae: Path, straight: Path) -> None:
    eval_loglik.succeed("curve", vae, *CURVE, *NLL, "--threads", "2", "--out", "threads")
    same_curve(straight, "threads")


def test_shards_merge_to_the_same_bytes(eval_loglik: Program, vae: Path, straight: Path) -> None:
    for shard in "12":
        eval_loglik.succeed("curve", vae, *CURVE, *NLL, "--shard", f"{shard}/2", "--out", f"shard{shard}")
    merged = eval_loglik.succeed("merge", "shard1", "shard2", "--out", "merged")
    same_curve(straight, "merged")
    assert any(line.startswith("Rate and distortion") for line in merged.stdout.splitlines())

    eval_loglik.succeed("curve", vae, *CURVE, *NLL, "--seed", "1", "--out", "seed")
    differ(straight / "rate_distortion.csv", "seed/rate_distortion.csv")
    eval_loglik.expect(65, "another run", args=["merge", "shard1", "seed", "--out", "strangers"])


def test_resumes_to_the_same_bytes(eval_loglik: Program, vae: Path, straight: Path) -> None:
    copy(straight, "resumed")
    for file in ("chunks/000001.json", "rate_distortion.csv", "summary.json"):
        Path("resumed", file).unlink()
    resume = ["curve", vae, *CURVE, *NLL, "--resume", "--out", "resumed"]
    eval_loglik.succeed(*resume)
    same_curve(straight, "resumed")
    edit("resumed/chunks/000001.json", r'"rate_squares":\[0', '"rate_squares":[1')
    eval_loglik.expect(65, "000001.json", "damaged", args=resume)


def test_resumes_no_other_settings(eval_loglik: Program, vae: Path, straight: Path) -> None:
    copy(straight, "straight")
    other = ["--distortion", "mse:0.3", "--resume", "--out", "straight"]
    eval_loglik.expect(64, "other settings", args=["curve", vae, *CURVE, *other])


# --- Squared errors: of binary pixels' means, of a decoder without a likelihood.
def test_squared_errors(eval_loglik: Program, vae: Path) -> None:
    done = eval_loglik.succeed("curve", vae, *CURVE, "--distortion", "mse:0.3", "--out", "mse")
    heads = [line for line in done.stdout.splitlines() if line.startswith("Rate and distortion")]
    assert heads[0].startswith("Rate and distortion (mean squared error)")
    assert lines("mse/rate_distortion.csv")[0].endswith(",noise_sd,mse")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("decoder_only.pt", ALONE),
        ("linear_gaussian.pt", "--simulate 20 --chains 4 --quiet".split()),
        ("linear_mlp.pt2", "--simulate 20 --chains 4 --quiet".split()),
    ],
)
def test_squared_errors_of_any_decoder(
    eval_loglik: Program, model: str, settings: list[str]
) -> None:
    eval_loglik.succeed("curve", DATA / model, *settings, "--distortion", "mse:0.3")


def test_a_decoder_without_a_likelihood_has_squared_errors_alone(eval_loglik: Program) -> None:
    alone = [DATA / "decoder_only.pt", *ALONE]
    eval_loglik.expect(64, "without a likelihood", "curve --distortion mse", args=alone)
    eval_loglik.expect(64, "without a likelihood", args=["curve", *alone, *NLL])


def test_refuses_a_prior_that_is_no_normal(eval_loglik: Program) -> None:
    args = ["curve", DATA / "mixture_prior.pt", "--simulate", "5", *NLL, "--quiet"]
    eval_loglik.expect(64, "prior", "mixture", args=args)


def test_is_no_method(eval_loglik: Program, vae: Path) -> None:
    eval_loglik.expect(64, "rate-distortion", args=[vae, "--method", "rate-distortion"])


def test_is_not_extended(eval_loglik: Program, straight: Path) -> None:
    copy(straight, "straight")
    eval_loglik.expect(64, "curve", "anew", args=["extend", "straight", "--images", "+8"])


@refusals(
    (64, "--distortion psnr", "--distortion", "psnr", "mse:0.1"),
    (64, "--distortion mse:0", "sd"),
    (64, "--distortion nll:-1", "beta"),
    (64, "--distortion mse", "mse:0.1"),
    (64, "--distortion nll:2", "nll:2", "--simulate"),
    (64, "--method iwae", "--method"),
    (64, "--base laplace", "--base"),
    (64, "--per-image", "--per-image"),
    (64, "--target-error 0.1", "--target-error"),
    (64, "--resample systematic", "--resample"),
    (64, "--path power:0.5", "--path"),
)
def test_refuses(
    eval_loglik: Program, vae: Path, code: int, args: list[str], words: list[str]
) -> None:
    eval_loglik.expect(code, *words, args=["curve", vae, *CURVE, *args])

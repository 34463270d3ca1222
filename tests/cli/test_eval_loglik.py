"""eval-loglik as a user meets it: files, repetition to the byte, resuming, shards, bad input."""

import csv
import gzip
import os
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest

from .programs import Case, Done, Program, copy, differ, edit, idx_images, lines, read_json, refusals, same

SHORT = "--simulate 50 --steps 8 --chains 4 --chunk 8 --quiet".split()
THREE = "--method ais --method iwae:20 --method elbo:20 --repeats 2".split()


@pytest.fixture
def small(vae: Path) -> list[str]:
    """The arguments of a short run."""
    return [str(vae), *SHORT]


@pytest.fixture
def again(small: list[str]) -> list[str]:
    """Those of a short run of three methods."""
    return [*small, *THREE]


@pytest.fixture(scope="module")
def run(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run of three methods, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    program = Program("eval-loglik", folder)
    done = program.succeed(vae, *SHORT, *THREE, "--threads", "1", "--out", "straight")
    return folder / "straight", done


@pytest.fixture(scope="module")
def straight(run: tuple[Path, Done]) -> Path:
    return run[0]


@pytest.fixture(scope="module")
def seed(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run like `run` with another seed."""
    folder = tmp_path_factory.mktemp("seed")
    program = Program("eval-loglik", folder)
    program.succeed(vae, *SHORT, *THREE, "--seed", "1", "--out", "seed")
    return folder / "seed"


# --- What a run leaves behind.
def test_says_a_table(run: tuple[Path, Done]) -> None:
    assert run[1].stderr == ""
    assert re.search("^ais +-[0-9.]+ .* 0$", run[1].stdout, re.MULTILINE), run[1].stdout


def test_leaves_files(straight: Path) -> None:
    for file in ("run.json", "plan.json", "summary.json", "chunks/000000.json"):
        assert (straight / file).stat().st_size > 0
    assert not list(straight.rglob("*tmp*")), "temporary files stay"
    names = [str(path).casefold() for path in straight.rglob("*")]
    assert len(set(names)) == len(names), "names that macOS and Windows take for one"
    assert len(lines(straight / "per_image.csv")) == 1 + 50 * 3 * 2
    assert len(lines(straight / "schedule.csv")) == 10


def test_the_summary_agrees_with_the_table(straight: Path) -> None:
    summary = read_json(straight / "summary.json")
    assert [r["method"] for r in summary["results"]] == ["ais", "iwae:20", "elbo:20"]
    ais, iwae, elbo = summary["results"]
    assert ais["images"] == 50 and ais["repeats"] == 2 and ais["transitions"] == 8
    assert ais["evaluations_per_image"]["estimating"] == 4 * (1 + 8)
    evaluations = iwae["evaluations_per_image"]
    assert evaluations["estimating"] == 20 and evaluations["tuning"] == 0
    assert elbo["log_likelihood"] < iwae["log_likelihood"] < 0
    rows = list(csv.DictReader(lines(straight / "per_image.csv")))
    values = [float(r["log_likelihood"]) for r in rows if r["method"] == "ais"]
    assert abs(statistics.mean(values) - ais["log_likelihood"]) < 1e-9
    assert sorted({int(r["image"]) for r in rows}) == list(range(50))
    for key in "seconds threads device libtorch crais settings checkpoint images".split():
        assert key in summary, key
    assert len(summary["checkpoint"]["sha256"]) == 64 and len(summary["images"]["sha256"]) == 64
    assert summary["settings"]["steps"] == 8


# --- The same bytes: again, with other threads, in shards, resumed, from a file of flags.
def test_threads_change_no_byte(eval_loglik: Program, again: list[str], straight: Path) -> None:
    eval_loglik.succeed(*again, "--threads", "2", "--out", "threads")
    same(straight / "per_image.csv", "threads/per_image.csv")
    same(straight / "schedule.csv", "threads/schedule.csv")


def test_seeds_decide(straight: Path, seed: Path) -> None:
    differ(straight / "per_image.csv", seed / "per_image.csv")


@pytest.fixture(scope="module")
def shards(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The run in two shards."""
    folder = tmp_path_factory.mktemp("shards")
    program = Program("eval-loglik", folder)
    for i in "12":
        out = ["--shard", f"{i}/2", "--out", f"shard{i}"]
        program.succeed(vae, *SHORT, *THREE, *out)
    return [folder / "shard1", folder / "shard2"]


def test_shards_merge_to_the_same_bytes(eval_loglik: Program, shards: list[Path], straight: Path) -> None:
    eval_loglik.succeed("merge", *shards, "--out", "merged")
    same(straight / "per_image.csv", "merged/per_image.csv")
    same(straight / "schedule.csv", "merged/schedule.csv")
    control = [read_json(folder / "summary.json")["control"] for folder in (straight, Path("merged"))]
    assert control[0] == control[1] and control[0]["images"] == 16


def test_merges_one_run_that_is_whole(eval_loglik: Program, shards: list[Path], seed: Path, vae: Path) -> None:
    first, second = shards
    for code, word, folders in [
        (65, "in none of the folders", [first]),
        (65, "earlier folder", [first, first]),
        (65, "another run", [first, seed]),
        (66, "no evaluation", [vae.parent]),
    ]:
        eval_loglik.expect(code, word, args=["merge", *folders, "--out", "never"])
        assert not Path("never/summary.json").exists(), "a refused merge left results"
    eval_loglik.expect(64, "--out", args=["merge", first, second])


def test_resumes_to_the_same_bytes(eval_loglik: Program, again: list[str], straight: Path) -> None:
    copy(straight, "partial")
    for number in (3, 4, 5):
        Path(f"partial/chunks/00000{number}.json").unlink()
    Path("partial/per_image.csv").unlink()
    eval_loglik.succeed(*again, "--out", "partial", "--resume")
    same(straight / "per_image.csv", "partial/per_image.csv")


@refusals(
    (64, "--out straight", "--resume", "--overwrite"),
    (64, "--steps 9 --out straight --resume", "steps is 9 here and 8 there"),
    (64, "--out straight --resume --overwrite", "exclude each other"),
    (64, "--resume", "needs --out"),
)
def test_keeps_results(eval_loglik: Program, vae: Path, straight: Path, case: Case) -> None:
    copy(straight, "straight")
    steps = [] if "--steps" in case.args else ["--steps", "8"]
    short = "--simulate 50 --chains 4 --chunk 8 --quiet".split()
    eval_loglik.refuse(case, vae, *short, *steps, *THREE)


# --- Damaged and foreign chunk files.
def test_names_damaged_chunks(eval_loglik: Program, again: list[str], straight: Path, seed: Path) -> None:
    copy(straight, "damaged")
    resume = [*again, "--out", "damaged", "--resume"]
    edit("damaged/chunks/000002.json", r'"ess":\[0\.[0-9]', '"ess":[0.0')
    eval_loglik.expect(65, "000002.json", "damaged", args=resume)
    copy(straight, "damaged")
    os.truncate("damaged/chunks/000001.json", 100)
    eval_loglik.expect(65, "000001.json", "delete it", args=resume)
    shutil.copy(seed / "chunks/000001.json", "damaged/chunks")
    eval_loglik.expect(65, "other settings", args=resume)


def test_a_schedule_is_replayed(eval_loglik: Program, small: list[str], straight: Path) -> None:
    schedule = straight / "schedule.csv"
    eval_loglik.succeed(*small, "--schedule", f"file:{schedule}", "--out", "replayed")
    expected, found = ([line.split(",")[:3] for line in lines(file)] for file in (schedule, "replayed/schedule.csv"))
    assert found == expected


# --- Bounds on both sides, budgets, targets, presets: what the files say of them.
FEW = "--simulate 50 --chunk 8 --quiet --chains 8".split()


def results(folder: str) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The first result of a summary, and the rows of the table of images."""
    rows = list(csv.DictReader(lines(f"{folder}/per_image.csv")))
    return read_json(f"{folder}/summary.json")["results"][0], rows


def test_bounds_on_both_sides(eval_loglik: Program, vae: Path) -> None:
    flags = "--method bidirectional --steps 64 --out both".split()
    said = eval_loglik.succeed(vae, *FEW, *flags).stdout
    assert "Bounds on the mean log p(x)" in said
    both, rows = results("both")
    certificate = both["certificate"]
    gaps = [float(r["upper"]) - float(r["log_likelihood"]) for r in rows]
    assert abs(sum(gaps) / 50 - certificate["gap"]) < 1e-9
    assert abs(max(gaps) - certificate["largest_gap"]) < 1e-9
    assert -5 * certificate["gap_std_error"] < certificate["gap"] < 0.5, certificate
    assert both["evaluations_per_image"]["estimating"] == 2 * 8 * 65


def test_the_preset_of_the_paper(eval_loglik: Program, vae: Path) -> None:
    eval_loglik.succeed(vae, *FEW, "--preset", "paper", "--out", "paper")
    settings = read_json("paper/summary.json")["settings"]
    assert settings["base"] == "prior" and settings["kernel"] == "hmc"
    assert settings["step-size"] == "0.5"
    assert settings["chains"] == 8  # what is given wins


# --- Without data it simulates and says so; --dry-run computes nothing.
def test_without_data_it_simulates(eval_loglik: Program, vae: Path) -> None:
    said = eval_loglik.succeed(vae, *"--steps 4 --chains 2 --limit 5".split()).stderr
    assert "simulated" in said and "scripts/fetch-mnist" in said


def test_a_dry_run_writes_nothing(eval_loglik: Program, small: list[str]) -> None:
    said = eval_loglik.succeed(*small, "--dry-run", "--out", "never").stdout
    assert "Would evaluate 50 images" in said
    assert not Path("never").exists(), "--dry-run wrote files"
    mcd = "--simulate 50 --chains 4 --method mcd --dry-run".split()
    said = eval_loglik.succeed(small[0], *mcd).stdout
    assert "Learning on the first 16 images" in said


@pytest.mark.parametrize(
    ("name", "rare", "examples"),
    [("eval-loglik", "--binarisation", 9), ("estimate-logz", "--weighted-ratio", 5)],
)
def test_help_is_short_and_says_where_the_rest_is(name: str, rare: str, examples: int) -> None:
    program = Program(name)
    said = program.succeed("--help").stdout.splitlines()
    flags = [line for line in said if line.lstrip().startswith("--")]
    assert len(said) <= 60 and len(flags) <= 19
    assert "--help all lists every flag" in said[-1]
    whole = program.succeed("--help", "all").stdout
    assert whole == program.succeed("--help=all").stdout
    assert all(line.split()[0] in whole for line in flags) and rare in whole
    assert whole[whole.index("Examples:") :].count(f"\n  {name} ") == examples


# --- Bad input: one clear line and its code.
@refusals(
    (66, "missing.safetensors", "missing.safetensors", "no such file"),
    (66, "folder", "folder"),
    (65, "truncated.safetensors", "truncated.safetensors"),
    (65, "text.safetensors", "text.safetensors"),
    (66, "/dev/zero --simulate 1", "/dev/zero: is a device or a pipe"),
)
def test_refuses_what_is_no_model(eval_loglik: Program, vae: Path, case: Case) -> None:
    Path("truncated.safetensors").write_bytes(vae.read_bytes()[:1000])
    Path("text.safetensors").write_text("not a checkpoint at all")
    os.mkdir("folder")
    eval_loglik.refuse(case)


@refusals(
    (64, "--simulate 50 --budget 40", "--budget 40 is too small", "at least"),
    (64, "--budget 500 --method iwae:20", "one annealed entry of --method"),
    (64, "--budget 500 --per-image", "--budget chooses one plan"),
    (64, "--simulate 5 --method bidirectional --resample systematic", "leave out --resample"),
    (64, "--simulate 10 --indices 5:20", "--indices"),
    (69, "--device cuda:63", "CUDA"),
    (66, "--data-dir nowhere", "nowhere", "fetch-mnist"),
    (66, "--simulate 1 --schedule file:/dev/zero", "/dev/zero: is a device or a pipe"),
    (64, "--simulate 1000000000 --dry-run", "images take", "of memory; ask for fewer"),
)
def test_refuses(eval_loglik: Program, vae: Path, case: Case) -> None:
    eval_loglik.refuse(case, vae)


@refusals(
    (64, "--shard 1/1000", "chunks"),
    (64, "--schedule constant-rate:0.0001 --max-steps 50", "--max-steps"),
    (65, "--schedule file:falling.txt", "falling.txt", "rise"),
    (65, "--schedule file:words.txt", "words.txt", "half"),
    (73, "--out file", "file"),
    (73, "--out file/below", "file"),
)
def test_refuses_in_a_short_run(eval_loglik: Program, small: list[str], case: Case) -> None:
    Path("falling.txt").write_text("0\n0.5\n0.4\n1\n")
    Path("words.txt").write_text("0\nhalf\n1\n")
    Path("file").touch()
    eval_loglik.refuse(case, *small)


# --- Images.
def idx_file(folder: str, content: bytes) -> list[str]:
    """Stores test images; the flags that read them."""
    os.mkdir(folder)
    name = "t10k-images-idx3-ubyte" + (".gz" if content.startswith(b"\x1f\x8b") else "")
    Path(folder, name).write_bytes(content)
    return ["--data-dir", folder]


def test_refuses_what_is_no_image(eval_loglik: Program, vae: Path) -> None:
    flags = idx_file("bad-data", b"this is no IDX file")
    eval_loglik.expect(65, "t10k-images-idx3-ubyte", args=[vae, *flags])
    flags = idx_file("small-data", idx_images(2, 20, 20, bytes(800)))
    eval_loglik.expect(65, "20 x 20", "28 x 28", args=[vae, *flags])
    packed = gzip.compress(idx_images(99, 28, 28, os.urandom(77616)))
    flags = idx_file("cut-data", packed[:2000])
    words = ["t10k-images-idx3-ubyte.gz", "truncated"]
    eval_loglik.expect(65, *words, args=[vae, *flags])


@pytest.fixture
def grey(vae: Path) -> list[str]:
    """The model with two grey images."""
    return [str(vae), *idx_file("grey-data", idx_images(2, 28, 28, os.urandom(1568)))]


def test_certificates_of_given_images_say_how_exact_they_are(eval_loglik: Program, grey: list[str]) -> None:
    flags = "--binarisation static:0 --method bidirectional --steps 30 --control 0 --out met".split()
    done = eval_loglik.succeed(*grey, *flags)
    assert re.search("largest gap  distance .* met", done.stdout), done.stdout
    columns, first, _ = Path("met/per_image.csv").read_text().splitlines()
    assert ",upper_std_error,distance,distance_std_error,met,evaluations," in columns
    assert first.split(",")[columns.split(",").index("met")] == "1"


def test_warns_of_another_binarisation(eval_loglik: Program, grey: list[str]) -> None:
    flags = "--binarisation threshold:127 --steps 2 --chains 2 --out mismatch".split()
    done = eval_loglik.succeed(*grey, *flags)
    assert re.search("WARNING.*threshold:127", done.stderr), done.stderr
    summary = Path("mismatch/summary.json").read_text()
    assert "threshold:127" in summary, "the mismatch is not recorded"
    assert '"warnings"' in summary
    warning = "^WARNING: the checkpoint model was trained"
    assert re.search(warning, done.stdout, re.MULTILINE), done.stdout

"""estimate-logz as a user meets it: tables, files, repetition to the byte, and bad input."""

import csv
import json
import math
import os
import re
import signal
import statistics
from pathlib import Path

import pytest

from .programs import Case, Done, Program, copy, differ, edit, lines, read_json, refusals, same

PRIOR = "--base prior --witness none".split()
SMALL = ["u1", *PRIOR, *"--steps 12 --chains 8 --problems 7 --chunk 3 --quiet".split()]
THREE = "--method ais --method iwae:50 --method elbo:20 --repeats 2".split()
FEW = [*PRIOR, *"--steps 8 --chains 4 --problems 3 --quiet".split()]


def begins(pattern: str, said: str) -> bool:
    """A line begins with the pattern."""
    return re.search(f"^{pattern}", said, re.MULTILINE) is not None


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run of three methods, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    program = Program("estimate-logz", folder)
    done = program.succeed(*SMALL, *THREE, "--threads", "1", "--out", "straight")
    return folder / "straight", done


@pytest.fixture
def straight(run: tuple[Path, Done]) -> Path:
    return run[0]


# --- What there is.
def test_lists_the_targets(estimate_logz: Program) -> None:
    said = estimate_logz.succeed("list").stdout
    targets = "u1 u2 u5 u6 u10 u11 normal mixture laplace student-t smc-mixture"
    for target in [*targets.split(), "logistic-regression"]:
        assert begins(target, said), target


# --- What a run says and leaves behind.
def test_says_a_table(run: tuple[Path, Done]) -> None:
    assert run[1].stderr == ""
    assert begins(r"ais +[0-9.]+ .* 1\.8775 .* 0$", run[1].stdout), run[1].stdout


def test_leaves_files(straight: Path) -> None:
    assert set(os.listdir(straight)) - {".lock"} == {
        "chunks", "per_problem.csv", "plan.json", "report.html", "run.json", "schedule.csv",
        "summary.json",
    }  # fmt: skip
    assert len(lines(straight / "per_problem.csv")) == 1 + 7 * 3 * 2
    assert len(lines(straight / "schedule.csv")) == 14


def test_the_summary_agrees_with_the_table(straight: Path) -> None:
    summary = read_json(straight / "summary.json")
    assert summary["target"] == "u1" and summary["dim"] == 2 and summary["settings"]["seed"] == 0
    for key in ("crais", "libtorch", "device", "threads", "seconds"):
        assert key in summary, key
    assert [r["method"] for r in summary["results"]] == ["ais", "iwae:50", "elbo:20"]
    ais, iwae, elbo = summary["results"]
    assert ais["transitions"] == 12 and ais["problems"] == 7 and ais["repeats"] == 2
    assert ais["label"] == "lower bound"
    assert ais["evaluations_per_problem"]["estimating"] == 8 * (1 + 12)
    assert abs(ais["evaluations_per_problem"]["tuning"] - 8 * (1 + 12)) < 1e-9
    assert ais["evaluations_per_problem"]["base"] == 0
    assert iwae["accept_prob"] is None and iwae["evaluations_per_problem"]["estimating"] == 50
    assert elbo["log_normalizer"] < iwae["log_normalizer"]
    rows = list(csv.DictReader(lines(straight / "per_problem.csv")))
    values = [float(r["log_normalizer"]) for r in rows if r["method"] == "ais"]
    truth = summary["true_log_normalizer"]
    assert len(set(values)) == 14
    assert abs(statistics.mean(values) - ais["log_normalizer"]) < 1e-12
    error = statistics.stdev(values) / math.sqrt(14)
    assert abs(error - ais["monte_carlo_std_error"]) < 1e-12
    assert abs(ais["error"] - (ais["log_normalizer"] - truth)) < 1e-12
    assert abs(ais["z_score"] * ais["monte_carlo_std_error"] - ais["error"]) < 1e-12
    squares = statistics.mean((v - truth) ** 2 for v in values)
    assert abs(ais["root_mean_square_error"] ** 2 - squares) < 1e-12
    for r in rows:
        assert abs(float(r["error"]) - (float(r["log_normalizer"]) - truth)) < 1e-12
    cases = {(int(r["problem"]), int(r["repeat"])) for r in rows}
    assert sorted(cases) == [(p, r) for p in range(7) for r in range(2)]


# --- The same bytes again, and with other threads; others with another seed.
def test_threads_change_no_byte(estimate_logz: Program, run: tuple[Path, Done]) -> None:
    done = estimate_logz.succeed(*SMALL, *THREE, "--threads", "2", "--out", "threads")
    for file in ("per_problem.csv", "schedule.csv"):
        same(run[0] / file, f"threads/{file}")
    assert done.stdout == run[1].stdout.replace("straight", "threads")


def test_seeds_decide(estimate_logz: Program, straight: Path) -> None:
    estimate_logz.succeed(*SMALL, *THREE, "--seed", "1", "--out", "seed")
    differ(straight / "per_problem.csv", "seed/per_problem.csv")
    estimate_logz.succeed(*SMALL, *THREE, "--out", "seed", "--overwrite")
    same(straight / "per_problem.csv", "seed/per_problem.csv")


def test_one_problem_and_an_unknown_truth(estimate_logz: Program) -> None:
    short = [*PRIOR, *"--steps 8 --chains 4 --quiet --problems".split()]
    said = estimate_logz.succeed("u1", *short, "1").stdout
    assert begins("ais .* 1$", said), said
    said = estimate_logz.succeed("u2", *short, "2", "--out", "unknown").stdout
    assert "truth" not in "".join(said.splitlines()[:2])
    assert read_json("unknown/summary.json")["true_log_normalizer"] is None


# --- Bounds from both sides, where there are exact draws.
def test_bounds_from_both_sides(estimate_logz: Program) -> None:
    flags = "--base prior --method bidirectional --steps 12 --problems 4 --quiet --out bounds".split()
    said = estimate_logz.succeed("u10", *flags).stdout
    assert sum(line.startswith("bidirectional") for line in said.splitlines()) == 2, said
    assert '"largest_gap"' in Path("bounds/summary.json").read_text()
    columns = lines("bounds/per_problem.csv")[0]
    assert re.search(",upper,upper_std_error,.*,error$", columns), columns


# --- Methods that learn first.
def test_mcd_learns_the_same_on_any_threads(estimate_logz: Program) -> None:
    mcd = "mcd:5,iterations=20,hidden=6,batch=12,patience=0"
    learned = ["u1", *f"--base prior --chains 8 --problems 6 --chunk 4 --quiet --method {mcd}".split()]
    estimate_logz.succeed(*learned, "--out", "learned", "--threads", "1")
    said = estimate_logz.succeed(*learned, "--out", "relearned", "--threads", "2").stdout
    same("learned/per_problem.csv", "relearned/per_problem.csv")
    assert begins("mcd:5,.* 1,032 ", said), said
    # 20 iterations of 2 chains on 6 pilots at 2 (1 + 5), and two validations of 42 chains each at
    # 1 + 5.
    summary = Path("learned/summary.json").read_text()
    assert '"tuning": 984.0' in summary
    assert '"estimating": 48.0' in summary


# --- Ctrl-C keeps the finished chunks; --resume ends in the same bytes.
def test_ctrl_c_keeps_the_finished_chunks(estimate_logz: Program) -> None:
    flags = "--steps 400 --chains 32 --problems 30 --step-size 0.5".split()
    long = ["mixture:64", *PRIOR, *flags]
    job = estimate_logz.start(*long, "--threads", "1", "--out", "stopped")
    job.until(Path("stopped/chunks/000000.json").exists)
    job.send(signal.SIGINT)
    done = job.end()
    assert done.returncode == 75, done.stderr
    assert "interrupted" in done.stderr
    assert not Path("stopped/summary.json").exists(), "an interrupted run left results"

    out = ["--out", "stopped"]
    words = ["already holds results", "--resume"]
    estimate_logz.expect(64, *words, args=[*long, *out])
    args = [*long, "--seed", "1", *out, "--resume"]
    estimate_logz.expect(64, "other settings", "seed", args=args)
    estimate_logz.succeed(*long, "--quiet", *out, "--resume")
    estimate_logz.succeed(*long, "--quiet", "--out", "whole", "--threads", "2")
    same("stopped/per_problem.csv", "whole/per_problem.csv")
    edit("stopped/run.json", '"sources": "[0-9a-f]*"', '"sources": "0123456789abcdef"')
    words = ["another build", "sources", "--accept-other-version"]
    estimate_logz.expect(64, *words, args=[*long, *out, "--resume"])


# --- Means under the target.
SIX = [*PRIOR, *"--steps 24 --chains 64 --problems 6 --chunk 4 --quiet".split()]
MEANS = ["u11", *SIX, *"--expect moments --expect modes".split()]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Means under u11, and what the run said."""
    folder = tmp_path_factory.mktemp("means")
    program = Program("estimate-logz", folder)
    done = program.succeed(*MEANS, "--out", "means", "--threads", "1")
    return folder / "means", done


def test_means_under_the_target(expected: tuple[Path, Done]) -> None:
    folder, done = expected
    assert begins("Under the target: moments, by ais", done.stdout), done.stdout
    assert "the delta method over particles" in done.stdout
    assert "expectations.csv" in done.stdout
    assert len(lines(folder / "expectations.csv")) == 7


def test_means_are_resumed(estimate_logz: Program, expected: tuple[Path, Done]) -> None:
    copy(expected[0], "halfway")
    for file in ("chunks/000001.json", "summary.json", "expectations.csv"):
        Path("halfway", file).unlink()
    copy("halfway", "means")
    estimate_logz.succeed(*MEANS, "--out", "halfway", "--resume")
    estimate_logz.succeed(*MEANS, "--out", "means", "--overwrite", "--threads", "2")
    same("means/expectations.csv", "halfway/expectations.csv")
    same("means/expectations.csv", expected[0] / "expectations.csv")


def test_means_of_resampled_particles(estimate_logz: Program) -> None:
    smc = ["--resample", "systematic:0.9"]
    estimate_logz.succeed(*MEANS, "--out", "smc", *smc)
    assert ",replicates,6,384," in Path("smc/expectations.csv").read_text()
    one = "--steps 24 --chains 64 --problems 1 --quiet --expect moments".split()
    said = estimate_logz.succeed("u11", *PRIOR, *one, *smc).stdout
    assert "resampled depend on each other, and there is one" in said


def test_modes_have_the_masses_that_they_should(expected: tuple[Path, Done]) -> None:
    found = read_json(expected[0] / "summary.json")["expectations"]
    assert [e["expectation"] for e in found] == ["moments", "modes"]
    assert abs(sum(mode["mean"] for mode in found[1]["outputs"]) - 1) < 1e-12
    for mode in found[1]["outputs"]:
        assert abs(mode["mean"] - mode["truth"]) < 5 * mode["std_error"]


# --- The particles themselves.
def test_particles_give_the_estimates(estimate_logz: Program, expected: tuple[Path, Done]) -> None:
    numpy = pytest.importorskip("numpy")
    estimate_logz.succeed(*MEANS, "--save-particles", "weighted.npy", "--out", "plain")
    estimate_logz.succeed(*MEANS, "--save-particles", "weighted.csv")
    for file in ("expectations.csv", "per_problem.csv"):
        same(expected[0] / file, f"plain/{file}")  # whether particles are saved or not
    stored = numpy.load("weighted.npy")
    assert stored.shape == (6, 64, 3) and stored.dtype == "<f8"
    header, *rows = csv.reader(lines("weighted.csv"))
    assert header == ["problem", "particle", "z1", "z2", "log_weight"]
    assert stored.flatten().tolist() == [float(each) for row in rows for each in row[2:]]
    weights, z1 = numpy.exp(stored[..., 2]), stored[..., 0]
    estimates = [float(row["log_normalizer"]) for row in csv.DictReader(lines("plain/per_problem.csv"))]
    assert abs(numpy.log(weights.mean(1)) - estimates).max() < 1e-9
    mean = (weights * z1).sum() / weights.sum()
    squares = (weights * (z1 - mean)) ** 2
    error = math.sqrt(z1.size / (z1.size - 1) * squares.sum()) / weights.sum()
    first = read_json("plain/summary.json")["expectations"][0]["outputs"][0]
    assert abs(first["mean"] - mean) < 1e-12 and abs(first["std_error"] - error) < 1e-12


def test_particles_are_not_resumed(estimate_logz: Program, expected: tuple[Path, Done]) -> None:
    copy(expected[0], "means")
    args = [*MEANS, "--save-particles", "p.npy", "--out", "means", "--resume"]
    estimate_logz.expect(64, "--save-particles", "--resume", args=args)


# --- For programs.
def test_prints_csv_and_json(estimate_logz: Program) -> None:
    two = "--method ais --method iwae:50 --format csv".split()
    said = estimate_logz.succeed("u1", *FEW, *two).stdout.splitlines()
    assert len(said) == 3 and "ess.mean" in said[0], said
    said = estimate_logz.succeed("u1", *FEW, "--format", "json").stdout
    assert json.loads(said)["results"][0]["problems"] == 3


# --- Regressions, and every bad table.
TABLE = "1,3.5,R\n2,0.5,M\n4,1.5,R\n3,-1,M\n0,0,R\n"


def test_regressions(estimate_logz: Program) -> None:
    os.makedirs("data/uci")
    for file in ("cases.csv", "data/uci/pima-indians-diabetes.csv"):
        Path(file).write_text(TABLE)
    short = [*PRIOR, *"--steps 20 --chains 8 --problems 3 --quiet".split()]
    regression = "logistic-regression:{},variance=5"
    estimate_logz.succeed(regression.format("cases.csv"), *short, "--out", "cases")
    estimate_logz.succeed(regression.format("file=pima"), *short, "--out", "pima")
    same("cases/per_problem.csv", "pima/per_problem.csv")
    estimate_logz.succeed(regression.format("pima"), *short, "--data-dir", "data")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("age,bmi,class\n1,2,a\n2,1,b\n", ["line 1", "column 1", "'age'"]),
        ("1,2,a\n2,,b\n", ["line 2", "column 2"]),
    ],
)
def test_refuses_bad_tables(estimate_logz: Program, table: str, words: list[str]) -> None:
    Path("bad.csv").write_text(table)
    estimate_logz.expect(65, "bad.csv", *words, args=["logistic-regression:bad.csv"])


# --- Bad input: one clear line and its code.
@refusals(
    (64, "u1 --method bidirectional", "bidirectional", "exact draws", "u1"),
    (64, "u6 --base prior --method mcd:64,step=30,iterations=9 --quiet", "diverge", "step="),
    (64, "u1 --method iwae:50 --expect norm", "iwae:50", "--expect", "ais"),
    (64, "u1 --save-particles particles.txt", "--save-particles particles.txt", ".npy or .csv"),
    (64, "u1 --repeats 2 --save-particles p.npy", "--save-particles", "--problems"),
    (64, "u1 --budget 500 --chains 4", "--chains", "--budget", "leave it out"),
    (64, "list --chains 4", "--chains", "list only prints the targets"),
    (66, "logistic-regression:none.csv", "none.csv", "tried"),
    (64, "banana", "unknown target 'banana'", "u1", "laplace[:DIM]", "logistic-regression:FILE"),
    (64, "u1 --base prior --witness none --schedule constant-rate:0.00001 --max-steps 20 --quiet", "--max-steps"),
    (69, "u1 --device cuda:63", "CUDA"),
    (64, "", "estimate-logz"),
)
def test_refuses(estimate_logz: Program, case: Case) -> None:
    estimate_logz.refuse(case)

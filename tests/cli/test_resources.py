"""What eval-loglik says of evaluator and memory, and how it keeps a limit."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .programs import Done, Program, copy, lines, read_json

SETTINGS = "--simulate 40 --steps 4 --chains 3 --chunk 8 --base laplace".split()
ATEN = {"CRAIS_EVALUATOR": "aten"}


@pytest.fixture(scope="module", autouse=True)
def _no_evaluator_is_asked_for() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CRAIS_EVALUATOR", raising=False)
        yield


@pytest.fixture(scope="module")
def small(vae: Path) -> list[str]:
    """The arguments of a short run."""
    return [str(vae), *SETTINGS]


@pytest.fixture(scope="module")
def fused(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run with the machine's own evaluator, and what it said."""
    folder = tmp_path_factory.mktemp("fused")
    done = Program("eval-loglik", folder).succeed(*small, "--quiet", "--out", "fused")
    return folder / "fused", done


# --- The evaluator.
def test_names_the_evaluator(fused: tuple[Path, Done]) -> None:
    folder, done = fused
    said = r" Evaluator\s+fused-[a-z0-9]*\s+on\s+cpu(,\s+cheap\s+forces)?\."
    assert re.search(said, done.stdout), done.stdout
    assert read_json(folder / "summary.json")["evaluator"].startswith("fused-")
    assert '"evaluator": "fused-' in (folder / "run.json").read_text()


def test_another_evaluator_goes_on_only_if_asked(
    eval_loglik: Program, small: list[str], fused: tuple[Path, Done]
) -> None:
    copy(fused[0], "fused")
    resume = [*small, "--quiet", "--out", "fused", "--resume"]
    words = ["another build", "evaluator", "--accept-other-version"]
    eval_loglik.expect(64, *words, args=resume, env=ATEN)
    eval_loglik.succeed(*resume, "--accept-other-version", env=ATEN)


def test_the_evaluator_is_chosen_by_name(eval_loglik: Program, small: list[str]) -> None:
    done = eval_loglik.succeed(*small, "--quiet", "--dry-run", env=ATEN)
    assert "with evaluator aten" in done.stdout
    abacus = {"CRAIS_EVALUATOR": "fused-abacus"}
    eval_loglik.expect(64, "fused-abacus", "aten", args=[*small, "--quiet"], env=abacus)


def test_merges_shards_of_two_evaluators_only_if_asked(eval_loglik: Program, small: list[str]) -> None:
    eval_loglik.succeed(*small, "--quiet", "--shard", "1/2", "--out", "part1")
    eval_loglik.succeed(*small, "--quiet", "--shard", "2/2", "--out", "part2", env=ATEN)
    merge = ["merge", "part1", "part2", "--out", "merged"]
    eval_loglik.expect(65, "part2", "another run", "--accept-other-version", args=merge)
    eval_loglik.succeed(*merge, "--accept-other-version")
    assert len(lines("merged/per_image.csv")) == 41


# --- Forces.
def test_says_in_what_forces_are(eval_loglik: Program, small: list[str]) -> None:
    done = eval_loglik.succeed(*small, "--quiet", "--force-dtype", "float32")
    assert re.search(r" on cpu\.$", done.stdout, re.MULTILINE), done.stdout
    cheap = [*small, "--quiet", "--out", "cheap", "--force-dtype"]
    done = eval_loglik.succeed(*cheap, "bfloat16")
    assert re.search(r" on cpu, cheap forces\.$", done.stdout, re.MULTILINE), done.stdout
    assert '"forces": "bfloat16"' in Path("cheap/summary.json").read_text()
    assert re.search('"forces": *"bfloat16"', Path("cheap/plan.json").read_text())
    eval_loglik.succeed(*cheap, "bfloat16", "--resume")
    words = ["force", "float32", "bfloat16"]
    eval_loglik.expect(64, *words, args=[*cheap, "float32", "--resume"])


def test_forces_of_aten_are_cheap_too(eval_loglik: Program, small: list[str]) -> None:
    done = eval_loglik.succeed(*small, "--quiet", "--force-dtype", "bfloat16", env=ATEN)
    assert "Evaluator aten on cpu, cheap forces" in " ".join(done.stdout.split())


def test_refuses_other_forces(eval_loglik: Program, estimate_logz: Program, small: list[str]) -> None:
    eval_loglik.expect(64, "--force-dtype", "auto", args=[*small, "--force-dtype", "float16"])
    args = ["normal:2", "--quiet", "--force-dtype", "bfloat16"]
    estimate_logz.expect(64, "--force-dtype bfloat16", "leave", args=args)


# --- Memory.
def test_says_how_much_memory_it_took(fused: tuple[Path, Done]) -> None:
    assert read_json(fused[0] / "summary.json")["peak_memory_bytes"] > 10_000_000

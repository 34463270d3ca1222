"""Folders that tell no capitals from small letters, as those of macOS and Windows.

No run writes two names that differ in case alone. Where A and a are one folder, either name is
that of the same results.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from .programs import Program, copy, same_files

SMALL = "--simulate 24 --steps 8 --chains 4 --chunk 8 --quiet".split()


def no_names_collide(folder: str) -> None:
    """As no two names in it, at any depth, become one."""
    names = Counter(str(path.relative_to(folder)).casefold() for path in Path(folder).rglob("*"))
    assert names, f"{folder} is empty"
    assert [name for name, count in names.items() if count > 1] == []


def test_evaluations(eval_loglik: Program, vae: Path) -> None:
    methods = "--method ais --method iwae:20 --method elbo:20 --repeats 2".split()
    eval_loglik.succeed(vae, *SMALL, *methods, "--out", "run")
    for i in "12":
        eval_loglik.succeed(vae, *SMALL, "--shard", f"{i}/2", "--out", f"part{i}")
    eval_loglik.succeed("merge", "part1", "part2", "--out", "merged")
    for folder in ("run", "part1", "merged"):
        no_names_collide(folder)


@pytest.fixture
def results(eval_loglik: Program, vae: Path) -> Path:
    """A folder with a second name, as where capitals are nothing: Results is results."""
    os.mkdir("results")
    os.symlink("results", "Results")
    eval_loglik.succeed(vae, *SMALL, "--out", "results")
    return copy("results", "before")


def test_another_case_is_the_same_folder(eval_loglik: Program, vae: Path, results: Path) -> None:
    eval_loglik.expect(64, "already holds results", args=[vae, *SMALL, "--out", "Results"])
    same_files("results", results)
    other = [vae, *SMALL, "--seed", "1", "--out", "Results", "--resume"]
    eval_loglik.expect(64, "other settings", "seed", args=other)
    same_files("results", results)
    Path("results/chunks/000001.json").unlink()
    eval_loglik.succeed(vae, *SMALL, "--out", "Results", "--resume")
    for file in ("per_image.csv", "run.json", "schedule.csv"):
        assert Path("results", file).read_bytes() == (results / file).read_bytes()
    assert Path("Results").is_symlink(), "a folder has taken the name's place"


def test_a_folder_is_merged_into_none_of_its_parts(eval_loglik: Program, results: Path) -> None:
    args = ["merge", "results", "--out", "Results"]
    eval_loglik.expect(64, "already holds results", args=args)
    same_files("results", results)

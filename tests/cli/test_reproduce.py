"""reproduce as a user meets it: names, files, nothing computed twice, bad input."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .programs import SOURCE, Done, Program, copy, edit, refusals, same, same_files

EXPERIMENTS = sorted((SOURCE / "src/programs/reproduce/experiments").glob("*.json"))
Small = list[str | Path]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The arguments of a run of some seconds."""
    file = tmp_path_factory.mktemp("small") / "figure-2d.json"
    file.write_text(tiny((EXPERIMENTS[0].parent / file.name).read_text()))
    return [file, *"--seeds 2 --quiet --out first".split()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, small: Small) -> tuple[Path, Done]:
    """A finished run, its folder named `first`, and what it said."""
    folder = tmp_path_factory.mktemp("whole")
    return folder / "first", Program("reproduce", folder).succeed(*small)


@pytest.fixture
def first(whole: tuple[Path, Done]) -> Path:
    """A copy of the finished run, to go on with."""
    return copy(whole[0], "first")


@pytest.fixture
def cell(first: Path) -> Path:
    """One of its cells."""
    return min(file for file in first.rglob("*.json") if "cells" in str(file))


def test_lists_the_experiments(reproduce: Program) -> None:
    listed = [line.split(" ")[0] for line in reproduce.succeed("list").stdout.splitlines()]
    assert listed == sorted(file.stem for file in EXPERIMENTS)
    assert len(listed) >= 14


SMALL = {"chains": 4, "many": 4, "images": 2, "points": 32, "side": 7, "hidden": [], "particles": 5, "dim": 8,
         "steps": 4}
SIMULATED = ("side", "hidden", "points")


def tiny(text: str) -> str:
    """An experiment on few chains, seeds and steps, and on made-up images and cases."""
    for flag, number in {"chains": 4, "pilot-chains": 8, "steps": 3, "interpolate": 3}.items():
        text = re.sub(rf"--{flag} [0-9]+", f"--{flag} {number}", text)
    for long, short in {
        "iterations=[0-9]+": "iterations=2",
        '"network": "[0-9]+': '"network": "2',
        "(elbo|iwae):[0-9]{3,}": r"\1:9",
        "--budget [0-9]+": "--budget 600",
        ":(128|512)": ":8",  # dimensions
        "logistic-regression:(pima|sonar|[{]data[}])": "logistic-regression:cases.csv",
        # Rules that need few transitions.
        r'(constant-rate:|"rate": "?)[0-9.]+': r"\g<1>300",
        '"0.03125", "1"': '"300", "400"',
        "[{]=(kl|length) / [0-9]+": r"{=\1 / 2",
        "(cess:|ess:)0[.][0-9]+": r"\g<1>0.3",
        "--max-step 0[.][0-9]+": "--max-step 0.5",
    }.items():
        text = re.sub(long, short, text)

    def small(value: Any, to: Any) -> Any:
        """Each number in it replaced."""
        if isinstance(value, dict):
            return {key: small(part, to) for key, part in value.items()}
        if isinstance(value, list) and not isinstance(to, list):
            return [small(part, to) for part in value]
        return value if isinstance(value, str) else to

    def shrunk(values: dict[str, Any]) -> dict[str, Any]:
        if "images" in values:
            values = dict.fromkeys(SIMULATED, 0) | values
        return values | {name: small(values[name], to) for name, to in SMALL.items() if name in values}

    content = json.loads(text, object_hook=shrunk)
    for name, entries in content["lists"].items():
        if isinstance(entries, list):
            content["lists"][name] = entries[:1] + entries[-1:]
        elif name == "targets" and all(isinstance(column, list) for column in entries.values()):
            content["lists"][name] = {key: column[:1] + column[-1:] for key, column in entries.items()}
    return json.dumps(content)


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_runs_at_a_tiny_size(reproduce: Program, file: Path) -> None:
    Path("cases.csv").write_text("1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n")
    Path("tiny.json").write_text(tiny(file.read_text()))
    seeds = [] if file.stem == "calibration" else ["--seeds", "2"]
    reproduce.succeed("tiny.json", *seeds, "--quiet", "--out", "out")
    for table in json.loads(file.read_text())["tables"]:
        if "{" not in table["stem"]:
            assert len(Path(f"out/tiny/{table['stem']}.csv").read_text().splitlines()) > 1


@refusals(
    (64, "table-9", "unknown experiment 'table-9'", "figure-2d", "table-smc"),
    (64, "figure-2d table-9 --out checked", "unknown experiment 'table-9'"),
    (64, "figure-2d --quick --full", "--quick", "--full"),
    (64, "figure-2d --seeds 1", "--seeds"),
    (64, "figure-2d --checkpoint x", "--checkpoint does nothing for figure-2d"),
    (64, "figure-2d calibration --data-dir .", "--data-dir does nothing for figure-2d, calibration"),
    (64, "calibration --seeds 3", "--seeds does nothing for calibration"),
    (64, "list --seeds 3", "--seeds", "list only prints the experiments"),
    (64, "table-highdim:64 --out checked", "table-highdim:64"),
    (64, "table-appendix:300 --out checked", "table-appendix:300", "128, 512"),
    (66, "figure-logreg --out nodata --data-dir .", "pima"),
)
def test_refuses(reproduce: Program, code: int, args: list[str], words: list[str]) -> None:
    reproduce.expect(code, *words, args=args)
    assert not Path("checked").exists(), "the fault was found only after the work had begun"


def test_leaves_a_page_and_tables(whole: tuple[Path, Done]) -> None:
    for file in ("tables.md", "figure-2d.csv", "plans.csv"):
        assert (whole[0] / "figure-2d" / file).stat().st_size > 0


def test_a_second_run_computes_nothing(
    reproduce: Program, small: Small, whole: tuple[Path, Done], first: Path
) -> None:
    cells = [file for file in first.rglob("*.json") if "cells" in str(file)]
    made = {file: file.stat().st_mtime_ns for file in cells}
    assert cells
    assert reproduce.succeed(*small).stdout == whole[1].stdout
    same_files(whole[0], first)
    assert {file: file.stat().st_mtime_ns for file in cells} == made


def test_a_lost_cell_is_made_again(
    reproduce: Program, small: Small, whole: tuple[Path, Done], cell: Path
) -> None:
    cell.unlink()
    reproduce.succeed(*small, "--threads", "1")
    same(cell, whole[0] / "cells" / cell.name)


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [(".*", "[]"), ('"result":.*', '"result":{}}'), ('"result":.*', '"result":[]}')],
)
def test_a_damaged_cell_is_named(
    reproduce: Program, small: Small, cell: Path, pattern: str, damage: str
) -> None:
    edit(cell, f"{pattern}$", damage)
    reproduce.expect(65, "first/cells", args=small)

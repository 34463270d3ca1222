"""reproduce as a user meets it: names, files, nothing computed twice, bad input."""

from pathlib import Path

import pytest

from .programs import Done, Program, copy, edit, refusals, same, same_files

SMALL = "figure-2d --seeds 2 --quiet --out first".split()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A finished run, its folder named `first`, and what it said."""
    folder = tmp_path_factory.mktemp("whole")
    return folder / "first", Program("reproduce", folder).succeed(*SMALL)


@pytest.fixture
def first(whole: tuple[Path, Done]) -> Path:
    """A copy of the finished run, to go on with."""
    return copy(whole[0], "first")


@pytest.fixture
def cell(first: Path) -> Path:
    """One of its cells."""
    return min(file for file in first.rglob("*.json") if "cells" in str(file))


def test_lists_the_experiments(reproduce: Program) -> None:
    listed = {line.split(" ")[0] for line in reproduce.succeed("list").stdout.splitlines()}
    assert listed >= {
        "accuracy", "figure-2d", "figure-logreg", "figure-logreg-schedules", "figure-objective",
        "figure-particles", "figure-schedules", "table-appendix", "table-highdim", "table-smc",
        "table-vae",
    }  # fmt: skip


@refusals(
    (64, "table-9", "unknown experiment 'table-9'", "figure-2d", "table-smc"),
    (64, "figure-2d table-9 --out checked", "unknown experiment 'table-9'"),
    (64, "figure-2d --quick --full", "--quick", "--full"),
    (64, "figure-2d --seeds 1", "--seeds"),
    (64, "figure-2d --checkpoint x", "--checkpoint does nothing for figure-2d"),
    (64, "figure-2d calibration --data-dir .", "--data-dir does nothing for figure-2d, calibration"),
    (64, "calibration --seeds 3", "--seeds does nothing for calibration"),
    (64, "list --seeds 3", "--seeds", "list only prints the experiments"),
    (64, "figure-2d --fault ring --out checked", "--fault ring", "widths", "tuning-particles"),
    (64, "accuracy --fault ring --out checked", "--fault ring", "none in accuracy"),
    (64, "table-highdim:64 --out checked", "table-highdim:64"),
    (64, "table-appendix:300 --out checked", "table-appendix:300", "128 and 512"),
    (66, "figure-logreg --out nodata --data-dir .", "pima"),
)
def test_refuses(reproduce: Program, code: int, args: list[str], words: list[str]) -> None:
    reproduce.expect(code, *words, args=args)
    assert not Path("checked").exists(), "the fault was found only after the work had begun"


def test_leaves_a_page_and_tables(whole: tuple[Path, Done]) -> None:
    for file in ("tables.md", "figure-2d.csv", "plans.csv"):
        assert (whole[0] / "figure-2d" / file).stat().st_size > 0


def test_a_second_run_computes_nothing(
    reproduce: Program, whole: tuple[Path, Done], first: Path
) -> None:
    cells = [file for file in first.rglob("*.json") if "cells" in str(file)]
    made = {file: file.stat().st_mtime_ns for file in cells}
    assert cells
    assert reproduce.succeed(*SMALL).stdout == whole[1].stdout
    same_files(whole[0], first)
    assert {file: file.stat().st_mtime_ns for file in cells} == made


def test_a_lost_cell_is_made_again(
    reproduce: Program, whole: tuple[Path, Done], cell: Path
) -> None:
    cell.unlink()
    reproduce.succeed(*SMALL, "--threads", "1")
    same(cell, whole[0] / "cells" / cell.name)


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [(".*", "[]"), ('"result":.*', '"result":{}}'), ('"result":.*', '"result":[]}')],
)
def test_a_damaged_cell_is_named(reproduce: Program, cell: Path, pattern: str, damage: str) -> None:
    edit(cell, f"{pattern}$", damage)
    reproduce.expect(65, "first/cells", args=SMALL)

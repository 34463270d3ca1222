"""Lines of pages are narrow, and words are spelt right. test_links.py checks the links."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import run, tracked

WIDEST_LINE = 120
WIDEST_CELL = 60  # of the text that a reader sees: addresses of links do not count

GENERATED = re.compile(r"<!-- by .*?<!-- end -->", re.DOTALL)
CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page, without code and generated tables."""
    for hidden in (GENERATED, CODE):
        text = hidden.sub(lambda part: "\n" * part.group().count("\n"), text)
    yield from enumerate(text.splitlines(), start=1)


def too_wide(text: str) -> list[tuple[int, str]]:
    """The number of each line that is too long or holds too wide a cell, and the line or cell."""
    found = []
    for number, line in prose(text):
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line))
            found += [(number, cell.strip()) for cell in cells if len(cell.strip()) > WIDEST_CELL]
        elif len(line) > WIDEST_LINE:
            found.append((number, line))
    return found


def test_finds_long_lines_and_wide_cells() -> None:
    long, cell = "x" * (WIDEST_LINE + 1), "y" * (WIDEST_CELL + 1)
    address = f"[{'z' * WIDEST_CELL}](https://example.org/{long})"
    page = "\n".join(
        [
            long[1:],
            long,
            f"| a | {cell} |",
            f"| a \\| {cell[10:]} | {cell[1:]} | {address} |",
            "```sh",
            long,
            "```",
            "<!-- by a program -->",
            f"| {cell} |",
            "<!-- end -->",
            f"- {long[2:]}",
        ]
    )
    assert too_wide(page) == [(2, long), (3, cell), (11, f"- {long[2:]}")]


def test_lines_and_cells_of_pages_are_narrow() -> None:
    pages = tracked("*.md")
    assert len(pages) > 20
    found = [(page, *one) for page in pages for one in too_wide((SOURCE / page).read_text())]
    assert found == []


def misspelt(*files: str) -> str:
    """What codespell finds, with the settings of pyproject.toml."""
    pytest.importorskip("codespell_lib")
    done = run(sys.executable, "-W", "ignore", "-m", "codespell_lib", *files, folder=SOURCE)
    assert done.returncode in (0, 65), done.stderr
    return done.stdout + done.stderr


def test_words_are_spelt_right(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.md"
    wrong.write_text("An evalution of Noe.\n")
    assert "evalution ==> evaluation" in misspelt(str(wrong))
    files = tracked("*.md", "*.ipynb", "docs/*.py", "src/*", "models/*", "python/crais/*")
    assert misspelt(*files, *tracked("examples/*.py", "bench/*", "scripts/*")) == ""

"""Pages and doc comments keep to the rules of prose that a program can check.

test_links.py checks the links. pyproject.toml has the settings of codespell and pymarkdown.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import run, tracked

WIDEST_LINE = 120
WIDEST_CELL = 60  # of the text that a reader sees: addresses of links do not count

# Pages that a newcomer reads first, and their lines.
LONGEST = {
    "README.md": 110,
    "CHANGELOG.md": 40,
    "docs/PERFORMANCE.md": 80,
    "docs/results/README.md": 150,
}

# Doc comments that do not begin with a subject. Lower these numbers, never raise them.
POOR_COMMENTS = 128
POOR_DOCSTRINGS = 27
POOR_START = re.compile(r"Of\b|The same\b")

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


def first_lines_of_comments(code: str) -> list[str]:
    """The first line of each block of `///` comments in C++, and each `///<` beside code."""
    first, inside = [], False
    for line in code.splitlines():
        before, mark, text = line.partition("///")
        if mark and (before.strip() or not inside):
            first.append(text.lstrip("< "))
        inside = bool(mark)
    return first


def first_lines_of_docstrings(code: str) -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, documented)]
    return [text.splitlines()[0] for node in nodes if (text := ast.get_docstring(node))]


def poor(lines: list[str]) -> list[str]:
    return [line for line in lines if POOR_START.match(line)]


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


def test_finds_comments_without_a_subject() -> None:
    code = (
        "/// Of a thing.\nint a;\n\n/// A thing,\n/// Of the second line.\nint b;  ///< The same.\n"
        "// Of no doc comment.\n/// Often.\nint c;\n"
    )
    assert poor(first_lines_of_comments(code)) == ["Of a thing.", "The same."]
    code = 'def f():\n    """Of f."""\n\n\nclass C:\n    """A class.\n\n    Of it.\n    """\n'
    assert poor(first_lines_of_docstrings(code)) == ["Of f."]


def test_lines_and_cells_of_pages_are_narrow() -> None:
    pages = tracked("*.md")
    assert len(pages) > 20
    found = [(page, *one) for page in pages for one in too_wide((SOURCE / page).read_text())]
    assert found == []


def test_first_pages_are_short() -> None:
    lines = {page: len((SOURCE / page).read_text().splitlines()) for page in LONGEST}
    assert {page: many for page, many in lines.items() if many > LONGEST[page]} == {}


def test_comments_begin_with_a_subject() -> None:
    files = tracked("*.h", "*.cpp")
    found = [
        f"{file}: {line}"
        for file in files
        for line in poor(first_lines_of_comments((SOURCE / file).read_text()))
    ]
    assert len(found) <= POOR_COMMENTS, "\n".join(found)


def test_docstrings_begin_with_a_subject() -> None:
    found = [
        f"{file}: {line}"
        for file in tracked("*.py")
        for line in poor(first_lines_of_docstrings((SOURCE / file).read_text()))
    ]
    assert len(found) <= POOR_DOCSTRINGS, "\n".join(found)


def faults(module: str, *command: str) -> str:
    """What a checker of prose finds, with the settings of this project; it may be missing."""
    pytest.importorskip(module)
    done = run(sys.executable, "-W", "ignore", "-m", module, *command, folder=SOURCE)
    assert done.returncode in (0, 1, 65), done.stderr
    return done.stdout + done.stderr


def test_words_are_spelt_right(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.md"
    wrong.write_text("An evalution of Noe.\n")
    assert "evalution ==> evaluation" in faults("codespell_lib", str(wrong))
    files = tracked("*.md", "*.ipynb", "docs/*.py", "src/*", "models/*", "python/crais/*")
    assert faults("codespell_lib", *files, *tracked("examples/*.py", "bench/*", "scripts/*")) == ""


def test_pages_are_good_markdown(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.md"
    wrong.write_text("# A page\n\n### A heading\n\n```\ncode\n```\n")
    found = faults("pymarkdown", "scan", str(wrong))
    assert ("MD001" in found, "MD040" in found) == (True, True)
    assert faults("pymarkdown", "scan", *tracked("*.md")) == ""

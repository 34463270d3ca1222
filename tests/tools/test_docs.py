"""The docs site as its sources say it: nothing is built here (scripts/docs does)."""

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.programs import SOURCE

DOCS = SOURCE / "docs"
CONF = runpy.run_path(str(DOCS / "conf.py"))
BELOW = CONF["BELOW"]
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def entries(page: Path) -> Iterator[str]:
    """What the toctrees of a page name, without suffix; from the folder of the page."""
    yield from (below for name, below in BELOW.items() if page == DOCS / f"{name}.md")
    for tree in re.findall(
        r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    ):
        for line in filter(None, tree.splitlines()):
            if not line.startswith(":"):
                yield line


def reachable(root: Path) -> set[Path]:
    """The pages that a reader gets to from `root` by toctrees."""
    found, new = set(), {root}
    while new:
        page = new.pop()
        found.add(page)
        if page.suffix == ".md":
            for entry in entries(page):
                named = {
                    file
                    for suffix in (".md", ".ipynb")
                    for file in page.parent.glob(entry + suffix)
                }
                assert named, f"{page}: no page {entry}"
                new |= named - found
    return found


def test_every_page_is_in_a_toctree() -> None:
    pages = {*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")}
    assert len(pages) > 30
    assert sorted(pages - reachable(DOCS / "index.md")) == []


def test_finds_pages_that_no_toctree_names(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```{toctree}\n:glob:\n\nb*\n```\n")
    for name in ("b1.md", "b2.ipynb", "c.md"):
        (tmp_path / name).write_text("")
    assert {page.name for page in reachable(tmp_path / "a.md")} == {"a.md", "b1.md", "b2.ipynb"}


def test_the_python_api_has_every_public_name() -> None:
    stub = (SOURCE / "python/crais/__init__.pyi").read_text()
    listed = re.findall(r"^from .* import \w+ as (\w+)$", stub, re.MULTILINE)
    assert listed
    shown = re.findall(
        r"^\.\. auto\w+:: crais\.(\w+)", (DOCS / "api/python.md").read_text(), re.MULTILINE
    )
    assert sorted(shown) == sorted(listed)


def test_the_cpp_api_has_every_header_of_crais_h() -> None:
    headers = re.findall(r'#include "(.*)"', (SOURCE / "src/crais.h").read_text())
    pages = "".join(page.read_text() for page in (DOCS / "api/cpp").glob("*.md"))
    assert sorted(re.findall(r"^## (.*)$", pages, re.MULTILINE)) == sorted(headers)
    assert len(headers) > 30
    names = [Path(header).name for header in headers]  # doxygenfile finds a header by its name
    assert sorted(re.findall(r"\{doxygenfile\} (\S+)", pages)) == sorted(names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_hold_no_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []
    assert max(len(line.rstrip("\n")) for cell in cells for line in cell["source"]) <= 120


def test_first_uses_of_words_are_found() -> None:
    words = {word: CONF["WORDS"][word] for word in ("base", "flag", "AIS", "Pareto k")}
    text = "AIS has bases; a base, flags, flagged runs. based. Pareto k, AIS"
    pieces = list(CONF["first_uses"](text, words))
    assert "".join(piece for piece, _ in pieces) == text
    found = [(piece, word) for piece, word in pieces if word]
    assert [word for _, word in found] == ["AIS", "base", "flag", "Pareto k"]
    assert found[1:3] == [("bases", "base"), ("flagged", "flag")]
    assert words == {}
    assert len(CONF["WORDS"]) > 20

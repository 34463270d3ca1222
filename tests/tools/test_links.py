"""Every relative link of a page or notebook leads to a file that is there, and to its heading."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from cli.programs import SOURCE

from .projects import tracked


def text_of(page: Path) -> str:
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them: of a heading's words, the second of a name with -1."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*)$", text_of(page), flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {name + (f"-{i}" if i else "") for name, last in found.items() for i in range(last + 1)}


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The relative links of a page, and what is wrong with each."""
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists():
            yield link, "no such file"
        elif anchor and target.suffix in (".md", ".ipynb") and anchor not in anchors(target):
            yield link, "no such heading"
        else:
            yield link, ""


def test_finds_what_leads_nowhere(tmp_path: Path) -> None:
    page, bad, notebook = tmp_path / "page.md", tmp_path / "bad.md", tmp_path / "notebook.ipynb"
    cell = {"cell_type": "markdown", "source": ["# One\n", "[i](#one) [j](#two)"]}
    notebook.write_text(json.dumps({"cells": [cell, {"cell_type": "code", "source": ["[k](no)"]}]}))
    page.write_text("# Two words\n[a](#two-words) [b](page.md#two-words) [c](https://nowhere.invalid/)\n")
    bad.write_text("# Same\n# Same\n[d](#same-1) [e](#same-2) [f](page.md#three) [g](gone.md)\n```\n[h](no)\n```\n")
    assert list(links(page)) == [("#two-words", ""), ("page.md#two-words", "")]
    assert list(links(notebook)) == [("#one", ""), ("#two", "no such heading")]
    assert list(links(bad)) == [
        ("#same-1", ""),
        ("#same-2", "no such heading"),
        ("page.md#three", "no such heading"),
        ("gone.md", "no such file"),
    ]


def test_every_link_leads_somewhere() -> None:
    pages = [*tracked("*.md"), *tracked("*.ipynb")]
    found = [(page, *link) for page in pages for link in links(SOURCE / page)]
    assert [link for link in found if link[-1]] == []
    assert len(found) > 100


def test_every_file_of_a_result_is_linked_from_its_page() -> None:
    files = [Path(file) for file in tracked("docs/results/*/*")]
    pages = {file.parent for file in files if file.name == "README.md"}
    linked = {page / link for page in pages for link, _ in links(SOURCE / page / "README.md")}
    assert [str(file) for file in files if file.name != "README.md" and file not in linked] == []
    assert len(pages) > 10

"""The docs site as its sources say it: nothing is built here (scripts/docs does)."""

import json
import re
from pathlib import Path

import pytest
from cli.programs import SOURCE

DOCS = SOURCE / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def test_the_python_api_has_every_public_name() -> None:
    stub = (SOURCE / "python/crais/__init__.pyi").read_text()
    listed = re.findall(r"^from .* import \w+ as (\w+)$", stub, re.MULTILINE)
    assert listed
    shown = re.findall(r"^ {3}(\w+)", (DOCS / "api/python.md").read_text(), re.MULTILINE)
    assert sorted(set(shown)) == sorted(listed)


def test_the_cpp_api_has_every_header_of_crais_h() -> None:
    headers = re.findall(r'#include "(.*)"', (SOURCE / "src/crais.h").read_text())
    pages = "".join(page.read_text() for page in (DOCS / "api/cpp").glob("*.md"))
    assert sorted(re.findall(r"^## (.*)$", pages, re.MULTILINE)) == sorted(headers)
    assert len(headers) >= 30
    names = [Path(header).name for header in headers]  # doxygenfile finds a header by its name
    assert sorted(re.findall(r"\{doxygenfile\} (\S+)", pages)) == sorted(names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_hold_no_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []
    assert max(len(line.rstrip("\n")) for cell in cells for line in cell["source"]) <= 120

"""Each section of docs/bring-your-model.md: its lines run, and print what stands below them."""

import contextlib
import io
import re
import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from given import KINDS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "bring-your-model.md"
NUMBER = re.compile(r"-?\d+\.\d+|\b\d+$", re.M)


def sections() -> dict[str, tuple[str, str]]:
    """The lines and the output of each."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        blocks = re.findall(r"```(python|text)\n(.*?)```", part, flags=re.S)
        if [kind for kind, _ in blocks] == ["python", "text"]:
            found[part.splitlines()[0]] = (blocks[0][1], blocks[1][1])
    return found


def printed(name: str) -> str:
    torch.manual_seed(0)
    with torch.no_grad():
        given = KINDS[name]()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(sections()[name][0], name, "exec"), given)
    return out.getvalue()


def test_the_page_has_all_kinds() -> None:
    assert list(sections()) == list(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_the_lines_print_what_the_page_says(compiled: Path, name: str) -> None:
    found, wanted = printed(name), sections()[name][1]
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", wanted).split()
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(wanted)):
        assert float(one) == pytest.approx(float(other), abs=0.3 if "." in other else 7)  # flags

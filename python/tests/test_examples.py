"""The tutorials run, and say what they promise."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest
import torch

TUTORIALS = Path(__file__).resolve().parents[2] / "docs/tutorials"

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def executed(monkeypatch, capsys):
    """Runs the cells of a tutorial, with smaller numbers in place of its own; what they show, as
    HTML, and what they print."""

    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()

    def run(tutorial: str, smaller: dict[str, str] | None = None):
        pytest.importorskip("matplotlib").use("agg")
        text = (TUTORIALS / f"{tutorial}.ipynb").read_text()
        for number, other in (smaller or {}).items():
            assert number in text
            text = text.replace(number, other)
        cells = json.loads(text)["cells"]
        shown = []
        monkeypatch.setattr(sys, "displayhook", shown.append)
        names = {"__name__": tutorial}
        for cell in cells:
            if cell["cell_type"] == "code":
                for statement in ast.parse("".join(cell["source"])).body:
                    code = compile(ast.Interactive([statement]), f"{tutorial}.ipynb", "single")
                    exec(code, names)
        pages = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
        return pages, capsys.readouterr().out

    yield run
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)


def number(pattern: str, printed: str) -> float:
    return float(re.search(pattern.replace("#", "([+-]?[0-9.]*[0-9])"), printed)[1])


def test_your_vae(executed):
    pages, printed = executed("your-vae", {"boxes(100)": "boxes(30)", "num_images=50": "num_images=10"})
    assert any("application/json" in page for page in pages)
    assert number("flagged: #", printed) > 5
    lower = number(r"# <= log p\(x\)", printed)
    assert abs(number(r"<= log p\(x\) <= #", printed) - lower) < 1
    by_file, in_memory = number("# nats by the file", printed), number("file, #", printed)
    assert abs(by_file - in_memory) < 0.01


def test_checkpoints(executed):
    _, printed = executed("checkpoints", {"boxes(200)": "boxes(60)"})
    assert 0 < number("95% interval: #", printed)
    paired = number(r"better by [-0-9.]+ \+- #", printed)
    assert number("the error would be #", printed) > 5 * paired


def test_modes(executed):
    _, printed = executed("modes", {"randn(40, 2)": "randn(12, 2)", "num_images=100": "num_images=24"})
    assert number("by the default, # from one mode", printed) < number("mean: #", printed) - 0.1
    gap = number("base auto.* a gap of #", printed)
    assert number("base laplace.* a gap of #", printed) > gap + 1


def test_evidence(executed):
    _, printed = executed("evidence", {"range(1, 7)": "range(1, 4)"})
    degrees = re.findall(r"= +(-[0-9.]+) \+- [0-9.]+, exact +(-[0-9.]+)", printed)
    assert len(degrees) == 3
    assert all(abs(float(found) - float(exact)) < 0.01 for found, exact in degrees)
    assert printed.count("flagged: False") == 2


def test_a_training_loop(executed):
    _, printed = executed("training-loop")
    epochs = re.findall(r"ELBO (-[0-9.]+), log p\(x\) (-[0-9.]+)", printed)
    assert len(epochs) == 8
    assert all(float(elbo) < float(log_p) for elbo, log_p in epochs)

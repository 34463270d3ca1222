"""The examples in Python run, and say what they promise."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.usefixtures("compiled")


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLES / name, *arguments],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_loop():
    printed = run("training_loop.py", "--epochs", "2", "--images", "6000")
    first, second = (float(value) for value in re.findall(r"log_p (-[0-9.]+)", printed))
    assert second > first
    assert re.search(r"evaluating took [0-9.]+% of the training time", printed)


def test_compare_checkpoints():
    printed = run("compare_checkpoints.py", "--images", "50")
    assert float(re.search(r"after - before: ([+-][0-9.]+) nats", printed)[1]) > 0


def test_silence(tmp_path):
    pytest.importorskip("matplotlib")
    printed = run("silence.py", "--out", str(tmp_path), "--only", "modes", "functions")
    lines = {re.search("run=(.*?) (?:exact|said)=", line)[1]: line for line in printed.splitlines()}
    assert lines["base laplace"].endswith("said=flagged: refuted")
    assert lines["base modes"].endswith("said=no flag")
    error = float(re.search("mean=([0-9.]+)", lines["base modes"])[1]) - 10.2935
    assert abs(error) < 5 * float(re.search("mc_se=([0-9.]+)", lines["base modes"])[1])
    assert "refused: Dropout" in lines["dropout on"]
    for kind in ("modes", "functions"):
        assert "<svg" in (tmp_path / f"{kind}.svg").read_text()
    assert not (tmp_path / "runs.csv").exists()  # which has all kinds


def test_quickstart(monkeypatch, capsys):
    cells = json.loads((EXAMPLES / "quickstart.ipynb").read_text())["cells"]
    shown = []
    monkeypatch.setattr(sys, "displayhook", shown.append)
    names = {"__name__": "quickstart"}
    for cell in cells:
        if cell["cell_type"] == "code":
            for statement in ast.parse("".join(cell["source"])).body:
                code = compile(ast.Interactive([statement]), "quickstart.ipynb", "single")
                exec(code, names)
    pages = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    printed = capsys.readouterr().out
    assert any("data:image/svg+xml" in page for page in pages)
    lower, upper = re.search(r"(-[0-9.]+) <= log p\(x\) <= (-[0-9.]+)", printed).groups()
    assert abs(float(upper) - float(lower)) < 1

"""`estimate-logz FILE.py:NAME`: a function of Python at the command line."""

import json
import math
import subprocess
import sys

import pytest

from crais import programs

SOURCE = """
import math
import helper

def log_density(z):
    return helper.halve(z.square()).sum(1)

def broken(z):
    raise ZeroDivisionError("of the user's own")

constant = 3
"""
COMMAND = "import sys; sys.argv[0] = 'estimate-logz'; from crais.programs import run; run()"


@pytest.fixture
def folder(tmp_path):
    """Where commands run; the file lies elsewhere, beside a module that it imports."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "density.py").write_text(SOURCE)
    (mine / "helper.py").write_text("def halve(x):\n    return -0.5 * x\n")
    return tmp_path


def command(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True
    )


FEW = ("--budget=4000", "--problems=4", "--threads=1", "--quiet")


def test_json_and_files_are_those_of_the_program(compiled, folder):
    done = command(
        folder, "mine/density.py:log_density", "--dim", "3", "--format=json", "--out=run",
        "--method=ais", "--method=iwae:100", *FEW,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "function log_density" not in done.stderr
    summary = json.loads(done.stdout)
    values = [one["log_normalizer"] for one in summary["results"]]
    assert values == pytest.approx([1.5 * math.log(2 * math.pi)] * 2, abs=0.05)
    assert (folder / "run" / "summary.json").exists()
    saved = command(folder, "mine/density.py:log_density", "--dim=3", "--save-particles=z.npy", *FEW)
    assert "Log evidence" in saved.stdout and (folder / "z.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.py:log_density", "--dim=3"], 66, ["no such file: nowhere.py"]),
        (["mine/density.py:log_z", "--dim=3"], 64, ["no function log_z", "broken, log_density"]),
        (["mine/density.py:constant", "--dim=3"], 64, ["no function constant"]),
        (["mine/density.py:log_density"], 64, ["dim=D"]),
        (["mine/density.py:log_density", "--dim=three"], 64, ["--dim", "three"]),
        (["mine/density.py:log_density", "--dim=3", "--tolerance=1"], 64, ["tolerance does nothing"]),
        (["mine/density.py:log_density", "--dim=99999999999999999999"], 64, ["from 1 to 1,000,000"]),
        (["mine/density.py:log_density", "--dim=3", "--data-dir=no"], 64, ["--data-dir does nothing"]),
        (["mine/density.py:log_density", "--dim=3", "--save-particles=x"], 64, [".npy or .csv"]),
        (["a\x1bb.py:log_density"], 66, [r"a\x1bb.py"]),
    ],
)
def test_says_what_is_wrong(compiled, folder, arguments, code, words):
    done = command(folder, *arguments, "--quiet")
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("estimate-logz: ") and done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words)


def test_what_the_function_raises_is_shown(compiled, folder):
    done = command(folder, "mine/density.py:broken", "--dim=3", "--quiet")
    assert done.returncode == 1
    assert "ZeroDivisionError: of the user's own" in done.stderr


def test_the_program_alone_says_what_to_install(compiled, folder):
    arguments = ["estimate-logz", "mine/density.py:log_density"]
    program = programs.library() / "crais"
    done = subprocess.run(arguments, executable=program, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 64 and "pip install" in done.stderr

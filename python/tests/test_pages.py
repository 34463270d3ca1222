"""The blocks of the pages run as they stand, page by page, and give the numbers that stand there."""

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import torch

sybil = pytest.importorskip("sybil")
markdown = pytest.importorskip("sybil.parsers.markdown")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README", *(f"docs/{name}" for name in "index start bring-your-model python models".split())]
PROGRAMS = {"eval-loglik", "estimate-logz", "train-vae"}  # what others do takes minutes, or the net
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
GIVEN = re.compile(rf"({NUMBER}) \+- ({NUMBER})")
ROW = re.compile(rf"^(\w+ +{NUMBER}) +({NUMBER} )", re.M)  # of a table: log p(x), data SE


def check(wanted: str, found: str) -> None:
    """The page has the first lines, word by word. A number lies within five errors of the page's,
    and its error within a factor of three; one without an error is about what it was."""
    found = "\n".join(found.splitlines()[: len(wanted.splitlines())])
    wanted, found = (ROW.sub(r"\1 +- \2", text.replace(",", "")) for text in (wanted, found))
    assert re.sub(rf"-+|{NUMBER}", "#", found).split() == re.sub(rf"-+|{NUMBER}", "#", wanted).split()
    for pairs in zip(GIVEN.findall(found), GIVEN.findall(wanted)):
        (one, error), (other, own) = (map(float, pair) for pair in pairs)
        assert abs(one - other) <= 5 * own and own / 3 <= error <= 3 * own, pairs
    others = (re.findall(rf"(?<!\S){NUMBER}\b", GIVEN.sub("", text)) for text in (found, wanted))
    for one, other in zip(*others):
        assert float(one) == pytest.approx(float(other), rel=0.5, abs=0.3 if "." in other else 7)


def run_python(example) -> None:
    """Statement by statement; a comment `# value +- error` behind one says what it is."""
    lines, names, out = example.document.text.splitlines(), example.namespace, io.StringIO()
    names["printed"] = None
    tree = ast.increment_lineno(ast.parse(example.parsed), example.line + example.parsed.line_offset)
    with contextlib.redirect_stdout(out):
        for statement in tree.body:
            is_value = isinstance(statement, ast.Expr)
            code = ast.Expression(statement.value) if is_value else ast.Module([statement], [])
            try:
                value = eval(compile(code, example.path, "eval" if is_value else "exec"), names)
            except ModuleNotFoundError as error:
                pytest.skip(f"no {error.name}")
            if comment := GIVEN.search(lines[statement.end_lineno - 1].partition("  # ")[2]):
                check(comment[0], "{} +- {}".format(*value))
    names["printed"] = out.getvalue()


def run_shell(example) -> None:
    names = example.namespace
    names["printed"] = ""
    for line in example.parsed.splitlines():
        if (words := shlex.split(line, comments=True))[:1] and words[0] in PROGRAMS:
            done = subprocess.run(words, capture_output=True, text=True, env=names["environment"])
            assert done.returncode == 0, done.stderr
            names["printed"] += done.stdout


def compare(example) -> None:
    if example.namespace["printed"] is None:
        pytest.skip("the block above did not run")
    check(example.parsed, example.namespace["printed"])


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(compiled, page, subtests, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = {"python": run_python, "sh": run_shell, "text": compare}
    parsers = [markdown.CodeBlockParser(kind, function) for kind, function in kinds.items()]
    document = sybil.document.Document.parse(str(ROOT / f"{page}.md"), *parsers)
    path = f"{compiled.parents[1] / 'bin'}:{os.environ['PATH']}"
    document.namespace["environment"] = {**os.environ, "PATH": path}
    torch.manual_seed(0)
    for example in document:
        with subtests.test(line=example.line):
            example.evaluate()

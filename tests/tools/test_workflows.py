"""GitHub's files of this repository follow GitHub's schemas; the workflows run on GitHub alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli.programs import SOURCE

WORKFLOWS = sorted((Path(SOURCE) / ".github/workflows").glob("*.yml"))
FORMS = sorted((Path(SOURCE) / ".github/ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize(("schema", "files"), [("github-workflows", WORKFLOWS), ("github-issue-forms", FORMS)])
def test_they_follow_their_schema(schema: str, files: list[Path]) -> None:
    pytest.importorskip("check_jsonschema")
    assert len(files) >= 2
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_workflows_name_parts_and_scripts_that_are_there() -> None:
    run = (Path(SOURCE) / ".ci/run").read_text()
    ci = (Path(SOURCE) / ".github/workflows/ci.yml").read_text()
    parts = {line.split()[1] for line in run.splitlines() if line.startswith(("part ", "  part "))}
    asked = ci.split("parts: [")[1].split("]")[0].replace(",", " ").split()
    assert sorted(asked) == sorted(parts - {"setup", '"$name"'})

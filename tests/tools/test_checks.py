"""scripts/check-scripts and check-tidy: what they look at, and what they find."""

import shutil
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import Project

pytestmark = [
    pytest.mark.skipif(not shutil.which(name), reason=f"there is no {name}")
    for name in ("git", "shellcheck")
]


@pytest.fixture(autouse=True)
def _has_git(project: Project) -> None:
    project.take("common.sh", "check-scripts", "check-tidy")
    shutil.copy(SOURCE / ".shellcheckrc", project.folder)
    (project.folder / ".gitignore").write_text("/build\n")
    git(project, "init", "-q", ".")


def git(project: Project, *args: str) -> None:
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    done = project.run("git", *author, *args)
    assert done.returncode == 0, done.stderr


# --- check-scripts: scripts of any name, sourced ones too, committed or not.
def test_finds_every_script(project: Project) -> None:
    project.expect(0, "3 scripts, no faults", "scripts/check-scripts")
    project.expect(64, "unknown argument '--fast'", "scripts/check-scripts", "--fast")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('#!/bin/sh\nword="two words"\necho $word\n', "SC2086"),
        ("# shellcheck shell=bash\nif true; then\n", "unquoted: line 3: syntax error"),
    ],
)
def test_finds_faults_of_scripts(project: Project, text: str, fault: str) -> None:
    (project.folder / "unquoted").write_text(text)
    project.expect(1, fault, "scripts/check-scripts")


# --- check-tidy, with a clang-tidy that objects to the word FAULT.
def edit(project: Project, name: str, change: str) -> None:
    with open(project.folder / "src" / name, "a") as file:
        file.write(change)


@pytest.fixture
def source(project: Project) -> Path:
    """A commit of files; that of a fault stays as it is."""
    project.fake("clang-tidy", '! grep -n FAULT "${@: -1}"')
    source = project.folder / "src"
    source.mkdir()
    for name in ("kept", "moved", "edited", "faulty"):
        (source / f"{name}.cpp").write_text("".join(f"int {name}{i};\n" for i in range(1, 21)))
    edit(project, "kept.cpp", "// FAULT\n")
    (source / "edited.h").write_text("#pragma once\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    return source


@pytest.fixture
def changed(project: Project, source: Path) -> Path:
    """One file moved, a header edited, a fault added, a file added that nothing compiles."""
    git(project, "mv", "src/moved.cpp", "src/elsewhere.cpp")
    edit(project, "edited.h", "// changed\n")
    edit(project, "faulty.cpp", "int FAULT;\n")
    edit(project, "fresh.cpp", "int fresh;\n")
    return source


@pytest.fixture
def compiled(project: Project, changed: Path) -> Path:
    """The commands that compile them."""
    (project.folder / "build/tidy").mkdir()
    names = ("kept", "elsewhere", "edited", "faulty")
    commands = "".join(f'  "file": "{changed / name}.cpp"\n' for name in names)
    (project.folder / "build/tidy/compile_commands.json").write_text(commands)
    return changed


def test_tidy_wants_something_to_compare_with(project: Project, source: Path) -> None:
    project.expect(64, "neither a branch of origin nor HEAD~1", "scripts/check-tidy")
    project.expect(64, "no commit 'nowhere'", *"scripts/check-tidy --base nowhere".split())
    project.expect(0, "nothing to look at", *"scripts/check-tidy --base HEAD".split())


def test_tidy_wants_commands(project: Project, changed: Path) -> None:
    words = "there is no build/tidy/compile_commands.json"
    project.expect(66, words, *"scripts/check-tidy --base HEAD".split())


@pytest.mark.parametrize(
    ("code", "words", "flags"),
    [
        (1, "2 files looked at, 1 with findings", ""),
        (1, "src/faulty.cpp: FAILED", ""),
        (1, "left out: src/fresh.cpp", ""),
        (0, "not looked at: ", " --minutes 0"),
    ],
)
def test_tidy_looks_at_what_changed(
    project: Project, compiled: Path, code: int, words: str, flags: str
) -> None:
    project.expect(code, words, *f"scripts/check-tidy --base HEAD{flags}".split())


def test_tidy_of_commits(project: Project, compiled: Path) -> None:
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")
    project.expect(1, "2 files looked at, 1 with findings", "scripts/check-tidy")  # since HEAD~1
    project.expect(1, "4 files looked at, 2 with findings", "scripts/check-tidy", "--all")
    git(project, *"update-ref refs/remotes/origin/main HEAD~1".split())
    faulty = compiled / "faulty.cpp"
    faulty.write_text(faulty.read_text().replace("int FAULT;\n", ""))
    project.expect(0, "1 files looked at, 0 with findings", "scripts/check-tidy")

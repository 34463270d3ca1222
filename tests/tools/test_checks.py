"""scripts/check-tidy: what it looks at, and what it finds."""

import shutil

import pytest

from .projects import Project

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git")


@pytest.fixture(autouse=True)
def _has_git(project: Project) -> None:
    project.take("common.sh", "check-tidy")
    (project.folder / ".gitignore").write_text("/build\n")
    git(project, "init", "-q", ".")


def git(project: Project, *args: str) -> None:
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    done = project.run("git", *author, *args)
    assert done.returncode == 0, done.stderr


# --- check-tidy, with a clang-tidy that objects to the word FAULT.
def test_tidy_looks_at_what_changed(project: Project) -> None:
    project.fake("clang-tidy", '! grep -n FAULT "${@: -1}"')
    source = project.folder / "src"
    source.mkdir()
    names = ("kept", "edited", "faulty")
    for name in names:
        (source / f"{name}.cpp").write_text("// FAULT\n" if name == "kept" else "int i;\n")
    (source / "edited.h").write_text("#pragma once\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    project.expect(64, "no commit 'HEAD~1'", "scripts/check-tidy")
    project.expect(66, "there is no build/tidy", *"scripts/check-tidy --since HEAD".split())
    (project.folder / "build/tidy").mkdir(parents=True)
    commands = "".join(f'  "file": "{source / name}.cpp"\n' for name in names)
    (project.folder / "build/tidy/compile_commands.json").write_text(commands)
    project.expect(0, "0 files since HEAD", *"scripts/check-tidy --since HEAD".split())
    (source / "edited.h").write_text("#pragma once  // changed\n")
    project.expect(0, "1 files since HEAD", *"scripts/check-tidy --since HEAD".split())
    (source / "faulty.cpp").write_text("int FAULT;\n")
    project.expect(123, "src/faulty.cpp: FAILED", *"scripts/check-tidy --since HEAD".split())
    late = "scripts/check-tidy --since HEAD --minutes 0".split()
    project.expect(0, "not looked at: src/faulty.cpp", *late)

"""The project's own includes are in order; each kind of fault is found in a broken tree."""

import re
from pathlib import Path

import pytest
from cli.programs import SOURCE

from .projects import BUILD, run, succeed

CHECK = BUILD / "tests/check_layers"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project in order."""
    for layer in ("src/core", "src/paths", "src/cli", "models"):
        (tmp_path / layer).mkdir(parents=True)
    (tmp_path / "src/core/a.h").write_text("#pragma once\n")
    (tmp_path / "models/m.h").write_text('#include "core/a.h"\n')
    includes = '#include <vector>\n#include "core/a.h"\n#include "models/m.h"\n'
    (tmp_path / "src/paths/p.cpp").write_text(includes)
    return tmp_path


@pytest.mark.parametrize("here", [True, False])
def test_accepts_what_is_in_order(tree: Path, here: bool) -> None:
    succeed(CHECK, SOURCE if here else tree)


PUBLIC = '/// @file\n#include "core/a.h"\n'


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (
            {"core/a.h": '#pragma once\n#  include "paths/p.h"\n', "paths/p.h": ""},
            'core/a.h:2: includes "paths/p.h", of a later layer',
        ),
        (
            {"core/b.cpp": '#include "models/m.h"\n'},
            'core/b.cpp:1: includes "models/m.h", of a later layer',
        ),
        (
            {"core/a.h": '#include "b.h"\n', "core/b.h": ""},
            'core/a.h:1: includes "b.h", which is not here',
        ),
        ({"misc/x.cpp": ""}, "misc/x.cpp: lies in no known layer"),
        ({"core/p.h": PUBLIC}, 'core/p.h:2: includes "core/a.h", which is not public'),
        (
            {"core/a.h": '#include "core/b.h"\n', "core/b.h": '#include "core/a.h"\n'},
            "include circle: core/a.h -> core/b.h -> core/a.h",
        ),
    ],
)
def test_finds_a_fault(tree: Path, files: dict[str, str], fault: str) -> None:
    for name, text in files.items():
        file = tree / "src" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    done = run(CHECK, tree)
    assert done.returncode != 0
    assert fault in done.stdout + done.stderr


def test_nothing_asks_for_the_time_of_day() -> None:
    """A clock that somebody sets decides no result and no limit of time."""
    asks = re.compile(r"system_clock|gettimeofday|CLOCK_REALTIME|\btime\((0|NULL|nullptr)\)")
    sources = [*(SOURCE / "src").rglob("*.[ch]*"), *(SOURCE / "models").rglob("*.[ch]*")]
    assert len(sources) > 100
    assert [str(file) for file in sources if asks.search(file.read_text())] == []


def test_public_headers_include_public_ones(tree: Path) -> None:
    (tree / "src/core/a.h").write_text("/// @file\n#pragma once\n")
    (tree / "src/core/p.h").write_text(PUBLIC)
    succeed(CHECK, tree)

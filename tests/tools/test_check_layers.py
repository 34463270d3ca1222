"""The project's own includes are in order; each kind of fault is found in sources that are made up."""

import re

import pytest
from cli.programs import SOURCE

from .check_layers import faults, read

PUBLIC = '/// @file\n#include "core/a.h"'
IN_ORDER = {
    "core/a.h": "#pragma once",
    "models/m.h": '#include "core/a.h"',
    "paths/p.cpp": '#include <vector>\n#include "core/a.h"\n#include "models/m.h"',
}


def faults_with(files: dict[str, str]) -> list[str]:
    return list(faults({name: text.splitlines() for name, text in {**IN_ORDER, **files}.items()}))


def test_the_project_is_in_order() -> None:
    sources = read(SOURCE)
    assert len(sources) > 300 and list(faults(sources)) == []


@pytest.mark.parametrize("files", [{}, {"core/a.h": "/// @file", "core/p.h": PUBLIC}, {"crais.h": PUBLIC}])
def test_accepts_what_is_in_order(files: dict[str, str]) -> None:
    assert faults_with({**files, "core/a.h": "/// @file"}) == []


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (
            {"core/a.h": '#pragma once\n#  include "paths/p.h"', "paths/p.h": ""},
            'core/a.h:2: includes "paths/p.h", of a later layer',
        ),
        ({"core/b.cpp": '#include "models/m.h"'}, 'core/b.cpp:1: includes "models/m.h", of a later layer'),
        ({"core/a.h": '#include "crais.h"', "crais.h": ""}, 'core/a.h:1: includes "crais.h", of a later layer'),
        ({"core/a.h": '#include "b.h"', "core/b.h": ""}, 'core/a.h:1: includes "b.h", which is not here'),
        ({"misc/x.cpp": ""}, "misc/x.cpp: lies in no known layer"),
        ({"core/p.h": PUBLIC}, 'core/p.h:2: includes "core/a.h", which is not public'),
        (
            {"core/b.h": '#include "core/c.h"', "core/c.h": '#include "core/d.h"', "core/d.h": '#include "core/b.h"'},
            "include circle: core/b.h -> core/c.h -> core/d.h -> core/b.h",
        ),
    ],
)
def test_finds_a_fault(files: dict[str, str], fault: str) -> None:
    (found,) = faults_with(files)
    assert found.startswith(fault)


def test_nothing_asks_for_the_time_of_day() -> None:
    """A clock that somebody sets decides no result and no limit of time."""
    asks = re.compile(r"system_clock|gettimeofday|CLOCK_REALTIME|\btime\((0|NULL|nullptr)\)")
    assert [file for file, lines in read(SOURCE).items() if asks.search("\n".join(lines))] == []

"""An installed crais serves projects of others.

Every example builds on it and prints what expected.txt says; the programs run from where they were
moved.
"""

import re
from pathlib import Path

import pytest
from cli.programs import BIN, SOURCE

from .projects import BUILD, run, succeed

EXAMPLES = sorted((SOURCE / "examples").glob("*/main.cpp"))  # examples/models are in Python
FOREIGN = ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "Torch_DIR")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that was moved: nothing may depend on where it was first."""
    folder = tmp_path_factory.mktemp("installed")
    succeed("cmake", "--install", BUILD, "--prefix", folder / "prefix")
    return (folder / "prefix").rename(folder / "moved")


@pytest.fixture(scope="module")
def built(installed: Path) -> Path:
    """The examples, by a user whose own folder of the same name comes first, and hurts nobody."""
    folder = installed.parent
    (folder / "user/core").mkdir(parents=True)
    (folder / "user/core/target.h").write_text('#error "the wrong target.h"\n')
    # A header is compiled once for all examples.
    (folder / "once.cmake").write_text(
        "function(compile_header_once)\n"
        "target_precompile_headers(own_density PRIVATE <crais/crais.h>)\n"
        "foreach(example IN ITEMS own_decoder own_schedule embedding)\n"
        "target_precompile_headers(${example} REUSE_FROM own_density)\n"
        "endforeach()\nendfunction()\ncmake_language(DEFER CALL compile_header_once)\n"
    )
    cache = (BUILD / "CMakeCache.txt").read_text()

    def same(name: str) -> str:
        found = re.search(rf"^{name}:[A-Z]*=(.*)$", cache, re.MULTILINE)
        return f"-D{name}={found[1] if found else ''}"

    succeed(
        *("cmake", "-S", SOURCE / "examples", "-B", folder / "build", "-G", "Ninja"),
        *(f"-DCMAKE_PREFIX_PATH={installed}", same("CMAKE_CXX_COMPILER")),
        f"-DCMAKE_PROJECT_INCLUDE={folder / 'once.cmake'}",
        f"{same('CMAKE_CXX_FLAGS')} -O0 -I{folder / 'user'}",  # compiles soonest
        without=FOREIGN,
    )
    succeed("cmake", "--build", folder / "build", without=FOREIGN)
    return folder / "build"


@pytest.mark.parametrize("program", sorted(path.name for path in BIN.glob("*-*")))
def test_programs_run(installed: Path, program: str) -> None:
    succeed(installed / "bin" / program, "--version", without=FOREIGN)


def test_nothing_lies_beside_the_headers(installed: Path) -> None:
    assert [path.name for path in (installed / "include").iterdir()] == ["crais"]
    for header in (installed / "include").rglob("*.h"):
        assert '#include "' not in header.read_text(), f"{header} includes by layer"


@pytest.mark.parametrize("main", EXAMPLES, ids=lambda main: main.parent.name)
def test_example(built: Path, main: Path) -> None:
    assert len(main.read_text().splitlines()) < 60
    done = run(built / main.parent.name, without=FOREIGN)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == main.with_name("expected.txt").read_text()

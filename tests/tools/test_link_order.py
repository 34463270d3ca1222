"""The loader finds the system's C++ library before LibTorch's pieces of one.

And LibTorch finds no std::call_once of ours: its wheels for CUDA would call it with a state that ours
does not know.
"""

import re
import shutil
from pathlib import Path

import pytest
from cli.programs import BIN

from .projects import BUILD, succeed

OURS = [BUILD / "lib/libcrais.so", *sorted(BIN.glob("*-*"))]
TESTS = sorted((BUILD / "tests").glob("*_tests"))
pytestmark = pytest.mark.skipif(not shutil.which("readelf"), reason="there is no readelf")


@pytest.mark.parametrize("file", [*OURS, *TESTS], ids=lambda file: file.name)
def test_finds_the_systems_library_first(file: Path) -> None:
    needed = re.findall(r"NEEDED.*\[(.*)\]", succeed("readelf", "-d", file))
    torch = [i for i, name in enumerate(needed) if re.search("libtorch|libc10", name)]
    if not torch:
        pytest.skip("needs no LibTorch itself")
    own = [i for i, name in enumerate(needed) if "libstdc++" in name]
    assert own and own[0] < torch[0], needed


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_exports_no_call_once(file: Path) -> None:
    """It would come from std::future, std::promise or std::async."""
    symbols = succeed("readelf", "--dyn-syms", "--wide", file).splitlines()
    found = [line for line in symbols if re.search("once_flag.*_Prepare_execution", line)]
    assert [line for line in found if "UND" not in line] == []

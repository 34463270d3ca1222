"""cmake/dependencies.cmake takes archives of the right digest only, and downloads what lacks."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
from cli.programs import SOURCE

NAME = "libcxxopts-dev_3.1.1-1_all.deb"
TEXT = (Path(SOURCE) / "cmake/dependencies.cmake").read_text()


class Sources:
    """A project with this file alone, which knows one archive, and the mirror that it asks."""

    def __init__(self, folder: Path, content: bytes) -> None:
        self.archive = folder / "third_party" / NAME
        self.mirrored = folder / "mirror/pool/main/c/cxxopts" / NAME
        digest = hashlib.sha256(content).hexdigest()
        text = TEXT.replace(re.findall(r"[0-9a-f]{64}", TEXT)[0], digest)
        text = re.sub(r"set\(kMirrors .*\)", f"set(kMirrors file://{folder}/mirror)", text)
        text = text.replace("IN ITEMS cxxopts nlohmann_json stb chart_js zlib libzip", "IN ITEMS cxxopts")
        self.script = folder / "cmake/dependencies.cmake"
        for path in (self.script, self.archive, self.mirrored):
            path.parent.mkdir(parents=True)
        self.script.write_text(text)

    def fetch(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["cmake", "-P", self.script], capture_output=True, text=True)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path, b"right")


def test_an_archive_is_downloaded_once(sources: Sources) -> None:
    sources.mirrored.write_bytes(b"right")
    assert sources.fetch().returncode == 0
    assert sources.archive.read_bytes() == b"right"
    sources.mirrored.unlink()
    assert sources.fetch().returncode == 0


def test_a_damaged_one_is_downloaded_again(sources: Sources) -> None:
    sources.archive.write_bytes(b"wrong")
    sources.mirrored.write_bytes(b"right")
    assert sources.fetch().returncode == 0
    assert sources.archive.read_bytes() == b"right"


@pytest.mark.parametrize("offered", [b"wrong", None])
def test_no_other_is_taken(sources: Sources, offered: "bytes | None") -> None:
    if offered is not None:
        sources.mirrored.write_bytes(offered)
    done = sources.fetch()
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "There is no cxxopts here" in said and NAME in said and "scripts/setup" in said
    assert not sources.archive.exists()

"""scripts/fetch-mnist against mirrors on this machine: success, and what can go wrong."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .programs import SOURCE, Done, environment

NAMES = [f"{name}.gz" for name in "train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte".split()]
NAMES.append("t10k-labels-idx1-ubyte.gz")


class Mirror(http.server.SimpleHTTPRequestHandler):
    """Serves folders; what is below `cut` ends before its length says."""

    asked: list[str] = []

    def copyfile(self, source: Any, outputfile: Any) -> None:
        outputfile.write(source.read(20000 if "/cut/" in self.path else -1))

    def log_request(self, *_: object) -> None:
        self.asked.append(self.path)

    def log_error(self, *_: object) -> None:
        pass


@pytest.fixture
def files() -> dict[str, bytes]:
    return {name: os.urandom(30000) for name in NAMES}  # big enough to be cut


@pytest.fixture
def fetch(files: dict[str, bytes], tmp_path: Path) -> Iterator[Callable[..., Done]]:
    """Runs the script with mirrors of these names, on the folder `to` unless arguments say otherwise."""
    for mirror in ("good", "cut", "wrong"):
        (tmp_path / "mirrors" / mirror).mkdir(parents=True)
        for name, content in files.items():
            (tmp_path / "mirrors" / mirror / name).write_bytes(content[:: -1 if mirror == "wrong" else 1])
    Mirror.asked.clear()
    handler = functools.partial(Mirror, directory=str(tmp_path / "mirrors"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"

        def run(*mirrors: str, args: tuple[str | Path, ...] = (), **env: str) -> Done:
            md5s = " ".join(hashlib.md5(content).hexdigest() for content in files.values())
            own = {"CRAIS_MD5S": md5s, "CRAIS_MIRRORS": " ".join(f"{url}/{mirror}" for mirror in mirrors)}
            return subprocess.run(
                [sys.executable, SOURCE / "scripts/fetch-mnist", *(args or [tmp_path / "to"])],
                env=environment({**own, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1", **env}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield run
        server.shutdown()


def stored(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_download_asks_only_for_what_lacks(
    fetch: Callable[..., Done], files: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "new/folder"
    for words in (f"mnist is complete in {folder}", f"{NAMES[3]}: already here"):
        done = fetch("good", args=(folder,))
        assert (done.returncode, len(Mirror.asked)) == (0, 4), done.stdout
        assert words in done.stdout
    (folder / NAMES[1]).write_text("damaged\n")
    fetch("good", args=(folder,))
    assert stored(folder) == files and len(Mirror.asked) == 5
    assert "fashion-mnist is complete" in fetch("good", args=("--fashion", folder)).stdout


@pytest.mark.parametrize(
    ("mirrors", "code", "words"),
    [
        ("absent wrong good/", 0, "mnist is complete"),
        ("cut good", 0, "mnist is complete"),
        ("absent wrong", 65, f"/wrong/{NAMES[0]}: wrong md5"),
        ("cut", 69, "no mirror answered"),
        ("absent", 69, "Is this machine offline?"),
    ],
)
def test_mirrors(
    fetch: Callable[..., Done], files: dict[str, bytes], tmp_path: Path, mirrors: str, code: int, words: str
) -> None:
    done = fetch(*mirrors.split())
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout
    assert stored(tmp_path / "to") == (files if code == 0 else {})


def test_what_cannot_be_written(fetch: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text\n")
    done = fetch("good", args=(tmp_path / "file/folder",))
    assert (done.returncode, str(tmp_path / "file/folder") in done.stdout) == (73, True)
    (tmp_path / "to").mkdir()
    (tmp_path / f"to/{NAMES[0]}.part").symlink_to("/dev/full")
    assert fetch("good").returncode == 74 and NAMES[0] not in os.listdir(tmp_path / "to")


@pytest.mark.parametrize(
    ("args", "env", "code", "words"),
    [
        (["--fast"], {}, 64, "--fast"),
        (["one", "two"], {}, 64, ""),
        ([], {"CRAIS_MD5S": "a b"}, 64, "2 md5s, 4 needed"),
        (["--help"], {}, 0, "usage: scripts/fetch-mnist"),
    ],
)
def test_usage(fetch: Callable[..., Done], args: list[str], env: dict[str, str], code: int, words: str) -> None:
    done = fetch(args=tuple(args), **env)
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout

"""scripts/fetch-mnist against a mirror on this machine: success, and what can go wrong."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .programs import SOURCE, Done, environment

FETCH = SOURCE / "scripts/fetch-mnist"
NAMES = [
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
]


@dataclass
class Mirror:
    """Four files, big enough to be cut. The first part of a path says how the mirror behaves."""

    files: dict[str, bytes]
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)

    def at(self, *behaviours: str) -> str:
        return " ".join(f"{self.url}/{behaviour}" for behaviour in behaviours)


def handler(mirror: Mirror) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, behaviour, name = self.path.split("/")
            mirror.requests.append((behaviour, name))
            if behaviour == "absent":
                return self.send_error(404)
            content = mirror.files[name]
            if behaviour == "wrong":
                content = content[::-1]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: 20000 if behaviour == "cut" else None])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    mirror = Mirror({name: os.urandom(30000) for name in NAMES})
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(mirror))
    except OSError as error:
        pytest.skip(f"no mirror can listen on 127.0.0.1: {error}")
    mirror.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield mirror
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(mirror: Mirror, tmp_path: Path) -> Callable[..., Done]:
    """Runs the script, on the folder `to` unless arguments say otherwise."""

    def run(*behaviours: str, args: tuple[str | Path, ...] = (), **env: str) -> Done:
        md5s = " ".join(hashlib.md5(content).hexdigest() for content in mirror.files.values())
        mirrors = {"CRAIS_MD5S": md5s, "CRAIS_MIRRORS": mirror.at(*behaviours)}
        return subprocess.run(
            [sys.executable, FETCH, *(args or [tmp_path / "to"])],
            env=environment({**mirrors, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1", **env}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return run


def complete(mirror: Mirror, folder: Path) -> bool:
    return mirror.files == {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_download_asks_only_for_what_lacks(fetch: Callable[..., Done], mirror: Mirror, tmp_path: Path) -> None:
    folder = tmp_path / "new/folder"
    for asked, words in ((4, f"mnist is complete in {folder}"), (4, f"{NAMES[3]}: already here")):
        done = fetch("good", args=(folder,))
        assert (done.returncode, len(mirror.requests)) == (0, asked), done.stdout
        assert words in done.stdout
    (folder / NAMES[1]).write_text("damaged\n")
    fetch("good", args=(folder,))
    assert complete(mirror, folder) and len(mirror.requests) == 5
    assert "fashion-mnist is complete" in fetch("good", args=("--fashion", folder)).stdout


@pytest.mark.parametrize(
    ("behaviours", "code", "words"),
    [
        ("absent wrong good/", 0, "mnist is complete"),
        ("cut good", 0, "mnist is complete"),
        ("absent wrong", 65, f"/wrong/{NAMES[0]}: wrong md5"),
        ("cut", 69, "no mirror answered"),
        ("absent", 69, "Is this machine offline?"),
    ],
)
def test_mirrors(
    fetch: Callable[..., Done], mirror: Mirror, tmp_path: Path, behaviours: str, code: int, words: str
) -> None:
    done = fetch(*behaviours.split())
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout
    assert complete(mirror, tmp_path / "to") if code == 0 else not list((tmp_path / "to").iterdir())


def test_what_cannot_be_written(fetch: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text\n")
    done = fetch("good", args=(tmp_path / "file/folder",))
    assert (done.returncode, str(tmp_path / "file/folder") in done.stdout) == (73, True)
    if Path("/dev/full").is_char_device():
        (tmp_path / "to").mkdir()
        (tmp_path / f"to/{NAMES[0]}.part").symlink_to("/dev/full")
        assert fetch("good").returncode == 74
        assert not (tmp_path / "to" / NAMES[0]).exists()


def test_usage(fetch: Callable[..., Done]) -> None:
    done = fetch(args=("--fast",))
    assert (done.returncode, "--fast" in done.stdout) == (64, True)
    assert fetch(args=("one", "two")).returncode == 64
    assert fetch(CRAIS_MD5S="a b").returncode == 64
    assert "usage: scripts/fetch-mnist" in fetch(args=("--help",)).stdout

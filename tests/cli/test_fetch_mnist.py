"""scripts/fetch-mnist against a mirror on this machine: success, and what can go wrong."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
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


@dataclass
class Fetch:
    """Runs the script."""

    mirror: Mirror
    to: Path = Path("to")

    def __post_init__(self) -> None:
        self.to.mkdir()

    @property
    def big(self) -> Path:
        return self.to / NAMES[0]

    @property
    def part(self) -> Path:
        return self.to / f"{NAMES[0]}.part"

    def run(self, *args: str | Path, mirrors: str = "", **env: str) -> Done:
        md5s = " ".join(hashlib.md5(content).hexdigest() for content in self.mirror.files.values())
        changes = {
            "CRAIS_MD5S": md5s,
            "CRAIS_MIRRORS": mirrors,
            "no_proxy": "127.0.0.1",
            "NO_PROXY": "127.0.0.1",
            **env,
        }
        return subprocess.run(
            [sys.executable, FETCH, *(args or [self.to.absolute()])],
            env=environment(changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def from_mirrors(self, *behaviours: str) -> Done:
        return self.run(mirrors=self.mirror.at(*behaviours))

    def is_complete(self) -> bool:
        kept = {file.name: file.read_bytes() for file in self.to.iterdir()}
        return kept == self.mirror.files


@pytest.fixture
def fetch(mirror: Mirror) -> Fetch:
    return Fetch(mirror)


def test_a_whole_download(fetch: Fetch) -> None:
    fetch.to = fetch.to.absolute() / "new/folder"
    done = fetch.from_mirrors("good")
    assert done.returncode == 0, done.stdout
    assert fetch.is_complete()
    assert f"mnist is complete in {fetch.to}" in done.stdout

    done = fetch.from_mirrors("good")
    assert done.returncode == 0, done.stdout
    assert f"{NAMES[3]}: already here" in done.stdout
    assert len(fetch.mirror.requests) == 4, "a second run asks for nothing"

    (fetch.to / NAMES[1]).write_text("damaged\n")
    done = fetch.from_mirrors("good")
    assert fetch.is_complete(), done.stdout
    assert len(fetch.mirror.requests) == 5, "it asks for the damaged file and nothing else"


def test_fashion(fetch: Fetch) -> None:
    done = fetch.run("--fashion", fetch.to.absolute(), mirrors=fetch.mirror.at("good"))
    assert done.returncode == 0, done.stdout
    assert "fashion-mnist is complete" in done.stdout


def test_the_second_mirror(fetch: Fetch) -> None:
    done = fetch.from_mirrors("absent", "wrong", "good/")
    assert done.returncode == 0, done.stdout
    assert fetch.is_complete()


def test_wrong_content_everywhere(fetch: Fetch) -> None:
    done = fetch.from_mirrors("absent", "wrong")
    assert done.returncode == 65, done.stdout
    assert f"{fetch.mirror.url}/wrong/{NAMES[0]}: wrong md5" in done.stdout
    assert f"{fetch.mirror.url}/absent/{NAMES[0]}" in done.stdout
    assert not list(fetch.to.iterdir())


def test_a_broken_connection(fetch: Fetch) -> None:
    assert fetch.from_mirrors("cut").returncode == 69
    assert not list(fetch.to.iterdir())
    done = fetch.from_mirrors("cut", "good")
    assert fetch.is_complete(), done.stdout


def test_offline(fetch: Fetch) -> None:
    done = fetch.run(mirrors="http://127.0.0.1:1/one http://127.0.0.1:1/two")
    assert done.returncode == 69, done.stdout
    for word in (f":1/one/{NAMES[0]}", f":1/two/{NAMES[0]}"):
        assert f"http://127.0.0.1{word}" in done.stdout
    assert "offline" in done.stdout
    assert not list(fetch.to.iterdir())


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_a_full_disk(fetch: Fetch) -> None:
    os.symlink("/dev/full", fetch.part)
    done = fetch.from_mirrors("good")
    assert done.returncode == 74, done.stdout
    assert not fetch.big.exists()


def test_no_folder_can_be_made(fetch: Fetch) -> None:
    (fetch.to / "file").write_text("text\n")
    below = fetch.to.absolute() / "file/folder"
    done = fetch.run(below)
    assert done.returncode == 73, done.stdout
    assert str(below) in done.stdout


def test_help(fetch: Fetch) -> None:
    done = fetch.run("--help")
    assert done.returncode == 0, done.stdout
    assert "usage: scripts/fetch-mnist" in done.stdout


def test_usage(fetch: Fetch) -> None:
    done = fetch.run("--fast")
    assert done.returncode == 64, done.stdout
    assert "--fast" in done.stdout
    assert fetch.run("one", "two").returncode == 64
    assert fetch.run(CRAIS_MD5S="a b").returncode == 64

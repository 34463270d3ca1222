"""scripts/fetch-mnist against a mirror on this machine: success, resumption, what can go wrong."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import shutil
import subprocess
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
TOOLS = "bash cat cut ls md5sum mkdir mv rm stat env".split()


@dataclass
class Mirror:
    """Four files, big enough to be cut. The first part of a path says how the mirror behaves."""

    files: dict[str, bytes]
    url: str = ""
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def at(self, *behaviours: str) -> str:
        return " ".join(f"{self.url}/{behaviour}" for behaviour in behaviours)


def handler(mirror: Mirror) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, behaviour, name = self.path.split("/")
            asked = self.headers.get("Range")
            mirror.requests.append((behaviour, name, asked))
            if behaviour == "absent":
                return self.send_error(404)
            content = mirror.files[name]
            if behaviour == "wrong":
                content = content[::-1]
            start = 0
            if asked and behaviour != "norange":
                found = re.match(r"bytes=(\d+)-", asked)
                start = int(found[1]) if found else 0
            if start >= len(content):
                return self.send_error(416)
            self.send_response(206 if start else 200)
            if start:
                until = f"{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", f"bytes {start}-{until}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : 20000 if behaviour == "cut" else None])

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
    """Runs the script where one client, or none, is the only one."""

    client: str
    mirror: Mirror
    to: Path = Path("to")

    def __post_init__(self) -> None:
        self.to.mkdir()
        os.mkdir("tools")
        for tool in [*TOOLS, *([self.client] if self.client else [])]:
            where = shutil.which(tool)
            assert where, f"there is no {tool}"
            os.symlink(where, f"tools/{tool}")

    @property
    def big(self) -> Path:
        return self.to / NAMES[0]

    @property
    def part(self) -> Path:
        return self.to / f"{NAMES[0]}.part"

    def run(self, *args: str | Path, mirrors: str = "", **env: str) -> Done:
        md5s = " ".join(hashlib.md5(content).hexdigest() for content in self.mirror.files.values())
        changes = {
            "PATH": os.path.abspath("tools"),
            "CRAIS_MD5S": md5s,
            "CRAIS_MIRRORS": mirrors,
            "no_proxy": "127.0.0.1",
            "NO_PROXY": "127.0.0.1",
            **env,
        }
        return subprocess.run(
            [FETCH, *(args or [self.to.absolute()])],
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


@pytest.fixture(params=["curl", "wget"])
def fetch(request: pytest.FixtureRequest, mirror: Mirror) -> Fetch:
    """With each client, as if it were the only one."""
    if not shutil.which(request.param):
        pytest.skip(f"there is no {request.param}")
    return Fetch(request.param, mirror)


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


def test_resumption(fetch: Fetch) -> None:
    fetch.part.write_bytes(fetch.mirror.files[NAMES[0]][:12345])
    done = fetch.from_mirrors("good")
    assert done.returncode == 0, done.stdout
    assert fetch.is_complete()
    assert ("good", NAMES[0], "bytes=12345-") in fetch.mirror.requests


def test_a_broken_connection(fetch: Fetch) -> None:
    assert fetch.from_mirrors("cut").returncode != 0
    assert not fetch.big.exists()
    assert fetch.part.stat().st_size > 0
    done = fetch.from_mirrors("good")
    assert fetch.is_complete(), done.stdout
    assert ("good", NAMES[0], "bytes=20000-") in fetch.mirror.requests


def test_a_server_that_cannot_resume(fetch: Fetch) -> None:
    fetch.part.write_bytes(fetch.mirror.files[NAMES[0]][:12345])
    done = fetch.from_mirrors("norange")
    assert done.returncode == 0, done.stdout
    assert fetch.is_complete()


def test_a_part_of_something_else(fetch: Fetch) -> None:
    fetch.part.write_bytes(os.urandom(12345))
    (fetch.to / f"{NAMES[1]}.part").write_bytes(os.urandom(40000))
    done = fetch.from_mirrors("good")
    assert done.returncode == 0, done.stdout
    assert fetch.is_complete()


def test_a_part_that_is_whole(fetch: Fetch) -> None:
    fetch.part.write_bytes(fetch.mirror.files[NAMES[0]])
    done = fetch.from_mirrors("good")
    assert fetch.is_complete(), done.stdout
    assert len(fetch.mirror.requests) == 3, "it is not asked for"


def test_offline(fetch: Fetch) -> None:
    begun = fetch.mirror.files[NAMES[0]][:12345]
    fetch.part.write_bytes(begun)
    done = fetch.run(mirrors="http://127.0.0.1:1/one http://127.0.0.1:1/two")
    assert done.returncode == 69, done.stdout
    for word in (f":1/one/{NAMES[0]}", f":1/two/{NAMES[0]}"):
        assert f"http://127.0.0.1{word}" in done.stdout
    assert "offline" in done.stdout
    assert "kept" in done.stdout
    assert fetch.part.read_bytes()[:12345] == begun


def test_offline_with_nothing_yet(fetch: Fetch) -> None:
    done = fetch.run(mirrors="http://127.0.0.1:1/one")
    assert done.returncode == 69, done.stdout
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


# --- Without any client.
@pytest.fixture
def no_client() -> Fetch:
    return Fetch("", Mirror({name: name.encode() for name in NAMES}))


def test_no_client(no_client: Fetch) -> None:
    done = no_client.run()
    assert done.returncode == 69, done.stdout
    assert "needs curl or wget" in done.stdout


def test_help(no_client: Fetch) -> None:
    done = no_client.run("--help")
    assert done.returncode == 0, done.stdout
    assert "usage: scripts/fetch-mnist" in done.stdout


def test_usage(no_client: Fetch) -> None:
    done = no_client.run("--fast")
    assert done.returncode == 64, done.stdout
    assert "--fast" in done.stdout
    assert no_client.run("one", "two").returncode == 64
    assert no_client.run(CRAIS_MD5S="a b").returncode == 64

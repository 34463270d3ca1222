"""The docs site that scripts/docs has built, in a real browser; skipped where either is missing.

No page scrolls sideways at 1,280 or 400 pixels, every picture is drawn, every link within the site
leads to a page and to a place in it, nothing is fetched from elsewhere, and the search finds pages.
"""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from cli.programs import SOURCE

SITE = SOURCE / "build/docs/html"
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="scripts/docs was not run")

# Looks at every page in a frame of each width, and sends what it found.
LOOK = """\
<!doctype html><meta charset="utf-8"><body><script>
const open_ = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 800px; border: 0`;
  frame.onload = () => done(frame);
  frame.src = page;
  document.body.append(frame);
});
const settled = async (count) => {  // no longer 0, and the same for a second
  for (let i = 0, same = 0, last = 0; i < 400 && same < 20; ++i) {
    await new Promise(done => setTimeout(done, 50));
    same = count() > 0 && count() === last ? same + 1 : 0;
    last = count();
  }
};
(async () => {
  const found = {pages: {}, search: []};
  for (const page of PAGES) for (const width of [1280, 400]) {
    const frame = await open_(page, width), d = frame.contentDocument;
    found.pages[page + " at " + width] = {
      wide: d.documentElement.scrollWidth - width,
      undrawn: [...d.images].filter(i => !i.complete || i.naturalWidth === 0).map(i => i.src)};
    frame.remove();
  }
  const frame = await open_("search.html?q=WORD", 1280);
  const results = () => [...frame.contentDocument.querySelectorAll("#search-results li a")];
  await settled(() => results().length);
  found.search = results().map(a => a.getAttribute("href"));
  await fetch("found", {method: "POST", body: JSON.stringify(found)});
})();
</script></body>
"""


class Page(HTMLParser):
    """The text, links, pictures and places of a page; what it loads besides."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.places: set[str] = {""}
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if "src" in given or (tag == "link" and given.get("rel") in ("stylesheet", "icon")):
            self.loads.add(given.get("src") or given["href"])

    def handle_data(self, data: str) -> None:
        self.text += data


def faults(site: Path) -> list[str]:
    """What leads nowhere, what comes from elsewhere, and markup that a reader sees."""
    pages = {
        file.relative_to(site).as_posix(): Page(file.read_text()) for file in site.rglob("*.html")
    }
    found = []
    for name, page in pages.items():
        found += [f"{name} shows {role}" for role in re.findall(r"\{[a-z-]+\}`", page.text)]
        for link in sorted(page.links | page.loads):
            if urlsplit(link).scheme or link.startswith("//"):
                if link in page.loads and not link.startswith("data:"):
                    found.append(f"{name} loads {link}")
                continue
            file, place = urldefrag(urljoin(name, urlsplit(link)._replace(query="").geturl()))
            file = unquote(file) or name
            if not (site / file).is_file():
                found.append(f"{name}: no file {link}")
            elif file in pages and unquote(place) not in pages[file].places:
                found.append(f"{name}: no place {link}")
    return found


def looked_at(site: Path, profile: Path, word: str) -> Any:
    """What a browser says of every page, and finds for a word."""
    pages = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html"))
    answers: list[Any] = []
    done = threading.Event()

    class Server(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(site))

        def do_GET(self) -> None:
            if self.path != "/look":
                return super().do_GET()
            body = LOOK.replace("PAGES", json.dumps(pages)).replace("WORD", word).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            done.set()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars"
        )
        browser = subprocess.Popen(
            [str(BROWSER), *flags.split(), f"--user-data-dir={profile}",
             f"http://127.0.0.1:{server.server_port}/look"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        done.wait(600)
        browser.terminate()
        browser.wait()
        server.shutdown()
    assert answers, "the browser sent nothing"
    return answers[0]


def small_site(folder: Path) -> Path:
    """A site with every fault."""
    (folder / "search.html").write_text(
        '<ul id="search-results"><li><a href="a.html">a</a></li></ul>'
    )
    (folder / "a.html").write_text(
        '<p id="here">{doc}`b` <a href="#here"></a><a href="#gone"></a><a href="b.html"></a></p>'
        '<img src="gone.png"><script src="https://elsewhere.invalid/x.js"></script>'
        f"<pre>{'wide' * 900}</pre>"
    )
    return folder


def test_finds_faults(tmp_path: Path) -> None:
    assert faults(small_site(tmp_path)) == [
        "a.html shows {doc}`",
        "a.html: no place #gone",
        "a.html: no file b.html",
        "a.html: no file gone.png",
        "a.html loads https://elsewhere.invalid/x.js",
    ]


@pytest.mark.skipif(not BROWSER, reason="there is no chromium")
def test_the_browser_finds_faults(tmp_path: Path) -> None:
    found = looked_at(small_site(tmp_path), tmp_path / "profile", "word")
    assert found["search"] == ["a.html"]
    assert found["pages"]["a.html at 400"]["wide"] > 1000
    assert len(found["pages"]["a.html at 1280"]["undrawn"]) == 1
    assert found["pages"]["search.html at 400"] == {"wide": 0, "undrawn": []}


@built
def test_links_lead_somewhere() -> None:
    assert faults(SITE) == []


@built
def test_first_uses_lead_to_the_glossary() -> None:
    """Once a page for each word, from every page for users."""
    links = {
        page.relative_to(SITE).as_posix(): re.findall(
            r'<a class="word[^>]* href="[^"#]*glossary\.html#([^"]+)"', page.read_text()
        )
        for page in SITE.rglob("*.html")
    }
    assert "chain" in links["start.html"]
    assert "chain" in links["results/accuracy/README.html"]
    assert links["glossary.html"] == []
    assert [page for page, words in links.items() if len(words) > len({*words})] == []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not BROWSER:
        pytest.skip("there is no chromium")
    yield looked_at(SITE, tmp_path_factory.mktemp("profile"), "laplace")


@built
def test_no_page_scrolls_sideways(found: Any) -> None:
    assert {page: look["wide"] for page, look in found["pages"].items() if look["wide"] > 0} == {}
    assert len(found["pages"]) > 100


@built
def test_every_picture_is_drawn(found: Any) -> None:
    assert {page: look["undrawn"] for page, look in found["pages"].items() if look["undrawn"]} == {}


@built
def test_the_search_finds_pages(found: Any) -> None:
    assert len(found["search"]) > 5

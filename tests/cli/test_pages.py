"""report.html of every program, opened in a real browser at three widths.

Nothing is asked of the network, every picture is drawn and described, and nothing but tables and
drawings scrolls sideways.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .programs import Program, small_vae

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(not BROWSER, reason="there is no chromium")

# A frame of each width holds the page; a script outside of it measures.
MEASURE = """\
<!doctype html><meta charset="utf-8"><body><script>
const page = decodeURIComponent(location.search.slice(1));
const widths = [1280, 800, 360];
const found = [];
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px";
  frame.onload = () => {
    const d = frame.contentDocument, pictures = [...d.images];
    const headed = t => t.caption && t.querySelector("th[scope=col]");
    found.push([width, "pictures", pictures.length,
      "undrawn", pictures.filter(i => !i.complete || i.naturalWidth === 0).length,
      "unnamed", pictures.filter(i => !i.alt).length,
      "unheaded", [...d.querySelectorAll("table")].filter(t => !headed(t)).length,
      "wide", d.documentElement.scrollWidth > width ? 1 : 0,
      "scripts", d.scripts.length].join(" "));
    if (found.length === widths.length) document.body.innerText = found.join("\\n");
  };
  frame.src = page;
  document.body.append(frame);
}
</script></body>
"""

BAD = f"""\
<!doctype html>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:">
<img src="http://127.0.0.1:9/x.png"><table><tr><td>1</td></tr></table><pre>{"wide" * 900}</pre>
<script>1</script>
"""


def look(folder: Path, page: str) -> tuple[list[str], list[str]]:
    """What the measurement says of a page, a line for each width; the browser's complaints."""
    (folder / "measure.html").write_text(MEASURE)
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars "
        "--allow-file-access-from-files --disable-background-networking "
        "--enable-logging=stderr --virtual-time-budget=5000 --dump-dom"
    )
    profile = f"--user-data-dir={folder / 'profile'}"
    address = f"file://{folder}/measure.html?{page}"
    done = subprocess.run(
        [str(BROWSER), *flags.split(), profile, address],
        capture_output=True,
        text=True,
        timeout=60,
    )
    text = re.sub("<[^>]*>", "\n", done.stdout)
    measured = re.findall(r"^[0-9]* pictures .*", text, re.MULTILINE)
    return measured, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of every kind, after a look at one that has every fault."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "bad.html").write_text(BAD)
    measured, complaints = look(folder, "bad.html")
    if not measured:  # some browsers may not let one file look at another
        pytest.skip("this browser measures no files")
    faults = "undrawn 1 unnamed 1 unheaded 1 wide 1 scripts 1"
    assert any(faults in line for line in measured), measured
    assert complaints, "a forbidden request leaves no complaint"

    model = small_vae(folder / "vae", "--epochs", "3")
    small = [model, *"--simulate 30 --steps 8 --chains 4 --chunk 8 --quiet".split()]
    program = Program("eval-loglik", folder)
    program.succeed(*small, *"--method ais --method bidirectional --out eval".split())
    program.succeed(*small, "--per-image", "--out", "each")
    program.succeed(*"compare eval each --out compare".split())
    density = "u5 --base prior --problems 20 --steps 8 --expect moments --quiet --out logz"
    Program("estimate-logz", folder).succeed(*density.split())
    return folder


@pytest.mark.parametrize(
    ("page", "least"), [("eval", 10), ("each", 10), ("compare", 5), ("logz", 7)]
)
def test_nothing_is_wrong_at_any_width(pages: Path, page: str, least: int) -> None:
    measured, complaints = look(pages, f"{page}/report.html")
    assert not complaints
    assert len(measured) == 3, "the page was not measured"
    for line in measured:
        width, _, pictures, rest = line.split(" ", 3)
        assert int(pictures) >= least, f"at {width}"
        assert rest == "undrawn 0 unnamed 0 unheaded 0 wide 0 scripts 0", f"at {width}"

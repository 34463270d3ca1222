"""report.html of every program, opened in a real browser at three widths.

Nothing is asked of the network, every chart is drawn and zooms, and nothing but tables scrolls sideways. The page
holds the numbers of summary.json.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .programs import Program, read_json, small_vae

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# A frame of each width holds the page; a script outside of it measures, and drags along a chart.
MEASURE = """\
<!doctype html><meta charset="utf-8"><body><script>
const widths = [1280, 800, 400], found = [];
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px`;
  frame.onload = () => {
    const d = frame.contentDocument, { Chart, PointerEvent } = frame.contentWindow;
    const charts = Object.values(Chart.instances), one = charts[0], { left } = one.canvas.getBoundingClientRect();
    const range = () => one.scales.x.max - one.scales.x.min, whole = range();
    const point = (type, x) => one.canvas.dispatchEvent(new PointerEvent(type, { clientX: left + x }));
    point("pointerdown", 100); point("pointermove", 200); point("pointerup", 200);
    found.push([width, "charts", charts.length, d.querySelector(".lead strong").innerText,
      "blank", charts.filter(c => !c.chartArea || c.chartArea.width < 100).length,
      "undrawn", [...d.images].filter(i => !i.complete || i.naturalWidth === 0 || !i.alt).length,
      "unheaded", [...d.querySelectorAll("table")].filter(t => !t.caption || !t.tHead).length,
      "wide", d.documentElement.scrollWidth > width ? 1 : 0,
      "zooms", range() < whole ? 1 : 0].join(" "));
    if (found.length === widths.length) document.body.innerText = found.join("\\n");
  };
  frame.src = decodeURIComponent(location.search.slice(1));
  document.body.append(frame);
}
</script></body>
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
    measured = re.findall(r"^[0-9]* charts .*", text, re.MULTILINE)
    return measured, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    model = small_vae(folder / "vae", "--epochs", "3")
    hostile = folder / "<" / "script><script>alert(1)"
    hostile.parent.mkdir()
    shutil.copy(model, hostile)
    small = [hostile, *"--simulate 30 --steps 8 --chains 4 --chunk 8 --quiet".split()]
    program = Program("eval-loglik", folder)
    program.succeed(*small, *"--method ais --method bidirectional --out eval".split())
    program.succeed(*small, "--per-image", "--out", "each")
    density = "u5 --base prior --problems 20 --steps 8 --expect moments --quiet --out logz"
    Program("estimate-logz", folder).succeed(*density.split())
    return folder


@pytest.mark.parametrize("run", ["eval", "each", "logz"])
def test_a_page_holds_the_summary(pages: Path, run: str) -> None:
    text = (pages / run / "report.html").read_text()
    held = re.findall('type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    assert len(held) == 1 and "<" not in held[0]
    assert json.loads(held[0])["summary"] == read_json(pages / run / "summary.json")


@pytest.mark.skipif(not BROWSER, reason="there is no chromium")
@pytest.mark.parametrize(("run", "charts"), [("eval", 7), ("each", 6), ("logz", 7)])
def test_nothing_is_wrong_at_any_width(pages: Path, run: str, charts: int) -> None:
    measured, complaints = look(pages, f"{run}/report.html")
    assert not complaints
    assert len(measured) == 3, "the page was not measured"
    result = read_json(pages / run / "summary.json")["results"][0]
    value = result.get("log_likelihood", result.get("log_normalizer"))
    for line in measured:
        width, _, count, shown, rest = line.split(" ", 4)
        assert int(count) >= charts, f"at {width}"
        assert abs(float(shown) - value) < 0.5, f"at {width}"
        assert rest.endswith("blank 0 undrawn 0 unheaded 0 wide 0 zooms 1"), f"at {width}: {rest}"

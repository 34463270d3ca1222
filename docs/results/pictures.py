"""Draws the pictures of these pages from the CSV files beside them.

python3 docs/results/pictures.py [OUT]     needs matplotlib; OUT is this folder if it is not given
"""

import csv
import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

HERE = Path(__file__).parent
matplotlib.rcParams.update(
    {"font.size": 8, "axes.grid": True, "grid.color": "#dddddd", "lines.linewidth": 1.2,
     "lines.markersize": 3, "legend.fontsize": 7}
)  # fmt: skip

Record = dict[str, str]


@dataclass
class Picture:
    """Panels of curves, one panel for each value of `panel`, one curve for each of `series`."""

    table: str  # a CSV file without its ending
    panel: str  # texts of columns: "{start}, {schedule}"
    series: str
    x: str = "transition / M"  # a column; the default is a table of plans, a curve a row
    y: str = "beta"
    error: str = ""
    log: str = ""  # "x", "y" or "xy"
    joined: bool = True
    columns: int = 2
    file: str = ""  # without its ending, if it is not `table`
    only: str = ""  # the value of `rule`
    names: tuple[tuple[str, str], ...] = ()  # of the curves to draw: as in the table, as shown
    labels: tuple[str, str] = ("", "")  # of the axes, if they are not the columns' names


HIGH = {"panel": "{target}", "series": "{schedule}", "x": "evaluations", "y": "mean |error|",
        "error": "SE", "log": "y", "joined": False}  # fmt: skip
RATIOS: dict[str, Any] = {"panel": "{target}", "series": "{rule}", "x": "M", "y": "mean |error|"}
SMC: dict[str, Any] = {"panel": "log Z, nats", "series": "{sampler}", "x": "components",
                       "y": "mean |error|", "joined": False, "columns": 1}  # fmt: skip
PICTURES = [
    Picture("accuracy/accuracy", "500 images", "{variant}", "evaluations", "bias", "SE", "xy",
            columns=1),
    Picture("accuracy/accuracy", "", "{variant}", "evaluations", "bias", "SE", "xy", columns=1,
            file="accuracy/first", names=(
                ("AIS, prior, linear", "annealing from the prior"),
                ("IWAE, encoder", "importance sampling (IWAE)"),
                ("recommended, --budget", "crais")),
            labels=("decoder evaluations an image", "error of the mean log p(x), nats")),
    Picture("models/real", "{what}", "{images}", "steps", "value", "SE", "x",
            labels=("transitions of an anneal", "nats; total variation")),
    Picture("silence/densities", "22 densities, three seeds", "{verdict}", "mc_se", "off", log="xy", joined=False,
            columns=1, labels=("stated error, nats", "true error, nats")),
    Picture("silence/decoders", "random decoders", "{flagged}", "gap", "too low", log="xy", joined=False, columns=1,
            labels=("gap of the control, nats", "20 images too low by, nats")),
    Picture("eprv3/teams", "{model}", "{method}", "log evidence", "place", joined=False, columns=3,
            labels=("log evidence, nats", "a row a method")),
    Picture("figure-2d/plans", "", "{target}", columns=1, file="figure-2d/schedules"),
    Picture("figure-2d/plans", "", "{target}", y="1 - beta", log="y", columns=1,
            file="figure-2d/schedules-tail"),
    *(Picture("figure-schedules/plans", "{target}", "alpha {alpha}", columns=3, only=rule,
              file=f"figure-schedules/{stem}") for stem, rule in (
        ("schedules", "constant rate"), ("cess", "CESS, steps to 1/128"),
        ("free-cess", "CESS, any step"))),
    Picture("figure-objective/plans", "", "{target}", y="D / D at the start", columns=1,
            file="figure-objective/objective"),
    Picture("figure-logreg-schedules/plans", "{posterior}", "{schedule}", log="y",
            file="figure-logreg-schedules/schedules"),
    *(Picture(f"figure-logreg/{data}", "{start}", "{schedule}", "evaluations", "RMSE", log="xy",
              columns=3) for data in ("pima-25", "pima-5", "sonar-25", "sonar-5")),
    *(Picture(f"table-highdim-{dim}/highdim-{dim}-{kind}", **HIGH)
      for dim, kind in itertools.product((128, 512), ("fixed", "tuned"))),
    *(Picture(f"table-appendix-{dim}/appendix-{dim}-all", **RATIOS, log="xy") for dim in (128, 512)),
    Picture("table-smc/paper", **SMC),
    Picture("table-smc/tuned", **SMC),
]  # fmt: skip


def number(text: str) -> float:
    """The number that a cell begins with: "-807.18 (M = 204)"."""
    found = re.match(r"-?[0-9.]+(e[+-]?[0-9]+)?", text)
    return float(found.group()) if found and text != "-" else float("nan")


def read(table: str) -> list[Record]:
    with open(HERE / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def points(picture: Picture, records: list[Record]) -> tuple[list[float], ...]:
    """The places, values and errors of one curve; errors are empty if there are none."""
    if picture.x == "transition / M":
        plan = [(float(key), float(value)) for key, value in records[0].items() if key[:1].isdigit()]
        x, y = [list(side) for side in zip(*plan, strict=True)]
        return x, [1 - value for value in y] if picture.y == "1 - beta" else y, []
    known = [r for r in records if number(r[picture.x]) == number(r[picture.x])]
    if picture.joined:
        known.sort(key=lambda record: number(record[picture.x]))
    errors = [number(r[picture.error]) for r in known] if picture.error else []
    return [number(r[picture.x]) for r in known], [abs(number(r[picture.y])) for r in known], errors


def drawn(picture: Picture) -> Figure:
    records = [r for r in read(picture.table) if picture.only in ("", r.get("rule"))]
    panels = list(dict.fromkeys(picture.panel.format(**r) for r in records))
    names = dict(picture.names) or {name: name for name in (picture.series.format(**r) for r in records)}
    rows = -(-len(panels) // picture.columns)
    wide = 2.6 if picture.columns == 3 else 3.4 if picture.columns == 2 else 5.2
    figure = Figure(figsize=(wide * picture.columns + 1.6, 2.3 * rows + 0.6), layout="constrained")
    all_axes = figure.subplots(rows, picture.columns, squeeze=False).flatten()
    for axes, panel in zip(all_axes, panels, strict=False):
        for place, (name, shown) in enumerate(names.items()):
            own = [r for r in records if picture.panel.format(**r) == panel
                   and picture.series.format(**r) == name]  # fmt: skip
            if not own:
                continue
            x, y, errors = points(picture, own)
            marker = "" if picture.x == "transition / M" else "osv^D<>Pp*hX"[place % 12]
            axes.errorbar(x, y, errors or None, label=shown, color=f"C{place % 10}", marker=marker,
                          linestyle="-" if picture.joined else "")  # fmt: skip
        axes.set_title(panel, fontsize=8)
        for axis in picture.log:
            getattr(axes, f"set_{axis}scale")("log", nonpositive="mask")
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    figure.supxlabel(picture.labels[0] or picture.x, fontsize=8)
    figure.supylabel(picture.labels[1] or picture.y, fontsize=8)
    found = {label: handle for axes in all_axes
             for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
    figure.legend(found.values(), found.keys(), loc="outside right center")
    return figure


def particles(target: str) -> Figure:
    """Particles of each sampler, over exact draws where there are any."""
    records = [r for r in read("figure-particles/particles") if r["target"] == target]
    samplers = list(dict.fromkeys(r["sampler"] for r in records))
    clouds = {s: [(float(r["x"]), float(r["y"])) for r in records if r["sampler"] == s]
              for s in samplers}  # fmt: skip
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    all_axes = figure.subplots(2, 3).flatten()
    for axes in all_axes[len(samplers) :]:
        axes.set_visible(False)
    for axes, sampler in zip(all_axes, samplers, strict=False):
        for cloud, color in ((clouds.get("exact draws", []), "#dddddd"), (clouds[sampler], "C0")):
            if cloud:
                axes.scatter(*zip(*cloud, strict=True), s=2, color=color)
        axes.set_title(sampler, fontsize=8)
        axes.set_aspect("equal", "datalim")
    return figure


def save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=72, metadata={"Software": None}, pil_kwargs={"optimize": True})


def main(out: Path) -> None:
    for picture in PICTURES:
        save(drawn(picture), out / f"{picture.file or picture.table}.png")
    for target in ("u4:4", "u11:s=std", "smc-mixture:48"):
        save(particles(target), out / f"figure-particles/{re.sub('[:=]', '-', target)}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

"""How tight the bounds of exported models are: gap against evaluations, base by base.

    python examples/models/measure.py FOLDER [--program eval-loglik] [--out FOLDER]

evaluates every .pt2 file of FOLDER on images that it simulates, with reverse chains, and writes
models.csv and models.md. What models.csv holds already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

FIELDS = ["model", "base", "steps", "budget", "seed", "images", "evaluations", "lower", "lower_se", "gap",
          "gap_se", "largest_gap", "ess", "flagged", "others_gap", "others_gap_se", "seconds"]  # fmt: skip
BASES = ["best:1.1", "laplace", "encoder:1.15", "prior"]


def key(row: dict) -> tuple[str, ...]:
    """What tells runs apart."""
    return tuple(str(row.get(name, "")) for name in ("model", "base", "steps", "budget", "seed"))


def run(program: str, model: Path, base: str, length: dict, seed: int, arguments) -> dict | None:
    """One run's row, of so many `steps` or within a `budget`; None where there is no such base."""
    flags = [f"--steps={length['steps']}", "--chains=8"] if "steps" in length else [
        f"--budget={length['budget']}"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        command = [program, str(model), "--simulate", str(arguments.images), "--method",
                   "bidirectional", "--base", base, *flags, "--seed", str(seed), "--threads",
                   str(arguments.threads), "--quiet", "--format", "json",
                   "--out", f"{folder}/run"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{model.stem}, {base}: {done.stderr.strip()}", file=sys.stderr)
            return None
        with open(f"{folder}/run/per_image.csv", newline="") as table:
            images = list(csv.DictReader(table))
    (found,) = json.loads(done.stdout)["results"]
    others = [float(image["upper"]) - float(image["log_likelihood"])
              for image in images if not image["flags"]]  # fmt: skip
    spent = found["evaluations_per_image"]
    bounds = found["certificate"]
    return {
        "model": model.stem,
        "base": base,
        "steps": length.get("steps", ""),
        "budget": length.get("budget", ""),
        "seed": seed,
        "images": found["images"],
        "evaluations": round(spent["base"] + spent["estimating"]),
        "lower": found["log_likelihood"],
        "lower_se": found["monte_carlo_std_error"],
        "gap": bounds["gap"],
        "gap_se": bounds["gap_std_error"],
        "largest_gap": bounds["largest_gap"],
        "ess": found["ess"]["mean"],
        "flagged": found["flagged"].get("any", 0),
        "others_gap": statistics.fmean(others) if others else "",
        "others_gap_se": statistics.stdev(others) / len(others) ** 0.5 if len(others) > 1 else "",
        "seconds": found["thread_seconds"],
    }


def summary(rows: list[dict]) -> list[str]:
    """One line a model, base and length: means over seeds."""
    cells = defaultdict(list)
    for row in rows:
        cells[key(row)[:-1]].append(row)
    lines = ["| model | base | asked for | evaluations | gap, nats | largest | ESS | flagged "
             "| gap of the others |",
             "|---|---|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for (model, base, steps, budget), found in sorted(cells.items()):

        def mean(key: str, found=found) -> float:
            numbers = [float(row[key]) for row in found if row[key] != ""]
            return sum(numbers) / len(numbers) if numbers else math.nan

        def error(key: str, found=found) -> float:
            numbers = [float(row[key]) for row in found if row[key] != ""]
            return math.hypot(*numbers) / len(numbers) if numbers else math.nan

        lines.append(
            f"| {model} | {base} | {f'{steps} steps' if steps else f'budget {budget}'} "
            f"| {mean('evaluations'):,.0f} | {mean('gap'):.3f} +- {error('gap_se'):.3f} "
            f"| {max(float(row['largest_gap']) for row in found):.2f} | {mean('ess'):.2f} "
            f"| {sum(int(row['flagged']) for row in found)} of "
            f"{sum(int(row['images']) for row in found)} "
            f"| {mean('others_gap'):.3f} +- {error('others_gap_se'):.3f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default="build/release/bin/eval-loglik")
    parser.add_argument("--out", type=Path, default=Path("results/models"))
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="*", default=[70, 280])
    parser.add_argument("--budgets", type=int, nargs="*", default=[5000])
    parser.add_argument("--bases", nargs="+", default=BASES)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    table = arguments.out / "models.csv"
    rows = list(csv.DictReader(table.open())) if table.exists() else []
    there = {key(row) for row in rows}
    lengths = [{"steps": n} for n in arguments.steps] + [{"budget": n} for n in arguments.budgets]
    for model in sorted(arguments.folder.glob("*.pt2")):
        for base in arguments.bases:
            for length in lengths:
                for seed in range(arguments.seeds):
                    asked = {"model": model.stem, "base": base, "seed": seed, **length}
                    if key(asked) in there:
                        continue
                    row = run(arguments.program, model, base, length, seed, arguments)
                    if row is None:
                        break
                    rows.append(row)
                    with table.open("w", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS)
                        writer.writeheader()
                        writer.writerows(rows)
    text = "\n".join(summary(rows)) + "\n"
    (arguments.out / "models.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()

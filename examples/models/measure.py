"""How tight the bounds of exported models are: gap against evaluations, base by base.

    python examples/models/measure.py FOLDER [--out FOLDER]

evaluates every .pt2 file of FOLDER on images that it simulates, with reverse chains, and writes
models.csv and models.md. What models.csv holds already is not run again. Needs pandas.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path

import pandas

import crais

BASES = ["best:1.1", "laplace", "encoder:1.15", "prior"]
KEYS = ["model", "base", "steps", "budget", "seed"]


def measured(model: Path, options: dict, images: int) -> dict:
    """One run's row. Raises UsageError where there is no such base."""
    chains = {"chains": 8} if "steps" in options else {}
    result = crais.certify(str(model), images, progress=False, **options, **chains)
    others = (result.upper_each - result.log_likelihood)[result.flags == 0]
    found = result.methods[0]
    spent = found["evaluations_per_image"]
    return {
        "model": model.stem,
        **options,
        "images": found["images"],
        "evaluations": round(spent["base"] + spent["estimating"]),
        "lower": result.lower,
        "lower_se": result.mc_se,
        "gap": result.gap,
        "gap_se": found["certificate"]["gap_std_error"],
        "largest_gap": found["certificate"]["largest_gap"],
        "ess": result.ess,
        "flagged": int((result.flags != 0).sum()),
        "others_gap": others.mean() if len(others) else math.nan,
        "others_gap_se": others.std(ddof=1) / len(others) ** 0.5 if len(others) > 1 else math.nan,
        "seconds": found["thread_seconds"],
    }


def summary(rows: pandas.DataFrame) -> str:
    """One line a model, base and length: means over seeds."""
    lines = [
        "| model | base | asked for | evaluations | gap, nats | largest | ESS | flagged "
        "| gap of the others |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (model, base, steps, budget), found in rows.groupby(KEYS[:-1], dropna=False):
        mean = found.mean(numeric_only=True).astype(float)
        gap, others = (math.hypot(*found[name].dropna()) for name in ("gap_se", "others_gap_se"))
        asked = f"budget {budget}" if pandas.isna(steps) else f"{steps} steps"
        lines.append(
            f"| {model} | {base} | {asked} | {mean.evaluations:,.0f} "
            f"| {mean.gap:.3f} +- {gap / len(found):.3f} | {found.largest_gap.max():.2f} "
            f"| {mean.ess:.2f} | {int(found.flagged.sum())} of {int(found.images.sum())} "
            f"| {mean.others_gap:.3f} +- {others / max(1, found.others_gap_se.count()):.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/models"))
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="*", default=[70, 280])
    parser.add_argument("--budgets", type=int, nargs="*", default=[5000])
    parser.add_argument("--bases", nargs="+", default=BASES)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = given.out / "models.csv"
    rows = pandas.read_csv(table) if table.exists() else pandas.DataFrame(columns=KEYS)
    rows = rows.astype({"steps": "Int64", "budget": "Int64"})
    lengths = [{"steps": n} for n in given.steps] + [{"budget": n} for n in given.budgets]
    models, seeds = sorted(given.folder.glob("*.pt2")), range(given.seeds)
    for model, base, length, seed in itertools.product(models, given.bases, lengths, seeds):
        options = {"base": base, **length, "seed": seed}
        asked = {"model": model.stem, **options}
        if (rows[list(asked)] == pandas.Series(asked)).all(axis=1).any():
            continue
        try:
            row = measured(model, options, given.images)
        except crais.UsageError as error:
            print(f"{model.stem}, {base}: {error}")
            continue
        rows = pandas.concat([rows, pandas.DataFrame([row])], ignore_index=True)
        rows = rows.astype({"steps": "Int64", "budget": "Int64"})
        rows.to_csv(table, index=False)
    text = summary(rows)
    (given.out / "models.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()

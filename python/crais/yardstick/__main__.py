"""`python3 -m crais.yardstick`: what `crais.log_normalizer` finds by its defaults."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import crais
from crais.errors import NoInputError, OutputError, one_line
from crais.yardstick import Density, get, names

_HEADER = "density                dim      log Z  error      exact  off by  evals   s flags"
_ROW = (
    "{density:21}{dim:5}{log_z:11.3f}{error:7.4f}{exact:11.3f}{off_by:+8.4f}{evaluations:7.0f}"
    "{seconds:4.0f}{flagged:>3}/{replicates}"
)


@one_line("crais.yardstick")
def main(arguments: list[str] | None = None) -> None:
    """Prints a line for each density and seed, and writes yardstick.csv."""
    parser = argparse.ArgumentParser(
        "python3 -m crais.yardstick",
        description="Estimates log normalisers that are known, in nats, by the defaults of "
        "crais.log_normalizer. Evaluations are of a replicate, its base and pilots included.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="densities (all); list: show them")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each density (1)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write DIR/yardstick.csv")
    parser.add_argument("--data-dir", metavar="DIR", help="of regressions ($CRAIS_DATA, ./data)")
    given = parser.parse_args(arguments)
    is_list = given.names == ["list"]
    densities = _densities([] if is_list else given.names, given.data_dir)
    if is_list:
        for density in densities:
            print(f"{density.name:21} {density.dim:4}  {density.source}")
        return
    try:
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{given.out}: {error.strerror}") from error
    found = []
    print(_HEADER)
    for density in densities:
        for seed in range(given.seeds):
            found.append(_estimate(density, seed))
            print(_ROW.format(**found[-1]), flush=True)
    if given.out:
        with open(given.out / "yardstick.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, found[0].keys())
            writer.writeheader()
            writer.writerows(found)


def _densities(chosen: list[str], data_dir: str | None) -> list[Density]:
    """Without names, all whose data are there."""
    densities = []
    for name in chosen or names():
        try:
            densities.append(get(name, data_dir))
        except NoInputError as error:
            if chosen:
                raise
            print(f"crais.yardstick: without {name}: {error}", file=sys.stderr)
    return densities


def _estimate(density: Density, seed: int) -> dict[str, Any]:
    start = time.monotonic()
    r = crais.log_normalizer(density.log_density, dim=density.dim, seed=seed, progress=False)
    spent = r.methods[0]["evaluations_per_problem"]
    return {
        "density": density.name,
        "dim": density.dim,
        "seed": seed,
        "log_z": r.mean,
        "error": r.mc_se,
        "exact": density.log_z,
        "exact_error": density.log_z_error,
        "off_by": r.mean - density.log_z,
        "evaluations": spent["base"] + spent["tuning"] + spent["estimating"],
        "seconds": time.monotonic() - start,
        "flagged": int(sum(flag != 0 for flag in r.flags)),
        "replicates": len(r.flags),
        "reasons": "; ".join(r.reasons),
    }


if __name__ == "__main__":
    main()

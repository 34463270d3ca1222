"""An experiment: what is estimated, how, and what tables show, all of it data in a JSON file.

- `summary` is one line; `about` stands above the tables.
- `set` holds values by name, `lists` lists of objects with more values, or an object of arrays (null: no value).
  Any value may be {"full": ..., "quick": ...}. An entry with "if": "full" is there with --full only; one with
  "unless" is not there beside an entry with a value of that name. --seeds N replaces values whose names end with
  "seeds", and `choosing` by N / 3.
- `tables` have a `stem` of files, a `title`, `columns` (tables.py; else the experiment's, and then `more`), and rows:
  one for each combination of entries of the lists that `axes` names, compared with the first on the last axis.
  `groups` join several such products, `each` names lists with a table for each combination. `set` adds values;
  `folded` tables are only files. `plans` (of betas or divergence) adds first plans as plans.csv.

Texts are templates of Jinja, in which "{name}" is a value. These values say what a row is:

- `target` and the number of `problems`; or a number of `images` of the checkpoint; or with `model`, a checkpoint
  beside the file, of images that it draws, whose log p(x) a grid of `points` x `points` latents finds;
- `flags` of estimate-logz or eval-loglik, with seeds from `first_seed` (0) for `repeats` (1); `also`: names and flags
  of other results, whose measures are called "name.measure";
- a "{setting}" in them (or in `match`, if those have more) is looked for until plans have `steps` transitions;
- or `settings` to choose from, by the highest mean of the first `choosing` repetitions, or else the first that makes a
  plan. `chosen` and `oracle` tell the choice;
- `truth`, or flags of a `reference`, or a list of them, whose results are the truth where none is known;
- `upper`: of the upper bound; `particles` to draw; `chains`, of measures per chain.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import TemplateError
from torch import Tensor

from crais.errors import DataError, NoInputError, UsageError
from crais.native import extension
from crais.reproduce.cells import OF_SUBJECTS, Options, Store, Subject, Values, Variant, subject_of
from crais.reproduce.tables import Cell, Page, cell_of, choose, is_fair, match_transitions, measures_of, number, text

FOLDER = Path(__file__).parent / "experiments"
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
_DEFAULTS = {"setting": "-", "steps": 0, "first_seed": 0, "repeats": 1, "choosing": 0, "chains": 1}  # of a row
_TOO_LONG = "has (reached beta|not arrived)"  # of plans


@contextlib.contextmanager
def told_of(file: Path) -> Iterator[None]:
    """What is wrong with an experiment is told with its file, unless crais has said what it is."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, TemplateError) as error:
        if type(error).__module__ == UsageError.__module__:
            raise
        raise DataError(f"{file}: {type(error).__name__}: {error}") from error


def _entries(given: Any, name: str) -> list[Values]:
    """The entries of a list; single values are of its name."""
    if isinstance(given, list):
        return [entry if isinstance(entry, dict) else {name: entry} for entry in given]
    rows = itertools.zip_longest(*given.values())
    return [{key: value for key, value in zip(given, row, strict=True) if value is not None} for row in rows]


def _combined(axes: list[str], values: Values) -> Iterator[Values]:
    """The values of each combination of entries of the lists, and whether it `is_first` on the last axis."""
    if not axes:
        yield values
        return
    given = _entries(values[axes[0]], axes[0])
    entries = [one for one in given if (values["full"] or one.get("if") != "full") and one.get("unless") not in values]
    for entry in entries:
        yield from _combined(axes[1:], {**values, **entry, "is_first": entry is entries[0]})


class _Row:
    """What is asked of a subject, and what a table shows of it."""

    def __init__(self, store: Store, subject: Subject, values: Values, first: _Row | None) -> None:
        self.store, self.subject, self.values = store, subject, {**_DEFAULTS, **values}
        self.first = first or self  # the row that it is compared with
        self.trials = 0  # in the search for a setting
        searched = "" if {"setting", "settings"} & values.keys() else values.get("match") or values["flags"]
        if "@" in (match := text({**values, "setting": "@"}, searched)):
            steps = self._count("steps")
            lengths = functools.partial(self._lengths, match, steps)
            self.values["setting"], _, self.trials = match_transitions(match, steps, lengths)

    def _count(self, name: str) -> int:
        return round(number(self.values, name))

    def _variant(self, flags: str, seeds: range | None = None, most: int = 0) -> Variant:
        """The results of the flags, as far as they are there; the store is asked for the others."""
        first = self._count("first_seed")
        seeds = seeds or range(first, first + self._count("repeats"))
        return Variant(self.store.results([self.subject.task(flags, seed, most) for seed in seeds]))

    def _lengths(self, match: str, steps: int, settings: list[str]) -> list[float]:
        """How many transitions the plans of each setting "@" have, on average; inf if too many to count."""
        for setting in settings:
            self._variant(match.replace("@", setting), most=2 * steps)
        self.store.run(f"plans of {steps}")
        found = [self._variant(match.replace("@", setting), most=2 * steps) for setting in settings]
        return [math.inf if re.search(_TOO_LONG, one.failed) else one.mean("transitions") for one in found]

    def _truth(self) -> Tensor | None:
        """What errors are of. Of long runs, for a density the mean, for images the average by precision."""
        if "truth" in self.values:
            return torch.tensor(number(self.values, "truth"), dtype=torch.float64)
        if self.subject.truth is not None or "reference" not in self.values:
            return self.subject.truth
        given = self.values["reference"]
        flags = [text(self.values, one) for one in (given if isinstance(given, list) else [given])]
        runs = [self._variant(one, range(1000, 1001)) for one in flags]
        means, errors = (torch.cat([run.column(name) for run in runs]) for name in ("log_normalizer", "std_error"))
        if not self.subject.has_images:
            return means[0].mean()
        weights = errors.square().reciprocal()
        return means[0] if len(means) == 1 else (weights * means).sum(0) / weights.sum(0)

    def cells(self, columns: list[str]) -> list[Cell]:
        """Looks up all results, chooses between settings, and measures: beside the first row, which comes before."""
        values, choosing, truth = self.values, self._count("choosing"), self._truth()
        family = [{**values, **one} for one in _entries(values.get("settings", [{}]), "setting")]
        for one in family:
            one["setting"] = text(one, one["setting"])
        results = [self._variant(text(one, one["flags"])) for one in family]
        family, results = [*family, {**values, "setting": "none"}], [*results, Variant([])]  # the last: no choice
        chosen, oracle = next((i for i, one in enumerate(results[:-1]) if not one.failed), -2), -1
        if choosing > 0:
            estimates = [one.column("log_normalizer")[0] for one in results]
            chosen, oracle = choose(estimates, choosing, math.nan if truth is None else float(truth))
        self.best = results[chosen]
        own = functools.partial(measures_of, truth, self.subject.has_images, choosing, "upper" in values)
        m: Values = own(self.best, self.first.best)
        m |= {name: own(self._variant(text(values, flags))) for name, flags in values.get("also", {}).items()}
        if choosing > 0 and not is_fair(m["transitions"], self._count("steps")):
            m["t"] = math.nan
        spent = [one.mean("base", "tuning", "estimating") for one in results[:-1] if not one.failed]
        m["search"] = sum(spent, self.trials * self.best.mean("tuning"))
        # Pilots have at most 256 chains, so they cost less than their count suggests.
        m["comput"] = m["transitions"] + max(0.0, m["tuning"] / min(self._count("chains"), 256) - 1)
        m["oracle_bias"] = float(results[oracle].column("log_normalizer").flatten()[choosing:].mean()) - m["truth"]
        told = {**family[chosen], "chosen": family[chosen]["setting"], "oracle": family[oracle]["setting"]}
        return [cell_of(column, told, m, self.best) for column in columns]

    def plan(self, name: str, columns: list[str]) -> Iterator[list[Cell]]:
        """The texts of columns, and the first plan [M + 1] at each fiftieth of its transitions."""
        if len(plan := self.best.first(name)):
            parts, places = np.linspace(0, 1, 51), np.arange(len(plan))
            shown = [extension().significant(x, 6) for x in np.interp(parts * places[-1], places, plan)]
            told = self.cells([column for column in columns if "{" in column])
            yield [*told, *((f"{part:.2f}", each, each) for part, each in zip(parts, shown, strict=True))]

    def cloud(self) -> Iterator[list[Cell]]:
        """The places of particles, beside exact draws where the row is the first."""
        draws = self.subject.draws if self.first is self else None
        particles = torch.stack([self.best.first("x"), self.best.first("y")], 1)
        for sampler, places in (("exact draws", draws), (text(self.values, "{sampler}"), particles)):
            for place in [] if places is None else places.tolist():
                shown = [text(self.values, "{target}"), sampler, *(extension().significant(x, 4) for x in place)]
                yield [(name, each, each) for name, each in zip(("target", "sampler", "x", "y"), shown, strict=True)]


class Experiment:
    """`name`: of an experiment of the package, with ":N" to choose one entry of its list `dims`; or of a
    file NAME.json. Raises UsageError for another name; DataError for wrong content."""

    def __init__(self, name: str) -> None:
        stem, _, self._dim = name.partition(":")
        self.file, self.folder = FOLDER / f"{stem}.json", name.replace(":", "-")
        if name.endswith(".json"):
            self.file, self.folder, self._dim = Path(name), Path(name).stem, ""
        elif stem not in NAMES:
            raise UsageError(f"unknown experiment '{name}'; choose from {', '.join(NAMES)}")
        if not self.file.is_file():
            raise NoInputError(f"{name}: No such file")
        with told_of(self.file):
            self._json = self.file.read_text(encoding="utf-8")
            self.content: Values = json.loads(self._json)
            self.summary = str(self.content["summary"])
            dims = [str(one["dim"]) for one in self.content.get("lists", {}).get("dims", [])]
        if self._dim and self._dim not in dims:
            choice = f"choose from {', '.join(dims)}" if dims else "it has no parameters"
            raise UsageError(f"'{name}': {choice}")

    def uses(self) -> set[str]:
        """Those of the flags --seeds, --checkpoint and --data-dir that matter to it."""
        has_images = '"images":' in self._json and '"model":' not in self._json
        matter = {"seeds": '"seeds":' in self._json, "checkpoint": has_images}
        matter["data_dir"] = has_images or "logistic-regression:" in self._json
        return {flag for flag, matters in matter.items() if matters}

    def run(self, options: Options) -> None:
        """Writes tables into a folder of its own in options.out. Raises as Store does."""

        def resolved(entry: Values) -> Any:
            """For --full or --quick, and with the number of seeds that --seeds asks for."""
            if entry.keys() == {"full", "quick"}:
                return entry["full" if options.full else "quick"]
            for name, value in entry.items() if options.seeds else ():
                if not isinstance(value, list) and (name.endswith("seeds") or name == "choosing"):
                    entry[name] = options.seeds if name.endswith("seeds") else max(1, options.seeds // 3)
            return entry

        content = json.loads(self._json, object_hook=resolved)
        common = {**content.get("lists", {}), **content.get("set", {}), "full": options.full}
        if self._dim:
            common["dims"] = [{**one, "if": ""} for one in common["dims"] if str(one["dim"]) == self._dim]
        page, store = Page(Path(options.out, self.folder), self.summary, text(common, content["about"])), Store(options)
        subject = functools.cache(functools.partial(subject_of, options, store, self.file.parent))
        plans, particles = list[list[Cell]](), list[list[Cell]]()
        for table in content["tables"]:
            columns = [*table.get("columns", content.get("columns", [])), *table.get("more", [])]
            for values in _combined(table.get("each", []), {**common, **table.get("set", {})}):
                rows = list[_Row]()
                for group in table.get("groups", [table]):
                    for each in _combined(group.get("axes", []), {**values, **group.get("set", {}), "is_first": True}):
                        asked = {name: text(each, str(each[name])) for name in sorted(OF_SUBJECTS & each.keys())}
                        rows.append(_Row(store, subject(**asked), each, None if each["is_first"] else rows[-1].first))
                for row in rows:  # the columns are tried before hours are spent
                    row.cells(columns)
                stem, title = text(values, table["stem"]), text(values, table["title"])
                store.run(stem)
                page.table(stem, title, [row.cells(columns) for row in rows], table.get("folded", False))
                plans += [plan for row in rows if "plans" in table for plan in row.plan(table["plans"], columns)]
                particles += [point for row in rows if "particles" in row.values for point in row.cloud()]
        page.table("plans", "First plans against transition / M", plans, folded=True)
        page.table("particles", "Particles of first runs", particles, folded=True)

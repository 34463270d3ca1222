"""An experiment: what is estimated, how, and what tables show, all of it data in a JSON file.

- `summary` is one line; `about`, a text, stands above the tables. `columns` are those of tables
  without columns of their own.
- `set` holds values by name, `lists` lists of objects with more values, or an object of equally long
  arrays (null: no value). Any value may be {"full": ..., "quick": ...}. An entry with "if": "full" is
  there with --full only; one with "unless" is not there beside an entry with a value of that name.
  --seeds N replaces values whose names end with "seeds", and `choosing` by N / 3.
- `tables` have a `stem` of files, a `title`, `columns` (words.py), and rows: one for each combination
  of entries of the lists that `axes` names, compared with the first on the last axis. `groups` join
  rows of several such products. `each` names lists with a table for each combination. `set` adds
  values; `folded` tables are only files. `plans` (of betas or divergence) adds the first plans of all
  rows as plans.csv.

Texts replace "{name}" by values (words.py). These values say what a row is:

- `target` and the number of `problems`; or a number of `images` of the checkpoint; or with `model`, a
  checkpoint beside the file, of images that it draws, whose log p(x) a grid of `points` x `points`
  latents finds;
- `flags` of estimate-logz or eval-loglik, with seeds from `first_seed` (0) for `repeats` (1); `also`:
  names and flags of other results, whose measures are called "name.measure";
- `match`: flags (the default of `flags`) with a `setting` "@" that is looked for until plans have
  `steps` transitions;
- `settings` to choose from, by the highest mean of the first `choosing` repetitions, or else the
  first that makes a plan. `chosen` and `oracle` tell the choice;
- `truth`, or flags of a `reference` whose results are the truth where none is known;
- `upper`: of the upper bound; `particles` to draw; `chains`, of measures per chain.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import crais
from crais.errors import DataError, NoInputError, UsageError
from crais.native import by_flag, extension
from crais.reproduce.cells import Options, Subject, Task, Values, Variant, digest_of, run_tasks
from crais.reproduce.matching import is_fair, match_transitions, pilot_flags
from crais.reproduce.measures import choose, measures_of
from crais.reproduce.models import drawn_subject
from crais.reproduce.page import Page
from crais.reproduce.words import Cell, cell_of, integer, number, text

FOLDER = Path(__file__).parent / "experiments"
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
_KNOWN = set(
    "summary about set lists tables columns stem title each axes groups folded plans full quick if unless "
    "target problems images model points flags also match steps repeats settings setting choosing truth "
    "upper reference chains particles first_seed".split()
)


@contextlib.contextmanager
def _told_of(place: str) -> Iterator[None]:
    """What is wrong with data is told with its place."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"{place}: there is no '{error.args[0]}'") from error
    except (DataError, AttributeError, TypeError) as error:
        raise DataError(f"{place}: {error}") from error


def _entries(given: Any, name: str) -> list[Values]:
    """The entries of a list; single values are of its name."""
    if isinstance(given, list):
        return [entry if isinstance(entry, dict) else {name: entry} for entry in given]
    rows = range(max((len(column) for column in given.values()), default=0))
    return [
        {key: column[i] for key, column in given.items() if i < len(column) and column[i] is not None}
        for i in rows
    ]


def _check_keys(value: Any, used: set[str], place: str = "") -> None:
    """Refuses keys that neither the program nor a text of the experiment uses."""
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and key not in used:
                raise DataError(f"nothing uses '{key}' of {place}/{key}")
            if isinstance(key, int) or key in _KNOWN or place == "/lists":  # else it holds what it will
                _check_keys(part, used, f"{place}/{key}")


class Experiment:
    """`name`: of an experiment of the package, with ":N" to choose one entry of its list `dims`; or of a
    file NAME.json. Raises UsageError for another name; DataError, with the place, for wrong content."""

    def __init__(self, name: str) -> None:
        stem, _, self._dim = name.partition(":")
        self.file, self.name = FOLDER / f"{stem}.json", name
        if name.endswith(".json"):
            self.file, self.name, self._dim = Path(name), Path(name).stem, ""
        elif stem not in NAMES:
            raise UsageError(f"unknown experiment '{name}'; choose from {', '.join(NAMES)}")
        try:
            found = self.file.read_bytes().decode()
        except OSError as error:
            raise NoInputError(f"{name}: {error.strerror}") from error
        except UnicodeError as error:
            raise DataError(f"{name}: is not UTF-8") from error
        self._json = extension().checked_json(found, str(self.file))
        self.content: Values = json.loads(self._json)
        with _told_of(self.file.name):
            texts = [each for each, colon in re.findall(r'"((?:[^"\\]|\\.)*)"(:?)', self._json) if not colon]
            words = {word for each in texts for word in re.split(r"[\s{}/=:.,()\[\]]+", each)}
            _check_keys(self.content, {*_KNOWN, *texts, *words})
            self.summary = text({}, self.content["summary"])
            if self._dim:
                known = [str(one["dim"]) for one in _entries(self.content["lists"].get("dims", []), "dim")]
                if self._dim not in known:
                    choice = f"choose from {', '.join(known)}" if known else "it has no parameters"
                    raise UsageError(f"'{name}': {choice}")
        self.folder = self.name.replace(":", "-")

    def uses(self) -> set[str]:
        """Those of the flags --seeds, --checkpoint and --data-dir that matter to it."""
        flags = {"seeds"} if '"seeds":' in self._json else set()
        if '"images":' in self._json and '"model":' not in self._json:
            flags |= {"checkpoint", "data_dir"}
        return flags | ({"data_dir"} if "logistic-regression:" in self._json else set())

    def run(self, options: Options) -> None:
        """Writes tables into a folder of its own in options.out. Raises as run_tasks does."""

        def resolved(entry: Values) -> Any:
            """For --full or --quick, and with the number of seeds that --seeds asks for."""
            if entry.keys() == {"full", "quick"}:
                return entry["full" if options.full else "quick"]
            asked = {"choosing": max(1, (options.seeds or 0) // 3), "seeds": options.seeds}
            for name, value in entry.items() if options.seeds else ():
                if not isinstance(value, list):
                    entry[name] = asked.get("seeds" if name.endswith("seeds") else name, value)
            return entry

        content = json.loads(self._json, object_hook=resolved)
        lists = content.get("lists", {})
        with _told_of(f"{self.name}.json"):
            if self._dim:
                dims = _entries(lists["dims"], "dim")
                lists["dims"] = [{**one, "if": ""} for one in dims if str(one["dim"]) == self._dim]
            about = text(content.get("set", {}), content["about"])
            runner = _Runner(options, content, Page(Path(options.out, self.folder), self.summary, about))
            runner.folder = self.file.parent
        for i, table in enumerate(content["tables"]):
            with _told_of(f"{self.name}.json: tables/{i}"):
                values = {**content.get("set", {}), **table.get("set", {})}
                for row in runner.rows(values, table.get("each", [])):
                    runner.table(table, row.values)
        runner.page.table("plans", "First plans against transition / M", runner.plans, folded=True)
        runner.page.table("particles", "Particles of first runs", runner.particles, folded=True)


class _Row:
    """What is asked of one subject, and what a table shows of it."""

    def __init__(self, values: Values) -> None:
        self.values = {"setting": "-", **values}
        self.first = self  # the row that it is compared with
        self.subject: Subject | None = None  # without it all results are empty
        self.done: dict[str, Values] = {}
        self.trials = 0  # in the search for a setting

    def number(self, name: str, otherwise: int) -> int:
        return integer(self.values, name, otherwise)

    def seeds(self) -> range:
        first = self.number("first_seed", 0)
        return range(first, first + self.number("repeats", 1))

    def variant(self, flags: str, seeds: range, only_plans: bool = False) -> Variant:
        """The results of the flags, as far as they are there; what it takes is `asked`."""
        tasks = [self.subject.task(flags, seed, only_plans) for seed in seeds] if self.subject else []
        self.asked += tasks
        return Variant([self.done[one.key] for one in tasks if one.key in self.done])

    def with_setting(self, values: Values, name: str) -> str:
        return text(values, f"{{{name}}}").replace("@", text(values, "{setting}"), 1)

    def read(self) -> None:
        """Looks up all results, and makes the choice between settings."""
        values, self.asked = self.values, list[Task]()
        self.family = [{**values, **one} for one in _entries(values.get("settings", [{}]), "setting")]
        for one in self.family:
            one["setting"] = text(one, "{setting}")
        flags, seeds = "flags" if "flags" in values else "match", self.seeds()
        self.results = [self.variant(self.with_setting(one, flags), seeds) for one in self.family]
        self.also = {name: self.variant(text(values, more), seeds) for name, more in values.get("also", {}).items()}
        self.truth, self.choosing = self._truth(), self.number("choosing", 0)
        self.chosen: int | None = next((i for i, one in enumerate(self.results) if not one.failed), len(self.results) - 1)
        self.oracle: int | None = None
        if self.choosing > 0:
            truth = math.nan if self.truth is None else float(self.truth)
            estimates = [one.column("log_normalizer")[0] for one in self.results]
            self.chosen, self.oracle = choose(estimates, self.choosing, truth)
        self.best = Variant([]) if self.chosen is None else self.results[self.chosen]

    def _truth(self) -> Tensor | None:
        """What errors are of. Of long runs, for a density the mean, for images the average by precision."""
        if "truth" in self.values:
            return torch.tensor(number(self.values, "truth", {}), dtype=torch.float64)
        known, given = self.subject.truth if self.subject else None, self.values.get("reference")
        if known is not None or given is None:
            return known
        seeds = range(1000, 1001)
        runs = [self.variant(text(self.values, one), seeds) for one in (given if isinstance(given, list) else [given])]
        means = torch.stack([one.column("log_normalizer")[0] for one in runs])
        weights = torch.stack([one.column("std_error")[0].square().reciprocal() for one in runs])
        if not self.subject or not self.subject.has_images:
            return means[0].mean()
        return means[0] if len(means) == 1 else (weights * means).sum(0) / weights.sum(0)

    def measures(self) -> Values:
        """Its own beside those of the first row, and those of its other results."""
        has_images, masses = (self.subject.has_images, self.subject.masses) if self.subject else (False, None)
        own = functools.partial(
            measures_of, truth=self.truth, has_images=has_images, choosing=self.choosing,
            upper="upper" in self.values, masses=masses)  # fmt: skip
        m: Values = own(self.best, first=self.first.best)
        if self.choosing > 0 and not is_fair(m["transitions"], self.number("steps", 0)):
            m["t"] = math.nan
        m |= {name: own(result) for name, result in self.also.items()}
        spent = [one.mean("base", "tuning", "estimating") for one in self.results if not one.failed]
        m["search"] = sum(spent, self.trials * self.best.mean("tuning"))
        # Pilots have at most 256 chains, so they cost less than their count suggests.
        pilots = min(self.number("chains", 1), 256)
        m["comput"] = m["transitions"] + max(0.0, m["tuning"] / pilots - 1)
        m["oracle_bias"] = math.nan
        if self.oracle is not None:
            values = self.results[self.oracle].column("log_normalizer").flatten()
            m["oracle_bias"] = float(values[self.choosing :].mean()) - m["truth"]
        return m

    def cells(self, columns: list[str]) -> list[Cell]:
        told = {"chosen": self.chosen, "oracle": None if self.chosen is None else self.oracle}
        settings = {name: "none" if i is None else self.family[i]["setting"] for name, i in told.items()}
        values, measures = {**self.family[self.chosen or 0], **settings}, self.measures()
        return [cell_of(column, values, self.best, measures) for column in columns]


class _Runner:
    folder: Path  # of models beside the experiment

    def __init__(self, options: Options, content: Values, page: Page) -> None:
        self.options, self.content, self.page = options, content, page
        self.plans: list[list[Cell]] = []
        self.particles: list[list[Cell]] = []
        self._subjects: dict[str, Subject] = {}

    def rows(self, values: Values, axes: list[str]) -> Iterator[_Row]:
        """A row for each combination of entries of the lists that `axes` names."""
        if not axes:
            yield _Row(values)
            return
        given = values.get(axes[0], self.content.get("lists", {}).get(axes[0]))
        if given is None:
            raise DataError(f"there is no list '{axes[0]}'")
        first = None
        for entry in _entries(given, axes[0]):
            if (entry.get("if") != "full" or self.options.full) and entry.get("unless") not in values:
                for row in self.rows({**values, **entry}, axes[1:]):
                    if len(axes) == 1:
                        row.first = first = first or row
                    yield row

    def table(self, table: Values, values: Values) -> None:
        stem, title = text(values, table["stem"]), text(values, table["title"])
        columns = table["columns"] if "columns" in table else self.content["columns"]
        groups = table.get("groups", [table])
        rows = [row for one in groups for row in self.rows({**values, **one.get("set", {})}, one.get("axes", []))]
        for row in rows:  # words are tried on nothing, before hours are spent
            row.read()
            row.cells(columns)
        for row in rows:
            row.subject = self._subject_of(row.values)
            if "match" in row.values:
                self._match(row)
            row.read()
        done = run_tasks(self.options, stem, [task for row in rows for task in row.asked])
        for row in rows:
            row.done = done
            row.read()
        shown = [row.cells(columns) for row in rows]
        for row, cells in zip(rows, shown, strict=True):
            if "particles" in row.values:
                self._add_particles(row)
            if "plans" in table:
                self._add_plan(row.best.first(table["plans"]).tolist(), cells)
        self.page.table(stem, title, shown, table.get("folded", False))

    def _subject_of(self, values: Values) -> Subject:
        parts = ("target", "problems", "images", "model")
        name = "|".join(text(values, f"{{{part}}}") if part in values else "" for part in parts)
        if name not in self._subjects:
            self._subjects[name] = self._new_subject(values)
        return self._subjects[name]

    def _new_subject(self, values: Values) -> Subject:
        options, count = self.options, integer(values, "images", 1)
        own = {"device": options.device}
        if "model" in values:
            file = self.folder / text(values, "{model}")
            return drawn_subject(options, file, count, integer(values, "points", 512))
        if "images" in values:
            images = crais.evaluate(
                options.checkpoint, data_dir=options.data_dir, limit=count, method="iwae:1", progress=False, **own
            ).images
            identity = [digest_of(Path(options.checkpoint).read_bytes()), digest_of(images)]
            return Subject(options.checkpoint, {**own, "chunk": 64, "control": 0}, identity, images)
        target, particles = text(values, "{target}"), integer(values, "particles", 0)
        own |= {"problems": integer(values, "problems", 1)}
        if target.startswith("logistic-regression"):
            own["data_dir"] = options.data_dir
        probe, truth, masses, draws = extension().known(target, by_flag(own), max(particles, 1))
        return Subject(target, own, [target, probe], None, particles, truth, masses, draws)

    def _match(self, row: _Row) -> None:
        """Looks for the setting "@" whose plans have as many steps as the row."""
        steps = row.number("steps", 0)

        def count(settings: list[str]) -> list[float]:
            def found(setting: str) -> Variant:
                flags = row.with_setting({**row.values, "setting": setting}, "match")
                return row.variant(pilot_flags(flags, steps), row.seeds(), only_plans=True)

            row.asked = []
            for setting in settings:
                found(setting)
            row.done = run_tasks(self.options, f"plans of {steps}", row.asked)
            results = [found(setting) for setting in settings]
            return [math.inf if one.unfinished else one.mean("transitions") for one in results]

        setting, _, row.trials = match_transitions(text(row.values, "{match}"), steps, count)
        row.values["setting"] = setting

    def _add_plan(self, plan: list[float], shown: list[Cell]) -> None:
        """Adds the values of a plan [M + 1] at each fiftieth of its transitions, with its row's texts."""
        if not plan:
            return
        self.plans.append([cell for cell in shown if not cell.is_number])
        for part in range(51):
            share, i = math.modf(part / 50 * (len(plan) - 1))
            before, after = plan[int(i)], plan[min(int(i) + 1, len(plan) - 1)]
            value = extension().significant(before + share * (after - before), 6)
            self.plans[-1].append(Cell(f"{part / 50:.2f}", value, value))

    def _add_particles(self, row: _Row) -> None:
        clouds = [(text(row.values, "{sampler}"), row.best.first("x"), row.best.first("y"))]
        if row.first is row and row.subject and row.subject.draws is not None:
            clouds.insert(0, ("exact draws", *row.subject.draws.T))
        for sampler, *places in clouds:
            for point in torch.stack(places, 1).tolist():
                x, y = (extension().significant(place, 4) for place in point)
                cells = {"target": text(row.values, "{target}"), "sampler": sampler, "x": x, "y": y}
                self.particles.append([Cell(name, value, value) for name, value in cells.items()])

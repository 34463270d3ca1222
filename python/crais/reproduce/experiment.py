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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import crais
from crais.errors import DataError, NoInputError, UsageError
from crais.native import by_flag, extension
from crais.reproduce.cells import Options, Subject, Task, Values, Variant, digest_of, run_tasks
from crais.reproduce.matching import is_fair, match_transitions, pilot_flags
from crais.reproduce.measures import Comparison, Measures, choose, measures_of
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
Run = Callable[[str, int, int], Variant]  # flags, first seed, repeats


@contextlib.contextmanager
def _told_of(place: str) -> Iterator[None]:
    """What is wrong with data is told with its place."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"{place}: there is no '{error.args[0]}'") from error
    except (DataError, AttributeError, TypeError) as error:
        raise DataError(f"{place}: {error}") from error


def _resolved(value: Any, options: Options, name: str = "") -> Any:
    """The value for --full or --quick, and with the number of seeds that --seeds asks for."""
    if isinstance(value, list):
        return [_resolved(part, options) for part in value]
    if isinstance(value, dict):
        if value.keys() == {"full", "quick"}:
            return _resolved(value["full" if options.full else "quick"], options, name)
        return {key: _resolved(part, options, key) for key, part in value.items()}
    if options.seeds and name == "choosing":
        return max(1, options.seeds // 3)
    return options.seeds if options.seeds and name.endswith("seeds") else value


def _entries(given: Any, name: str) -> list[Values]:
    """The entries of a list; single values are of its name."""
    if isinstance(given, list):
        return [entry if isinstance(entry, dict) else {name: entry} for entry in given]
    rows = range(max((len(column) for column in given.values()), default=0))
    return [
        {key: column[i] for key, column in given.items() if i < len(column) and column[i] is not None}
        for i in rows
    ]


def _texts(value: Any) -> Iterator[str]:
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)
    if isinstance(value, str):
        yield value
        yield from re.split(r"[\s{}/=:.,()\[\]]+", value)


def _check_keys(value: Any, used: set[str], place: str = "") -> None:
    """Refuses keys that neither the program nor a text of the experiment uses."""
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and key not in used:
                raise DataError(f"nothing uses '{key}' of {place}/{key}")
            if isinstance(key, int) or key in _KNOWN or place == "/lists":  # else it holds what it will
                _check_keys(part, used, f"{place}/{key}")


def _with_setting(values: Values, name: str) -> str:
    return text(values, f"{{{name}}}").replace("@", text(values, "{setting}"), 1)


class Row:
    def __init__(self, values: Values, first: int) -> None:
        self.values = {"setting": "-", **values}
        self.first = first  # the row that it is compared with
        self.subject: Subject | None = None
        self.trials = 0  # in the search for a setting

    def number(self, name: str, otherwise: int) -> int:
        return integer(self.values, name, otherwise)

    def tasks(self, flags: str, first_seed: int, repeats: int, only_plans: bool = False) -> list[Task]:
        """Of the flags, for the seeds from `first_seed` on. None without a subject."""
        seeds = range(first_seed, first_seed + repeats)
        return [self.subject.task(flags, seed, only_plans) for seed in seeds] if self.subject else []

    def read(self, run: Run) -> None:
        """Asks for all results, and makes the choice between settings."""
        values, seeds = self.values, (self.number("first_seed", 0), self.number("repeats", 1))
        self.choosing = self.number("choosing", 0)
        self.family = [{**values, **one} for one in _entries(values.get("settings", [{}]), "setting")]
        for one in self.family:
            one["setting"] = text(one, "{setting}")
        flags = "flags" if "flags" in values else "match"
        self.results = [run(_with_setting(one, flags), *seeds) for one in self.family]
        self.also = {name: run(text(values, more), *seeds) for name, more in values.get("also", {}).items()}
        self.truth = self._truth(run)
        made = [i for i, one in enumerate(self.results) if not one.failed] or [len(self.results) - 1]
        self.chosen: int | None = made[0]
        self.oracle: int | None = None
        if self.choosing > 0:
            truth = math.nan if self.truth is None else float(self.truth)
            estimates = [one.column("log_normalizer")[0] for one in self.results]
            self.chosen, self.oracle = choose(estimates, self.choosing, truth)
        self.best = Variant([]) if self.chosen is None else self.results[self.chosen]

    def _truth(self, run: Run) -> Tensor | None:
        """What errors are of. Of long runs, for a density the mean, for images the average by precision."""
        if "truth" in self.values:
            return torch.tensor(number(self.values, "truth", {}), dtype=torch.float64)
        known, given = self.subject.truth if self.subject else None, self.values.get("reference")
        if known is not None or given is None:
            return known
        references = [run(text(self.values, one), 1000, 1) for one in (given if isinstance(given, list) else [given])]
        means = torch.stack([one.column("log_normalizer")[0] for one in references])
        weights = torch.stack([one.column("std_error")[0].square().reciprocal() for one in references])
        if not self.subject or not self.subject.has_images:
            return means[0].mean()
        return means[0] if len(means) == 1 else (weights * means).sum(0) / weights.sum(0)

    def measures(self, first: Variant | None) -> Measures:
        """Its own beside those of `first`, and those of its other results."""
        has_images, masses = (self.subject.has_images, self.subject.masses) if self.subject else (False, None)
        to = Comparison(self.truth, has_images, self.choosing, "upper" in self.values, masses, first)
        m, best = measures_of(self.best, to), self.best
        if self.choosing > 0 and not is_fair(m["transitions"], self.number("steps", 0)):
            m["t"] = math.nan
        to.first = None
        for name, result in self.also.items():
            m |= {f"{name}.{measure}": value for measure, value in measures_of(result, to).items()}
        spent = [one.mean("base", "tuning", "estimating") for one in self.results if not one.failed]
        m["search"] = sum(spent, self.trials * best.mean("tuning"))
        # Pilots have at most 256 chains, so they cost less than their count suggests.
        pilots = min(self.number("chains", 1), 256)
        m["comput"] = m["transitions"] + max(0.0, m["tuning"] / pilots - 1)
        m["oracle_bias"] = math.nan
        if self.oracle is not None:
            values = self.results[self.oracle].column("log_normalizer").flatten()
            m["oracle_bias"] = float(values[self.choosing :].mean()) - m["truth"]
        return m

    def cells(self, columns: list[str], first: Variant | None) -> list[Cell]:
        told = {"chosen": self.chosen, "oracle": None if self.chosen is None else self.oracle}
        settings = {name: "none" if i is None else self.family[i]["setting"] for name, i in told.items()}
        values, measures = {**self.family[self.chosen or 0], **settings}, self.measures(first)
        return [cell_of(column, values, self.best, measures) for column in columns]


class Experiment:
    """`name`: of an experiment of the package, with ":N" to choose one entry of its list `dims`; or of a
    file NAME.json. Raises UsageError for another name; DataError, with the place, for wrong content."""

    def __init__(self, name: str) -> None:
        stem = name.split(":")[0]
        self.file, self.name = FOLDER / f"{stem}.json", name
        if name.endswith(".json"):
            self.file, self.name = Path(name), Path(name).stem
        elif stem not in NAMES:
            raise UsageError(f"unknown experiment '{name}'; choose from {', '.join(NAMES)}")
        try:
            found = self.file.read_bytes().decode()
        except OSError as error:
            raise NoInputError(f"{name}: {error.strerror}") from error
        except UnicodeError as error:
            raise DataError(f"{name}: is not UTF-8") from error
        self.content: Values = json.loads(extension().checked_json(found, str(self.file)))
        with _told_of(self.file.name):
            _check_keys(self.content, {*_KNOWN, *_texts(self.content)})
            self.summary = text({}, self.content["summary"])
            if ":" in name and not name.endswith(".json"):
                dims = _entries(self.content["lists"].get("dims", []), "dim")
                chosen = [one for one in dims if f"{stem}:{one['dim']}" == name]
                self.content["lists"]["dims"] = [{**one, "if": "any"} for one in chosen]
                if not chosen:
                    known = ", ".join(str(one["dim"]) for one in dims)
                    raise UsageError(f"'{name}': {f'choose from {known}' if known else 'it has no parameters'}")
        self.folder = self.name.replace(":", "-")

    def uses(self) -> set[str]:
        """Those of the flags --seeds, --checkpoint and --data-dir that matter to it."""
        content = json.dumps(self.content)
        flags = {"seeds"} if '"seeds":' in content else set()
        if '"images":' in content and '"model":' not in content:
            flags |= {"checkpoint", "data_dir"}
        return flags | ({"data_dir"} if "logistic-regression:" in content else set())

    def run(self, options: Options) -> None:
        """Writes tables into a folder of its own in options.out. Raises as run_tasks does."""
        content = _resolved(self.content, options)
        with _told_of(f"{self.name}.json"):
            about = text(content.get("set", {}), content["about"])
            page = Page(Path(options.out, self.folder), self.summary, about)
            runner = _Runner(options, content, page, self.file.parent)
        for i, table in enumerate(content["tables"]):
            with _told_of(f"{self.name}.json: tables/{i}"):
                each: list[Row] = []  # the values of each table
                values = {**content.get("set", {}), **table.get("set", {})}
                runner.expand(values, table.get("each", []), each, 0)
                for one in each:
                    runner.table(table, one.values)
        page.table("plans", "First plans against transition / M", runner.plans, folded=True)
        page.table("particles", "Particles of first runs", runner.particles, folded=True)


class _Runner:
    def __init__(self, options: Options, content: Values, page: Page, folder: Path) -> None:
        self.options, self.content, self.page, self.folder = options, content, page, folder
        self.plans: list[list[Cell]] = []
        self.particles: list[list[Cell]] = []
        self._subjects: dict[str, Subject] = {}

    def expand(self, values: Values, axes: list[str], rows: list[Row], first: int) -> None:
        """Adds a row for each combination of entries of the lists that `axes` names."""
        if not axes:
            rows.append(Row(values, first))
            return
        given = values.get(axes[0], self.content.get("lists", {}).get(axes[0]))
        if given is None:
            raise DataError(f"there is no list '{axes[0]}'")
        first = len(rows)
        for entry in _entries(given, axes[0]):
            if (entry.get("if") != "full" or self.options.full) and entry.get("unless") not in values:
                self.expand({**values, **entry}, axes[1:], rows, first)

    def table(self, table: Values, values: Values) -> None:
        stem, title = text(values, table["stem"]), text(values, table["title"])
        columns = table["columns"] if "columns" in table else self.content["columns"]
        rows: list[Row] = []
        tasks: list[Task] = []
        for group in table.get("groups", [table]):
            self.expand({**values, **group.get("set", {})}, group.get("axes", []), rows, len(rows))

        def gather(row: Row, *run: Any) -> Variant:
            tasks.extend(row.tasks(*run))
            return Variant([])

        def done(row: Row, *run: Any) -> Variant:
            return Variant(run_tasks(self.options, "", row.tasks(*run)))

        for row in rows:  # words are tried on nothing, before hours are spent
            row.read(lambda *_: Variant([]))
            row.cells(columns, None)
        for row in rows:
            row.subject = self._subject_of(row.values)
            if "match" in row.values:
                self._match(row)
            row.read(functools.partial(gather, row))
        run_tasks(self.options, stem, tasks)
        shown = []
        for i, row in enumerate(rows):
            row.read(functools.partial(done, row))
            shown.append(row.cells(columns, rows[row.first].best))
            if "particles" in row.values:
                self._add_particles(row, row.first == i)
            if "plans" in table:
                self._add_plan(row.best.first(table["plans"]).tolist(), shown[-1])
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

    def _match(self, row: Row) -> None:
        """Looks for the setting "@" whose plans have as many steps as the row."""
        steps, seeds = row.number("steps", 0), (row.number("first_seed", 0), row.number("repeats", 1))

        def count(settings: list[str]) -> list[float]:
            tasks = []
            for setting in settings:
                flags = _with_setting({**row.values, "setting": setting}, "match")
                tasks += row.tasks(pilot_flags(flags, steps), *seeds, only_plans=True)
            cells = run_tasks(self.options, f"plans of {steps}", tasks)
            results = [Variant(cells[i : i + seeds[1]]) for i in range(0, len(cells), seeds[1])]
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

    def _add_particles(self, row: Row, is_first: bool) -> None:
        clouds = [(text(row.values, "{sampler}"), row.best.first("x"), row.best.first("y"))]
        if is_first and row.subject and row.subject.draws is not None:
            clouds.insert(0, ("exact draws", *row.subject.draws.T))
        for sampler, *places in clouds:
            for point in torch.stack(places, 1).tolist():
                x, y = (extension().significant(place, 4) for place in point)
                cells = {"target": text(row.values, "{target}"), "sampler": sampler, "x": x, "y": y}
                self.particles.append([Cell(name, value, value) for name, value in cells.items()])

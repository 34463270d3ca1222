"""Tables of an experiment: measures, settings that they choose, words, and pages of Markdown and CSV."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from jinja2 import StrictUndefined, UndefinedError
from jinja2.sandbox import SandboxedEnvironment
from torch import Tensor

from crais.native import extension
from crais.reproduce.cells import Values, Variant

_NONE = torch.full((1,), torch.nan, dtype=torch.float64)
Cell = tuple[str, str, str]  # a header, what people read, and what programs read: all digits
_JINJA = SandboxedEnvironment(variable_start_string="{", variable_end_string="}", undefined=StrictUndefined)
_JINJA.filters["significant"] = lambda number: extension().significant(number, 3)
_template = functools.cache(_JINJA.from_string)
_expression = functools.cache(functools.partial(_JINJA.compile_expression, undefined_to_none=False))
_NUMBER = re.compile(r"(.*?)(?: \+- (.*))?:([0-9])( at length)?( or reason)?")


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def _sd(values: Tensor) -> float:
    return float(values.double().std()) if values.numel() > 1 else math.nan


def _std_error(values: Tensor) -> float:
    return _sd(values) / math.sqrt(max(1, values.numel()))


def _fall(d: Tensor) -> Tensor:
    """Of divergences along a plan: the first, the most that they bend, and the slope of a line [3]."""
    step = torch.arange(len(d), dtype=torch.float64)
    x = step - step.mean()
    return torch.stack([d[0], (d / d[0] - 1 + step / step[-1]).abs().max(), (x * d).sum() / x.square().sum()])


def measures_of(
    truth: Tensor | None,  # [] or [N], nats
    has_images: bool,  # repetitions are seeds; else seeds and problems
    choosing: int,  # repetitions that only chose the setting
    upper: bool,  # of the upper bounds, whose weights have mean 1 / Z
    result: Variant,
    first: Variant | None = None,  # of the rows that are compared; they share seeds, so starting particles
) -> dict[str, float]:
    """The measures of a result, NaN where there is none. All names are there for any result.

    Errors are of estimates, over repetitions (bias, abs, rmse), or of single images (image_rmse, image_most, silent:
    off by a nat without a flag). Wrong is off by more than half a nat; caught is the share of these with a flag,
    alarms that of the others. The divergence of a plan falls from `start` by `fall` a step (least squares); `bend`
    is its largest distance from a line, relative to start.
    """

    def repetitions(each: Tensor) -> Tensor:
        return each.mean(1) if has_images else each.flatten()[choosing:]

    names = ("upper", "upper_std_error") if upper else ("log_normalizer", "std_error")
    value, std_error, flagged = *map(result.column, names), result.column("flags") != 0  # [S, N]
    calibrates, known = truth is not None and value.numel() > 1, truth is not None
    truth = torch.zeros((), dtype=torch.float64) if truth is None else truth
    error, above, apart = value - truth, _NONE, _NONE
    errors, values = repetitions(error), repetitions(value)
    base = first.column("log_normalizer") if first is not None and first is not result else _NONE[:0]
    if base.numel() == value.numel():
        others, apart = repetitions(base - truth), value - base
        above = errors.abs() - others.abs() if known else others - errors
    off, flags, se = (each.flatten() if calibrates else _NONE[:0] for each in (error, flagged, std_error))
    flags, wrong = flags == 1, off.abs() > 0.5
    falls = torch.stack([_fall(d) for d in result.each("divergence") if len(d)] or [_NONE.expand(3)])
    means = {"mean": values, "bias": errors, "above_first": above, "from_first": apart, "flagged": flagged}
    means |= {"truth": truth if known else _NONE, "abs": errors.abs() if known else _NONE}
    means |= {"ratio": (-off if upper else off).exp(), "wrong": wrong, "caught": flags[wrong], "alarms": flags[~wrong]}
    means |= {"within_1": off.abs() <= se, "within_196": off.abs() <= 1.96 * se}
    means |= {name: result.column(name) for name in ("ess", "accept_prob", "reached", "astray", "modes")}
    means |= dict(zip(("start", "bend", "fall"), falls.T.contiguous(), strict=True))
    m = {name: _mean(each) for name, each in means.items()} | {f"{name}_se": _std_error(x) for name, x in means.items()}
    m |= {name: result.mean(name) for name in ("base", "tuning", "estimating", "transitions", "training_seconds")}
    return m | {
        "done": math.nan if result.failed else 1.0,
        "evaluations": m["base"] + m["tuning"] + m["estimating"],
        "first_start": float((*result.first("divergence"), math.nan)[0]),
        "rmse": float(errors.square().mean().sqrt()) if known else math.nan,
        "t": m["above_first"] / (m["above_first_se"] or math.nan),
        "sd": _sd(values),
        "data_se": _std_error(value.mean(0)),
        "chains_se": float(std_error.square().sum().sqrt()) / std_error.numel(),
        "image_rmse": float(error.square().mean().sqrt()),
        "image_most": float(error.abs().max()),
        "silent": math.nan if result.failed else float(((error.abs() > 1) & ~flagged).sum()),
        "farthest": float(apart.abs().max()),
        "spread": _sd(off) / math.sqrt(_mean(se.square())),
        "reported_bias": 0.5 * _mean(std_error.square()) if upper else _mean(result.column("bias")),
    }


def choose(values: list[Tensor], choosing: int, truth: float) -> tuple[int, int]:
    """Between settings [S] of log Z, whose first `choosing` repetitions choose; the others report.

    The chosen one has the highest mean, which is honest since every estimate is a lower bound; the
    oracle's has the least error of the reported mean. -1 where all have failed (NaN).
    """
    means = {i: x for i, each in enumerate(values) if (x := _mean(each[:choosing])) == x}
    errors = {i: x for i, each in enumerate(values) if (x := abs(_mean(each[choosing:]) - truth)) == x}
    return max(means, key=lambda i: means[i], default=-1), min(errors, key=lambda i: errors[i], default=-1)


def is_fair(transitions: float, steps: float) -> bool:
    """True if the two are comparable: within 3%."""
    return abs(transitions - steps) <= 0.03 * steps


def match_transitions(flags: str, steps: int, count: Callable[[list[str]], list[float]]) -> tuple[str, float, int]:
    """The setting "@" in `flags` that leads to `steps` transitions, how many it leads to (0: there is
    no plan), and how many settings were tried (at most 24).

    A ratio stands after "cess:" or "ess:"; a larger value of any other number makes plans shorter. `count` returns
    the mean number of transitions of each setting's plans: inf where they are too many, NaN where there is no plan.
    The search tries a few settings, then two between the nearest on both sides, until one is fair. If none is, it
    takes the nearest; if all plans are too long or none can be made, the first, whose plans are the shortest.
    """
    # On the scale of places any real number is a setting, and the length of plans grows about
    # exponentially: a place is -log of a step, or -log(1 - ratio).
    is_ratio, is_step = "ess:@" in flags, "--max-step @" in flags
    places = [0.002, 0.05, 0.7, 2, 4, 9] if is_ratio else [0, 2, 4, 6] if is_step else [-10.0, -6, -2, 2, 6, 10]

    def setting(place: float) -> str:
        step = min(math.exp(-place), 1.0 if is_step else math.inf)
        return str(extension().significant(-math.expm1(-place), 6) if is_ratio else extension().significant(step, 4))

    best, tried, trials = places[0], 0, dict[float, float]()
    for _ in range(10):
        tried += len(places)
        found = zip(places, count([setting(place) for place in places]), strict=True)
        trials |= {place: transitions for place, transitions in found if transitions > 0}
        best = min(trials, key=lambda place: abs(trials[place] - steps), default=best)
        around = [(a, b) for a, b in pairwise(sorted(trials)) if trials[a] < steps <= trials[b]]
        if is_fair(trials.get(best, 0), steps) or not around:
            break
        low, high = around[0]
        # Where a line through log M meets log steps, and a place beyond that.
        most = 2 * steps if math.isinf(trials[high]) else trials[high]
        near = min(max(math.log(steps / trials[low]) / math.log(most / trials[low]), 0.1), 0.9)
        beyond = near + (1 if near < 0.5 else -1) * min(max(0.25 * near, 0.05), 0.2)
        places = [low + near * (high - low), low + beyond * (high - low)]
    return setting(best), trials.get(best, 0.0), tried


def text(values: Values, words: str) -> str:
    """The template `words`, where "{name}" is a value, in which others are named in turn."""
    return text(values, _template(words).render(values)) if "{" in words else words


def number(values: Values, words: str) -> float:
    """An expression of values. NaN where an entry of one, as `paper.M`, is missing or no number.

    Raises KeyError if there is no such value.
    """

    def plain(value: Any) -> Any:
        try:
            return float(text(values, value)) if isinstance(value, str) else value
        except ValueError:
            return text(values, value)

    names = {name: plain(values[name]) for name in re.findall(r"(?<![\w.])[A-Za-z]\w*", words)}
    try:
        return float(cast(Any, _expression(words)(names)))
    except (UndefinedError, TypeError, ValueError, ArithmeticError):
        return math.nan


def _fixed(value: float, digits: int) -> str:
    return str(extension().fixed(value, digits) if math.isfinite(value) else value)


def cell_of(column: str, values: Values, measures: Values, result: Variant) -> Cell:
    """The cell of a column: "header = text with {names}", or "header = expression:DECIMALS".

    An expression is of values and measures, and may have a spread ("a +- b:DECIMALS"). After it, "at
    length" tells of another number of transitions than `steps`, and "or reason" why the result has failed.
    """
    header, words = column.split(" = ", 1)
    if "{" in words:
        shown = text(values, words).strip()
        return header, shown, shown
    total, spread, places, at_length, or_reason = _NUMBER.findall(words)[0]
    both, digits = {**values, **measures}, int(places)
    shown = _fixed(value := number(both, total), digits)
    if or_reason and result.failed:
        shown = re.split("[(;:]", result.failed)[0].strip()
    elif math.isnan(value):
        shown = "-"
    elif spread:
        shown += f" +- {_fixed(number(both, spread), digits)}"
    elif at_length and not is_fair(both["transitions"], number(values, "steps")):
        shown += f" (M = {_fixed(both['transitions'], 0)})"
    else:
        return header, shown, extension().shortest(value) if math.isfinite(value) else shown
    return header, shown, shown


def say(words: str) -> None:
    """On stdout. Where its reader has gone (`| head`), the run goes on."""
    with contextlib.suppress(BrokenPipeError):
        print(words, end="", flush=True)


class Page:
    """A folder of findings. A table goes at once to stdout, to STEM.csv and to tables.md."""

    def __init__(self, folder: Path, title: str, about: str) -> None:
        self._folder, self._markdown = folder, ""
        self._add(f"# {title}\n\n{about}\n", about + "\n")

    def _add(self, markdown: str, shown: str) -> None:
        self._markdown += markdown
        extension().write_file(str(self._folder / "tables.md"), self._markdown)
        say(shown)

    def table(self, stem: str, title: str, rows: list[list[Cell]], folded: bool) -> None:
        """Adds a table if it has rows. One that is `folded`, of minor interest, is a line on stdout
        and on the page, and complete in STEM.csv."""
        if not rows:
            return
        headers, *shown = [[cell[0] for cell in rows[0]], *([cell[1] for cell in row] for row in rows)]
        file, content = self._folder / f"{stem}.csv", io.StringIO()
        csv.writer(content, lineterminator="\n").writerows([headers, *([cell[2] for cell in row] for row in rows)])
        extension().write_file(str(file), content.getvalue())
        if folded:
            count = f"{title}: {len(rows):,} rows in "
            self._add(f"\n{count}[{file.name}]({file.name})\n", f"{count}{file}\n")
            return
        markdown = f"\n## {title}\n\n"
        for row in (headers, ["---"] * len(headers), *shown):
            markdown += "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n"
        self._add(markdown, extension().table(title, headers, shown))

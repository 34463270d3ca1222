"""Tables of an experiment: their words and sums, as CSV, on stdout and on one Markdown page."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import math
import re
from pathlib import Path
from typing import Any, cast

from jinja2 import StrictUndefined, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from crais.native import extension
from crais.reproduce.cells import Values, Variant, write
from crais.reproduce.matching import is_fair

Cell = tuple[str, str, str]  # a header, what people read, and what programs read: all digits
_JINJA = SandboxedEnvironment(variable_start_string="{", variable_end_string="}", undefined=StrictUndefined)
_JINJA.filters["significant"] = lambda number: extension().significant(number, 3)
_template = functools.cache(_JINJA.from_string)
_expression = functools.cache(functools.partial(_JINJA.compile_expression, undefined_to_none=False))
_NUMBER = re.compile(r"(.*?)(?: \+- (.*))?:([0-9])( at length)?( or reason)?")


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
    both, digits, fixed = {**values, **measures}, int(places), extension().fixed
    shown = fixed(value := number(both, total), digits)
    if or_reason and result.failed:
        shown = re.split("[(;:]", result.failed)[0].strip()
    elif math.isnan(value):
        shown = "-"
    elif spread:
        shown += f" +- {fixed(number(both, spread), digits)}"
    elif at_length and not is_fair(both["transitions"], number(values, "steps")):
        shown += f" (M = {fixed(both['transitions'], 0)})"
    else:
        return header, shown, extension().shortest(value)
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
        write(self._folder / "tables.md", self._markdown)
        say(shown)

    def table(self, stem: str, title: str, rows: list[list[Cell]], folded: bool) -> None:
        """Adds a table if it has rows. One that is `folded`, of minor interest, is a line on stdout
        and on the page, and complete in STEM.csv."""
        if not rows:
            return
        headers, *shown = [[cell[0] for cell in rows[0]], *([cell[1] for cell in row] for row in rows)]
        file, content = self._folder / f"{stem}.csv", io.StringIO()
        csv.writer(content, lineterminator="\n").writerows([headers, *([cell[2] for cell in row] for row in rows)])
        write(file, content.getvalue())
        if folded:
            count = f"{title}: {len(rows):,} rows in "
            self._add(f"\n{count}[{file.name}]({file.name})\n", f"{count}{file}\n")
            return
        markdown = f"\n## {title}\n\n"
        for row in (headers, ["---"] * len(headers), *shown):
            markdown += "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n"
        self._add(markdown, extension().table(title, headers, shown))

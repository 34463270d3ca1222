"""The words of an experiment: texts with names in them, sums, and columns of tables."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any, NamedTuple

import numpy as np

from crais.errors import DataError
from crais.native import extension
from crais.reproduce.cells import Values, Variant
from crais.reproduce.matching import is_fair

# What a sum may be made of. Nothing of it can call.
_SUM = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub,
        ast.Subscript, ast.Name, ast.Load, ast.Constant)  # fmt: skip
_COLUMN = re.compile(r"(.*?) = (?:(.*?)(?: \+- (.*))?:([0-9])( at length)?( or reason)?|(.*))")


def text(values: Values, words: Any, depth: int = 0) -> str:
    """The words with each "{name}" replaced by that value, in which names are replaced too, and each
    "{=sum}" by its number to three digits. Raises DataError if there is no such value."""
    if not isinstance(words, str):
        raise DataError(f"{words} is to be a text")
    if depth > 16:
        raise DataError(f"'{words}' refers to itself")

    def part(place: re.Match[str]) -> str:
        if place[1]:
            return str(extension().significant(number(values, place[2], {}, depth + 1), 3))
        if place[2] not in values:
            raise DataError(f"nothing is called '{place[2]}'")
        value = values[place[2]]
        return text(values, value, depth + 1) if isinstance(value, str) else json.dumps(value)

    return re.sub(r"\{(=?)([^{}]*)\}", part, words)


def number(values: Values, words: str, measures: Values, depth: int = 0) -> float:
    """A sum of numbers, measures and values by + - * / and parentheses.

    `paper.M` and `paper[row][0]` are entries of the value `paper`, the latter under the value of
    `row`. NaN for what is missing there, and for values that are no numbers. Raises DataError for other
    words.
    """

    def named(name: str) -> Any:
        if name not in measures and name not in values:
            raise DataError(f"'{name}' is neither a measure nor a value")
        value = measures[name] if name in measures else values[name]
        value = text(values, value, depth + 1) if isinstance(value, str) else value
        try:
            return value if isinstance(value, int) else np.float64(value)
        except (ValueError, TypeError):
            return value

    try:
        tree = ast.parse(re.sub(r"\.([A-Za-z]\w*)", r"['\1']", words.strip()), mode="eval")
        parts = list(ast.walk(tree))
        code = compile(tree, "", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        parts = []
    if not parts or not all(isinstance(part, _SUM) for part in parts):
        raise DataError(f"'{words}' is neither a sum nor a value")
    names = {part.id: named(part.id) for part in parts if isinstance(part, ast.Name)}
    try:
        with np.errstate(all="ignore"):
            return float(eval(code, {"__builtins__": {}}, names))
    except (LookupError, TypeError, ValueError, ArithmeticError, MemoryError):
        return math.nan


def integer(values: Values, name: str, otherwise: int) -> int:
    """The value, rounded. Raises DataError where it is no number."""
    if name not in values:
        return otherwise
    if not math.isfinite(found := number(values, name, {})):
        raise DataError(f"'{name}' is to be a number, not {json.dumps(values[name])}")
    return round(found)


class Cell(NamedTuple):
    """An entry of a table, in one form for people and one with all digits for programs."""

    header: str
    text: str
    csv: str
    is_number: bool = False


def cell_of(column: Any, values: Values, result: Variant, measures: Values) -> Cell:
    """The cell of a column: "header = text", or "header = sum:DECIMALS" of values and measures.

    A sum may have a spread ("a +- b:DECIMALS"). After it, "at length" tells of another number of
    transitions than `steps`, and "or reason" why the result has failed. Raises DataError for another
    column.
    """
    if not isinstance(column, str) or (parts := _COLUMN.fullmatch(column)) is None:
        raise DataError(f"a column is 'header = value', not '{column}'")
    header, total, spread, decimals, at_length, or_reason, words = parts.groups()
    if decimals is None:
        shown = text(values, words).strip()
        return Cell(header, shown, shown)

    def fixed(value: float, places: int = int(decimals)) -> str:
        return str(extension().fixed(value, places))

    value, transitions = number(values, total, measures), measures["transitions"]
    shown, exact = fixed(value), str(extension().shortest(value))
    if or_reason and result.failed:
        shown = exact = re.split("[(;:]", result.failed)[0].strip()
    elif math.isnan(value):
        shown = exact = "-"
    elif spread:
        shown = exact = f"{shown} +- {fixed(number(values, spread, measures))}"
    elif at_length and not is_fair(transitions, integer(values, "steps", 0)):
        shown = exact = f"{shown} (M = {fixed(transitions, 0)})"
    return Cell(header, shown, exact, True)

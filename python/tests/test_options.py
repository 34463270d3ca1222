"""What is made of the programs' flags: python/crais/_options.pyi, and tables of docs/reference.md.

PYTHONPATH=build/release/python python3 python/tests/test_options.py     # writes both
"""

import inspect
import re
import textwrap
from pathlib import Path

import crais
from crais import native

ROOT = Path(__file__).resolve().parents[2]
TYPES = ROOT / "python/crais/_options.pyi"
PAGE = ROOT / "docs/reference.md"
TABLES = re.compile(r"(?<=<!-- by python/tests/test_options.py -->\n).*?(?=<!-- end -->)", re.DOTALL)

HEAD = '''"""The programs' flags, as keyword arguments. python/tests/test_options.py writes this file."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch
from typing_extensions import TypedDict

from crais.captured import Function, Latent
from crais.likelihoods import Likelihood
from crais.priors import Prior
'''


def flags_of(program):
    """Name to what the program says of the flag."""
    return {flag["name"]: flag for flag in native.extension().options(program)}


# Types.


def type_of(name, flag):
    """The type of a flag's value in Python; None is as if it were left out."""
    found = flag["type"]
    if flag["choices"]:
        values = [int(one) if one.isdecimal() else one for one in flag["choices"]]
        found = f"Literal[{', '.join(map(repr, values))}]".replace("'", '"')
    elif name == "device":
        found = "str | torch.device"
    elif flag["value"].startswith(("DIR", "FILE")):
        found = "str | PathLike[str]"
    if flag["word"]:
        found += f' | Literal["{flag["word"]}"]'
    if flag["many"]:
        found += f" | Sequence[{found}]"
    return f"{found} | None"


def typed_dict(name, types):
    entries = [f'"{key}": {kind},'.replace(" ", "\0") for key, kind in types.items()]
    lines = textwrap.wrap(" ".join(entries), 116, break_long_words=False, break_on_hyphens=False)
    body = "".join(f"    {line}\n".replace("\0", " ") for line in lines)
    return f'{name} = TypedDict("{name}", {{\n{body}}}, total=False)\n'


def without(entries, others):
    return {name: entry for name, entry in entries.items() if name not in others}


def types_of(program, function):
    """Types of the flags that are neither arguments of the function nor of a terminal."""
    names = {name.replace("-", "_"): flag for name, flag in flags_of(program).items()}
    own = [*inspect.signature(function).parameters, *native.TERMINAL]
    return {name: type_of(name, flag) for name, flag in names.items() if name not in own}


def types_file():
    images = types_of("eval-loglik", crais.evaluate)
    densities = types_of("estimate-logz", crais.log_normalizer)
    both = dict(item for item in images.items() if item in densities.items())
    simulate = images.pop("simulate")  # which certify says by num_images
    model = {
        name: one.annotation
        for name, one in inspect.signature(crais.evaluate).parameters.items()
        if one.kind is one.KEYWORD_ONLY and name != "progress"
    }
    parts = [
        typed_dict("_Options", both),
        typed_dict("_OfImages", without(images, both)),
        typed_dict("_OfModels", model),
        typed_dict("_OfDensities", without(densities, both)),
        typed_dict("TrainOptions", types_of("train-vae", crais.train_vae)),
        f"class EvaluateOptions(_Options, _OfImages, total=False):\n    simulate: {simulate}\n",
        "class CertifyOptions(_Options, _OfImages, _OfModels): ...",
        "class LogNormalizerOptions(_Options, _OfDensities): ...\n",
    ]
    return "\n".join([HEAD, *parts])


# Tables.


def row(name, flag):
    cell = lambda text: text.replace("|", "\\|")
    heads = [name, name.replace("problem", "image")] if re.search("per-|pilot-p", name) else [name]
    shown = ", ".join(f"`--{one} {flag['value']}`".replace(" `", "`") for one in sorted({*heads}))
    default = f"`{','.join(flag['default'])}`" if flag["default"] else ""
    text = re.sub(r"(--[a-z][a-z-]*)", r"`\1`", flag["help"].split("\n")[0].rstrip(":"))
    return re.sub(" +", " ", f"| {cell(shown)} | {default} | {cell(text)} |")


def table(title, flags):
    rows = [row(name, flag) for name, flag in flags.items()]
    return "\n".join(["", f"| {title} | default | |", "|---|---|---|", *rows])


def tables():
    of_problem = lambda text: text.replace("an image", "a problem").replace("image", "problem")
    images, densities = flags_of("eval-loglik"), flags_of("estimate-logz")
    same = {}
    for name, flag in images.items():
        other = densities.get(of_problem(name))
        said = {**flag, "name": of_problem(name), "help": of_problem(flag["help"])}
        if other is not None and (other == said or other == {**said, "help": flag["help"]}):
            same[of_problem(name)] = other
    own = {name: flag for name, flag in images.items() if of_problem(name) not in same}
    return "\n".join(
        [
            table("both programs", same),
            table("`eval-loglik`", own),
            table("`estimate-logz`", without(densities, same)),
            table("`train-vae`", flags_of("train-vae")),
            "",
            "",
        ]
    )


def page():
    return TABLES.sub(lambda _: tables(), PAGE.read_text(encoding="utf-8"))


# What they promise.


def test_the_types_are_those_of_the_flags(compiled):
    assert TYPES.read_text(encoding="utf-8") == types_file()


def test_the_page_is_that_of_the_flags(compiled):
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    TYPES.write_text(types_file(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")

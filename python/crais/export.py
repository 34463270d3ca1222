"""`python -m crais.export module:function -o FILE`: exports what a function of yours describes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from crais.exporting import ExportError, export


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crais.export",
        description="Compiles a model for eval-loglik. FUNCTION takes no argument and returns the "
        "keyword arguments of crais.export: decoder, likelihood, latent, image_shape and others.",
    )
    parser.add_argument("source", metavar="MODULE:FUNCTION")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a .pt2 file")
    parser.add_argument("--march", help="the processor to compile for, as x86-64-v3 (this one)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    arguments = parser.parse_args()
    module, _, function = arguments.source.partition(":")
    if not function:
        parser.error("MODULE:FUNCTION is asked for, as my_model:describe")
    if os.path.exists(arguments.out) and not arguments.overwrite:
        parser.error(f"{arguments.out} is there already; --overwrite replaces it")
    sys.path.insert(0, os.getcwd())
    try:
        described = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError) as error:
        parser.error(str(error))
    try:
        export(arguments.out, march=arguments.march, **described)
    except ExportError as error:
        print(f"crais.export: {error}", file=sys.stderr)
        return 65
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

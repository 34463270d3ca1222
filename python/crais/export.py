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
        description="Compiles a model into a file for eval-loglik. FUNCTION takes no argument and "
        "returns a dictionary of crais.export's arguments: decoder, likelihood, latent, "
        "image_shape and others.",
    )
    parser.add_argument("source", metavar="MODULE:FUNCTION")
    parser.add_argument(
        "-o",
        "--out",
        required=True,
        metavar="FILE",
        help="the file to write: native code, or TorchScript if its name ends in .pt",
    )
    parser.add_argument(
        "--march", help="the processor to compile for, such as x86-64-v3; default: this processor"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    arguments = parser.parse_args()
    module, _, function = arguments.source.partition(":")
    if not function:
        parser.error(f"{arguments.source}: give MODULE:FUNCTION, such as my_model:describe")
    if os.path.exists(arguments.out) and not arguments.overwrite:
        parser.error(f"{arguments.out} exists already; --overwrite replaces it")
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

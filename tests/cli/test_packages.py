"""A compiled package of crais.export: exact values, the same bytes, files to be refused."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .exported import Exports, exported
from .programs import Program, same


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Exports:
    return exported(tmp_path_factory.mktemp("exports"), "compiled")


def test_is_exact(eval_loglik: Program, exports: Exports) -> None:
    model = exports.model("conditional.pt2")
    flags = "--base laplace --steps 16 --quiet --out out".split()
    eval_loglik.succeed(model, *exports.labelled, *flags)
    exports.agree("out")
    flags = "--simulate 30 --method bidirectional --base laplace --steps 16 --quiet".split()
    eval_loglik.succeed(model, *flags)


# --- No file has forces in bfloat16.
def test_files_have_no_forces(eval_loglik: Program, exports: Exports) -> None:
    args = [exports.model("conditional.pt2"), *exports.labelled]
    args += "--base prior --steps 64 --quiet --force-dtype".split()
    words = ["--force-dtype bfloat16", "leave it out"]
    eval_loglik.expect(64, *words, args=[*args, "bfloat16"])
    eval_loglik.succeed(*args, "auto")


# --- The same run gives the same bytes.
def test_the_same_bytes(eval_loglik: Program, exports: Exports) -> None:
    flags = "--limit 10 --chunk 4 --quiet".split()
    run = [exports.model("conditional.pt2"), *exports.labelled, *flags]
    for name in ("first", "second"):
        eval_loglik.succeed(*run, "--threads", "2", "--out", name)
    same("first/per_image.csv", "second/per_image.csv")


# --- Packages that must not run.
def spoil(
    package: Path,
    description: dict[str, Any] | None = None,
    arrays: Callable[[bytes], bytes] = lambda content: content,
    without: str | None = None,
) -> None:
    """spoiled.pt2: the package with another description, without the entries of a suffix."""
    with zipfile.ZipFile(package) as whole, zipfile.ZipFile("spoiled.pt2", "w") as copy:
        for entry in whole.namelist():
            content = whole.read(entry)
            if entry.endswith("crais.safetensors"):
                length = int.from_bytes(content[:8], "little")
                header = json.loads(content[8 : 8 + length])
                described = json.loads(header["__metadata__"]["crais"]) | (description or {})
                header["__metadata__"]["crais"] = json.dumps(described)
                text = json.dumps(header).encode()
                content = len(text).to_bytes(8, "little") + text + arrays(content[8 + length :])
            if not (without and entry.endswith(without)):
                copy.writestr(entry, content)


@pytest.mark.parametrize(
    ("words", "description"),
    [
        (["PyTorch", "2.1.0", "export the model again"], {"torch": "2.1.0"}),
        (["ppc64le", "export the model again"], {"machine": "ppc64le"}),
        (["avx9000", "export the model again"], {"cpu_flags": ["avx9000"]}),
        (["check.z"], {"latent": 5}),
        (["data_shape"], {"data_shape": [1 << 30, 1 << 30]}),
        (["control characters"], {"name": "\x1b[2J"}),
        (["batch"], {"batch": 0}),
        (["check.grad_bfloat16"], {"functions": ["joint", "joint_bfloat16"]}),
    ],
)
def test_refuses_packages_that_lie(
    eval_loglik: Program, exports: Exports, words: list[str], description: dict[str, Any]
) -> None:
    spoil(exports.model("conditional.pt2"), description)
    args = ["spoiled.pt2", *exports.labelled]
    eval_loglik.expect(65, *words, args=args)


def test_refuses_packages_that_miss_something(eval_loglik: Program, exports: Exports) -> None:
    whole = exports.model("conditional.pt2")
    args = ["spoiled.pt2", *exports.labelled]
    spoil(whole, without="crais.safetensors")
    eval_loglik.expect(65, "crais.safetensors", args=args)
    spoil(whole, arrays=lambda content: bytes(len(content)))
    eval_loglik.expect(65, "does not compute here", args=args)
    spoil(whole, without=".so")
    eval_loglik.expect(65, "cannot be loaded", args=args)
    content = whole.read_bytes()
    Path("spoiled.pt2").write_bytes(content[: len(content) // 2])
    eval_loglik.expect(65, "spoiled.pt2", args=args)


def test_a_package_has_one_precision(eval_loglik: Program, exports: Exports) -> None:
    args = [exports.model("conditional.pt2"), *exports.labelled, "--dtype", "float64"]
    eval_loglik.expect(64, "float32", args=args)

"""Models that crais.export wrote, evaluated: exact values, certificates, files to be refused."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .programs import SOURCE, Done, Program, environment, lines, same

MODELS = ["weights.pt2", "linear.pt"]


@dataclass
class Exports:
    """What exports/models.py makes, all in one run."""

    python: str
    folder: Path

    def run(self, *args: str | Path) -> Done:
        here = Path(__file__).with_name("exports")
        paths = [SOURCE / "python", here]
        own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "CXX": str(here / "linker")}
        done = subprocess.run(
            [self.python, "-W", "ignore", *args],
            cwd=self.folder,
            env=environment(own),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done

    def model(self, name: str) -> Path:
        return self.folder / name

    def images(self, name: str) -> str:
        """Images, as --data takes them."""
        return f"{self.folder / 'x.npz'}:{name}".rstrip(":")

    @property
    def labelled(self) -> list[str]:
        """Images, and the labels that moved them."""
        return ["--data", self.images("shifted"), "--labels", self.images("y")]

    def agree(self, out: str) -> None:
        """Every estimate is within 5 of its standard errors of the truth."""
        exact = [float(line) for line in lines(self.folder / "exact.txt")]
        rows = list(csv.DictReader(lines(f"{out}/per_image.csv")))
        assert len(rows) == len(exact) == 20
        for row, truth in zip(rows, exact):
            apart = abs(float(row["log_likelihood"]) - truth)
            assert apart < 5 * float(row["std_error"]) + 1e-4, (row, truth)


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Exports:
    """Exports by a Python with a PyTorch of the LibTorch that crais was built with."""
    said = Program("eval-loglik").succeed("--version").stdout
    found = re.search(r"LibTorch (\d+)\.(\d+)", said)
    assert found, said
    wanted = f"{found[1]}.{found[2]}"
    script = 'import torch; print(".".join(torch.__version__.split(".")[:2]))'
    for python in (str(SOURCE / ".venv/bin/python"), sys.executable, "python3"):
        try:
            command = [python, "-W", "ignore", "-c", script]
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            continue
        if done.stdout.strip() == wanted:
            exports = Exports(python, tmp_path_factory.mktemp("exports"))
            exports.run("-m", "models")
            return exports
    pytest.skip(f"no Python has PyTorch {wanted}")


# --- The exact log p(x), from every base and with every bound.
@pytest.mark.parametrize("base", ["laplace", "prior"])
@pytest.mark.parametrize("name", MODELS)
def test_is_exact(eval_loglik: Program, exports: Exports, name: str, base: str) -> None:
    data = ["--data", exports.images("test")]
    flags = f"--base {base} --steps 64 --out out --quiet".split()
    eval_loglik.succeed(exports.model(name), *data, *flags)
    exports.agree("out")


@pytest.mark.parametrize("name", MODELS)
def test_certifies_what_it_simulates(eval_loglik: Program, exports: Exports, name: str) -> None:
    flags = "--simulate 30 --method bidirectional --base laplace --steps 16 --format json".split()
    said = eval_loglik.succeed(exports.model(name), *flags, "--quiet").stdout
    (result,) = json.loads(said)["results"]
    assert abs(result["log_likelihood"] + 6.6) < 3, result


@pytest.mark.parametrize("name", MODELS)
def test_takes_its_images_alone(eval_loglik: Program, exports: Exports, name: str) -> None:
    model, test = exports.model(name), exports.images("test")
    eval_loglik.succeed(model, "--data", test, "--dry-run")
    args = [model, "--data", exports.images("wide")]
    eval_loglik.expect(65, "images are 7", "2 x 3", args=args)
    args = [model, "--data", exports.images("")]
    eval_loglik.expect(64, '"far", "shifted", "test", "wide", "y"', args=args)
    args = [model, "--data", test, "--labels", exports.images("y")]
    eval_loglik.expect(64, "not conditional", args=args)


# --- TorchScript of another program: exact too, once it is said what its outputs mean.
def test_torchscript_of_others(eval_loglik: Program, exports: Exports) -> None:
    plain = exports.model("plain.pt")
    test = ["--data", exports.images("test")]
    gaussian = [plain, "--likelihood", "gaussian:0.5", "--latent", "4"]
    flags = "--base laplace --steps 16 --out out-plain".split()
    eval_loglik.succeed(*gaussian, *test, *flags)
    exports.agree("out-plain")
    flags = "--simulate 30 --method bidirectional --base laplace --steps 16 --quiet".split()
    eval_loglik.succeed(*gaussian, *flags)
    words = ["plain.pt: TorchScript that does not describe itself", "--likelihood", "--latent"]
    eval_loglik.expect(64, *words, args=[plain, *test])
    args = [*gaussian[:-1], "5", *test]
    eval_loglik.expect(65, "'forward' fails", args=args)


def test_what_a_file_says_no_flag_says_otherwise(eval_loglik: Program, exports: Exports) -> None:
    data = ["--data", exports.images("test"), "--steps", "4"]
    args = [exports.model("weights.pt2"), "--likelihood", "bernoulli", *data]
    eval_loglik.expect(64, "weights.pt2", "--likelihood does nothing", args=args)


# --- p(x | y): images that are moved by what their labels say have the same log-likelihoods.
@pytest.mark.parametrize("name", ["conditional.pt", "conditional.pt2"])
def test_labels_move_images(eval_loglik: Program, exports: Exports, name: str) -> None:
    model, test = exports.model(name), exports.images("test")
    flags = "--base laplace --steps 16 --quiet --out out".split()
    eval_loglik.succeed(model, *exports.labelled, *flags)
    exports.agree("out")
    flags = "--simulate 30 --method bidirectional --base laplace --steps 16 --quiet".split()
    eval_loglik.succeed(model, *flags)
    given = [model, "--data", test]
    eval_loglik.expect(64, "--labels FILE", "conditional", args=given)
    args = [*given, "--labels", exports.images("far")]
    eval_loglik.expect(65, "the model's are one number", args=args)
    args = [*given, "--labels", exports.images("wide")]
    eval_loglik.expect(65, "3 labels for 20 images", args=args)


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


# --- The zoo's script that needs no data and no training: its mean is exact.
def test_the_zoo_is_exact(eval_loglik: Program, exports: Exports) -> None:
    script = SOURCE / "examples/models/linear_gaussian.py"
    said = exports.run(script, Path("zoo.pt2").absolute()).stdout
    flags = "--data zoo.npy --base laplace --quiet --format json".split()
    (result,) = json.loads(eval_loglik.succeed("zoo.pt2", *flags).stdout)["results"]
    exact = float(said.split("=")[-1])
    assert abs(result["log_likelihood"] - exact) < 1e-3, (result, exact)


@pytest.mark.filterwarnings("error")
def test_the_zoo_compiles() -> None:
    for script in (SOURCE / "examples/models").glob("*.py"):
        compile(script.read_text(), str(script), "exec")


# --- What crais.export refuses, and why; the same checks refuse models in memory
# (python/tests/test_calls.py).
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("training", ["training mode"]),
        ("infinite", ["not finite"]),
        ("no pixels", ["image_shape"]),
        ("no likelihood", ["a decoder with its likelihood"]),
        ("a bad encoder", ["the encoder must return"]),
        ("branches", ["cannot be traced", "depends on data"]),
    ],
)
def test_export_refuses(exports: Exports, case: str, words: list[str]) -> None:
    said = json.loads(exports.model("refused.json").read_text())[case]
    for word in words:
        assert word in said
    assert not list(exports.folder.glob("refused.pt*")), "a refused model left a file"

"""Models that crais.export wrote, evaluated: exact values, certificates, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .exported import Exports, exported
from .programs import SOURCE, Program

MODELS = ["weights.pt2", "linear.pt"]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Exports:
    return exported(tmp_path_factory.mktemp("exports"), "plain")


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
    eval_loglik.expect(64, '"far", "later", "shifted", "test", "wide", "y"', args=args)
    args = [model, "--data", test, "--labels", exports.images("y")]
    eval_loglik.expect(64, "not conditional", args=args)


def test_what_a_file_says_no_flag_says_otherwise(eval_loglik: Program, exports: Exports) -> None:
    data = ["--data", exports.images("test"), "--steps", "4"]
    args = [exports.model("weights.pt2"), "--likelihood", "bernoulli", *data]
    eval_loglik.expect(64, "weights.pt2", "--likelihood does nothing", args=args)


# --- p(x | y): images that are moved by what their labels say have the same log-likelihoods.
def test_labels_move_images(eval_loglik: Program, exports: Exports) -> None:
    model, test = exports.model("conditional.pt"), exports.images("test")
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
    args = [*given, "--labels", exports.images("later")]
    eval_loglik.expect(65, "label 2 is 3; the model knows 0 to 2", args=args)


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

"""Which flags each kind of model and of images takes: all pairs, on the command line.

A flag that does nothing is an error. docs/reference.md has the table that is tested here;
tests/programs/idle_flags_test.cpp tests the flags of estimates.
"""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import crais
from crais import programs

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference.md"
OF_MODELS = {"likelihood": "gaussian:1", "latent": 4}
OF_IMAGES = {"data": "images.npy", "labels": "labels.npy", "data-dir": "mnist", "split": "test",
             "binarisation": "static:0", "scale": 255, "dequantise": "uniform:0", "limit": 5,
             "indices": "2:9", "simulate": 20}  # fmt: skip
KINDS = {"mnist": [], "array": ["data"], "simulated": ["simulate"]}  # by which flags they are chosen


def pairs():
    """A kind of images, a flag, and whether that does something for them."""
    table = REFERENCE.read_text().partition("| flag | MNIST |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`--.*?) \|(.*?)\|(.*?)\|(.*?)\|$", table, re.MULTILINE)
    return [
        (kind, flag, bool(cell.strip()))
        for flags, *cells in rows
        for flag in re.findall("--([a-z-]+)", flags)
        for kind, cell in zip(KINDS, cells, strict=True)
    ]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Exit code and error of `eval-loglik --dry-run` under these flags."""
    pytest.importorskip("crais._built")
    folder, program = tmp_path_factory.mktemp("flags"), programs.library() / "crais"
    torch.manual_seed(0)
    decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 784)).eval()
    crais.export(folder / "exported.pt", decoder=decoder, likelihood=crais.Bernoulli(), latent=4, image_shape=(784,))
    torch.jit.trace(decoder, torch.zeros(3, 4)).save(folder / "script.pt")
    made = "train-vae --data synthetic:300 --hidden 8 --latent 4 --epochs 1 --quiet --out".split()
    subprocess.run([*made, folder / "vae"], executable=program, check=True, capture_output=True)
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28)).astype("uint8")
    np.save(folder / "images.npy", pixels)
    np.save(folder / "labels.npy", np.zeros(60, "int64"))
    (folder / "mnist").mkdir()
    sizes = np.array([2051, 60, 28, 28], ">i4").tobytes()
    for name in ("t10k", "train"):
        (folder / "mnist" / f"{name}-images-idx3-ubyte").write_bytes(sizes + pixels.tobytes())

    def run(model, flags):
        command = ["eval-loglik", model, *(f"--{name}={flags[name]}" for name in flags), "--dry-run"]
        env = {"CRAIS_DATA": str(folder / "mnist"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, executable=program, capture_output=True, text=True, cwd=folder, env=env)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("flag", OF_MODELS)
@pytest.mark.parametrize("model", ["vae/vae.safetensors", "exported.pt", "script.pt"])
def test_flags_about_models(evaluated, model, flag):
    needed = OF_MODELS if model == "script.pt" else {flag: OF_MODELS[flag]}
    code, said = evaluated(model, {**needed, "simulate": 3})
    assert code == 0 if model == "script.pt" else code == 64 and f"{model}: --{flag} does nothing for" in said, said
    code, said = evaluated(model, {**needed, "simulate": 3, "likelihood": "rubbish"})
    assert code == 64 and "likelihood" in said


@pytest.mark.parametrize(("kind", "flag", "does_something"), pairs())
def test_flags_about_images(evaluated, kind, flag, does_something):
    chosen = [*KINDS[kind], flag]
    if flag == "scale" and kind != "simulated":  # it is for pixels that stay grey
        chosen.append("dequantise")
    elif kind == "array" and flag not in ("binarisation", "dequantise"):
        chosen.append("binarisation")
    code, said = evaluated("script.pt", OF_MODELS | {name: OF_IMAGES[name] for name in chosen})
    if flag == "labels" and does_something:
        assert code == 64 and "not conditional" in said  # of this model
    else:
        assert code == 0 if does_something else code == 64 and f"--{flag} does nothing for" in said, said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"data": "images.npy", "simulate": 3}, "--data does nothing for images drawn from the model"),
        ({"data": "images.npy", "split": "train"}, "--split does nothing for an array"),
        ({"scale": 255}, "--scale is for --data, or beside --dequantise"),
        ({"dequantise": "uniform:0", "binarisation": "none"}, "exclude each other"),
        ({"data": "images.npy", "scale": 255, "binarisation": "static:0"}, "exclude each other"),
    ],
)
def test_flags_that_do_nothing_beside_others(evaluated, flags, words):
    code, said = evaluated("script.pt", OF_MODELS | flags)
    assert code == 64 and words in said


def test_python_names_options_that_do_nothing(compiled):
    with pytest.raises(crais.UsageError, match="^steps does nothing where no method anneals"):
        crais.log_normalizer("normal:2", method="iwae:9", steps=4, progress=False)
    with pytest.raises(crais.UsageError, match="^leapfrog does nothing for a kernel that takes"):
        crais.log_normalizer("normal:2", kernel="mala", leapfrog=2, progress=False)

"""Which flags each kind of model and of images takes: all pairs, on the command line.

A flag that does nothing is an error. docs/reference.md has this table; tests/programs/idle_flags_test.cpp
tests the flags of estimates.
"""

import subprocess

import numpy as np
import pytest
import torch
from torch import nn

import crais
from crais import programs

MODELS = {  # of what the file is: which of the flags about models it takes
    "checkpoint": set(),
    "exported.pt": set(),
    "exported.pt2": set(),
    "script.pt": {"likelihood", "latent"},
}
IMAGES = {  # of where images are from: which of the flags about images it takes
    "mnist": {"labels", "data-dir", "split", "binarisation", "scale", "dequantise", "limit", "indices"},
    "array": {"data", "labels", "binarisation", "scale", "dequantise", "limit", "indices"},
    "simulated": {"limit", "indices", "simulate"},
}
ABOUT_MODELS = {"likelihood": "bernoulli", "latent": 4}
OF_GAUSSIAN = {"likelihood": "gaussian:1", "latent": 4}
ABOUT_IMAGES = {"data": "images.npy", "labels": "labels.npy", "data-dir": "mnist", "split": "test",
                "binarisation": "static:0", "scale": 255, "dequantise": "uniform:0", "limit": 5,
                "indices": "2:9", "simulate": 20}  # fmt: skip


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 784))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of each kind of model and of images."""
    folder = tmp_path_factory.mktemp("flags")
    torch.manual_seed(0)
    vae = Vae().eval()
    described = {"likelihood": crais.Bernoulli(), "latent": 4, "image_shape": (784,)}
    for name in ("exported.pt", "exported.pt2"):
        crais.export(folder / name, decoder=vae.decoder, **described)
    torch.jit.trace(vae.decoder, torch.zeros(3, 4)).save(folder / "script.pt")
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28)).astype("uint8")
    np.save(folder / "images.npy", pixels)
    np.save(folder / "labels.npy", np.zeros(60, "int64"))
    (folder / "mnist").mkdir()
    sizes = np.array([2051, 60, 28, 28], ">i4").tobytes()
    for name in ("t10k", "train"):
        (folder / "mnist" / f"{name}-images-idx3-ubyte").write_bytes(sizes + pixels.tobytes())
    return folder


@pytest.fixture(scope="module")
def evaluated(folder):
    """Exit code and error of `eval-loglik --dry-run` under these flags."""
    pytest.importorskip("crais._built")
    program = programs.library() / "crais"
    made = "train-vae --data synthetic:300 --hidden 8 --latent 4 --epochs 1 --quiet --out".split()
    subprocess.run([*made, folder / "vae"], executable=program, check=True, capture_output=True)
    (folder / "vae" / "vae.safetensors").rename(folder / "checkpoint")

    def run(model, flags):
        done = subprocess.run(
            ["eval-loglik", model, *(f"--{name}={flags[name]}" for name in flags), "--dry-run"],
            executable=program, capture_output=True, text=True, cwd=folder,
            env={"CRAIS_DATA": str(folder / "mnist"), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        return done.returncode, done.stderr

    return run


def needed(model):
    """What the file does not say itself."""
    return ABOUT_MODELS if model == "script.pt" else {}


@pytest.mark.parametrize("flag", ABOUT_MODELS)
@pytest.mark.parametrize("model", MODELS)
def test_flags_about_models(evaluated, model, flag):
    flags = {**needed(model), "simulate": 3, flag: ABOUT_MODELS[flag]}
    code, said = evaluated(model, flags)
    if flag in MODELS[model]:
        assert code == 0, said
    else:
        assert code == 64 and f"{model}: --{flag} does nothing for" in said


def test_a_value_that_is_no_likelihood_is_refused_by_all(evaluated):
    for model in MODELS:
        code, said = evaluated(model, {**needed(model), "simulate": 3, "likelihood": "rubbish"})
        assert code == 64 and "likelihood" in said


def images_under(images, flag):
    """Flags that choose such images, with a value for `flag`."""
    chosen = {"mnist": [], "array": ["data"], "simulated": ["simulate"]}[images]
    if flag == "scale" and images != "simulated":  # it is for pixels that stay grey
        chosen = [*chosen, "dequantise"]
    elif images == "array" and flag not in ("binarisation", "dequantise"):
        chosen = [*chosen, "binarisation"]
    return {name: ABOUT_IMAGES[name] for name in [*chosen, flag]}


@pytest.mark.parametrize(
    ("images", "flag"),
    [
        (images, flag)
        for images in IMAGES
        for flag in ABOUT_IMAGES  # less those that choose other images
        if (images, flag) != ("mnist", "data") and (flag != "simulate" or images == "simulated")
    ],
)
def test_flags_about_images(evaluated, images, flag):
    code, said = evaluated("script.pt", OF_GAUSSIAN | images_under(images, flag))
    if flag == "labels" and flag in IMAGES[images]:
        assert code == 64 and "not conditional" in said  # of this model
    elif flag in IMAGES[images]:
        assert code == 0, said
    else:
        assert code == 64 and f"--{flag} does nothing for" in said


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
    code, said = evaluated("script.pt", OF_GAUSSIAN | flags)
    assert code == 64 and words in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"likelihood": "bernoulli"}, "likelihood does nothing for"),
        ({"latent": 4}, "latent does nothing for"),
        ({"kernel": "mala", "leapfrog": 2}, "^leapfrog does nothing for a kernel that takes"),
        ({"images": torch.zeros(3, 784), "simulate": None, "split": "train"}, "images or split"),
    ],
)
def test_python_refuses_what_does_nothing(compiled, folder, options, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.evaluate(folder / "exported.pt", **({"simulate": 3, "progress": False} | options))


def test_python_refuses_steps_where_no_method_anneals(compiled):
    with pytest.raises(crais.UsageError, match="^steps does nothing where no method anneals"):
        crais.log_normalizer("normal:2", method="iwae:9", steps=4, progress=False)

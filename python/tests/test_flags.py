"""Which flags each kind of model and of images takes: all pairs, on the command line.

A flag that does nothing is an error. docs/reference.md has this table.
"""

import json
import re
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

import crais

MODELS = {  # of what the file is: which of the flags about models it takes
    "checkpoint": set(),
    "exported.pt": set(),
    "exported.pt2": set(),
    "state_dict.pt": {"decoder", "encoder", "activation", "likelihood", "image-shape"},
    "script.pt": {"likelihood", "latent"},
}
IMAGES = {  # of where images are from: which of the flags about images it takes
    "mnist": {"labels", "data-dir", "split", "binarisation", "scale", "dequantise", "limit", "indices"},
    "array": {"data", "labels", "binarisation", "scale", "dequantise", "limit", "indices"},
    "simulated": {"limit", "indices", "simulate"},
}
ABOUT_MODELS = {
    "decoder": "decoder.0,decoder.2",
    "encoder": "none",
    "activation": "tanh",
    "likelihood": "bernoulli",
    "latent": "4",
    "image-shape": "28x28",
}
ABOUT_IMAGES = ["data", "labels", "data-dir", "split", "binarisation", "scale", "dequantise", "limit",
                "indices", "simulate"]  # fmt: skip


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
    torch.save(vae.state_dict(), folder / "state_dict.pt")
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
    found = pytest.importorskip("crais._built")
    programs = __import__("pathlib").Path(found.__file__).parent / "bin"
    if not (folder / "checkpoint").exists():
        made = [programs / "train-vae", "--data", "synthetic:300", "--hidden", "8", "--latent", "4",
                "--epochs", "1", "--quiet", "--out", folder / "vae"]  # fmt: skip
        subprocess.run(made, check=True, capture_output=True)
        (folder / "vae" / "vae.safetensors").rename(folder / "checkpoint")

    def run(model, flags, stream="stderr"):
        lines = [f"--{name}" + ("" if value is None else f"={value}") for name, value in flags.items()]
        done = subprocess.run(
            [programs / "eval-loglik", model, *lines, "--dry-run"],
            capture_output=True, text=True, cwd=folder,
            env={"CRAIS_DATA": str(folder / "mnist"), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        return done.returncode, getattr(done, stream)

    return run


def needed(model):
    """What the file does not say itself."""
    wanted = {"script.pt": {"likelihood": "bernoulli"}, "state_dict.pt": {"activation": "tanh"}}
    return wanted.get(model, {})


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
    values = {"data": "images.npy", "labels": "labels.npy", "data-dir": "mnist", "split": "test",
              "binarisation": "static:0", "scale": 255, "dequantise": "uniform:0", "limit": 5,
              "indices": "2:9", "simulate": 20}  # fmt: skip
    chosen = {"mnist": {}, "array": {"data": "images.npy"}, "simulated": {"simulate": 20}}[images]
    if images == "array" and flag not in ("binarisation", "dequantise"):
        chosen["binarisation" if flag != "scale" else "dequantise"] = values[
            "binarisation" if flag != "scale" else "dequantise"
        ]
    if images == "mnist" and flag == "scale":
        chosen["dequantise"] = "uniform:0"
    return {**chosen, flag: values[flag]}


@pytest.mark.parametrize("flag", ABOUT_IMAGES)
@pytest.mark.parametrize("images", IMAGES)
def test_flags_about_images(evaluated, images, flag):
    if flag == "data" and images == "mnist" or flag == "simulate" and images != "simulated":
        pytest.skip("the flag chooses other images")
    model = "script.pt"
    flags = {"likelihood": "gaussian:1", **images_under(images, flag)}
    code, said = evaluated(model, flags)
    if flag == "labels" and flag in IMAGES[images]:
        assert code == 64 and "not conditional" in said  # of this model
    elif flag in IMAGES[images]:
        assert code == 0, said
    else:
        assert code == 64 and f"--{flag} does nothing for" in said


# Every other flag, with a value that does something beside the others of its row: each kind of model
# takes them all.
ABOUT_RUNS = [
    {"preset": "recommended", "method": "ais", "base": "laplace", "chains": 4, "repeats": 2, "seed": 3,
     "schedule": "constant-rate:0.5", "path": "geometric", "kernel": "ghmc:0.8",
     "leapfrog": 2, "target-acceptance": 0.8, "out": "nowhere", "force-dtype": "float32", "pilot-chains": 32,
     "pilot-images": 3, "min-step": 0.001, "max-step": 0.1, "max-steps": 500, "tolerance": 0.01,
     "interpolate": 9, "device": "cpu", "threads": 1, "dtype": "float32", "chunk": 2,
     "shard": "1/2", "accept-other-version": None, "format": "csv",
     "quiet": None},
    {"steps": 8, "step-size": 0.5, "resample": "systematic:0.5", "queue": "none",
     "max-time": "1h", "resume": None, "out": "nowhere", "accept-prior": None},
    {"schedule": "cess:0.9", "per-image": None, "weighted": None, "out": "nowhere", "overwrite": None},
    {"schedule": "constant-rate:0.5", "path": "power:0.5", "weighted-ratio": None},
    {"budget": 900},
    {"target-error": 0.1, "max-evals": 5000},
    {"mean-error": 0.1},
]  # fmt: skip
ELSEWHERE = {"help", "version", "dry-run", "lease"}


def test_every_flag_has_a_place_in_these_tables(evaluated):
    code, said = evaluated("--help", {}, stream="stdout")
    flags = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", said, re.MULTILINE))
    placed = {*ABOUT_MODELS, *ABOUT_IMAGES, *ELSEWHERE}.union(*ABOUT_RUNS)
    assert code == 0 and flags == placed


@pytest.mark.parametrize("row", ABOUT_RUNS, ids=lambda row: " ".join(row)[:40])
@pytest.mark.parametrize("model", MODELS)
def test_flags_about_runs(evaluated, model, row):
    code, said = evaluated(model, {**needed(model), "simulate": 3, **row})
    assert code == 0, said


@pytest.mark.parametrize("row", ABOUT_RUNS, ids=lambda row: " ".join(row)[:40])
def test_values_that_are_none_are_refused(evaluated, row):
    for flag in row.keys() - {"out"}:
        code, said = evaluated("checkpoint", {"simulate": 3, **row, flag: "-1"})
        assert code == 64 and said.count("\n") == 1, f"--{flag} is not looked at"


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
    code, said = evaluated("script.pt", {"likelihood": "gaussian:1", **flags})
    assert code == 64 and words in said


# What an estimate does, and flags that then do nothing. tests/programs/idle_flags_test.cpp has all
# pairs of courses and flags, and that what is refused would change no number.
IDLE = [
    ({"method": "iwae:20"}, {"steps": 4, "schedule": "linear", "path": "geometric", "kernel": "hmc",
     "leapfrog": 2, "step-size": 0.1, "resample": "systematic", "chains": 4, "pilot-chains": 4,
     "force-dtype": "float32", "per-image": None, "pilot-images": 2, "interpolate": 4}),
    ({"budget": 900}, {"chains": 4, "steps": 4, "interpolate": 4, "pilot-chains": 4}),
    ({"mean-error": 0.1}, {"chains": 4}),
    ({}, {"max-evals": 900, "tolerance": 0.1, "weighted-ratio": None, "weighted": None,
          "min-step": 0.1, "max-step": 0.2, "max-steps": 50, "lease": "30s",
          "accept-other-version": None}),
    ({"schedule": "constant-rate:0.5"}, {"weighted-ratio": None}),
    ({"schedule": "constant-rate:0.5", "path": "power:0.5", "weighted": None},
     {"weighted-ratio": None}),
    ({"schedule": "ess:0.9"}, {"weighted": None}),
    ({"schedule": "cess:0.9", "base": "prior"}, {"steps": 4}),
    ({"kernel": "mala"}, {"leapfrog": 2}),
    ({"kernel": "random-walk"}, {"leapfrog": 2, "force-dtype": "float32"}),
    ({"step-size": 0.1, "base": "prior"}, {"target-acceptance": 0.8, "interpolate": 4,
     "per-image": None, "pilot-chains": 4}),
    ({"step-size": 0.1, "base": "prior", "force-dtype": "float32"}, {"pilot-images": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("course", "idle"), IDLE, ids=lambda flags: " ".join(flags)[:30])
def test_flags_that_do_nothing_in_an_estimate(evaluated, course, idle):
    code, said = evaluated("checkpoint", {"simulate": 3, **course})
    assert code == 0, said
    for flag, value in idle.items():
        code, said = evaluated("checkpoint", {"simulate": 3, **course, flag: value})
        assert code == 64 and f"--{flag} does nothing " in said, said


def test_python_refuses_what_does_nothing(evaluated, folder):
    for flags in ({"likelihood": "bernoulli"}, {"latent": 4}, {"activation": "tanh"}):
        with pytest.raises(crais.UsageError, match=f"{next(iter(flags))} does nothing for"):
            crais.evaluate(folder / "exported.pt", simulate=3, progress=False, **flags)
    few = {"simulate": 3, "progress": False}
    with pytest.raises(crais.UsageError, match="^leapfrog does nothing for a kernel that takes"):
        crais.evaluate(folder / "exported.pt", kernel="mala", leapfrog=2, **few)
    with pytest.raises(crais.UsageError, match="^steps does nothing where no method anneals"):
        crais.log_normalizer("normal:2", method="iwae:9", steps=4, progress=False)
    images = torch.zeros(3, 784)
    with pytest.raises(crais.UsageError, match="images or split"):
        crais.evaluate(folder / "exported.pt", images, split="train", progress=False)

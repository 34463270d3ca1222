"""The shipped checkpoint under eval-loglik and under independent_check.py agree per image."""

import os
import subprocess
from pathlib import Path

import pytest

from .exported import python_with_torch
from .programs import SOURCE, Program


def mnist() -> Path:
    """The file of MNIST's test images."""
    data = Path(os.environ.get("CRAIS_DATA", "/nowhere"))
    for folder in ("", "raw", "MNIST/raw", "mnist"):
        for suffix in ("", ".gz"):
            file = data / folder / f"t10k-images-idx3-ubyte{suffix}"
            if file.is_file():
                return file
    pytest.skip("needs MNIST in CRAIS_DATA")


def test_agrees_with_an_independent_computation(eval_loglik: Program) -> None:
    images, python = mnist(), python_with_torch()
    model = SOURCE / "weights/vae50-mnist.safetensors"
    settings = "--limit 6 --steps 400 --chains 32 --quiet --out ours".split()
    eval_loglik.succeed(model, *settings, env={"CRAIS_DATA": os.environ["CRAIS_DATA"]})
    check = SOURCE / "tests/golden/independent_check.py"
    command = [python, check, model, images, "ours/per_image.csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

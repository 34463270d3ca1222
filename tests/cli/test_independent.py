"""The shipped checkpoint under eval-loglik and under independent_check.py agree per image."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def python_with_torch() -> str:
    for python in (sys.executable, "python3", str(SOURCE / ".venv/bin/python")):
        try:
            if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
                return python
        except FileNotFoundError:
            continue
    pytest.skip("needs Python's torch")


def test_agrees_with_an_independent_computation(eval_loglik: Program) -> None:
    images, python = mnist(), python_with_torch()
    model = SOURCE / "weights/vae50-mnist.safetensors"
    settings = "--limit 6 --steps 400 --chains 32 --quiet --out ours".split()
    eval_loglik.succeed(model, *settings, env={"CRAIS_DATA": os.environ["CRAIS_DATA"]})
    check = SOURCE / "tests/golden/independent_check.py"
    command = [python, check, model, images, "ours/per_image.csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

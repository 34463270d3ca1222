"""The console command of an installed package, on a file that `crais.export` wrote beside it.

tests/cli/test_packages.py has the programs of a build folder.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import crais

# Linkers differ in whether code that asks for a library without using it keeps it.
LINKER = Path(__file__).resolve().parents[2] / "tests/cli/exports/linker"


@pytest.fixture
def console(compiled) -> Path:
    if "site-packages" not in compiled.parts:
        pytest.skip("crais is not installed: pip install .")
    return Path(sys.executable).with_name("eval-loglik")


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_package_that_asks_for_libtorch_is_loaded(console, curved, images, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(LINKER))
    model, data, out = (tmp_path / name for name in ("odd.pt2", "x.npy", "out"))
    likelihood, prior = crais.Bernoulli(), crais.StandardNormal()
    log_joint = lambda z, x: likelihood.log_prob(x.flatten(1), curved.decoder(z)) + prior.log_prob(z)
    described = {"log_joint": log_joint, "latent": 4, "image_shape": (6, 6)}  # one function to compile
    crais.export(model, **described, quiet=True)
    np.save(data, images.numpy())
    flags = ["--steps=8", "--chains=8", "--base=prior", "--quiet", f"--data={data}", f"--out={out}"]
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    done = subprocess.run([console, model, *flags], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert found["evaluator"] == "aoti"
    wanted = crais.evaluate(images=images, steps=8, chains=8, base="prior", progress=False, **described)
    assert found["results"][0]["log_likelihood"] == pytest.approx(wanted.mean, abs=0.05)

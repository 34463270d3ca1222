"""Where Python's process has numbers with a comma, crais says and stores the same numbers."""

import os
import shutil
import subprocess
import sys

import pytest

COMMA = "de_DE.UTF-8"
SCRIPT = """
import locale, pathlib, sys, torch
import crais
name = sys.argv[1]
if name == "comma":
    locale.setlocale(locale.LC_ALL, "")
    assert locale.localeconv()["decimal_point"] == ","
torch.manual_seed(0)
decoder = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
pathlib.Path("betas.csv").write_text("step,beta\\n0,0\\n1,0.25\\n2,1\\n")
options = dict(decoder=decoder, likelihood=crais.Bernoulli(), latent=2, images=torch.zeros(6, 4), progress=False)
short = dict(step_size=0.25, chains=4, base="laplace:1.1")
for schedule in "sigmoidal:0.3", "file:betas.csv":
    r = crais.evaluate(schedule=schedule, out=f"{name}/{schedule[:4]}", **short, **options)
    print(str(r).rpartition("Files")[0], r.mean, repr(r.summary["results"][0]["log_likelihood"]))
z = crais.log_normalizer("normal:2,sd=0.5", witness="none", steps=4, progress=False)
crais.train_vae(out=f"{name}/vae", data="synthetic:60", hidden=[8], latent=4, epochs=1, lr=0.002, progress=False)
try:
    crais.evaluate(step_size="0,5", **options)
except crais.UsageError as error:
    print(z, z.log_z, error)
"""


@pytest.fixture
def comma(tmp_path):
    """The environment of a German user; the locale is made here where there is none."""
    german = {**os.environ, "LC_ALL": COMMA}
    asks = "import locale; locale.setlocale(locale.LC_ALL, '')"
    is_there = lambda: subprocess.run([sys.executable, "-c", asks], env=german, capture_output=True)
    if is_there().returncode and shutil.which("localedef"):
        german["LOCPATH"] = str(tmp_path)
        made = ["localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", tmp_path / COMMA]
        subprocess.run(made, capture_output=True)
    if is_there().returncode:
        pytest.skip(f"{COMMA} is not there, and localedef could not make it")
    return german


def test_words_and_files_are_the_same(compiled, comma, tmp_path):
    said = []
    for name, env in {"plain": {**os.environ, "LC_ALL": "C.UTF-8"}, "comma": comma}.items():
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1] and "'0,5' is not a number" in said[0]
    files = [f"{part}/{file}" for part in ("sigm", "file") for file in ("per_image.csv", "run.json", "plan.json")]
    for file in (*files, "file/schedule.csv", "vae/vae.safetensors"):
        assert (tmp_path / "comma" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()

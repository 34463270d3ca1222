"""Where Python's process has numbers with a comma, crais says and stores the same numbers."""

import os
import shutil
import subprocess
import sys

import pytest

COMMA = "de_DE.UTF-8"
SCRIPT = """
import locale, sys, torch
import crais
if sys.argv[2] == "comma":
    locale.setlocale(locale.LC_ALL, "")
    assert locale.localeconv()["decimal_point"] == ","
torch.manual_seed(0)
decoder = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
r = crais.evaluate(
    decoder=decoder, likelihood=crais.Bernoulli(), latent=2, images=torch.zeros(6, 4), chains=4,
    schedule="sigmoidal:0.3", step_size=0.25, base="laplace:1.1", out=sys.argv[1], progress=False,
)
z = crais.log_normalizer("normal:2,sd=0.5", witness="none", steps=4, progress=False)
print(str(r).rpartition("Files")[0], z, r.mean, z.log_z, repr(r.summary["results"][0]["log_likelihood"]))
"""


@pytest.fixture
def comma(tmp_path):
    """The environment of a German user; the locale is made here where there is none."""
    german = {**os.environ, "LC_ALL": COMMA}
    asks = "import locale; locale.setlocale(locale.LC_ALL, '')"
    is_there = lambda: subprocess.run([sys.executable, "-c", asks], env=german, capture_output=True)
    if is_there().returncode and shutil.which("localedef"):
        german["LOCPATH"] = str(tmp_path)
        folder = os.path.join(german["LOCPATH"], COMMA)
        made = ["localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", folder]
        subprocess.run(made, capture_output=True)
    if is_there().returncode:
        pytest.skip(f"{COMMA} is not there, and localedef could not make it")
    return german


def test_words_and_files_are_the_same(comma, tmp_path):
    pytest.importorskip("crais._built")
    said = {}
    for name, env in {"plain": {**os.environ, "LC_ALL": "C.UTF-8"}, "comma": comma}.items():
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, name, name],
            capture_output=True, text=True, cwd=tmp_path, env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    assert said["comma"] == said["plain"]
    for file in ("per_image.csv", "schedule.csv", "run.json", "plan.json"):
        assert (tmp_path / "comma" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()

"""What an installed crais must do with nothing else of ours there. Seconds count from an argument of `date +%s`."""

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

start = float(sys.argv[1]) if sys.argv[1:] else time.time()

import torch  # noqa: E402
from torch import nn  # noqa: E402

import crais  # noqa: E402

CHEAP = {"steps": 30, "chains": 8, "progress": False}


def run(program: str, *arguments: object) -> str:
    command = [Path(sys.executable).with_name(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main() -> None:
    assert Path(crais.__file__).is_relative_to(sys.prefix), crais.__file__
    torch.manual_seed(1)
    decoder = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 36))
    images = torch.bernoulli(torch.sigmoid(decoder(torch.randn(20, 2))))
    model = {"decoder": decoder, "latent": 2, "likelihood": crais.Bernoulli()}
    r = crais.evaluate(**model, images=images, **CHEAP)
    print(f"evaluate: {r.mean:.3f} +- {r.mc_se:.3f} nats, {time.time() - start:.1f} s")
    assert -36 < r.mean < 0 and r.mc_se < 1

    c = crais.certify(**model, image_shape=(36,), num_images=20, **CHEAP)
    print(f"certify: {c.lower:.3f} to {c.upper:.3f}")
    assert abs(c.gap) < 1

    z = crais.log_normalizer(lambda z: -0.5 * z.square().sum(-1), dim=3, progress=False)
    print(f"log_normalizer: {z.log_z:.3f}")
    assert abs(z.log_z - 1.5 * math.log(2 * math.pi)) < 0.1

    with tempfile.TemporaryDirectory() as folder:
        vae, out = Path(folder, "vae"), Path(folder, "out")
        run("train-vae", *"--data synthetic:200 --latent 2 --hidden 20 --epochs 1 --quiet --out".split(), vae)
        run("eval-loglik", vae / "vae.safetensors", "--simulate", 10, "--steps", 20, "--chains", 4,
            "--out", out, "--quiet")  # fmt: skip
        summary = json.loads((out / "summary.json").read_text())
        print(f"eval-loglik: {summary['results'][0]['log_likelihood']:.3f}, {summary['evaluator']}")
        assert summary["evaluator"].startswith("fused")
    print(f"estimate-logz: {len(run('estimate-logz', 'normal:2', '--quiet').splitlines())} lines")
    assert crais.__version__ in run("reproduce", "--version")
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, {time.time() - start:.1f} s in all")


main()

"""Finds the package: one of a build folder, an installed one, or the sources without extension."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[2]


def _place() -> Path | None:
    """The folder to take crais from; None for the one that Python finds."""
    built = Path(os.environ.get("CRAIS_BUILD", "/nowhere")) / "python"
    if (built / "crais" / "_built.py").exists():
        return built
    installed = importlib.util.find_spec("crais")
    return None if installed and importlib.util.find_spec("crais._built") else ROOT / "python"


if place := _place():
    sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = str(place)  # for those that tests start
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the programs and scripts that tests start
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of scripts begin without it

_SPEC = importlib.util.find_spec("crais._built")


@pytest.fixture
def compiled() -> Path:
    """Skips a test where crais is not compiled; else the package's folder."""
    if _SPEC is None or _SPEC.origin is None:
        pytest.skip("crais is not compiled: pip install .")
    return Path(_SPEC.origin).parent


@pytest.fixture
def page_run():
    """Reads what a page report.html shows."""

    def read(page: Path) -> dict:
        data = re.search('id="run">(.*?)</script>', page.read_text(), re.DOTALL)
        return json.loads(data[1])

    return read


@pytest.fixture
def program(compiled):
    """Runs a program of the package; returns its stdout."""

    def run(name: str, *arguments: str) -> str:
        script = f"import sys; sys.argv[0] = {name!r}; from crais import programs; programs.run()"
        command = [sys.executable, "-c", script]
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


class Mlp(nn.Module):
    """A VAE of Linear layers, with random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(36, 16), nn.Tanh(), nn.Linear(16, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 36))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = self.encoder(x.flatten(1)).chunk(2, 1)
        return mean, log_var


class Curved(Mlp):
    """A VAE with an activation that crais has no evaluator for: PyTorch computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.GELU("tanh"), nn.Linear(16, 36))


@pytest.fixture
def mlp() -> Mlp:
    torch.manual_seed(1)
    return Mlp().eval()


@pytest.fixture
def curved() -> Curved:
    torch.manual_seed(1)
    return Curved().eval()


@pytest.fixture
def images() -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return (torch.rand(20, 6, 6, generator=generator) < 0.3).float()

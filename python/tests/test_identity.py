"""What a run is a function of: another function is refused by a folder, and random numbers are its own."""

import threading

import pytest
import torch
from support import evaluate
from torch import nn

import crais

QUICK = {"chains": 8, "steps": 8, "base": "prior", "problems": 2, "progress": False}


class Vae(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(4, 9, generator=generator))

    def decode(self, z):
        return torch.tanh(z) @ self.weight

    def encode(self, x):
        return x.flatten(1) @ self.weight.T / 9, torch.zeros(len(x), 4)


IMAGES = (torch.rand(8, 9, generator=torch.Generator().manual_seed(1)) < 0.5).float()


def of_vae(model, **options):
    return evaluate(model, IMAGES, chunk=4, **options)


def near(scale):
    """A normal density that is zero at linspace(-1, 1.5)."""

    def log_density(z):
        value = -0.5 * (scale * z).square().sum(1)
        return torch.where(z.sum(1) > 0.3, -torch.inf, value)

    return log_density


def one(z):
    return -0.5 * z.square().sum(1)


def other(z):
    return -0.5 * z.square().sum(1) - 0.0 * z.sum(1)


@pytest.mark.parametrize("first, second", [(near(1), near(3)), (one, other)])
def test_a_folder_refuses_another_function(compiled, tmp_path, first, second):
    folder = str(tmp_path / "run")
    r = crais.log_normalizer(first, dim=2, out=folder, **QUICK)
    again = crais.log_normalizer(first, dim=2, out=folder, resume=True, **QUICK)
    assert again.log_z == r.log_z
    for target, problems, words in ((second, 2, "function is .*values .* here and"), (first, 4, "4 here and 2 there")):
        with pytest.raises(crais.UsageError, match=words):
            crais.log_normalizer(target, dim=2, out=folder, resume=True, **{**QUICK, "problems": problems})


def test_a_folder_refuses_another_encoder(compiled, tmp_path):
    vae, folder = Vae(), str(tmp_path / "run")
    of_vae(vae, out=folder, base="encoder")
    of_vae(vae, out=folder, base="encoder", resume=True)
    twice = lambda x: (2 * vae.encode(x)[0], vae.encode(x)[1])
    with pytest.raises(crais.UsageError, match="sha256"):
        of_vae(vae, encoder=twice, out=folder, base="encoder", resume=True)


def test_a_file_may_change_after_its_function_was_made(compiled, tmp_path):
    (file := tmp_path / "mine.py").write_text("def density(z):\n    return -z.square().sum(1)\n")
    made = {}
    exec(compile(file.read_text(), str(file), "exec"), made)
    file.write_text("def density(z:\n")
    assert crais.log_normalizer(made["density"], dim=2, **QUICK).log_z == pytest.approx(1.14, abs=0.5)


def test_random_numbers_of_other_threads_are_left_alone(compiled, tmp_path):
    prior = torch.distributions.MultivariateNormal(torch.zeros(4), torch.eye(4))
    drawn, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            drawn.append(torch.rand(()).item())

    alone = of_vae(Vae(), prior=prior, out=str(tmp_path / "run"))
    thread = threading.Thread(target=draw)
    thread.start()
    for _ in range(3):
        beside = of_vae(Vae(), prior=prior, out=str(tmp_path / "run"), resume=True)
        crais.log_normalizer(one, prior=torch.distributions.Normal(0, 1), dim=2, **QUICK)
        crais.certify(Vae(), 8, likelihood=crais.Bernoulli(), prior=prior, latent=4, image_shape=(9,), steps=8)
    stop.set()
    thread.join()
    assert beside.mean == alone.mean
    assert len(drawn) > 100
    expected = len(drawn) ** 2 / 2**25  # pairs among float32's 2^24 numbers that agree by chance
    assert len(drawn) - len(set(drawn)) < 5 + 2 * expected


class Trains(Vae):
    calls = 0

    def decode(self, z):
        type(self).calls += 1
        if self.calls > 60:
            self.train()
        return super().decode(z)


class Flips(nn.Module):
    def forward(self, z):
        self.train()
        return -0.5 * z.square().sum(1)


def test_training_mode_during_the_run_is_an_error(compiled):
    with pytest.raises(crais.UsageError, match="training mode"):
        of_vae(Trains().eval())
    with pytest.raises(crais.UsageError, match="training mode"):
        crais.log_normalizer(Flips().eval(), dim=2, **QUICK)

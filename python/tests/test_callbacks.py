"""Callbacks log log p(x) during training, and leave no trace in it."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

import crais

pytestmark = pytest.mark.usefixtures("compiled")

SCALARS = {"mean", "data_se", "mc_se", "bias", "flagged", "evaluations"}
BERNOULLI = {"likelihood": crais.Bernoulli(), "budget": 200}
SMALL = {"latent": 4, "max_images": 6, **BERNOULLI}


class Vae(nn.Module):
    """A VAE with dropout, which draws from the generators of PyTorch, NumPy and Python."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(36, 8)
        self.decoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 36))

    def encode(self, x):
        np.random.rand(), random.random()
        return self.encoder(x.flatten(1)).chunk(2, 1)

    def loss(self, x):
        mean, log_var = self.encode(x)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum()
        pixels = x.flatten(1) * (np.random.rand() + random.random() < 1)
        return kl + F.binary_cross_entropy_with_logits(self.decoder(z), pixels, reduction="sum")


def seeded():
    torch.manual_seed(3), np.random.seed(3), random.seed(3)


def estimate(model, images, **options):
    """What a monitor finds of its six images."""
    return crais.evaluate(model, images[:6], progress=False, **BERNOULLI, **options)


def trained(images, monitor=None):
    """The weights after three epochs, with gradients of the last step."""
    seeded()
    vae = Vae().train()
    optimiser = torch.optim.SGD(vae.parameters(), lr=1e-3)
    for _ in range(3):
        for (rows,) in DataLoader(TensorDataset(images), batch_size=5, shuffle=True):
            optimiser.zero_grad()
            vae.loss(rows).backward()
            optimiser.step()
        if monitor is not None:
            monitor(vae)
            assert vae.training and vae.decoder[2].training
    return [(weight.detach(), weight.grad) for weight in vae.parameters()]


class Noisy(Dataset):
    """Images, each drawn as it is read, as by random augmentation."""

    def __init__(self, images):
        self.images = images
        self.read = 0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        self.read += 1
        keep = random.random() < 2 and np.random.rand() < 2
        return self.images[i] * keep * torch.ones(1).bernoulli(), i


def test_a_monitor_gives_the_scalars_of_evaluate(mlp, images):
    monitor = crais.callbacks.Monitor(images, name="held_out", max_images=6, **BERNOULLI)
    assert monitor.result is None
    scalars = monitor(mlp)
    r = estimate(mlp, images)
    assert set(scalars) == {f"held_out/{name}" for name in SCALARS}
    assert all(type(value) is float for value in scalars.values())
    for name in ("mean", "data_se", "mc_se", "bias"):
        assert scalars[f"held_out/{name}"] == getattr(r, name)
    assert scalars["held_out/flagged"] == (r.flags != 0).sum() / 6
    assert scalars["held_out/evaluations"] == r.evaluations.mean() <= 200
    assert monitor.result.mean == r.mean


def test_a_monitor_leaves_no_trace_in_the_training(images):
    alone = trained(images)
    loader = DataLoader(Noisy(images), batch_size=4, shuffle=True)
    seeded()
    before = torch.get_rng_state(), np.random.rand(), random.random()
    seeded()
    monitor = crais.callbacks.Monitor(loader, **SMALL)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (np.random.rand(), random.random())
    for one, other in zip(alone, trained(images, monitor), strict=True):
        assert all(map(torch.equal, one, other))


def test_modes_are_restored_where_the_evaluation_fails(images):
    vae = Vae().train()
    vae.encoder.eval()
    with pytest.raises(crais.UsageError, match="steps"):
        crais.callbacks.Monitor(images, steps=-1, **SMALL)(vae)
    assert vae.training and vae.decoder.training and not vae.encoder.training


def test_a_monitor_reads_its_images_once_and_no_more_than_it_needs(images):
    data = Noisy(images)
    monitor = crais.callbacks.Monitor(DataLoader(data, batch_size=4), **SMALL)
    assert data.read == 8
    vae = Vae().eval()
    assert monitor(vae)["log_p/mean"] == monitor(vae)["log_p/mean"]
    assert data.read == 8 and len(monitor.result) == 6


def test_a_monitor_of_functions_and_labels(images):
    torch.manual_seed(0)
    layer = nn.Linear(4 + 2, 36)
    labels = torch.eye(2)[torch.arange(20) % 2]
    decode = lambda z, y: layer(torch.cat([z, y], 1))
    monitor = crais.callbacks.Monitor(images, labels=labels, decoder=decode, **SMALL)
    r = estimate(None, images, decoder=decode, labels=labels[:6], latent=4)
    assert monitor()["log_p/mean"] == r.mean


def test_bad_arguments(images):
    with pytest.raises(crais.UsageError, match="^max_images must be at least 1, not 0$"):
        crais.callbacks.Monitor(images, max_images=0)
    with pytest.raises(crais.UsageError, match="^there are 20 images and 3 labels$"):
        crais.callbacks.Monitor(images, labels=torch.zeros(3))
    with pytest.raises(AttributeError, match="no attribute 'lightning'"):
        crais.callbacks.lightning  # noqa: B018


def lightning_module(package, images):
    class Module(package.LightningModule):
        def __init__(self):
            super().__init__()
            self.vae = Vae()
            self.losses = []

        def training_step(self, batch, _):
            loss = self.vae.loss(batch[0])
            self.losses.append(float(loss))
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

        def train_dataloader(self):
            return DataLoader(TensorDataset(images), batch_size=5, shuffle=True)

    return Module()


def fitted(package, images, folder, callbacks, logger=False, epochs=4):
    seeded()
    module = lightning_module(package, images)
    trainer = package.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=logger, callbacks=callbacks,
        default_root_dir=folder, enable_progress_bar=False, enable_model_summary=False,
        log_every_n_steps=1,
    )  # fmt: skip
    trainer.fit(module)
    return module, trainer


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def package(request, monkeypatch):
    """Each of Lightning's two packages, as a process that uses it alone has it."""
    package = pytest.importorskip(request.param)
    others = [name for name in sys.modules if name.partition(".")[0] in ("lightning", "pytorch_lightning")]
    for name in others:
        if not (name + ".").startswith(request.param.partition(".")[0] + "."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "crais.lightning_callback", raising=False)
    return package


def test_lightning_logs_to_its_logger_every_few_epochs(package, images, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = package.loggers.TensorBoardLogger(tmp_path)
    callback = crais.callbacks.Lightning(images, every=2, **SMALL)
    assert isinstance(callback, package.Callback)
    best = package.callbacks.ModelCheckpoint(tmp_path / "best", monitor="log_p/mean", mode="max", every_n_epochs=2)
    module, trainer = fitted(package, images, tmp_path, [callback, best], logger)
    events = EventAccumulator(logger.log_dir).Reload()
    assert {f"log_p/{name}" for name in SCALARS} <= set(events.Tags()["scalars"])
    means = [event.value for event in events.Scalars("log_p/mean")]
    assert len(means) == 2 and means[1] == pytest.approx(callback.monitor.result.mean)
    assert callback.monitor.result.mean == estimate(module.vae.eval(), images).mean
    assert float(best.best_model_score) == pytest.approx(max(means))


def test_lightning_leaves_no_trace_in_the_training(package, images, tmp_path):
    alone, _ = fitted(package, images, tmp_path / "alone", [])
    callback = crais.callbacks.Lightning(images, **SMALL)
    module, _ = fitted(package, images, tmp_path, callback)
    assert callback.monitor.result is not None
    assert module.losses == alone.losses
    assert all(map(torch.equal, module.parameters(), alone.parameters()))


def test_lightning_takes_the_model_that_it_is_told(package, images, tmp_path):
    vae = Vae()
    callback = crais.callbacks.Lightning(images, model=vae, **SMALL)
    fitted(package, images, tmp_path, [callback], epochs=1)
    assert callback.monitor.result.mean == estimate(vae.eval(), images).mean


def test_lightning_refuses_every_below_one(package, images):
    with pytest.raises(crais.UsageError, match="^every must be at least 1 epoch, not 0$"):
        crais.callbacks.Lightning(images, every=0)


def test_lightning_is_imported_only_when_used(compiled, tmp_path):
    for package in ("lightning", "pytorch_lightning"):
        (tmp_path / f"{package}.py").write_text(f"raise ImportError('{package}')")
    script = "import crais; crais.callbacks.Monitor; crais.callbacks.Lightning"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = sys.argv[1:]; {script}", str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1]
    assert last == "ImportError: crais.callbacks.Lightning needs Lightning: pip install lightning"

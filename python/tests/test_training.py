"""`crais.train_vae` and the programs as console commands."""

import os
import signal
import threading
import time

import pytest

import crais

FLAGS = {"data": "synthetic:600", "hidden": [8], "latent": 2, "progress": False}


def test_it_trains_and_tells_of_epochs(compiled, tmp_path):
    seen = []
    trained = crais.train_vae(out=tmp_path / "t", epochs=2, on_epoch=seen.append, **FLAGS)
    assert [m["epoch"] for m in seen] == [1, 2] and trained.epochs == seen
    assert trained.best["validation"]["bound"] == max(m["validation"]["bound"] for m in seen)
    found = crais.evaluate(trained.checkpoint, simulate=5, steps=4, base="prior", progress=False)
    assert len(found) == 5


def test_an_interrupt_saves_the_epoch(compiled, tmp_path):
    def on_epoch(metrics):
        if metrics["epoch"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(crais.Interrupted, match="epoch 2 is saved; .*resume"):
        crais.train_vae(out=tmp_path / "t", epochs=50, on_epoch=on_epoch, **FLAGS)
    seen = []
    crais.train_vae(out=tmp_path / "t", epochs=50, patience=1, resume=True, on_epoch=seen.append, **FLAGS)
    assert seen[0]["epoch"] == 3


def test_an_interrupt_gives_up_an_epoch(compiled, tmp_path):
    flags = FLAGS | {"data": "synthetic:20000", "hidden": [400], "out": tmp_path / "t", "epochs": 50}
    saved = tmp_path / "t" / "training-state.safetensors"

    def wait():
        while not saved.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
    seen = []
    with pytest.raises(crais.Interrupted, match="epoch 1 is saved; .*resume"):
        crais.train_vae(on_epoch=seen.append, **flags)
    assert [m["epoch"] for m in seen] == [1]
    crais.train_vae(on_epoch=seen.append, resume=True, **(flags | {"patience": 1, "epochs": 2}))
    assert [m["epoch"] for m in seen] == [1, 2]


def test_nonsense(compiled, tmp_path):
    with pytest.raises(crais.UsageError, match="^epochs: must be at least 1, not 0$"):
        crais.train_vae(out=tmp_path, epochs=0)


def test_console_commands(program):
    assert program("estimate-logz", "list").startswith("target ")
    assert "crais" in program("eval-loglik", "--version")

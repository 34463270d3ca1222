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


def test_an_interrupt_keeps_the_best_weights(compiled, tmp_path):
    def on_epoch(metrics):
        if metrics["epoch"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(crais.Interrupted, match="vae.safetensors has the weights of epoch [12], the"):
        crais.train_vae(out=tmp_path / "t", epochs=50, on_epoch=on_epoch, **FLAGS)
    assert (tmp_path / "t" / "vae.safetensors").exists()


def test_an_interrupt_gives_up_an_epoch(compiled, tmp_path):
    flags = FLAGS | {"data": "synthetic:20000", "hidden": [400], "out": tmp_path / "t", "epochs": 50}
    saved = tmp_path / "t" / "vae.safetensors"

    def wait():
        while not saved.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
    seen = []
    with pytest.raises(crais.Interrupted, match="of epoch 1, the best so far"):
        crais.train_vae(on_epoch=seen.append, **flags)
    assert [m["epoch"] for m in seen] == [1]


def test_nonsense(compiled, tmp_path):
    with pytest.raises(crais.UsageError, match="^epochs: must be at least 1, not 0$"):
        crais.train_vae(out=tmp_path, epochs=0)


def test_console_commands(program):
    assert program("estimate-logz", "list").startswith("target ")
    assert "crais" in program("eval-loglik", "--version")

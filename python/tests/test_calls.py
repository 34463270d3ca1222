"""What a call leaves as it was, what it raises, and how it stops."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import support
import torch
from torch import distributions as D
from torch import nn

import crais
from crais import native, programs


@pytest.fixture
def evaluate(compiled):
    return lambda model, images, **options: support.evaluate(model, images, **{"chunk": 4, **options})


class ListOf(torch.utils.data.Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def of_joint(evaluate, log_joint, images, **options):
    return evaluate(None, images, likelihood=None, log_joint=log_joint, latent=4, image_shape=(6, 6), **options)


def python(script):
    """The script in a process of its own."""
    return subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)


def quadratic(z, x=None):
    return -0.5 * z.square().sum(1)


# What is as before.


@pytest.mark.parametrize("fails", [False, True])
def test_states_are_as_before(evaluate, images, fails):
    def log_joint(z, x):
        torch.set_grad_enabled(True)
        if fails and z.shape[0] > 8:
            raise RuntimeError("mine")
        return quadratic(z, x)

    handler = signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
    torch.set_num_threads(2)
    torch.manual_seed(9)
    before = torch.get_rng_state()
    try:
        with torch.no_grad():
            if fails:
                with pytest.raises(RuntimeError, match="mine"):
                    of_joint(evaluate, log_joint, images)
            else:
                of_joint(evaluate, log_joint, images)
            assert not torch.is_grad_enabled()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert signal.getsignal(signal.SIGINT) is handler


def test_it_works_in_every_mode_of_pytorch(evaluate, images):
    wanted = of_joint(evaluate, quadratic, images).mean
    for mode in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu")):
        with mode:
            assert of_joint(evaluate, quadratic, images).mean == wanted


def test_the_model_is_not_copied_and_learns_on(evaluate, curved, images):
    curved.likelihood = crais.Bernoulli()
    before = evaluate(curved, images)
    with torch.no_grad():
        curved.decoder[-1].bias -= 1
    assert evaluate(curved, images).mean != before.mean
    assert all(parameter.requires_grad for parameter in curved.parameters())
    assert all(parameter.grad is None for parameter in curved.parameters())


# What is refused.

NO_IMAGES = {"images": None, "simulate": 8, "latent": 4, "image_shape": (36,)}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"chains": 0}, "UsageError", "^chains: must be at least 1, not 0$"),
        ({"step_size": float("nan")}, "UsageError", "^step_size: 'nan' is not a finite number"),
        ({"chain": 3}, "UsageError", "^unknown flag chain; did you mean chains"),
        ({"schedule": "cess:0.99", "steps": None, "max_steps": 2}, "PlanError", "raise max_steps"),
        ({"schedule": "a\nb"}, "UsageError", r"unknown schedule 'a\\nb'"),
        ({"device": "cuda"}, "UsageError", "the model is on cpu, not cuda"),
        ({"out": "/proc/nowhere"}, "OutputError", "cannot make this folder"),
        ({"likelihood": None}, "UsageError", "the model has no likelihood"),
        ({"likelihood": "bernouli"}, "UsageError", "did you mean bernoulli"),
        ({"decoder": "fc3,fc4"}, "UsageError", "decoder must be a function"),
        ({"dry_run": True}, "UsageError", "dry_run is an option of the programs"),
        ({"simulate": 3}, "UsageError", "give images or simulate"),
        (NO_IMAGES | {"key": "NHWC"}, "UsageError", "^key needs images"),
        (NO_IMAGES | {"layout": "NHWC"}, "UsageError", "^layout needs images"),
        ({"model": nn.Linear}, "UsageError", r"is a class: give an instance, as Linear\(\)"),
        ({"image_shape": (7, 7)}, "RowShapeError", r"^the model fails for x \[B, 7, 7\]: (addmm: )?mat1"),
        ({"image_shape": (0,)}, "UsageError", r"^image_shape is .* as \(4, 8, 8\), .* not \(0,\)$"),
        ({"latent": 5}, "RowShapeError", r"^the model fails for z \[B, 5\] and x \[B, 6, 6\]: (addmm: )?mat1"),
        ({"latent": 2.5}, "UsageError", "^latent is D .* not 2.5$"),
        ({"labels": torch.zeros(3)}, "RowShapeError", r"fails for x \[B, 6, 6\] and y \[B\]: .*positional argument"),
        ({"labels": torch.tensor(1.0)}, "UsageError", "labels is a single number"),
        ({"labels": np.ma.masked_less(np.arange(20), 3)}, "UsageError", "labels is a masked array"),
        ({"labels": "labels.npy"}, "UsageError", "^labels of a model in memory"),
        ({"key": "image"}, "UsageError", "^key is for images in dictionaries; these are a Tensor"),
        ({"layout": "NHWC"}, "UsageError", r'^layout="NHWC" is for images \[N, H, W, C\]'),
        ({"prior": D.Normal(torch.zeros(5), 1.0)}, "UsageError", r"of z \[5\], and z has 4"),
        ({"prior": D.Laplace(torch.zeros(5), 1.0)}, "UsageError", r"of z \[5\], and z has 4"),
        ({"prior": crais.GaussianPrior(torch.zeros(5), sd=1.0)}, "RowShapeError", "fails for z"),
        ({"prior": crais.GaussianPrior(torch.ones(4), sd=1.0).to("meta")}, "UsageError", "device meta"),
        ({"likelihood": crais.Gaussian(torch.ones(35))}, "RowShapeError", "a row of x"),
    ],
)
def test_options_that_are_refused(evaluate, curved, images, options, error, words):
    with pytest.raises(Exception, match=words) as raised:
        evaluate(**({"model": curved, "images": images} | options))
    assert type(raised.value).__name__ == error
    assert "\n" not in str(raised.value)


def test_long_values_are_cut_and_large_seeds_and_no_device_are_said(compiled):
    density = lambda z: -z.square().sum(1)
    for options in ({"base": "a" * 5000}, {"dim": "a" * 5000}, {"a" * 5000: 1}):
        with pytest.raises(crais.UsageError, match="a{190}") as raised:
            crais.log_normalizer(density, **{"dim": 1, **options})
        assert len(str(raised.value)) < 500
    with pytest.raises(crais.UsageError, match=r"seed: 9223372036854775808 is above 2\^63 - 1"):
        crais.log_normalizer(density, dim=1, seed=2**63)
    with torch.device("meta"), pytest.raises(crais.UsageError, match="default device is meta"):
        crais.log_normalizer(density, dim=1)


@pytest.mark.parametrize(
    ("images", "error", "words"),
    [
        (torch.zeros(0, 36), "UsageError", r"N > 0"),
        (torch.tensor(1.0), "UsageError", r"shape \[\]"),
        ("x", "UsageError", "must be a tensor"),
        (ListOf([{"w": torch.zeros(36)}]), "UsageError", "dictionary of w: say which is the image"),
        (ListOf(["w", "x"]), "UsageError", "begins with a str: give a tensor or array"),
        (ListOf([torch.zeros(36), torch.zeros(35)]), "UsageError", r"in shape: \[35\], \[36\]$"),
        (torch.zeros(2, 36, dtype=torch.complex64), "UsageError", "complex64"),
        (np.full((2, 36), None), "UsageError", "array of object: .*real numbers"),
        (torch.zeros(2, 36).to_sparse(), "UsageError", "sparse or meta tensor"),
        (torch.nested.nested_tensor([torch.zeros(36)] * 2), "UsageError", "nested, .* tensor"),
        (torch.zeros(2, 36, device="meta"), "UsageError", "meta tensor"),
        (np.ma.masked_equal(np.eye(2, 36, dtype="f4"), 1), "UsageError", r"does not read masks.*filled"),
        (ListOf([np.ma.masked_equal(np.eye(6, dtype="f4"), 1)]), "UsageError", "does not read masks"),
        (torch.full((2, 36), 255.0), "DataError", "entry 0 of image 0 is 255.*scale 255"),
        (torch.full((2, 36), float("nan")), "DataError", "entry 0 of image 0 is nan"),
        (torch.zeros(2, 35), "RowShapeError", r"^the model fails for x \[B, 35\]: (addmm: )?mat1 and mat2"),
        (torch.zeros(2, 0), "RowShapeError", r"^the model fails for x \[B, 0\]"),
    ],
)
def test_images_that_are_refused(evaluate, curved, images, error, words):
    with pytest.raises(Exception, match=words) as raised:
        evaluate(curved, images)
    assert type(raised.value).__name__ == error
    assert isinstance(raised.value, ValueError) and "\n" not in str(raised.value)


def test_the_models_own_error_is_the_cause_and_its_own_class_comes_out(evaluate, curved, images):
    class Mine(RuntimeError):
        pass

    def decode_with(error):
        def decode(z):
            raise error

        return decode

    with pytest.raises(crais.UsageError, match=r"z \[B, 4\] and x \[B, 6, 6\]: of two$") as raised:
        evaluate(None, images, decoder=decode_with(RuntimeError("of two\nlines")), latent=4)
    assert type(raised.value.__cause__) is RuntimeError
    for error in (Mine("mine"), KeyError("mine"), torch.OutOfMemoryError("mine")):
        with pytest.raises(type(error), match="mine") as raised:
            evaluate(None, images, decoder=decode_with(error), latent=4)
        assert raised.value is error


@pytest.mark.parametrize("method", ["elbo:1", "iwae:1"])
def test_one_draw_has_an_error_over_images_and_none_of_monte_carlo(evaluate, curved, images, method):
    alone = {"method": method, "base": "encoder", "steps": None, "chains": None}
    found = evaluate(curved, images, **alone)
    assert found.data_se > 0 and np.isnan(found.mc_se) and np.isnan(found.std_error).all()
    assert np.isfinite(found.log_likelihood).all() and "nan" not in repr(found)


def test_models_are_float32_whatever_the_default_is(evaluate, curved, images):
    wanted = evaluate(curved, images).mean
    prior = crais.GaussianPrior(torch.zeros(4), sd=1.0)
    of_prior = evaluate(curved, images, prior=prior).mean
    torch.set_default_dtype(torch.float64)
    try:
        assert evaluate(curved, images).mean == wanted
        assert evaluate(curved, images, prior=prior).mean == of_prior
        assert evaluate(curved, None, simulate=8, latent=4, image_shape=(36,)).mean < 0
    finally:
        torch.set_default_dtype(torch.float32)


# What becomes of a model during a run.


def test_a_log_joint_says_what_nan_means(evaluate, images):
    def log_joint(z, x):
        seen = -0.5 * (x.nan_to_num() - z[:, :1, None]).square()
        return quadratic(z) + torch.where(x.isnan(), 0.0, seen).sum((1, 2))

    missing = images.clone()
    missing[3, 2] = torch.nan
    found = of_joint(evaluate, log_joint, missing, base="laplace")
    count, total = (~missing.isnan()).sum((1, 2)) + 1, missing.nansum((1, 2))
    squares = missing.square().nansum((1, 2)) - total.square() / count
    truth = 2 * np.log(2 * np.pi) - 0.5 * (count.log() + squares).numpy()
    np.testing.assert_allclose(found.log_likelihood, truth, atol=1e-4)
    with pytest.raises(crais.DataError, match=r"entry 12 of image 3 is nan; the likelihood"):
        evaluate(None, missing, decoder=lambda z: z.repeat(1, 9).view(-1, 6, 6), latent=4)


class Turning:
    """A density that is another after so many calls."""

    def __init__(self, turned, after=40):
        self.turned, self.after, self.calls = turned, after, 0

    def log_joint(self, z, x):
        self.calls += 1
        value = quadratic(z, x) - 30
        return value if self.calls <= self.after else self.turned(value)


@pytest.mark.parametrize(
    "turned",
    [
        lambda value: value + 0.1 * torch.randn_like(value),
        lambda value: value.half().float(),
        lambda value: value.bfloat16(),
        lambda value: value - 1,
        lambda value: value * (1 + 1e-4),
    ],
)
def test_a_model_that_changes_during_a_run_is_found_out(evaluate, images, turned):
    with pytest.raises(crais.UsageError, match=r"log p\(x, z\) has changed while it was evaluated"):
        of_joint(evaluate, Turning(turned).log_joint, images, threads=1)
    of_joint(evaluate, Turning(turned, after=10**9).log_joint, images, threads=1)


@pytest.mark.parametrize(
    ("log_density", "words"),
    [
        (lambda z: z.new_zeros(99), r"one entry a row, \[\d+\]; it has \[99\]"),
        (lambda z: None, "a NoneType"),
        (lambda z: 1.0, "a float"),
        (lambda z: z.sum(1).long(), "must be a floating-point tensor"),
        (lambda z: z.sum(1).detach(), "not a differentiable function of z"),
        (lambda z: torch.as_tensor(z.detach().numpy()).sum(1), "not a differentiable function of z"),
        (lambda z: quadratic(z) + torch.rand((), dtype=z.dtype), "differs from call to call: is dropout"),
        (lambda z: quadratic(torch.dropout(z, 0.5, True)), "differs from call to call: is dropout on"),
        (lambda z: (z - z.mean(0)).square().neg().sum(1), "depends on the other rows"),
    ],
)
def test_functions_that_are_refused(evaluate, images, log_density, words):
    with pytest.raises(crais.UsageError, match=words):
        of_joint(evaluate, lambda z, x: log_density(z), images)
    with pytest.raises(crais.UsageError, match=words):
        crais.log_normalizer(log_density, dim=4, progress=False)


def test_models_are_of_float32(evaluate, images):
    with pytest.raises(crais.UsageError, match="float64; models are float32"):
        of_joint(evaluate, lambda z, x: z.sum(1).double(), images)


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (lambda z: D.Normal(z.sum(1, True).expand(-1, 35), 1.0), r"a row of x has shape \[6, 6\]"),
        (lambda z: D.MultivariateNormal(z[:, :1].expand(-1, 35), torch.eye(35)), r"a row of x has shape \[6, 6\]"),
        (nn.Linear(4, 36).double(), "parameters are torch.float64; .*: call .float()"),
        (nn.BatchNorm1d(4, track_running_stats=False).eval(), "has no statistics: track_running_stats"),
        (nn.BatchNorm1d(4), r"\(BatchNorm1d\) is in training mode: call .eval()"),
        (lambda z: D.Normal(z.repeat(1, 9).view(-1, 6, 6) / 0.0, 1.0), r"log p\(x, z\) is not finite at z"),
        (nn.Linear(4, 36).half(), "parameters are torch.float16; .*: call .float()"),
    ],
)
def test_decoders_that_are_refused(evaluate, images, decoder, words):
    with pytest.raises(crais.UsageError, match=words):
        evaluate(None, images, likelihood=None, decoder=decoder, latent=4)


@pytest.mark.parametrize("kind", [crais.Bernoulli, crais.ContinuousBernoulli])
def test_probabilities_in_place_of_logits_are_refused(evaluate, curved, images, kind):
    logits = evaluate(curved, images, likelihood=kind())
    with pytest.raises(crais.UsageError, match=rf"takes probabilities, in \[0, 1\]; {kind.__name__}\(\)"):
        evaluate(curved, images, likelihood=kind(probs=True))
    curved.decoder.append(nn.Sigmoid())
    with pytest.raises(crais.UsageError, match=rf"say {kind.__name__}\(probs=True\) .*probs=False"):
        evaluate(curved, images, likelihood=kind())
    said = evaluate(curved, images, likelihood=kind(probs=True))
    np.testing.assert_allclose(said.log_likelihood, logits.log_likelihood, atol=0.02)
    with pytest.warns(UserWarning, match="taken for logits"):
        other = evaluate(curved, images, likelihood=kind(probs=False))
    assert abs(other.mean - logits.mean) > 1
    assert "taken for logits" in other.warnings[0] and logits.warnings == said.warnings == []


def frozen(function):
    def call(*inputs):
        with torch.no_grad():
            return function(*inputs)

    return call


@pytest.mark.parametrize(
    "broken",
    [
        frozen,
        lambda decode: torch.inference_mode()(decode),
        lambda decode: lambda z: decode(z).detach(),
        lambda decode: lambda z: decode(z.detach()),
        lambda decode: lambda z: torch.as_tensor(decode(z).detach().numpy()),
    ],
)
def test_a_decoder_without_a_gradient_is_refused(evaluate, curved, mlp, images, broken):
    for model in (curved, mlp):
        with pytest.raises(crais.UsageError, match="gradient of .* is not that of its values"):
            evaluate(None, images, decoder=broken(lambda z, m=model: m.decoder(z).view(-1, 6, 6)), latent=4)


def failing_far_away(z):
    if z.abs().max() > 1e3:
        raise ArithmeticError("far")
    return 0.0


@pytest.mark.parametrize(
    "term",
    [
        lambda z: -z.abs().sum(1),
        lambda z: -(10 * z).round().abs().sum(1),
        lambda z: torch.where(z[:, 0] > 0, 1.0, 0.0),
        failing_far_away,
    ],
)
def test_values_with_steps_and_kinks_are_taken(evaluate, images, term):
    of_joint(evaluate, lambda z, x: quadratic(z, x) + term(z), images)


@pytest.mark.parametrize(
    "loss",
    [
        lambda z: 0.5 * z.square().sum(1),
        lambda z: nn.functional.softplus(z).sum(1),
        lambda z: z.abs().sum(1).log1p() * 100,
        lambda z: z[:, 0] - 0.01 * z.sum(1),
    ],
)
def test_a_density_that_grows_without_bound_is_refused(evaluate, images, loss):
    with pytest.raises(crais.UsageError, match=r"log p\(x, z\) grows without bound.*wrong sign"):
        of_joint(evaluate, lambda z, x: loss(z), images)
    with pytest.raises(crais.UsageError, match="log density grows without bound.*wrong sign"):
        crais.log_normalizer(loss, dim=4, progress=False)
    with pytest.raises(crais.UsageError, match=r"log p\(z\) grows without bound.*wrong sign"):
        evaluate(None, images, decoder=lambda z: z.repeat(1, 9).view(-1, 6, 6), latent=4, log_prior=loss)


SAMPLES = {"steps": None, "chains": None}


@pytest.mark.parametrize("options", [{}, SAMPLES | {"method": "iwae:99"}, SAMPLES | {"method": "elbo:99"}], ids=str)
def test_a_density_that_is_no_number_names_image_and_point(evaluate, images, options):
    images = images.clone()
    images[:, 0, 0] = 0
    images[13, 0, 0] = 1

    def log_joint(z, x):
        if x.shape[0] <= 4:  # the checks at the beginning have data of their own
            return quadratic(z, x)
        return quadratic(z, x) + torch.where(x[:, 0, 0] > 0.5, float("nan"), 0.0)

    with pytest.raises(crais.DataError, match=r"of image 13 is not finite at z = \(-?[0-9.]+, "):
        of_joint(evaluate, log_joint, images, threads=1, **options)


def test_a_density_that_is_no_number_at_a_drawn_image():
    run = native.Run({"joint": lambda z, x: (torch.full((1,), float("nan")), z)}, False, "image")
    run.start("", torch.zeros(2, 3), [3])
    run.call("joint", (torch.zeros(1, 2), torch.ones(1, 3)))
    assert "of an image that the model draws is not finite at z = (0, 0)" in run.astray


def test_files_that_are_not_there(evaluate, images):
    with pytest.raises(crais.NoInputError, match="nowhere.pt: no such file"):
        evaluate("nowhere.pt", images, likelihood=None)
    with pytest.raises(crais.UsageError, match="likelihood of a file must be a name, not Bernoulli"):
        evaluate("nowhere.pt", images)


class BrokenGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return -z.square().sum(1)

    @staticmethod
    def backward(ctx, grad):
        raise KeyError("mine")


def test_what_a_function_raises_comes_out_with_its_traceback(evaluate, mlp, images):
    def broken(z, x=None):
        if x is None or z.shape[0] > 8:
            raise KeyError("mine")
        return quadratic(z, x)

    for call in (
        lambda: of_joint(evaluate, broken, images),
        lambda: crais.log_normalizer(broken, dim=3, progress=False),
        lambda: crais.log_normalizer(BrokenGradient.apply, dim=3, progress=False),
    ):
        with pytest.raises(KeyError, match="mine") as raised:
            call()
        assert any(entry.name in ("broken", "backward") for entry in raised.traceback)
    assert_signals_are_as_before(evaluate, mlp, images)


# How it stops.


def test_an_interrupt_keeps_what_is_done(evaluate, images, tmp_path):
    calls = []

    def log_joint(z, x):
        calls.append(1)
        if len(calls) == 60:
            os.kill(os.getpid(), signal.SIGINT)
        return quadratic(z, x)

    options = {"threads": 1, "out": tmp_path / "out"}
    with pytest.raises(crais.Interrupted, match="of 20 images are done") as raised:
        of_joint(evaluate, log_joint, images, **options)
    assert isinstance(raised.value, KeyboardInterrupt)
    assert len(calls) == 60  # the next batch was not begun
    done = raised.value.result
    assert 0 < len(done) < 20 and len(done) % 4 == 0
    whole = of_joint(evaluate, log_joint, images, resume=True, **options)
    assert np.array_equal(whole.log_likelihood[: len(done)], done.log_likelihood)


# Hours of the fused evaluator, in one chunk.
LONG = {"chunk": 20, "chains": 64, "steps": 5_000_000, "threads": 1}


@pytest.fixture
def begun(monkeypatch):
    """How many runs have their images, and compute now."""
    runs = []
    start = native.Run.start
    monkeypatch.setattr(native.Run, "start", lambda *of: (start(*of), runs.append(of[0])))
    return runs


def interrupt_once(ready, delay=0.0):
    """Ctrl-C, so many seconds after `ready()` holds."""

    def wait():
        while not ready():
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def assert_signals_are_as_before(evaluate, mlp, images):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt) as raised:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    assert type(raised.value) is KeyboardInterrupt
    evaluate(mlp, images)  # no interrupt is left over


def test_an_interrupt_of_the_evaluator_keeps_finished_chunks(evaluate, mlp, images, tmp_path):
    # Three chunks are left when the second is there: a second of work.
    options = {"out": tmp_path / "out", "chunk": 4, "threads": 1, "steps": 1_000, "control": 0}
    interrupt_once((tmp_path / "out" / "chunks" / "000001.json").exists)
    with pytest.raises(crais.Interrupted, match="of 20 images are done") as raised:
        evaluate(mlp, images, **options)
    assert 8 <= len(raised.value.result) < 20
    assert_signals_are_as_before(evaluate, mlp, images)
    whole = evaluate(mlp, images, resume=True, **options)
    done = len(raised.value.result)
    assert np.array_equal(whole.log_likelihood[:done], raised.value.result.log_likelihood)


def test_an_interrupt_stops_the_runs_of_all_threads_within_a_chunk(evaluate, mlp, images, begun):
    found = []

    def work():
        with pytest.raises(crais.Interrupted) as raised:
            evaluate(mlp, images, **LONG)
        found.append(raised.value.result)

    other = threading.Thread(target=work)
    other.start()
    interrupt_once(lambda: len(begun) == 2, delay=0.3)
    work()
    other.join()
    assert found == [None, None]
    assert_signals_are_as_before(evaluate, mlp, images)


def test_an_interrupt_that_another_handler_takes_stops_nothing(evaluate, mlp, images, tmp_path):
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        interrupt_once((tmp_path / "out" / "chunks" / "000001.json").exists)
        found = evaluate(mlp, images, out=tmp_path / "out", chunk=4, threads=1, steps=1_000)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert seen == [1] and len(found) == 20


ENDS = """
import threading, time, torch, crais
from crais import native
begun = threading.Semaphore(0)
start = native.Run.start
native.Run.start = lambda *of: (start(*of), begun.release())
def log_joint(z, x):
    time.sleep(0.001)
    return -z.square().sum(1)
class Mlp(torch.nn.Module):
    decode = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    likelihood = crais.Bernoulli()
def called():
    crais.evaluate(log_joint=log_joint, images=torch.zeros(500, 4), latent=2, base="prior",
                   progress=False, threads=2)
def fused():
    crais.evaluate(Mlp().eval(), torch.zeros(9, 4), latent=2, base="prior", steps=5_000_000,
                   progress=False)
for work in (called, fused):
    threading.Thread(target=work, daemon=True).start()
    begun.acquire()
time.sleep(0.3)
print("ends")
"""


def test_python_may_end_in_the_middle(compiled):
    done = python(ENDS)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
    assert "Fatal" not in done.stderr


# Progress.


def test_progress_can_be_seen_and_silenced(evaluate, curved, images, capfd):
    evaluate(curved, images)
    assert capfd.readouterr().err == ""
    pytest.importorskip("tqdm")
    evaluate(curved, images, control=0, progress=True)
    assert "20/20" in capfd.readouterr().err


# Without the extension, or with another torch.


def test_of_several_torches_the_one_that_is_there_is_chosen(monkeypatch, tmp_path):
    for minor in ("2.9", "2.10", "2.14"):
        (tmp_path / f"torch-{minor}").mkdir()
    monkeypatch.setattr(programs, "_PACKAGE", tmp_path)
    monkeypatch.setattr(programs, "torch_folder", lambda: tmp_path)
    for version in ("2.10.1", "2.10.9+cu130"):
        (tmp_path / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
        assert programs.library() == tmp_path / "torch-2.10"
    for version in ("2.16.0", "2.101.0"):
        (tmp_path / "version.py").write_text(f"__version__ = '{version}'\n")
        words = rf"for torch 2.9, 2.10, 2.14, .* torch {version}; .*'torch==2.14.\*', or build .*: pip install \."
        with pytest.raises(ImportError, match=words):
            programs.library()


def test_the_version_is_that_of_the_build(program):
    lists = Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    version = re.search(r"project\(crais VERSION ([0-9.]+)", lists.read_text())
    assert version and crais.__version__ == version[1]
    assert f" {crais.__version__}" in program("eval-loglik", "--version")


def test_the_sources_alone_export_and_say_what_is_missing(tmp_path):
    script = "import sys; sys.path[:0] = sys.argv[1:]; import crais; crais.export; crais.Bernoulli(); crais.evaluate"
    paths = [Path(__file__).parents[1], Path(torch.__file__).parents[1]]
    command = [sys.executable, "-S", "-c", script, *paths]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={})
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: this part of crais is compiled") and "pip install ." in last


def test_names_are_where_they_are_said_to_be(compiled):
    for name, place in crais._PLACES.items():
        value = getattr(crais, name)
        where = value.__name__ if place == "crais" else value.__module__
        assert where == (f"crais.{name}" if place == "crais" else place)
    assert dir(crais) == sorted([*crais.__all__, "__version__"])
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        crais.evalute  # noqa: B018

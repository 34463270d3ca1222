"""What test_devices.py runs, on the device $CRAIS_TEST_DEVICE: numbers are the CPU's.

The mock device has the CPU's random numbers. On a GPU, estimates agree within their errors.
"""

import contextlib
import copy
import ctypes
import os
import types

import numpy as np
import pytest
import torch

import crais

ALIKE = {"progress": False}
if os.environ["CRAIS_TEST_DEVICE"] == "mock":
    ALIKE |= {"force_dtype": "float32"}
CHEAP = {"steps": 16, "chains": 16, "chunk": 8, **ALIKE}


def register_mock_device():
    """As a package for a device does: its operations, its name, and its module."""
    ctypes.CDLL(os.environ["CRAIS_MOCK_DEVICE"]).crais_make_mock_device()
    torch.utils.rename_privateuse1_backend("mock")
    states = {"mock": torch.Generator().get_state()}
    module = types.ModuleType("torch.mock")
    module.get_amp_supported_dtype = lambda: [torch.float16]
    module.get_rng_state = lambda device="mock": states["mock"].clone()
    module.set_rng_state = lambda state, device="mock": states.update(mock=state)
    module.manual_seed = lambda seed: states.update(mock=torch.Generator().manual_seed(seed).get_state())
    module.manual_seed_all = module.manual_seed
    module._is_in_bad_fork = lambda: False
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.device = lambda device: contextlib.nullcontext()
    torch._register_device_module("mock", module)


if os.environ["CRAIS_TEST_DEVICE"] == "mock":
    register_mock_device()
DEVICE = torch.device(os.environ["CRAIS_TEST_DEVICE"], 0)


def assert_same(there, here):
    """`there` was estimated on the device."""
    assert there.summary["device"] == str(DEVICE) and here.summary["device"] == "cpu"
    assert here.std_error.max() > 0
    name = "log_likelihood" if isinstance(there, crais.Result) else "log_normalizer"
    apart = np.abs(getattr(there, name) - getattr(here, name))
    if DEVICE.type == "mock":
        # The fused evaluator is the CPU's: elsewhere LibTorch rounds otherwise, in float32, and a
        # proposal in thousands is accepted here and not there.
        assert np.median(apart) < 2e-3  # replicates share a plan: if it is apart, all are a little
    error = np.hypot(there.std_error, here.std_error)
    assert (apart < 5 * error + 1e-3).all()


@pytest.mark.parametrize(
    ("kind", "base"), [("mlp", "encoder"), ("mlp", "laplace"), ("curved", "encoder"), ("curved", "prior")]
)
def test_a_model_has_the_cpu_s_numbers(request, images, kind, base):
    model = request.getfixturevalue(kind)
    options = {"likelihood": crais.Bernoulli(), "base": base, **CHEAP}
    here = crais.evaluate(model, images, **options)
    model.to(DEVICE)
    assert_same(crais.evaluate(model, images, **options), here)
    if base == "encoder":
        there = crais.evaluate(model, images.to(DEVICE), device=DEVICE.type, **options)
        assert_same(there, here)


class Resampled(torch.nn.Module):
    """Slices and bilinear images, whose layers are made where the model is."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second = torch.nn.Linear(3, 20), torch.nn.Linear(16, 24)
        self.second.weight.data *= 4

    def decode(self, z):
        h = torch.tanh(self.first(z[:, 1:])[:, 2:18])
        h = self.second(h)[:, 8:].view(-1, 1, 4, 4)
        return torch.nn.functional.interpolate(h, size=(6, 6), mode="bilinear")[:, 0]


def test_known_layers_of_images(images):
    model = Resampled().eval()
    options = {"likelihood": crais.Bernoulli(), "latent": 4, "base": "prior", **CHEAP}
    here = crais.evaluate(model, images, **options)
    assert here.summary["evaluator"] != "pytorch"
    assert_same(crais.evaluate(model.to(DEVICE), images, **options), here)


def test_counts_have_certificates():
    torch.manual_seed(6)
    net = torch.nn.Linear(3, 20).eval().to(DEVICE)
    bounds = crais.certify(
        decoder=lambda z: net(z), likelihood=crais.ZeroInflatedNegativeBinomial(2.0), latent=3,
        image_shape=(10,), num_images=8, **CHEAP,
    )  # fmt: skip
    assert abs(bounds.gap) < 1 and bounds.images.max() > 1


def test_functions_get_tensors_of_the_device(images):
    shift, seen = torch.ones(36, device=DEVICE), set()

    def log_joint(z, x):
        seen.add((z.device, x.device))
        return -0.5 * (z.square().sum(1) + (x.flatten(1) * shift - z[:, :1]).square().sum(1))

    crais.evaluate(log_joint=log_joint, images=images, latent=4, base="prior", **CHEAP)
    assert seen == {(DEVICE, DEVICE)}


def test_labels():
    torch.manual_seed(3)
    x, y, weight = torch.randn(6, 5), torch.randn(6, 5), torch.ones(1, 5)

    def estimate(device, labels):
        there = weight.to(device)
        return crais.evaluate(
            decoder=lambda z, y: y + z @ there, likelihood=crais.Gaussian(0.5), latent=1, images=x,
            labels=labels, base="prior", **CHEAP,
        )  # fmt: skip

    here = estimate("cpu", y)
    assert_same(estimate(DEVICE, y), here)
    assert_same(estimate(DEVICE, y.to(DEVICE)), here)


def test_a_density():
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)

    def estimate(device):
        there = precision.to(device)
        return crais.log_normalizer(
            lambda z: -0.5 * ((z @ there) * z).sum(1) - z[:, 0].square().square(), dim=2, problems=3, **CHEAP
        )  # fmt: skip

    assert_same(estimate(DEVICE), estimate("cpu"))


def test_priors_of_the_cpu():
    y = torch.tensor([1.0, 2.0], dtype=torch.float64)
    prior = {
        "mu": torch.distributions.Normal(torch.zeros(2), 1.0),
        "tau": torch.distributions.Gamma(torch.tensor(2.0), 3.0),
    }

    def estimate(device):
        there = y.to(device)
        return crais.log_normalizer(
            lambda theta: -0.5 * ((theta["mu"] - there) * theta["tau"][:, None]).square().sum(1),
            prior=prior, base="prior", witness="none", problems=3, **CHEAP,
        )  # fmt: skip

    assert_same(estimate(DEVICE), estimate("cpu"))


def test_the_device_s_random_state_is_as_before(curved, images):
    module = torch.get_device_module(DEVICE)
    before = module.get_rng_state(DEVICE)
    crais.evaluate(curved.to(DEVICE), images, likelihood=crais.Bernoulli(), base="prior", **CHEAP)
    assert torch.equal(module.get_rng_state(DEVICE), before)


def test_a_model_that_is_in_two_places(curved, images):
    half = copy.deepcopy(curved)
    half.decoder.to(DEVICE)
    with pytest.raises(crais.UsageError, match=f"on several devices: cpu, {DEVICE}$"):
        crais.evaluate(half, images, likelihood=crais.Bernoulli(), **CHEAP)
    with pytest.raises(crais.UsageError, match=f"the model is on {DEVICE}, not cpu; move it"):
        curved.to(DEVICE)
        crais.evaluate(curved, images, likelihood=crais.Bernoulli(), device="cpu", **CHEAP)


def test_export_of_such_a_model(curved, tmp_path):
    if DEVICE.type != "mock":
        pytest.skip("a GPU's models are exported")
    with pytest.raises(crais.UsageError, match=f"on {DEVICE} cannot be exported; move it"):
        crais.export(
            tmp_path / "m.pt", decoder=curved.to(DEVICE).decoder, likelihood=crais.Bernoulli(),
            latent=4, image_shape=(36,), quiet=True,
        )  # fmt: skip

"""`crais.log_normalizer`: densities that are Python functions."""

import math

import numpy as np
import pytest
import torch

import crais

pytestmark = pytest.mark.usefixtures("compiled")


def skewed(z):
    """A banana: exp(-z1^2/2 - (z2 - z1^2 / 4)^2 / 0.5), Z = 2 pi 0.5."""
    x, y = z[:, 0], z[:, 1]
    return -0.5 * x.square() - 0.5 * ((y - x.square() / 4) / 0.5).square()


def test_a_known_normaliser():
    found = crais.log_normalizer(skewed, dim=2, steps=200, problems=20, chains=64, progress=False)
    assert abs(found.mean - math.log(math.pi)) < 5 * found.mc_se
    assert found.mc_se < 0.05 and len(found.log_normalizer) == 20


def test_a_function_has_the_bits_of_the_same_target_in_the_program(program):
    named = crais.log_normalizer("normal:3,mean=1,sd=0.5", progress=False, seed=4)
    printed = program("estimate-logz", "normal:3,mean=1,sd=0.5", "--seed=4", "--format=csv", "--quiet")
    header, row = (line.split(",") for line in printed.splitlines()[:2])
    assert float(row[header.index("log_normalizer")]) == named.mean
    function = crais.log_normalizer(
        lambda z: -0.5 * ((z - 1) / 0.5).square().sum(1), dim=3, progress=False, seed=4
    )
    np.testing.assert_allclose(function.log_normalizer, named.log_normalizer, atol=1e-9)


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return skewed(z)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return 5 * grad.unsqueeze(1) * z  # of the wrong sign and size


def test_the_gradient_is_the_function_s_own():
    """A wrong gradient loses chains: moves are refused. The right one is autograd's."""
    flags = {"dim": 2, "steps": 50, "step_size": 0.3, "progress": False}
    right = crais.log_normalizer(skewed, **flags)
    wrong = crais.log_normalizer(WrongGradient.apply, **flags)
    assert right.accept_prob.mean() > wrong.accept_prob.mean() + 0.1
    assert abs(wrong.mean - math.log(math.pi)) < 1  # refused moves leave the estimate right


def test_laplace_of_a_function_is_exact_for_a_normal():
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    found = crais.log_normalizer(
        lambda z: -0.5 * ((z @ precision) * z).sum(1), dim=2, base="laplace", progress=False
    )
    truth = math.log(2 * math.pi) - 0.5 * math.log(float(torch.linalg.det(precision)))
    assert found.mean == pytest.approx(truth, abs=1e-9)


def test_modules_in_float32():
    layer = torch.nn.Linear(2, 1)
    found = crais.log_normalizer(
        lambda z: layer(z)[:, 0] - z.square().sum(1), dim=2, dtype="float32", progress=False
    )
    assert math.isfinite(found.mean) and found.summary["settings"]["dtype"] == "float32"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: z.sum(), r"one entry a row, \[\d+\]; it has \[\]"),
        (lambda z: 1.0, "a float"),
        (lambda z: z.sum(1).float(), "float32, z is torch.float64; see dtype"),
        (lambda z: z.sum(1).long(), "must be floating"),
        (lambda z: torch.as_tensor(z.detach().numpy()).sum(1), "no differentiable function of z"),
    ],
)
def test_functions_that_are_refused(function, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.log_normalizer(function, dim=3, progress=False)


def test_what_the_function_raises_comes_out_with_its_traceback():
    def broken_density(z):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as raised:
        crais.log_normalizer(broken_density, dim=3, progress=False)
    assert any(entry.name == "broken_density" for entry in raised.traceback)


def test_an_exception_in_a_backward_pass_comes_out():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return -z.square().sum(1)

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("backward")

    with pytest.raises(LookupError, match="backward"):
        crais.log_normalizer(Broken.apply, dim=3, progress=False)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("u99",), {}, "unknown target"),
        ((skewed,), {}, "give dim=D"),
        (("u1",), {"dim": 2}, "its own"),
        (("u1",), {"chains": 0}, "^chains: must be at least 1"),
    ],
)
def test_nonsense(arguments, options, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.log_normalizer(*arguments, progress=False, **options)

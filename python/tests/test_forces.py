"""Forces in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import crais
from crais.captured_model import CapturedModel, prior_of


class Decoder(nn.Module):
    """Transposed and plain convolutions behind a matrix product that is large enough to cast."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(
            nn.Linear(6, 512), nn.ReLU(), nn.Linear(512, 512), nn.Unflatten(1, (32, 4, 4)),
            nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )  # fmt: skip

    def forward(self, z: Tensor) -> Tensor:
        return self.layers(z)


def model_of(decoder: nn.Module, shape: tuple[int, ...], latent: int = 6) -> CapturedModel:
    return CapturedModel(
        latent=latent,
        shape=shape,
        decoder=decoder.eval(),
        likelihood=crais.Bernoulli(),
        prior=prior_of(None, None),
        encoder=None,
        log_joint=None,
    )


@pytest.fixture(scope="module")
def model() -> CapturedModel:
    return model_of(Decoder(), (1, 16, 16))


def rows(model: CapturedModel, count: int) -> tuple[Tensor, ...]:
    torch.manual_seed(4)
    return model.examples("joint")(count)


def test_forces_leave_values_as_they_are_and_change_gradients_a_little(model):
    z, x = rows(model, 7)
    value, grad = model.joint(z, x)
    same, force = model.joint_bfloat16(z, x)
    assert torch.equal(same, value)
    apart = (force - grad).norm(dim=1) / grad.norm(dim=1)
    assert force.dtype == torch.float32
    assert 1e-5 < apart.min() and apart.max() < 2e-2


def test_what_is_cast_pays_for_its_casts(model):
    found = model.shorter_products()
    # The matrix of 512 x 512 and two convolutions; not the first layer, nor the last.
    assert found.count == 3
    assert found.work == 512 * 512 + 32 * 16 * 16 * 16 + 8 * 8 * 16 * 16 * 9
    small = model_of(nn.Linear(6, 4), (4,))
    assert small.shorter_products().count == 0


def test_a_force_is_a_function_of_its_row(model):
    z, x = rows(model, 64)
    force = model.joint_bfloat16(z, x)[1]
    # The same point at the same place: to the last bit, whatever the other rows are.
    assert torch.equal(model.joint_bfloat16(z, x)[1], force)
    other = torch.where(torch.arange(64)[:, None] == 5, z, torch.randn_like(z))
    assert torch.equal(model.joint_bfloat16(other, x)[1][5], force[5])
    # In other places and among fewer rows: to the rounding of bfloat16.
    for part in (z[:1], z[:17], z.flip(0)):
        count = part.shape[0]
        data = x.flip(0) if count == 64 else x[:count]
        found = model.joint_bfloat16(part, data)[1]
        expected = force.flip(0) if count == 64 else force[:count]
        assert (found - expected).norm() < 1e-2 * expected.norm()


def linear_gaussian() -> tuple[dict[str, Any], Callable[[Tensor], Tensor]]:
    """A decoder that is linear, in two layers large enough to cast, and its exact log p(x)."""
    torch.manual_seed(7)
    first, second = nn.Linear(4, 256), nn.Linear(256, 512)
    last = nn.Linear(512, 6)
    noise = 0.5

    def decoder(z: Tensor) -> Tensor:
        return last(second(first(z)))

    with torch.no_grad():
        bias = decoder(torch.zeros(1, 4))[0].double()
        weight = decoder(torch.eye(4)).double() - bias
    covariance = weight.T @ weight + noise**2 * torch.eye(6, dtype=torch.float64)
    law = torch.distributions.MultivariateNormal(bias, covariance)

    def log_joint(z: Tensor, x: Tensor) -> Tensor:  # which nothing recognises as an MLP
        return crais.StandardNormal().log_prob(z) + crais.Gaussian(noise).log_prob(x, decoder(z))

    return dict(log_joint=log_joint, latent=4), lambda x: law.log_prob(x.double())


def test_estimates_with_forces_in_bfloat16_are_exact(compiled):
    described, exact = linear_gaussian()
    torch.manual_seed(8)
    x = torch.randn(8, 6)
    options = dict(described, base="prior", steps=32, chains=32, progress=False)
    found = {dtype: crais.evaluate(images=x, force_dtype=dtype, **options) for dtype in ("float32", "bfloat16")}
    truth = exact(x).numpy()
    for result in found.values():
        assert (abs(result.log_likelihood - truth) < 5 * result.std_error + 1e-4).all()
    assert (found["float32"].log_likelihood != found["bfloat16"].log_likelihood).any()
    # A small decoder has nothing to gain, and says so.
    small = dict(decoder=nn.Linear(4, 6).eval(), likelihood=crais.StudentT(3.0, 1.0), latent=4)
    with pytest.raises(crais.UsageError, match="force_dtype"):
        crais.evaluate(images=x, force_dtype="bfloat16", progress=False, **small)

"""What log Z must do when a density is shifted, permuted, scaled and moved, in each kind of space."""

import math

import pytest
import torch
from torch import distributions as D
from torch.distributions import constraints

import crais

pytestmark = pytest.mark.usefixtures("compiled")
OPTIONS = {"steps": 48, "chains": 48, "problems": 4, "base": "laplace"}
OPTIONS |= {"witness": "none", "progress": False}
SDS = torch.tensor([0.7, 1.6], dtype=torch.float64)
Y = torch.tensor([0.4, -1.1], dtype=torch.float64)
ORDER = torch.tensor([1, 0])


def normal(x, loc, sd):
    return D.Normal(loc, sd, validate_args=False).log_prob(x).sum(1)


# Each: z ~ N(loc, (scale SDS)^2), y ~ N(z, scale^2), and y = loc + scale Y; `order` permutes the
# coordinates, `shift` is added to the log likelihood.


def likelihood(loc, scale, order, shift):
    y = (loc + scale * Y)[order]
    return lambda z: normal(y, z, scale) + shift


def of_support(loc, scale, order, shift):
    log_likelihood, sd = likelihood(loc, scale, order, shift), (scale * SDS)[order]
    return {"target": lambda z: log_likelihood(z) + normal(z, loc, sd), "support": (constraints.real_vector, 2)}


def of_half_lines(loc, scale, order, shift):
    """The same z as exp of a number that may be anything, and one below a bound."""
    log_likelihood, sd = likelihood(loc, scale, order, shift), (scale * SDS)[order]

    def log_density(theta):
        log_theta = torch.stack([theta[:, 0].log(), (3 - theta[:, 1]).log()], 1)
        z = loc + scale * log_theta
        jacobian = 2 * math.log(scale) - log_theta.sum(1)
        return log_likelihood(z) + normal(z, loc, sd) + jacobian

    return {"target": log_density, "support": [(0, None), (None, 3)]}


def of_prior(loc, scale, order, shift):
    prior = D.Normal(torch.full((2,), loc, dtype=torch.float64), (scale * SDS)[order])
    return {"target": likelihood(loc, scale, order, shift), "prior": prior}


def of_prior_transform(loc, scale, order, shift):
    sd = (scale * SDS)[order]
    return {"target": likelihood(loc, scale, order, shift), "dim": 2,
            "prior_transform": lambda u: loc + sd * torch.special.ndtri(u)}  # fmt: skip


KINDS = [of_support, of_half_lines, of_prior, of_prior_transform]
CHANGES = {
    "as it is": {},
    "shifted": {"shift": 1e12},
    "permuted": {"order": ORDER},
    "small": {"scale": 1e-6},
    "large": {"scale": 1e6},
    "far": {"loc": 1e6},
    "far below": {"loc": -1e6},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_log_z_moves_as_it_must(kind, change):
    changes = {"loc": 0.0, "scale": 1.0, "order": torch.arange(2), "shift": 0.0} | CHANGES[change]
    truth = float(normal(Y.unsqueeze(0), 0.0, (1 + SDS.square()).sqrt())[0])
    truth += changes["shift"] - 2 * math.log(changes["scale"])
    found = crais.log_normalizer(**kind(**changes), **OPTIONS)
    rounding = 8 * 2.0**-52 * abs(truth)
    assert not found.flagged, found.reasons
    assert abs(found.mean - truth) < 5 * found.mc_se + 1e-3 + rounding, (found.mean, truth)
    assert found.mc_se < 0.05 + rounding

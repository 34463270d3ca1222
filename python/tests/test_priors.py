"""Every prior against torch.distributions, its own draws and integrals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support import traced_alike
from torch import Tensor, nn
from torch import distributions as D

import crais
from crais import priors as P

LATENT = 4
ROWS = 20_000


class Coupling(nn.Module):
    """An affine coupling layer: one half of z decides how the other is scaled and moved."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT // 2, 8), nn.Tanh(), nn.Linear(8, LATENT))

    def forward(self, e: Tensor) -> tuple[Tensor, Tensor]:
        kept, moved = e.chunk(2, 1)
        log_scale, shift = self.net(kept).chunk(2, 1)
        return torch.cat([moved * log_scale.exp() + shift, kept], 1), log_scale.sum(1)

    def inverse(self, z: Tensor) -> tuple[Tensor, Tensor]:
        moved, kept = z.chunk(2, 1)
        log_scale, shift = self.net(kept).chunk(2, 1)
        return torch.cat([kept, (moved - shift) * torch.exp(-log_scale)], 1), -log_scale.sum(1)


class Encoder(nn.Module):
    """x [B, 5] -> mean, log_var."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.net = nn.Linear(5, 2 * LATENT)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = self.net(self.norm(x)).chunk(2, 1)
        return mean, log_var


class TwoLevels(nn.Module):
    """z = (top, bottom); the bottom's mean depends on the top."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(2, 2)

    def forward(self, z: Tensor) -> Tensor:
        top, bottom = z.chunk(2, 1)
        away = 2 * (bottom - self.net(top))
        constant = 2 * math.log(2) - 0.5 * LATENT * math.log(2 * math.pi)
        return constant - 0.5 * (top.square() + away.square()).sum(1)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        top, bottom = e.chunk(2, 1)
        return torch.cat([top, self.net(top) + bottom / 2], 1)


def locs(count: int) -> Tensor:
    return 2 * torch.randn(count, LATENT)


def lower() -> Tensor:
    return torch.randn(LATENT, LATENT).tril(-1) + torch.diag(0.5 + torch.rand(LATENT))


MAKERS: dict[str, Callable[[], P.Prior]] = {
    "standard-normal": P.StandardNormal,
    "gaussian-sd": lambda: P.Gaussian(torch.randn(LATENT), sd=0.5 + torch.rand(LATENT)),
    "gaussian-tril": lambda: P.Gaussian(torch.randn(LATENT), scale_tril=lower()),
    "mixture": lambda: P.Mixture(torch.randn(3), locs(3), 0.5 + torch.rand(3, LATENT)),
    "vamp": lambda: P.VampPrior(Encoder(), torch.randn(6, 5)),
    "flow": lambda: P.Flow(Coupling()),
    "hierarchical": lambda: P.Hierarchical(levels := TwoLevels(), levels.sample),
}
NAMES = list(MAKERS)


def prior_of(name: str) -> P.Prior:
    torch.manual_seed(3)
    return MAKERS[name]().double().eval()


def numbers(prior: P.Prior, rows: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(4)
    e = torch.randn(rows, LATENT, dtype=torch.float64)
    return e, torch.rand(rows, prior.uniforms, dtype=torch.float64)


def mixture_of(prior: P.Prior) -> D.Distribution:
    assert isinstance(prior, (P.Mixture, P.VampPrior))
    log_weights, locs, log_scales = prior.components()
    parts = D.Independent(D.Normal(locs, log_scales.exp()), 1)
    return D.MixtureSameFamily(D.Categorical(logits=log_weights), parts)


REFERENCES: dict[str, Callable[[P.Prior], D.Distribution]] = {
    "standard-normal": lambda p: D.MultivariateNormal(torch.zeros(LATENT).double(), torch.eye(LATENT).double()),
    "gaussian-sd": lambda p: D.Independent(D.Normal(p.loc, p.log_sd.exp()), 1),
    "gaussian-tril": lambda p: D.MultivariateNormal(p.loc, scale_tril=p.scale_tril()),
    "mixture": mixture_of,
    "vamp": mixture_of,
}


def test_a_gaussian_keeps_the_numbers_it_was_given() -> None:
    torch.manual_seed(3)
    loc, tril = torch.randn(LATENT), lower()
    given = P.Gaussian(loc, scale_tril=tril)
    torch.testing.assert_close(given.scale_tril(), tril)
    torch.testing.assert_close(given.moments(LATENT), (loc, tril))
    narrow = P.Gaussian(loc, sd=0.25)
    torch.testing.assert_close(narrow.scale_tril(), 0.25 * torch.eye(LATENT))
    with pytest.raises(ValueError, match="sd or scale_tril"):
        P.Gaussian(loc)


@pytest.mark.parametrize("name", NAMES)
def test_density_draws_and_moments_are_of_one_distribution(name: str) -> None:
    prior = prior_of(name)
    e, u = numbers(prior, ROWS)
    if name in REFERENCES:
        torch.testing.assert_close(prior.log_prob(3 * e), REFERENCES[name](prior).log_prob(3 * e))
    assert prior.float().log_prob(torch.full((2, LATENT), 300.0)).isfinite().all()
    loc, scale_tril = (moment.double() for moment in prior.double().moments(LATENT))
    assert loc.shape == (LATENT,) and torch.equal(scale_tril, scale_tril.tril())
    assert torch.equal(loc, prior.moments(LATENT)[0].double())  # always the same

    # The density integrates to 1: by importance sampling from a wide normal around the moments.
    proposal = D.MultivariateNormal(loc, scale_tril=1.5 * scale_tril)
    wide = proposal.sample((10 * ROWS,))
    with torch.no_grad():
        ratio = torch.exp(prior.log_prob(wide) - proposal.log_prob(wide))
        z = prior.sample(e, u)
    error = ratio.std() / math.sqrt(len(ratio))
    assert error < 0.05 and abs(ratio.mean() - 1) < 5 * error + 1e-9

    # Draws are of the density: under p the means of s, z . s + D and (z - E[z])^2 s are 0, where s = grad log p(z).
    z.requires_grad_()
    (score,) = torch.autograd.grad(prior.log_prob(z).sum(), z)
    z = z.detach()
    centred = z - z.mean(0)
    for statistic in (score, (centred * score).sum(1) + LATENT, centred.square() * score):
        error = statistic.std(0) / math.sqrt(ROWS)
        assert (statistic.mean(0).abs() < 5 * error + 1e-9).all()

    # Moments are those of draws.
    assert ((z.mean(0) - loc).abs() < 8 * z.std(0) / math.sqrt(ROWS)).all()
    covariance = scale_tril @ scale_tril.T
    scale = covariance.diagonal().sqrt()
    assert ((torch.cov(z.T) - covariance).abs() / (scale.unsqueeze(1) * scale)).max() < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_functions_can_be_traced(name: str) -> None:
    prior = prior_of(name)

    def functions(z: Tensor, e: Tensor, u: Tensor) -> tuple[Tensor, ...]:
        z = z.detach().requires_grad_()
        value = prior.log_prob(z)
        (grad,) = torch.autograd.grad(value.sum(), z)
        return value.detach(), grad, prior.sample(e, u).detach()

    def arguments(rows: int) -> tuple[Tensor, ...]:
        e, u = numbers(prior, rows)
        return torch.randn_like(e), e, u

    traced_alike(functions, arguments)


@pytest.mark.parametrize("name", ["gaussian-sd", "gaussian-tril", "mixture", "vamp", "flow"])
def test_priors_learn(name: str) -> None:
    prior = prior_of(name).train()
    prior.log_prob(torch.randn(8, LATENT, dtype=torch.float64)).sum().backward()
    for parameter in prior.parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all()


def test_numbers_that_are_not_learned_have_no_gradient() -> None:
    torch.manual_seed(3)
    gaussian = P.Gaussian(torch.randn(LATENT), sd=1.0, learn=False)
    for prior in (gaussian, P.Mixture(torch.zeros(3), locs(3), 1.0, learn=False)):
        assert not any(parameter.requires_grad for parameter in prior.parameters())


def test_a_vamp_prior_in_eval_mode_runs_its_encoder_once() -> None:
    prior = P.VampPrior(Encoder(), torch.randn(6, 5))
    runs: list[int] = []
    prior.encode.register_forward_hook(lambda *_: runs.append(1))
    nn.ModuleList([prior]).eval()
    z = torch.randn(3, LATENT)
    kept = prior.log_prob(z)
    prior.log_prob(z)
    assert len(runs) == 1
    with torch.no_grad():
        prior.encode.net.bias += 1
    assert torch.equal(prior.log_prob(z), kept)
    prior.eval()
    assert not torch.equal(prior.log_prob(z), kept)
    prior.train()
    prior.log_prob(z)
    prior.log_prob(z)
    assert len(runs) == 4


def test_a_state_loaded_in_eval_mode_counts() -> None:
    z = torch.randn(3, LATENT)
    for make in (
        lambda: P.VampPrior(Encoder(), torch.randn(6, 5)),
        lambda: P.Gaussian(torch.randn(LATENT), scale_tril=lower()),
    ):
        first, second = make().eval(), make().eval()
        assert not torch.equal(first.log_prob(z), second.log_prob(z))
        nn.ModuleList([first]).load_state_dict(nn.ModuleList([second]).state_dict())
        assert torch.equal(first.log_prob(z), second.log_prob(z))


def test_pseudo_inputs_may_be_made_by_a_module() -> None:
    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Parameter(torch.zeros(6, 5))

        def forward(self) -> Tensor:
            return torch.sigmoid(self.logits)

    encoder = Encoder().eval()
    made = P.VampPrior(encoder, Images()).eval()
    given = P.VampPrior(encoder, torch.full((6, 5), 0.5)).eval()
    z = torch.randn(3, LATENT)
    torch.testing.assert_close(made.log_prob(z), given.log_prob(z))


def test_a_function_without_draws_says_so() -> None:
    prior = P.Hierarchical(lambda z: -z.square().sum(1))
    with pytest.raises(NotImplementedError):
        prior.sample(torch.zeros(1, LATENT), torch.zeros(1, 0))
    loc, scale_tril = prior.moments(LATENT)
    assert torch.equal(loc, torch.zeros(LATENT))
    assert torch.equal(scale_tril, torch.eye(LATENT))
    given = (torch.ones(LATENT), 2 * torch.eye(LATENT))
    assert P.Hierarchical(lambda z: z.sum(1), moments=given).moments(LATENT) is given


GIVEN: dict[str, tuple[Callable[[], D.Distribution], type]] = {
    "standard": (lambda: D.Normal(torch.zeros(LATENT), torch.ones(LATENT)), P.StandardNormal),
    "standard-scalar": (lambda: D.Normal(0.0, 1.0), P.StandardNormal),
    "scalar": (lambda: D.Normal(1.0, 2.0), P.Drawn),
    "normal": (lambda: D.Independent(D.Normal(torch.ones(LATENT), 0.5), 1), P.Gaussian),
    "multivariate": (lambda: D.MultivariateNormal(torch.ones(LATENT), scale_tril=lower()), P.Gaussian),
    "mixture": (
        lambda: D.MixtureSameFamily(D.Categorical(logits=torch.randn(3)), D.Independent(D.Normal(locs(3), 0.5), 1)),
        P.Mixture,
    ),
    "laplace": (lambda: D.Independent(D.Laplace(torch.zeros(LATENT), 1.0), 1), P.Drawn),
    "maps": (lambda: D.Independent(D.Laplace(torch.zeros(2, 1, 2), 1.0), 3), P.Drawn),
    "normal-maps": (lambda: D.Normal(torch.ones(2, 1, 2), 0.5), P.Gaussian),
    "student-t": (lambda: D.StudentT(torch.full((LATENT,), 5.0)), P.Drawn),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_distribution_becomes_a_prior(name: str) -> None:
    torch.manual_seed(3)
    make, kind = GIVEN[name]
    given = make()
    before = torch.get_rng_state()
    prior = P.of_distribution(given).eval()
    assert type(prior) is kind and torch.equal(torch.get_rng_state(), before)
    z = torch.randn(20, LATENT)
    log_p = given.log_prob(z.view(20, 2, 1, 2) if "maps" in name else z)
    wanted = log_p.flatten(1).sum(1) if log_p.dim() > 1 else log_p
    torch.testing.assert_close(prior.log_prob(z), wanted)
    draws = given.sample((40_000, LATENT) if "scalar" in name else (40_000,)).flatten(1)
    loc, scale_tril = prior.moments(LATENT)
    torch.testing.assert_close(loc, draws.mean(0), rtol=0, atol=0.1)
    torch.testing.assert_close(scale_tril @ scale_tril.T, torch.cov(draws.T), rtol=0.2, atol=0.2)
    drawn = prior.draw(40_000, LATENT)
    torch.testing.assert_close(drawn.std(0), draws.std(0), rtol=0.1, atol=0)


@pytest.mark.parametrize("prior", [D.Uniform(-1.0, 1.0), D.Beta(2.0, 1.5), D.Exponential(1.0)])
def test_a_prior_with_an_end(compiled: Path, tmp_path: Path, prior: D.Distribution) -> None:
    """Each latent makes one pixel, so that log p(x) is a sum of integrals over [low, high]."""
    torch.manual_seed(1)
    bent = lambda z: torch.tanh(2 * z)
    x = bent(prior.sample(torch.Size([6, 2]))) + 0.2 * torch.randn(6, 2)
    low, high = {"Uniform": (-1, 1), "Beta": (0, 1), "Exponential": (0, 20)}[type(prior).__name__]
    z = torch.linspace(low, high, 40001, dtype=torch.float64)[1:-1]
    each = D.Normal(bent(z), 0.2).log_prob(x.double().unsqueeze(2)) + prior.log_prob(z)
    truth = (each.logsumexp(2) + math.log((high - low) / 40000)).sum(1).numpy()
    arguments = {"prior": prior, "likelihood": crais.Gaussian(0.2), "latent": 2, "progress": False}
    r = crais.evaluate(decoder=bent, images=x, **arguments)
    assert r.summary["model"]["prior"] == type(prior).__name__ and not r.flagged
    assert (abs(r.log_likelihood - truth) < 5 * r.std_error + 0.005).all()
    assert low == 0 or abs(r.control.gap) < 5 * r.control.se
    options = {"prior": prior, "likelihood": crais.Gaussian(0.2), "latent": 2, "image_shape": (2,)}
    crais.export(tmp_path / "m.pt", decoder=bent, quiet=True, **options)
    exported = crais.evaluate(tmp_path / "m.pt", x, progress=False)
    assert (abs(exported.log_likelihood - truth) < 5 * exported.std_error + 0.005).all()


# What other packages have.


def decoder() -> nn.Module:
    return nn.Sequential(nn.Linear(LATENT, 9), nn.GELU("tanh"), nn.Linear(9, 12)).eval()


class Skewed(nn.Module):
    """A base that is no normal, as a flow of normflows' may have."""

    def log_prob(self, z: Tensor) -> Tensor:
        return D.Gumbel(0.0, 1.0).log_prob(z).sum(1)

    def sample(self, count: int) -> tuple[Tensor, Tensor]:
        z = D.Gumbel(0.0, 1.0).sample(torch.Size([count, LATENT]))
        return z, self.log_prob(z)


def of_zuko() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    zuko = pytest.importorskip("zuko")
    flow = zuko.flows.MAF(LATENT, transforms=2, hidden_features=(16,))
    for parameter in flow.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return flow, lambda z: flow().log_prob(z)


def of_normflows() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    nf = pytest.importorskip("normflows")
    net = nf.nets.MLP([LATENT // 2, 8, LATENT], init_zeros=False)
    base = nf.distributions.DiagGaussian(LATENT)
    base.loc.data.normal_()
    base.log_scale.data.normal_(std=0.3)
    flow = nf.NormalizingFlow(base, [nf.flows.AffineCouplingBlock(net), nf.flows.Permute(LATENT)])
    return flow, flow.log_prob


def of_no_package() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    return Skewed(), Skewed().log_prob


OTHERS = {"zuko": of_zuko, "normflows": of_normflows, "none": of_no_package}


@pytest.mark.parametrize("name", OTHERS)
def test_flows_of_other_packages_are_taken_as_they_are(name: str) -> None:
    torch.manual_seed(6)
    flow, log_prob = OTHERS[name]()
    flow.eval()
    prior = P.adapted(flow)
    assert isinstance(prior, P.Drawn) and prior.name == type(flow).__name__
    z = prior.draw(ROWS, LATENT)
    assert z.shape == (ROWS, LATENT)
    torch.testing.assert_close(prior.log_prob(z), log_prob(z), rtol=1e-4, atol=1e-4)
    loc, scale_tril = prior.moments(LATENT)
    torch.testing.assert_close(loc, z.mean(0), rtol=0, atol=0.1)
    torch.testing.assert_close(scale_tril @ scale_tril.T, torch.cov(z.T), rtol=0.2, atol=0.2)


def test_what_is_no_prior_is_refused() -> None:
    with pytest.raises(ValueError, match="log_prob and sample, not function; a function is log_prior"):
        P.adapted(lambda z: z.sum(1))


@pytest.mark.parametrize("name", ["zuko", "none"])
def test_flows_of_other_packages_have_estimates_and_certificates(name: str, compiled) -> None:
    torch.manual_seed(7)
    flow, log_prob = OTHERS[name]()
    options = {"decoder": decoder(), "likelihood": crais.Bernoulli(), "latent": LATENT,
               "steps": 30, "chains": 8, "base": "prior", "progress": False}  # fmt: skip
    for prior in (D.Independent(D.Gumbel(torch.zeros(LATENT), 1.0), 1), flow):
        bounds = crais.certify(prior=prior, num_images=10, image_shape=(12,), **options)
        assert abs(bounds.gap) < 0.3
    assert flow.training  # as it was
    found = crais.evaluate(images=bounds.images, prior=flow, **options)
    wanted = crais.evaluate(images=bounds.images, log_prior=log_prob, **options)
    assert abs(found.mean - wanted.mean) < 5 * math.hypot(found.mc_se, wanted.mc_se)


def test_modes_of_parts_are_as_before(compiled) -> None:
    flow = Coupling().eval()
    prior = crais.Flow(flow)
    crais.evaluate(
        decoder=decoder(), prior=prior, likelihood=crais.Bernoulli(), images=torch.ones(2, 12),
        latent=LATENT, steps=8, base="prior", progress=False,
    )  # fmt: skip
    assert prior.training and not flow.training

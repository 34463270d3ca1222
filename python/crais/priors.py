"""Priors p(z) of the latent variables z [B, D]. Log-densities are in nats."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D

from crais.errors import UsageError
from crais.outputs import plain as unwrapped
from crais.random_state import OwnNumbers

_DRAWS = 20_000


class Prior(nn.Module):
    """The base class of p(z) for rows z [B, D]. Derive your own from it.

    Export compiles `log_prob` and `sample`, so they may use tensor operations only.
    """

    uniforms: int = 0  # uniform numbers that a draw takes, besides D normal ones
    name: str = ""  # in results; that of the class where there is none

    def log_prob(self, z: Tensor) -> Tensor:
        """Returns log p(z) [B], nats."""
        raise NotImplementedError

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        """Returns z [B, D] as a function of normal e [B, D] and uniform u [B, uniforms]."""
        raise NotImplementedError(f"{type(self).__name__} has no `sample`")

    def draw(self, rows: int, latent: int) -> Tensor:
        """Draws z [rows, latent] on the prior's device, by PyTorch's generator or crais's own."""
        like: Tensor = next(self.parameters(), torch.zeros((), dtype=torch.float32))
        e = torch.randn(rows, latent, dtype=torch.float32)
        u = torch.rand(rows, self.uniforms, dtype=torch.float32)
        return self.sample(e.to(like), u.to(like))

    @torch.no_grad()
    def moments(self, latent: int) -> tuple[Tensor, Tensor]:
        """Returns mean [D] and Cholesky factor [D, D] of the covariance, from 20,000 draws."""
        with OwnNumbers():
            z = self.draw(_DRAWS, latent)
        return z.mean(0), _cholesky(torch.cov(z.T).reshape(latent, latent))


class StandardNormal(Prior):
    """The standard normal N(0, I) of z with any number of entries, or of this `shape`."""

    name = "standard-normal"

    def __init__(self, shape: Sequence[int] = ()) -> None:
        super().__init__()
        self.shape = torch.Size(shape)

    def log_prob(self, z: Tensor) -> Tensor:
        _check_shape(self.shape, z)
        return log_normal(z)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        return e

    def moments(self, latent: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(latent, dtype=torch.float32), torch.eye(latent, dtype=torch.float32)


class _Deriving(Prior):
    """A prior that derives a tensor from its parameters: in training at every call.

    `.eval()` derives it once and keeps it, and so does loading a state in eval mode.
    """

    _kept: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_kept", None, persistent=False)
        self.register_load_state_dict_post_hook(_derive_again)

    def derive(self) -> Tensor:
        """The tensor, from the parameters."""
        raise NotImplementedError

    def derived(self) -> Tensor:
        """The tensor that is kept, or a new one."""
        return self.derive() if self._kept is None else self._kept

    def train(self, mode: bool = True) -> _Deriving:
        super().train(mode)
        with torch.no_grad():
            self._kept = None if mode else self.derive()
        return self


def _derive_again(prior: nn.Module, _: Any) -> None:
    prior.train(prior.training)


class Gaussian(_Deriving):
    """N(loc, L L^T) with L = scale_tril, or L = diag(sd). `learn` makes its numbers parameters.

    loc is [D]; sd is [D] or a number; scale_tril is [D, D], lower triangular with a positive diagonal.
    """

    name = "gaussian"

    def __init__(
        self, loc: Tensor, sd: Tensor | float | None = None, scale_tril: Tensor | None = None, learn: bool = True
    ) -> None:
        super().__init__()
        if (sd is None) == (scale_tril is None):
            raise UsageError("give sd or scale_tril")
        self.loc = _tensor(loc, learn)
        if scale_tril is None:
            self.log_sd = _tensor(torch.as_tensor(sd).expand_as(loc).log(), learn)
            self.lower = None
        else:
            self.log_sd = _tensor(scale_tril.diagonal().log(), learn)
            self.lower = _tensor(scale_tril, learn)

    def scale_tril(self) -> Tensor:
        """L [D, D]."""
        diagonal = torch.diag(self.log_sd.exp())
        return diagonal if self.lower is None else self.lower.tril(-1) + diagonal

    def log_prob(self, z: Tensor) -> Tensor:
        return log_normal((z - self.loc) @ self.derived().T) - self.log_sd.sum()

    def derive(self) -> Tensor:
        """The inverse of L [D, D]."""
        identity = torch.eye(len(self.loc)).to(self.loc)
        return torch.linalg.solve_triangular(self.scale_tril(), identity, upper=False)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        return self.loc + e @ self.scale_tril().T

    @torch.no_grad()
    def moments(self, latent: int) -> tuple[Tensor, Tensor]:
        return self.loc.clone(), self.scale_tril()


GaussianPrior = Gaussian  # as the package calls it, which has a likelihood of that name


class _DiagonalMixture(Prior):
    """A mixture of M Gaussians with diagonal covariances."""

    uniforms = 1

    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights [M], means [M, D] and logarithms of standard deviations [M, D]."""
        raise NotImplementedError

    def log_prob(self, z: Tensor) -> Tensor:
        log_weights, locs, log_scales = self.components()
        e = (z.unsqueeze(1) - locs) * torch.exp(-log_scales)
        constants = log_weights - log_scales.sum(1) - 0.5 * z.shape[1] * math.log(2 * math.pi)
        return torch.logsumexp(constants - 0.5 * e.square().sum(2), 1)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        log_weights, locs, log_scales = self.components()
        below = torch.cumsum(log_weights.exp(), 0) < u  # [B, M]
        index = below.sum(1).clamp(max=locs.shape[0] - 1)
        return locs[index] + log_scales[index].exp() * e

    @torch.no_grad()
    def moments(self, latent: int) -> tuple[Tensor, Tensor]:
        log_weights, locs, log_scales = self.components()
        weights = log_weights.exp()
        mean = weights @ locs
        centred = locs - mean
        within = torch.diag(weights @ torch.exp(2 * log_scales))
        return mean, _cholesky(centred.T @ (weights.unsqueeze(1) * centred) + within)


class Mixture(_DiagonalMixture):
    """A mixture of Gaussians: logits [M] of the weights, means [M, D], standard deviations [M, D].

    `learn` makes its numbers parameters.
    """

    name = "mixture"

    def __init__(self, logits: Tensor, locs: Tensor, scales: Tensor | float, learn: bool = True) -> None:
        super().__init__()
        self.logits = _tensor(logits, learn)
        self.locs = _tensor(locs, learn)
        self.log_scales = _tensor(torch.as_tensor(scales).expand_as(locs).log(), learn)

    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        return torch.log_softmax(self.logits, 0), self.locs, self.log_scales


class VampPrior(_Deriving, _DiagonalMixture):
    """The mixture of q(z | pseudo-input), equally weighted (Tomczak and Welling, 2018).

    `encode` maps x to (mean, log_var), best as a module: then `.eval()` reaches it. pseudo_inputs
    [M, *shape] is a tensor, which `learn` makes a parameter, or a module without arguments that
    returns one. In training the encoder runs at every call; `.eval()` runs it once.
    """

    name = "vamp"

    def __init__(
        self, encode: Callable[[Tensor], tuple[Tensor, Tensor]], pseudo_inputs: Tensor | nn.Module, learn: bool = True
    ) -> None:
        super().__init__()
        self.encode = encode
        self.pseudo_inputs = _tensor(pseudo_inputs, learn) if isinstance(pseudo_inputs, Tensor) else pseudo_inputs

    def derive(self) -> Tensor:
        """Means and logarithms of standard deviations [2, M, D]."""
        inputs = self.pseudo_inputs
        locs, log_vars = self.encode(inputs if isinstance(inputs, Tensor) else inputs())
        return torch.stack([locs, 0.5 * log_vars])

    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        locs, log_scales = self.derived().unbind()
        return torch.full_like(locs[:, 0], -math.log(len(locs))), locs, log_scales


class Flow(Prior):
    """A flow: z = module.forward(e), where e [B, D] is standard normal.

    module.forward(e) returns z [B, D] and log |det dz/de| [B]; module.inverse(z) returns e and log |det de/dz|.
    """

    name = "flow"

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module: Any = module

    def log_prob(self, z: Tensor) -> Tensor:
        e, log_det = self.module.inverse(z)
        return log_normal(e) + log_det

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        return self.module(e)[0]


class Hierarchical(Prior):
    """A prior given as a function, such as log p(z2) + log p(z1 | z2) for two levels in one z.

    log_prior   z [B, D] -> log p(z) [B], nats; a module becomes a part of this one
    sample      as in `Prior`; without it the model cannot draw images, so it has no certificate
    moments     mean [D] and Cholesky factor [D, D] of the covariance; those of N(0, I) if left
                out. They decide how fast an estimate converges, not what it estimates
    """

    name = "function"

    def __init__(
        self,
        log_prior: Callable[[Tensor], Tensor],
        sample: Callable[[Tensor, Tensor], Tensor] | None = None,
        uniforms: int = 0,
        moments: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.log_prior = log_prior
        self._sample = sample
        self._moments = moments
        self.uniforms = uniforms

    def log_prob(self, z: Tensor) -> Tensor:
        return self.log_prior(z)

    def sample(self, e: Tensor, u: Tensor) -> Tensor:
        return super().sample(e, u) if self._sample is None else self._sample(e, u)

    def moments(self, latent: int) -> tuple[Tensor, Tensor]:
        if self._moments is not None:
            return self._moments
        if self._sample is not None:
            return super().moments(latent)
        return StandardNormal().moments(latent)


def adapted(prior: Any) -> Prior:
    """A prior of crais's for what people have: a distribution, a flow, a module with `log_prob`."""
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, D.Distribution):
        return of_distribution(prior)
    if callable(getattr(prior, "log_prob", None)) and callable(getattr(prior, "sample", None)):
        return Drawn(prior, torch.Size())
    made = None
    with contextlib.suppress(Exception):  # of a module that takes something
        made = prior() if isinstance(prior, nn.Module) else None
    if isinstance(made, D.Distribution):
        return Drawn(prior, made.event_shape)
    raise UsageError(
        "prior must be one of crais's, as crais.GaussianPrior(...), a distribution, a flow, or a "
        f"module with log_prob and sample, not {type(prior).__name__}; a function is log_prior=..."
    )


def of_distribution(distribution: D.Distribution) -> Prior:
    """A distribution of PyTorch's over z of any shape as one of these priors, over rows [D]."""
    plain = unwrapped(distribution)
    shape = torch.Size([*distribution.batch_shape, *distribution.event_shape])
    if isinstance(plain, D.MultivariateNormal) and plain.loc.dim() == 1:
        return Gaussian(plain.loc, scale_tril=plain.scale_tril, learn=False)
    if isinstance(plain, D.Normal):
        if bool((plain.loc == 0).all() and (plain.scale == 1).all()):
            return StandardNormal(shape)
        if shape:
            return Gaussian(plain.loc.flatten(), plain.scale.flatten(), learn=False)
    if isinstance(plain, D.MixtureSameFamily) and not plain.batch_shape:
        normal = unwrapped(plain.component_distribution)
        if isinstance(normal, D.Normal) and normal.loc.dim() == 2:
            weights: Any = plain.mixture_distribution
            return Mixture(weights.logits, normal.loc, normal.scale, learn=False)
    return Drawn(distribution, shape)


class Drawn(Prior):
    """What has PyTorch's `log_prob` and `sample`, over z of a shape [*], or makes it when called.

    Its draws come from PyTorch's generator. An empty shape: each coordinate of z has the distribution, or a module
    takes rows z [B, D]. normflows' flows have the two methods; zuko's are called.
    """

    def __init__(self, distribution: Any, shape: torch.Size) -> None:
        super().__init__()
        self.distribution, self.shape = distribution, shape
        self.name = type(distribution).__name__

    def _law(self) -> Any:
        law = self.distribution
        return law if hasattr(law, "log_prob") else law()

    def log_prob(self, z: Tensor) -> Tensor:
        _check_shape(self.shape, z)
        log_p: Tensor = self._law().log_prob(z.reshape(-1, *self.shape) if self.shape else z)
        return log_p.flatten(1).sum(1) if log_p.dim() > 1 else log_p  # of coordinates, or of rows already

    @torch.no_grad()
    def draw(self, rows: int, latent: int) -> Tensor:
        law = self._law()
        if not isinstance(law, D.Distribution):
            drawn = law.sample(rows)
        else:
            each = law is self.distribution and not self.shape
            drawn = law.sample(torch.Size([rows, latent] if each else [rows]))
        drawn = drawn if isinstance(drawn, Tensor) else drawn[0]  # beside which log p may stand
        return drawn.reshape(rows, -1)


def _check_shape(shape: torch.Size, z: Tensor) -> None:
    """Rows z [B, D] must have the numbers of a distribution over this shape; an empty one takes any."""
    if shape and shape.numel() != z.shape[1]:
        raise UsageError(f"the prior is a distribution of z {list(shape)}, and z has {z.shape[1]} numbers")


def log_normal(e: Tensor) -> Tensor:
    """log N(e; 0, I) of rows e [B, D]."""
    return -0.5 * (e.square().sum(1) + e.shape[1] * math.log(2 * math.pi))


def _tensor(values: Tensor, learn: bool) -> nn.Parameter:
    """A copy of the values in the module's state, learned or not."""
    return nn.Parameter(values.detach().clone(), requires_grad=learn)


def _cholesky(covariance: Tensor) -> Tensor:
    """A Cholesky factor, also where a direction has no variance."""
    jitter = 1e-6 * covariance.diagonal().mean()
    return torch.linalg.cholesky(covariance + jitter * torch.eye(len(covariance)).to(covariance))

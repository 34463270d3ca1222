"""The ratio of two normalisers from the works of anneals both ways."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from crais.errors import DataError, UsageError

_MIN_SHARED = 5.0  # works in the overlap; with as many, 95% intervals cover 93 to 97%
_MAX_SLOPE = 4.0  # standard errors


@dataclass(frozen=True, repr=False)
class AcceptanceRatio:
    """The log ratio of two normalisers by works of both directions, in nats, with its error.

    log_z         log(Z of the target / Z of the base), which is minus the free energy difference
    mc_se         its asymptotic standard error; it grows without limit as the overlap goes to 0
    lower, upper  log mean exp(-forward), -log mean exp(-reverse): bounds on average [Jarzynski 1997]
    overlap       in [0, 1]: the integral of p q / (a p + b q), where p and q are the densities of
                  forward works and negated reversed ones, a = N / (N + M), b = 1 - a [Hahn & Then
                  2009]. pymbar's scalar overlap is the same number
    flagged       True where the error is not to be trusted; `reasons` say why, and what mends it
    """

    log_z: float
    mc_se: float
    lower: float
    upper: float
    overlap: float
    reasons: list[str]

    @property
    def flagged(self) -> bool:
        return bool(self.reasons)

    def __repr__(self) -> str:
        lines = [
            f"log Z: {self.log_z:.9g} nats; Monte Carlo SE {self.mc_se:.2g}; overlap {self.overlap:.2g}",
            f"bounds on average: {self.lower:.9g} to {self.upper:.9g}",
        ]
        lines += [line for reason in self.reasons for line in textwrap.wrap(f"Flagged: {reason}.", 80)]
        return "\n".join(lines)


def from_work(forward: Any, reverse: Any) -> AcceptanceRatio:
    """Estimates the log ratio of two normalisers by the acceptance ratio, from works both ways.

    >>> crais.from_work(forward, reverse).log_z

    forward   [N], nats: works of anneals from draws of the base to the target. A work is minus the
              log weight of its anneal, so the mean of exp(-forward) estimates Z1 / Z0
    reverse   [M], nats: works of the same anneals run back from draws of the target. They are minus
              the log weights of these, so the mean of exp(-reverse) estimates Z0 / Z1

    At least 2 independent works of each; +inf is a weight of 0. Without anneals, forward is u1 - u0 at draws of the
    base, reverse u0 - u1 at draws of the target; u is minus the log density. log_z is the c that solves

        sum_i 1 / (1 + N/M exp(forward_i + c)) = sum_j 1 / (1 + M/N exp(reverse_j - c))

    [Bennett 1976, eq. 12; Crooks 2000]. The curvature of the likelihood of the works' directions
    gives the error, mc_se^2 = (1/N + 1/M) (1/overlap - 1) [Shirts, Bair, Hooker & Pande 2003].

    The result is flagged where fewer than 5 works lie in the overlap, and where the directions
    contradict each other by 4 standard errors: log(p / q) is w + log_z, so its slope must be 1.
    Works alone seldom show that reversed anneals start from draws that miss a part of the target.
    """
    ways = _works(forward, "forward"), _works(reverse, "reverse")
    n, m = map(len, ways)
    down, up = -ways[0] - math.log(n / m), ways[1] - math.log(n / m)
    log_z = _root(down, up)
    y = torch.cat([down, up]) - log_z  # the log odds of a work to be a reversed one
    log_shared = logsigmoid(y) + logsigmoid(-y)
    log_overlap = min(0.0, float(log_shared.logsumexp(0)) + math.log(1 / n + 1 / m))
    error = math.sqrt(1 / n + 1 / m) * float(torch.tensor(-log_overlap).double().expm1().sqrt())
    lower, upper = (float((-works).logsumexp(0)) - math.log(len(works)) for works in ways)
    reasons = _reasons(float(log_shared.exp().sum()), _slope(y, n, log_shared.exp()))
    return AcceptanceRatio(log_z, error, lower, -upper, math.exp(log_overlap), reasons)


def _works(values: Any, name: str) -> Tensor:
    try:
        array = values.double().numpy(force=True) if isinstance(values, Tensor) else values
        works = torch.from_numpy(np.array(array, dtype=float))
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"{name} is a {type(values).__name__}, not an array of works [N]") from None
    if works.dim() != 1 or len(works) < 2:
        raise UsageError(f"{name} has shape {list(works.shape)}: give at least 2 works, [N]")
    if wrong := int((works.isnan() | works.isneginf()).sum()):
        raise DataError(f"{name}: {wrong} of {len(works)} works are NaN or -inf; +inf is a weight of 0")
    if bool(works.isinf().all()):
        raise DataError(f"{name}: all {len(works)} works are +inf: no anneal has weight")
    return works


def _root(down: Tensor, up: Tensor) -> float:
    """The c at which sum sigmoid(down - c) is sum sigmoid(c - up), by bisection of their logs."""
    x = torch.cat([down, up])
    finite = x[x.isfinite()]
    reach = math.log(2 * len(x))  # there one sum exceeds the other
    low, high = float(finite.min()) - reach, float(finite.max()) + reach
    for _ in range(80):
        middle = low + (high - low) / 2
        if logsigmoid(down - middle).logsumexp(0) > logsigmoid(middle - up).logsumexp(0):
            low = middle
        else:
            high = middle
    return low + (high - low) / 2


def _slope(y: Tensor, n: int, shared: Tensor) -> float:
    """How many standard errors the slope of the log odds in the work is from 1: a score test."""
    residual = torch.cat([y[:n].sigmoid(), -(-y[n:]).sigmoid()])
    y = torch.where(y.isfinite(), y, 0.0)  # infinite works have no residual
    centred = y - (shared * y).sum() / shared.sum()
    return float((residual * centred).sum().abs() / (shared * centred.square()).sum().sqrt())


def _reasons(shared: float, slope: float) -> list[str]:
    found = {
        f"{shared:.2g} works lie in the overlap of the two directions, and the error needs "
        f"{_MIN_SHARED:g} (make anneals longer, or more of them)": shared < _MIN_SHARED,
        f"the two directions contradict each other by {slope:.2g} standard errors (check the signs of "
        "works, that both follow one plan, and that reversed anneals start from draws of the "
        "target)": slope > _MAX_SLOPE,
    }
    return [reason for reason, is_true in found.items() if is_true]

"""Evidences that every peer can be given: log L(theta) of rows, theta = T(e), e ~ N(0, I).

`xp` is numpy, torch or jax.numpy with `ndtr` beside it, so that all peers integrate one density.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[[Any, Any], Any]  # (rows [B, D], xp) -> [B, ...]


@dataclass(frozen=True)
class Problem:
    dim: int
    log_z: float  # exact, or to the digits given
    transform: Function  # e -> theta
    log_likelihood: Function  # theta -> nats


def uniform(low: float, high: float) -> Function:
    return lambda e, xp: low + (high - low) * xp.ndtr(e)


def shells(dim: int, log_z: float) -> Problem:
    def log_likelihood(theta: Any, xp: Any) -> Any:
        rest = (theta[:, 1:] ** 2).sum(1)
        radii = [((theta[:, 0] - c) ** 2 + rest) ** 0.5 for c in (-3.5, 3.5)]
        near, far = (-50 * (r - 2) ** 2 for r in radii)
        return xp.logaddexp(near, far) - math.log(0.1) - 0.5 * math.log(2 * math.pi)

    return Problem(dim, log_z, uniform(-6, 6), log_likelihood)


def eggbox(theta: Any, xp: Any) -> Any:
    return (2 + xp.cos(theta[:, 0] / 2) * xp.cos(theta[:, 1] / 2)) ** 5


def bananas(theta: Any, xp: Any) -> Any:
    x, y = theta[:, 0::2], theta[:, 1::2]
    return -(10 * (x**2 - y) ** 2 + (x - 1) ** 2).sum(1)


# Eight schools: mu ~ N(0, 5), tau ~ half Cauchy(0, 5), theta ~ N(mu, tau).
EFFECTS = (28, 8, -3, 7, -1, 1, 18, 12)
ERRORS = (15, 10, 16, 11, 9, 11, 10, 18)


def schools_prior(e: Any, xp: Any) -> Any:
    mu, tau = 5 * e[:, :1], 5 * xp.tan(0.5 * math.pi * xp.ndtr(e[:, 1:2]))
    return mu + tau * e[:, 2:]


def schools(theta: Any, xp: Any) -> Any:
    terms = [
        -0.5 * ((y - theta[:, i]) / s) ** 2 - math.log(s) - 0.5 * math.log(2 * math.pi)
        for i, (y, s) in enumerate(zip(EFFECTS, ERRORS))
    ]
    return sum(terms)


PROBLEMS = {
    "shells-2": shells(2, -1.7456),
    "shells-5": shells(5, -5.6736),
    "shells-10": shells(10, -14.5905),
    "eggbox": Problem(2, 235.85594, uniform(0, 10 * math.pi), eggbox),
    "bananas-10": Problem(10, -29.995788, uniform(-10, 10), bananas),
    # The half Cauchy has its factor 2 here, which Stan's `~` leaves out.
    "schools": Problem(10, -32.0044946 + math.log(2), schools_prior, schools),
}

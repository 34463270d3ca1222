"""Evidence by a fit, and by its draws: eprv3.py DATA SERIES PLANETS SEED (EPRV3EvidenceChallenge/Inputs/data)."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.distributions import Normal, Uniform

import crais

data, series, planets, seed = Path(sys.argv[1]), *map(int, sys.argv[2:])
t, v, s = np.loadtxt(data / f"rvs_000{series}.txt").T
bounds = np.loadtxt(data / f"prior_bounds_000{series}.txt", delimiter=",", usecols=(2, 3))[:planets].tolist()
lag = t[:, None] - t
noise = 3 * np.exp(-2 * np.sin(np.pi * lag / 20) ** 2 - lag**2 / 5000) + np.diag(s**2)
w, Q = np.linalg.eigh(noise)  # jitter adds to w


def sinusoid(velocity, low, high):
    found = []  # the phase of the sinusoid that fits best, and the velocities that it leaves
    for period in np.geomspace(low, high, 200):
        x = 2 * np.pi * t / period
        rows = Q.T @ np.stack([np.cos(x), np.sin(x), np.ones_like(x)], 1) / np.sqrt(w + 1)[:, None]
        a, squares, *_ = np.linalg.lstsq(rows, Q.T @ velocity / np.sqrt(w + 1), rcond=None)
        found.append((squares[0], -np.arctan2(a[1], a[0]), velocity - a[0] * np.cos(x) - a[1] * np.sin(x)))
    return min(found, key=lambda fit: fit[0])[1:]


phases, left = [], v
for bound in bounds:
    phase, left = sinusoid(left, *bound)
    phases.append(phase)
t, v, w, Q = map(torch.as_tensor, (t, v, w, Q))


def eccentric(mean, e):
    with torch.no_grad():  # E - e sin E = mean; the last step has a gradient
        E = mean + 0.85 * e * mean.sin().sign()
        for _ in range(8):
            E = E - ((E - e * E.sin() - mean) / (1 - e * E.cos())).clamp(-1, 1)
    return E - (E - e * E.sin() - mean) / (1 - e * E.cos())


def log_likelihood(u):
    """u: C and log(1 + jitter); of each planet log P, log(1 + K), longitude and eccentricity as a vector.

    The Rayleigh prior of e and the uniform one of its angle are a normal vector. The uniform longitude is
    counted from where a sinusoid fits.
    """
    residual, most = v - u[:, :1], 0 * u[:, 0]
    for i in range(planets):
        log_p, log_k, turn, x, y = u[:, 2 + 5 * i : 7 + 5 * i].unsqueeze(2).unbind(1)
        e, angle = (x.square() + y.square() + 1e-20).sqrt(), torch.atan2(y, x)
        most, e = torch.maximum(most, e[:, 0]), e.clamp(max=1 - 1e-9)
        mean = 2 * np.pi * (t / log_p.exp() + turn) + phases[i] - angle
        E = eccentric(torch.remainder(mean + np.pi, 2 * np.pi) - np.pi, e)
        cos, sin = (E.cos() - e) / (1 - e * E.cos()), (1 - e.square()).sqrt() * E.sin() / (1 - e * E.cos())
        residual = residual - log_k.expm1() * (angle.cos() * (cos + e) - angle.sin() * sin)
    variance = w + u[:, 1:2].expm1().square()
    value = -0.5 * ((residual @ Q).square() / variance + (2 * np.pi * variance).log()).sum(1)
    return torch.where(most < 1, value - planets * np.log1p(-np.exp(-12.5)), -np.inf)


def say(base, z):
    about = {"series": series, "planets": planets, "seed": seed, "base": base, "seconds": time.process_time() - began}
    print(json.dumps({**about, "log_z": z.log_z, "mc_se": z.mc_se, "reasons": z.reasons}))


prior = [Uniform(-1000, 1000), Uniform(0, np.log(100))]
for low, high in bounds:
    prior += [Uniform(np.log(low), np.log(high)), Uniform(0, np.log(1000)), Uniform(-0.5, 0.5)]
    prior += [Normal(0, 0.2), Normal(0, 0.2)]
began, asked = time.process_time(), {"prior": prior, "seed": seed, "threads": 1, "progress": False}
z = crais.log_normalizer(log_likelihood, **asked)
say("a fit", z)
draws = z.samples[torch.as_tensor(z.log_weights).softmax(0).multinomial(4000, replacement=True)]
say("draws", crais.log_normalizer(log_likelihood, draws=draws, **asked))

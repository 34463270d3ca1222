"""log Z by crais and by its peers, each at the settings of its own documentation, on the same densities.

    python3 bench/peers/logz.py PEER PROBLEM SEED    # one run: a line of JSON
    python3 bench/peers/logz.py RUNS                 # the table of a file of such lines

A run holds one estimate, the error that the peer claims, evaluations of log L, and seconds of one core,
the compilation of JAX among them. It ends after 300 such seconds, which its line then says. The table
has means over seeds, and the root mean square error. Needs, beside crais: pip install dynesty
nautilus-sampler ultranest pocomc blackjax jax scipy.
"""

import json
import math
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

MOST_SECONDS = 300

# --- Problems: log L(theta) of rows, theta = T(e), e ~ N(0, I). `xp` is numpy, torch or jax.numpy with
# `ndtr` beside it, so that all peers integrate one density.
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

# --- Peers
Answer = tuple[float, float | None, float]  # log Z, the error that the peer claims, evaluations


class Counted:
    """log L of rows in the unit cube or of theta, for NumPy; counts rows."""

    def __init__(self, problem: Problem) -> None:
        import numpy as np
        from scipy.special import ndtr, ndtri

        self.xp = SimpleNamespace(**{n: getattr(np, n) for n in ("cos", "tan", "logaddexp")}, ndtr=ndtr)
        self.np, self.ndtri, self.problem, self.evaluations = np, ndtri, problem, 0

    def of_cube(self, u: Any) -> Any:
        u = self.np.clip(self.np.atleast_2d(u), 1e-15, 1 - 1e-15)
        return self.of_normal(self.ndtri(u))

    def of_normal(self, e: Any) -> Any:
        e = self.np.atleast_2d(e)
        self.evaluations += len(e)
        return self.problem.log_likelihood(self.problem.transform(e, self.xp), self.xp)


def dynesty(problem: Problem, seed: int) -> Answer:
    import dynesty as package
    import numpy as np

    counted = Counted(problem)
    sampler = package.NestedSampler(
        lambda u: float(counted.of_cube(u)[0]), lambda u: u, problem.dim, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False)
    found = sampler.results
    return float(found.logz[-1]), float(found.logzerr[-1]), counted.evaluations


def nautilus(problem: Problem, seed: int) -> Answer:
    import nautilus as package

    counted = Counted(problem)
    sampler = package.Sampler(
        lambda u: u, counted.of_cube, n_dim=problem.dim, vectorized=True, pass_dict=False, seed=seed
    )
    sampler.run(verbose=False)
    return float(sampler.log_z), float(sampler.n_eff) ** -0.5, counted.evaluations


def ultranest(problem: Problem, seed: int) -> Answer:
    import numpy as np
    import ultranest as package

    np.random.seed(seed)
    counted = Counted(problem)
    names = [f"x{i}" for i in range(problem.dim)]
    sampler = package.ReactiveNestedSampler(names, counted.of_cube, lambda u: u, vectorized=True)
    found = sampler.run(viz_callback=False, show_status=False)
    return found["logz"], found["logzerr"], counted.evaluations


def pocomc(problem: Problem, seed: int) -> Answer:
    import pocomc as package
    from scipy.stats import norm

    counted = Counted(problem)
    sampler = package.Sampler(
        package.Prior([norm(0, 1)] * problem.dim), counted.of_normal, vectorize=True, random_state=seed
    )
    sampler.run(progress=False)
    log_z, error = sampler.evidence()
    return float(log_z), float(error), counted.evaluations


def blackjax(problem: Problem, seed: int) -> Answer:
    """Adaptive tempered SMC with HMC. It claims no error."""
    import blackjax as package
    import blackjax.smc.resampling as resampling
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    jax.config.update("jax_enable_x64", True)
    xp = SimpleNamespace(cos=jnp.cos, tan=jnp.tan, logaddexp=jnp.logaddexp, ndtr=ndtr)
    particles, moves, leapfrog = 1000, 10, 10

    def log_likelihood(e: Any) -> Any:
        return problem.log_likelihood(problem.transform(e[None], xp), xp)[0]

    smc = package.adaptive_tempered_smc(
        lambda e: -0.5 * (e**2).sum(),
        log_likelihood,
        package.hmc.build_kernel(),
        package.hmc.init,
        package.smc.extend_params(
            {"step_size": 0.1, "inverse_mass_matrix": jnp.eye(problem.dim), "num_integration_steps": leapfrog}
        ),
        resampling.systematic,
        0.5,
        num_mcmc_steps=moves,
    )
    key, start = jax.random.split(jax.random.PRNGKey(seed))
    state = smc.init(jax.random.normal(start, (particles, problem.dim)))
    step, log_z, rounds = jax.jit(smc.step), 0.0, 0
    while float(state.tempering_param) < 1:
        key, one = jax.random.split(key)
        state, info = step(one, state)
        log_z, rounds = log_z + float(info.log_likelihood_increment), rounds + 1
    return log_z, None, particles * (1 + rounds * moves * leapfrog)


def crais(problem: Problem, seed: int) -> Answer:
    """The mean of the default's ten replicates, whose evaluations all count."""
    import torch

    import crais as package

    xp = SimpleNamespace(cos=torch.cos, tan=torch.tan, logaddexp=torch.logaddexp, ndtr=torch.special.ndtr)

    def log_likelihood(e: torch.Tensor) -> torch.Tensor:
        return problem.log_likelihood(problem.transform(e, xp), xp)

    prior = torch.distributions.Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)
    found = package.log_normalizer(log_likelihood, prior=prior, dim=problem.dim, seed=seed, progress=False)
    spent = found.methods[0]["evaluations_per_problem"]["total"]
    return found.log_z, found.mc_se, spent * len(found)


# --- Runs


def run(peer: str, name: str, seed: int) -> None:
    line = {"peer": peer, "problem": name, "seed": seed}

    def give_up(*_: Any) -> None:
        print(json.dumps(line | {"error": None, "seconds": MOST_SECONDS}), flush=True)
        sys.exit()

    signal.signal(signal.SIGXCPU, give_up)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 60))
    value, claimed, evaluations = globals()[peer](PROBLEMS[name], seed)
    line |= {"value": value, "error": value - PROBLEMS[name].log_z, "claimed": claimed}
    print(json.dumps(line | {"evaluations": evaluations, "seconds": time.process_time()}))


def mean(each: list[dict[str, Any]], key: str, digits: int) -> str:
    known = [one[key] for one in each if one[key] is not None]
    return f"{sum(known) / len(known):,.{digits}f}" if known else "-"


def table(file: str) -> None:
    runs: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for line in open(file):
        one = json.loads(line)
        runs[one["problem"], one["peer"]][one["seed"]] = one  # the last of each seed
    print("| problem | log Z | by | seeds | mean | claimed error | true error | evaluations | cost | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (problem, peer), seeds in sorted(runs.items()):
        each = [one for one in seeds.values() if one["error"] is not None]
        if not each:
            print(f"| {problem} | | {peer} | 0 | | | | | | more than {MOST_SECONDS} |")
            continue
        truth = each[0]["value"] - each[0]["error"]
        error = math.sqrt(sum(one["error"] ** 2 for one in each) / len(each))
        cost = error**2 * sum(one["evaluations"] for one in each) / len(each)
        print(
            f"| {problem} | {truth:.4f} | {peer} | {len(each)} | {mean(each, 'value', 4)} "
            f"| {mean(each, 'claimed', 4)} | {error:.4f} | {mean(each, 'evaluations', 0)} | {cost:,.1f} "
            f"| {mean(each, 'seconds', 1)} |"
        )


if __name__ == "__main__":
    if len(sys.argv) == 2:
        table(sys.argv[1])
    else:
        run(sys.argv[1], sys.argv[2], int(sys.argv[3]))

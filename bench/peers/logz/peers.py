"""One estimate of log Z by one peer, as a line of JSON: value, claimed error, evaluations, seconds of one core.

python peers.py PEER PROBLEM SEED. Every peer runs at the settings of its own documentation.
"""

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

from problems import PROBLEMS, Problem

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


def main() -> None:
    peer, name, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    value, claimed, evaluations = globals()[peer](PROBLEMS[name], seed)
    line = {"peer": peer, "problem": name, "seed": seed, "value": value, "error": value - PROBLEMS[name].log_z}
    line |= {"claimed": claimed, "evaluations": evaluations, "seconds": time.process_time()}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

"""log Z by crais and by its peers, each at the settings of its own documentation, on the same densities.

    python3 bench/peers/logz.py PEER PROBLEM SEED    # one run: a line of JSON
    python3 bench/peers/logz.py RUNS                 # the table of a file of such lines

A run holds one estimate, the error that the peer claims, evaluations of log L, and seconds of one core,
the compilation of JAX among them. It ends after 300 such seconds, which its line then says. The table
has means over seeds, and the root mean square error. Needs, beside crais: pip install dynesty
nautilus-sampler ultranest pocomc blackjax.
"""

import importlib
import json
import math
import resource
import signal
import sys
import time
from collections import defaultdict

import numpy as np
import torch
from torch.special import ndtr, ndtri

from crais import yardstick

MOST_SECONDS = 300

# --- Problems
YARDSTICK = {"shells-2": "shells", "bananas-10": "rosenbrock-box", "schools": "eight-schools"}


def schools(e):
    """Eight schools whose half Cauchy has its factor 2, which Stan's `~` leaves out."""
    y, sd = torch.tensor([[28.0, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]]).double()
    theta = 5 * e[:, :1] + 5 * torch.tan(0.5 * math.pi * ndtr(e[:, 1:2])) * e[:, 2:]
    return log_normal((y - theta) / sd) - sd.log().sum()


def log_normal(e):
    return -0.5 * (e**2 + math.log(2 * math.pi)).sum(1)


class Problem:
    """log L, rows [B, dim] float64 -> [B], nats: of e, whose prior is N(0, I), or of the unit cube. Counts rows."""

    def __init__(self, name):
        density = yardstick.get(YARDSTICK.get(name, name))
        self.dim, self.log_z, self.evaluations = density.dim, density.log_z, 0
        self.log_likelihood = lambda e: density.log_density(e) - log_normal(e)
        if name == "schools":
            self.log_likelihood, self.log_z = schools, density.log_z + math.log(2)

    def of_normal(self, e):
        e = torch.atleast_2d(torch.as_tensor(e))
        self.evaluations += len(e)
        return self.log_likelihood(e).numpy()

    def of_cube(self, u):
        return self.of_normal(ndtri(torch.as_tensor(u).clamp(1e-15, 1 - 1e-15)))


# --- Peers: (the package, a problem, seed) -> log Z and the error that the peer claims


def same(u):
    return u


def dynesty(package, p, seed):
    rng = np.random.default_rng(seed)
    sampler = package.NestedSampler(lambda u: float(p.of_cube(u)[0]), same, p.dim, rstate=rng)
    sampler.run_nested(print_progress=False)
    return sampler.results.logz[-1], sampler.results.logzerr[-1]


def nautilus(package, p, seed):
    sampler = package.Sampler(same, p.of_cube, n_dim=p.dim, vectorized=True, pass_dict=False, seed=seed)
    sampler.run(verbose=False)
    return sampler.log_z, sampler.n_eff**-0.5


def ultranest(package, p, seed):
    np.random.seed(seed)
    sampler = package.ReactiveNestedSampler([f"x{i}" for i in range(p.dim)], p.of_cube, same, vectorized=True)
    found = sampler.run(viz_callback=False, show_status=False)
    return found["logz"], found["logzerr"]


def pocomc(package, p, seed):
    from scipy.stats import norm

    prior = package.Prior([norm(0, 1)] * p.dim)
    sampler = package.Sampler(prior, p.of_normal, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    return sampler.evidence()


def blackjax(package, p, seed):
    """Adaptive tempered SMC with HMC. It claims no error."""
    import jax
    from blackjax.smc import resampling

    jax.config.update("jax_enable_x64", True)
    particles, moves, leapfrog = 1000, 10, 10

    def on_host(e):
        rows = torch.tensor(np.asarray(e)).reshape(-1, p.dim).requires_grad_()
        value = p.log_likelihood(rows)
        gradient = torch.autograd.grad(value.sum(), rows)[0]
        return value.detach().numpy().reshape(e.shape[:-1]), gradient.numpy().reshape(e.shape)

    def with_gradient(e):
        shapes = jax.ShapeDtypeStruct((), e.dtype), jax.ShapeDtypeStruct(e.shape, e.dtype)
        return jax.pure_callback(on_host, shapes, e, vmap_method="broadcast_all")

    log_likelihood = jax.custom_vjp(lambda e: with_gradient(e)[0])
    log_likelihood.defvjp(with_gradient, lambda gradient, scale: (scale * gradient,))
    settings = {"step_size": 0.1, "inverse_mass_matrix": jax.numpy.eye(p.dim), "num_integration_steps": leapfrog}
    smc = package.adaptive_tempered_smc(
        lambda e: -0.5 * (e**2).sum(), log_likelihood, package.hmc.build_kernel(), package.hmc.init,
        package.smc.extend_params(settings), resampling.systematic, 0.5, num_mcmc_steps=moves)  # fmt: skip
    key, start = jax.random.split(jax.random.PRNGKey(seed))
    state = smc.init(jax.random.normal(start, (particles, p.dim)))
    step, log_z, p.evaluations = jax.jit(smc.step), 0.0, particles
    while float(state.tempering_param) < 1:
        key, one = jax.random.split(key)
        state, info = step(one, state)
        log_z += float(info.log_likelihood_increment)
        p.evaluations += particles * moves * leapfrog
    return log_z, None


def crais(package, p, seed):
    """The mean of the default's ten replicates, whose evaluations all count."""
    prior = torch.distributions.Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)
    found = package.log_normalizer(p.log_likelihood, prior=prior, dim=p.dim, seed=seed, progress=False)
    p.evaluations = found.methods[0]["evaluations_per_problem"]["total"] * len(found)
    return found.log_z, found.mc_se


PEERS = {each.__name__: each for each in (dynesty, nautilus, ultranest, pocomc, blackjax, crais)}

# --- Runs


def run(peer, name, seed):
    line = {"peer": peer, "problem": name, "seed": seed}

    def give_up(*_):
        print(json.dumps(line | {"error": None, "seconds": MOST_SECONDS}), flush=True)
        sys.exit()

    signal.signal(signal.SIGXCPU, give_up)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 60))
    problem, start = Problem(name), time.process_time()
    value, claimed = PEERS[peer](importlib.import_module(peer), problem, seed)
    line |= {"value": float(value), "error": float(value) - problem.log_z}
    line |= {"claimed": None if claimed is None else float(claimed), "evaluations": problem.evaluations}
    print(json.dumps(line | {"seconds": time.process_time() - start}))


def mean(each, key, digits):
    known = [one[key] for one in each if one[key] is not None]
    return f"{sum(known) / len(known):,.{digits}f}" if known else "-"


def table(file):
    runs = defaultdict(dict)
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
        print(f"| {problem} | {truth:.4f} | {peer} | {len(each)} | {mean(each, 'value', 4)} "
              f"| {mean(each, 'claimed', 4)} | {error:.4f} | {mean(each, 'evaluations', 0)} | {cost:,.1f} "
              f"| {mean(each, 'seconds', 1)} |")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) == 2:
        table(sys.argv[1])
    else:
        run(sys.argv[1], sys.argv[2], int(sys.argv[3]))

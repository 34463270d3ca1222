"""Models of other packages as log densities: NumPyro, Pyro, PyMC and BridgeStan.

A model is recognised by what it is, without importing a package that is not there. Its density is
that of its free numbers without bounds, with the Jacobian of the package's own transforms and every
constant, so that log Z is the evidence of what the model observes.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import distributions as D

from crais.captured import Function, packages_of, required_arguments
from crais.errors import UsageError
from crais.gradients import TRACING, bounded_solvers, jax_rows, of_rows
from crais.particles import inference_data

_MOST_MASS = 0.1  # nats: of a prior, from 1
_DRAWS = 100  # of a prior
_NO_DATA = ", so log Z is 0: give its data, as "
_STAN_NOTE = (
    "Stan: `~` keeps its constants here (propto=False), but a prior on a bounded parameter is not "
    "divided by its mass within the bounds (a half-normal lacks log 2), and a parameter without a "
    "prior has an improper one: with either, this is not the evidence"
)


@dataclass
class Model:
    """A log density of z [B, dim], or of what `support` names, and lines to be told with results.

    doubts   why results are not to be trusted, and what would mend it
    named    z, or what `support` names, -> the model's values by name [B, *shape], in their bounds
    unnamed  the reverse; of a function it does nothing
    about    draws by name [R, S, *shape] -> what else `particles.inference_data` takes
    drawn    gives draws of the prior, as `function` takes them
    """

    function: Function
    dim: int | None = None
    support: Any = None
    notes: list[str] = field(default_factory=list)
    doubts: list[tuple[str, str]] = field(default_factory=list)
    named: Function = lambda theta: theta
    unnamed: Function = lambda theta: theta
    about: Function = lambda draws: {}
    drawn: Any = lambda: None


def model_of(target: Any) -> Model | None:
    """The density of a model; None for a function of z. Raises UsageError for a model without one.

    A function is a model of NumPyro or Pyro if its code refers to the package and it has no
    argument that must be given, where a log density has z; model_kwargs give a model's data.
    """
    if hasattr(target, "log_density_gradient") and hasattr(target, "param_unc_num"):
        return _of_stan(target)
    packages = packages_of(target)
    if type(target).__name__ == "Model" and "pymc" in packages:
        return _of_pymc(target)
    if callable(target) and required_arguments(target) == []:
        for package, of_model in (("numpyro", _of_numpyro), ("pyro", _of_pyro)):
            if package in packages:
                return of_model(target)
    return None


def explain_missing(target: Any) -> str:
    """What to say of a function without `dim`: "", or that it is a model without its data."""
    if not {"numpyro", "pyro"} & packages_of(target):
        return ""
    if (names := required_arguments(target)) is None:
        return ", or, of a model, model_args (a tuple) and model_kwargs that fit its arguments"
    return f", or, of a model, its data: model_kwargs={{'{(names or ['z'])[0]}': ...}}"


def _latent(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Distributions of the latent sites of a trace of NumPyro or Pyro.

    Raises UsageError where they cannot be annealed, or nothing is observed.
    """
    latent, num_observed = {}, 0
    for name, site in trace.items():
        if site["type"] == "param":
            raise UsageError(f"{name} is a parameter to be learnt: give it a prior")
        if site["type"] == "plate" or "Subsample" in type(site.get("fn")).__name__:
            whole, part = site.get("args") or (site["fn"].size, site["fn"].subsample_size)
            if part not in (None, whole):
                raise UsageError(f"the plate {name} takes a part of its data at a time: give it all")
            continue
        if site["type"] != "sample":
            continue
        if site["is_observed"]:
            num_observed += not _is_computed(site)
            continue
        prior, mask = site["fn"], site.get("mask")
        if prior.support.is_discrete:
            raise UsageError(f"the site {name} is discrete: sum it out of the model")
        if _is_improper(prior) or mask is not None and not np.all(mask):
            remedy = "use handlers.mask, not obs_mask" if name.endswith("_unobserved") else "there is no evidence"
            raise UsageError(f"the site {name} has an improper prior: {remedy}")
        latent[name] = prior
    if not latent:
        raise UsageError("the model has no latent sites")
    if num_observed == 0:
        raise UsageError(f"no site of the model is observed{_NO_DATA}model_kwargs={{'y': ...}}")
    return latent


def _is_computed(site: Mapping[str, Any]) -> bool:
    """It is pyro.deterministic, which Pyro has as observed."""
    return bool(site.get("infer", {}).get("_deterministic"))


def _is_improper(prior: Any) -> bool:
    """It is, or what plates, `expand`, `to_event` and `mask` are around, or a mask leaves no density."""
    if "Improper" in type(prior).__name__ or not np.all(getattr(prior, "_mask", True)):
        return True
    return hasattr(prior, "base_dist") and _is_improper(prior.base_dist)


def _described(trace: Mapping[str, Any]) -> dict[str, Any]:
    """The plates of the sites of NumPyro or Pyro, as names of their dimensions, and what is observed."""
    dims: dict[str, list[str | None]] = {}
    data: dict[str, Any] = {}
    for name, site in trace.items():
        if site["type"] not in ("sample", "deterministic"):
            continue
        value, batch = site["value"], np.ndim(site["value"]) - getattr(site.get("fn"), "event_dim", 0)
        dims[name] = [None] * np.ndim(value)
        for frame in site["cond_indep_stack"]:
            if -batch <= (frame.dim or 0) < 0 and value.shape[batch + frame.dim] == frame.size:
                dims[name][batch + frame.dim] = frame.name
        if site.get("is_observed") and np.size(value) and not _is_computed(site):
            data[name] = value.numpy(force=True) if isinstance(value, torch.Tensor) else value
    return {"dims": dims, "observed_data": data}


def _of_numpyro(model: Any) -> Model:
    jax: Any = importlib.import_module("jax")
    handlers: Any = importlib.import_module("numpyro.handlers")
    infer: Any = importlib.import_module("numpyro.infer")
    ravel: Any = importlib.import_module("jax.flatten_util").ravel_pytree
    # without checks of arguments: a solver of equations may have failed at what was drawn
    with jax.enable_x64(True), importlib.import_module("numpyro").validation_enabled(False), bounded_solvers():
        drawn = handlers.substitute(handlers.seed(model, 0), substitute_fn=infer.init_to_uniform)
        try:
            trace = handlers.trace(drawn).get_trace()
        except TypeError as error:
            raise UsageError("the model fails in float64: call numpyro.enable_x64() before making arrays") from error
        _latent(trace)
        initialised = infer.util.initialize_model(jax.random.PRNGKey(0), model, validate_grad=False)
        flat, tree = ravel(initialised.param_info.z)
    of_values = lambda values: ravel(infer.util.unconstrain_fn(model, (), {}, values))[0]

    def named(z: Any) -> Any:
        with jax.enable_x64(True):
            values = jax.vmap(lambda row: initialised.postprocess_fn(tree(row)))(z.cpu().numpy())
        return {name: torch.tensor(np.asarray(values[name])) for name in trace if name in values}

    def unnamed(values: Any) -> Any:
        with jax.enable_x64(True):
            rows = {name: jax.numpy.asarray(values[name].numpy()) for name in initialised.param_info.z}
            return torch.tensor(np.asarray(jax.vmap(of_values)(rows)))

    def about(draws: Mapping[str, Any]) -> dict[str, Any]:
        groups = _described(trace)
        with jax.enable_x64(True):
            each = infer.log_likelihood(model, draws, batch_ndims=2)
        return {**groups, "log_likelihood": {name: each[name] for name in groups["observed_data"]}}

    def of_key(key: Any) -> Any:
        sites = handlers.trace(handlers.seed(model, key)).get_trace()
        return of_values({name: sites[name]["value"] for name in initialised.param_info.z})

    def of_prior() -> Any:
        with jax.enable_x64(True), importlib.import_module("numpyro").validation_enabled(False), bounded_solvers():
            keys = jax.random.split(jax.random.PRNGKey(0), _DRAWS)
            return torch.tensor(np.asarray(jax.jit(jax.vmap(of_key))(keys)))  # jit leaves out the likelihood

    density = jax_rows(lambda z: -initialised.potential_fn(tree(z)), is_of_row=True)
    return Model(density, len(flat), named=named, unnamed=unnamed, about=about, drawn=of_prior)


def _of_pyro(model: Any) -> Model:
    pyro: Any = importlib.import_module("pyro")
    poutine = pyro.poutine

    def traced(theta: Any) -> Any:
        # without its checks, which ask for values that vmap has none of
        with TRACING, pyro.validation_enabled(False):
            trace = poutine.trace(poutine.condition(model, data=theta)).get_trace()
            trace.compute_log_prob()
            return trace

    sites: Any = []  # of the model, as they come
    try:
        with poutine.infer_config(config_fn=lambda site: sites.append(site["name"]) or {}):
            nodes, others = traced({}).nodes, traced({}).nodes
    except NotImplementedError as error:  # of ImproperUniform, at its site
        raise UsageError(f"the site {sites[-1]} has an improper prior: there is no evidence") from error
    latent = _latent(nodes)
    for name, prior in latent.items():
        if str(vars(prior.support)) != str(vars(others[name]["fn"].support)):
            raise UsageError(f"the support of the site {name} depends on other sites: rescale it")
    support = {name: (p.support, tuple(nodes[name]["value"].shape)) for name, p in latent.items()}
    shown = [name for name, site in nodes.items() if name in latent or _is_computed(site)]

    def of_row(theta: Any) -> dict[str, Any]:
        trace = traced(theta).nodes
        return {name: trace[name]["value"] for name in shown}

    def named(theta: Mapping[str, Any]) -> dict[str, Any]:
        with contextlib.suppress(RuntimeError):  # of a model that vmap cannot take
            return torch.vmap(of_row)(theta)
        rows = [of_row(dict(zip(theta, parts))) for parts in zip(*theta.values())]
        return {name: torch.stack([row[name] for row in rows]) for name in shown}

    def drawn() -> dict[str, Any]:
        traces = [traced({}).nodes for _ in range(_DRAWS)]
        return {name: torch.stack([trace[name]["value"].detach() for trace in traces]).double() for name in latent}

    density = lambda theta: traced(theta).log_prob_sum()
    return Model(density, support=support, named=named, about=lambda draws: _described(nodes), drawn=drawn)


def _of_pymc(model: Any) -> Model:
    names = ", ".join(variable.name for variable in model.discrete_value_vars)
    if names:
        raise UsageError(f"the model has discrete variables, {names}: marginalise them out")
    if not model.observed_RVs and not model.potentials:
        raise UsageError(f"no variable of the model is observed{_NO_DATA}observed=...")
    if not model.free_RVs:
        raise UsageError("the model has no free variables")
    for variable in model.free_RVs:
        if "Flat" in type(variable.owner.op).__name__:
            raise UsageError(f"{variable.name} has an improper prior: there is no evidence")
        if variable in model.potentials:  # which took its name, and its place
            raise UsageError(f"the potential {variable.name} is a bare variable: give 1.0 * variable")
        if "Circular" in type(model.rvs_to_transforms[variable]).__name__:
            remedy = "give default_transform=pm.distributions.transforms.Interval(-np.pi, np.pi)"
            raise UsageError(f"{variable.name} lies on a circle, which PyMC does not map to the line: {remedy}")
        if model.rvs_to_values[variable].dtype != "float64":
            raise UsageError("the model is in float32: make it with pytensor.config.floatX = 'float64'")
    for variable in model.observed_RVs:
        if "Minibatch" in type(variable.owner.op).__name__:
            raise UsageError(f"{variable.name} takes a part of its data at a time: give it all")
    function = model.logp_dlogp_function(ravel_inputs=True, trust_input=True)
    function.set_extra_values({})
    start = model.initial_point()
    dim = sum(np.size(start[variable.name]) for variable in model.continuous_value_vars)

    variables = [model.values_to_rvs[value] for value in model.continuous_value_vars]
    kinds = [model.rvs_to_transforms[variable] for variable in variables]
    free = [v if t is None else t.forward(v, *v.owner.inputs) for v, t in zip(variables, kinds)]

    def named(z: Any) -> dict[str, Any]:
        join = importlib.import_module("pymc.pytensorf").join_nonshared_inputs
        names = {variable.name for variable in model.unobserved_RVs}
        shown = [variable for variable in model.unobserved_value_vars if variable.name in names]
        joined, inputs = join(start, shown, model.continuous_value_vars)
        compiled = model.compile_fn(joined, inputs=[inputs], point_fn=False, on_unused_input="ignore")
        rows = zip(*(compiled(row) for row in z.cpu().numpy()))
        return {one.name: torch.from_numpy(np.stack(each)) for one, each in zip(shown, rows)}

    def unnamed(values: Any) -> Any:
        compiled = model.compile_fn(free, inputs=variables, point_fn=False, on_unused_input="ignore")
        rows = zip(*(values[variable.name].numpy() for variable in variables))
        return torch.from_numpy(np.stack([np.concatenate([np.ravel(one) for one in compiled(*row)]) for row in rows]))

    def about(draws: Mapping[str, Any]) -> dict[str, Any]:
        backend: Any = importlib.import_module("pymc.backends.arviz")
        data, groups = inference_data({"posterior": draws}), {}
        if model.observed_RVs:
            log_likelihood = importlib.import_module("pymc").compute_log_likelihood
            each = log_likelihood(data, model=model, extend_inferencedata=False, progressbar=False)
            groups["log_likelihood"] = {name: each[name].values for name in each.data_vars}
        coords, dims = backend.coords_and_dims_for_inferencedata(model)
        observed = backend.find_observations(model)
        return {"coords": coords, "dims": dims, "observed_data": observed, **groups}

    def drawn() -> Any:
        draws = importlib.import_module("pymc").draw(free, _DRAWS, random_seed=0)
        return torch.from_numpy(np.concatenate([one.reshape(_DRAWS, -1) for one in draws], 1).astype(float))

    doubts = _masses_of_pymc(model, start)
    return Model(_locked_rows(function), dim, doubts=doubts, named=named, unnamed=unnamed, about=about, drawn=drawn)


def _masses_of_pymc(model: Any, start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A doubt for each variable whose prior alone, given the others at `start`, has not the mass 1.

    PyMC does not renormalise what a transform of the user's cuts off, and has other constants of
    LKJ. Variables with the transforms that PyMC chooses are not looked at.
    """
    core: Any = importlib.import_module("pymc.model.core")
    of_kind: Any = getattr(importlib.import_module("pymc.distributions.transforms"), "_default_transform", None)
    doubts: list[tuple[str, str]] = []
    for variable in model.free_RVs if of_kind is not None else []:
        transform, op = model.rvs_to_transforms[variable], variable.owner.op
        usual = type(transform) is type(of_kind(op, variable))
        if transform is None or usual and "LKJ" not in type(op).__name__:
            continue
        value, density = model.rvs_to_values[variable], model.logp(vars=[variable])
        reached = core.graph_inputs([density])
        others = {v: start[v.name] for v in model.value_vars if v is not value and v in reached}
        function = core.ValueGradFunction(
            [density], [value], others, model=model, initial_point=start, ravel_inputs=True
        )
        function.set_extra_values({v.name: x for v, x in others.items()})
        mass = _log_mass(_locked_rows(function), int(np.size(start[value.name])))
        if math.isnan(mass):
            what = f"the prior of {variable.name} is not known to integrate to 1"
            doubts.append((what, "give the variable a prior that PyMC does not transform"))
        elif abs(mass) > _MOST_MASS:
            what = f"the prior of {variable.name} integrates to exp({mass:.1f}), not to 1"
            doubts.append((what, f"subtract about {mass:.1f} from log Z"))
    return doubts


def _log_mass(density: Function, dim: int) -> float:
    """log Z of a prior by importance sampling, nats; NaN where it is not sure. Cost: up to 80,000 evaluations."""
    student, masses = D.StudentT(torch.tensor(5.0, dtype=torch.float64)), []
    loc, root = torch.zeros(dim, dtype=torch.float64), 2 * torch.eye(dim, dtype=torch.float64)
    for _ in range(20):
        t = student.sample(torch.Size([4000, dim]))
        z = loc + t @ root.T
        with torch.no_grad():
            log_w = density(z) - student.log_prob(t).sum(1) + root.diagonal().log().sum()
        log_w = log_w.nan_to_num(-math.inf, -math.inf, -math.inf)
        if log_w.softmax(0).square().sum() < 1 / 50:
            masses.append(log_w.logsumexp(0) - math.log(len(log_w)))
        if len(masses) == 5:
            return float(torch.stack(masses).logsumexp(0)) - math.log(5)
        weights = (log_w / 2).softmax(0)  # halfway: a few great weights say little of a shape
        loc = weights @ z
        covariance = (z - loc).T @ (weights.unsqueeze(1) * (z - loc))
        root = torch.linalg.cholesky_ex(covariance + 1e-6 * torch.eye(dim).to(z)).L
    return math.nan


def _of_stan(model: Any) -> Model:
    def value_and_grad(z: Any) -> Any:
        try:
            return model.log_density_gradient(z, propto=False, jacobian=True)
        except RuntimeError:  # Stan rejects a point so: its density is zero
            return -math.inf, np.zeros(len(z))

    def named(z: Any) -> dict[str, Any]:
        names = [name.split(".") for name in model.param_names(include_tp=True)]  # b.2.1, of b[2, 1]
        rows = np.array([model.param_constrain(row, include_tp=True) for row in z.cpu().numpy()])
        values = {}
        for name in dict.fromkeys(first for first, *_ in names):
            columns = [i for i, (first, *_) in enumerate(names) if first == name]
            shape = map(int, names[columns[-1]][1:])
            values[name] = torch.from_numpy(rows[:, columns].reshape(-1, *shape, order="F"))
        return values

    def unnamed(values: Any) -> Any:
        names = [name.split(".") for name in model.param_names()]
        columns = [values[name][(slice(None), *(int(i) - 1 for i in at))].numpy() for name, *at in names]
        return torch.from_numpy(np.stack([model.param_unconstrain(row) for row in np.stack(columns, 1)]))

    density = _locked_rows(value_and_grad)
    return Model(density, model.param_unc_num(), notes=[_STAN_NOTE], named=named, unnamed=unnamed)


def _locked_rows(value_and_grad: Function) -> Function:
    """Row by row, one at a time: compiled functions share their memory. +inf, an overflow far out, is NaN: zero."""
    lock = threading.Lock()

    def one(row: Any) -> Any:
        with lock:
            value, grad = value_and_grad(row)
            return math.nan if value == math.inf else float(value), np.array(grad)

    return of_rows(one)

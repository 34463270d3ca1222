"""`crais.log_normalizer` of models of other packages, whose evidence is known."""

import functools
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import support
import torch
from support import log_beta

import crais
from crais.densities import density_of

pytestmark = pytest.mark.usefixtures("compiled")
OPTIONS = {"steps": 16, "chains": 16, "problems": 4, "base": "laplace", "witness": "none"}
OPTIONS |= {"chunk": 1, "threads": 4, "progress": False}
Y = np.array([0.3, 1.9, -0.4])
TRIALS, HEADS = 10, 7

# mu ~ N(0, 2^2), y ~ N(mu, 1); p ~ Beta(2, 5), heads ~ Binomial(10, p); rate ~ Gamma(2, 0.5),
# count ~ Poisson(rate): three models in one, which share nothing.
_COVARIANCE = np.eye(3) + 4
EVIDENCE_NORMAL = float(
    -0.5 * Y @ np.linalg.solve(_COVARIANCE, Y) - 0.5 * np.linalg.slogdet(_COVARIANCE)[1] - 1.5 * math.log(2 * math.pi)
)
EVIDENCE_BETA = math.log(math.comb(TRIALS, HEADS)) + log_beta(9, 8) - log_beta(2, 5)
EVIDENCE_GAMMA = math.lgamma(6) - math.lgamma(2) - math.lgamma(5) + 2 * math.log(0.5) - 6 * math.log(1.5)
EVIDENCE = EVIDENCE_NORMAL + EVIDENCE_BETA + EVIDENCE_GAMMA


def refused(model, words, **arguments):
    with pytest.raises(crais.UsageError, match=words):
        crais.log_normalizer(model, progress=False, **arguments)


close = functools.partial(support.close, slack=1e-3, most=0.1)


def check_posterior(found, model, free=torch.logit):
    """Values without bounds are a chain's own numbers, moved and scaled; their posteriors are known."""
    back = density_of(model, dim=None).inverse({name: torch.tensor(x) for name, x in found.samples.items()})
    chains = found._particles()[0].flatten(0, 1)
    np.testing.assert_allclose(back, chains, atol=1e-6)
    z, weights = chains.numpy().T, np.exp(found.log_weights - found.log_z)
    own = {"mu": lambda x: x, "p": lambda x: free(torch.tensor(x)).numpy(), "rate": np.log}
    truth = {"mu": Y.sum() / 3.25, "p": 9 / 17, "rate": 4.0}
    assert found.samples.keys() == own.keys()
    for one, (name, values) in zip(z, found.samples.items()):
        assert np.corrcoef(own[name](values), one)[0, 1] == pytest.approx(1, abs=1e-9)
        mean = np.average(values, weights=weights)
        error = math.sqrt(weights**2 @ (values - mean) ** 2) / weights.sum()
        assert abs(mean - truth[name]) < 5 * error < 1.5, name


@pytest.fixture
def numpyro():
    return pytest.importorskip("numpyro")


@pytest.fixture
def pyro():
    pyro = pytest.importorskip("pyro")
    yield pyro
    assert pyro.settings.get("validate_distributions_pyro")  # as before


@pytest.fixture
def pymc():
    """With functions that are compiled in a moment."""
    pymc = pytest.importorskip("pymc")
    pytensor = pytest.importorskip("pytensor")
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield pymc


def three_in_one(package):
    """A model of NumPyro or Pyro."""
    dist = package.distributions

    def model(y, heads, count):
        mu = package.sample("mu", dist.Normal(0.0, 2.0))
        with package.plate("data", 3):
            package.sample("y", dist.Normal(mu, 1.0), obs=y)
        p = package.sample("p", dist.Beta(2.0, 5.0))
        package.sample("heads", dist.Binomial(TRIALS, p), obs=heads)
        rate = package.sample("rate", dist.Gamma(2.0, 0.5))
        package.sample("count", dist.Poisson(rate), obs=count)

    return model


def test_numpyro(numpyro):
    model = functools.partial(three_in_one(numpyro), Y, HEADS, 4)
    found = crais.log_normalizer(model, **OPTIONS)
    close(found, EVIDENCE)
    check_posterior(found, model)
    data = {"y": Y, "heads": HEADS, "count": 4}
    given = numpyro.handlers.condition(functools.partial(three_in_one(numpyro), None, None, None), data)
    z = torch.tensor([[0.5, -1.0, 0.3]], dtype=torch.float64)
    one, other = (density_of(each, dim=None).log_density(z) for each in (model, given))
    assert torch.equal(one, other)


def test_threads_do_not_disturb_a_model_of_numpyro(numpyro):
    z = torch.linspace(-1, 1, 300, dtype=torch.float64).reshape(100, 3)
    model = functools.partial(three_in_one(numpyro), Y, HEADS, 4)
    wanted = density_of(model, dim=None).log_density(z)
    density = density_of(model, dim=None).log_density
    with ThreadPoolExecutor(4) as pool:  # calls of 16 rows, and of 256
        found = list(pool.map(lambda rows: density(z[:rows]), (3, 20, 40, 100)))
    for value in found:
        torch.testing.assert_close(value, wanted[: len(value)])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_model_of_numpyro_may_fail_where_it_is_tried_first(numpyro, sign):
    def model():  # of which numpyro tries a in (-2, 2)
        root = (sign * numpyro.sample("a", numpyro.distributions.Normal(3 * sign, 0.5))) ** 0.5  # or NaN
        numpyro.sample("y", numpyro.distributions.Normal(sign * root * root, 1.0), obs=1.0)

    density, normal = density_of(model, dim=None), torch.distributions.Normal
    e = density.inverse({"a": torch.tensor([3 * sign], dtype=torch.float64)})
    torch.testing.assert_close(density.started(torch.tensor([[3 * sign]], dtype=torch.float64)), e)
    width = density.point(e + 1)["a"] - density.point(e)["a"]
    assert float(e.abs()) < 0.5 and abs(float(width) - 0.5) < 0.15  # as the prior is
    assert float(density_of(model, dim=None, base=([1.0], [[4.0]])).point(torch.ones(1, 1).double())["a"]) == 3
    wanted = normal(0.0, 0.5).log_prob(torch.tensor(0.0)) + normal(3 * sign, 1.0).log_prob(torch.tensor(1.0))
    torch.testing.assert_close(density.log_density(e) - width.log(), wanted.double().view(1), rtol=1e-6, atol=1e-6)


def test_numpyro_models_that_are_refused(numpyro):
    jax = pytest.importorskip("jax")
    dist = numpyro.distributions

    def of_site(prior, obs=None, y=dist.Normal(0, 1)):  # noqa: B008
        def model():
            numpyro.sample("a", prior, obs=obs)
            if y is not None:
                numpyro.sample("y", y, obs=1.0)

        return model

    normal = of_site(dist.Normal(0, 1))
    refused(three_in_one(numpyro), r"give dim=D.* of a model, its data: model_kwargs={'y': ...}")
    refused(
        functools.partial(three_in_one(numpyro), z=Y), r"give dim=D.*model_args \(a tuple\) and model_kwargs that fit"
    )
    refused(of_site(dist.Normal(0, 1), y=None), "no site of the model is observed, so log Z is 0")
    refused(of_site(dist.Normal(0, 1), obs=1.0), "the model has no latent sites")
    refused(of_site(dist.Poisson(3)), "the site a is discrete: sum it out")
    flat = dist.ImproperUniform(dist.constraints.real, (), ())
    for prior in (flat, flat.mask(True), flat.expand((3,)), flat.expand((3,)).to_event(1),
                  dist.Normal(0, 1).mask(False)):  # fmt: skip
        refused(of_site(prior), "the site a has an improper prior")
    loop = lambda: jax.lax.fori_loop(0, 2, lambda i, c: c * numpyro.sample("a", dist.Normal(0, 1)), np.float32(1))
    refused(loop, "fails in float64.* call numpyro.enable_x64")
    refused(normal, "dim is 2, and the model is of 1 free numbers", dim=2)
    refused(normal, "prior: the model says itself where z lies", prior=torch.distributions.Normal(0, 1))


def test_pyro(pyro):
    data = [torch.as_tensor(value) for value in (Y, float(HEADS), 4.0)]
    model = functools.partial(three_in_one(pyro), *data)
    found = crais.log_normalizer(model, **OPTIONS)
    close(found, EVIDENCE)
    check_posterior(found, model, torch.special.ndtri)
    assert "torch.vmap" in found.notes[0]

    class Module(pyro.nn.PyroModule):
        def forward(self, *data):
            three_in_one(pyro)(*data)

    z, module = torch.tensor([[0.5, -1.0, 0.3]], dtype=torch.float64), Module()
    for same in (functools.partial(module, *data), lambda: module(*data)):
        assert torch.equal(density_of(same, dim=None).log_density(z), density_of(model, dim=None).log_density(z))


def test_pyro_models_that_are_refused(pyro):
    dist = pyro.distributions
    normal, flat = dist.Normal(0.0, 1.0), dist.ImproperUniform(dist.constraints.real, (), ())

    def of_site(make, is_masked=False):
        def model():
            with pyro.plate("plate", 2), pyro.poutine.mask(mask=not is_masked):
                a = pyro.sample("a", make())
            pyro.sample("y", dist.Normal(a.sum(), 1.0), obs=torch.tensor(1.0))

        return model

    dynamic = lambda: dist.Uniform(0.0, pyro.sample("b", dist.Uniform(0.0, 1.0)))

    def computed(obs):
        pyro.sample("a", normal, obs=obs)
        pyro.deterministic("b", torch.tensor(1.0))

    refused(functools.partial(computed, None), "no site of the model is observed")
    refused(functools.partial(computed, torch.tensor(1.0)), "the model has no latent sites")
    refused(three_in_one(pyro), "of a model, its data")
    refused(lambda: pyro.sample("a", normal), "no site of the model is observed")
    refused(of_site(lambda: dist.Poisson(3.0)), "the site a is discrete")
    refused(of_site(dynamic), "the support of the site a depends on other sites")
    learnt = of_site(lambda: dist.Normal(pyro.param("m", torch.tensor(1.0)), 1.0))
    refused(learnt, "m is a parameter to be learnt: give it a prior")
    for prior, is_masked in [(flat, False), (flat.expand([2]), False), (normal.mask(False), False), (normal, True)]:
        refused(of_site(lambda prior=prior: prior, is_masked), "site a has an improper prior")
    density_of(of_site(lambda: normal), dim=None)


def test_pymc(pymc):
    with pymc.Model() as model:
        pymc.Normal("y", pymc.Normal("mu", 0, 2), 1, observed=Y)
        pymc.Binomial("heads", TRIALS, pymc.Beta("p", 2, 5), observed=HEADS)
        pymc.Poisson("count", pymc.Gamma("rate", 2, 0.5), observed=4)
    found = crais.log_normalizer(model, **OPTIONS)
    close(found, EVIDENCE)
    check_posterior(found, model)


@pytest.mark.parametrize(("transform", "log_mass"), [("ordered", -math.log(6)), ("log", -3 * math.log(2)), (None, 0.0)])
def test_priors_of_pymc_that_do_not_integrate_to_1_are_said(pymc, transform, log_mass):
    chosen = {"transform": getattr(pymc.distributions.transforms, transform)} if transform else {}
    with pymc.Model() as model:
        a = pymc.Normal("a", 0.0, pymc.HalfNormal("sd"), initval=[0.5, 1.0, 2.0], shape=3, **chosen)
        pymc.Normal("y", a, 1, observed=Y)
    said = [what for what, remedy in density_of(model, dim=None).doubts if "subtract" in remedy]
    assert said == [f"the prior of a integrates to exp({log_mass:.1f}), not to 1"] * (transform is not None)


def test_pymc_models_that_are_refused(pymc):
    priors = {
        "the model has discrete variables, k: marginalise": lambda: pymc.Poisson("k", 3.0),
        "mu has an improper prior": lambda: pymc.Flat("mu"),
        "a lies on a circle.*: give default_transform=.*Interval": lambda: pymc.VonMises("a", 0, 1),
        "no variable of the model is observed": lambda: pymc.Normal("mu", 0, 1),
    }
    for words, make in priors.items():
        with pymc.Model() as model:
            pymc.Normal("y", make(), 1, observed=None if "observed" in words else Y)
        refused(model, words)
    with pymc.Model() as bare:
        pymc.Potential("p", pymc.Normal("a", 0, 1))
    refused(bare, "the potential p is a bare variable: give 1.0 [*] variable")
    with pymc.Model() as fixed:
        pymc.Normal("y", 0, 1, observed=Y)
    refused(fixed, "the model has no free variables")
    with pymc.Model() as part:
        y = pymc.Minibatch(Y, batch_size=2)
        pymc.Normal("y", pymc.Normal("a", 0, 1), 1, observed=y, total_size=3)
    refused(part, "y takes a part of its data at a time: give it all")
    with sys.modules["pytensor"].config.change_flags(floatX="float32"), pymc.Model() as single:
        pymc.Normal("y", pymc.Normal("a", 0, 1), 1, observed=Y)
    refused(single, "in float32: make it with pytensor.config.floatX = 'float64'")


@pytest.mark.parametrize("package", ["numpyro", "pyro"])
def test_plates_of_a_part_of_the_data_are_refused(package, request):
    one = request.getfixturevalue(package)

    def model():
        a = one.sample("a", one.distributions.Normal(0.0, 1.0))
        with one.plate("part", 3, subsample_size=2) as index:
            one.sample("y", one.distributions.Normal(a, 1.0), obs=1.0 * index)

    refused(model, "the plate part takes a part of its data at a time: give it all")


def plated(package, y):
    """s ~ LogNormal(0, 1); a, b = s a and y ~ N(b, 1) of each place, of NumPyro or Pyro."""
    dist, event = package.distributions, {"event_dim": 0} if package.__name__ == "pyro" else {}

    def model():
        s = package.sample("s", dist.LogNormal(0.0, 1.0))
        with package.plate("place", 3):
            b = package.deterministic("b", s * package.sample("a", dist.Normal(0.0, 1.0)), **event)
            package.sample("y", dist.Normal(b, 1.0), obs=y)

    return model


@pytest.mark.parametrize("package", ["numpyro", "pyro", "pymc"])
def test_arviz_has_what_a_model_says(package, request):
    pytest.importorskip("arviz")
    one = request.getfixturevalue(package)
    if package == "pymc":
        with one.Model(coords={"place": ["A", "B", "C"]}) as model:
            s, a = one.LogNormal("s", 0, 1), one.Normal("a", 0, 1, dims="place")
            one.Normal("y", one.Deterministic("b", s * a, dims="place"), 1, observed=Y, dims="place")
    else:
        model = plated(one, torch.as_tensor(Y) if package == "pyro" else Y)
    found = crais.log_normalizer(model, **OPTIONS)
    data = found.to_arviz(draws=5)
    assert set(data.posterior.data_vars) == {"s", "a", "b"}
    assert data.posterior["s"].dims == ("chain", "draw")
    assert data.posterior["b"].dims == ("chain", "draw", "place")
    assert data.posterior["place"].values.tolist() == (list("ABC") if package == "pymc" else [0, 1, 2])
    b = (data.posterior["s"] * data.posterior["a"]).values
    np.testing.assert_allclose(data.posterior["b"].values, b, rtol=1e-6)
    assert data.observed_data["y"].values.tolist() == pytest.approx(Y.tolist())
    assert data.attrs["log_z"] == found.log_z and data.attrs["mc_se"] == found.mc_se
    assert data.attrs["flagged"] == found.flagged and len(data.attrs["flags"]) == 4
    if package != "pyro":
        log_likelihood = -0.5 * (Y - b) ** 2 - 0.5 * math.log(2 * math.pi)
        np.testing.assert_allclose(data.log_likelihood["y"].values, log_likelihood, rtol=1e-5)


class StanModel:
    """BridgeStan's interface: mu ~ normal(0, 2), y ~ normal(mu, 1); of mu a matrix is computed."""

    def param_names(self, include_tp=False):
        return ["mu"] + include_tp * ["m.1.1", "m.2.1", "m.1.2", "m.2.2", "m.1.3", "m.2.3"]

    def param_constrain(self, theta_unc, include_tp=False):
        return np.concatenate([theta_unc, theta_unc + np.arange(6)]) if include_tp else theta_unc

    def param_unconstrain(self, theta):
        return theta

    def param_unc_num(self):
        return 1

    def log_density_gradient(self, theta_unc, propto=True, jacobian=True):
        (mu,) = theta_unc
        if mu > 10:
            raise RuntimeError("rejected")
        value = math.inf if mu < -10 else -0.5 * (mu / 2) ** 2 - 0.5 * ((Y - mu) ** 2).sum()  # an overflow
        if not propto:
            value -= 2 * math.log(2 * math.pi) + math.log(2)
        return value, np.array([-mu / 4 + (Y - mu).sum()])


def test_bridgestan():
    found = crais.log_normalizer(StanModel(), **OPTIONS)
    close(found, EVIDENCE_NORMAL)
    assert "half-normal lacks log 2" in found.notes[0] and "half-normal" in repr(found)
    draws = {"mu": Y.sum() / 3.25 + 3.25**-0.5 * np.random.default_rng(1).normal(size=(4, 100))}
    by_draws = crais.log_normalizer(StanModel(), draws=draws, steps=16, chains=16, problems=4, progress=False)
    close(by_draws, EVIDENCE_NORMAL)
    assert np.allclose(found.samples["m"] - found.samples["mu"][:, None, None], [[0, 2, 4], [1, 3, 5]], atol=1e-12)
    assert density_of(StanModel(), dim=None).log_density(torch.tensor([[-11.0]])).isnan().all()


# Functions of JAX.


def test_functions_of_jax(tmp_path):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    of_row = lambda z: -0.5 * jnp.sum((z - 1) ** 2)
    of_rows = lambda z: -0.5 * jnp.sum((z - 1) ** 2, axis=1)
    of_matrix = lambda z: -0.5 * jnp.linalg.eigvalsh(jnp.outer(z - 1, z - 1))[-1]
    jax.config.update("jax_dump_ir_to", str(tmp_path))
    for function in (of_row, of_rows, jax.jit(of_row), of_matrix):
        found = crais.log_normalizer(function, dim=2, **OPTIONS)
        assert found.mean == pytest.approx(math.log(2 * math.pi), abs=1e-8)  # in float64
    jax.config.update("jax_dump_ir_to", "")
    assert jnp.ones(1).dtype == "float32"  # the user's own setting is as before
    calls = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines() if "@lapack" in line]
    assert calls and all("(tensor<2x2xf64>)" in line for line in calls)  # of many, each call may wait for the other


def test_steps_of_a_solver_of_jax_are_bounded(monkeypatch):
    jnp, ode = pytest.importorskip("jax.numpy"), pytest.importorskip("jax.experimental.ode")
    decayed = lambda z: ode.odeint(lambda y, t, z: -jnp.exp(z[0]) * y, 1.0, jnp.array([0.0, 1.0]), z)[1]
    value = lambda: crais.gradients.jax_rows(decayed, is_of_row=True)(torch.tensor([[0.0], [20.0]]))[0].item()
    assert value() == pytest.approx(math.exp(-1), rel=1e-6)  # the other row would take 10^8 steps
    monkeypatch.setattr(crais.gradients, "_MOST_STEPS", 1)
    assert abs(value() - math.exp(-1)) > 1e-3 and ode.odeint.__kwdefaults__["mxstep"] == math.inf


def test_a_likelihood_of_jax_with_priors_of_pytorch():
    jax = pytest.importorskip("jax")

    def log_likelihood(theta):
        return jax.scipy.stats.norm.logpdf(Y, theta["mu"], 1.0).sum() + jax.scipy.stats.poisson.logpmf(4, theta["rate"])

    prior = {"mu": torch.distributions.Normal(0.0, 2.0), "rate": torch.distributions.Gamma(2.0, 0.5)}
    found = crais.log_normalizer(log_likelihood, prior=prior, **OPTIONS)
    close(found, EVIDENCE_NORMAL + EVIDENCE_GAMMA)


def test_functions_of_jax_that_are_refused():
    jax = pytest.importorskip("jax")
    density = lambda z: -jax.numpy.sum((np.ones(3) * z) ** 2)
    compiled = jax.jit(density).lower(jax.numpy.ones(3)).compile()
    refused(compiled, "compiled for one shape: give what jax.jit returns", dim=3)
    refused(jax.jit(lambda z: density(z.reshape(5, 3))), "made for one shape, and does dim fit", dim=3)
    refused(density, "does dim fit", dim=2)
    refused(density, "give dim=D")

"""Decoders that return distributions, mappings, tuples and objects: the numbers are the tensors'."""

import math
import re
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import alike
from torch import Tensor
from torch import distributions as D

import crais

pytestmark = pytest.mark.usefixtures("compiled")

CHEAP = {"steps": 8, "chains": 8, "base": "prior", "chunk": 8, "progress": False, "latent": 4}


@dataclass
class Fields:
    recon_x: Tensor
    z: Tensor


Named = namedtuple("Named", ["z", "x_hat"])


class ModelOutput(OrderedDict):
    """As in pythae and transformers: entries are attributes too."""


@pytest.mark.parametrize(
    "wrap",
    [
        lambda o, z: {"logits": o},
        lambda o, z: {"z": z, "logits": o, "pooled": o.mean(1)},
        lambda o, z: ModelOutput(reconstruction=o, embedding=z),
        lambda o, z: Fields(o, z),
        lambda o, z: Named(z, o),
        lambda o, z: SimpleNamespace(sample=o),
        lambda o, z: (o, z),
        lambda o, z: [z, o],
        lambda o, z: {"px": D.Bernoulli(logits=o)},
        lambda o, z: D.Bernoulli(logits=o),
        lambda o, z: D.Independent(D.Bernoulli(logits=o), 2),
    ],
)
def test_the_output_is_found_by_name_or_shape(mlp, curved, images, wrap):
    for model in (mlp, curved):
        decoder = lambda z, m=model: m.decoder(z).view(-1, 6, 6)
        given = {"images": images[:4], "likelihood": crais.Bernoulli(), **CHEAP}
        found = crais.evaluate(decoder=lambda z, d=decoder: wrap(d(z), z), **given)
        alike(found, crais.evaluate(decoder=decoder, **given))


def net(seed=0, outputs=10):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU("tanh"), torch.nn.Linear(8, outputs)).eval()


ONE, TWO, FIFTY, SD = net(), net(1), net(2, 50), torch.linspace(0.3, 0.8, 10)

# A distribution of z, and what it is in crais: its output and likelihood.
SAME = {
    "bernoulli": (lambda z: D.Bernoulli(logits=ONE(z)), ONE, crais.Bernoulli()),
    "bernoulli-probs": (lambda z: D.Bernoulli(ONE(z).sigmoid()), ONE, crais.Bernoulli()),
    "continuous-bernoulli": (lambda z: D.ContinuousBernoulli(logits=ONE(z)), ONE, crais.ContinuousBernoulli()),
    "normal": (lambda z: D.Normal(ONE(z), 0.5), ONE, crais.Gaussian(0.5)),
    "normal-elementwise": (lambda z: D.Normal(ONE(z), SD), ONE, crais.Gaussian(SD)),
    "normal-with-scale": (
        lambda z: D.Independent(D.Normal(ONE(z), TWO(z).exp()), 1),
        lambda z: (ONE(z), TWO(z)),
        crais.Gaussian(scale="log_sd"),
    ),
    "laplace": (lambda z: D.Laplace(ONE(z), 0.5), ONE, crais.Laplace(0.5)),
    "student-t": (lambda z: D.StudentT(5.0, ONE(z), 0.5), ONE, crais.StudentT(5.0, 0.5)),
    "poisson": (lambda z: D.Poisson(ONE(z).exp()), ONE, crais.Poisson()),
    "categorical": (
        lambda z: D.Categorical(logits=FIFTY(z).view(-1, 10, 5)),
        lambda z: FIFTY(z).view(-1, 10, 5).log_softmax(2).transpose(1, 2),  # as PyTorch has them
        crais.Categorical(5),
    ),
    "negative-binomial": (
        lambda z: D.NegativeBinomial(SD * 5, logits=ONE(z)),
        lambda z: ONE(z) + (SD * 5).log(),
        crais.NegativeBinomial(SD * 5, learn=False),
    ),
}


def draws(distribution):
    torch.manual_seed(3)
    with torch.no_grad():
        return distribution(torch.randn(12, 4)).sample()


@pytest.mark.parametrize("name", SAME)
def test_a_distribution_is_the_likelihood_of_its_name(name):
    distribution, output, likelihood = SAME[name]
    x = draws(distribution)
    options = CHEAP | {"base": "laplace"}
    wanted = crais.evaluate(decoder=output, images=x, likelihood=likelihood, **options)
    found = crais.evaluate(decoder=distribution, images=x, **options)
    alike(found, wanted)
    name_of = [r.summary["model"]["likelihood"] for r in (found, wanted)]
    assert name_of[0] == name_of[1]


def mixture(z):
    parts = D.Normal(torch.stack([ONE(z), TWO(z)], -1), 0.3)
    return D.MixtureSameFamily(D.Categorical(torch.tensor([0.3, 0.7]).expand(z.shape[0], 10, 2)), parts)


KINDS = {
    "normal": lambda loc: D.Normal(loc, torch.linspace(0.2, 0.5, 50).view(10, 5)),
    "laplace": lambda loc: D.Laplace(loc, 0.3 + 0.1 * loc.square()),
    "bernoulli": lambda loc: D.Bernoulli(logits=4 * loc),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_has_the_fisher_weights_of_its_components(kind):
    def decode(z):
        parts = FIFTY(z).view(-1, 10, 5)
        return D.MixtureSameFamily(D.Categorical(logits=parts.flip(2)), KINDS[kind](parts))

    options = CHEAP | {"images": draws(decode), "base": "laplace", "steps": 64}
    found = crais.evaluate(decoder=decode, **options)
    assert found.summary["model"]["likelihood"] == "mixture"
    prior, options = crais.StandardNormal(), options | {"base": "prior", "steps": 256}
    wanted = crais.evaluate(log_joint=lambda z, x: prior.log_prob(z) + decode(z).log_prob(x).sum(1), **options)
    assert abs(found.mean - wanted.mean) < 5 * (found.mc_se + wanted.mc_se)
    assert found.mc_se < 0.05
    bounds = crais.certify(decoder=decode, image_shape=(10,), num_images=6, **LIKE)
    assert abs(bounds.gap) < 1
    with pytest.raises(crais.UsageError, match="give images or num_images"):
        crais.certify(decoder=decode, images=options["images"], num_images=6, **LIKE)


@pytest.mark.parametrize(
    "distribution",
    [
        lambda z: D.MixtureSameFamily(
            D.Categorical(logits=FIFTY(z).view(-1, 10, 5)), D.Gamma(FIFTY(z).exp().view(-1, 10, 5), 2.0)
        ),
        lambda z: D.LogNormal(ONE(z), 0.5),
        lambda z: D.MultivariateNormal(ONE(z), 0.25 * torch.eye(10)),
        lambda z: D.Geometric(logits=ONE(z)),
        lambda z: D.Binomial(7, logits=ONE(z)),
        lambda z: D.Independent(D.OneHotCategorical(logits=FIFTY(z).view(-1, 10, 5)), 1),
        lambda z: D.StudentT(TWO(z).exp() + 1, ONE(z), 0.5),
        lambda z: D.NegativeBinomial(TWO(z).exp(), logits=ONE(z)),
    ],
)
def test_any_other_distribution_is_taken_as_it_is(distribution, tmp_path):
    x = draws(distribution)
    prior = crais.StandardNormal()
    whole = torch.equal(x, x.round())  # the checks of a log_joint have data that are not

    of_rows = bool(distribution(torch.zeros(1, 4)).event_shape)

    def log_joint(z, x):
        value = distribution(z).log_prob(x.round() if whole and not of_rows else x)
        return prior.log_prob(z) + (value if of_rows else value.flatten(1).sum(1))

    options = CHEAP | {"base": "laplace"}
    wanted = crais.evaluate(log_joint=log_joint, images=x, **options)
    alike(crais.evaluate(decoder=distribution, images=x, **options), wanted)


def test_a_scale_that_depends_on_z_is_not_fixed():
    """A clamp may hide that at a probe."""
    distribution = lambda z: D.Normal(ONE(z), (10 * (z[:, :1] - 3)).exp().clamp(min=0.5))
    x = draws(distribution)
    wanted = crais.evaluate(
        decoder=lambda z: (ONE(z), distribution(z).scale.log()), images=x,
        likelihood=crais.Gaussian(scale="log_sd"), **CHEAP,
    )  # fmt: skip
    alike(crais.evaluate(decoder=distribution, images=x, **CHEAP), wanted)


LOG_SD = lambda z: TWO(z) - 1
WAYS = {
    "sd": (lambda z: (ONE(z), LOG_SD(z).exp()), crais.Gaussian(scale="sd")),
    "log_var": (lambda z: (ONE(z), 2 * LOG_SD(z)), crais.Gaussian(scale="log_var")),
    "halves": (lambda z: torch.cat([ONE(z), LOG_SD(z)], 1), crais.Gaussian(scale="log_sd")),
    "mu, logvar": (lambda z: {"mu": ONE(z), "logvar": 2 * LOG_SD(z)}, crais.Gaussian()),
    "sigma": (lambda z: {"z": z, "mean": ONE(z), "sigma": LOG_SD(z).exp()}, crais.Gaussian()),
    "an object": (lambda z: SimpleNamespace(loc=ONE(z), var=(2 * LOG_SD(z)).exp()), crais.Gaussian()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_says_what_gives_the_scale(way):
    decoder, likelihood = WAYS[way]
    x = draws(lambda z: D.Normal(ONE(z), LOG_SD(z).exp()))
    options = CHEAP | {"base": "laplace", "images": x}
    wanted = crais.evaluate(decoder=lambda z: (ONE(z), LOG_SD(z)), likelihood=crais.Gaussian("log_sd"), **options)
    alike(crais.evaluate(decoder=decoder, likelihood=likelihood, **options), wanted)


@pytest.mark.parametrize(
    ("decoder", "likelihood", "words"),
    [
        (lambda z: (ONE(z), TWO(z)), crais.Gaussian(), "second one is.*'sd' or 'log_sd' or 'log_var'"),
        (lambda z: torch.cat([ONE(z), TWO(z)], 1), crais.Gaussian(), "second half is"),
        (lambda z: (ONE(z), TWO(z)), crais.DiscretizedLogistic(), "'scale' or 'log_scale'"),
        (lambda z: (ONE(z), TWO(z)), crais.Gaussian(scale="sd"), "as no scale does"),
        (lambda z: (ONE(z), 9 + TWO(z).exp()), crais.Gaussian(scale="log_sd"), "as no logarithm"),
        (lambda z: ONE(z) - 1, crais.DiscretizedLogistic(0.1), r"means lie outside \[0, 1\]"),
        (lambda z: {"mu": ONE(z), "logvar": TWO(z)}, crais.Gaussian(0.5), "scale of its own"),
        (lambda z: {"mu": ONE(z), "std": TWO(z)}, crais.Laplace(), "Laplace is .*not 'std'"),
        (lambda z: {"a": ONE(z), "std": TWO(z)}, crais.Gaussian(), "location of 'std'"),
        (ONE, None, "the model has no likelihood"),
        (lambda z: D.Normal(ONE(z), 0.5), crais.Bernoulli(), r"Normal \[2, 10\], and the likelihood"),
        (lambda z: {"a": ONE(z), "b": ONE(z)}, crais.Bernoulli(), r"a dict of a \[2, 10\], b \[2, 10\]"),
        (lambda z: (z, z), crais.Bernoulli(), r"a tuple of 0 \[2, 4\], 1 \[2, 4\]"),
        (lambda z: None, crais.Bernoulli(), "a NoneType"),
        (lambda z: {"logits": ONE(z).detach()}, crais.Bernoulli(), "is not that of its values"),
        (lambda z: D.Bernoulli(logits=ONE(z).detach()), None, "is not that of its values"),
        (lambda z: D.LogNormal(ONE(z.detach()), 0.5), None, "is not that of its values"),
        (lambda z: {"probs": ONE(z).sigmoid()}, crais.Bernoulli(), r"probs=True"),
        (ONE, D.Normal(0.0, 1.0), r"let the decoder return Normal\(\.\.\.\)"),
        (ONE, D.Normal, r"let the decoder return Normal\(\.\.\.\)"),
        (ONE, lambda x, output: 0, r"log_prob of x \[2, 10\] must return \[2\], not \[\]"),
    ],
)
def test_outputs_that_are_refused(decoder, likelihood, words):
    with pytest.raises(crais.UsageError, match=words):
        crais.evaluate(decoder=decoder, images=torch.ones(3, 10), likelihood=likelihood, **CHEAP)


@dataclass(slots=True)
class Own:
    """A normal one: `log_prob` alone."""

    sd: float = 1.0

    def log_prob(self, x, output):
        return D.Normal(output, self.sd).log_prob(x).sum(1)


class Elements:
    """The same, of each element, and with draws."""

    def __init__(self, sd):
        self.sd = sd

    def log_prob(self, x, output):
        return D.Normal(output, self.sd).log_prob(x)

    def sample(self, output):
        return D.Normal(output, self.sd).sample()


def test_a_likelihood_of_ones_own_needs_log_prob_alone():
    options = {"decoder": ONE, "images": torch.linspace(-1, 1, 30).view(3, 10), **CHEAP, "steps": 50}
    found = crais.evaluate(likelihood=Own(), **options)
    derived = type("Derived", (crais.Likelihood,), {"sd": 1.0, "log_prob": Own.log_prob})
    for other in (Own, derived(), Elements(1.0)):
        alike(crais.evaluate(likelihood=other, **options), found)
    assert found.summary["model"]["likelihood"] == "Own"
    wanted = crais.evaluate(likelihood=crais.Gaussian(1.0), **options)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.3)
    with pytest.raises(crais.UsageError, match=r"give an instance, Elements\(\.\.\.\)"):
        crais.evaluate(likelihood=Elements, **options)
    given = {"decoder": ONE, "latent": 4, "image_shape": (10,), "num_images": 3, "progress": False}
    assert abs(crais.certify(likelihood=Elements(1.0), **given).gap) < 0.5
    with pytest.raises(crais.UsageError, match="no way to simulate .* a likelihood and a prior that can be sampled"):
        crais.certify(likelihood=Own(), **given)
    swapped = SimpleNamespace(log_prob=lambda output, x: Own().log_prob(x, output))
    for likelihood, words in ((swapped, r"takes x first: log_prob\(x, "), (swapped.log_prob, r"a function f\(x, ")):
        with pytest.raises(crais.UsageError, match=words):
            crais.evaluate(likelihood=likelihood, **options)


def test_a_distribution_in_a_likelihood_of_ones_own_does_not_look_at_its_arguments():
    counts, z = torch.tensor([[3.0, 0, 1, 7], [0, 0, 2, 1]]), torch.linspace(-8, 8, 1601, dtype=torch.float64)
    own = lambda x, output: D.Poisson(output.exp()).log_prob(x)
    found = crais.evaluate(
        decoder=lambda z: z.repeat(1, 4), likelihood=own, images=counts, **CHEAP | {"latent": 1, "steps": 200}
    )
    log_joint = own(counts.unsqueeze(1), z.view(-1, 1)).sum(2) + D.Normal(0.0, 1.0).log_prob(z)
    truth = log_joint.logsumexp(1) + math.log(0.01)
    np.testing.assert_allclose(found.log_likelihood, truth, atol=0.1)


class ZeroInflatedNegativeBinomial(D.Distribution):
    """As scvi-tools has it, in so far as crais looks."""

    arg_constraints = {}
    support = D.constraints.nonnegative_integer

    def __init__(self, mu, theta, zi_logits):
        self.mu, self.theta, self.zi_logits = mu, theta, zi_logits
        super().__init__(mu.shape)


def test_counts_of_scvi_are_known():
    decode = lambda z: ZeroInflatedNegativeBinomial(ONE(z).exp(), SD, TWO(z))
    same_in_crais = {
        "decoder": lambda z: (ONE(z), TWO(z)),
        "likelihood": crais.ZeroInflatedNegativeBinomial(SD, learn=False),
    }
    torch.manual_seed(5)
    with torch.no_grad():
        z = torch.randn(12, 4)
        x = same_in_crais["likelihood"].draw((ONE(z), TWO(z)), (12, 10))
    options = CHEAP | {"base": "laplace"}
    alike(crais.evaluate(decoder=decode, images=x, **options), crais.evaluate(images=x, **same_in_crais, **options))


def test_means_outside_the_domain_that_is_said_are_noted():
    given = {"decoder": lambda z: ONE(z) - 1, "images": torch.ones(3, 10), **CHEAP}
    with pytest.warns(UserWarning, match=r"means lie outside \[0, 1\]"):
        found = crais.evaluate(likelihood=crais.DiscretizedLogistic(0.1, domain=(0, 1)), **given)
    assert "outside [0, 1]" in found.warnings[0]
    inside = crais.evaluate(likelihood=crais.DiscretizedLogistic(0.1, domain=(-9, 9)), **given)
    assert inside.warnings == []


LIKE = {"steps": 50, "chains": 4, "progress": False, "latent": 4}


@pytest.mark.parametrize(
    ("decoder", "likelihood"),
    [
        (ONE, crais.Poisson()),
        (ONE, crais.NegativeBinomial(2.0)),
        (lambda z: (ONE(z), TWO(z)), crais.ZeroInflatedNegativeBinomial(SD)),
        (lambda z: FIFTY(z).view(-1, 5, 10), crais.Categorical(5)),
        (lambda z: FIFTY(z).view(-1, 10, 5), crais.Categorical(5)),
        (lambda z: D.Geometric(logits=ONE(z)), None),
    ],
)
def test_any_likelihood_that_draws_has_certificates_in_memory(decoder, likelihood):
    bounds = crais.certify(decoder=decoder, likelihood=likelihood, num_images=10, image_shape=(10,), **LIKE)
    assert len(bounds) == 10 and abs(bounds.gap) < 0.5
    assert bounds.images.unique().numel() > 1


def test_symbols_are_of_any_number_and_order():
    x = draws(lambda z: D.Categorical(logits=FIFTY(z).view(-1, 10, 5)))
    first = {"decoder": lambda z: FIFTY(z).view(-1, 10, 5).transpose(1, 2)}
    last = {"decoder": lambda z: {"logits": FIFTY(z).view(-1, 10, 5)}}
    given = {"images": x, "likelihood": crais.Categorical(5), **CHEAP}
    alike(crais.evaluate(**last, **given), crais.evaluate(**first, **given))
    for likelihood, words in ((crais.Categorical(), "256 classes"), (crais.Categorical(6), "6 classes")):
        with pytest.raises(crais.UsageError, match=words + r".*\[2, 5, 10\]"):
            crais.evaluate(**(given | first | {"likelihood": likelihood}))
    with pytest.raises(crais.DataError, match="entry 0 of image 0 is 7"):
        crais.evaluate(**(given | first | {"images": torch.full((3, 10), 7)}))


def test_a_decoder_of_distributions_has_certificates_and_exports(tmp_path):
    bounds = crais.certify(decoder=lambda z: D.Normal(ONE(z), 0.5), latent=4, num_images=20, steps=50, progress=False)
    assert abs(bounds.gap) < 0.1  # bounds cross by chance where they are this near
    crais.export(tmp_path / "m.pt", decoder=mixture, latent=4, image_shape=(10,), simulate=8, quiet=True)
    found = crais.evaluate(tmp_path / "m.pt", draws(mixture), **(CHEAP | {"latent": None}))
    wanted = crais.evaluate(decoder=mixture, images=draws(mixture), **CHEAP)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.02)
    bounds = crais.certify(tmp_path / "m.pt", num_images=8, steps=50, progress=False)
    assert abs(bounds.gap) < 0.1  # bounds cross by chance where they are this near


def test_what_depends_on_data_is_not_exported(tmp_path):
    branches = lambda z: ONE(z) if z.abs().max() < 100 else -ONE(z)
    given = {"decoder": branches, "likelihood": crais.Bernoulli(), "latent": 4, "image_shape": (10,)}
    with pytest.raises(crais.UsageError, match="cannot be traced.*depends on data"):
        crais.export(tmp_path / "m.pt2", quiet=True, **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "likelihood"),
    [
        ("bernoulli", crais.Bernoulli()),
        ("bernoulli:probs", crais.Bernoulli(probs=True)),
        ("student-t:4", crais.StudentT(4)),
        ("gaussian:0.5", crais.Gaussian(0.5)),
    ],
)
def test_a_likelihood_has_a_name_as_on_the_command_line(name, likelihood, tmp_path):
    decode = (lambda z: ONE(z).sigmoid()) if "probs" in name else ONE
    options = {"decoder": decode, "images": torch.ones(3, 10), **CHEAP}
    found = crais.evaluate(likelihood=name, **options)
    alike(found, crais.evaluate(likelihood=likelihood, **options))
    given = {"decoder": decode, "image_shape": (10,), "latent": 4, "simulate": 8, "quiet": True}
    assert crais.export(tmp_path / "m.pt", likelihood=name, **given).value_error < 1e-3


def test_a_misspelled_likelihood_is_said():
    for wrong, words in (("bernouli", "did you mean bernoulli?"), ("bernoulli:0.5", "there are bernoulli,")):
        with pytest.raises(crais.UsageError, match=re.escape(f"no likelihood {wrong!r}; {words}")):
            crais.evaluate(decoder=ONE, images=torch.ones(3, 10), likelihood=wrong, **CHEAP)


def test_a_misspelled_argument_is_said(tmp_path):
    for wrong, name, call in (
        ("liklihood", "likelihood", lambda **given: crais.evaluate(decoder=ONE, **given)),
        ("liklihood", "likelihood", lambda **given: crais.certify(decoder=ONE, **given)),
        ("num_image", "num_images", lambda **given: crais.certify(decoder=ONE, **given)),
        ("priors", "prior", lambda **given: crais.log_normalizer(ONE, dim=4, **given)),
        ("liklihood", "likelihood",
         lambda **given: crais.export(tmp_path / "m.pt", latent=4, image_shape=(10,), **given)),
    ):  # fmt: skip
        with pytest.raises(crais.UsageError, match=rf"^no option {wrong}; did you mean {name}\?$"):
            call(**{wrong: None})

"""`crais.evaluate`: the same numbers as the programs', whatever holds model and images."""

import html
import json
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import CHEAP, evaluate
from torch import distributions as D

import crais

pytestmark = pytest.mark.usefixtures("compiled")

FLAGS = ["--steps=8", "--chains=8", "--base=prior", "--chunk=8", "--quiet"]


def linear_gaussian(weight):
    """p(x) of x = weight z + 0.5 e."""
    covariance = weight @ weight.T + 0.25 * torch.eye(len(weight))
    return torch.distributions.MultivariateNormal(torch.zeros(len(weight)), covariance)


def test_an_mlp_in_memory_has_the_program_s_bits(mlp, images, program, page_run, tmp_path):
    shaped = torch.nn.Sequential(*mlp.decoder, torch.nn.Unflatten(1, (6, 6)))
    described = {"decoder": shaped, "likelihood": crais.Bernoulli(), "image_shape": (6, 6), "binarisation": "none"}
    crais.export(mlp, tmp_path / "mlp.pt2", quiet=True, **described)
    np.save(tmp_path / "x.npy", images.numpy())
    out = tmp_path / "out"
    program(
        "eval-loglik", tmp_path / "mlp.pt2", "--seed=5", "--method=ais", "--method=iwae:50",
        "--data", tmp_path / "x.npy", "--out", out, *FLAGS,
    )  # fmt: skip
    found = evaluate(mlp, images, seed=5, method=["ais", "iwae:50"])
    assert found.summary["evaluator"].startswith("fused")
    found.save(tmp_path / "saved")
    for name in ("per_image.csv", "schedule.csv"):
        assert (tmp_path / "saved" / name).read_text() == (out / name).read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert found.mean == summary["results"][0]["log_likelihood"]
    assert found.mc_se == summary["results"][0]["monte_carlo_std_error"]
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == sorted(p.name for p in out.iterdir())
    found.report(tmp_path / "page.html")
    page, wanted = (page_run(file) for file in (tmp_path / "page.html", out / "report.html"))
    for part in ("tables", "estimates", "schedule", "pictures", "findings"):
        assert page[part] == wanted[part], part
    assert page["pictures"]
    loaded = crais.evaluate(tmp_path / "mlp.pt2", images, seed=5, method=["ais", "iwae:50"], **CHEAP)
    assert np.array_equal(loaded.log_likelihood, found.log_likelihood)


def test_a_decoder_in_torchscript_is_the_module(mlp, images, tmp_path):
    file = tmp_path / "decoder.pt"
    torch.jit.trace(mlp.decoder, torch.zeros(2, 4)).save(file)
    script = evaluate(file, images, likelihood="bernoulli", latent=4)
    module = evaluate(decoder=mlp.decoder, images=images, latent=4)
    assert script.summary["evaluator"] == "torchscript"
    errors = np.hypot(script.std_error, module.std_error)
    assert np.all(np.abs(script.log_likelihood - module.log_likelihood) < 5 * errors + 1e-3)


def test_the_result_does_not_depend_on_threads(curved, images):
    one, two = (evaluate(curved, images, threads=n) for n in (1, 2))
    assert one.summary["evaluator"] == "pytorch"
    assert np.array_equal(one.log_likelihood, two.log_likelihood)
    assert np.array_equal(one.std_error, two.std_error)


def of_convolutions():
    torch.manual_seed(4)
    decoder = torch.nn.Sequential(
        torch.nn.Linear(4, 8 * 3 * 3), torch.nn.Unflatten(1, (8, 3, 3)), torch.nn.BatchNorm2d(8),
        torch.nn.ELU(), torch.nn.ConvTranspose2d(8, 1, 4, 2, 1), torch.nn.Flatten(2),
    ).eval()  # fmt: skip
    decoder[4].weight.data *= 5
    return decoder


def of_sums(x):
    """An encoder that crais does not know."""
    return torch.zeros(len(x), 4), (0.1 * x.sum((1, 2), keepdim=True)[:, :, 0]).expand(-1, 4)


@pytest.mark.parametrize("is_mlp", [True, False])
def test_a_fused_and_a_called_model_agree(mlp, images, is_mlp):
    decoder, encode = (mlp.decoder, mlp.encode) if is_mlp else (of_convolutions(), of_sums)
    rows = []

    def decode(z):
        rows.append(len(z))
        return decoder(z).view(-1, 6, 6)

    def log_joint(z, x):
        return crais.Bernoulli().log_prob(x, decode(z)) + crais.StandardNormal().log_prob(z)

    # By cheap forces chains part: here and there a proposal that was taken is not.
    same = {"latent": 4, "images": images, "control": 0}
    fused = evaluate(decoder=decode, encoder=encode, force_dtype="float32", **same)
    assert fused.summary["evaluator"].startswith("fused")
    assert sum(rows) < 100  # of checks; no chain called it
    called = evaluate(log_joint=log_joint, likelihood=None, **same)
    assert called.summary["evaluator"] == "pytorch"
    np.testing.assert_allclose(called.log_likelihood, fused.log_likelihood, atol=1e-3)


class Lopsided(torch.nn.Module):
    """A flow whose inverse forgets by how much it stretches."""

    def forward(self, e):
        return 2 * e, torch.full_like(e[:, 0], 4 * math.log(2))

    def inverse(self, z):
        return z / 2, torch.zeros_like(z[:, 0])


def mixture(means, sd):
    """log p(z) of a mixture of normals, as a function that says no more."""
    parts = torch.distributions.Independent(torch.distributions.Normal(means, sd), 1)
    weights = torch.distributions.Categorical(torch.ones(len(means)))
    return torch.distributions.MixtureSameFamily(weights, parts).log_prob


FORGOTTEN = 2 * math.log(2 * math.pi)  # of 4 dimensions


@pytest.mark.parametrize(
    ("prior", "log_mass"),
    [
        ({"log_prior": lambda z: -0.5 * z.square().sum(1)}, FORGOTTEN),
        ({"log_prior": lambda z: torch.distributions.Normal(0, 1).log_prob(z).mean(1)}, 5.53),
        ({"log_prior": lambda z: torch.distributions.Normal(0, 1).log_prob(z).sum(1) - 1}, -1),
        ({"prior": crais.Hierarchical(lambda z: -0.5 * z.square().sum(1))}, FORGOTTEN),
        ({"prior": crais.Flow(Lopsided())}, 4 * math.log(2)),
    ],
)
def test_a_prior_that_is_not_normalised_is_refused(curved, images, prior, log_mass):
    with pytest.raises(crais.DataError, match=r"integrates to exp\(.*not 1.*accept_prior") as raised:
        evaluate(curved, images, latent=4, **prior)
    found = float(str(raised.value).split("exp(")[1].split(" ")[0])
    assert found == pytest.approx(log_mass, abs=0.05)
    with pytest.warns(UserWarning, match=r"p\(z\) integrates to exp\("):
        accepted = evaluate(curved, images, latent=4, accept_prior=True, **prior)
    assert len(accepted.warnings) == 1 and "integrates to exp(" in accepted.warnings[0]


@pytest.mark.parametrize(
    "log_prior",
    [
        lambda z: torch.distributions.Normal(0, 1).log_prob(z).sum(1),
        lambda z: torch.distributions.Normal(30, 0.2).log_prob(z).sum(1),
        lambda z: torch.distributions.Laplace(0, 3).log_prob(z).sum(1),
        lambda z: torch.distributions.StudentT(3).log_prob(z).sum(1),
        mixture(torch.eye(4) * 3, 0.5),
        mixture(torch.randn(40, 4, generator=torch.Generator().manual_seed(7)) * 5, 0.3),
    ],
)
def test_a_prior_that_is_normalised_is_taken(curved, images, log_prior):
    curved.encode = None
    evaluate(curved, images, latent=4, log_prior=log_prior)


def test_warnings_stay_with_the_result(curved, images, tmp_path):
    options = {"images": 0.9 * images, "binarisation": "none", "out": tmp_path / "out"}
    with pytest.warns(UserWarning, match="grey pixels"):
        found = evaluate(curved, **options)
    assert "WARNING: grey pixels under bernoulli" in repr(found)
    assert "grey pixels under bernoulli" in found._repr_html_()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["warnings"] == found.warnings == found.to_dict()["warnings"]
    assert "grey pixels under bernoulli" in (tmp_path / "out" / "report.html").read_text()
    assert evaluate(curved, resume=True, **options).warnings == found.warnings


def test_a_model_that_says_all_itself(curved, images):
    curved.likelihood, curved.latent = crais.Bernoulli(), 4
    wanted = crais.evaluate(curved, images, **CHEAP)
    curved.encode = None
    assert crais.evaluate(curved, images, **CHEAP).mean == wanted.mean


@pytest.mark.parametrize("is_conditional", [False, True])
def test_a_linear_gaussian_model_has_its_known_log_likelihood(is_conditional):
    torch.manual_seed(3)
    weight, x, y = torch.randn(5, 2), torch.randn(6, 5), torch.randn(6, 5) * is_conditional
    found = crais.evaluate(
        decoder=lambda z, y=0: y + z @ weight.T, likelihood=crais.Gaussian(0.5), latent=2, images=x,
        labels=y if is_conditional else None, base="laplace", progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(found.log_likelihood, linear_gaussian(weight).log_prob(x - y), atol=1e-3)


@pytest.mark.parametrize("kind", ["gaussian", "distribution", "own"])
def test_pixels_that_were_not_seen_are_integrated_out(kind):
    torch.manual_seed(3)
    weight, seen = torch.randn(5, 2), torch.rand(6, 5) < 0.6
    x = torch.where(seen, torch.randn(6, 5), torch.nan)
    model = {"decoder": lambda z: z @ weight.T, "likelihood": crais.Gaussian(0.5)}
    if kind == "own":  # of each element
        model["likelihood"] = SimpleNamespace(log_prob=lambda x, output: D.Normal(output, 0.5).log_prob(x))
    elif kind == "distribution":
        model = {"decoder": lambda z: D.Independent(D.Normal(z @ weight.T, 0.5), 1)}
    options = {"latent": 2, "images": x, "base": "laplace", "progress": False, **model}
    found = crais.evaluate(missing="nan", **options)
    whole = linear_gaussian(weight)
    truth = [
        D.MultivariateNormal(whole.mean[own], whole.covariance_matrix[own][:, own]).log_prob(row[own])
        for row, own in zip(x, seen)
    ]
    np.testing.assert_allclose(found.log_likelihood, truth, atol=1e-3)
    assert found.control is None or found.control.gap < 0.05
    with pytest.raises(crais.DataError, match=r'is nan; .* missing="nan"'):
        crais.evaluate(**options)
    with pytest.raises(crais.UsageError, match="elements of MultivariateNormal are not independent"):
        decoder = lambda z: D.MultivariateNormal(z @ weight.T, torch.eye(5))
        crais.evaluate(missing="nan", **options | {"decoder": decoder, "likelihood": None})
    with pytest.raises(crais.UsageError, match="does not say log p of each element"):
        rows = SimpleNamespace(log_prob=lambda x, output: D.Normal(output, 0.5).log_prob(x).sum(1))
        crais.evaluate(missing="nan", **options | {"decoder": lambda z: z @ weight.T, "likelihood": rows})


def test_the_decoder_tells_latent_and_shape(mlp, tmp_path):
    report = crais.export(mlp, tmp_path / "m.pt2", likelihood=crais.Bernoulli())
    assert report.kind == "weights"
    bounds = crais.certify(mlp, 4, likelihood="bernoulli", **CHEAP)
    by_file = crais.evaluate(str(report.path), simulate=4, **CHEAP | {"method": "bidirectional"})
    assert bounds.gap == pytest.approx(by_file.gap, abs=0.1) and bounds.images.shape == (4, 36)


@pytest.mark.parametrize("are_given", [False, True])
def test_certify_bounds_a_known_log_likelihood(are_given):
    torch.manual_seed(3)
    weight = torch.randn(5, 2)
    x = 3 * torch.randn(100, 5) if are_given else None
    bounds = crais.certify(
        None, x, decoder=lambda z: z @ weight.T, likelihood=crais.Gaussian(0.5), latent=2,
        num_images=None if are_given else 100, base="prior", steps=200, progress=False,
    )  # fmt: skip
    truth = float(linear_gaussian(weight).log_prob(bounds.images).mean())
    error = 5 * bounds.mc_se
    assert bounds.lower - error < truth < bounds.upper + error
    assert 0 < bounds.gap < 1 and bounds.gap == pytest.approx(bounds.upper - bounds.lower)
    assert ("distance" in dir(bounds)) == are_given and not hasattr(bounds, "log_z")
    if are_given:
        assert bounds.distance < 0.01 and bounds.met == 1 and bounds.control is not None
        assert "distance" in repr(bounds) and (bounds.met_each == 1).all()


def test_certify_says_where_chains_stay_apart():
    torch.manual_seed(4)

    def decode(z):  # the square of a complex number: two modes, and log p(x) as of z itself
        x, y = z[:, 0], z[:, 1]
        return torch.stack([x * x - y * y, 2 * x * y], 1) / z.norm(dim=1, keepdim=True)

    x = decode(2 * torch.randn(12, 2)) + 0.15 * torch.randn(12, 2)
    x = x[x.norm(dim=1) > 1.5]
    known = torch.distributions.Normal(0, 1.0225**0.5).log_prob(x).sum(1)
    bounds = crais.certify(
        None, x, decoder=decode, likelihood=crais.Gaussian(0.15), latent=2, base="prior", steps=200, progress=False
    )
    assert bounds.met < 0.9 and "apart" in bounds.flag_words(int(bounds.met_each.argmin()))
    assert (bounds.distance_each[bounds.met_each < 1] == 1).all()
    assert bounds.lower - 5 * bounds.mc_se < float(known.mean()) < bounds.upper + 5 * bounds.mc_se


def test_a_budget_pays_for_coupled_chains():
    torch.manual_seed(5)
    weight = torch.randn(5, 2)
    bounds = crais.certify(
        None, torch.randn(200, 5), decoder=lambda z: z @ weight.T, likelihood=crais.Gaussian(0.5), latent=2,
        budget=2000, progress=False,
    )  # fmt: skip
    assert 1000 < bounds.methods[0]["evaluations_per_image"]["total"] <= 2000


def test_few_images_are_cut_for_several_threads():
    torch.manual_seed(0)
    decoder = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.GELU("tanh"), torch.nn.Linear(16, 30)).eval()
    options = {"decoder": decoder, "images": torch.zeros(50, 30), "latent": 20, "budget": 400, "progress": False}
    one, two = (crais.evaluate(threads=n, likelihood=crais.Bernoulli(), **options) for n in (1, 2))
    assert one.summary["settings"]["chunk"] == 7 and np.array_equal(one.log_likelihood, two.log_likelihood)
    assert one.summary["settings"] == {**two.summary["settings"], "threads": 1}
    spent = one.methods[0]["evaluations_per_image"]
    assert 0.9 * 400 < spent["total"] <= 400 and spent["base"] + spent["tuning"] <= 0.55 * 400


def test_compare_is_paired(curved, images):
    before = evaluate(curved, images)
    with torch.no_grad():
        curved.decoder[-1].bias -= 0.02
    after = evaluate(curved, images)
    found = crais.compare(before, after)
    assert found.mean == pytest.approx(after.mean - before.mean)
    assert found.data_se < min(before.data_se, after.data_se)
    difference = after.log_likelihood - before.log_likelihood
    assert found.difference == pytest.approx(difference)
    assert found.unpaired_se == pytest.approx(math.hypot(before.data_se, after.data_se))
    assert found.share_better == pytest.approx((difference > 0).mean())
    assert found.low < found.mean < found.high
    assert crais.compare(after, before).mean == pytest.approx(-found.mean)
    assert "95% interval" in repr(found)
    other = evaluate(curved, images[:10])
    with pytest.raises(crais.UsageError, match="different images"):
        crais.compare(before, other)
    with pytest.raises(crais.UsageError, match="takes two results"):
        crais.compare(before.mean, after.mean)


def test_a_result_shows_itself(curved, images, tmp_path):
    found = evaluate(curved, images, method=["ais", "elbo"])
    assert repr(found).startswith("Mean log-likelihood, nats\nmethod")
    shown = found._repr_html_()
    assert "log p(x)" in shown and "elbo" in shown
    found.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "elbo" in page
    assert page.count("data:image/png") >= 20  # ten images at each end, and those flagged
    assert html.unescape(re.search('srcdoc="(.*?)"', shown, re.DOTALL)[1]) == page
    assert found.to_dict()["results"][0]["log_likelihood"] == found.mean
    assert len(found) == 20 and found.flags.dtype == np.int64
    assert found.log_likelihood.mean() == pytest.approx(found.mean)
    words = [found.flag_words(i) for i in range(20)]
    table = found.to_pandas()
    assert list(table[table["method"] == "ais"]["flags"].fillna("")) == words
    with pytest.raises(crais.UsageError, match="results"):
        found.save(tmp_path / "one")
        found.save(tmp_path / "one")
    found.save(tmp_path / "one", overwrite=True)


def test_pandas_and_tqdm_are_optional(curved, images, monkeypatch):
    found = evaluate(curved, images)
    for name in ("pandas", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_pandas()
    assert "log p(x)" in found._repr_html_()
    evaluate(curved, images, progress=True)


def test_the_help_has_every_option():
    rows = __import__("crais._crais")._crais.options("eval-loglik")
    names = [row["name"].replace("-", "_") for row in rows]
    own = {"dry_run", "format", "max_time", "quiet"}
    assert len(names) > 40 and own < {*names}
    for name in {*names} - own:
        assert f"  {name}=" in crais.evaluate.__doc__, name
    assert "iwae[:K]" in crais.evaluate.__doc__
    assert "steps=T [96]" in crais.log_normalizer.__doc__
    assert "epochs=N" in crais.train_vae.__doc__

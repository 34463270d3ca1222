"""`crais.evaluate`: the same numbers as the programs', whatever holds model and images."""

import html
import json
import math
import re

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import crais

pytestmark = pytest.mark.usefixtures("compiled")

CHEAP = {"steps": 8, "chains": 8, "base": "prior", "chunk": 8, "progress": False}
FLAGS = ["--steps=8", "--chains=8", "--base=prior", "--chunk=8", "--quiet"]


class Stream(IterableDataset):
    """Items (image, label) one after the other."""

    def __init__(self, images):
        self.images = images

    def __iter__(self):
        return ((image, 0) for image in self.images.numpy())


@pytest.fixture
def likelihood():
    return crais.Bernoulli()


def test_an_mlp_in_memory_has_the_program_s_bits(
    mlp, images, likelihood, program, page_run, tmp_path
):
    shaped = torch.nn.Sequential(*mlp.decoder, torch.nn.Unflatten(1, (6, 6)))
    crais.export(
        tmp_path / "mlp.pt2", decoder=shaped, likelihood=likelihood, encoder=mlp.encode,
        latent=4, image_shape=(6, 6), binarisation="none", quiet=True,
    )  # fmt: skip
    np.save(tmp_path / "x.npy", images.numpy())
    out = tmp_path / "out"
    program(
        "eval-loglik", tmp_path / "mlp.pt2", "--seed=5", "--method=ais", "--method=iwae:50",
        "--data", tmp_path / "x.npy", "--out", out, *FLAGS,
    )  # fmt: skip
    found = crais.evaluate(
        mlp, images, likelihood=likelihood, seed=5, method=["ais", "iwae:50"], **CHEAP
    )
    assert found.summary["evaluator"].startswith("fused")
    found.save(tmp_path / "saved")
    for name in ("per_image.csv", "schedule.csv"):
        assert (tmp_path / "saved" / name).read_text() == (out / name).read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert found.mean == summary["results"][0]["log_likelihood"]
    assert found.mc_se == summary["results"][0]["monte_carlo_std_error"]
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == sorted(
        p.name for p in out.iterdir()
    )
    found.report(tmp_path / "page.html")
    page, wanted = (page_run(file) for file in (tmp_path / "page.html", out / "report.html"))
    for part in ("tables", "estimates", "schedule", "pictures", "findings"):
        assert page[part] == wanted[part], part
    assert page["pictures"]
    loaded = crais.evaluate(
        tmp_path / "mlp.pt2", images, seed=5, method=["ais", "iwae:50"], **CHEAP
    )
    assert np.array_equal(loaded.log_likelihood, found.log_likelihood)


def test_a_decoder_in_torchscript_is_the_module(mlp, images, likelihood, tmp_path):
    file = tmp_path / "decoder.pt"
    torch.jit.trace(mlp.decoder, torch.zeros(2, 4)).save(file)
    script = crais.evaluate(file, images, likelihood="bernoulli", latent=4, **CHEAP)
    module = crais.evaluate(
        decoder=mlp.decoder, images=images, likelihood=likelihood, latent=4, **CHEAP
    )
    assert script.summary["evaluator"] == "torchscript"
    errors = np.hypot(script.std_error, module.std_error)
    assert np.all(np.abs(script.log_likelihood - module.log_likelihood) < 5 * errors + 1e-3)


def test_the_result_does_not_depend_on_threads(curved, images, likelihood):
    one, two = (
        crais.evaluate(curved, images, likelihood=likelihood, threads=n, **CHEAP) for n in (1, 2)
    )
    assert one.summary["evaluator"] == "pytorch"
    assert np.array_equal(one.log_likelihood, two.log_likelihood)
    assert np.array_equal(one.std_error, two.std_error)


def test_a_fused_and_a_called_model_agree(mlp, images, likelihood):
    # By cheap forces chains part: here and there a proposal that was taken is not.
    fused = crais.evaluate(mlp, images, likelihood=likelihood, force_dtype="float32", **CHEAP)
    called = crais.evaluate(
        log_joint=lambda z, x: likelihood.log_prob(x.flatten(1), mlp.decoder(z))
        + crais.StandardNormal().log_prob(z),
        latent=4, images=images, **CHEAP,
    )  # fmt: skip
    assert called.summary["evaluator"] == "pytorch"
    np.testing.assert_allclose(called.log_likelihood, fused.log_likelihood, atol=1e-3)


def test_a_decoder_of_convolutions_is_fused_whatever_the_encoder(images, likelihood):
    torch.manual_seed(4)
    decoder = torch.nn.Sequential(
        torch.nn.Linear(4, 8 * 3 * 3), torch.nn.Unflatten(1, (8, 3, 3)), torch.nn.BatchNorm2d(8),
        torch.nn.ELU(), torch.nn.ConvTranspose2d(8, 1, 4, 2, 1), torch.nn.Flatten(2),
    ).eval()  # fmt: skip
    decoder[4].weight.data *= 5
    rows = []

    def decode(z):
        rows.append(len(z))
        return decoder(z).view(-1, 6, 6)

    def encode(x):
        return torch.zeros(len(x), 4), (0.1 * x.sum((1, 2), keepdim=True)[:, :, 0]).expand(-1, 4)

    same = {"likelihood": likelihood, "encoder": encode, "latent": 4, "images": images}
    fused = crais.evaluate(decoder=decode, force_dtype="float32", **same, **CHEAP)
    assert fused.summary["evaluator"].startswith("fused")
    assert sum(rows) < 100  # of checks; no chain called it
    called = crais.evaluate(
        log_joint=lambda z, x: likelihood.log_prob(x, decode(z))
        + crais.StandardNormal().log_prob(z),
        latent=4, images=images, **CHEAP,
    )  # fmt: skip
    assert called.summary["evaluator"] == "pytorch"
    np.testing.assert_allclose(called.log_likelihood, fused.log_likelihood, atol=1e-3)


def test_images_of_every_kind(curved, images, likelihood):
    wanted = crais.evaluate(curved, images, likelihood=likelihood, **CHEAP).log_likelihood
    set_of = TensorDataset(images, torch.arange(len(images)))
    kinds = (
        images.numpy(),
        images.double(),
        set_of,
        Stream(images),
        DataLoader(set_of, batch_size=7),
        DataLoader(set_of, batch_size=None),
        DataLoader(Stream(images), batch_size=7),
    )
    for same in kinds:
        found = crais.evaluate(curved, same, likelihood=likelihood, **CHEAP)
        assert np.array_equal(found.log_likelihood, wanted)
    grey = (255 * images).to(torch.uint8)
    found = crais.evaluate(curved, grey, likelihood=likelihood, scale=255, **CHEAP)
    assert np.array_equal(found.log_likelihood, wanted)
    binary = crais.evaluate(curved, grey, likelihood=likelihood, binarisation="threshold:128", **CHEAP)
    assert np.array_equal(binary.log_likelihood, wanted)


def test_a_sigmoid_at_the_end_is_fused(mlp, images, likelihood):
    wanted = crais.evaluate(mlp, images, likelihood=likelihood, **CHEAP)
    mlp.decoder.append(torch.nn.Sigmoid())
    found = crais.evaluate(mlp, images, likelihood=crais.Bernoulli(probs=True), **CHEAP)
    assert found.summary["evaluator"].startswith("fused")
    assert np.array_equal(found.log_likelihood, wanted.log_likelihood)


def test_grey_pixels_are_no_binary_ones(mlp, curved, images, likelihood):
    grey = (torch.rand(20, 6, 6, generator=torch.Generator().manual_seed(6)) * 255).to(torch.uint8)
    same = {"likelihood": likelihood, **CHEAP}
    refused = r"0 or 1: binarisation static:0 .* ContinuousBernoulli"
    for model in (mlp, curved):
        with pytest.raises(crais.DataError, match=refused):
            crais.evaluate(model, grey, scale=255, **same)
        with pytest.raises(crais.DataError, match=refused):
            crais.evaluate(model, grey / 255, **same)
        with pytest.raises(crais.DataError, match=r"scale 255.*binarisation static:0"):
            crais.evaluate(model, grey, **same)
        bytes_of = crais.evaluate(model, grey, binarisation="static:0", **same)
        for floats in (grey / 255, grey.double() / 255):
            found = crais.evaluate(model, floats, binarisation="static:0", **same)
            assert np.array_equal(found.log_likelihood, bytes_of.log_likelihood)
        with pytest.raises(crais.UsageError, match="or floats k / 255"):
            crais.evaluate(model, torch.rand(20, 6, 6), binarisation="static:0", **same)
        for pixels, scale in ((grey, None), (grey / 255, None)):
            asked = crais.evaluate(model, pixels, binarisation="none", scale=scale, **same)
            assert any("grey pixels under bernoulli" in line for line in asked.warnings)
    assert crais.evaluate(mlp, images, **same).warnings == []
    continuous = crais.evaluate(mlp, grey / 255, likelihood=crais.ContinuousBernoulli(), **CHEAP)
    assert continuous.warnings == []


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
def test_a_prior_that_is_not_normalised_is_refused(curved, images, likelihood, prior, log_mass):
    same = {"likelihood": likelihood, "latent": 4, **CHEAP, **prior}
    with pytest.raises(crais.DataError, match=r"integrates to exp\(.*not 1.*accept_prior") as raised:
        crais.evaluate(curved, images, **same)
    found = float(str(raised.value).split("exp(")[1].split(" ")[0])
    assert found == pytest.approx(log_mass, abs=0.05)
    accepted = crais.evaluate(curved, images, accept_prior=True, **same)
    assert len(accepted.warnings) == 1 and "integrates to exp(" in accepted.warnings[0]
    assert "WARNING: p(z) integrates to exp(" in repr(accepted)
    assert accepted.to_dict()["warnings"] == accepted.warnings


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
def test_a_prior_that_is_normalised_is_taken(curved, images, likelihood, log_prior):
    curved.encode = None
    crais.evaluate(curved, images, likelihood=likelihood, latent=4, log_prior=log_prior, **CHEAP)


def test_a_distribution_is_a_prior(mlp, images, likelihood, tmp_path):
    normal = torch.distributions.Normal(torch.zeros(4), torch.ones(4))
    same = {"likelihood": likelihood, **CHEAP}
    wanted = crais.evaluate(mlp, images, **same)
    found = crais.evaluate(mlp, images, prior=torch.distributions.Independent(normal, 1), **same)
    assert found.summary["evaluator"].startswith("fused")
    assert np.array_equal(found.log_likelihood, wanted.log_likelihood)
    laplace = torch.distributions.Laplace(torch.zeros(4), 1.0)
    as_function = crais.evaluate(mlp, images, log_prior=lambda z: laplace.log_prob(z).sum(1), **same)
    found = crais.evaluate(mlp, images, prior=laplace, **same)
    np.testing.assert_allclose(found.log_likelihood, as_function.log_likelihood, atol=0.5)


def test_warnings_stay_with_the_result(curved, images, likelihood, tmp_path):
    with pytest.warns(UserWarning, match="grey pixels"):
        found = crais.evaluate(
            curved, 0.9 * images, likelihood=likelihood, binarisation="none",
            out=tmp_path / "out", **CHEAP,
        )  # fmt: skip
    assert "WARNING: grey pixels under bernoulli" in repr(found)
    assert "grey pixels under bernoulli" in found._repr_html_()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["warnings"] == found.warnings
    assert "grey pixels under bernoulli" in (tmp_path / "out" / "report.html").read_text()
    again = crais.evaluate(
        curved, 0.9 * images, likelihood=likelihood, binarisation="none", out=tmp_path / "out",
        resume=True, **CHEAP,
    )  # fmt: skip
    assert again.warnings == found.warnings


def test_a_model_that_says_all_itself(curved, images):
    curved.likelihood, curved.latent = crais.Bernoulli(), 4
    wanted = crais.evaluate(curved, images, **CHEAP)
    curved.encode = None
    assert crais.evaluate(curved, images, **CHEAP).mean == wanted.mean


def test_a_linear_gaussian_model_has_its_known_log_likelihood():
    torch.manual_seed(3)
    weight, x = torch.randn(5, 2), torch.randn(6, 5)
    normal = torch.distributions.MultivariateNormal(torch.zeros(5), weight @ weight.T + 0.25 * torch.eye(5))
    found = crais.evaluate(
        decoder=lambda z: z @ weight.T, likelihood=crais.Gaussian(0.5), latent=2, images=x,
        base="laplace", progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(found.log_likelihood, normal.log_prob(x), atol=1e-3)


def test_a_conditional_model_takes_labels():
    torch.manual_seed(3)
    x, y = torch.randn(6, 5), torch.randn(6, 5)
    found = crais.evaluate(
        decoder=lambda z, y: y + z @ torch.ones(1, 5), likelihood=crais.Gaussian(0.5), latent=1,
        images=x, labels=y, base="laplace", progress=False,
    )  # fmt: skip
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(5), torch.ones(5, 5) + 0.25 * torch.eye(5)
    )
    np.testing.assert_allclose(found.log_likelihood, normal.log_prob(x - y), atol=1e-3)


def test_certify_bounds_a_known_log_likelihood():
    torch.manual_seed(3)
    weight = torch.randn(5, 2)
    bounds = crais.certify(
        decoder=lambda z: z @ weight.T, likelihood=crais.Gaussian(0.5), latent=2, num_images=100,
        base="prior", steps=200, progress=False,
    )  # fmt: skip
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(5), weight @ weight.T + 0.25 * torch.eye(5)
    )
    truth = float(normal.log_prob(bounds.images).mean())
    error = 5 * bounds.mc_se
    assert bounds.lower - error < truth < bounds.upper + error
    assert 0 < bounds.gap < 1 and bounds.gap == pytest.approx(bounds.upper - bounds.lower)


def test_compare_is_paired(curved, images, likelihood):
    before = crais.evaluate(curved, images, likelihood=likelihood, **CHEAP)
    with torch.no_grad():
        curved.decoder[-1].bias -= 0.02
    after = crais.evaluate(curved, images, likelihood=likelihood, **CHEAP)
    found = crais.compare(before, after)
    assert found.mean == pytest.approx(after.mean - before.mean)
    assert found.data_se < min(before.data_se, after.data_se)
    difference = after.log_likelihood - before.log_likelihood
    assert found.difference == pytest.approx(difference)
    assert found.data_se == pytest.approx(difference.std(ddof=1) / math.sqrt(len(difference)))
    half = (found.high - found.low) / 2
    assert (found.low + found.high) / 2 == pytest.approx(found.mean)
    assert half == pytest.approx(2.0930 * found.data_se, rel=1e-4)  # Student's t of 19 degrees
    assert found.unpaired_se == pytest.approx(math.hypot(before.data_se, after.data_se))
    assert found.share_better == pytest.approx((difference > 0).mean())
    clearly = 2 * np.hypot(before.std_error, after.std_error)
    assert found.clearly_better == (difference > clearly).sum()
    assert found.clearly_worse == (difference < -clearly).sum()
    assert crais.compare(after, before).mean == pytest.approx(-found.mean)
    assert "95% interval" in repr(found)
    other = crais.evaluate(curved, images[:10], likelihood=likelihood, **CHEAP)
    with pytest.raises(crais.UsageError, match="different images"):
        crais.compare(before, other)
    with pytest.raises(crais.UsageError, match="takes two results"):
        crais.compare(before.mean, after.mean)


def test_a_result_shows_itself(curved, images, likelihood, tmp_path):
    found = crais.evaluate(curved, images, likelihood=likelihood, method=["ais", "elbo"], **CHEAP)
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


def test_pandas_and_tqdm_are_optional(curved, images, likelihood, monkeypatch):
    found = crais.evaluate(curved, images, likelihood=likelihood, **CHEAP)
    for name in ("pandas", "tqdm.auto"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_pandas()
    assert "log p(x)" in found._repr_html_()
    crais.evaluate(curved, images, likelihood=likelihood, **(CHEAP | {"progress": True}))


def test_a_folder_is_resumed(curved, images, likelihood, tmp_path):
    flags = {**CHEAP, "likelihood": likelihood, "out": tmp_path / "out"}
    whole = crais.evaluate(curved, images, **flags)
    (tmp_path / "out" / "chunks" / "000001.json").unlink()
    assert np.array_equal(
        crais.evaluate(curved, images, resume=True, **flags).log_likelihood, whole.log_likelihood
    )
    with pytest.raises(crais.UsageError, match="resume"):
        crais.evaluate(curved, images, **flags)


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

"""`crais.yardstick`: densities, their exact normalisers, and the table of what crais finds."""

import csv
import math

import pytest
import torch

import crais
from crais import yardstick
from crais.yardstick.__main__ import main

# The values at z_i = 0.3 sin i of a second implementation, in C++.
VALUES = {
    "beta-binomial": -71.9943026212,
    "half-normal": -0.9508018360,
    "double-well": 0.5045192131,
    "many-well": 3.7805354965,
    "two-normals": -94.6823591872,
    "forty-normals": -13.8500213406,
    "two-widths": -11.7170348035,
    "narrow": -433684.7101611864,
    "rosenbrock": -2.4647809709,
    "funnel": -11.5776220837,
    "student-t": -10.7294273948,
    "eight-schools": -46.3194492713,
    "eight-schools-nc": -43.9258535241,
    "horseshoe": -52.0688388801,
    "horseshoe-nc": -50.3444643497,
    "radon": -1869.1927354336,
    "radon-nc": -1830.2502617753,
    "seeds": -151.5132554093,
    "brownian": -64.4794019607,
    "stochastic-volatility": -280992.6113412846,
    "item-response": -21759.9516323258,
    "eggbox": 238.29834079,
    "shells": -21.0469704397,
    "rosenbrock-box": -478.60660592,
    "german-flat": -728.6699889048,
    "german-10": -809.2137274538,
}


@pytest.mark.parametrize("name", VALUES)
def test_densities_are_their_definitions(name):
    density = yardstick.get(name)
    z = 0.3 * torch.arange(1, density.dim + 1).double().sin()
    both = density.log_density(torch.stack([z, -z]))
    assert both.shape == (2,) and both.dtype == torch.float64
    assert both[0].item() == pytest.approx(VALUES[name], rel=1e-8)
    assert density.source and density.name == name and density.log_z_error >= 0


def log_integral(name, *axes):
    """log of the sum over a grid with these axes, each of equal steps."""
    grid = torch.cartesian_prod(*axes).reshape(-1, len(axes))
    cell = sum(math.log(axis[1] - axis[0]) for axis in axes)
    return float(yardstick.get(name).log_density(grid).logsumexp(0)) + cell


def log_evidence(name, cells=1500):
    """log of the mean likelihood over the square of a uniform prior."""
    z = torch.special.ndtri((torch.arange(cells).double() + 0.5) / cells)
    grid = torch.cartesian_prod(z, z)
    log_prior = -0.5 * grid.square().sum(1) - math.log(2 * math.pi)
    log_l = yardstick.get(name).log_density(grid) - log_prior
    return float(log_l.logsumexp(0)) - 2 * math.log(cells)


def test_normalisers_are_integrals():
    line = torch.arange(-20, 20, 1e-3, dtype=torch.float64) + 5e-4
    plane = torch.arange(-1.3, 1.3, 5e-3, dtype=torch.float64)
    found = {
        "beta-binomial": log_integral("beta-binomial", line),
        "half-normal": log_integral("half-normal", line),
        "double-well": log_integral("double-well", line),
        "forty-normals-near": log_integral("forty-normals-near", plane, plane),
        "eggbox": log_evidence("eggbox"),
        "shells": log_evidence("shells"),
    }
    for name, log_z in found.items():
        assert log_z == pytest.approx(yardstick.get(name).log_z, abs=1e-4), name
    # Five independent pairs: x uniform on [-10, 10], y beside its square.
    x = torch.linspace(-10, 10, 200001, dtype=torch.float64)
    below, above = (math.sqrt(20) * (bound - x.square()) for bound in (-10, 10))
    inside = torch.special.ndtr(above) - torch.special.ndtr(below)
    pair = float(((-(x - 1).square()).exp() * inside).mean()) * math.sqrt(math.pi / 10) / 20
    assert 5 * math.log(pair) == pytest.approx(yardstick.get("rosenbrock-box").log_z, abs=2e-4)


def test_brownian_is_an_integral_over_its_scales():
    """Given its scales a and b, what is seen of the walk is normal: a^2 min(s, t) + b^2 I."""
    y = yardstick._data("walk")
    when = torch.cat([torch.arange(1, 11), torch.arange(21, 31)]).double()
    log_scale = torch.linspace(-10, 5, 301, dtype=torch.float64)  # of a, and of b
    prior = torch.distributions.Normal(0, 2).log_prob(log_scale)
    values, vectors = torch.linalg.eigh(torch.minimum(when[:, None], when))
    a, b = (2 * log_scale).exp()[:, None, None], (2 * log_scale).exp()[:, None]
    log_l = torch.distributions.Normal(0, (a * values + b).sqrt()).log_prob(y @ vectors).sum(2)
    joint = (log_l + prior[:, None] + prior).flatten()
    log_z = float(joint.logsumexp(0)) + 2 * math.log(0.05)
    assert log_z == pytest.approx(yardstick.get("brownian").log_z, abs=1e-5)


def test_the_horseshoe_is_an_integral_over_its_scales():
    """Given tau, a product of integrals over log lambda: N(y; 0, 1 + (tau lambda)^2)."""
    t = torch.linspace(-40, 40, 1001, dtype=torch.float64)
    prior = math.log(2 / math.pi) + t - torch.nn.functional.softplus(2 * t) + math.log(0.08)
    sd = (1 + (2 * (t[:, None] + t)).exp()).sqrt()  # [tau, lambda]
    total = prior.clone()
    for y in (4.0, 3.0, -2.5, 0.3, -0.4, 0.8, -0.1, 0.5, -1.0, 0.2):
        seen = torch.distributions.Normal(0, sd).log_prob(torch.tensor(y, dtype=torch.float64))
        total += (prior + seen).logsumexp(1)
    assert float(total.logsumexp(0)) == pytest.approx(yardstick.get("horseshoe").log_z, abs=1e-6)


def test_regressions_read_the_folder_of_data(tmp_path):
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci/pima-indians-diabetes.csv").write_text("1,10,0\n3,40,1\n8,10,1\n")
    (tmp_path / "ionosphere.csv").write_text("1,0,3,g\n2,0,5,b\n4,0,1,g\n")
    pima, ionosphere = yardstick.get("pima", tmp_path), yardstick.get("ionosphere", tmp_path)
    assert ionosphere.log_density(torch.zeros(1, 3).double()).item() < 0  # no feature that never changes
    w, variances = torch.tensor([[0.8, -1.7], [26 / 3, 200]], dtype=torch.float64)
    x = torch.tensor([[-3, -10], [-1, 20], [4, -10]]) / variances.sqrt()
    log_likelihood = -(-torch.tensor([1, -1, -1]) * (x @ w)).exp().log1p().sum()
    prior = -0.5 * (0.64 + 2.89) / 25 - math.log(2 * math.pi * 25)
    assert pima.log_density(w[None]).item() == pytest.approx(float(log_likelihood) + prior)
    with pytest.raises(crais.NoInputError, match="sonar.all-data.csv; tried .*uci"):
        yardstick.get("sonar", tmp_path)


@pytest.mark.usefixtures("compiled")
def test_a_stiff_density_by_a_base_that_fits_until_it_gains_nothing():
    """The first particles settle far from most of the mass. With seed 6, on some processors, the
    base is 4 nats too low after three rounds of fits, and right after more."""
    brownian = yardstick.get("brownian")
    options = {"base": "mixture", "chains": 16, "seed": 6, "steps": 32, "problems": 1}
    found = crais.log_normalizer(brownian.log_density, dim=32, progress=False, **options)
    assert found.mean == pytest.approx(brownian.log_z, abs=0.5)


@pytest.mark.usefixtures("compiled")
def test_the_table_has_a_line_for_each_run(tmp_path, capsys):
    main(["half-normal", "--seeds", "2", "--out", str(tmp_path / "out")])
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [80, 80, 80] and lines[1].startswith("half-normal ")
    with open(tmp_path / "out/yardstick.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows] == ["0", "1"]
    for row in rows:
        assert abs(float(row["off_by"])) < max(5 * float(row["error"]), 0.005)
        assert float(row["exact"]) == -math.log(2) and row["flagged"] == "0"


def test_one_line_says_what_is_wrong(tmp_path, capsys):
    (tmp_path / "file").touch()
    for arguments, code in (
        (["banana"], 64),
        (["pima", "--data-dir", str(tmp_path)], 66),
        (["funnel", "--out", str(tmp_path / "file")], 73),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "'banana'; there are beta-binomial, " in lines[0]


def test_the_list_says_where_each_is_from(tmp_path, capsys):
    main(["list", "--data-dir", str(tmp_path)])
    said = capsys.readouterr()
    assert "rosenbrock               2  x ~ N(1, 1)" in said.out
    assert "without sonar: " in said.err

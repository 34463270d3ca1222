"""The acceptance ratio, on works of known free energy differences."""

import math

import numpy as np
import pytest
import torch

import crais

LOG_Z = -3.0


def normal_works(rng, sd, n=200, m=200):
    """Works that satisfy Crooks' relation: two normals, sd standard deviations apart."""
    return rng.normal(-LOG_Z + sd**2 / 2, sd, n), rng.normal(LOG_Z + sd**2 / 2, sd, m)


def overlap_of(sd, a):
    """The integral of p q / (a p + (1 - a) q), of two unit normals sd apart."""
    x = np.linspace(-10, 10 + sd, 10_001)
    p, q = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0, sd))
    return (p * q / (a * p + (1 - a) * q)).sum() * (x[1] - x[0])


@pytest.mark.parametrize(("sd", "n", "m"), [(1.0, 50, 50), (3.0, 200, 200), (3.0, 1000, 50)])
def test_intervals_cover_as_they_say(sd, n, m):
    rng = np.random.default_rng(1)
    found = [crais.from_work(*normal_works(rng, sd, n, m)) for _ in range(500)]
    cover = np.mean([abs(z.log_z - LOG_Z) < 1.96 * z.mc_se for z in found])
    assert 0.93 <= cover <= 0.97 and sum(z.flagged for z in found) <= 2
    overlaps = [z.overlap for z in found]
    assert abs(np.mean(overlaps) - overlap_of(sd, n / (n + m))) < 5 * np.std(overlaps) / math.sqrt(500)


def test_no_overlap_is_flagged_where_the_spread_says_all_is_well():
    forward, reverse = 0.1 * np.random.default_rng(2).normal(size=(2, 1000)) + [[40], [30]]
    z = crais.from_work(forward, reverse)
    terms = 1 / (1 + np.exp(forward + z.log_z)), 1 / (1 + np.exp(reverse - z.log_z))
    naive = math.sqrt(sum(t.var() / t.mean() ** 2 / len(t) for t in terms))  # Bennett's equation 10a
    assert naive < 0.01 and z.mc_se > 1e5
    assert z.flagged and "make anneals longer" in z.reasons[0] and z.lower < z.log_z < z.upper
    assert max(map(len, repr(z).splitlines())) <= 80 and "Flagged" in repr(z)
    far = crais.from_work([1e6, 1e6], [1e6, 1e6 + 1])
    assert far.flagged and far.mc_se == math.inf and far.overlap == 0


@pytest.mark.parametrize(("n", "m"), [(200, 200), (500, 30)])
def test_shifts_and_swaps(n, m):
    forward, reverse = normal_works(np.random.default_rng(3), 2.0, n, m)
    z = crais.from_work(forward, reverse)
    for shift in (1.0, 1e6, -1e6):
        moved = crais.from_work((forward - shift)[::-1], reverse + shift)
        assert moved.log_z - shift == pytest.approx(z.log_z, abs=1e-8)
        assert moved.mc_se == pytest.approx(z.mc_se, rel=1e-6) and moved.overlap == pytest.approx(z.overlap)
    back = crais.from_work(torch.tensor(reverse, requires_grad=True), forward.tolist())
    assert back.log_z == pytest.approx(-z.log_z, abs=1e-12) and back.mc_se == pytest.approx(z.mc_se)
    assert (back.lower, back.upper) == pytest.approx((-z.upper, -z.lower)) and not back.flagged
    same = crais.from_work(np.full(n, 5.0), np.full(m, -5.0))  # reversible: no work is lost
    assert same.log_z == pytest.approx(-5, abs=1e-12) and same.mc_se < 1e-6 and not same.flagged


def test_infinite_works_are_weights_of_zero():
    x = np.random.default_rng(4).uniform(size=400)  # the base; the target is 1 below a half, else 0
    forward, reverse, alive = np.where(x < 0.5, 0.0, np.inf), np.zeros(400), np.mean(x < 0.5)
    z = crais.from_work(forward, reverse)  # its root: alive / (1 + Z) = Z / (1 + Z)
    assert z.log_z == pytest.approx(math.log(alive), abs=1e-12) == z.lower and not z.flagged
    assert z.mc_se == pytest.approx(math.sqrt((1 - alive) / alive / 400))  # of a binomial share
    assert crais.from_work(reverse, forward).log_z == pytest.approx(-z.log_z, abs=1e-12)


@pytest.mark.parametrize(("forward", "kind", "words"), [
    ([1.0, math.nan], crais.DataError, "forward: 1 of 2 works are NaN or -inf"),
    ([1.0, -math.inf, -math.inf], crais.DataError, "forward: 2 of 3 works are NaN or -inf"),
    ([math.inf, math.inf], crais.DataError, "forward: all 2 works are +inf"),
    (np.zeros((1, 4)), crais.UsageError, "forward has shape [1, 4]: give at least 2 works"),
    ([1.0], crais.UsageError, "forward has shape [1]: give at least 2 works"),
    ([1.0, "a"], crais.UsageError, "forward is a list, not an array of works"),
])  # fmt: skip
def test_bad_works_are_refused_in_one_line(forward, kind, words):
    with pytest.raises(kind) as caught:
        crais.from_work(forward, [0.0, 1.0])
    assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(kind, match="reverse"):
        crais.from_work([0.0, 1.0], forward)


def test_works_of_a_wrong_sign_miss_and_are_flagged():
    forward, reverse = normal_works(np.random.default_rng(5), 2.0, 1000, 1000)
    right, twin = crais.from_work(forward, reverse), crais.from_work(forward, -reverse)
    assert abs(right.log_z - LOG_Z) < 4 * right.mc_se and not right.flagged
    assert abs(twin.log_z - LOG_Z) > 4 * twin.mc_se and "check the signs" in "".join(twin.reasons)


def test_a_normal_dragged_and_squeezed():
    def energy(x, beta):
        return (1 + 8 * beta) * (x - 4 * beta) ** 2 / 2

    def anneals(betas, x):  # a move of random-walk Metropolis after each piece of work
        work = 0
        for before, beta in zip(betas, betas[1:]):
            work = work + energy(x, beta) - energy(x, before)
            moved = x + rng.normal(size=x.size)
            x = np.where(rng.exponential(size=x.size) > energy(moved, beta) - energy(x, beta), moved, x)
        return work

    rng, betas = np.random.default_rng(6), np.linspace(0, 1, 33)
    forward, reverse = anneals(betas, rng.normal(size=2000)), anneals(betas[::-1], rng.normal(4, 1 / 3, 2000))
    z = crais.from_work(forward, reverse)
    assert abs(z.log_z + math.log(3)) < 4 * z.mc_se < 0.4 and not z.flagged

"""Ends of a mean from bets: closed forms, the product written out, and coverage summed up exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from spectralz.kernels.betting import Bets, lower_end

ALL_ON_ONE = Bets(np.ones(1), np.ones(1))


def money(w, z, bets):
    """The gambler's money, as the module says, factor by factor."""
    return sum(
        share * math.prod(1.0 - rate + rate * each / z for each in w)
        for rate, share in zip(bets.rates.tolist(), bets.money.tolist(), strict=True)
    )


@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-6])
def test_one_share_of_all_is_markovs_inequality_of_the_product(delta):
    log_w = np.array([0.3, -1.0, 2.5])
    assert lower_end(log_w[:1], delta, ALL_ON_ONE) == pytest.approx(0.3 + math.log(delta), abs=1e-9)
    assert lower_end(log_w, delta, ALL_ON_ONE) == pytest.approx(log_w.mean() + math.log(delta) / 3, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_end_is_where_the_money_is_enough(seed):
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=30) * rng.choice([1.0, 20.0], size=30)
    pilot = np.log(rng.exponential(size=20))
    for bets in (Bets.for_few(30), Bets.for_many(pilot, 30, 0.02)):
        assert bets.money.sum() == pytest.approx(1.0)
        assert bets.rates.min() > 0.0
        assert bets.rates.max() == 1.0
        end = math.exp(lower_end(np.log(w), 0.02, bets))
        assert money(w, end, bets) >= 50.0
        assert money(w, end * (1.0 + 1e-7), bets) < 50.0


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_the_chance_of_an_end_above_the_mean_is_below_delta(p, delta):
    # Of coins all outcomes can be listed: by how many heads there are.
    count, bets = 25, Bets.for_few(25)
    missed = 0.0
    for heads in range(count + 1):
        with np.errstate(divide="ignore"):
            log_w = np.log(np.repeat([1.0, 0.0], [heads, count - heads]))
        if lower_end(log_w, delta, bets) > math.log(p):
            missed += stats.binom.pmf(heads, count, p)
    assert missed <= delta


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (0.5, 20.0), (60.0, 3.0)])
def test_both_ends_are_closer_than_those_of_maurer_and_pontil(a, b):
    rng, count, delta = np.random.default_rng(7), 20_000, 5e-4
    w, pilot = rng.beta(a, b, count), rng.beta(a, b, 1000)
    low = math.exp(lower_end(np.log(w), delta, Bets.for_many(np.log(pilot), count, delta)))
    high = 1.0 - math.exp(lower_end(np.log1p(-w), delta, Bets.for_many(np.log1p(-pilot), count, delta)))
    assert low < a / (a + b) < high
    nats = math.log(2.0 / delta)
    theirs = math.sqrt(2.0 * w.var(ddof=1) * nats / count) + 7.0 * nats / (3.0 * (count - 1))
    assert w.mean() - theirs < low
    assert high < w.mean() + theirs
    # No bet can be better than the normal distribution would be.
    normal = stats.norm.isf(delta) * w.std() / math.sqrt(count)
    assert high - low > 2.0 * normal * 0.99


@pytest.mark.parametrize("shift", [-1e300, -1e6, 1e6, 1e300])
def test_logarithms_of_any_size(shift):
    log_w = np.array([0.0, 0.5, -900.0, 0.25, -np.inf])
    plain = lower_end(log_w, 0.01, Bets.for_few(5))
    assert lower_end(log_w + shift, 0.01, Bets.for_few(5)) == pytest.approx(plain + shift, rel=1e-12)


def test_no_sample_and_samples_of_nothing_have_no_end():
    assert lower_end(np.empty(0), 0.1, ALL_ON_ONE) == -math.inf
    assert lower_end(np.full(3, -np.inf), 0.1, ALL_ON_ONE) == -math.inf
    # One that lasts long enough is told apart from nothing by a smaller share.
    assert math.isfinite(lower_end(np.array([0.0, *[-np.inf] * 9]), 0.1, Bets.for_few(10)))


def test_equal_samples():
    for count in (1, 10, 10_000):
        bets = Bets.for_many(np.zeros(8), count, 0.001)
        end = lower_end(np.zeros(count), 0.001, bets)
        # Almost half of the money, and 1 / (2 L) of the other half, is on 1.
        assert -math.log(2000.0) / count - 1e-9 <= end <= math.log(0.001) / count + 1e-9

"""Where a path's points stand: at equal lengths, which a survey measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import spectralz as sz
from spectralz._support.clock import using_clock
from spectralz._support.deadline import Deadline
from spectralz.sampling import sweeps
from spectralz.sampling.path import Path, from_coins, path_to
from spectralz.sampling.sweeps import LEAST_POINTS, Survey, deviation_of, survey
from tests.helpers import FakeClock, heard


class MadeUp:
    """A path, its engine and its chains: energies at each point are quantiles of a normal law of known deviation."""

    log_z_of_base, operations, bytes_per_state, together = 0.0, 1.0, 1, 64

    def __init__(self, deviation, n=100):
        self.deviation, self.n = deviation, n
        self.at = []
        self.engine = self

    def start(self, size, rng, parallel):
        self.size = size
        quantiles = norm.ppf((np.arange(size) + 0.5) / size)
        self.energies = quantiles / quantiles.std()
        return self

    def sweep(self, before, at, after, sweeps):
        self.at.extend(at)
        energies = np.array([self.deviation(beta) for beta in at])[:, None] * self.energies
        return (before - at)[:, None] * energies, (after - at)[:, None] * energies


# --------------------------------------------------------------------------------------------------------- spacing


def random_surveys():
    rng = np.random.default_rng(0)
    for _ in range(60):
        points = np.concatenate([[0.0], np.sort(rng.random(int(rng.integers(0, 40)))), [1.0]])
        growth = 10.0 ** rng.uniform(-4, 3, size=len(points) - 1)
        yield Survey(points, np.concatenate([[0.0], np.cumsum(growth)])), float(rng.uniform(0.2, 300.0))


def test_points_rise_from_base_to_model_in_steps_that_are_not_too_long():
    for found, count in random_surveys():
        points = found.spaced(count)
        assert points[0] == 0.0
        assert points[-1] == 1.0
        steps = np.diff(points)
        assert (steps > 0.0).all()
        assert steps.max() <= 1.0 / LEAST_POINTS + 1e-12
        assert max(LEAST_POINTS, math.ceil(count)) + 1 <= len(points) <= math.ceil(count) + LEAST_POINTS


def test_points_stand_at_equal_lengths(monkeypatch):
    monkeypatch.setattr(sweeps, "LEAST_POINTS", 1)
    for found, count in random_surveys():
        points = found.spaced(count)
        assert len(points) == math.ceil(count) + 1
        lengths = np.diff(np.interp(points, found.points, found.length))
        assert lengths == pytest.approx(found.length[-1] / math.ceil(count), rel=1e-6)


@pytest.mark.parametrize("length", [0.0, math.inf])
def test_a_path_of_no_length_or_too_much_of_it_is_divided_evenly(length):
    points = Survey(np.array([0.0, 1.0]), np.array([0.0, length])).spaced(5.0)
    assert set(np.round(points, 12)) == {*np.round(np.linspace(0, 1, LEAST_POINTS + 1), 12), 0.2, 0.4, 0.6, 0.8}


# -------------------------------------------------------------------------------------------------------- surveying


@pytest.mark.parametrize(
    "deviation",
    [
        lambda beta: 3.0,
        lambda beta: 20.0 / (1.0 + 10.0 * beta),
        lambda beta: 5.0 + 20.0 * np.exp(-((beta - 0.5) ** 2) * 50.0),
    ],
    ids=["even", "falling", "peak"],
)
def test_the_length_is_the_integral_of_the_deviation(deviation):
    path = MadeUp(deviation)
    found = survey(path, np.random.default_rng(0))
    truth = quad(deviation, 0.0, 1.0)[0]
    assert found.length[-1] == pytest.approx(truth, rel=0.02)  # the trapezoids of a few tens of points
    for point, length in zip(found.points, found.length, strict=True):
        assert length == pytest.approx(quad(deviation, 0.0, point)[0], abs=0.02 * truth)
    assert np.array_equal(found.points, path.at)
    assert found.points[0] == 0.0
    assert found.points[-1] == 1.0
    assert np.diff(found.points).max() <= 1.0 / LEAST_POINTS + 1e-12
    # No step changes log-weights by more than is said, but for growth where it is cold.
    most = max(sweeps.CHANGE, sweeps.CHANGE_PER_ROOT * 10.0)
    longest = np.maximum(most / np.array([deviation(p) for p in found.points[:-1]]), 0.25 * found.points[:-1])
    assert (np.diff(found.points) <= longest + 1e-9).all()


def test_states_that_are_stuck_at_different_energies_do_not_keep_it_for_ever():
    n = 100
    found = survey(MadeUp(lambda beta: 1e6, n), np.random.default_rng(0))
    assert len(found.points) < 100
    # From where beta E varies by 3 sqrt(n) on, only that much is believed: 3 sqrt(n) (1 + log 1 / beta).
    most = sweeps.MOST_DEVIATION * math.sqrt(n)
    assert found.length[-1] == pytest.approx(most * (1.0 + math.log(1e6 / most)), rel=0.1)


def test_a_survey_in_a_hurry_ends_sooner():
    with using_clock(FakeClock(step=1.0)), Deadline(4.0).in_force(), heard() as told:
        found = survey(MadeUp(lambda beta: 1e6), np.random.default_rng(0))
    assert len(found.points) < 40
    assert found.points[-1] == 1.0
    assert told[-1] == ("surveying the path", 1.0)


def test_independent_spins_have_the_length_that_they_should():
    # From fair coins to spins in fields: E = sum theta_i x_i varies by sum theta_i^2 (1 - tanh(beta theta_i)^2).
    theta = np.random.default_rng(2).normal(size=60)
    model = sz.Ising(field=theta)
    in_double = Path(model, np.zeros(60), in_double=True)
    assert in_double.engine.in_double
    truth = quad(lambda beta: math.sqrt((theta**2 / np.cosh(beta * theta) ** 2).sum()), 0.0, 1.0)[0]
    for path in (in_double, from_coins(model)):
        lengths = [survey(path, np.random.default_rng(seed)).length[-1] for seed in range(8)]
        assert np.mean(lengths) == pytest.approx(truth, rel=0.03)  # 64 states measure a deviation to a tenth, 17 times
    # The fields alone are the base.
    assert survey(path_to(model), np.random.default_rng(0)).length[-1] == 0.0


def test_curie_weiss_has_the_length_that_it_should():
    n, strength = 50, 0.3
    up = np.arange(n + 1)
    log_count = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in up])
    energy = strength * ((2 * up - n) ** 2 - n) / (2 * n)

    def deviation(beta):
        p = np.exp(log_count + beta * energy - (log_count + beta * energy).max())
        p /= p.sum()
        return math.sqrt(p @ energy**2 - (p @ energy) ** 2)

    # Hot, all pairs are independent.
    assert deviation(0.0) == pytest.approx(math.sqrt(n * (n - 1) / 2) * strength / n)
    truth = quad(deviation, 0.0, 1.0)[0]
    coupling = np.full((n, n), strength / (2 * n))
    np.fill_diagonal(coupling, 0.0)
    path = path_to(sz.Ising(coupling=coupling))
    lengths = [survey(path, np.random.default_rng(seed)).length[-1] for seed in range(12)]
    # A square of a normal number has heavy tails: its deviation by 64 states is off by a quarter, and 3 % too small.
    assert np.mean(lengths) == pytest.approx(0.97 * truth, rel=0.06)


# ---------------------------------------------------------------------------------------------- huge numbers

HUGE = [1e17, 1e30, 1e200, 1e300]
MODELS_OF = {
    "a pair": lambda J: sz.Ising.from_edges(2, [(0, 1)], [J]),
    "an antiferromagnetic pair": lambda J: sz.Ising.from_edges(2, [(0, 1)], [-J / 3]),
    "huge and small": lambda J: sz.Ising.from_edges(
        4, [(0, 1), (1, 2), (2, 3), (0, 3)], [J, 1.0, -0.5, 0.3], field=[0.1, 0.2, 0.3, 0.4]
    ),
    "a huge field": lambda J: sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -0.5], field=[J, 0.2, 0.3]),
    "dense": lambda J: sz.Ising(None, [[0.0, J / 2, 0.5], [J / 2, 0.0, -0.25], [0.5, -0.25, 0.0]]),
    "several": lambda J: sz.Ising.from_edges(5, [(i, i + 1) for i in range(4)], [J / 3, J / 2, 1e-3 * J, 1.0]),
}


@pytest.mark.parametrize("J", HUGE)
@pytest.mark.parametrize("kind", MODELS_OF)
def test_huge_couplings_take_few_temperatures(kind, J):
    """The rounding of a mean of huge log-weights is no spread of the weights: it took 7,000 temperatures at 1e200."""
    model = MODELS_OF[kind](J)
    found = sz.log_z(model, "annealing")
    assert found.details["temperatures"] <= 5 * LEAST_POINTS
    assert abs(found.log_z - sz.log_z(model, "exact").log_z) <= 4.0 * found.std_error
    assert found.trusted


def test_the_rounding_of_a_mean_is_no_deviation():
    assert np.all(deviation_of(np.full((3, 7), 1e200 / 3)) == 0.0)
    assert deviation_of(1e200 / 3 + np.array([0.0, 1e184])) == 0.0
    assert deviation_of(np.array([-1.0, 1.0])) == 1.0
    assert deviation_of(np.array([-1e300, 1e300])) == 1e300
    assert deviation_of(1e6 + np.array([-1e-6, 1e-6])) == pytest.approx(1e-6, rel=1e-3)

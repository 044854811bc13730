"""Pilots: steps against a literal search, points of the path, and what a pilot does once the time is up."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.path import from_coins, from_fields
from spectralz.sampling.population import FEWEST_POINTS, VARIANCE, longest_step, pilot
from tests.reference import states

# ------------------------------------------------------------------------------------------------- the longest step


def relative_variance(slope, share, step):
    """Return the variance of the weights exp(step * slope) divided by their squared mean, summed up one by one."""
    top = max(slope)
    weights = [math.exp(step * (one - top)) for one in slope]
    mean = math.fsum(p * w for p, w in zip(share, weights, strict=True))
    return math.fsum(p * (w - mean) ** 2 for p, w in zip(share, weights, strict=True)) / mean**2


@pytest.mark.parametrize("scale", [1.0, 10.0, 1e4, 1e12])
@pytest.mark.parametrize("limit", [0.03, 0.5])
def test_the_longest_step_is_that_of_a_literal_search(scale, limit):
    rng = np.random.default_rng(0)
    slope, share = scale * rng.normal(size=50), rng.random(50)
    share /= share.sum()
    steps = np.geomspace(1e-3 / scale, 1.0, 600)
    fine = [step for step in steps.tolist() if relative_variance(slope, share, step) <= limit]
    found = longest_step(slope, share, limit)
    ratio = steps[1] / steps[0]
    assert fine[-1] / ratio <= found <= fine[-1] * ratio
    if found < 1.0:
        assert relative_variance(slope, share, found) == pytest.approx(limit, rel=1e-4)


def test_the_shares_of_the_states_matter():
    # All states that have a share are alike, so that the last one alone would not let the step be long.
    slope = np.array([0.0, 0.0, 0.0, 500.0])
    assert longest_step(slope, np.array([0.4, 0.3, 0.3, 0.0]), 0.03) == pytest.approx(1.0)
    assert longest_step(slope, np.full(4, 0.25), 0.03) < 0.01


def test_two_equal_halves_have_a_closed_form():
    # Weights 1 and e^(s a) in equal shares have the relative variance tanh(s a / 2)^2.
    for a in (3.0, 700.0, 1e9):
        found = longest_step(np.array([0.0, -a] * 10), np.full(20, 0.05), 0.03)
        assert found == pytest.approx(min(2.0 * math.atanh(math.sqrt(0.03)) / a, 1.0), rel=1e-5)


def test_a_step_is_never_longer_than_the_path():
    assert longest_step(np.full(10, 7.0), np.full(10, 0.1), 0.03) == 1.0
    assert longest_step(1e-3 * np.arange(10.0), np.full(10, 0.1), 0.03) == 1.0


# --------------------------------------------------------------------------------------------------- points and log Z


def some_models():
    fields = np.array([0.4, -0.3, 0.8, 0.0, -0.6, 0.2, 0.5])
    glass = sz.generators.complete(n=8, strength=0.7, seed=1)
    ring = sz.Ising.from_edges(7, [(i, (i + 1) % 7) for i in range(7)], [1.0, -0.5, 0.8, 1.2, -1.0, 0.3, 0.9], fields)
    rng = np.random.default_rng(2)
    terms = sz.Polynomial({(0, 1, 2): 0.8, (1, 3, 4): -0.7, (2, 4, 5, 6): 1.0, (0, 6): 0.5, (3,): 0.4})
    rbm = sz.Ising.from_bipartite(rng.normal(size=(4, 3)), fields)
    paths = {
        "dense": from_coins(glass),
        "sparse": from_coins(ring),
        "sparse from fields": from_fields(ring, 0.5 * fields),
        "terms": from_coins(terms),
        "RBM": from_fields(rbm, np.zeros(7), sides=sides_of(rbm)),
        "RBM from fields": from_fields(rbm, fields, sides=sides_of(rbm)),
    }
    return [pytest.param(path, id=name) for name, path in paths.items()]


@pytest.mark.parametrize("path", some_models())
def test_a_pilot_finds_log_z_in_small_steps(path):
    found = pilot(path, 2048, np.random.default_rng(3))
    assert (found.points[0], found.points[-1]) == (0.0, 1.0)
    steps = np.diff(found.points)
    assert steps.min() > 0.0
    assert steps.max() <= 1.0 / FEWEST_POINTS + 1e-12
    assert len(found.points) >= FEWEST_POINTS
    assert not found.hurried
    assert found.population.groups == 1
    assert found.population.size == 2048
    assert found.seconds > 0.0
    # Log Z errs by about the root of the sum of the steps' variances over the number of states.
    error = math.sqrt(VARIANCE * len(steps) / 2048)
    truth, means, _ = states.solve(path.model)
    assert abs(found.population.mean_log_z + path.model.constant - truth) < 4.0 * error
    assert found.population.mean() == pytest.approx(means, abs=4.0 / math.sqrt(found.population.families()))
    assert found.families_per_state == pytest.approx(found.population.families() / 2048)


def test_steps_are_as_short_as_the_weights_need():
    # Free spins in equal fields h: E has the variance n h^2 / cosh(beta h)^2 at the point beta, however few sweeps.
    n, h, size = 100, 1.0, 4096
    found = pilot(from_fields(sz.Ising(np.full(n, h)), np.zeros(n)), size, np.random.default_rng(4))
    expected = [0.0]
    while expected[-1] < 1.0:
        beta = expected[-1]
        low, high = 0.0, 1.0  # log <w^2> / <w>^2 = n log of cosh(h (beta + 2 s)) cosh(h beta) / cosh(h (beta + s))^2
        for _ in range(60):
            s = 0.5 * (low + high)
            log_cosh = [math.log(math.cosh(h * (beta + k * s))) for k in range(3)]
            is_long = n * (log_cosh[2] + log_cosh[0] - 2.0 * log_cosh[1]) > math.log1p(VARIANCE)
            low, high = (low, s) if is_long else (s, high)
        expected.append(min(beta + low, 1.0))
    assert len(expected) > 1.5 * FEWEST_POINTS
    assert len(found.points) == pytest.approx(len(expected), abs=2)
    assert found.points[1:10] == pytest.approx(expected[1:10], rel=0.1)


class Scripted:
    """An engine whose log-weights grow as a script says, whatever the states are; it is its own chains."""

    n, operations, log_z_of_base = 9, 1.0, 1.5

    def __init__(self, energies):
        self.energies, self.passed, self.sweeps = energies, 0, []

    def start(self, size, rng, parallel):
        self.numbers = np.arange(size)
        return self

    def sweep(self, before, at, after, sweeps):
        self.sweeps.append(sweeps)
        on = (after - at)[:, None] * self.energies[self.passed]
        self.passed += 1
        return -on, on

    def take(self, places):
        self.numbers = self.numbers[places]

    def states(self):
        return self.numbers.astype(np.int8)[:, None]


@pytest.mark.parametrize("scale", [5.0, 60.0, 600.0])
def test_a_pilot_is_the_literal_loop(scale):
    size = 40
    energies = scale * np.random.default_rng(10).normal(size=(2000, size))
    us = np.random.default_rng(11).random(2000)
    numbers_in_turn = iter(us[:, None])
    engine = Scripted(energies)
    path = SimpleNamespace(engine=engine, sides=None)
    found = pilot(path, size, SimpleNamespace(random=lambda _: next(numbers_in_turn)), sweeps=3)

    here, points, log_z, weights, family, resampled = 0.0, [0.0], 1.5, [0.0] * size, list(range(size)), 0
    while here < 1.0:
        slope = energies[len(points) - 1].tolist()
        share = [math.exp(w - max(weights)) for w in weights]
        share = [w / sum(share) for w in share]
        low, high = 1e-12, 1.0
        for _ in range(50):  # the longest step whose weights vary by no more than 0.03
            middle = math.sqrt(low * high)
            low, high = (low, middle) if relative_variance(slope, share, middle) > 0.03 else (middle, high)
        # At most a twenty-fourth of the path, and at least as if energies varied by three times the root of n
        step = max(min(high, 1.0 / 24.0), math.sqrt(0.03 / 9.0) / 3.0 * here)
        there = min(here + step, 1.0)
        weights = [w + (there - here) * e for w, e in zip(weights, slope, strict=True)]
        share = [math.exp(w - max(weights)) for w in weights]
        mean = sum(share) / size
        share = [w / sum(share) for w in share]
        if 1.0 / sum(p * p for p in share) < 0.5 * size:
            log_z += max(weights) + math.log(mean)
            reached = [math.floor(size * sum(share[: k + 1]) + us[resampled]) for k in range(size - 1)] + [size]
            counts = np.diff([0, *reached])
            family = [family[k] for k in range(size) for _ in range(counts[k])]
            weights, resampled = [0.0] * size, resampled + 1
        here = there
        points.append(there)
    assert len(found.points) == len(points)
    assert found.points == pytest.approx(points, rel=1e-6)
    log_z += max(weights) + math.log(sum(math.exp(w - max(weights)) for w in weights) / size)
    assert found.population.mean_log_z == pytest.approx(log_z, rel=1e-5)
    assert found.population.family.tolist() == found.population.x[:, 0].tolist() == family
    assert (resampled > 1) == (scale > 5.0)
    assert engine.sweeps == [1, *[3] * (len(points) - 1)]  # states of the base need no sweeps


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1e-3, 30.0, 1e3, 1e5, 1e30])
def test_tiny_and_huge_couplings_end_in_few_points(scale, is_dense):
    glass = sz.generators.complete(n=10, strength=1.0, seed=1)
    A = np.array(glass.coupling)
    if is_dense:
        model = sz.Ising(scale * glass.field, scale * A)
    else:
        edges = [(i, (i + k) % 10) for i in range(10) for k in (1, 3)]
        model = sz.Ising.from_edges(10, edges, [2.0 * scale * A[i, j] for i, j in edges], scale * glass.field)
    found = pilot(from_coins(model), 128, np.random.default_rng(5))
    assert FEWEST_POINTS <= len(found.points) <= 150
    assert found.points[-1] == 1.0
    assert not found.hurried
    log_z = float(states.log_z(model))
    # Of huge couplings, with few sweeps, only the heaviest states matter; a pilot may miss some of them.
    assert found.population.mean_log_z + model.constant == pytest.approx(log_z, rel=1e-2, abs=0.5)


def test_a_pilot_hurries_once_the_time_is_up():
    model = sz.generators.complete(n=20, strength=1.0, seed=6)
    path = from_coins(model)
    usual = pilot(path, 64, np.random.default_rng(7))
    with Deadline.after(-1.0).in_force():
        found = pilot(path, 64, np.random.default_rng(7))
    assert found.hurried
    assert not usual.hurried
    assert found.points[-1] == 1.0
    # Each step is allowed twice as long as the one before.
    assert len(found.points) <= 12 < len(usual.points)
    assert (np.diff(found.points) > 0.0).all()
    assert np.isfinite(found.population.mean_log_z)


@pytest.mark.parametrize("sweeps", [1, 4])
def test_a_pilot_charges_what_it_sweeps(sweeps, clock, monkeypatch):
    charged = []
    monkeypatch.setattr("spectralz.sampling.population.clock.charge", charged.append)
    path = from_coins(sz.generators.complete(n=8, strength=0.3, seed=8))
    found = pilot(path, 64, np.random.default_rng(9), sweeps=sweeps)
    assert found.sweeps == sweeps
    assert sum(charged) == pytest.approx(len(found.points) * 64 * sweeps * path.engine.operations)

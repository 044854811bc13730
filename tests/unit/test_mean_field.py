"""Mean field: against its definition, as a bound, and as an ascent."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import spectralz as sz
from tests.reference import states
from tests.strategies import models


def literal_bound(model, mean):
    """E[log-weight] + entropy under independent spins with the given means, summed over all states in thirty digits."""
    with mpmath.workdps(30):
        p = [((1 - mpmath.mpf(float(m))) / 2, (1 + mpmath.mpf(float(m))) / 2) for m in mean]
        total = mpmath.mpf(0)
        for bits, weight in zip(itertools.product([0, 1], repeat=model.n), states.log_weights(model), strict=True):
            probability = mpmath.fprod(p[i][b] for i, b in enumerate(bits))
            if probability > 0:
                total += probability * (weight - mpmath.log(probability))
        return float(total)


@given(model=models())
@settings(max_examples=300)
def test_below_the_truth(model):
    truth = sz.log_z(model, "exact")
    result = sz.log_z(model, "mf")
    assert result.lower <= truth.upper
    if not model.edge_count:
        assert result.kind is sz.Kind.EXACT
        assert result.log_z == pytest.approx(truth.log_z, rel=1e-12, abs=1e-12)
        assert result.upper >= truth.lower


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [True, False])
def test_the_bound_is_that_of_its_means(seed, sparse):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(-1, 1, (6, 6)) * (rng.random((6, 6)) < 0.7))
    A = A + A.T
    model = sz.Ising(rng.uniform(-1, 1, 6), sp.csr_array(A) if sparse else A, offset=0.25)
    result, means = sz.log_z(model, "mf"), sz.marginals(model, "mf")
    assert result.log_z == pytest.approx(literal_bound(model, means.mean), abs=1e-12)
    assert np.allclose(means.pair_mean, means.mean[means.edges[:, 0]] * means.mean[means.edges[:, 1]])


@pytest.mark.parametrize("start", ["zero", "random", "leading"])
def test_stationary(start):
    model = sz.generators.complete(6, 0.8, seed=3)
    mean = sz.marginals(model, "mf", start=start).mean
    off = np.array(model.coupling)
    np.fill_diagonal(off, 0.0)
    assert np.allclose(mean, np.tanh(model.field + 2 * off @ mean), atol=1e-9)
    best = literal_bound(model, mean)
    for i in range(3):
        for step in (-1e-3, 1e-3):
            moved = mean.copy()
            moved[i] = np.clip(moved[i] + step, -1, 1)
            assert literal_bound(model, moved) <= best + 1e-12


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_never_decreases(strength):
    for seed in range(5):
        model = sz.generators.complete(30, strength, seed)
        bounds = [sz.log_z(model, "mf", start="random", max_iter=k).log_z for k in range(1, 25)]
        assert np.all(np.diff(bounds) >= -1e-12 * np.abs(bounds[-1]))


def test_restarts_keep_the_best_and_repeat():
    model = sz.generators.complete(20, 1.0, seed=1)
    one, many = sz.log_z(model, "mf"), sz.log_z(model, "mf", restarts=20, seed=4)
    assert len(many.details["bounds"]) == 20
    assert many.log_z == max(many.details["bounds"])
    assert many.details["bounds"][0] == one.log_z
    assert len(set(np.round(many.details["bounds"], 6))) > 1
    assert many.log_z == sz.log_z(model, "mf", restarts=20, seed=4).log_z
    assert "best of 20 starts" in many.status


def test_starts_differ_and_are_bounds():
    model = sz.generators.complete(16, 1.0, seed=2)
    truth = sz.log_z(model, "exact").log_z
    for start in ("zero", "random", "leading", "bp"):
        assert sz.log_z(model, "mf", start=start).log_z <= truth
    # A start along leading directions lies in the basin of a good state more often than a random one does.
    random = [sz.log_z(model, "mf", start="random", seed=k).log_z for k in range(20)]
    assert sz.log_z(model, "mf", start="leading").log_z > np.mean(random)


@pytest.mark.parametrize("scale", [1e-200, 1e3, 1e6, 1e12])
def test_extreme_couplings(scale):
    model = sz.generators.complete(10, 1.0, seed=5).scaled(scale)
    result, means = sz.log_z(model, "mf", restarts=3), sz.marginals(model, "mf")
    assert math.isfinite(result.log_z)
    assert result.lower <= sz.log_z(model, "exact").upper
    assert np.allclose(means.probability.sum(axis=1), 1.0)
    assert np.all(means.probability >= 0.0)


def test_probabilities_keep_their_digits():
    means = sz.marginals(sz.Ising([40.0, -300.0], np.zeros((2, 2))), "mf")
    assert means.probability[0, 0] == pytest.approx(math.exp(-80), rel=1e-13)
    assert means.probability[1, 1] == pytest.approx(math.exp(-600), rel=1e-13)


def test_stopping_early_is_said():
    result = sz.log_z(sz.generators.complete(20, 1.0, seed=1), "mf", max_iter=2)
    assert not result.status.converged
    assert "stopped after 2 sweeps" in result.status
    assert result.iterations == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [({"max_iter": 0}, "max_iter"), ({"restarts": 0}, "restarts"), ({"start": "best"}, "start"), ({"tol": 0}, "tol")],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(sz.errors.OptionError, match=words):
        sz.log_z(sz.generators.complete(3, 1.0, seed=0), "mf", **options)

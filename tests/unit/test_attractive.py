"""Attractive models: how they are recognized, and Bethe's objective as a proven lower bound there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

import spectralz as sz
from spectralz.parts.propagation.attractive import _both, bethe_bound, bethe_bounds, signs_of
from tests.unit.test_bounds import log_z


def attractive_model(rng, scales=(0.1, 1.0, 1.0, 3.0, 30.0), fields=(0.0, 0.1, 1.0, 10.0)):
    """Draw a model whose couplings are positive up to signs of spins, sparse or dense, with any fields."""
    n = int(rng.integers(1, 9))
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.4, 0.7, 1.0])), 1) * rng.choice(scales)
    signs = rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else np.ones(n)
    A = (A + A.T) * np.outer(signs, signs)
    field = rng.uniform(-1, 1, n) * rng.choice(fields)
    return sz.Ising(field, sp.csr_array(A) if rng.random() < 0.5 else A, float(rng.choice([0.0, -2.5])))


def literal_objective(model, mean):
    """Bethe's objective with the best pair of each edge, found by a search, as sums of p log p."""

    def entropy(p):
        p = np.asarray(p, float).ravel()
        return -float(np.sum(p[p > 0] * np.log(p[p > 0])))

    edges, J = model.edges()
    p = np.stack([(1 - mean) / 2, (1 + mean) / 2])
    degree = np.bincount(edges.ravel(), minlength=model.n)
    value = model.constant + float(model.field @ mean)
    value += sum((1 - d) * entropy(p[:, i]) for i, d in enumerate(degree))
    for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True):

        def loss(t, i=i, j=j, weight=weight):
            table = np.array([[1 - p[1, i] - p[1, j] + t, p[1, j] - t], [p[1, i] - t, t]])
            table = np.maximum(table, 0.0)
            return -(weight * (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) + entropy(table))

        low, high = max(0.0, p[1, i] + p[1, j] - 1.0), min(p[1, i], p[1, j])
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-13})
        value -= found.fun
    return value


def test_the_objective_is_that_of_its_means():
    rng = np.random.default_rng(0)
    for _ in range(40):
        model = attractive_model(rng, scales=(0.1, 1.0), fields=(0.0, 1.0))
        h = rng.normal(size=model.n) * rng.choice([0.3, 1.0])
        assert bethe_bound(model, h)[0] == pytest.approx(literal_objective(model, np.tanh(h)), abs=1e-9)


@pytest.mark.parametrize("K", [-400.0, -3.0, -0.2, 0.0, 1e-12, 0.2, 3.0, 400.0])
def test_the_best_pair_solves_its_equation(K):
    s, r = (np.array(each) for each in zip(*itertools.product([0.5, 0.3, 1e-3, 1e-200, 0.0], repeat=2), strict=True))
    t = _both(s, r, np.full(len(s), K))
    assert np.all((t >= 0.0) & (t <= np.minimum(s, r)))
    ordinary = (s > 1e-100) & (r > 1e-100) & (abs(K) < 10.0)
    left = (t * (1 - s - r + t))[ordinary]
    right = (math.exp(min(4 * K, 100.0)) * (s - t) * (r - t))[ordinary]
    assert np.allclose(left, right, rtol=1e-9, atol=0)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_below_the_truth_at_any_means(seed):
    rng = np.random.default_rng(seed)
    close = 0
    for k in range(400):
        model = attractive_model(rng, scales=(1e-6, 0.1, 1.0, 1.0, 10.0, 1e8))
        truth, rounding = log_z(model)
        signs = signs_of(model)
        assert signs is not None
        found = [lower for lower, _ in bethe_bounds(model, signs)]
        found.append(bethe_bound(model, rng.normal(size=model.n) * 10.0 ** rng.uniform(-2, 3))[1])
        if k % 4 == 0:  # one iteration, far from a fixed point
            found.append(sz.log_z(model, "bp", max_iter=1).lower)
        assert all(lower is None or (math.isfinite(lower) and lower <= truth + rounding) for lower in found)
        close += max(found[:-1]) > truth - 0.1 * model.n
    assert close > 350


def test_a_forest_is_met():
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (1, 3)], [1.0, -2.0, 0.5], [0.3, 0.0, -1.0, 0.2])
    exact, found = sz.log_z(model, "exact").log_z, [lower for lower, _ in bethe_bounds(model, signs_of(model))]
    assert exact - 1e-12 < max(found) <= exact


def test_frustrated_models_are_not_attractive():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n = int(rng.integers(1, 8))
        A = np.triu(rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < 0.5), 1)
        model = sz.Ising(np.zeros(n), A + A.T)
        edges, J = model.edges()
        every = np.array(list(itertools.product([-1.0, 1.0], repeat=n))).reshape(-1, n)
        possible = np.all(every[:, edges[:, 0]] * every[:, edges[:, 1]] * J >= 0.0, axis=1).any()
        signs = signs_of(model)
        assert (signs is not None) == possible
        if signs is not None:
            assert np.all(signs[edges[:, 0]] * signs[edges[:, 1]] * J >= 0.0)
    assert sz.log_z(sz.generators.complete(6, 1.0, 0), "bp").lower is None


def test_bp_says_so():
    model = sz.generators.torus(rows=5, columns=5, strength=0.2)
    result = sz.log_z(model, "bp")
    assert result.kind is sz.Kind.ESTIMATE
    assert result.details["is_attractive"]
    assert result.lower == pytest.approx(result.log_z, abs=1e-9)  # converged: the same number by another way
    assert result.lower < result.log_z
    assert result.lower <= sz.log_z(model, "exact").upper


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_bounds_have_the_row_where_it_applies():
    model = sz.generators.torus(rows=6, columns=6, strength=0.6, field=0.05)
    found = sz.bounds(model, budget=2.0, exclude=["exact"])
    rows = {row.method: row for row in found.rows}
    assert rows["bethe"].lower <= sz.log_z(model, "exact").log_z
    assert rows["bethe"].upper is None
    assert "attractive" in rows["bethe"].status
    frustrated = sz.bounds(sz.generators.grid(4, 1.0, 0), budget=1.0)
    assert "bethe" not in [row.method for row in frustrated.rows]
    assert "bethe" not in [row.method for row in sz.bounds(model, budget=1.0, exclude=["bethe"]).rows]

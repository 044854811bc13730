"""The convex mean field: never below the truth, at any point, and equal to an independent optimization."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.kernels.convex_mean_field import evaluate, minimize
from spectralz.methods.convex_mean_field import ConvexMeanField, _between, _weighted_sdp
from spectralz.model.coupling.entries import coupling_of
from spectralz.parts.sdp.diagonal import lowered_until_proven
from tests.helpers import heard
from tests.reference import convex_mean_field as reference
from tests.reference import states
from tests.reference.semidefinite import is_semidefinite
from tests.strategies import models


def random_model(seed, n=6, scale=1.0, field=1.0, positive=False):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.0 if positive else -scale, scale, (n, n)), 1)
    return sz.Ising(rng.uniform(-field, field, n), A + A.T + np.diag(rng.uniform(-1, 1, n)), 0.75)


@given(model=models(), rounds=st.integers(0, 3), max_iter=st.sampled_from([0, 1, 100]))
@settings(max_examples=150)
def test_the_bound_holds_however_early_it_stops(model, rounds, max_iter):
    truth, _, _ = states.solve(model)
    result = sz.log_z(model, ConvexMeanField(rounds=rounds, max_iter=max_iter))
    assert result.upper >= truth
    if result.kind is not sz.Kind.EXACT:
        assert result.log_z == result.upper
    json.dumps(result.to_dict(), allow_nan=False)


@given(model=models(max_spins=7), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_the_dual_formula_bounds_log_z_at_any_point(model, seed):
    rng = np.random.default_rng(seed)
    C = states.dense(model)
    np.fill_diagonal(C, 0.0)
    y = -sz.diagonal_sdp(C).diagonal * rng.uniform(1.0, 2.0)
    m = rng.uniform(-1.0, 1.0, model.n)
    value, rounding = evaluate(C, y, model.field, m)
    assert value + rounding + model.constant >= states.solve(model)[0] - 1e-13 * abs(value)
    sparse = evaluate(sp.csr_array(C), y, model.field, m)
    assert abs(sparse.value - value) <= rounding + sparse.rounding


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("scale", "field"), [(0.1, 1.0), (0.5, 0.3), (1.0, 1.0), (2.0, 3.0)])
def test_it_is_the_maximum_of_the_concave_problem(seed, scale, field):
    model = random_model(seed, scale=scale, field=field)
    A = states.dense(model)
    result = sz.log_z(model, ConvexMeanField(rounds=0, tol=1e-10))
    C = A - np.diag(np.diag(A))
    wanted, m = reference.bound(model.field, A, model.offset, -reference.least_diagonal(C) - np.diag(A))
    assert result.upper == pytest.approx(wanted, abs=1e-6)
    assert sz.marginals(model, ConvexMeanField(rounds=0, tol=1e-10)).mean == pytest.approx(m, abs=1e-4)
    # and for the very D that is reported, to the digits of the optimizer
    same, _ = reference.bound(model.field, A, model.offset, result.details["diagonal"])
    assert result.upper == pytest.approx(same, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "scale", "field"), [(0, 0.2, 2.0), (1, 1.0, 2.0), (3, 1.0, 2.0)])
def test_its_rounds_find_the_best_diagonal(seed, scale, field):
    model = random_model(seed, n=5, scale=scale, field=field)
    result = sz.log_z(model, ConvexMeanField(rounds=15, tol=1e-10))
    least = reference.least_bound(model.field, states.dense(model), model.offset)
    assert result.upper == pytest.approx(least, abs=2e-4)  # the reference's own steps converge as 1 / k
    first = result.details["bounds"][0]
    assert first - result.upper > 1e-3
    # the default has most of that
    assert sz.log_z(model, "convex_mf").upper - least <= 0.1 * (first - least) + 2e-4


@pytest.mark.slow
@given(model=models(max_spins=8))
@settings(max_examples=60)
def test_the_best_diagonal_is_no_worse_than_the_sdp_alone(model):
    tight = sz.log_z(model, ConvexMeanField(rounds=10, tol=1e-9)).upper
    plain = sz.log_z(model, "sdp", tol=1e-9).upper
    assert tight <= plain + 1e-5 * max(1.0, abs(plain))


def test_without_a_field_it_is_the_bound_of_the_sdp():
    model = sz.Ising(None, random_model(1).coupling, 0.5)
    found = sz.diagonal_sdp(model.coupling, tol=1e-6)
    wanted = model.n * math.log(2.0) - found.diagonal.sum() + model.offset
    for rounds in (0, 3):
        assert sz.log_z(model, "convex_mf", rounds=rounds).upper == pytest.approx(wanted, rel=1e-12)


def test_two_spins_in_closed_form():
    # y = |a| on both: K = [[a, -a], [-a, a]], and with equal fields h the means are equal, K m = 0
    a, h = 0.7, 0.4
    result = sz.log_z(sz.Ising([h, h], [[0.0, a], [a, 0.0]]), "convex_mf", rounds=0)
    assert result.upper == pytest.approx(2.0 * math.log(2.0 * math.cosh(h)) + 2.0 * a, rel=1e-12)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_without_couplings_it_is_exact(n):
    model = sz.Ising(np.linspace(-300.0, 2.0, n), np.diag(np.arange(n) - 1.0), 0.5)
    result = sz.log_z(model, "convex_mf")
    assert result.kind is sz.Kind.EXACT
    assert result.lower <= states.solve(model)[0] <= result.upper
    assert result.upper - result.lower < 1e-11
    assert sz.marginals(model, "convex_mf").mean == pytest.approx(np.tanh(model.field), rel=1e-12)


def test_components_add():
    one, two = random_model(3, n=4), random_model(4, n=5, scale=5.0)
    both = sz.Ising(
        np.concatenate([one.field, two.field]),
        sp.block_diag([sp.csr_array(model.coupling) for model in (one, two)], format="csr"),
        one.offset + two.offset,
    )
    options = {"rounds": 0, "tol": 1e-10}
    parts = sum(sz.log_z(model, "convex_mf", **options).upper for model in (one, two))
    assert sz.log_z(both, "convex_mf", **options).upper == pytest.approx(parts, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e3, 1e6, 1e150])
@pytest.mark.parametrize("field", [0.0, 1.0, 1e9])
def test_huge_and_tiny_scales(scale, field):
    for make in (sz.generators.complete(7, 1.0, 0), sz.generators.grid(3, 1.0, 0)):
        model = sz.Ising(field * make.field, make.coupling * scale)
        result = sz.log_z(model, "convex_mf")
        truth, _, _ = states.solve(model)
        assert result.upper >= truth
        assert result.status.converged
        strongest = sz.log_z(model, "sdp").upper
        assert result.upper <= strongest * (1.0 + 1e-5)


@pytest.mark.slow
def test_every_diagonal_is_feasible_in_exact_arithmetic():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 6))
        C = np.triu(rng.exponential(size=(n, n)), 1) * 10.0 ** rng.integers(-3, 3)
        C = C + C.T  # all attract: the solution is on the boundary, where rounding decides
        weights = rng.uniform(0.01, 1.0, n)
        y = _weighted_sdp(coupling_of(C), weights, 1e-6)
        assert is_semidefinite(C, y)
        mixed = _between(y, -sz.diagonal_sdp(C).diagonal, rng.uniform())
        assert is_semidefinite(C, mixed)
        assert weights @ y <= weights @ -sz.diagonal_sdp(C).diagonal * (1.0 + 1e-5)
        assert weights @ y == pytest.approx(weights @ reference.least_diagonal(C, weights), rel=1e-5)


@pytest.mark.parametrize("excess", [1e-13, 1e-9, 1e-3])
def test_what_the_weighted_sdp_says_is_proven_again(monkeypatch, excess):
    import spectralz.parts.sdp.diagonal

    solve = spectralz.parts.sdp.diagonal.solve_diagonal

    def too_high(*arguments):
        found = solve(*arguments)
        return replace(found, diagonal=(1.0 - excess) * found.diagonal)

    monkeypatch.setattr(spectralz.parts.sdp.diagonal, "solve_diagonal", too_high)
    C = np.array([[0.0, 0.3], [0.3, 0.0]])
    y = _weighted_sdp(coupling_of(C), np.array([0.2, 0.9]), 1e-6)
    assert y is None if excess == 1e-3 else is_semidefinite(C, y)


def test_what_lies_between_two_diagonals_is_rounded_up():
    y = np.array([1.0, 1.0 / 3.0, 0.0])
    for share in np.random.default_rng(0).uniform(size=200):
        assert np.all(_between(y, y, share) >= y)
        assert _between(y, y, share)[2] == 0.0


@pytest.mark.slow
def test_the_method_reports_a_feasible_diagonal():
    for seed in range(40):
        model = random_model(seed, n=5, field=3.0, positive=seed % 2 == 0)
        C = states.dense(model)
        own = np.diag(C).copy()
        np.fill_diagonal(C, 0.0)
        D = sz.log_z(sz.Ising(model.field, C), "convex_mf").details["diagonal"]
        assert is_semidefinite(C, -D)
        assert sz.log_z(model, "convex_mf").details["diagonal"] == pytest.approx(D - own, abs=1e-12)


def test_a_diagonal_is_lowered_until_it_is_proven():
    C = np.array([[0.0, 0.3], [0.3, 0.0]])
    D = lowered_until_proven(coupling_of(C), np.array([-0.1, -0.9]))
    assert is_semidefinite(C, -D)
    assert np.allclose(D, [-0.1, -0.9], rtol=1e-12, atol=0.0)
    assert lowered_until_proven(coupling_of(C), np.array([-0.1, -0.8])) is None


def test_the_gap_says_how_far_the_point_is_from_the_least():
    model = random_model(5, n=8)
    C = states.dense(model)
    np.fill_diagonal(C, 0.0)
    y = -sz.diagonal_sdp(C).diagonal
    least = evaluate(C, y, model.field, minimize(C, y, model.field, np.zeros(8), 1e-14, 100).m).value
    for steps in range(4):
        found = minimize(C, y, model.field, np.full(8, 0.1), 1e-14, steps)
        assert -1e-12 <= evaluate(C, y, model.field, found.m).value - least <= found.gap + 1e-12
    assert found.gap < 1e-6


@pytest.mark.slow
def test_sparse_and_dense_agree_and_progress_is_reported():
    model = sz.generators.grid(12, 0.7, seed=0)
    with heard() as told:
        result = sz.log_z(model, "convex_mf")
    dense = sz.log_z(sz.Ising(model.field, model.coupling.toarray()), "convex_mf")
    assert result.upper == pytest.approx(dense.upper, rel=1e-6)
    assert any(task == "choosing the diagonal" for task, _ in told)
    assert all(0.0 <= fraction <= 1.0 for _, fraction in told)

"""Structured mean field: against its definition, as a bound, as an ascent, and its blocks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import spectralz as sz
from spectralz.kernels.block_trees import block_separators
from spectralz.kernels.coupling import frozen
from spectralz.parts.mean_field import partition as partitions
from spectralz.parts.mean_field.partition import divide
from spectralz.parts.mean_field.structured import StructuredMeanField
from tests.strategies import models
from tests.unit.test_bounds import log_z, random_model


def literal(model, label, field):
    """E_q[log-weight] + H(q) and the means of q, state by state; q has these fields and the couplings inside blocks."""
    X = np.array(list(itertools.product([-1, 1], repeat=model.n)), dtype=np.longdouble).reshape(-1, model.n)
    (first, second), J = model.edges()[0].T, model.edges()[1].astype(np.longdouble)
    pairs = X[:, first] * X[:, second]
    log_weight = model.constant + X @ model.field + pairs @ J
    log_q = X @ field + pairs @ np.where(label[first] == label[second], J, 0.0)
    log_q -= log_q.max()
    log_q -= np.log(np.exp(log_q).sum())
    q = np.exp(log_q)
    return float(q @ (log_weight - log_q)), np.asarray(q @ X, float), np.asarray(q @ pairs, float)


def small_models():
    for seed, (n, density, scale) in enumerate(itertools.product([1, 4, 8, 10], [0.3, 0.6, 1.0], [0.3, 1.5])):
        rng = np.random.default_rng(seed)
        A = np.triu(scale * rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density), 1)
        A = A + A.T + np.diag(rng.uniform(-1, 1, n))
        yield sz.Ising(rng.uniform(-1, 1, n), sp.csr_array(A) if seed % 2 else A, offset=0.25)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_bound_is_that_of_its_distribution(width):
    divided = 0
    for model in small_models():
        blocks = StructuredMeanField.of(model, divide(model, width))
        divided += blocks.cuts > 0
        for sweeps in (1, 3, 40):  # wherever the ascent has come
            blocks.ascend(np.full(model.n, 0.3), sweeps, 1e-12)
            value, lower = blocks.bound()
            expected, mean, pair_mean = literal(model, blocks.partition.label, blocks.field)
            assert value == pytest.approx(expected, abs=1e-12)
            assert value - 1e-11 < lower < value
            assert np.allclose(blocks.mean, mean, atol=1e-13, rtol=0)
            assert np.allclose(blocks.all_pair_means(), pair_mean, atol=1e-13, rtol=0)
    assert divided >= 8


def test_what_wrong_means_do_to_the_bound():
    rng = np.random.default_rng(0)
    model = sz.generators.grid(6, 1.0, seed=1)
    blocks = StructuredMeanField.of(model, divide(model, 2))
    for sweeps in (1, 200):  # far from the maximum, and there
        blocks.ascend(np.zeros(model.n), sweeps, 1e-14)
        right, mean = blocks.bound()[0], blocks.mean.copy()
        off = blocks._cut @ mean - (blocks.field - model.field)
        for size in (1e-1, 1e-3):
            delta = size * rng.random(model.n)
            for direction in (np.sign(off), rng.choice([-1.0, 1.0], model.n)):
                blocks.mean = mean + direction * delta
                loss = blocks.loss(delta)
                change = abs(blocks.bound()[0] - right)
                assert change <= loss + 1e-12
            # No more than a few times what is possible.
            assert loss < 3.0 * size * (np.abs(off).sum() + size * blocks.cut_weight)


def test_rounding_is_taken_off_at_any_scale():
    # Where means are hardly rounded, what is left is some hundred roundings of the weights; where they are, much more.
    for scale, most in ((1.0, 1e-11), (1e8, 1e-3), (1e12, 1e1)):
        model = sz.generators.grid(5, 1.0, seed=1).scaled(scale)
        result = sz.log_z(model, "mf", block_width=2, start="annealed")
        weights = float(np.abs(model.edges()[1]).sum() + np.abs(model.field).sum())
        assert 20.0 * 1.1e-16 * weights < result.log_z - result.lower < most
        assert result.lower <= sz.log_z(model, "exact").upper


def test_stationary():
    for model in small_models():
        result = sz.log_z(model, "mf", block_width=2)
        blocks = StructuredMeanField.of(model, divide(model, 2))
        blocks.ascend(np.zeros(model.n), 1000, 1e-12)
        assert result.log_z == pytest.approx(blocks.bound()[0], abs=1e-9)
        for i in range(min(model.n, 3)):
            for step in (-1e-3, 1e-3):
                moved = blocks.field.copy()
                moved[i] += step
                assert literal(model, blocks.partition.label, moved)[0] <= result.log_z + 1e-11


@given(model=models())
@settings(max_examples=150)
def test_below_the_truth(model):
    truth = sz.log_z(model, "exact")
    result = sz.log_z(model, "mf", block_width=1)
    assert result.lower <= truth.upper
    if result.kind is sz.Kind.EXACT:
        assert result.upper >= truth.lower


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_below_the_truth_at_any_scale(seed):
    rng = np.random.default_rng(seed)
    for k in range(300):
        model = random_model(rng)
        truth, rounding = log_z(model)
        start = ("zero", "random", "annealed")[k % 3]
        result = sz.log_z(model, "mf", block_width=1 + k % 2, start=start, max_iter=1 + k % 7)
        assert math.isfinite(result.lower)
        assert result.lower <= truth + rounding
        assert result.upper is None or result.upper >= truth - rounding


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_never_decreases(strength):
    model = sz.generators.grid(8, strength, seed=2)
    blocks = StructuredMeanField.of(model, divide(model, 2))
    mean, bounds = np.random.default_rng(0).uniform(-1, 1, model.n), []
    for _ in range(12):
        blocks.ascend(mean, 1, 0.0)
        mean = blocks.mean
        bounds.append(blocks.bound()[0])
    assert np.all(np.diff(bounds) >= -1e-12 * np.abs(bounds[-1]))


@pytest.mark.parametrize("model", [sz.generators.grid(5, 1.0, 0), sz.generators.erdos_renyi(14, 0.3, 1.0, 1)])
def test_one_block_is_exact(model):
    exact, means = sz.log_z(model, "exact"), sz.marginals(model, "exact")
    found = sz.marginals(model, "mf", block_width=exact.details["width"])
    assert found.estimate.kind is found.kind is sz.Kind.EXACT
    assert found.estimate.lower <= exact.upper
    assert found.estimate.upper >= exact.lower
    assert found.estimate.log_z == pytest.approx(exact.log_z, rel=1e-13)
    assert np.allclose(found.mean, means.mean, atol=1e-12)
    assert np.allclose(found.pair_mean, means.pair_mean, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "width"), [(0.2, 5), (1.0, 5), (4.0, 5)])
def test_strips_are_much_closer_than_single_spins(strength, width):
    model = sz.generators.grid(20, strength, seed=0)
    truth = sz.log_z(model, "exact").log_z
    blocks = sz.log_z(model, "mf", block_width=width, start="annealed", tol=1e-4)
    assert 0.0 < 8.0 * (truth - blocks.lower) < truth - sz.log_z(model, "mf").lower
    assert blocks.details["width"] <= width
    assert blocks.details["blocks"] > 1


def test_annealed_starts_leave_zero_where_there_are_no_fields():
    model = sz.generators.spin_glass_3d(4, 1.5, seed=0)
    zero, annealed = sz.log_z(model, "mf"), sz.log_z(model, "mf", start="annealed", restarts=3)
    assert annealed.lower > zero.lower + 10.0
    assert len(set(annealed.details["bounds"])) > 1
    assert annealed.log_z == sz.log_z(model, "mf", start="annealed", restarts=3).log_z
    blocks = sz.log_z(model, "mf", start="annealed", block_width=6)
    assert annealed.lower < blocks.lower <= sz.log_z(model, "exact").upper


def apart(*models):
    return sz.Ising(np.concatenate([m.field for m in models]), sp.block_diag([m.coupling for m in models]).tocsr())


FAMILIES = {
    "grid": sz.generators.grid(13, 1.0, 0),
    "torus": sz.generators.grid(9, 1.0, 0, periodic=True),
    "kings": sz.generators.kings(9, 9, 1.0, 0),
    "cubic": sz.generators.spin_glass_3d(5, 1.0, 0),
    "regular": sz.generators.random_regular(120, 3, 1.0, 0),
    "complete": sz.generators.complete(23, 1.0, 0),
    "factors": sz.generators.rank_one(12, 0.1, 0),
    "nothing": sz.Ising(np.ones(4), np.zeros((4, 4))),
    "no spin": sz.Ising([], np.zeros((0, 0))),
    "apart": apart(*(sz.generators.grid(5, 1.0, seed) for seed in (0, 1)), sz.Ising(np.ones(9), np.zeros((9, 9)))),
}


@pytest.mark.parametrize("width", [1, 3, 6])
@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_hold_all_spins_and_are_no_wider_than_allowed(family, width, monkeypatch):
    monkeypatch.setattr(partitions, "MOST_SPINS_LOOKED_AT_ALWAYS", 100)  # both ways of growing
    model = FAMILIES[family]
    found = divide(model, width)
    assert sorted(found.order.tolist()) == list(range(model.n))
    label, place = found.label, np.argsort(found.order)
    edges, J = model.edges()
    cut = label[edges[:, 0]] != label[edges[:, 1]]
    assert found.cut == pytest.approx(float(np.log(np.cosh(J[cut])).sum()), rel=1e-9, abs=1e-12)
    assert not np.any(found.color[edges[cut, 0]] == found.color[edges[cut, 1]])
    # A literal elimination: the neighbors inside the block that come later, those of earlier steps joined.
    neighbors = [set() for _ in range(model.n)]
    for i, j in edges[~cut].tolist():
        neighbors[i].add(j)
        neighbors[j].add(i)
    for t, v in enumerate(found.order.tolist()):
        separator = sorted((u for u in neighbors[v] if place[u] > t), key=lambda u: place[u])
        assert found.width[t] == len(separator) <= width
        assert found.separator[t, : len(separator)].tolist() == [place[u] for u in separator]
        for u in separator:
            neighbors[u] |= set(separator) - {u}
    if family == "complete":
        assert found.blocks == -(-model.n // (width + 1))


def test_too_wide_an_order_is_noticed():
    model = sz.generators.complete(5, 1.0, 0)
    rows = sp.csr_array(np.ones((5, 5)) - np.eye(5))
    graph = (frozen(rows.indptr.astype(np.int64)), frozen(rows.indices.astype(np.int32)))
    given = (*graph, np.arange(5), np.zeros(5, np.int64))
    for width, steps in ((4, 5), (3, 0)):
        assert block_separators(*given, width)[0] == steps
    assert divide(model, 4).blocks == 1


def test_strips_whose_tables_do_not_fit_are_cut_across(monkeypatch):
    monkeypatch.setattr(partitions, "MOST_ENTRIES", 1 << 9)
    monkeypatch.setattr(partitions, "_grown", lambda graph, width: iter([everything_apart(graph, width)]))
    model = sz.generators.grid(12, 1.0, 0)
    found = divide(model, 4)
    sizes = np.bincount(found.label[found.order], weights=2.0**found.width)
    assert sizes.max() <= 1 << 10
    blocks = StructuredMeanField.of(model, found)
    blocks.ascend(np.zeros(model.n), 5, 1e-9)
    assert blocks.bound()[1] <= sz.log_z(model, "exact").log_z


def everything_apart(graph, width):
    return graph.partition(np.arange(graph.n), np.arange(graph.n), width)


def test_what_is_said():
    model = sz.generators.grid(8, 0.5, seed=0)
    result = sz.log_z(model, "mf", block_width=3, max_iter=2)
    assert f"stopped after 2 sweeps of {result.details['blocks']} blocks of width 3 at most" in result.status
    assert result.kind is sz.Kind.LOWER_BOUND
    assert result.details["cut_weight"] > 0.0
    with pytest.raises(sz.errors.OptionError, match="block_width is 30; it must be 24 or less"):
        sz.MeanField(block_width=30)

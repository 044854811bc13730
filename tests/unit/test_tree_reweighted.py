"""The tree-reweighted bound: never below the truth, and its least value that of an independent optimization."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import spectralz as sz
from spectralz.methods import tree_reweighted
from spectralz.methods.tree_reweighted import TreeReweighted
from spectralz.parts.propagation.network import Network
from tests.helpers import forest, heard
from tests.reference import states
from tests.reference.bethe import spanning_trees, tree_reweighted_objective
from tests.strategies import models

TRIANGLE = [(0, 1), (1, 2), (0, 2)]
SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]
KITE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]


@given(
    model=models(max_spins=7),
    max_iter=st.sampled_from([0, 1, 3, 1000]),
    optimize_edges=st.sampled_from([0, 2]),
    damping=st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=200)
def test_the_bound_holds_whatever_the_messages(model, max_iter, optimize_edges, damping):
    truth, _, _ = states.solve(model)
    result = sz.log_z(model, TreeReweighted(max_iter=max_iter, optimize_edges=optimize_edges, damping=damping))
    slack = 1e-11 * max(1.0, abs(truth))
    assert result.upper >= truth - slack
    if result.kind is not sz.Kind.EXACT:
        assert result.kind is sz.Kind.UPPER_BOUND
        assert result.log_z == result.upper
    json.dumps(result.to_dict(), allow_nan=False)


@given(model=models(max_spins=7), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_the_formula_bounds_log_z_at_any_messages(model, seed):
    network = Network.of(model)
    if network.is_forest:
        return
    rng = np.random.default_rng(seed)
    trees = tree_reweighted._spanning_trees(network)
    rho = trees.rho(network.graph)
    u = rng.normal(size=len(rho)) * 10.0 ** rng.uniform(-3, 2)
    bound = tree_reweighted._bound(network, trees, rho, network.coupling / rho, u) + model.constant
    assert bound >= states.solve(model)[0] - 1e-11 * abs(bound)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e6, 1e150])
@pytest.mark.parametrize("max_iter", [0, 30])
def test_the_bound_holds_at_every_scale(scale, max_iter):
    for seed in range(4):
        base = sz.generators.complete(8, 1.0, seed)
        for field in (scale * base.field, base.field):
            model = sz.Ising(field, scale * base.coupling)
            truth = sz.log_z(model, "exact")
            found = sz.marginals(model, TreeReweighted(max_iter=max_iter, optimize_edges=1))
            assert found.estimate.upper >= truth.lower
            assert found.kind is sz.Kind.ESTIMATE
            assert np.all(np.abs(found.pair_mean) <= 1)


@pytest.mark.parametrize("path", [True, False])
def test_forests_are_exact(path):
    model = forest(300, seed=2, path=path)
    truth = sz.marginals(model, "exact")
    found = sz.marginals(model, TreeReweighted())
    assert found.kind is found.estimate.kind is sz.Kind.EXACT
    assert found.estimate.log_z == pytest.approx(truth.estimate.log_z, rel=1e-10)
    assert np.allclose(found.mean, truth.mean, atol=1e-10)
    assert np.allclose(found.pair_mean, truth.pair_mean, atol=1e-10)


@pytest.mark.parametrize("path", [True, False])
def test_the_formula_itself_is_exact_on_trees(path):
    model = forest(60, seed=2, path=path)
    network = Network.of(model)
    trees = tree_reweighted._spanning_trees(network)
    found = TreeReweighted(tol=1e-14)._iterate(network, trees, np.zeros(len(network.coupling)))
    assert np.allclose(trees.rho(network.graph), 1.0, atol=1e-12)
    truth = sz.log_z(model, "exact").log_z - model.constant
    assert found.bound == pytest.approx(truth, rel=1e-10)
    assert found.bound >= truth


def best_of_local_polytope(model, rho):
    """Maximize the objective of Wainwright, Jaakkola and Willsky over means m and pair means c, by SLSQP."""
    pairs, n = list(rho), model.n

    def split(z):
        return z[:n], dict(zip(pairs, z[n:], strict=True))

    def tables(z):
        m, c = split(z)
        return np.array([1 + x * m[i] + y * m[j] + x * y * c[i, j] for i, j in pairs for x in (-1, 1) for y in (-1, 1)])

    start = np.zeros(n + len(pairs))
    constraint = {"type": "ineq", "fun": lambda z: tables(z) - 1e-9}
    found = minimize(
        lambda z: -tree_reweighted_objective(model, rho, *split(z)),
        start,
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return -found.fun, *split(found.x)


@pytest.mark.parametrize("edges", [TRIANGLE, SQUARE, KITE])
@pytest.mark.parametrize("strength", [0.5, 1.2])
def test_equals_an_independent_optimization_over_the_local_polytope(edges, strength):
    rng = np.random.default_rng(5)
    n = 1 + max(map(max, edges))
    J = strength * rng.uniform(0.5, 1.0, len(edges)) * rng.choice([-1, 1], len(edges))
    J[0] *= -np.sign(np.prod(J[:4] if edges is SQUARE else J[:3]))  # frustrated
    model = sz.Ising.from_edges(n, edges, J, rng.uniform(-0.5, 0.5, n), offset=0.5).shift_diagonal(0.1)
    found = sz.marginals(model, TreeReweighted(max_iter=20000, tol=1e-12))
    assert found.status.converged
    rho = dict(zip(map(tuple, found.edges.tolist()), found.estimate.details["edge_probability"], strict=True))
    value, mean, pair_mean = best_of_local_polytope(model, rho)
    assert found.estimate.log_z == pytest.approx(value, abs=1e-6)
    assert np.allclose(found.mean, mean, atol=1e-3)
    assert np.allclose(found.pair_mean, list(pair_mean.values()), atol=1e-3)


@pytest.mark.parametrize("edges", [TRIANGLE, SQUARE, KITE])
def test_edge_probabilities_are_those_of_all_spanning_trees(edges):
    n = 1 + max(map(max, edges))
    model = sz.Ising.from_edges(n, edges, 1.0)
    network = Network.of(model)
    pairs = model.edges()[0].tolist()
    trees = list(spanning_trees(n, pairs))
    wanted = [sum(e in tree for tree in trees) / len(trees) for e in range(len(pairs))]
    found = tree_reweighted._spanning_trees(network)
    first, second = network.graph.slots.T
    assert np.allclose(found.rho(network.graph)[first], wanted, atol=1e-13)
    # Oriented away from each root in turn: how often is the first spin of an edge the parent of the second.
    parent = np.zeros((len(pairs), 2))
    for tree in trees:
        for root in range(n):
            reached = [root]
            while len(reached) < n:
                for e in tree:
                    for side in (0, 1):
                        if pairs[e][side] in reached and pairs[e][1 - side] not in reached:
                            parent[e, side] += 1 / (n * len(trees))
                            reached.append(pairs[e][1 - side])
    assert np.allclose(found.parent[first], parent[:, 0], atol=1e-13)
    assert np.allclose(found.parent[second], parent[:, 1], atol=1e-13)
    assert found.error < 1e-11


def test_edge_probabilities_add_up_to_the_edges_of_a_forest():
    rng = np.random.default_rng(1)
    A = np.zeros((14, 14))
    A[:6, :6] = 1.0
    A[6:12, 6:12] = rng.random((6, 6)) < 0.8  # and two spins alone
    A = np.triu(A, 1) * 0.3
    model = sz.Ising(np.zeros(14), A + A.T)
    result = sz.log_z(model, TreeReweighted(optimize_edges=3))
    rho = result.details["edge_probability"]
    assert rho.sum() == pytest.approx(14 - len(model.components()), rel=1e-12)
    assert np.all((rho > 0) & (rho <= 1 + 1e-12))
    assert result.upper >= sz.log_z(model, "exact").log_z


def test_the_error_of_the_probabilities_is_bounded(monkeypatch):
    network = Network.of(sz.generators.grid(side=6, strength=1.0, seed=0))
    right = tree_reweighted._spanning_trees(network)
    inverse = np.linalg.inv
    rng = np.random.default_rng(0)
    monkeypatch.setattr(np.linalg, "inv", lambda M: inverse(M) + 1e-5 * rng.normal(size=M.shape))
    wrong = tree_reweighted._spanning_trees(network)
    distance = np.abs(wrong.parent - right.parent).sum()
    assert 1e-4 < distance <= wrong.error


def test_large_components_share_their_edges_evenly(monkeypatch):
    model = sz.generators.grid(side=5, strength=0.5, seed=1)
    uniform = sz.log_z(model, TreeReweighted())
    monkeypatch.setattr(tree_reweighted, "MOST_DENSE_SPINS", 10)
    even = sz.log_z(model, TreeReweighted())
    rho = even.details["edge_probability"]
    assert rho.sum() == pytest.approx(24, rel=1e-12)
    assert rho.min() > 0.4
    assert even.upper >= sz.log_z(model, "exact").upper
    assert even.upper == pytest.approx(uniform.upper, abs=1.0)


def test_optimized_edges_are_never_worse_and_follow_the_mutual_information():
    model = sz.generators.grid(side=4, strength=0.7, seed=2)
    bounds = [sz.log_z(model, TreeReweighted(optimize_edges=k)).upper for k in (0, 1, 4, 12)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0] - 0.1
    assert bounds[-1] >= sz.log_z(model, "exact").log_z


def test_mutual_information_is_that_of_the_table():
    rng = np.random.default_rng(0)
    J, a, b = rng.normal(size=(3, 5))
    x = np.array([-1, 1])
    for k, got in enumerate(tree_reweighted._mutual_information(J, a, b)):
        p = np.exp(J[k] * np.outer(x, x) + a[k] * x[:, None] + b[k] * x)
        p /= p.sum()
        wanted = np.sum(p * np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0))))
        assert got == pytest.approx(wanted, rel=1e-10)


def test_the_least_spanning_forest_is_least():
    model = sz.Ising.from_edges(5, KITE, 1.0)
    network = Network.of(model)
    pairs = model.edges()[0].tolist()
    rng = np.random.default_rng(0)
    for _ in range(10):
        cost = rng.random(len(pairs)) + 0.01
        chosen = np.flatnonzero(tree_reweighted._least_spanning_forest(network, cost))
        best = min(spanning_trees(5, pairs), key=lambda tree: cost[list(tree)].sum())
        assert sorted(best) == chosen.tolist()


def test_the_messages_minimize_the_bound():
    network = Network.of(sz.generators.complete(6, 0.4, seed=1))
    trees = tree_reweighted._spanning_trees(network)
    rho = trees.rho(network.graph)
    found = TreeReweighted(tol=1e-13, max_iter=5000)._iterate(network, trees, np.zeros(len(rho)))
    rng = np.random.default_rng(0)
    for _ in range(20):
        u = found.u + 1e-2 * rng.normal(size=len(rho))
        assert tree_reweighted._bound(network, trees, rho, network.coupling / rho, u) > found.bound


def test_it_converges_on_weak_couplings_and_says_so():
    model = sz.generators.grid(side=5, strength=0.3, seed=0)
    result = sz.log_z(model, TreeReweighted())
    assert result.status == f"converged after {result.iterations} iterations"
    assert result.details["residual"] <= 1e-8
    short = sz.log_z(model, TreeReweighted(max_iter=2))
    assert short.status.startswith("stopped after 2 iterations with residual")
    assert not short.status.converged
    assert short.upper > result.upper
    none = sz.log_z(model, TreeReweighted(max_iter=0))
    assert none.status.startswith("stopped after 0 iterations;")
    assert none.details["residual"] is None


def test_few_spins_and_components_add_up():
    assert sz.log_z(sz.Ising([], [], offset=0.5), TreeReweighted()).log_z == 0.5
    one, two = sz.generators.complete(5, 0.3, seed=0), sz.generators.complete(4, 0.3, seed=1)
    A = np.zeros((10, 10))
    A[:5, :5], A[5:9, 5:9] = one.coupling, two.coupling
    field = np.concatenate([one.field, two.field, [0.4]])
    method = TreeReweighted(tol=1e-13, max_iter=5000)
    alone = sz.log_z(one, method).log_z + sz.log_z(two, method).log_z + np.log(2 * np.cosh(0.4))
    assert sz.log_z(sz.Ising(field, A), method).log_z == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_iter": -1}, "max_iter is -1; it must be a whole number, 0 or more"),
        ({"damping": 1.0}, "damping is 1.0; it must be a number from 0 to below 1"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"optimize_edges": 0.5}, "optimize_edges is 0.5"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(sz.errors.OptionError, match=words):
        TreeReweighted(**options)


def test_progress_is_reported():
    with heard() as told:
        sz.log_z(sz.generators.grid(side=5, strength=0.3, seed=0), TreeReweighted(max_iter=3))
    assert told[-1] == ("passing messages", 1.0)

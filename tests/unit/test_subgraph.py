"""Subgraphs of small treewidth: how they grow, their log Z and law, and annealing that begins from them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.sparse.csgraph import minimum_spanning_tree

import spectralz as sz
from spectralz.kernels.single_spin import log_2cosh
from spectralz.sampling.path import from_subgraph, path_to, strongest_subgraph, width_of
from spectralz.sampling.population import carry
from spectralz.sampling.round_trips import there_and_back
from spectralz.sampling.sweeps import STEP, spaced_by
from spectralz.trust.states import judge_round_trip
from tests.reference.states import all_states, places_of

# Chances of a false alarm; the seeds are fixed, so a test that passes goes on passing.
LEVEL = 1e-3


def with_edges(field, edges):
    """Return a model with couplings J_ij x_i x_j as given."""
    (i, j), J = np.array(list(edges)).T, np.array(list(edges.values())) / 2.0
    matrix = sp.coo_array((np.tile(J, 2), (np.append(i, j), np.append(j, i))), shape=(len(field), len(field)))
    return sz.Ising(field, sp.csr_array(matrix))


MODELS = {
    "grid": sz.generators.grid(6, 1.0, 1),
    "torus": sz.generators.torus(5, 6, 0.4),
    "3-regular": sz.generators.random_regular(30, 3, 1.0, 2),
    "lattice of three dimensions": sz.generators.spin_glass_3d(3, 1.0, 3),
    "king's graph": sz.generators.kings(5, 5, 0.5, 4),
    "two components and lone spins": with_edges(
        [0.3, -0.2, 0.5, 0.1, -1.0, 2.0, 0.0], {(0, 3): 1.0, (3, 5): -0.7, (0, 5): 0.4, (1, 4): 2.0}
    ),
}


def csr_of(model):
    couplings = model.storage.for_kernels()
    return sp.csr_array((couplings.data, couplings.indices, couplings.indptr), shape=(model.n, model.n))


def subgraph_of(model, width):
    return strongest_subgraph(np.ascontiguousarray(model.field), model.storage.for_kernels(), width)


def kept_model(model, subgraph):
    """Return the model of a subgraph, whose other couplings are dropped."""
    csr = csr_of(model)
    csr = sp.csr_array((np.where(subgraph.kept, csr.data, 0.0), csr.indices.copy(), csr.indptr.copy()), csr.shape)
    assert abs(csr - csr.T).max() == 0.0
    return sz.Ising(model.field, sp.csr_array(csr / 2.0))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", MODELS)
def test_log_z_is_that_of_the_couplings_kept(name, width):
    model = MODELS[name]
    found = subgraph_of(model, width)
    exact = sz.log_z(kept_model(model, found), "exact")
    assert found.log_z == pytest.approx(exact.log_z, abs=1e-10)
    assert exact.details["width"] <= width
    bags, sizes, parent, _ = found._growth
    assert sorted(bags[np.arange(model.n), sizes]) == list(range(model.n))
    for step in range(model.n):
        members = set(bags[step, : sizes[step]])
        of_bag = set() if parent[step] < 0 else {*bags[parent[step], : sizes[parent[step]] + 1]}
        assert members <= of_bag
        assert parent[step] < step


@pytest.mark.parametrize("name", MODELS)
def test_of_width_one_it_is_a_spanning_forest_of_the_largest_strength(name):
    model = MODELS[name]
    csr = csr_of(model)
    strength = log_2cosh(csr.data) - math.log(2.0)
    indices, indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
    forest = minimum_spanning_tree(sp.csr_array((-strength, indices, indptr), shape=csr.shape))
    assert strength[subgraph_of(model, 1).kept].sum() / 2.0 == pytest.approx(-forest.sum())


def test_a_graph_that_is_narrow_enough_is_kept_whole():
    assert subgraph_of(sz.generators.grid(2, 1.0, 0), 2).kept.all()
    assert subgraph_of(sz.generators.square(30, 1, 1.0, 0), 1).kept.all()


def test_wider_subgraphs_of_a_lattice_hold_more():
    """Of equal couplings, those of the latest bag come first: by the first one, 53% would be kept at a width of 4."""
    model = sz.generators.torus(40, 40, 0.4)
    assert subgraph_of(model, 1).kept.mean() == pytest.approx(0.5, abs=0.001)
    assert subgraph_of(model, 4).kept.mean() > 0.72
    glass = sz.generators.grid(30, 1.0, 0)
    kept = [np.abs(csr_of(glass).data[subgraph_of(glass, width).kept]).sum() for width in (1, 2, 4, 8)]
    assert kept == sorted(kept)


def test_couplings_of_no_strength_and_huge_ones():
    edges = {(0, 1): 1e-200, (1, 2): 300.0, (0, 2): -300.0, (2, 3): 0.0}
    model = with_edges([0.0, 100.0, 200.0, 300.0], edges)
    found = subgraph_of(model, 1)
    assert found.log_z == pytest.approx(sz.log_z(kept_model(model, found), "exact").log_z, rel=1e-13)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("model", [sz.generators.grid(3, 0.8, 5), sz.generators.random_regular(8, 3, 0.7, 6)])
def test_states_follow_its_law(model, width):
    found = subgraph_of(model, width)
    rng = np.random.default_rng(1)
    counts = np.zeros(2**model.n)
    x = np.empty((model.n, 64), np.int8)
    words = rng.integers(2**32, size=(4, 64), dtype=np.uint32)
    for _ in range(800):
        found.draw(x, words)
        counts += np.bincount(places_of(x.T), minlength=len(counts))
    states = all_states(model.n)
    weights = kept_model(model, found).log_weight(states)
    expected = np.zeros(len(counts))
    expected[places_of(states)] = counts.sum() * np.exp(weights - np.logaddexp.reduce(weights))
    often = expected > 10.0
    observed = np.append(counts[often], counts[~often].sum())
    chance = stats.chisquare(observed, np.append(expected[often], expected[~often].sum())).pvalue
    assert chance > LEVEL


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", ["torus", "3-regular", "two components and lone spins"])
def test_annealing_from_it_agrees_with_exact(name, width):
    """A path that forgot to add, or added twice, what the subgraph has would be off by nats."""
    model = MODELS[name]
    truth = sz.log_z(model, "exact").log_z
    rng = np.random.default_rng(2)
    path = from_subgraph(path_to(model), width)
    assert path.engine.log_z_of_base == subgraph_of(model, width).log_z
    found = carry(path, np.linspace(0.0, 1.0, 41), 8, 320, rng)
    both = judge_round_trip(there_and_back(path, np.linspace(0.0, 1.0, 81), 320, rng), model.constant)
    values = found.log_z + model.constant
    assert values.std() < 0.1
    assert abs(values.mean() - truth) < 4.0 * values.std(ddof=1) / math.sqrt(8.0) + 1e-9
    assert abs(both.log_z - truth) < 4.0 * both.std_error + 1e-9


def test_a_subgraph_with_all_couplings_leaves_nothing_to_anneal():
    model = sz.generators.grid(5, 1.0, 0)
    path = replace(path_to(model), subgraph=subgraph_of(model, 8))
    rng = np.random.default_rng(0)
    end = carry(path, spaced_by(path, STEP, rng), 1, 64, rng)
    assert end.mean_log_z + model.constant == pytest.approx(sz.log_z(model, "exact").log_z, abs=1e-10)
    assert end.share == pytest.approx(1.0 / 64.0, rel=1e-12)


def test_width_follows_the_number_of_spins():
    assert [width_of(n) for n in (0, 1, 1000, 30_000, 100_000, 1_000_000)] == [8, 8, 8, 8, 6, 3]

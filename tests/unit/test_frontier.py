"""The order in which spins arrive at a compressed frontier, and what is predicted of its cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import OptionError
from spectralz.kernels.compressed.chain import Kept, Weights, advance, empty_chain, room_for
from spectralz.parts.compressed import frontier
from spectralz.parts.compressed.frontier import ORDER_NAMES, plan
from tests.reference import frontier as reference
from tests.strategies import models

LATTICES = {
    "grid": (sz.generators.grid(side=9, strength=1.0, seed=0), 9),
    "rectangle": (sz.generators.square(rows=5, columns=21, strength=1.0, seed=0), 5),
    "torus": (sz.generators.grid(side=8, strength=1.0, seed=0, periodic=True), 16),
    "triangular": (sz.generators.triangular(rows=8, columns=8, strength=1.0, seed=0), 9),
    "kings": (sz.generators.kings(rows=8, columns=8, strength=1.0, seed=0), 15),
    "slab": (sz.generators.cubic(3, 4, 10, strength=1.0, seed=0), 13),
    "chimera": (sz.generators.chimera(4, 4, strength=1.0, seed=0), 30),
    "chain": (sz.generators.chain(50, strength=1.0), 1),
    "ring": (sz.generators.chain(50, strength=1.0, periodic=True), 2),
    "3-regular": (sz.generators.random_regular(60, 3, 1.0, seed=1), 14),
}


def relabelled(model, seed=0):
    """Return the same model with its spins in another order."""
    places = np.random.default_rng(seed).permutation(model.n)
    pairs, J = model.edges()
    field = np.empty(model.n)
    field[places] = model.field
    return sz.Ising.from_edges(model.n, places[pairs], J, field)


def frontier_sizes(model, order):
    """Return how many spins have arrived and have neighbors to come, after each arrival and its sums."""
    neighbors = [set() for _ in range(model.n)]
    for i, j in model.edges()[0].tolist():
        neighbors[i].add(j)
        neighbors[j].add(i)
    arrived, sizes = set(), []
    for v in order:
        arrived.add(v)
        sizes.append(sum(bool(neighbors[u] - arrived) for u in arrived))
    return sizes


@pytest.mark.parametrize("name", LATTICES)
@pytest.mark.parametrize("is_relabelled", [False, True])
def test_the_frontier_of_a_lattice_is_about_its_side_however_spins_are_labelled(name, is_relabelled):
    model, width = LATTICES[name]
    found = plan(relabelled(model) if is_relabelled else model)
    assert sorted(found.order) == list(range(model.n))
    assert found.width <= width + 1  # that of the spin that arrives, before others are summed out


@given(models(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_steps_are_those_of_the_frontier(model, random):
    order = list(range(model.n))
    random.shuffle(order)
    for found in (plan(model, tuple(order)), plan(model), plan(model).reversed()):
        sizes = frontier_sizes(model, found.order.tolist())
        length = 0
        for t, step in enumerate(found.steps.step):
            near = found.steps.near[step["start"] : step["end"]]
            length += int(step["is_new"]) - int(step["is_gone"]) - int(near["is_gone"].sum())
            assert length == sizes[t]  # a site that is taken stays one
            assert step["low"] <= min([*near["place"], step["place"]])
            assert step["high"] >= max([*near["place"], step["place"]])
        assert len(found.steps.near) + (found.steps.step["taken"] >= 0).sum() == model.edge_count


def test_a_given_order_is_kept_and_its_reverse_is_it_backwards():
    model = sz.generators.grid(side=4, strength=1.0, seed=0)
    order = tuple(np.random.default_rng(1).permutation(16).tolist())
    found = plan(model, order)
    assert tuple(found.order) == order
    assert tuple(found.reversed().order) == order[::-1]
    assert found.width <= reference.log_z(model, order)[1]
    with pytest.raises(OptionError, match="order has 3 spins and the model has 16"):
        plan(model, (0, 1, 2))


@pytest.mark.parametrize("order", ORDER_NAMES)
def test_every_order_is_one_of_all_spins_even_of_many_components(order):
    model = sz.Ising.from_edges(60, [(i, i + 1) for i in range(59) if i % 10 != 9], np.ones(54))
    assert sorted(plan(model, order).order) == list(range(60))


def test_predictions_grow_with_the_bond_and_are_linear_in_the_length():
    short, long = (plan(sz.generators.square(rows=8, columns=n, strength=1.0, seed=0), bond=8) for n in (40, 80))
    assert short.operations(4) < short.operations(8) < short.operations(16)
    assert short.operations(16) == short.operations(64)  # a chain of 8 sites has no larger bonds
    assert long.operations(8) == pytest.approx(2.0 * short.operations(8), rel=0.1)
    assert short.memory(8) < short.memory(16) == short.memory(64)


@pytest.mark.parametrize("name", ["grid", "torus", "kings", "3-regular"])
@pytest.mark.parametrize("bond", [4, 16])
def test_what_is_kept_is_no_more_than_predicted(name, bond):
    model, _ = LATTICES[name]
    found = plan(model, bond=bond)
    chain, kept = empty_chain(found.width, bond, 0.0), Kept.with_room(0, model.n, 100 * model.n, 10**6)
    coupling = model.edges()[1][found.graph.edge]
    weights = Weights(np.array(model.field), coupling, np.zeros(len(coupling), np.int64), np.zeros(len(coupling)))
    room = room_for(found.longest_span, bond)
    assert advance(found.steps, weights, 0, model.n, chain, room, kept) == model.n
    sites = kept.sites[: kept.steps["start"][-1]]
    numbers = int((2 * sites["left"] * sites["right"]).sum())
    assert 0 < 8 * numbers <= found.kept(bond)


def test_a_frontier_that_is_too_wide_is_refused_before_anything_is_done(monkeypatch):
    monkeypatch.setattr(frontier, "MOST_SITES", 5)
    assert plan(sz.generators.grid(side=8, strength=1.0, seed=0)) is None
    with pytest.raises(sz.errors.TooLargeError, match="too wide for mps"):
        sz.log_z(sz.generators.grid(side=8, strength=1.0, seed=0), "mps")


def test_on_a_torus_the_other_end_is_as_cheap():
    """The opposite order of a sweep costs sixteen times as much there; it would check nothing in the time there is."""
    model = sz.generators.torus(20, 20, 0.3)
    found = plan(model, bond=16)
    other = found.reversed(16)
    assert sorted(other.order) == list(range(model.n))
    assert other.operations(16) <= 1.5 * found.operations(16)
    assert found.order.tolist().index(int(other.order[0])) >= model.n // 2  # from the other end
    assert tuple(found.reversed(16).order) != tuple(found.order)


def test_on_a_grid_the_opposite_order_is_taken():
    found = plan(sz.generators.grid(12, 1.0, seed=0), bond=16)
    assert tuple(found.reversed(16).order) == tuple(found.order[::-1])

"""Planted models: that nothing is heavier than the hidden state is shown by listing all states, and by elimination."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import spectralz as sz
from tests.reference.states import all_states

SMALL = [
    {"rows": 4, "columns": 4},
    {"rows": 3, "columns": 5, "loops_per_spin": 2.0},
    {"rows": 2, "columns": 7, "periodic": False, "shortest": 6},
    {"rows": 4, "columns": 4, "graph": "triangular", "shortest": 3, "loops_per_spin": 1.0},
    {"rows": 3, "columns": 5, "graph": "kings", "shortest": 3, "periodic": False, "loops_per_spin": 1.0},
    {"rows": 2, "columns": 1, "graph": "chimera", "loops_per_spin": 1.5},
]


@pytest.mark.parametrize("options", SMALL)
@pytest.mark.parametrize("seed", range(3))
def test_no_state_is_heavier(options, seed):
    model = sz.generators.planted(**options, strength=0.5, seed=seed)
    best = sz.generators.planted_state(**options, strength=0.5, seed=seed)
    assert model.log_weight(best.state) == best.log_weight
    assert np.max(model.log_weight(all_states(model.n))) == best.log_weight > 0


@pytest.mark.parametrize(
    "options", [{"rows": 12, "columns": 12}, {"rows": 10, "columns": 14, "graph": "kings", "periodic": False}]
)
def test_no_state_of_many_spins_is_heavier(options):
    """At strength s, log Z / s is between the largest log-weight at strength 1 and that plus n log 2 / s."""
    best = sz.generators.planted_state(**options, strength=1.0, seed=4)
    cold = sz.generators.planted(**options, strength=1e5, seed=4)
    log_z = sz.log_z(cold, "exact").log_z
    assert best.log_weight <= log_z / 1e5 < best.log_weight + 0.5  # log-weights are whole numbers


def test_the_hidden_state_is_hidden():
    found = [sz.generators.planted_state(10, 10, 1.0, seed).state for seed in range(4)]
    for state in found:
        assert set(state.tolist()) == {-1, 1}
        assert abs(int(state.sum())) < 4 * 10
    assert abs(int(found[0] @ found[1])) < 4 * 10
    # A model that only favored its state would have no edge that opposes it.
    model = sz.generators.planted(10, 10, 1.0, seed=0)
    (i, j), J = model.edges()[0].T, model.edges()[1]
    assert np.any(J * found[0][i] * found[0][j] < 0)


def test_there_are_as_many_loops_as_asked_for_and_none_is_short():
    """The log-weight is the sum of L - 2 over the loops; on a bipartite lattice it is even."""
    for shortest, count in ((4, 50), (8, 50), (12, 25)):
        log_weight = sz.generators.planted_state(10, 10, 1.0, 0, count / 100, shortest).log_weight
        assert log_weight >= count * (shortest - 2)
        assert log_weight % 2 == 0
    assert sz.generators.planted(10, 10, 1.0, seed=0, loops_per_spin=0.0).edge_count == 0
    one = sz.generators.planted(10, 10, 1.0, seed=3, loops_per_spin=0.01)
    edges, J = one.edges()
    assert set(np.bincount(edges.ravel(), minlength=100).tolist()) == {0, 2}
    state = sz.generators.planted_state(10, 10, 1.0, seed=3, loops_per_spin=0.01).state
    assert np.sum(J * state[edges[:, 0]] * state[edges[:, 1]] < 0) == 1


def test_every_edge_of_a_loop_may_oppose():
    """On a ring of three there is one loop, and its three edges oppose equally often."""
    opposing = np.zeros(3)
    for seed in range(300):
        edges, J = sz.generators.planted(1, 3, 1.0, seed, loops_per_spin=0.3, shortest=3).edges()
        state = sz.generators.planted_state(1, 3, 1.0, seed, loops_per_spin=0.3, shortest=3).state
        opposing += J * state[edges[:, 0]] * state[edges[:, 1]] < 0
    assert opposing.sum() == 300
    assert np.all(np.abs(opposing - 100) < 4 * np.sqrt(300 * 2 / 9))


def test_state_and_model_take_the_same_parameters():
    ours, theirs = (inspect.signature(f).parameters for f in (sz.generators.planted, sz.generators.planted_state))
    assert ours == theirs


def test_no_spins_no_loops():
    assert sz.generators.planted(0, 4, 1.0, seed=0).n == 0
    assert sz.generators.planted_state(0, 4, 1.0, seed=0).log_weight == 0.0

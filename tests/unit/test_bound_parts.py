"""Spins that are turned together: the move leaves the distribution as it is, by sums over all states."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz.sampling.phases_found import bound_parts
from tests.reference.states import all_states


def bound_model(n=10, seed=0):
    """Return a model with two bound pairs and a bound triple, of both signs, among weak couplings and fields."""
    rng = np.random.default_rng(seed)
    A = np.triu(0.15 * rng.standard_normal((n, n)), 1)
    A[0, 5], A[3, 7], A[1, 2], A[2, 8] = 1.2, -1.5, 0.9, -1.1
    return sz.Ising(0.3 * rng.standard_normal(n), A + A.T)


def test_parts_are_spins_that_strong_couplings_bind():
    parts = bound_parts(bound_model(16)).parts
    assert sorted(part.tolist() for part in parts) == [[0, 5], [1, 2, 8], [3, 7]]
    # A part with more than a quarter of all spins is not turned.
    assert sorted(part.tolist() for part in bound_parts(bound_model(10)).parts) == [[0, 5], [3, 7]]
    for model in (sz.Ising(np.ones(3)), sz.Ising(np.zeros(0)), sz.Polynomial({(0, 1, 2): 5.0, (0, 1): 5.0})):
        assert bound_parts(model).parts == ()


def test_turning_parts_leaves_the_distribution_as_it_is():
    """States are drawn with their probabilities and moved: all means of spins and pairs stay."""
    model, rng, draws = bound_model(10), np.random.default_rng(1), 100_000
    bound, states = bound_parts(model), all_states(10)
    weight = np.exp(model.log_weight(states))
    probability = weight / weight.sum()
    before = states[rng.choice(len(states), draws, p=probability)]
    x = before.copy()
    bound.turn(x, rng)
    assert (x != before).any(axis=1).mean() > 0.3
    pairs = np.einsum("r,ri,rj->ij", probability, states, states)
    assert x.mean(axis=0) == pytest.approx(probability @ states, abs=5.0 / np.sqrt(draws))
    assert np.abs(x.T.astype(float) @ x / draws - pairs).max() < 5.0 / np.sqrt(draws)
    # Spins of no part stay.
    free = np.setdiff1d(np.arange(10), np.concatenate(bound.parts))
    assert (x[:, free] == before[:, free]).all()


def test_a_part_that_nothing_holds_always_turns_and_one_that_fields_hold_never():
    field = np.zeros(8)
    field[2:4] = 300.0
    A = np.zeros((8, 8))
    A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 2.0
    x = np.ones((5, 8), np.int8)
    bound_parts(sz.Ising(field, A)).turn(x, np.random.default_rng(0))
    assert (x[:, :2] == -1).all()
    assert (x[:, 2:] == 1).all()


def test_relative_spins_of_a_part():
    bound = bound_parts(bound_model(16))
    x = np.random.default_rng(2).choice(np.array([-1, 1], np.int8), (20, 16))
    relative = bound.relative(x)
    assert (relative[:, 5] == x[:, 5] * x[:, 0]).all()
    assert (relative[:, [2, 8]] == x[:, [2, 8]] * x[:, [1]]).all()
    rest = [0, 1, 3, 4, 6, 9, 10, 11, 12, 13, 14, 15]
    assert (relative[:, rest] == x[:, rest]).all()

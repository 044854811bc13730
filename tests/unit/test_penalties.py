"""Constraints as penalties on the way of populations."""

import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import at_most_one, clause, exactly_one, parity, table
from spectralz.parts.penalties import penalties, with_terms
from spectralz.sampling.penalties import penalized

STATES = np.array(list(itertools.product([-1, 1], repeat=5)), dtype=np.int8)
KINDS = {
    "parity": parity([0, 2, 3, 4], -1),
    "clause": clause({0: 1, 1: -1, 4: 1}),
    "table": table([1, 3], [[True, False], [True, True]]),
    "exactly one": exactly_one([0, 1, 2, 3]),
    "at most one": at_most_one([1, 2, 4]),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_penalty_is_zero_where_the_constraint_holds_and_large_elsewhere(name):
    model = sz.Ising(np.linspace(-1.0, 1.0, 5), offset=0.5).with_constraints(KINDS[name])
    soft = with_terms(model, penalties(model.constraints, 7.0))
    change = soft.unconstrained.log_weight(STATES) - model.unconstrained.log_weight(STATES)
    holds = model.constraints.hold(STATES)
    np.testing.assert_allclose(change[holds], 0.0, atol=1e-12)
    assert (change[~holds] < -7.0 + 1e-9).all()
    assert soft.constraints == model.constraints


def test_wide_clauses_have_no_penalty_but_count():
    model = sz.Ising(np.zeros(12)).with_constraints(clause(dict.fromkeys(range(12), 1)))
    assert list(penalties(model.constraints, 5.0)) == []
    found = sz.Annealing(population=64).run(model)
    assert abs(found.log_z - np.log(2.0**12 - 1.0)) < 5.0 * found.std_error + 1e-9
    assert found.log_z < 12 * np.log(2.0)


def test_a_model_without_constraints_is_left_alone():
    model = sz.generators.chain(n=5, strength=1.0)
    assert penalized(model) is model


def test_the_penalty_grows_where_terms_ask_for_broken_constraints():
    weak, strong = (sz.Ising(np.full(12, h)).with_constraints(exactly_one(range(12))) for h in (0.1, 6.0))
    largest = [float(np.abs(penalized(model).edges()[1]).max()) for model in (weak, strong)]
    assert largest[1] > 1.9 * largest[0]

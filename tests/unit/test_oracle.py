"""The oracle itself: its whole numbers against the definition, written out term by term, slow and literal."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import spectralz as sz
from tests.reference import closed_forms, states
from tests.strategies import models

# Enough digits to add 1e300 and 1e-300 without rounding.
DIGITS = 700


def literal_log_weight(model, x):
    """offset + sum_i theta_i x_i + sum_ij A_ij x_i x_j, term by term; of factors sum_j lambda_j <v_j, x>^2 + Tr D."""
    total = mpmath.mpf(model.offset)
    for i in range(model.n):
        total += mpmath.mpf(float(model.field[i])) * int(x[i])
    if model.factors is not None:
        for value, vector in zip(model.factors.values, model.factors.vectors, strict=True):
            along = mpmath.fsum(mpmath.mpf(float(v)) * int(sign) for v, sign in zip(vector, x, strict=True))
            total += mpmath.mpf(float(value)) * along**2
        return total + mpmath.fsum(mpmath.mpf(float(d)) for d in model.factors.diagonal)
    A = states.dense(model)
    for i in range(model.n):
        for j in range(model.n):
            total += mpmath.mpf(float(A[i, j])) * int(x[i]) * int(x[j])
    return total


def literal_solve(model):
    """log Z, E[x_i] and E[x_i x_j], each a sum over all states of weights in fifty digits."""
    X = states.all_states(model.n)
    with mpmath.workdps(DIGITS):
        exact = [literal_log_weight(model, x) for x in X]
        largest = max(exact)
        relative = [w - largest for w in exact]
    with mpmath.workdps(50):
        p = [mpmath.exp(w) for w in relative]
        total = mpmath.fsum(p)
        p = [value / total for value in p]
        mean = [float(mpmath.fsum(q * int(x[i]) for q, x in zip(p, X, strict=True))) for i in range(model.n)]
        pair = [
            [float(mpmath.fsum(q * int(x[i] * x[j]) for q, x in zip(p, X, strict=True))) for j in range(model.n)]
            for i in range(model.n)
        ]
        return float(largest + mpmath.log(total)), np.array(mean), np.array(pair).reshape(model.n, model.n)


def assert_is_the_definition(model):
    with mpmath.workdps(DIGITS):
        assert states.log_weights(model) == [literal_log_weight(model, x) for x in states.all_states(model.n)]
    value, mean, pair = states.solve(model)
    wanted, wanted_mean, wanted_pair = literal_solve(model)
    assert value == wanted == float(states.log_z(model))
    # the oracle adds up probabilities that are rounded to floats
    assert np.allclose(mean, wanted_mean, rtol=0.0, atol=1e-15)
    assert np.allclose(pair, wanted_pair, rtol=0.0, atol=1e-15)


@given(models(max_spins=5))
@settings(max_examples=60)
def test_it_is_the_definition(model):
    assert_is_the_definition(model)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e60, 1e290])
@pytest.mark.parametrize("field", [1e-300, 0.3, 1e290])
def test_it_is_the_definition_at_every_scale(scale, field):
    rng = np.random.default_rng(0)
    A = np.triu(rng.normal(size=(4, 4)))
    assert_is_the_definition(sz.Ising(field * rng.normal(size=4), sp.csr_array(scale * (A + A.T)), 0.1))


@pytest.mark.parametrize("scale", [1e-140, 1e-9, 1.0, 1e60, 1e140])
@pytest.mark.parametrize("diagonal", [0.0, [-1e16, 1e16, 0.1]])
def test_it_is_the_definition_of_factors(scale, diagonal):
    rng = np.random.default_rng(1)
    vectors = scale * rng.normal(size=(2, 3))
    assert_is_the_definition(sz.Ising.from_factors(rng.normal(size=3), [0.3, -1.7], vectors, diagonal, 0.1))


def test_small_fields_are_not_lost_beside_huge_couplings():
    # Two spins held together act as one in the sum of their fields.
    model = sz.Ising.from_edges(2, [(0, 1)], [1e150], field=[0.25, 0.5])
    value, mean, pair = states.solve(model)
    assert value == 1e150
    assert mean.tolist() == pytest.approx([math.tanh(0.75)] * 2, rel=1e-15)
    assert pair.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_it_has_the_values_of_closed_forms():
    strength, field = 0.75, 0.25
    model = sz.generators.curie_weiss(8, strength, field)
    assert states.solve(model)[0] == pytest.approx(closed_forms.curie_weiss(8, strength, field), rel=1e-15)
    assert states.solve(sz.Ising([], [], offset=2.5))[0] == 2.5
    alone = sz.Ising([0.5], [[2.0]], 1.0)
    assert states.solve(alone)[0] == pytest.approx(3.0 + math.log(2 * math.cosh(0.5)), rel=1e-15)

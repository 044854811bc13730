from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import spectralz as sz
from spectralz.errors import ModelError
from tests.reference import states
from tests.strategies import models


def close(a, b, scale=1.0):
    # log-weights are sums of some hundred rounded terms
    return np.allclose(a, b, rtol=1e-12, atol=1e-12 * max(scale, 1.0))


@given(models(max_spins=6))
def test_log_weight_is_the_definition(model):
    X = states.all_states(model.n)
    wanted = [float(weight) for weight in states.log_weights(model)]
    assert close(model.log_weight(X), wanted)
    assert close(model.log_weight(X[0]), wanted[0])
    assert np.ndim(model.log_weight(X[0])) == 0


@given(models(max_spins=6))
def test_edges_count_each_pair_once_with_twice_the_coupling(model):
    pairs, J = model.edges()
    assert np.all(pairs[:, 0] < pairs[:, 1])
    assert sorted(map(tuple, pairs.tolist())) == [tuple(p) for p in pairs.tolist()]
    A = np.zeros((model.n, model.n))
    A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = J / 2
    assert np.array_equal(A + np.diag(model.diagonal), states.dense(model))


@given(models(max_spins=6))
def test_from_edges_gives_back_what_edges_gave(model):
    again = sz.Ising.from_edges(model.n, *model.edges(), field=model.field, offset=model.constant)
    X = states.all_states(model.n)
    assert close(again.log_weight(X), model.log_weight(X))


@given(models(max_spins=6))
def test_absorbed_field_gives_every_state_twice(model):
    absorbed = model.absorb_field()
    X = states.all_states(model.n)
    assert not absorbed.field.any()
    assert absorbed.is_sparse == model.is_sparse
    for ghost in (-1, 1):
        extended = np.column_stack([ghost * X, np.full(len(X), ghost)])
        assert close(absorbed.log_weight(extended), model.log_weight(X))


@given(models(max_spins=6))
def test_eq_10_diagonal_shift_adds_its_sum_to_every_state(model):
    d = np.linspace(-1, 2, model.n)
    X = states.all_states(model.n)
    shifted = model.shift_diagonal(d)
    assert shifted.is_sparse == model.is_sparse
    assert close(shifted.log_weight(X), model.log_weight(X) + d.sum())
    assert close(model.shift_diagonal(0.5).log_weight(X), model.log_weight(X) + 0.5 * model.n)


@given(models(max_spins=6))
def test_conditioned_model_has_the_weights_of_the_agreeing_states(model):
    fixed = {i: (1 if i % 2 else -1) for i in range(0, model.n, 2)}
    X = states.all_states(model.n)
    agree = np.all([X[:, i] == value for i, value in fixed.items()], axis=0) if fixed else np.ones(len(X), bool)
    free = [i for i in range(model.n) if i not in fixed]
    conditioned = model.condition(fixed)
    assert conditioned.n == len(free)
    assert close(conditioned.log_weight(X[agree][:, free]), model.log_weight(X[agree]))


@given(models(max_spins=6))
def test_scaling_multiplies_every_log_weight(model):
    X = states.all_states(model.n)
    for beta in (0.0, 0.3, -2.0):
        assert close(model.scaled(beta).log_weight(X), beta * np.asarray(model.log_weight(X)))


@given(models(max_spins=9))
def test_components_are_closed_and_their_weights_add_up(model):
    parts = model.components()
    assert sorted(np.concatenate([np.empty(0), *parts]).astype(int).tolist()) == list(range(model.n))
    label = np.empty(model.n, int)
    for k, spins in enumerate(parts):
        label[spins] = k
    assert all(label[i] == label[j] for i, j in model.edges()[0])
    # a component is connected: growing from its first spin reaches it all
    neighbors = {i: set() for i in range(model.n)}
    for i, j in model.edges()[0].tolist():
        neighbors[i].add(j)
        neighbors[j].add(i)
    for spins in parts:
        reached, new = set(), {int(spins[0])}
        while new:
            reached |= new
            new = set().union(*(neighbors[i] for i in new)) - reached
        assert reached == set(spins.tolist())
    X = states.all_states(model.n)[:50]
    total = model.offset + sum(model.submodel(spins).log_weight(X[:, spins]) for spins in parts)
    assert close(total, model.log_weight(X))


def test_a_model_is_frozen_and_keeps_its_own_copy():
    field, A = np.array([1.0, 2.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    for model in (sz.Ising(field, A), sz.Ising(field, sp.csr_array(A))):
        with pytest.raises(AttributeError):
            model.offset = 1.0
        with pytest.raises(ValueError, match="read-only"):
            model.field[0] = 5.0
        parts = model.coupling if not model.is_sparse else model.coupling.data
        with pytest.raises(ValueError, match="read-only"):
            parts[...] = 5.0
    dense, sparse = sz.Ising(field, A), sz.Ising(field, sp.csr_array(A))
    field[0] = A[0, 1] = A[1, 0] = 99.0
    assert dense.field[0] == 1.0
    assert dense.coupling[0, 1] == sparse.coupling[0, 1] == 1.0


def test_copies_are_models_too():
    model = sz.generators.grid(3, 1.0, seed=0)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.field, model.field)
        assert np.array_equal(again.coupling.toarray(), model.coupling.toarray())
        assert not again.field.flags.writeable


def test_rounding_asymmetry_is_averaged_away():
    A = np.array([[0.0, 1.0], [1.0 + 1e-15, 0.0]])
    for coupling in (A, sp.csr_array(A)):
        model = sz.Ising(None, coupling)
        B = states.dense(model)
        assert B[0, 1] == B[1, 0]


def test_stored_zeros_are_no_edges():
    A = sp.csr_array(([1.0, 1.0, 0.0, 0.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    assert sz.Ising(None, A).edges()[0].tolist() == [[0, 1]]
    assert sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 0.0]).edges()[0].tolist() == [[0, 1]]


def test_sparse_duplicates_are_added_up_as_scipy_has_them():
    A = sp.coo_array(([1.0, 1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert sz.Ising(None, A).edges()[1].tolist() == [4.0]


def test_repr_tells_size_density_and_strength():
    text = repr(sz.Ising([0.5, -3.0, 0], [[0, 1, 0], [1, 0, -2], [0, -2, 0]], offset=7))
    assert text == "Ising(n=3, edges=2, density=0.667, |A| mean 1.5 max 2, |field| max 3, offset 7, dense)"
    assert repr(sz.Ising([], [])) == "Ising(n=0, edges=0, density=0, |A| mean 0 max 0, |field| max 0, dense)"


@pytest.mark.parametrize("weights", [2.0, [2.0, 2.0]])
def test_one_weight_serves_all_edges(weights):
    assert sz.Ising.from_edges(3, [(0, 1), (2, 1)], weights).edges()[1].tolist() == [2.0, 2.0]


def test_huge_weights_are_refused_before_they_overflow():
    with pytest.raises(ModelError, match="scale the model down"):
        sz.Ising([1e300, 1e300], np.zeros((2, 2)))
    with pytest.raises(ModelError, match="scale the model down"):
        sz.Ising([1.0], [[0.0]]).scaled(1e301)

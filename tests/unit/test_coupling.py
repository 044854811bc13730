"""Every way of keeping a coupling says the same of it as the matrix written out by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz.model.coupling.entries import Dense, Sparse, coupling_of
from spectralz.model.coupling.structured import Bipartite, Factored

N = 7
RNG = np.random.default_rng(5)


def symmetric(share=1.0):
    A = RNG.standard_normal((N, N)) * (RNG.random((N, N)) < share)
    return A + A.T


def kinds():
    """Yield couplings of all kinds, each with its matrix."""
    A = symmetric()
    yield "dense", Dense.checked(A), A
    B = symmetric(0.3)
    yield "sparse", Sparse.checked(sp.coo_array(B)), B
    values, vectors, diagonal = np.array([0.7, -1.2]), RNG.standard_normal((2, N)), RNG.standard_normal(N)
    yield "factors", Factored.checked(values, vectors, diagonal), (vectors.T * values) @ vectors + np.diag(diagonal)
    J = RNG.standard_normal((3, N - 3))
    J[1, 2] = 0.0
    block = np.zeros((N, N))
    block[:3, 3:] = J / 2.0
    yield "bipartite", Bipartite.checked(J), block + block.T


KINDS = {word: (coupling, A) for word, coupling, A in kinds()}
EVERY = pytest.mark.parametrize(("coupling", "A"), KINDS.values(), ids=KINDS)


def same(coupling, A):
    return np.allclose(coupling.dense(), A, rtol=1e-13, atol=1e-13)


def test_each_kind_has_its_word():
    assert [coupling.word for coupling, _ in KINDS.values()] == list(KINDS)
    assert {word for word, (coupling, _) in KINDS.items() if coupling.is_sparse} == {"sparse", "bipartite"}
    for coupling, _ in KINDS.values():
        assert sp.issparse(coupling.matrix) == coupling.is_sparse


@EVERY
def test_entries_edges_and_sizes(coupling, A):
    assert same(coupling, A)
    assert coupling.n == N
    assert np.allclose(coupling.diagonal, np.diag(A))
    i, j = np.nonzero(np.triu(A, k=1))
    pairs, J = coupling.edges()
    assert pairs.tolist() == np.column_stack([i, j]).tolist()
    assert np.allclose(J, 2.0 * A[i, j])
    assert coupling.edge_count == len(i)
    assert coupling.couples_nothing is False
    assert coupling.total >= np.abs(A).sum() * (1 - 1e-15)
    bare = A - np.diag(np.diag(A))
    assert same(coupling.without_diagonal(), bare)
    assert coupling.largest_of_pairs == pytest.approx(np.abs(bare).max())
    degrees = np.count_nonzero(bare, axis=1)
    assert coupling.least_width == max(degrees.min(), -(-len(i) // N))


@EVERY
def test_quadratic_forms_of_states(coupling, A):
    X = RNG.choice([-1.0, 1.0], size=(20, N))
    assert np.allclose(coupling.quadratic(X), [x @ A @ x for x in X])


@EVERY
def test_what_is_made_of_it(coupling, A):
    d, column = RNG.standard_normal(N), RNG.standard_normal(N)
    assert same(coupling.times(-2.5), -2.5 * A)
    assert same(coupling.plus_diagonal(d), A + np.diag(d))
    whole = np.block([[A, column[:, None]], [column[None, :], np.zeros((1, 1))]])
    assert same(coupling.bordered(column), whole)
    for spins in ([0, 2, 4, 6], [5, 1, 3, 0], [6], [4, 5], []):
        index = np.array(spins, dtype=np.int64)
        assert same(coupling.among(index), A[np.ix_(index, index)])


@EVERY
@pytest.mark.parametrize("fixed", [[], [1], [6, 0], [2, 3, 5], list(range(N))])
def test_fixed_spins_leave_a_field_and_a_constant(coupling, A, fixed):
    index = np.array(fixed, dtype=np.int64)
    value = RNG.choice([-1.0, 1.0], size=len(index))
    free = np.setdiff1d(np.arange(N), index)
    left = coupling.given(index, value, free)
    for x_free in RNG.choice([-1.0, 1.0], size=(5, len(free))):
        x = np.empty(N)
        x[index], x[free] = value, x_free
        assert left.constant + left.field @ x_free + left.rest.quadratic(x_free[None])[0] == pytest.approx(x @ A @ x)


@EVERY
def test_kernels_get_twice_the_entries_off_the_diagonal(coupling, A):
    got = coupling.for_kernels()
    J = np.zeros((N, N))
    for i in range(N):
        row = slice(got.indptr[i], got.indptr[i + 1])
        J[i, np.arange(N) if got.is_dense else got.indices[row]] = got.data[row]
    want = 2.0 * (A - np.diag(np.diag(A)))
    assert np.allclose(J, want, rtol=1e-13, atol=1e-13)
    assert not got.data.flags.writeable  # compiled code takes writable arrays for another type
    assert got.mean_strength == pytest.approx(np.sqrt((want**2).sum() / N))
    assert got.longest_row == (N if got.is_dense else np.count_nonzero(want, axis=1).max())


@pytest.mark.parametrize("word", ["dense", "sparse"])
def test_entries_can_be_scaled_from_both_sides(word):
    coupling, A = KINDS[word]
    roots = RNG.random(N)
    assert same(coupling.congruent(roots), roots[:, None] * A * roots)
    assert same(coupling.as_dense(), A)
    assert same(coupling.as_sparse(), A)


@EVERY
def test_a_model_freezes_its_arrays_and_copies_travel_without_what_was_derived(coupling, A):
    model = sz.Ising(np.arange(float(N)), coupling)
    for array in (*model.storage.arrays, model.field):
        assert not array.flags.writeable
    assert model.coupling is not None  # writes it out
    copy = pickle.loads(pickle.dumps(model))
    assert type(copy.storage) is type(coupling)
    assert "written_out" not in vars(copy.storage)
    assert same(copy.storage, A)
    assert not copy.storage.arrays[0].flags.writeable


def test_what_is_a_coupling_already_is_taken_as_it_is():
    coupling, _ = KINDS["bipartite"]
    assert coupling_of(coupling) is coupling


def test_an_rbm_keeps_its_block_alone():
    model = sz.generators.rbm(visible=30, hidden=20, scale=0.5, seed=1)
    assert model.storage.word == "bipartite"
    assert sum(array.size for array in model.storage.arrays) == 600
    pairs, J = model.edges()
    again = sz.Ising.from_edges(50, pairs, J, model.field)
    x = RNG.choice([-1, 1], size=(10, 50))
    assert np.allclose(model.log_weight(x), again.log_weight(x))
    assert np.array_equal(model.coupling.toarray(), again.coupling.toarray())


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0, 2.0], r"shape \(2,\)"), ([[np.nan]], r"weights\[0, 0\] is nan"), ([["a"]], "real numbers")],
)
def test_weights_that_are_no_block_are_refused(weights, message):
    with pytest.raises(sz.errors.ModelError, match=message):
        sz.Ising.from_bipartite(weights)


def test_layers_without_spins_are_models_too():
    assert sz.log_z(sz.Ising.from_bipartite(np.zeros((0, 3)), [0.0, 0.0, 0.0])).log_z == pytest.approx(3 * np.log(2.0))
    assert sz.Ising.from_bipartite(np.zeros((0, 0))).n == 0


def test_a_model_that_overflows_when_scaled_says_so():
    for coupling, _ in KINDS.values():
        with pytest.raises(sz.errors.ModelError, match="scale the model down"):
            sz.Ising(None, coupling).scaled(1e308)


def test_weights_too_large_to_add_up_are_refused_without_a_warning():
    huge = np.full((3, 3), 1e308)
    for made in (lambda: sz.Ising(None, huge), lambda: sz.Ising(None, sp.csr_array(huge))):
        with pytest.raises(sz.errors.ModelError, match="scale the model down"):
            made()
    with pytest.raises(sz.errors.ModelError, match="scale the model down"):
        sz.Ising.from_factors(None, [1.0], [[1e200, 1e200]])
    assert sz.log_z(sz.Ising.from_factors(None, [0.0], [[1e200, 1e200]])).log_z == pytest.approx(2 * np.log(2.0))

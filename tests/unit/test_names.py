"""Names of spins, and evidence, sums, multiples and equality of models that have them."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import ModelError, OptionError
from tests.reference import states
from tests.strategies import models

CHAIN = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0], field=[0.5, 0.0, -0.25], names=["a", "b", "c"])


# Names.


def test_names_are_kept_by_everything_that_keeps_spins():
    assert CHAIN.names == ("a", "b", "c")
    assert CHAIN.scaled(2.0).names == CHAIN.shift_diagonal(1.0).names == CHAIN.names
    assert CHAIN.condition({"b": +1}).names == ("a", "c")
    assert CHAIN.submodel([2, 0]).names == ("c", "a")
    assert pickle.loads(pickle.dumps(CHAIN)).names == copy.deepcopy(CHAIN).names == CHAIN.names
    assert CHAIN.absorb_field().names is None
    assert CHAIN.named(None).names is None
    assert json.loads(json.dumps(CHAIN.to_dict()))["names"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "make",
    [
        lambda names: sz.Ising([0, 0], [[0, 1], [1, 0]], names=names),
        lambda names: sz.Ising(field=[0, 0], names=names),
        lambda names: sz.Ising.from_factors(None, [1.0], [[1.0, 2.0]], names=names),
        lambda names: sz.Ising.from_bipartite([[1.0]], names=names),
        lambda names: sz.Ising.from_edges(2, [(0, 1)], 1.0, names=names),
        lambda names: sz.Ising.from_hamiltonian(None, [[0, 1], [1, 0]], names=names),
        lambda names: sz.Ising.from_binary(None, [[0, 1], [1, 0]], names=names),
        lambda names: sz.RBM([[1.0]], names=names).to_ising(),
    ],
)
def test_every_way_to_make_a_model_takes_names(make):
    assert make(np.array(["x", "y"])).names == ("x", "y")
    assert all(type(name) is str for name in make(np.array(["x", "y"])).names)
    with pytest.raises(ModelError, match="3 names and 2 spins"):
        make(["x", "y", "z"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ab", "text 'ab'"),
        (5, "a int"),
        (["a", "a"], "spins 0 and 1 have the same name 'a'"),
        ([1, 1.0], "same name"),
        (["a", ["b"]], "name 1 is a list"),
        (["a", None], "name 1 is None"),
        (["a", float("nan")], "name 1 is nan"),
    ],
)
def test_names_that_are_none_are_refused(names, message):
    with pytest.raises(ModelError, match=message):
        sz.Ising([0, 0], [[0, 1], [1, 0]], names=names)


def test_a_spin_is_found_by_its_name():
    assert [CHAIN.index(name) for name in "abc"] == [0, 1, 2]
    assert CHAIN.index(2) == 2  # no name is a number, so that a number can only be the index
    with pytest.raises(ModelError, match=r"no spin is called 'bb'; did you mean 'b'"):
        CHAIN.index("bb")
    with pytest.raises(ModelError, match="there is no spin 3"):
        CHAIN.index(3)
    with pytest.raises(ModelError, match="no spin is called"):
        CHAIN.index(["a"])


def test_numbers_that_are_names_are_names_and_not_indices():
    swapped = CHAIN.named([2, 1, 0])
    assert [swapped.index(name) for name in (0, 1, 2)] == [2, 1, 0]
    assert swapped.condition({0: +1}) == CHAIN.condition({"c": +1}).named([2, 1])
    with pytest.raises(ModelError, match="no spin is called 7"):
        swapped.index(7)
    with pytest.raises(ModelError, match=r"no spin is called '2'; did you mean 2, a int"):
        swapped.index("2")


def test_names_are_printed():
    assert repr(CHAIN).endswith("sparse, names a, b, c)")
    assert repr(sz.Ising(field=[0, 0, 0, 0], names=["a", "b", "c", "d"])).endswith("names a, b, c, ...)")
    assert (CHAIN.label(1), CHAIN.named(None).label(1)) == ("b", "spin 1")


# Evidence.


@given(models(max_spins=6), st.data())
def test_evidence_leaves_the_sum_over_the_states_that_agree(model, data):
    named = model.named([f"s{i}" for i in range(model.n)])
    fixed = data.draw(st.sets(st.integers(0, model.n - 1))) if model.n else set()
    evidence = {f"s{i}": data.draw(st.sampled_from([-1, 1])) for i in fixed}
    X = states.all_states(model.n)
    agree = np.all([X[:, int(name[1:])] == value for name, value in evidence.items()], axis=0) if fixed else ...
    weights = np.atleast_1d(np.array(model.log_weight(X))[agree]).ravel()
    truth = np.logaddexp.reduce(weights)
    found = sz.marginals(named, "exact", given=evidence)
    assert np.isclose(sz.log_z(named, "exact", given=evidence).log_z, truth, rtol=1e-10, atol=1e-10)
    assert np.isclose(found.estimate.log_z, truth, rtol=1e-10, atol=1e-10)
    share = np.exp(weights - truth)[:, None]
    kept = X[agree].reshape(len(weights), model.n)
    assert found.names == named.names
    assert np.allclose(found.mean, (share * kept).sum(axis=0), atol=1e-9)
    assert np.allclose(found.probability[:, 1], (share * (kept > 0)).sum(axis=0), atol=1e-9)
    pairs = model.edges()[0]
    assert np.array_equal(found.edges, pairs)
    assert np.allclose(found.pair_mean, (share * kept[:, pairs[:, 0]] * kept[:, pairs[:, 1]]).sum(axis=0), atol=1e-9)


def test_samples_hold_the_evidence_in_its_columns():
    drawn = sz.sample(CHAIN, 4000, given={"b": -1}, seed=3)
    assert drawn.shape == (4000, 3)
    assert drawn.dtype == np.int8
    assert np.all(drawn[:, 1] == -1)
    means = sz.marginals(CHAIN, given={"b": -1}).mean
    assert np.all(np.abs(drawn.mean(axis=0) - means) < 5 / np.sqrt(4000))


def test_every_verb_takes_evidence():
    truth = sz.log_z(CHAIN.condition({"b": +1}), "exact").log_z
    bounds = sz.bounds(CHAIN, 1.0, given={"b": +1})
    assert bounds.lower <= truth <= bounds.upper
    row = next(iter(sz.compare(CHAIN, ["exact"], given={"b": +1})))
    assert row.estimate.log_z == truth
    assert sz.describe(CHAIN, given={"b": +1}).spins == 2
    everything = {"a": +1, "b": +1, "c": -1}
    assert sz.log_z(CHAIN, given=everything).log_z == pytest.approx(float(CHAIN.log_weight([1, 1, -1])), abs=1e-14)
    assert sz.marginals(CHAIN, given=everything).mean.tolist() == [1, 1, -1]
    assert sz.sample(CHAIN, 2, given=everything).tolist() == [[1, 1, -1]] * 2
    assert sz.marginals(CHAIN, given={"a": -1})["a"] == -1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"d": 1}, "no spin is called 'd'"),
        ({"a": 0}, "sets spin 'a' to 0; a spin is -1 or"),
        ({"a": "+1"}, "sets spin 'a' to '\\+1'"),
        ({"a": [1]}, "a spin is -1 or"),
        ({"a": 1, 0: 1}, "sets spin 0 twice"),
        (["a"], "a mapping like"),
    ],
)
def test_evidence_that_is_none_is_refused(given, message):
    for verb in (sz.log_z, sz.marginals, sz.compare, sz.bounds, sz.describe):
        with pytest.raises(ModelError, match=message):
            verb(CHAIN, given=given)
    with pytest.raises(ModelError, match=message):
        sz.sample(CHAIN, 1, given=given)


def test_evidence_is_not_an_option_of_a_method():
    with pytest.raises(OptionError, match="no option 'givn'"):
        sz.log_z(CHAIN, givn={"a": 1})


def test_marginals_are_found_by_name():
    found = sz.marginals(CHAIN)
    assert [found[name] for name in "abc"] == found.mean.tolist()
    assert sz.marginals(CHAIN.named(None))[2] == found["c"]
    assert found.to_dict()["names"] == ["a", "b", "c"]
    with pytest.raises(ModelError, match="no spin is called 'd'"):
        found["d"]


# Equality, sums and multiples.


def representations(model):
    yield model
    A = states.dense(model)
    yield sz.Ising(model.field, A, model.offset, model.names)
    yield sz.Ising(model.field, sp.csr_array(A), model.offset, model.names)


@given(models(max_spins=5), models(max_spins=5))
def test_equality_sees_every_number_and_not_how_it_is_kept(model, other):
    for first in representations(model):
        for second in representations(model):
            assert first == second
            assert hash(first) == hash(second)
        for different in representations(other):
            same = (
                model.n == other.n
                and np.array_equal(model.field, other.field)
                and model.offset == other.offset
                and np.array_equal(states.dense(model), states.dense(other))
            )
            assert (first == different) is same
            assert (first != different) is not same


def test_one_last_bit_makes_models_differ():
    A = np.array([[0.0, 0.5], [0.5, 0.0]])
    model = sz.Ising([0.1, 0.0], A)
    nudged = np.nextafter(0.5, 1.0)
    assert model != sz.Ising([0.1, 0.0], A * nudged / 0.5)
    assert model != sz.Ising([np.nextafter(0.1, 1), 0.0], A)
    assert model != sz.Ising([0.1, 0.0], A, offset=5e-324)
    assert model != sz.Ising([0.1, 0.0], A + np.diag([5e-324, 0.0]))
    assert model == sz.Ising([0.1, -0.0], A - 0.0, offset=-0.0)
    assert hash(model) == hash(sz.Ising([0.1, -0.0], A, offset=-0.0))
    assert model != "model"


def test_names_belong_to_a_model():
    assert CHAIN.named(None) != CHAIN
    assert CHAIN.named(["a", "c", "b"]) != CHAIN
    assert CHAIN.named(None) == CHAIN.named([0, 1, 2])  # what spins are called anyway
    assert len({CHAIN, CHAIN.named(None), CHAIN.named([0, 1, 2]), 1.0 * CHAIN}) == 2


def test_factors_and_blocks_equal_their_matrices():
    factored = sz.Ising.from_factors(None, [0.5], [[1.0, -1.0, 2.0]], diagonal=0.25)
    assert factored == sz.Ising(None, factored.coupling)
    block = sz.Ising.from_bipartite([[1.0, 0.0], [2.0, 3.0]])
    assert block == sz.Ising(None, block.coupling) == sz.Ising(None, block.coupling.toarray())
    large = sz.generators.curie_weiss(n=30_000)
    assert large == sz.generators.curie_weiss(n=30_000)
    assert large != sz.generators.curie_weiss(n=30_000, strength=0.5)
    assert large != sz.Ising(coupling=sp.csr_array((30_000, 30_000)))
    assert sz.Ising(coupling=sp.csr_array((30_000, 30_000))) != large


@given(models(max_spins=5), models(max_spins=5), st.floats(-3, 3))
def test_log_weights_add_up_and_multiply(model, other, beta):
    X = states.all_states(model.n)
    scale = 1.0 + abs(np.array(model.log_weight(X))).max(initial=0.0)
    for kept in representations(model):
        assert np.allclose((beta * kept).log_weight(X), beta * np.array(model.log_weight(X)), atol=1e-10 * scale)
    assert beta * model == model * beta == np.float64(beta) * model == model.scaled(beta)
    if model.n != other.n:
        with pytest.raises(ModelError, match="spins; add only models of the same spins"):
            model + other
        return
    scale += abs(np.array(other.log_weight(X))).max(initial=0.0)
    for first in representations(model):
        for second in representations(other):
            both = first + second
            wanted = np.array(model.log_weight(X)) + other.log_weight(X)
            assert np.allclose(both.log_weight(X), wanted, atol=1e-10 * scale)
            assert both == model + other


def test_sums_keep_factors_blocks_and_sparsity():
    factors = sz.generators.curie_weiss(n=50_000, strength=0.7)
    both = factors + factors
    assert both.storage.word == "factors"
    small = sz.generators.curie_weiss(n=6) + sz.generators.curie_weiss(n=6, field=0.5)
    assert np.allclose(small.coupling, 2 * sz.generators.curie_weiss(n=6).coupling)
    block = sz.Ising.from_bipartite([[1.0, 2.0]])
    assert (block + block).storage.word == "bipartite"
    assert (block + sz.Ising.from_bipartite([[1.0], [2.0]])).storage.word == "sparse"
    assert (CHAIN + CHAIN).storage.word == "sparse"
    assert (CHAIN + sz.Ising(coupling=np.ones((3, 3)))).storage.word == "dense"


def test_sums_of_named_models_have_their_names():
    assert (CHAIN + CHAIN.named(None)).names == (CHAIN.named(None) + CHAIN).names == CHAIN.names
    with pytest.raises(ModelError, match="names or their order differ"):
        CHAIN + CHAIN.named(["a", "c", "b"])
    with pytest.raises(TypeError):
        CHAIN + 1.0
    with pytest.raises(TypeError):
        np.ones(3) * CHAIN
    with pytest.raises(ModelError, match="absolute weights"):
        sz.Ising(field=[9e299]) + sz.Ising(field=[9e299])


# Coupling alone, field alone.


def test_field_and_coupling_are_optional():
    assert sz.Ising(coupling=[[0, 1], [1, 0]]) == sz.Ising([0, 0], [[0, 1], [1, 0]])
    independent = sz.Ising(field=[0.5, -1.0])
    assert sz.log_z(independent).log_z == pytest.approx(np.log(2 * np.cosh([0.5, 1.0])).sum())
    with pytest.raises(ModelError, match=r"Ising\(coupling=A\)"):
        sz.Ising()
    with pytest.raises(ModelError, match=r"Ising\(coupling=A\)"):
        sz.Ising(np.eye(3))


# Hamiltonians and binary variables.


def hamiltonian(h, J, s):
    """H = - sum_{i<j} J_ij s_i s_j - sum h_i s_i, literally."""
    n = len(h)
    pairs = sum(J[i][j] * s[i] * s[j] for i in range(n) for j in range(i + 1, n))
    return -pairs - sum(h[i] * s[i] for i in range(n))


numbers = st.floats(-5, 5, allow_subnormal=False)


@st.composite
def upper_triangles(draw):
    n = draw(st.integers(1, 5))
    J = np.triu(np.array([[draw(numbers) for _ in range(n)] for _ in range(n)]), k=1)
    return np.array([draw(numbers) for _ in range(n)]), J


@given(upper_triangles(), st.floats(0, 4), st.sampled_from(["dense", "sparse"]), st.booleans())
def test_a_hamiltonian_counts_each_pair_once(parts, beta, kind, is_symmetric):
    h, J = parts
    given_J = J + J.T if is_symmetric else J
    model = sz.Ising.from_hamiltonian(h, given_J if kind == "dense" else sp.csr_array(given_J), beta)
    assert model.is_sparse == (kind == "sparse")
    for s in states.all_states(len(h)):
        assert model.log_weight(s) == pytest.approx(-beta * hamiltonian(h, J, s), abs=1e-9)


@given(upper_triangles(), numbers, st.sampled_from(["dense", "sparse"]), st.booleans())
def test_binary_variables_keep_every_log_weight(parts, offset, kind, is_symmetric):
    bias, W = parts
    given_W = W + W.T if is_symmetric else W
    model = sz.Ising.from_binary(bias, given_W if kind == "dense" else sp.coo_array(given_W), offset)
    for x in states.all_states(len(bias)):
        v = (1 + x) / 2
        wanted = offset - hamiltonian(bias, W, v)
        assert model.log_weight(x) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("make", [sz.Ising.from_hamiltonian, sz.Ising.from_binary])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.0, 1.0], [2.0, 0.0]], r"neither symmetric nor upper triangular: \[0, 1\] is 1 and \[1, 0\] is 2"),
        ([[0.0, 0.0], [2.0, 0.0]], r"neither symmetric nor upper triangular: \[0, 1\] is 0 and \[1, 0\] is 2"),
        ([[0.0, 1.0], [1.0, 3.0]], r"\[1, 1\] is 3; it pairs no two spins"),
        ([[0.0, np.inf], [0.0, 0.0]], "finite"),
        ([[0.0, 1.0]], "square"),
    ],
)
def test_other_matrices_are_refused(make, kind, matrix, message):
    with pytest.raises(ModelError, match=message):
        make([0.0, 0.0], kind(matrix))


def test_rounding_does_not_make_a_matrix_asymmetric():
    J = np.array([[0.0, 1.0], [1.0 + 1e-13, 0.0]])
    assert sz.Ising.from_hamiltonian(None, J).edges()[1] == pytest.approx([1.0])
    assert sz.Ising.from_hamiltonian(None, np.zeros((0, 0))).n == 0
    with pytest.raises(ModelError, match="bias has 3 numbers"):
        sz.Ising.from_binary([0, 0, 0], [[0, 1], [1, 0]])
    with pytest.raises(ModelError, match="absolute weights"):
        sz.Ising.from_binary([1e308, 1e308], [[0, 1e308], [1e308, 0]])

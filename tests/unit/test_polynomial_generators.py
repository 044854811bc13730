"""Generators of polynomials against their definitions, and the sum over dependencies against all states."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.closed_forms.parities import _core, _dependencies, parities
from spectralz.errors import OptionError, TooLargeError
from tests.helpers import with_slow
from tests.reference import closed_forms as reference
from tests.reference import states
from tests.strategies import models


def assert_close(found, wanted, size=1.0):
    """To a few roundings of the largest number in the sum."""
    assert isinstance(found, float)
    assert abs(found - wanted) <= 2e-14 * max(1.0, size, abs(wanted))


# ------------------------------------------------------------------------------------------------------- generators


@pytest.mark.parametrize(
    ("n", "p", "terms"), [(0, 3, 0), (2, 3, 0), (3, 3, 1), (12, 3, 12), (9, 1, 9), (9, 2, 30), (8, 4, 70), (30, 25, 40)]
)
def test_p_spin_has_different_terms_of_p_spins(n, p, terms):
    for seed in range(3):
        model = sz.generators.p_spin(n, p, seed=seed, terms=terms)
        assert isinstance(model, sz.Polynomial)
        assert model.n == n
        assert len(model.terms) == terms
        assert all(len(set(scope)) == p and set(scope) <= set(range(n)) for scope in model.terms)


def test_p_spin_has_as_many_terms_as_spins_by_default():
    assert len(sz.generators.p_spin(40).terms) == 40
    assert len(sz.generators.p_spin(4).terms) == 4
    assert len(sz.generators.p_spin(3).terms) == 1
    assert len(sz.generators.p_spin(2).terms) == 0


@pytest.mark.parametrize("terms", with_slow([1, 3, 5, 9], [3, 9]))
def test_all_sets_of_spins_are_equally_likely(terms):
    draws = 500
    seen = Counter(scope for seed in range(draws) for scope in sz.generators.p_spin(5, 3, 1.0, seed, terms).terms)
    mean = draws * terms / 10
    spread = mean * (1 - terms / 10)
    statistic = sum((seen[s] - mean) ** 2 / spread for s in itertools.combinations(range(5), 3)) * 0.9
    assert abs(statistic - 9) < 4 * math.sqrt(18)


def test_p_spin_weights_are_normal():
    c = np.array(list(sz.generators.p_spin(500, 3, 0.5, seed=3, terms=4000).terms.values())) / 0.5
    assert abs(c.mean()) < 4 / math.sqrt(4000)
    assert abs((c**2).mean() - 1) < 4 * math.sqrt(2 / 4000)
    assert abs((c**4).mean() - 3) < 4 * math.sqrt(96 / 4000)


@pytest.mark.parametrize("p", [2, 3, 4, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 30])
def test_each_term_of_a_hypertree_shares_one_spin_with_those_before(n, p):
    model = sz.generators.hypertree(n, p, seed=n + p, field=0.25)
    assert model.field.tolist() == [0.25] * n
    scopes = sorted((scope for scope in model.terms if len(scope) > 1), key=lambda scope: scope[-1])
    seen = {0} if n else set()
    for k, scope in enumerate(scopes):
        assert len(scope) == p or k == len(scopes) - 1
        assert len(seen & set(scope)) == 1
        seen |= set(scope)
    assert seen == set(range(n))
    if n > 1:
        assert sz.log_z(sz.Polynomial({**model.terms, (0,): 0.3}, n=n), "bp").kind is sz.Kind.EXACT


def test_the_spins_that_new_terms_join_are_drawn_from_all_before():
    draws = 500
    joined = Counter(scope[0] for s in range(draws) for scope in sz.generators.hypertree(7, seed=s).terms if 6 in scope)
    assert set(joined) == set(range(5))
    assert sum((joined[i] - draws / 5) ** 2 / (draws / 5) for i in range(5)) < 4 + 4 * math.sqrt(8)


@pytest.mark.parametrize("shape", [(0, 0), (1, 5), (2, 2), (3, 4), (5, 3)])
def test_plaquettes_are_the_squares_of_the_lattice(shape):
    rows, columns = shape
    model = sz.generators.plaquettes(rows, columns, 0.5, seed=1, couplings="bimodal", field=-0.125)
    wanted = {
        tuple(sorted((r + a) * columns + c + b for a in (0, 1) for b in (0, 1)))
        for r in range(rows - 1)
        for c in range(columns - 1)
    }
    assert set(model.higher.scopes()) == wanted
    assert set(np.abs(model.higher.weight).tolist()) <= {0.5}
    assert model.field.tolist() == [-0.125] * (rows * columns)
    assert not model.edge_count


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_planted_state_satisfies_all_equations(size):
    strength, equations = 2.0, 9
    planted = sz.generators.parity(9, equations, size, strength, seed=size, planted=True)
    best = max(planted.log_weight(states.all_states(9)))
    assert best == strength * equations
    assert set(map(abs, planted.terms.values())) == {strength}
    assert Counter(map(len, planted.terms)) == {size: equations}
    signs = [c for seed in range(50) for c in sz.generators.parity(9, equations, size, 1.0, seed).terms.values()]
    assert abs(np.mean(signs)) < 4 / math.sqrt(len(signs))
    overfull = sz.generators.parity(9, 9, 1 + size % 3, strength, seed=size)
    assert max(overfull.log_weight(states.all_states(9))) <= strength * 9


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("p-spin", {"n": 5, "p": 0}, "p is 0; terms have 1 spin or more"),
        ("p-spin", {"n": 5, "terms": 11}, "terms is 11; there are 10 sets of 3 of 5 spins"),
        ("p-spin", {"n": 5, "terms": 2.5}, "terms is 2.5"),
        ("p-spin", {"n": 5, "strength": -1}, "strength is -1.0; it cannot be negative"),
        ("hypertree", {"n": 5, "p": 1}, "p is 1; terms have 2 spins or more"),
        ("hypertree", {"n": 5, "field": "up"}, "field is 'up'"),
        ("plaquettes", {"rows": 5, "columns": -1}, "columns is -1"),
        ("plaquettes", {"rows": 5, "columns": 5, "couplings": "cauchy"}, "'bimodal'"),
        ("parity", {"n": 2, "equations": 1}, "there are 0 sets of 3 of 2 spins"),
        ("parity", {"n": 5, "equations": 1, "planted": "yes"}, "True or False"),
        ("parity", {"n": 5, "equations": 1, "seed": -1}, "seed is -1"),
    ],
)
def test_bad_parameters(name, options, message):
    with pytest.raises(OptionError, match=message):
        sz.generators.GENERATORS[name](**options)


# ------------------------------------------------------------------------------------------------------ closed forms


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    terms=st.integers(0, 18),
    scale=st.sampled_from([1e-300, 1e-8, 0.3, 1.0, 5.0, 30.0, 1e3, 1e150]),
)
@settings(max_examples=200)
def test_dependent_equations_against_all_states(seed, n, terms, scale):
    rng = np.random.default_rng(seed)
    equal = rng.random() < 0.5  # then cancellation is complete at low temperature
    weights = {
        tuple(rng.choice(n, size, replace=False).tolist()): scale
        * (rng.choice([-1.0, 1.0]) if equal else rng.normal() * 10.0 ** rng.uniform(-2, 2))
        for size in rng.integers(1, n + 1, terms)
    }
    model = sz.Polynomial(weights, n=n, offset=-0.75)
    assert_close(parities(model), states.log_z(model), sum(map(abs, model.terms.values())))


@given(model=models(max_spins=6))
@settings(max_examples=50)
def test_ising_models_against_all_states(model):
    size = float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum()) + abs(model.constant)
    assert_close(parities(model), states.log_z(model), size)


@pytest.mark.parametrize("c", [1e-300, 1e-3, 0.5, 3.0, 18.0, 19.0, 20.0, 300.0, 1e4, 1e200])
@pytest.mark.parametrize("copies", [1, 3])
def test_contradictions_keep_their_digits_where_tanh_is_one(c, copies):
    """A frustrated triangle, several times: 1 - tanh(c)^3 to the power of their number is lost in the sum itself."""
    terms = {}
    for k in range(copies):
        terms |= {(3 * k, 3 * k + 1): c, (3 * k + 1, 3 * k + 2): c, (3 * k, 3 * k + 2): -c}
    model = sz.Polynomial(terms)
    wanted = copies * (c + math.log(6.0) + math.log1p(math.exp(-4.0 * c) / 3.0))
    assert_close(parities(model), wanted)


@pytest.mark.parametrize(("side", "K"), [(3, 0.4), (4, 0.44), (4, 1e-5), (4, 20.0)])
def test_a_torus_has_kaufmans_value(side, K):
    assert_close(parities(sz.generators.torus(side, side, K)), reference.ferromagnet_on_torus(side, K))


def test_chains_in_fields_and_equal_couplings():
    rng = np.random.default_rng(0)
    field, J = rng.normal(size=12), rng.normal(size=11)
    chain = sz.Ising.from_edges(12, [(i, i + 1) for i in range(11)], J, field)
    assert_close(parities(chain), reference.chain(field, J))
    assert_close(parities(sz.generators.curie_weiss(6, 1.2, 0.3)), reference.curie_weiss(6, 1.2, 0.3))


@pytest.mark.parametrize("strength", [0.1, 1.0, 400.0])
def test_closed_forms_of_generators_against_all_states(strength):
    for seed in range(3):
        for name, parameters in (
            ("hypertree", {"n": 10, "p": 4, "field": 0.3}),
            ("plaquettes", {"rows": 3, "columns": 3, "field": -0.7}),
            ("parity", {"n": 9, "equations": 14}),
            ("parity", {"n": 9, "equations": 20, "size": 4, "planted": True}),
        ):
            given_ = {**parameters, "strength": strength, "seed": seed}
            model = sz.generators.GENERATORS[name](**given_)
            found = sz.closed_forms.CLOSED_FORMS[name](**given_)
            assert_close(found, states.log_z(model), sum(map(abs, model.terms.values())))


@pytest.mark.parametrize("name", ["hypertree", "plaquettes"])
def test_without_fields_the_terms_are_independent(name):
    parameters = {"n": 3001, "p": 5} if name == "hypertree" else {"rows": 40, "columns": 50}
    model = sz.generators.GENERATORS[name](**parameters, seed=5)
    wanted = model.n * math.log(2.0) + math.fsum(math.log(math.cosh(c)) for c in model.terms.values())
    assert_close(sz.closed_forms.CLOSED_FORMS[name](**parameters, seed=5), wanted)


def test_many_equations_with_a_few_dependencies():
    """Blocks of equations, each against all states, add up; the spins are shuffled."""
    rng = np.random.default_rng(2)
    terms, wanted = {}, 0.0
    for block in range(12):
        part = sz.generators.parity(8, 9, seed=block, strength=0.8)
        wanted += float(states.log_z(part))
        terms |= {tuple(8 * block + i for i in scope): c for scope, c in part.terms.items()}
    order = rng.permutation(96)
    shuffled = sz.Polynomial({tuple(int(order[i]) for i in scope): c for scope, c in terms.items()})
    assert_close(parities(shuffled), wanted)


def test_dependencies_are_a_basis_and_independent_equations_are_taken_out():
    rng = np.random.default_rng(4)
    for _ in range(30):
        n, m = 6, int(rng.integers(1, 12))
        scopes = [tuple(np.flatnonzero(rng.random(n) < 0.5).tolist()) or (0,) for _ in range(m)]
        even = [
            S
            for S in range(1 << m)
            if all(sum(S >> a & 1 for a, scope in enumerate(scopes) if i in scope) % 2 == 0 for i in range(n))
        ]
        basis = _dependencies(scopes)
        sums = {0}
        for S in basis:
            sums |= {S ^ other for other in sums}
        assert sorted(sums) == even
        assert len(sums) == 1 << len(basis)
        core = _core(n, scopes)
        used = {a for S in even for a in range(m) if S >> a & 1}
        assert used <= set(core)
        for i in range(n):
            assert sum(i in scopes[a] for a in core) != 1


def test_too_many_dependencies_are_refused():
    with pytest.raises(TooLargeError, match=r"the 55 terms have 45 independent dependencies.* up to 2\^20"):
        parities(sz.generators.complete(10, 1.0, seed=0))
    assert parities(sz.Polynomial({}, n=3, offset=0.5)) == 0.5 + 3 * math.log(2.0)
    assert parities(sz.Polynomial({}, n=0)) == 0.0

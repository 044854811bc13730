"""The heaviest state of models with constraints and of codes: what messages decode is kept, whatever the budget."""

import itertools
import warnings

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import clause, exactly_one, parity
from spectralz.inference.decoding import _states_of


def code(bits, is_hard, *, has_channel=True, seed=0):
    """A code of checks of six bits; the word of ones is sent, at 3 dB."""
    rng = np.random.default_rng(seed)
    checks = [rng.choice(bits, 6, replace=False).tolist() for _ in range(bits // 2)]
    field = (1.0 + 0.7 * rng.normal(size=bits)) / 0.49 if has_channel else np.zeros(bits)
    if is_hard:
        return sz.Ising(field).with_constraints(*(parity(check) for check in checks))
    terms = {(i,): float(h) for i, h in enumerate(field)}
    return sz.Polynomial(terms | {tuple(sorted(check)): 10.0 for check in checks}, n=bits)


@pytest.mark.parametrize("is_hard", [True, False])
def test_no_budget_finds_less_than_a_smaller_one(is_hard):
    model = code(60, is_hard)
    found = [sz.map_state(model, "search", work=work).log_weight for work in (1e8, 4e8)]
    assert found == sorted(found)
    assert found[0] >= float(model.log_weight(np.ones(60))) - 1e-9


@pytest.mark.parametrize("bits", [240, 1000])
def test_codes_are_decoded(bits):
    model = code(bits, is_hard=True)
    found = sz.map_state(model, work=5e5 * bits)
    assert model.constraints.hold(found.states).all()
    assert found.log_weight >= float(model.log_weight(np.ones(bits))) - 1e-9
    silent = code(bits, is_hard=True, has_channel=False)
    assert sz.map_state(silent, work=1e8).log_weight == 0.0


def rank_of(scopes, n):
    """The rank over two elements of the matrix of some sets of spins, column by column."""
    matrix, rank = np.zeros((len(scopes), n), dtype=bool), 0
    for row, scope in enumerate(scopes):
        matrix[row, scope] = True
    for column in range(n):
        ones = np.flatnonzero(matrix[rank:, column]) + rank
        if len(ones):
            matrix[[rank, ones[0]]] = matrix[[ones[0], rank]]
            others = np.flatnonzero(matrix[:, column])
            matrix[others[others != rank]] ^= matrix[rank]
            rank += 1
    return rank


@pytest.mark.slow
@pytest.mark.parametrize("bits", [240, 1000])
def test_codes_with_and_without_a_channel(bits):
    silent = code(bits, is_hard=True, has_channel=False)
    free = bits - rank_of([list(check.scope) for check in silent.constraints], bits)
    assert sz.count(silent).value == 2**free
    assert sz.log_z(silent).log_z == pytest.approx(free * np.log(2.0), abs=1e-9)
    model = code(bits, is_hard=True)
    heaviest = [sz.map_state(model, work=work).log_weight for work in (3e8, 1e9, 3e9)]
    assert heaviest == sorted(heaviest)
    assert heaviest[0] >= float(model.log_weight(np.ones((1, bits)))[0]) - 1e-9
    bounds = sz.bounds(model, work=1e9)
    assert bounds.upper >= heaviest[-1]
    with warnings.catch_warnings(action="ignore", category=sz.errors.InaccurateWarning):
        found = sz.log_z(model, work=3e9)
    assert not found.trusted or found.log_z >= heaviest[-1] - 5.0 * found.std_error


def test_parities_come_before_signs():
    model = sz.Ising([2.0, 1.0, -0.5]).with_constraints(parity([0, 1, 2], 1))
    signs, ordered = _states_of(model, model.field)
    assert signs.tolist() == [1, 1, -1]
    assert ordered.tolist() == [1, 1, 1]  # the least sure sign is given up


@pytest.mark.parametrize("strength", [0.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_the_heaviest_allowed_state(seed, strength):
    """Couplings of 30 gain far more than what many constraints alone would need as penalties."""
    rng = np.random.default_rng(seed)
    constraints = [
        clause({i: int(rng.choice([-1, 1])) for i in rng.choice(12, 3, replace=False).tolist()}) for _ in range(20)
    ]
    model = sz.generators.complete(n=12, strength=strength, seed=seed) + sz.Ising(rng.normal(size=12))
    model = model.with_constraints(*constraints, exactly_one([0, 1, 2]))
    x = np.array(list(itertools.product([-1, 1], repeat=12)), dtype=np.int8)
    heaviest = float(model.log_weight(x).max())
    found = sz.map_state(model, "search", work=3e7)
    assert found.log_weight == pytest.approx(heaviest)
    assert found.upper >= heaviest - 1e-9


def test_the_answer_says_that_no_state_was_found():
    both = [clause({i: a, j: b}) for i, j in ((0, 1), (1, 2)) for a in (-1, 1) for b in (-1, 1)]
    model = sz.Ising(np.ones(16)).with_constraints(*both, clause({4: 1, 5: 1, 6: 1}))
    try:
        found = sz.map_state(model, "search", work=1e8)
    except sz.errors.ModelError as error:  # if presolving sees it first
        assert "no state satisfies" in str(error)
    else:
        assert found.log_weight == -np.inf
        assert "no state was found" in str(found.status)

"""Terms of thousands of spins cost no more than their spins, or are refused before any table is made."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import TooLargeError


def wide(n: int) -> tuple[sz.Polynomial, float]:
    """Return one term of all n spins beside a field on the first of them, and its log Z."""
    model = sz.Polynomial({tuple(range(n)): 1.0, (0,): 0.5})
    return model, n * math.log(2.0) + math.log(math.cosh(1.0) * math.cosh(0.5))


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("n", [64, 65, 1025, 3000])
def test_log_z_of_a_wide_term(n):
    model, truth = wide(n)
    found = sz.log_z(model, work=3e8, seed=1)
    assert abs(found.log_z - truth) < 5.0 * found.std_error
    assert found.std_error < 0.2
    bounds = sz.bounds(model, work=3e8)
    assert bounds.lower <= truth <= bounds.upper


def test_the_heaviest_state_of_a_wide_term():
    found = sz.map_state(wide(3000)[0], work=3e8)
    assert found.log_weight == 1.5
    assert found.states[0].prod() == 1
    assert found.states[0][0] == 1


def test_components_of_wide_terms():
    model = sz.Polynomial({tuple(range(0, 200_000, 2)): 1.0, (1, 3): 0.5, (5, 7, 9): 0.1, (7, 200_001): 1.0})
    sizes = [len(spins) for spins in model.components()]
    assert sizes[:3] == [100_000, 2, 4]
    assert set(sizes[3:]) == {1}
    assert sum(sizes) == model.n


@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_the_graph_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    scopes = {tuple(sorted(rng.choice(40, rng.integers(2, 6), replace=False).tolist())): 1.0 for _ in range(9)}
    model = sz.Polynomial(scopes, n=40)
    assert [c.tolist() for c in model.components()] == [c.tolist() for c in model.connections.components()]


@pytest.mark.parametrize("n", [3000, 20_000])
def test_tables_of_wide_terms_are_refused(n):
    with pytest.raises(TooLargeError, match=f"a table over at least {n - 1} spins"):
        sz.log_z(wide(n)[0], "exact")


def test_lists_of_all_pairs_of_a_very_wide_term_are_refused():
    with pytest.raises(TooLargeError, match="ask for annealing"):
        wide(20_000)[0].connections  # noqa: B018


def independent_terms(rng: np.random.Generator) -> tuple[sz.Polynomial, np.ndarray, float]:
    """Return terms of up to 3,000 spins, each with a spin of its own, with their weights, and log Z.

    Products of spins that are independent modulo two are independent coins.
    """
    number = int(rng.integers(1, 6))
    n = number + int(rng.integers(0, 3000))
    weights = rng.normal(size=number) * rng.choice([0.1, 1.0, 5.0])
    terms = {}
    for k, weight in enumerate(weights.tolist()):
        others = rng.choice(n - number, int(rng.integers(0, min(n - number, 2999) + 1)), replace=False) + number
        terms[k, *sorted(others.tolist())] = weight
    return sz.Polynomial(terms, n=n), weights, n * math.log(2.0) + float(np.log(np.cosh(weights)).sum())


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_terms_of_any_width(seed):
    rng = np.random.default_rng(seed)
    model, weights, truth = independent_terms(rng)
    states = rng.choice(np.array([-1, 1], dtype=np.int8), (3, model.n))
    by_hand = [sum(w * states[r, list(t)].prod() for t, w in model.terms.items()) for r in range(3)]
    assert model.log_weight(states) == pytest.approx(by_hand, abs=1e-9)
    bounds = sz.bounds(model, work=3e7)
    assert bounds.lower <= truth + 1e-9
    assert bounds.upper >= truth - 1e-9
    best = sz.map_state(model, work=1e8, seed=seed)
    assert best.log_weight <= np.abs(weights).sum() + 1e-9
    assert model.log_weight(best.states[0]) == pytest.approx(best.log_weight)
    found = sz.log_z(model, work=1e8, seed=seed)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert not found.trusted or abs(found.log_z - truth) < 5.0 * (found.std_error or 1e-9)
    given = {int(i): int(s) for i, s in enumerate(states[0]) if i >= len(weights)}
    left = sz.log_z(model.condition(given))  # each term has one spin left
    assert left.log_z == pytest.approx(len(weights) * math.log(2.0) + float(np.log(np.cosh(weights)).sum()))

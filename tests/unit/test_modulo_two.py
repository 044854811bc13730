"""Linear algebra over two elements, compared with all vectors."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz.sampling.symmetries import bits_of, eliminated, equations_of, null_space, satisfied

SEEDS = range(60)


def some_equations(seed):
    """Return equations of up to eight spins, with signs, some of them dependent or contradictory."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    return n, rng.integers(2 ** (n + 1), size=int(rng.integers(0, n + 3))).tolist()


def holds(row, state):
    """Return whether a state, whose bits are shifted by one, has the parity that an equation asks for."""
    return ((row >> 1) & (state >> 1)).bit_count() % 2 == row & 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_null_space_is_that_of_enumeration(seed):
    n, rows = some_equations(seed)
    literal = {v for v in range(2**n) if all((v & row >> 1).bit_count() % 2 == 0 for row in rows)}
    basis = [sum(int(bit) << i for i, bit in enumerate(vector)) for vector in null_space(rows, n)]
    spanned = {0}
    for vector in basis:
        spanned |= {other ^ vector for other in spanned}
    assert spanned == literal
    assert len(spanned) == 2 ** len(basis)  # and so they are independent


@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_equations_are_satisfied_as_do_not_contradict_earlier_ones(seed):
    n, rows = some_equations(seed)
    start = int(np.random.default_rng([seed, 1]).integers(2**n)) << 1
    end = satisfied(eliminated(rows, n), start)
    possible = set(range(2**n))
    for row in rows:
        left = {v for v in possible if holds(row, v << 1)}
        possible = left or possible
    assert end >> 1 in possible
    pivots = eliminated(rows, n)
    assert ((start ^ end) & ~sum(1 << top for top in pivots)) >> 1 == 0  # spins that no equation needs stay


def test_equations_say_nothing_or_everything():
    assert [vector.tolist() for vector in null_space([], 2)] == [[True, False], [False, True]]
    assert len(null_space([0, 1], 2)) == 2
    assert null_space([2, 4, 8], 3) == []
    assert eliminated([1, 0, 1], 2) == {}


def test_the_equations_of_a_model_are_those_of_its_fields_pairs_and_terms():
    model = sz.Polynomial({(0,): -1.0, (1, 3): 0.5, (0, 2, 3): -0.2}, n=4)
    rows, weights = equations_of(model)
    assert rows == [0b00011, 0b10100, 0b11011]
    assert weights.tolist() == [-1.0, 0.5, -0.2]
    assert bits_of(0b10100, 4).tolist() == [False, True, False, True]

"""States that satisfy terms: a term is a parity, and which spins give it the right sign is linear algebra modulo 2.

If terms are not frustrated, all of them have the right sign in such a state. Below a first-order transition it holds
nearly all of Z, and neither cooling nor quenches find it, as long as spins know nothing of their parities (XOR-SAT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import Polynomial

# Words of 64 bits that are added modulo 2 at most: about a second.
MOST_WORDS = 5e8


def satisfying_states(model: Polynomial, starts: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """Return states in which the terms of a model have the right signs, strong ones first; none if that takes long.

    A term that contradicts those before it is left out. Equally strong ones come in an order of its own for each row of
    ``starts``: where not all can be satisfied, there are as many phases as ways to leave one out. Spins that the terms
    leave free are as in ``starts``.
    """
    terms = list(model.terms.items())
    words = -(-model.n // 64)
    operations = float(min(model.n, len(terms)) * len(terms) * words)
    if len(starts) * operations > MOST_WORDS:
        return np.empty((0, model.n), dtype=np.int8)
    clock.charge(len(starts) * operations)
    return np.array([_satisfying(terms, x, rng) for x in starts], dtype=np.int8).reshape(starts.shape)


def _satisfying(
    terms: Sequence[tuple[tuple[int, ...], float]], x: NDArray[np.int8], rng: np.random.Generator
) -> NDArray[np.int8]:
    n = len(x)
    rows, is_odd = np.zeros((len(terms), -(-n // 64)), dtype=np.uint64), np.zeros(len(terms), dtype=np.bool_)
    sizes = -np.abs([weight for _, weight in terms])
    for k, number in enumerate(np.lexsort((rng.random(len(terms)), sizes)).tolist()):
        scope, weight = terms[number]
        is_odd[k] = weight < 0.0
        for i in scope:
            rows[k, i // 64] |= np.uint64(1 << i % 64)
    x = x.copy()
    for k, pivot in reversed(_eliminated(rows, is_odd, n)):  # a row has no pivot of those before it
        bits = np.unpackbits(rows[k].astype("<u8").view(np.uint8), bitorder="little", count=n).astype(np.bool_)
        bits[pivot] = False
        x[pivot] = np.prod(x[bits], dtype=np.int8) * (-1 if is_odd[k] else 1)
    return x


def _eliminated(rows: NDArray[np.uint64], is_odd: NDArray[np.bool_], n: int) -> list[tuple[int, int]]:
    """Remove from each row the pivots of rows before it, in place; return the rows that are left, and their pivots."""
    pivots: list[tuple[int, int]] = []
    for k in range(len(rows)):
        places = np.flatnonzero(rows[k])
        if not len(places):
            continue
        word = int(places[0])
        bit = int(rows[k, word]).bit_length() - 1
        pivots.append((k, 64 * word + bit))
        if len(pivots) == n:
            break
        later = k + 1 + np.flatnonzero(rows[k + 1 :, word] >> np.uint64(bit) & np.uint64(1))
        rows[later] ^= rows[k]
        is_odd[later] ^= is_odd[k]
    return pivots

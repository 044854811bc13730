"""States that satisfy terms: a term is a parity, and which spins give it the right sign is linear algebra modulo 2.

If terms are not frustrated, all of them have the right sign in such a state. Below a first-order transition it holds
nearly all of Z, and neither cooling nor quenches find it, as long as spins know nothing of their parities (XOR-SAT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Polynomial

# Words of 64 bits that are added modulo 2 at most: about a second.
MOST_WORDS = 5e8


def satisfying_states(model: Polynomial, starts: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """Return states in which the terms of a model have the right signs, strong ones first; none if that takes long.

    A term that contradicts those before it is left out. Equally strong ones come in an order of its own for each row of
    ``starts``: where not all can be satisfied, there are as many phases as ways to leave one out. Spins that the terms
    leave free are as in ``starts``.
    """
    weights, members = _equations(model)
    rows = np.packbits(members, axis=1, bitorder="little").view("<u8")
    operations = float(min(members.shape) * rows.size)
    if len(starts) * operations > MOST_WORDS:
        return np.empty((0, model.n), dtype=np.int8)
    clock.charge(len(starts) * operations)
    ends = starts.copy()
    for x in ends:
        order = np.lexsort((rng.random(len(weights)), -np.abs(weights)))
        _satisfy(rows[order], weights[order] < 0.0, x)
    return ends


def _equations(model: Polynomial) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the weights of all terms, and which spins are in each; the number of columns is a multiple of 64."""
    (edges, J), higher, held = model.edges(), model.higher, np.flatnonzero(model.field)
    weights = np.concatenate([model.field[held], J, higher.weight])
    members = np.zeros((len(weights), -(-model.n // 64) * 64), dtype=np.bool_)
    members[np.arange(len(held)), held] = True
    members[np.arange(len(held), len(held) + len(edges))[:, None], edges] = True
    members[len(held) + len(edges) + higher.term_of_spin(), higher.spin] = True
    return weights, members


def _satisfy(rows: NDArray[np.uint64], is_odd: NDArray[np.bool_], x: NDArray[np.int8]) -> None:
    """Let a state satisfy as many equations as are independent, the first ones first, in place."""
    n = len(x)
    for k, pivot in reversed(_eliminated(rows, is_odd, n)):  # a row has no pivot of those before it
        bits = np.unpackbits(rows[k].view(np.uint8), bitorder="little", count=n).astype(np.bool_)
        bits[pivot] = False
        x[pivot] = np.prod(x[bits], dtype=np.int8) * (-1 if is_odd[k] else 1)


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

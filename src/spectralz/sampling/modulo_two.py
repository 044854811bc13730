"""Linear algebra over two elements: which states turn without a change of weight, and which satisfy terms.

An equation is an integer: its bit 0 says whether the number of spins -1 in it is odd, bit i + 1 whether it has spin i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model


def equations_of(model: Model) -> tuple[list[int], FloatArray]:
    """Return an equation for each field, pair and term that a state can satisfy, and their weights."""
    (edges, J), higher, held = model.edges(), model.higher, np.flatnonzero(model.field)
    weights = np.concatenate([model.field[held], J, higher.weight])
    scopes = [*held[:, None].tolist(), *edges.tolist(), *higher.scopes()]
    rows = [sum(2 << i for i in scope) + (w < 0.0) for scope, w in zip(scopes, weights.tolist(), strict=True)]
    counts = weights != 0.0
    return [row for row, is_there in zip(rows, counts, strict=True) if is_there], weights[counts]


def eliminated(rows: Iterable[int], n: int) -> dict[int, int]:
    """Return independent equations by their highest bits; one that contradicts those before it is left out."""
    pivots: dict[int, int] = {}
    for row in rows:
        left = row
        while (top := left.bit_length() - 1) in pivots:
            left ^= pivots[top]
        if left > 1:
            pivots[top] = left
            if len(pivots) == n:
                break
    return pivots


def satisfied(pivots: dict[int, int], state: int) -> int:
    """Return a state, whose spin i is -1 where bit i + 1 is set, with the pivots changed to satisfy all equations."""
    for top in sorted(pivots):
        others = pivots[top] ^ (1 << top)
        is_odd = (others & (state | 1)).bit_count() & 1
        state = (state & ~(1 << top)) | is_odd << top
    return state


def null_space(rows: Iterable[int], n: int) -> list[NDArray[np.bool_]]:
    """Return sets of spins that generate all those with an even number of spins in each equation."""
    pivots = eliminated((row & ~1 for row in rows), n)
    return [bits_of(satisfied(pivots, 1 << k), n) for k in range(1, n + 1) if k not in pivots]


def bits_of(state: int, n: int) -> NDArray[np.bool_]:
    """Return which spins of a state are -1."""
    return np.array([state >> i & 1 for i in range(1, n + 1)], dtype=np.bool_)

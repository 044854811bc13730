"""Symmetries: sets of spins that can be turned together without any change of a state's weight.

Such a set has an even number of spins in common with every field, pair and term. These sets are the null space of the
matrix of terms x spins over two elements: all spins of a model without fields, each component, and more with terms.

Linear algebra over two elements also finds states that satisfy terms. An equation is an integer: its bit 0 says whether
the number of spins -1 in it is odd, bit i + 1 whether it has spin i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spectralz._support import clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model

# Sets that are used: 2^6 images of a state. Beyond these numbers of spins and terms, terms have no symmetries here.
MOST_SETS, MOST_SPINS, MOST_TERMS = 6, 2000, 100_000


def images_of(model: Model) -> NDArray[np.int8]:
    """Return which spins each image turns, as -1, one image per row; the first one turns none."""
    images = np.ones((1, model.n), dtype=np.int8)
    for turned in symmetric_sets(model)[:MOST_SETS]:
        images = np.concatenate([images, images * np.where(turned, -1, 1).astype(np.int8)])
    return images


def symmetric_sets(model: Model) -> list[NDArray[np.bool_]]:
    """Return sets of spins that generate the symmetries of a model, the largest first; none with constraints."""
    if model.constraints:
        return []
    if model.higher.number:
        if model.n > MOST_SPINS or model.higher.number + model.edge_count > MOST_TERMS:
            return []
        rows, _ = equations_of(model)
        clock.charge(float(len(rows) * model.n))
        return sorted(null_space(rows, model.n), key=lambda turned: -int(turned.sum()))
    member = _components(model)
    has_field = np.bincount(member, weights=model.field != 0.0) > 0.0
    sizes = np.bincount(member)
    # Spins on their own are drawn anew by every sweep.
    free = [k for k in np.argsort(-sizes, kind="stable") if not has_field[k] and sizes[k] > 1][:MOST_SETS]
    return [member == k for k in free]


def _components(model: Model) -> NDArray[np.int64]:
    """Return the number of each spin's component; pairs that are kept with a weight of 0 connect nothing."""
    if not model.storage.is_sparse:
        return model.storage.component_labels()
    edges, weight = model.edges()
    edges = edges[weight != 0.0]
    graph = sp.coo_array((np.ones(len(edges)), edges.T), shape=(model.n, model.n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


# ---------------------------------------------------------------------------------- linear algebra over two elements


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

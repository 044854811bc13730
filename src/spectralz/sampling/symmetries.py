"""Symmetries: sets of spins that can be turned together without any change of a state's weight.

Such a set has an even number of spins in common with every field, pair and term. These sets are the null space of the
matrix of terms x spins over two elements: all spins of a model without fields, each component, and more with terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spectralz._support import clock
from spectralz.sampling.modulo_two import equations_of, null_space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import Model

# Sets that are used: 2^6 images of a state. Beyond these numbers of spins and terms, terms have no symmetries here.
MOST_SETS, MOST_SPINS, MOST_TERMS = 6, 2000, 100_000


def images_of(model: Model) -> NDArray[np.int8]:
    """Return which spins each image turns, as -1, one image per row; the first one turns none."""
    images = np.ones((1, model.n), dtype=np.int8)
    for turned in symmetric_sets(model)[:MOST_SETS]:
        images = np.concatenate([images, images * np.where(turned, -1, 1).astype(np.int8)])
    return images


def symmetric_sets(model: Model) -> list[NDArray[np.bool_]]:
    """Return sets of spins that generate the symmetries of a model, the largest first."""
    if model.higher.number:
        return _of_terms(model)
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


def _of_terms(model: Model) -> list[NDArray[np.bool_]]:
    if model.n > MOST_SPINS or model.higher.number + model.edge_count > MOST_TERMS:
        return []
    rows, _ = equations_of(model)
    clock.charge(float(len(rows) * model.n))
    return sorted(null_space(rows, model.n), key=lambda turned: -int(turned.sum()))

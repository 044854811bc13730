"""The graph of a planar model, made ready to be summed over: drawn without crossings, and an order of merging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from spectralz._support.extras import from_extra
from spectralz._support.progress import report
from spectralz.errors import ModelError

if TYPE_CHECKING:
    from spectralz.kernels.planar.cities import Cities
    from spectralz.kernels.planar.dissection import Merges
    from spectralz.model import FloatArray, IntArray, Ising

# Before all of a large graph is drawn, so many spins near each other are.
SPINS_NEAR = 4000
NOT_PLANAR = (
    "planar needs a graph that can be drawn in the plane without crossings, {0}, and this one cannot be. "
    'Ask for method "auto"'
)
WITH_FIELDS = (
    "with one more spin that is coupled to all spins with a field (fields are possible along one face, or on one spin)"
)


@dataclass(frozen=True)
class PlanarGraph:
    """The graph of a planar model, with fields as couplings to one more spin.

    Attributes
    ----------
    spins
        The number of spins, the one for fields included.
    has_fields
        Whether there is such a spin, the last one.
    edges
        The pairs of spins: those of the model, then those of fields.
    pieces
        The number of components.
    cities, merges
        Its faces, and the order in which they are merged.
    """

    spins: int
    has_fields: bool
    edges: IntArray
    pieces: int
    cities: Cities
    merges: Merges


def couplings_of(model: Ising) -> FloatArray:
    """Return the couplings of the edges of a model's :class:`PlanarGraph`."""
    return np.concatenate([model.edges()[1], model.field[model.field != 0.0]])


def has_few_edges(model: Ising) -> bool:
    """Return whether a model has no more edges than planar graphs can have."""
    biased = int(np.count_nonzero(model.field))
    return model.edge_count + biased <= max(3 * (model.n + (biased > 0)) - 6, 1)


def planar_graph(model: Ising) -> PlanarGraph:
    """Draw the graph of a model in the plane, or raise a ModelError that says why it cannot be.

    Examples
    --------
    >>> import spectralz as sz
    >>> graph = planar_graph(sz.generators.square(3, 3, strength=1.0, seed=0))
    >>> graph.pieces, len(graph.cities.start) - 1
    (1, 8)
    """
    from spectralz.kernels.planar.cities import cities_of
    from spectralz.kernels.planar.dissection import merges_of

    if model.constraints:
        raise ModelError('planar takes no constraints. Ask for method "auto"')
    biased = np.flatnonzero(model.field)
    spins = model.n + bool(len(biased))
    refusal = NOT_PLANAR.format(WITH_FIELDS if len(biased) else "without fields")
    if not has_few_edges(model):
        raise ModelError(refusal)
    edges = np.concatenate([model.edges()[0], np.column_stack([biased, np.full(len(biased), model.n)])])
    matrix = sp.csr_array((np.ones(len(edges)), edges.T), shape=(spins, spins))
    if spins > 2 * SPINS_NEAR:
        near = np.zeros(spins, dtype=bool)
        near[breadth_first_order(matrix, 0, directed=False, return_predecessors=False)[:SPINS_NEAR]] = True
        if _following(edges[near[edges].all(axis=1)]) is None:
            raise ModelError(refusal)
    report("drawing the graph in the plane", 0.0)
    following = _following(edges)
    if following is None:
        raise ModelError(refusal)
    cities = cities_of(edges.ravel(), following, spins)
    merges = merges_of(cities, len(edges), spins, model.n)
    pieces = int(connected_components(matrix, directed=False, return_labels=False))
    return PlanarGraph(spins, bool(len(biased)), edges, pieces, cities, merges)


def _following(edges: IntArray) -> IntArray | None:
    """Return the half-edge after each one on the walk along its face, or None if the graph is not planar."""
    networkx = from_extra("networkx", "networkx", "method 'planar'")
    pairs = edges.tolist()
    is_planar, drawn = networkx.check_planarity(networkx.Graph(pairs))
    if not is_planar:
        return None
    half = {(i, j): 2 * e for e, (i, j) in enumerate(pairs)} | {(j, i): 2 * e + 1 for e, (i, j) in enumerate(pairs)}
    following = np.empty(2 * len(pairs), dtype=np.int64)
    for (i, j), h in half.items():
        following[h] = half[drawn.next_face_half_edge(i, j)]
    return following

"""Linear orders with a small frontier; uses the graph only, not the weights.

The spins are added in a linear order. The *frontier* is the set of added spins that still have a neighbor to come. It
is never smaller than the separators of a good elimination tree, but a table over it can be stored in several ways: as
its heaviest states, or as a matrix product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels.elimination.order import banded, distances
from spectralz.kernels.elimination.tree import separators_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import IntArray
    from spectralz.kernels.elimination.tree import Adjacency, Order


def frontier_sizes(order: Sequence[int], edges: IntArray) -> IntArray:
    """Return how many spins are in the frontier after each step.

    Examples
    --------
    >>> frontier_sizes([0, 1, 2, 3], np.array([[0, 1], [1, 2], [0, 3]])).tolist()
    [1, 2, 1, 0]
    """
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[list(order)] = np.arange(n)
    last = place.copy()  # of a spin and its neighbors
    np.maximum.at(last, edges, place[edges[:, ::-1]])
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, place, 1)
    np.add.at(change, last, -1)
    return np.cumsum(change[:n])


def sweep_order(components: Sequence[Sequence[int]], adjacency: Adjacency) -> list[int]:
    """Return the spins in an order of small frontier, one component after the other.

    Several orders are tried: the spins as they are numbered, which is row by row for most lattices; by coordinates from
    the distances to two corners, which is row by row for a grid with any numbering; and a front swept through the
    graph. The order whose largest frontier is smallest is taken; ties go to the smallest mean frontier.
    """
    order: list[int] = []
    for spins in components:
        order += _order_of_component(list(spins), adjacency)
    return order


def swept(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Eliminate along the best of several directions; None if a separator grows beyond ``max_width``.

    A moving front is left to :func:`banded`.
    """
    order = _order_of_component(list(spins), adjacency, has_front=False)
    widths = [len(separator) for separator in separators_of(order, adjacency)[0]]
    return None if max(widths) > max_width else (order, sum(1 << width for width in widths))


def _order_of_component(spins: list[int], adjacency: Adjacency, *, has_front: bool = True) -> list[int]:
    if len(spins) < 3:
        return spins
    number = {v: k for k, v in enumerate(spins)}
    edges = np.array([(number[u], number[v]) for u in spins for v in adjacency[u] if u < v], dtype=np.int64)
    orders = [sorted(spins), *_by_distances(spins, adjacency)]
    front = banded(spins, adjacency, len(spins)) if has_front else None
    if front is not None:
        orders.append(front[0])

    def cost(order: list[int]) -> tuple[int, float]:
        sizes = frontier_sizes([number[v] for v in order], edges)
        return int(sizes.max()), float(sizes.mean())

    return min(orders, key=cost)


def _by_distances(spins: list[int], adjacency: Adjacency) -> list[list[int]]:
    """Sort by distances from a corner: alone, and added to and subtracted from those of a corner next to it."""
    first = min(_farthest(spins, spins[0], adjacency), key=lambda v: len(adjacency[v]))
    from_first = distances(first, adjacency)
    opposite = min(_farthest(spins, first, adjacency), key=lambda v: len(adjacency[v]))
    from_opposite = distances(opposite, adjacency)
    nearer = {v: min(from_first[v], from_opposite[v]) for v in spins}
    # Spins halfway between the two ends; among them a corner has the fewest neighbors.
    beside = min(spins, key=lambda v: (-nearer[v], len(adjacency[v])))
    from_beside = distances(beside, adjacency)
    row = {v: from_first[v] + from_beside[v] for v in spins}
    column = {v: from_first[v] - from_beside[v] for v in spins}
    return [
        sorted(spins, key=lambda v: (row[v], column[v])),
        sorted(spins, key=lambda v: (column[v], row[v])),
        sorted(spins, key=lambda v: (from_first[v], from_beside[v])),
    ]


def _farthest(spins: list[int], start: int, adjacency: Adjacency) -> list[int]:
    distance = distances(start, adjacency)
    most = max(distance.values())
    return [v for v in spins if distance[v] == most]

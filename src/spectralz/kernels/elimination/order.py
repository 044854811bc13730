"""In which order to eliminate the spins of a graph: no numbers, only the graph.

Eliminating a spin joins all its neighbors and leaves a table over them, its *separator*. The widest separator decides
the cost, 2 to the power of its spins. The best order is hard to find: several rules of thumb are tried, and the
cheapest of their orders is taken.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from spectralz.kernels.elimination.min_fill import MOST_SPINS_FOR_MIN_FILL, min_fill
from spectralz.kernels.elimination.tree import EliminationTree, separators_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from spectralz.kernels.elimination.tree import Adjacency, Order

__all__ = ["ORDERS", "adjacency_of", "best_order", "degeneracy"]

# What looking for an order takes, per spin squared, and what a table entry takes, both in nanoseconds.
SEARCH_TIME, ENTRY_TIME = 100, 6
# Min-fill has many ties, and other choices among them are sometimes ten times cheaper.
MOST_TRIES = 100
PATIENCE = 10  # tries in vain before giving up


def adjacency_of(n: int, edges: NDArray[np.int64]) -> Adjacency:
    """Return the set of neighbors of each vertex."""
    adjacency: Adjacency = [set() for _ in range(n)]
    for i, j in edges.tolist():
        adjacency[i].add(j)
        adjacency[j].add(i)
    return adjacency


def degeneracy(spins: Iterable[int], adjacency: Adjacency) -> int:
    """Return the largest least degree of any subgraph: no elimination order has a smaller widest separator."""
    degree = {v: len(adjacency[v]) for v in spins}
    heap = [(d, v) for v, d in degree.items()]
    heapq.heapify(heap)
    most = 0
    while heap:
        d, v = heapq.heappop(heap)
        if degree.get(v) != d:
            continue
        del degree[v]
        most = max(most, d)
        for u in adjacency[v]:
            if u in degree:
                degree[u] -= 1
                heapq.heappush(heap, (degree[u], u))
    return most


def min_degree(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Eliminate a spin with the fewest neighbors each time; None if a separator grows beyond ``max_width``."""
    graph = {v: set(adjacency[v]) for v in spins}
    heap = [(len(neighbors), v) for v, neighbors in graph.items()]
    heapq.heapify(heap)
    order = []
    terms = 0
    while heap:
        degree, v = heapq.heappop(heap)
        if v not in graph or len(graph[v]) != degree:
            continue
        if degree > max_width:
            return None
        order.append(v)
        terms += 1 << degree
        separator = graph.pop(v)
        for u in separator:
            neighbors = graph[u]
            neighbors |= separator
            neighbors.discard(u)
            neighbors.discard(v)
            heapq.heappush(heap, (len(neighbors), u))
    return order, terms


def banded(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Sweep a front through the graph from one end to the other; None if the front grows beyond ``max_width``.

    The front is what has been reached and not yet eliminated; the next spin is the one of the front that
    reaches the fewest new ones, the oldest if there are several. On a grid this is a diagonal sweep.
    """
    unreached = {v: len(adjacency[v]) for v in spins}
    order: list[int] = []
    front: dict[int, None] = {}  # in order of arrival
    reached: set[int] = set()

    def reach(v: int) -> None:
        reached.add(v)
        front[v] = None
        for u in adjacency[v]:
            unreached[u] -= 1

    reach(_far_end(spins, adjacency))
    while front:
        v = min(front, key=unreached.__getitem__)
        del front[v]
        order.append(v)
        for u in sorted(adjacency[v] - reached, key=unreached.__getitem__):
            reach(u)
        if len(front) > max_width:
            return None
    return order, sum(1 << len(separator) for separator in separators_of(order, adjacency)[0])


def _far_end(spins: Sequence[int], adjacency: Adjacency) -> int:
    """Return a vertex of small degree that is far from the others: the last of two breadth-first sweeps."""
    start = min(spins, key=lambda v: len(adjacency[v]))
    for _ in range(2):
        seen, last_level = {start}, [start]
        while True:
            level = []
            for v in last_level:
                for u in adjacency[v]:
                    if u not in seen:
                        seen.add(u)
                        level.append(u)
            if not level:
                break
            last_level = level
        start = min(last_level, key=lambda v: len(adjacency[v]))
    return start


ORDERS = {"min-degree": min_degree, "min-fill": min_fill, "banded": banded}


def best_order(
    spins: Sequence[int], adjacency: Adjacency, max_entries: int, names: Iterable[str] = tuple(ORDERS)
) -> tuple[str, EliminationTree] | None:
    """Return the name and tree of the cheapest order for one connected component.

    None if with every order of ``names`` more than ``max_entries`` table entries would be alive at once.
    """
    max_width = max_entries.bit_length() - 1
    search = SEARCH_TIME * len(spins) ** 2
    found: list[tuple[int, str, list[int]]] = []
    for name in names:
        order = ORDERS[name](spins, adjacency, max_width)
        if order is not None:
            found.append((order[1], name, order[0]))
            if ENTRY_TIME * order[1] <= search:  # looking for a better one would take longer
                break
    if "min-fill" in names and found:
        order = _random_min_fill(spins, adjacency, max_width, min(found)[0])
        if order is not None:
            found.append((order[1], "min-fill", order[0]))
    for _, name, steps in sorted(found):
        tree = EliminationTree.of_order(steps, adjacency)
        if tree.peak <= max_entries:
            return name, tree
    return None


def _random_min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, terms: int) -> Order | None:
    """Try min-fill with random ties for up to a quarter of the time that the ``terms`` of the best order would take.

    That time is counted and not measured, so that the choice is always the same.
    """
    tries = min(MOST_TRIES, ENTRY_TIME * terms // (4 * SEARCH_TIME * len(spins) ** 2))
    if not tries or len(spins) > MOST_SPINS_FOR_MIN_FILL or terms < 2 << degeneracy(spins, adjacency):
        return None  # not worth it, too large, or as narrow as any order can be
    best: Order | None = None
    vain = 0
    for seed in range(tries):
        order = min_fill(spins, adjacency, max_width, seed)
        if order is not None and order[1] < terms:
            best, terms, vain = order, order[1], 0
        else:
            vain += 1
        if vain == PATIENCE:
            break
    return best

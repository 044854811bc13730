"""Elimination orders of a graph, by heuristics that use the graph only and not the weights.

Eliminating a spin joins all its neighbors and leaves a table over them, its *separator*. The widest separator
determines the cost, 2 to the power of its number of spins. The best order is hard to find. This file has the
heuristics; ``best_order.py`` chooses among their orders and improves them.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from spectralz.kernels.elimination.min_fill import min_fill
from spectralz.kernels.elimination.tree import separators_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spectralz.kernels.arrays import IntArray
    from spectralz.kernels.elimination.tree import Adjacency, Order


def adjacency_of(n: int, edges: IntArray) -> Adjacency:
    """Return the set of neighbors of each vertex."""
    adjacency: Adjacency = [set() for _ in range(n)]
    for i, j in edges.tolist():
        adjacency[i].add(j)
        adjacency[j].add(i)
    return adjacency


def degeneracy(spins: Iterable[int], adjacency: Adjacency) -> int:
    """Return the largest minimum degree of any subgraph: no elimination order has a smaller widest separator."""
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


def eliminate(v: int, graph: dict[int, set[int]]) -> set[int]:
    """Take a vertex out of a graph and join its neighbors, which are returned."""
    separator = graph.pop(v)
    for u in separator:
        graph[u] |= separator
        graph[u] -= {u, v}
    return separator


def min_degree(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Repeatedly eliminate a spin with the fewest neighbors; None if a separator grows beyond ``max_width``."""
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
        for u in eliminate(v, graph):
            heapq.heappush(heap, (len(graph[u]), u))
    return order, terms


def banded(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Sweep a front through the graph from one end to the other; None if the front grows beyond ``max_width``.

    The front is the set of spins reached and not yet eliminated. The next spin is the one of the front that reaches the
    fewest new spins, the oldest if there are several. On a grid this is a diagonal sweep.
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
    """Return a vertex of small degree that is far from the others: the last vertex of two breadth-first sweeps."""
    start = min(spins, key=lambda v: len(adjacency[v]))
    for _ in range(2):
        distance = distances(start, adjacency)
        farthest = max(distance.values())
        start = min((v for v, d in distance.items() if d == farthest), key=lambda v: len(adjacency[v]))
    return start


def distances(start: int, adjacency: Adjacency) -> dict[int, int]:
    """Return the distance of every vertex that is connected to one, the nearest first."""
    distance, level = {start: 0}, [start]
    while level:
        reached = []
        for v in level:
            for u in adjacency[v]:
                if u not in distance:
                    distance[u] = distance[v] + 1
                    reached.append(u)
        level = reached
    return distance


ORDERS = {"min-degree": min_degree, "min-fill": min_fill, "banded": banded}

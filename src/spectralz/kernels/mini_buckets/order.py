"""Elimination orders for mini-buckets: those of exact elimination, and one that works for any graph size.

Exact elimination joins all neighbors of an eliminated spin, so separators become wide. Mini-buckets do not: a bucket
that is too wide is divided. The *narrow* order takes this into account. It always eliminates a spin with the fewest
neighbors, and joins these only if they fit into one mini-bucket. If they always fit, the order is min-degree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.elimination.min_fill import MOST_SPINS_FOR_MIN_FILL
from spectralz.kernels.elimination.order import ORDERS, adjacency_of
from spectralz.kernels.elimination.screening import has_narrow_front
from spectralz.kernels.elimination.tree import EliminationTree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.kernels.arrays import ColumnArray, FloatArray, IntArray
    from spectralz.kernels.elimination.tree import Adjacency, Order

# The orders that "best" tries.
SEVERAL = ("narrow", "min-degree", "min-fill", "banded")
# The search for an order adds edges to the graph, but not for spins with more neighbors than this.
MOST_WIDTH = 400
# Larger graphs have one order, or two where a front through them is narrow enough to be exact.
MOST_SPINS_FOR_SEVERAL = MOST_SPINS_FOR_MIN_FILL


def orders_of(
    name: str, components: Sequence[IntArray], edges: IntArray, strengths: FloatArray, ibound: int
) -> dict[str, IntArray]:
    """Return the spins in the order ``name``; for "best", in several, each under its own name.

    With several components, "narrowest" has each component in its narrowest order. In a complete graph all orders
    differ only in the weights: the spin with the smallest ``strengths``, its sum of |J|, goes first.
    """
    graph = _Graph(components, edges, strengths)
    if name != "best":
        return {name: graph.order(name, ibound)}
    if len(strengths) > MOST_SPINS_FOR_SEVERAL:
        names = ["narrow"]
        if has_narrow_front(graph.indptr, graph.indices, ibound - 1):
            names.append("banded")
    else:
        names = [*SEVERAL]
        if sum(len(spins) > 1 for spins in components) > 1:
            names.append("narrowest")  # exact if every component is so by any of the orders
    orders: dict[str, IntArray] = {}
    for rule in names:
        order = graph.order(rule, ibound)
        if not any(np.array_equal(order, other) for other in orders.values()):
            orders[rule] = order
    return orders


class _Graph:
    def __init__(self, components: Sequence[IntArray], edges: IntArray, strengths: FloatArray) -> None:
        self.components, self.edges = components, edges
        n = len(strengths)
        self.degree = np.bincount(edges.ravel(), minlength=n)
        self.indptr = np.concatenate([[0], np.cumsum(self.degree)]).astype(np.int64)
        ends = np.concatenate([edges, edges[:, ::-1]])
        self.indices = ends[np.argsort(ends[:, 0], kind="stable"), 1].astype(np.int32)
        # Ties in the number of neighbors go to the spin with the lowest number, or in a complete graph to the weakest:
        # early spins are cut off from most others, and weak ones lose the least by it.
        self.priority = np.arange(n)
        self.complete = [len(c) > 1 and bool(np.all(self.degree[c] == len(c) - 1)) for c in components]
        for spins, is_complete in zip(components, self.complete, strict=True):
            if is_complete:
                self.priority[spins[np.argsort(strengths[spins], kind="stable")]] = np.sort(spins)

    def order(self, name: str, ibound: int) -> IntArray:
        """Return the spins in one order."""
        if name == "narrow":
            return self._fewest_neighbors_first(ibound - 1)
        if name == "min-degree":
            return self._fewest_neighbors_first(MOST_WIDTH)
        adjacency = adjacency_of(len(self.degree), self.edges)
        order: list[int] = []
        for spins, is_complete in zip(self.components, self.complete, strict=True):
            if is_complete:
                order += spins[np.argsort(self.priority[spins])].tolist()
                continue
            part = _order_of_component(name, spins.tolist(), adjacency)
            if not part:
                narrow = self._fewest_neighbors_first(ibound - 1)
                part = narrow[np.isin(narrow, spins)].tolist()
            order += part
        return np.array(order, dtype=np.int64)

    def _fewest_neighbors_first(self, limit: int) -> IntArray:
        if self.complete == [True]:  # all spins always have equally many neighbors
            return np.argsort(self.priority)
        n, degree = len(self.degree), self.degree.astype(np.int64)
        key = degree * n + self.priority
        heap = np.argsort(key)
        place, order = np.empty(n, np.int64), np.empty(n, np.int64)
        place[heap] = np.arange(n)
        start, room, pool = self.indptr[:-1].copy(), degree.copy(), self.indices
        step, used = 0, len(pool)
        while step < n:
            pool = np.concatenate([pool, np.empty(len(pool) + n, np.int32)])
            queue, lists = (self.priority, key, heap, place), (degree, start, room, pool, np.zeros(n, np.int64))
            step, used = _fewest_first(limit, step, used, int(degree.max()), order, *queue, *lists)
        return order


def _order_of_component(name: str, spins: list[int], adjacency: Adjacency) -> list[int]:
    """Return an order of exact elimination, the narrowest for that name; nothing if all are too wide."""
    rules: dict[str, Callable[[Sequence[int], Adjacency, int], Order | None]] = {**ORDERS}
    names = tuple(rules) if name == "narrowest" else (name,)
    orders = [order[0] for order in (rules[k](spins, adjacency, MOST_WIDTH) for k in names) if order is not None]
    if len(orders) < 2:
        return orders[0] if orders else []
    return min(orders, key=lambda order: EliminationTree.of_order(order, adjacency).width)


@compiled
def _fewest_first(
    limit: int,
    step: int,
    used: int,
    largest: int,
    order: IntArray,
    priority: IntArray,
    key: IntArray,
    heap: IntArray,
    place: IntArray,
    degree: IntArray,
    start: IntArray,
    room: IntArray,
    pool: ColumnArray,
    seen: IntArray,
) -> tuple[int, int]:
    """Repeatedly eliminate a spin with the fewest neighbors, joining these if there are at most ``limit``.

    The neighbors of v are at ``start[v]`` in the pool, where it has ``room``; ``used`` is where the free part of the
    pool begins. ``largest`` is the largest degree. ``heap`` holds the spins that are left, those with the smallest
    ``key`` first: the fewest neighbors, then the smallest ``priority``. Returns the step at which the pool may be too
    small, or the number of spins; and ``used``. ``seen`` is a work array of zeros.
    """
    n, stamp = len(order), 0
    while step < n:
        v, last = heap[0], n - step - 1
        d = degree[v]
        joins = d <= limit
        if joins and used + 2 * d * (largest + d) > len(pool):
            break
        order[step] = v
        step += 1
        heap[0] = heap[last]
        _settle(0, last, key, heap, place)
        for a in range(start[v], start[v] + d):
            u = pool[a]
            first = start[u]
            if joins and degree[u] + d > room[u]:
                room[u] = 2 * (degree[u] + d)
                for k in range(degree[u]):
                    pool[used + k] = pool[first + k]
                start[u] = first = used
                used += room[u]
            stamp += 1
            seen[u] = stamp
            end = first
            for k in range(first, first + degree[u]):
                w = pool[k]
                seen[w] = stamp
                if w != v:
                    pool[end] = w
                    end += 1
            if joins:
                for k in range(start[v], start[v] + d):
                    w = pool[k]
                    if seen[w] != stamp:
                        pool[end] = w
                        end += 1
            degree[u] = end - first
            if degree[u] > largest:
                largest = degree[u]
            key[u] = degree[u] * n + priority[u]
            _settle(place[u], last, key, heap, place)
    return step, used


@inner
def _settle(k: int, size: int, key: IntArray, heap: IntArray, place: IntArray) -> None:
    """Move the spin at place ``k`` of the heap up or down, to where its key belongs."""
    v = heap[k]
    while k > 0 and key[v] < key[heap[(k - 1) >> 1]]:
        heap[k] = heap[(k - 1) >> 1]
        place[heap[k]] = k
        k = (k - 1) >> 1
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[v] < key[heap[child]]:
            break
        heap[k] = heap[child]
        place[heap[k]] = k
        k = child
    heap[k] = v
    place[v] = k

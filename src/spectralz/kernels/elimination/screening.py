"""Check whether a large graph has a narrow elimination order; compiled.

The heuristics are those of ``order.py``, up to ties, whose sets of neighbors would take minutes and gigabytes on large
graphs. Here they only compute costs; ``order.py`` returns the order itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, IntArray

# While other spins are eliminated, a spin may have up to this many times as many neighbors as the widest separator.
ROOM = 2


class Count(NamedTuple):
    """The cost of eliminating the spins of least degree first.

    Attributes
    ----------
    width, terms
        Spins of the widest separator, and table entries to fill.
    is_narrow
        Whether no separator was wider than allowed.
    is_known
        Whether this could be determined: not if spins have very many neighbors from the start.
    """

    width: int
    terms: float
    is_narrow: bool
    is_known: bool


def count_min_degree(indptr: IntArray, indices: ColumnArray, max_width: int) -> Count:
    """Eliminate spins of least degree first; ``indptr`` and ``indices`` are the rows of the adjacency matrix."""
    degree = np.diff(indptr)
    room = ROOM * max(max_width, 1)
    if degree.max(initial=0) > room:
        return Count(0, 0.0, False, False)
    width, terms = _count_min_degree(indptr, indices, max_width, room)
    return Count(int(width), float(terms), bool(terms >= 0.0), True)


class Elimination(NamedTuple):
    """A graph whose spins of least degree are eliminated first, as arrays that this uses up.

    Attributes
    ----------
    neighbors, degree
        The neighbors of each spin, one row per spin, and how many there are.
    order
        The spins in order of elimination.
    head, tail, following, before
        A queue for each degree, first in, first out.
    seen
        A work array, one number per spin.
    """

    neighbors: ColumnArray
    degree: IntArray
    order: IntArray
    head: IntArray
    tail: IntArray
    following: IntArray
    before: IntArray
    seen: IntArray


@inner
def room_for_elimination(n: int, room: int, max_width: int) -> Elimination:
    """Return the arrays for graphs of up to ``n`` spins, with up to ``room`` neighbors each on the way."""
    neighbors, degree, order = np.empty((n, room), np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    head, tail = np.empty(max_width + 2, np.int64), np.empty(max_width + 2, np.int64)
    following, before, seen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    return Elimination(neighbors, degree, order, head, tail, following, before, seen)


@inner
def min_degree(graph: Elimination, count: int, max_width: int) -> tuple[int, float]:
    """Eliminate the first ``count`` spins; return the widest separator and the table entries, -1 if it is too wide.

    Too wide also means that a spin has more neighbors on the way than there is room for.
    """
    neighbors, degree, order, head, tail, following, before, seen = graph
    room = neighbors.shape[1]
    for d in range(max_width + 2):
        head[d] = tail[d] = -1
    for v in range(count):
        seen[v] = -1
        _append(v, min(degree[v], max_width + 1), head, tail, following, before)
    width, entries, d, stamp = 0, 0.0, 0, 0
    for step in range(count):
        while d <= max_width and head[d] < 0:
            d += 1
        if d > max_width:
            return width, -1.0
        v = head[d]
        _remove(v, d, head, tail, following, before)
        order[step] = v
        width = max(width, d)
        entries += 2.0**d
        least = d
        for a in range(d):
            u = neighbors[v, a]
            old, size = degree[u], 0
            stamp += 1
            seen[u] = stamp
            for k in range(old):
                w = neighbors[u, k]
                seen[w] = stamp
                if w != v:
                    neighbors[u, size] = w
                    size += 1
            for b in range(d):
                w = neighbors[v, b]
                if seen[w] != stamp:
                    if size == room:
                        return width, -1.0
                    neighbors[u, size] = w
                    size += 1
            _remove(u, min(old, max_width + 1), head, tail, following, before)
            degree[u] = size
            _append(u, min(size, max_width + 1), head, tail, following, before)
            least = min(least, size)
        d = least
    return width, entries


@compiled
def _count_min_degree(indptr: IntArray, indices: ColumnArray, max_width: int, room: int) -> tuple[int, float]:
    n = len(indptr) - 1
    graph = room_for_elimination(n, room, max_width)
    for v in range(n):
        graph.degree[v] = indptr[v + 1] - indptr[v]
        for k in range(graph.degree[v]):
            graph.neighbors[v, k] = indices[indptr[v] + k]
    return min_degree(graph, n, max_width)


@inner
def _append(v: int, d: int, head: IntArray, tail: IntArray, following: IntArray, before: IntArray) -> None:
    following[v], before[v] = -1, tail[d]
    if tail[d] >= 0:
        following[tail[d]] = v
    else:
        head[d] = v
    tail[d] = v


@inner
def _remove(v: int, d: int, head: IntArray, tail: IntArray, following: IntArray, before: IntArray) -> None:
    if before[v] >= 0:
        following[before[v]] = following[v]
    else:
        head[d] = following[v]
    if following[v] >= 0:
        before[following[v]] = before[v]
    else:
        tail[d] = before[v]


@compiled
def has_narrow_front(indptr: IntArray, indices: ColumnArray, max_width: int) -> bool:
    """Sweep a front through every component from one end; return whether it has at most ``max_width`` spins."""
    n = len(indptr) - 1
    seen, reached = np.full(n, -1), np.zeros(n, dtype=np.bool_)
    unreached = np.empty(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    front = np.empty(max_width + 1, dtype=np.int64)
    for v in range(n):
        unreached[v] = indptr[v + 1] - indptr[v]
    for root in range(n):
        if reached[root]:
            continue
        start = root
        for turn in range(2):  # the last of two breadth-first sweeps is far from the others
            queue[0], begin, end = start, 0, 1
            seen[start] = 2 * root + turn
            while begin < end:
                v = queue[begin]
                begin += 1
                for place in range(indptr[v], indptr[v + 1]):
                    u = indices[place]
                    if seen[u] != 2 * root + turn:
                        seen[u] = 2 * root + turn
                        queue[end] = u
                        end += 1
            start = queue[end - 1]
        size = 1
        front[0] = start
        reached[start] = True
        for place in range(indptr[start], indptr[start + 1]):
            unreached[indices[place]] -= 1
        while size:
            best = 0
            for k in range(1, size):
                if unreached[front[k]] < unreached[front[best]]:
                    best = k
            v = front[best]
            for k in range(best, size - 1):  # in order of arrival
                front[k] = front[k + 1]
            size -= 1
            for place in range(indptr[v], indptr[v + 1]):
                u = indices[place]
                if not reached[u]:
                    if size == max_width:
                        return False
                    reached[u] = True
                    front[size] = u
                    size += 1
                    for other in range(indptr[u], indptr[u + 1]):
                        unreached[indices[other]] -= 1
    return True


@compiled
def core_of(indptr: IntArray, indices: ColumnArray) -> int:
    """Return the degeneracy of a graph: the largest minimum degree of any subgraph."""
    n = len(indptr) - 1
    degree = np.empty(n, dtype=np.int64)
    most = 0
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
        most = max(most, degree[v])
    head, tail = np.full(most + 1, -1), np.full(most + 1, -1)
    following, before = np.full(n, -1), np.full(n, -1)
    for v in range(n):
        _append(v, degree[v], head, tail, following, before)
    core, d = 0, 0
    for _ in range(n):
        while head[d] < 0:
            d += 1
        v = head[d]
        core = max(core, d)
        _remove(v, d, head, tail, following, before)
        degree[v] = -1
        for place in range(indptr[v], indptr[v + 1]):
            u = indices[place]
            if degree[u] >= 0:
                _remove(u, degree[u], head, tail, following, before)
                degree[u] -= 1
                _append(u, degree[u], head, tail, following, before)
                d = min(d, degree[u])
    return core

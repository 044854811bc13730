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
    n, degree = len(indptr) - 1, np.diff(indptr)
    room = ROOM * max(max_width, 1)
    if degree.max(initial=0) > room:
        return Count(0, 0.0, False, False)
    graph = Elimination.of_size(n, room, max_width)
    graph.degree[:] = degree
    rows = np.repeat(np.arange(n), degree)
    graph.neighbors[rows, np.arange(len(indices)) - indptr[rows]] = indices
    width, entries = min_degree(graph, n, max_width)
    return Count(int(width), float(entries), bool(entries >= 0.0), True)


class Elimination(NamedTuple):
    """A graph whose spins of least degree are eliminated first, as arrays that this uses up.

    Attributes
    ----------
    neighbors, degree
        The neighbors of each spin, one row per spin, and how many there are.
    order
        The spins in order of elimination.
    following, before
        A queue for each degree, first in, first out: a ring of spins that begins and ends at one more entry, which
        stands behind the spins.
    seen
        A work array, one number per spin.
    """

    neighbors: ColumnArray
    degree: IntArray
    order: IntArray
    following: IntArray
    before: IntArray
    seen: IntArray

    @classmethod
    def of_size(cls, n: int, room: int, max_width: int) -> Elimination:
        """Return the arrays for graphs of up to ``n`` spins, with up to ``room`` neighbors each on the way."""
        degree, order, seen = (np.empty(n, np.int64) for _ in range(3))
        following, before = (np.empty(n + max_width + 2, np.int64) for _ in range(2))
        return cls(np.empty((n, room), np.int32), degree, order, following, before, seen)


@compiled
def min_degree(graph: Elimination, count: int, max_width: int) -> tuple[int, float]:
    """Eliminate the first ``count`` spins; return the widest separator and the table entries, -1 if it is too wide.

    Too wide also means that a spin has more neighbors on the way than there is room for.
    """
    neighbors, degree, order, following, before, seen = graph
    room, wide = neighbors.shape[1], max_width + 1
    for queue in range(count, count + wide + 1):
        following[queue] = before[queue] = queue
    for v in range(count):
        seen[v] = -1
        _append(v, count + min(degree[v], wide), following, before)
    width, entries, d, stamp = 0, 0.0, 0, 0
    for step in range(count):
        while d < wide and following[count + d] == count + d:
            d += 1
        if d == wide:
            return width, -1.0
        v = following[count + d]
        _remove(v, following, before)
        order[step] = v
        width = max(width, d)
        entries += 2.0**d
        least = d
        for a in range(d):
            u = np.int64(neighbors[v, a])
            size = 0
            stamp += 1
            seen[u] = stamp
            for k in range(degree[u]):
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
            degree[u] = size
            least = min(least, size)
            _remove(u, following, before)
            _append(u, count + min(size, wide), following, before)
        d = least
    return width, entries


@inner
def _append(v: int, queue: int, following: IntArray, before: IntArray) -> None:
    last = before[queue]
    following[last] = before[queue] = v
    before[v] = last
    following[v] = queue


@inner
def _remove(v: int, following: IntArray, before: IntArray) -> None:
    following[before[v]] = following[v]
    before[following[v]] = before[v]


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


def core_of(indptr: IntArray, indices: ColumnArray) -> int:
    """Return the degeneracy of a graph: the largest minimum degree of any subgraph."""
    degree, stack = np.diff(indptr), np.empty(len(indptr) - 1, np.int64)
    core = 0
    while np.any(left := degree >= 0):
        core = int(degree[left].min())
        _peel(indptr, indices, core, degree, stack)
    return core


@compiled
def _peel(indptr: IntArray, indices: ColumnArray, core: int, degree: IntArray, stack: IntArray) -> None:
    """Remove spins with at most ``core`` neighbors until there are none; their degree becomes -1."""
    for root in range(len(degree)):
        top = 0
        if 0 <= degree[root] <= core:
            degree[root] = -1
            stack[0] = root
            top = 1
        while top > 0:
            top -= 1
            v = stack[top]
            for place in range(indptr[v], indptr[v + 1]):
                u = indices[place]
                if degree[u] >= 0:
                    degree[u] -= 1
                    if degree[u] <= core:
                        degree[u] = -1
                        stack[top] = u
                        top += 1

"""Orders of arrival that keep the frontier small: distances from a spin, and a greedy front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled_in_place
from spectralz.kernels.coupling import frozen

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray


def distances_from(start: IntArray, source: IntArray, root: int) -> tuple[IntArray, FloatArray]:
    """Return the distance of every spin from one, and the number of shortest paths; -1 and 0 if there is none.

    Paths are counted up to 1e9.
    """
    n = len(start) - 1
    distance, ways = np.full(n, -1), np.zeros(n)
    _go_away(frozen(start), frozen(source), root, distance, ways, np.zeros(n, np.int64))
    return distance, ways


@compiled_in_place
def _go_away(
    start: IntArray, source: IntArray, root: int, distance: IntArray, ways: FloatArray, queue: IntArray
) -> None:
    queue[0] = root
    distance[root] = 0
    ways[root] = 1.0
    head, tail = 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for slot in range(start[v], start[v + 1]):
            u = source[slot]
            if distance[u] < 0:
                distance[u] = distance[v] + 1
                queue[tail] = u
                tail += 1
            if distance[u] == distance[v] + 1:
                ways[u] = min(ways[u] + ways[v], 1e9)


def narrow_front(start: IntArray, source: IntArray, root: int, size: int, max_width: int) -> tuple[IntArray, bool]:
    """Return an order of the ``size`` spins connected to one that keeps the frontier small, and whether it was found.

    The next spin is the neighbor of the frontier that leaves the smallest frontier; among equals, the one that was
    seen first.
    """
    order, seen = np.zeros((2, size), np.int64)
    to_come, state = np.diff(start), np.zeros(len(start) - 1, np.int64)
    is_found = _go_narrow(start, source, root, max_width, order, seen, to_come, state)
    return order, bool(is_found)


@compiled_in_place
def _go_narrow(
    start: IntArray,
    source: IntArray,
    root: int,
    max_width: int,
    order: IntArray,
    seen: IntArray,
    to_come: IntArray,
    state: IntArray,
) -> bool:
    # ``seen`` has spins in the order in which they were seen, those that have arrived taken out;
    # ``state`` is 0 of a spin that is unseen, 1 once it is seen, 2 once it has arrived.
    seen[0] = root
    state[root] = 1
    count = 1
    for t in range(len(order)):
        if count > max_width:
            return False
        best, best_growth = -1, 1 << 60
        for k in range(count):
            v = seen[k]
            growth = 1 if to_come[v] > 0 else 0
            for slot in range(start[v], start[v + 1]):
                if state[source[slot]] == 2 and to_come[source[slot]] == 1:
                    growth -= 1
            if growth < best_growth:
                best, best_growth = k, growth
        v = seen[best]
        for k in range(best, count - 1):
            seen[k] = seen[k + 1]
        count -= 1
        state[v] = 2
        order[t] = v
        for slot in range(start[v], start[v + 1]):
            u = source[slot]
            to_come[u] -= 1
            if state[u] == 0:
                state[u] = 1
                seen[count] = u
                count += 1
    return True

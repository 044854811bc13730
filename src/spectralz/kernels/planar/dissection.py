"""An order in which to merge the cities of a planar graph, so that few bonds leave each merged region."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from spectralz._support.compiling import compiled

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.planar.cities import Cities

# Distances are measured from this many spins far from each other: from the corners of a lattice.
LANDMARKS = 5
# The smaller part of a region has at least this share of its cities.
SMALLEST_PART = 0.35
# So many times more bonds, times the square of what its share differs from a half, may be cut for equal parts.
UNBALANCED = 4.0


class Merges(NamedTuple):
    """A tree of regions: cities first, then regions merged from two others, the whole graph last.

    Attributes
    ----------
    child
        The two regions that each is merged from, or -1.
    start, node
        The bonds of the nodes ``node[start[t]:start[t + 1]]`` leave region t.
    """

    child: IntArray
    start: IntArray
    node: IntArray

    @property
    def widest(self) -> int:
        """The most nodes of a region."""
        return int(np.diff(self.start).max(initial=0))

    @property
    def entries(self) -> int:
        """Numbers to keep."""
        return int((np.diff(self.start) ** 2).sum())


def merges_of(cities: Cities, edges: int, n: int, hub: int = -1) -> Merges:
    """Return a tree of regions by nested dissection.

    Distances are along the first ``edges`` edges, those of the graph itself, and not through the spin ``hub``.
    """
    count = len(cities.start) - 1
    if not count:
        return Merges(np.empty((0, 2), dtype=np.int64), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))
    city = np.empty(len(cities.walk), dtype=np.int64)
    city[cities.walk] = np.repeat(np.arange(count), np.diff(cities.start))
    place = _directions(cities.tail[: 2 * edges], n, hub)
    sums = np.add.reduceat(place[cities.tail[cities.walk]], cities.start[:-1], axis=0)
    child = dissect(cities.start, cities.walk, city, sums / np.diff(cities.start)[:, None])
    return Merges(child, *_outer_nodes(child, cities.start, cities.walk))


def _directions(tail: IntArray, n: int, hub: int) -> FloatArray:
    """Return one row of numbers per spin, each of which orders the graph from one end to another."""
    pairs = tail.reshape(-1, 2)
    pairs = pairs[(pairs != hub).all(axis=1)]
    graph = sp.csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    near, total, landmark = np.full(n, np.inf), np.zeros(n), 0
    rows: list[FloatArray] = []
    for k in range(LANDMARKS + 1):
        far = dijkstra(graph, directed=False, indices=landmark, unweighted=True)
        far[np.isinf(far)] = n
        if k:  # the first is only somewhere
            rows.append(far)
            near, total = np.minimum(near, far), total + far
        # Of spins that are as far from the nearest one, that with the largest sum: the fourth corner, not the center.
        landmark = int(np.argmax(near + total / (n * LANDMARKS + 1.0) if k else far))
    differences = [rows[a] - rows[b] for a in range(LANDMARKS) for b in range(a)]
    return np.column_stack(differences)


@compiled
def dissect(start: IntArray, walk: IntArray, city: IntArray, place: FloatArray) -> IntArray:
    """Return the children of all regions: each region is cut where the fewest bonds are cut, in one of the directions.

    ``place`` has a number per city and direction.
    """
    count, directions = place.shape
    child = np.full((2 * count - 1, 2), -1)
    members, best, part = np.arange(count), np.empty(count, np.int64), np.zeros(count, np.int64)
    # A region on the stack: its first and last city, and the number it gets; those of parts are smaller.
    low, high, name = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    low[0], high[0], name[0], depth, free = 0, count, 2 * count - 2, int(count > 1), 2 * count - 3
    while depth:
        depth -= 1
        a, b, region = low[depth], high[depth], name[depth]
        size = b - a
        least = max(int(SMALLEST_PART * size), 1)
        lowest, middle = np.inf, a
        for d in range(directions):
            here = members[a:b]
            here = here[np.argsort(place[here, d])]
            for c in here:
                part[c] = 1
            cut = 0
            for k in range(size - least):
                c = here[k]
                for h in walk[start[c] : start[c + 1]]:
                    other = city[h ^ 1]
                    cut += (part[other] == 1) - (part[other] == 2)
                    cut -= other == c
                part[c] = 2
                cost = cut * (1.0 + UNBALANCED * ((k + 1) / size - 0.5) ** 2)
                if k + 1 >= least and cost < lowest:
                    lowest, middle = cost, a + k + 1
                    best[a:b] = here
            for c in here:
                part[c] = 0
        members[a:b] = best[a:b]
        for side in range(2):
            first, last = (a, middle) if side == 0 else (middle, b)
            if last - first == 1:
                child[region, side] = members[first]
            else:
                child[region, side] = free
                low[depth], high[depth], name[depth] = first, last, free
                free -= 1
                depth += 1
    return child


@compiled
def _outer_nodes(child: IntArray, start: IntArray, walk: IntArray) -> tuple[IntArray, IntArray]:
    """Return the nodes of each region whose bonds leave it, and where they begin."""
    cities = len(start) - 1
    begin, node, is_here = (
        np.zeros(len(child) + 1, np.int64),
        np.empty(2 * len(walk), np.int64),
        np.zeros(len(walk), np.bool_),
    )
    for t in range(len(child)):
        if t < cities:
            nodes = walk[start[t] : start[t + 1]]
        else:
            one, two = child[t]
            nodes = np.concatenate((node[begin[one] : begin[one + 1]], node[begin[two] : begin[two + 1]]))
        for h in nodes:
            is_here[h] = True
        at = begin[t]
        if at + len(nodes) > len(node):
            node = np.concatenate((node, np.empty(len(node) + len(nodes), np.int64)))
        for h in nodes:
            if not is_here[h ^ 1]:
                node[at] = h
                at += 1
        for h in nodes:
            is_here[h] = False
        begin[t + 1] = at
    return begin, node[: begin[-1]].copy()

"""Faces of a planar graph as cities, whose perfect matchings are the states of the model on it.

A state of spins is known, up to turning all spins, by the edges that it breaks: a set of edges with an even number on
each face. Each face is a *city* with one node per edge along its walk, and each edge is a *bond* between its two nodes,
one in the city on either side. A bond is matched if the edge is not broken. The nodes of a city that are left over are
even in number, and matched among each other: with all entries +1 in the order of the walk, their Pfaffian is 1. So the
antisymmetric matrix of cities and bonds has as its Pfaffian the sum over all states, if the bonds have the signs that
Kasteleyn's rule gives them.

Edge e has the half-edges 2e and 2e + 1, which go in opposite directions; a half-edge is also the node on its face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray

# Longer faces are cut into cities of this size, along a balanced tree.
MOST_NODES = 4


class Cities(NamedTuple):
    """The cities of a planar graph, with the edges that cut long faces added behind those of the graph.

    Attributes
    ----------
    start, walk
        City c has the nodes ``walk[start[c]:start[c + 1]]``, in the order of its walk.
    tail
        The spin at which each half-edge begins.
    sign
        The sign of the entry (2e, 2e + 1) of each bond.
    """

    start: IntArray
    walk: IntArray
    tail: IntArray
    sign: FloatArray


def cities_of(tail: IntArray, following: IntArray, n: int) -> Cities:
    """Return the cities of a graph with ``n`` spins, by the half-edge that follows each one on its face.

    Examples
    --------
    >>> triangle = np.array([0, 1, 1, 2, 2, 0]), np.array([2, 5, 4, 1, 0, 3])
    >>> cities = cities_of(*triangle, 3)
    >>> cities.walk.tolist(), cities.start.tolist()
    ([0, 2, 4, 1, 5, 3], [0, 3, 6])
    """
    walks, tails = [], tail.tolist()
    start, walk = trace(following)
    long = np.flatnonzero(np.diff(start) > MOST_NODES)
    for c in long.tolist():
        walks += _cut(walk[start[c] : start[c + 1]].tolist(), tails)
    is_short = np.repeat(np.diff(start) <= MOST_NODES, np.diff(start))
    sizes = np.concatenate([np.delete(np.diff(start), long), np.array([len(w) for w in walks], dtype=np.int64)])
    walk = np.concatenate([walk[is_short], np.array([h for w in walks for h in w], dtype=np.int64)])
    start, tail = np.concatenate([[0], np.cumsum(sizes)]), np.array(tails, dtype=np.int64)
    order = np.argsort(tail, kind="stable")
    at = np.searchsorted(tail[order], np.arange(n + 1))
    return Cities(start, walk, tail, kasteleyn_signs(tail, at, order, walk[start[:-1]]))


def _cut(walk: list[int], tail: list[int]) -> list[list[int]]:
    """Return the cities of a long face; edges of weight 0 between its corners are added to ``tail``."""
    cities = []
    while len(walk) > MOST_NODES:
        groups = [walk[k : k + MOST_NODES - 1] for k in range(0, len(walk), MOST_NODES - 1)]
        walk = []
        for group in groups:
            if len(group) > 1:
                added = len(tail)
                tail += [tail[group[-1] ^ 1], tail[group[0]]]
                cities.append([*group, added])
                walk.append(added + 1)
            else:
                walk += group
    return [*cities, walk]


@compiled
def trace(following: IntArray) -> tuple[IntArray, IntArray]:
    """Return the walks along all faces, one after the other, and where each begins."""
    count = len(following)
    walk, start, seen = np.empty(count, np.int64), np.empty(count + 1, np.int64), np.zeros(count, np.bool_)
    place = faces = 0
    for first in range(count):
        if not seen[first]:
            start[faces] = place
            faces += 1
            h = first
            while not seen[h]:
                seen[h] = True
                walk[place] = h
                place += 1
                h = following[h]
    start[faces] = count
    return start[: faces + 1].copy(), walk


@compiled
def kasteleyn_signs(tail: IntArray, at: IntArray, order: IntArray, first: IntArray) -> FloatArray:
    """Return the signs of the bonds; ``order[at[v]:at[v + 1]]`` are the half-edges that begin at v.

    Around each spin, bonds and sides of cities alternate, and an odd number of them must point in one direction. Sides
    do, except from the last node of a city to its ``first``. A spanning forest of the spins is corrected from its
    leaves on; around each root the rule then holds by itself.
    """
    n, sign = len(at) - 1, np.ones(len(tail) // 2)
    is_odd = np.zeros(n, np.bool_)
    for v in range(n):
        is_odd[v] = (at[v + 1] - at[v]) % 2 == 1
    for h in first:
        is_odd[tail[h]] ^= True
    for e in range(len(sign)):
        is_odd[tail[2 * e]] ^= True
    above, found = np.full(n, -1), np.empty(n, np.int64)  # the half-edge by which a spin was reached
    seen, count, done = np.zeros(n, np.bool_), 0, 0
    for root in range(n):
        if not seen[root]:
            seen[root] = True
            found[count] = root
            count += 1
            while done < count:
                v = found[done]
                done += 1
                for h in order[at[v] : at[v + 1]]:
                    u = tail[h ^ 1]
                    if not seen[u]:
                        seen[u] = True
                        above[u] = h
                        found[count] = u
                        count += 1
    for v in found[::-1]:
        if above[v] >= 0 and not is_odd[v]:
            sign[above[v] // 2] = -sign[above[v] // 2]
            is_odd[v] = True
            is_odd[tail[above[v]]] ^= True
    return sign

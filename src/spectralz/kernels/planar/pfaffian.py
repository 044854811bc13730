"""The Pfaffian of a planar graph's matrix, region by region, and which bonds are matched.

Each region has an antisymmetric matrix over the nodes whose bonds leave it. Two regions are merged by joining their
matrices by the bonds between them, and eliminating the nodes of these bonds: what remains is the matrix of the merged
region. In the same way, each region gets the matrix of all that is outside of it. Of all matrices only the part above
the diagonal is kept, in one plane of doubles, or in two that are added (``doubled.py``).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.planar.doubled import add_product, add_rows, reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.planar.cities import Cities
    from spectralz.kernels.planar.dissection import Merges

# A simple generator of random numbers is enough for noise.
MULTIPLIER, MODULUS = 1103515245, 2**31
# How often progress is reported on the way up and down, and the share of the time that the way up takes.
REPORTS, SHARE_OF_SUMS = 32, 0.2


class Sums(NamedTuple):
    """What all states of a planar model add up to, relative to its reference state, whose weight is 1.

    Attributes
    ----------
    log_sum
        The logarithm of the sum, region by region.
    mean
        The mean of 1 for each edge that is not broken, and -1 for each that is; empty if not wanted.
    """

    log_sum: FloatArray
    mean: FloatArray


def sums_of(
    cities: Cities,
    merges: Merges,
    J: FloatArray,
    *,
    doubled: bool,
    noise: float = 0.0,
    with_means: bool = False,
    tell: Callable[[float], None] = lambda share: None,
) -> Sums:
    """Sum over all states with the couplings ``J`` of edges, relative to the state with all spins equal.

    With ``doubled``, numbers have 106 bits instead of 53; and with ``noise``, all products are changed by up to this
    share of them. ``tell`` is told the share that is done.
    """
    weight = np.ones(2 * len(cities.sign))
    weight[: 2 * len(J)] = np.repeat(np.exp(-J), 2)
    planes = 2 if doubled else 1
    begin = planes * np.concatenate([[0], np.cumsum(np.diff(merges.start) ** 2)])
    inside, log_sum, mean = np.zeros(begin[-1]), np.zeros(len(merges.child)), np.zeros(len(J) if with_means else 0)
    graph = merges, cities, begin, weight
    cuts = _cuts(merges)
    for k, (first, last) in enumerate(cuts):
        merge_all(first, last, *graph, planes, noise, inside, log_sum)
        tell((k + 1) / len(cuts) * (SHARE_OF_SUMS if with_means else 1.0))
    if with_means and np.isfinite(log_sum).all():
        outside = np.zeros(len(inside))
        for k, (first, last) in enumerate(cuts[::-1]):
            part_all(first, last, *graph, planes, noise, inside, outside, mean)
            tell(SHARE_OF_SUMS + (k + 1) / len(cuts) * (1.0 - SHARE_OF_SUMS))
    return Sums(log_sum, mean)


def _cuts(merges: Merges) -> list[tuple[int, int]]:
    """Return ranges of regions that take about equally long to merge."""
    work = np.cumsum(1.0 + np.diff(merges.start).astype(np.float64) ** 3)
    last = np.searchsorted(work, np.linspace(0.0, work.max(initial=0.0), REPORTS + 1)[1:-1]).tolist()
    ends = sorted({0, *last, len(work)})
    return list(itertools.pairwise(ends))


@compiled
def merge_all(
    first: int,
    last: int,
    tree: Merges,
    cities: Cities,
    begin: IntArray,
    weight: FloatArray,
    planes: int,
    noise: float,
    inside: FloatArray,
    log_sum: FloatArray,
) -> None:
    """Fill the matrices of some regions, and the logarithms of what each merger multiplies the Pfaffian by."""
    where, nobody, nothing = np.full(len(cities.walk), -1), np.empty(0, np.int64), np.empty((planes, 0, 0))
    for t in range(first, last):
        outer = tree.node[tree.start[t] : tree.start[t + 1]]
        if tree.child[t, 0] < 0:
            nodes = cities.walk[cities.start[t] : cities.start[t + 1]]
            M, log_sum[t] = _merge(
                nodes, _city(nodes, weight, planes), nobody, nothing, outer, where, cities.sign, noise
            )
        else:
            a, b = tree.child[t]
            one, two = tree.node[tree.start[a] : tree.start[a + 1]], tree.node[tree.start[b] : tree.start[b + 1]]
            A = inside[begin[a] : begin[a + 1]].reshape(planes, len(one), len(one))
            B = inside[begin[b] : begin[b + 1]].reshape(planes, len(two), len(two))
            M, log_sum[t] = _merge(one, A, two, B, outer, where, cities.sign, noise)
        inside[begin[t] : begin[t + 1]].reshape(planes, len(outer), len(outer))[:] = M


@compiled
def part_all(
    first: int,
    last: int,
    tree: Merges,
    cities: Cities,
    begin: IntArray,
    weight: FloatArray,
    planes: int,
    noise: float,
    inside: FloatArray,
    outside: FloatArray,
    mean: FloatArray,
) -> None:
    """Fill the means of edges, from the whole graph down to cities.

    A region's outside, merged with one of its parts, is the outside of the other part.
    """
    where, pair = np.full(len(cities.walk), -1), np.empty(2, np.int64)
    for t in range(last - 1, first - 1, -1):
        beyond = tree.node[tree.start[t] : tree.start[t + 1]] ^ 1
        rest = outside[begin[t] : begin[t + 1]].reshape(planes, len(beyond), len(beyond))
        if tree.child[t, 0] < 0:
            nodes = cities.walk[cities.start[t] : cities.start[t + 1]]
            M = _city(nodes, weight, planes)
            for h in nodes:
                if h % 2 == 0 and h // 2 < len(mean):
                    pair[0], pair[1] = h, h + 1
                    broken, _ = _merge(nodes, M, beyond, rest, pair, where, cities.sign, noise)
                    ratio = broken[0, 0, 1] * cities.sign[h // 2]  # the weight of states that break the edge
                    mean[h // 2] = (1.0 - ratio) / (1.0 + ratio)
            continue
        for side in range(2):
            part, other = tree.child[t, side], tree.child[t, 1 - side]
            nodes = tree.node[tree.start[other] : tree.start[other + 1]]
            B = inside[begin[other] : begin[other + 1]].reshape(planes, len(nodes), len(nodes))
            outer = tree.node[tree.start[part] : tree.start[part + 1]] ^ 1
            M, _ = _merge(nodes, B, beyond, rest, outer, where, cities.sign, noise)
            outside[begin[part] : begin[part + 1]].reshape(planes, len(outer), len(outer))[:] = M


@compiled
def _city(nodes: IntArray, weight: FloatArray, planes: int) -> FloatArray:
    """Return the matrix of a city, for its nodes in the order of its walk."""
    M = np.zeros((planes, len(nodes), len(nodes)))
    for i in range(len(nodes)):
        for j in range(i + 1, len(nodes)):
            value, rest = add_product(0.0, 0.0, weight[nodes[i]], 0.0, weight[nodes[j]], 0.0)
            M[planes - 1, i, j] = rest
            M[0, i, j] = value
    return M


@compiled
def _merge(
    one: IntArray,
    A: FloatArray,
    two: IntArray,
    B: FloatArray,
    outer: IntArray,
    where: IntArray,
    sign: FloatArray,
    noise: float,
) -> tuple[FloatArray, float]:
    """Return the matrix of two regions for the ``outer`` of their nodes, and the logarithm of the others' Pfaffian.

    The Pfaffian is -inf if the matrix is singular. ``where`` is -1 everywhere, and is left so.
    """
    planes, size, left = len(A), len(one) + len(two), len(outer)
    M, inner = np.zeros((planes, size, size)), np.empty(size, np.int64)
    for i in range(left):
        where[outer[i]] = i
    for h in np.concatenate((one, two)):
        if where[h] < 0:
            where[h] = left
            inner[left] = h
            left += 1
    for nodes, S in ((one, A), (two, B)):
        for i in range(len(nodes)):
            g = where[nodes[i]]
            for j in range(i + 1, len(nodes)):
                h = where[nodes[j]]
                for z in range(planes):
                    M[z, min(g, h), max(g, h)] = S[z, i, j] if g < h else -S[z, i, j]
    for i in range(len(outer), size):
        h = inner[i]
        j = where[h ^ 1]
        if i < j:
            bond = sign[h >> 1] if h % 2 == 0 else -sign[h >> 1]
            value, rest = add_product(M[0, i, j], M[planes - 1, i, j] * (planes - 1), bond, 0.0, 1.0, 0.0)
            M[planes - 1, i, j] = rest
            M[0, i, j] = value
    for h in one:
        where[h] = -1
    for h in two:
        where[h] = -1
    log = _eliminate(M[0], M[planes - 1], planes == 2, len(outer), noise)
    return M[:, : len(outer), : len(outer)], log


@compiled
def _eliminate(M: FloatArray, L: FloatArray, doubled: bool, first: int, noise: float) -> float:
    """Eliminate the nodes from ``first`` on, two by two; return the logarithm of their Pfaffian."""
    log, random = 0.0, 1
    v, w, v_low, w_low = np.empty(len(M)), np.empty(len(M)), np.empty(len(M)), np.empty(len(M))
    for end in range(len(M) - 2, first - 1, -2):  # what is left
        p = q = first
        for i in range(first, end + 2):  # the largest entry is the pivot
            for j in range(i + 1, end + 2):
                if abs(M[i, j]) > abs(M[p, q]) or p == q:
                    p, q = i, j
        pivot = M[p, q]
        if not 0.0 < abs(pivot) < np.inf:
            return -np.inf
        for place, k in ((end + 1, q), (end, p)):
            _exchange(M, k, place)
            if doubled:
                _exchange(L, k, place)
        pivot = M[end, end + 1]
        log += np.log(abs(pivot))
        for i in range(end):
            v[i], w[i] = M[i, end], M[i, end + 1] / pivot
        if not doubled:
            for i in range(end):
                a, b, row = v[i], w[i], M[i]
                if a != 0.0 or b != 0.0:
                    for j in range(i + 1, end):
                        row[j] += b * v[j] - a * w[j]
            continue
        log += L[end, end + 1] / pivot
        inverse, rest = reciprocal(pivot, L[end, end + 1])
        for i in range(end):
            v_low[i] = L[i, end]
            w[i], w_low[i] = add_product(0.0, 0.0, M[i, end + 1], L[i, end + 1], inverse, rest)
        for i in range(end):
            if v[i] != 0.0 or w[i] != 0.0:
                add_rows(M[i], L[i], i + 1, end, w[i], w_low[i], v, v_low, -v[i], -v_low[i], w, w_low)
                if noise > 0.0:
                    for j in range(i + 1, end):
                        random = (MULTIPLIER * random + 1) % MODULUS
                        size = abs(w[i] * v[j]) + abs(v[i] * w[j])
                        L[i, j] += noise * size * (random / MODULUS - 0.5)
    return log


@compiled
def _exchange(M: FloatArray, p: int, q: int) -> None:
    """Exchange the nodes p <= q; what comes after q is not used any more."""
    if p == q:
        return
    for j in range(p):
        M[j, p], M[j, q] = M[j, q], M[j, p]
    for j in range(p + 1, q):
        M[p, j], M[j, q] = -M[j, q], -M[p, j]
    M[p, q] = -M[p, q]
    for j in range(q + 1, len(M)):
        M[p, j], M[q, j] = M[q, j], M[p, j]

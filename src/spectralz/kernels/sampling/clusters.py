"""Turn whole clusters of spins of 64 states, compiled: Swendsen and Wang's move.

A pair whose coupling is satisfied is joined with probability 1 - exp(-2 |J|). Spins that are joined, directly or by
others, are a cluster, and each cluster is turned or left as it is, with odds given by the fields of its spins alone.
The move leaves any Boltzmann distribution as it is. Where couplings are frustrated its clusters are too large to be of
use.

Pairs are joined in all states at once, a bit for each of them. Clusters are then found state by state, which takes most
of the time and may be done for different states by different threads. Spins turn in all states at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner
from spectralz.kernels.sampling.lanes import LANES, drawn, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, RandomArray, SpinArray, WordArray
    from spectralz.kernels.sampling.lanes import SparsePath

WORDS, LAST_WORD = 2.0**32, 2.0**32 - 1.0
ONE_BIT = np.uint64(1)


class Joined(NamedTuple):
    """The spins of each edge, and the states in which they are joined, one bit for each."""

    first: ColumnArray
    second: ColumnArray
    states: WordArray


@compiled
def join_pairs(x: SpinArray, state: RandomArray, beta: float, path: SparsePath) -> Joined:
    """Join pairs of the states ``x``, (n, 64), at a point of the path; pairs without a coupling there are left out."""
    room = len(path.data) // 2
    first, second, joined = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint64)
    edges = 0
    for i in range(len(x)):
        for place in range(path.indptr[i], path.indptr[i + 1]):
            j = path.indices[place]
            coupling = path.data[place] + beta * path.data_change[place]
            if j <= i or coupling == 0.0:
                continue
            chance = np.uint32(min(-math.expm1(-2.0 * abs(coupling)) * WORDS, LAST_WORD))
            satisfied = np.int8(1) if coupling > 0.0 else np.int8(-1)
            states = np.uint64(0)
            for lane in range(LANES):
                is_joined = (x[i, lane] * x[j, lane] == satisfied) & (next_word(state, lane) < chance)
                states |= np.uint64(is_joined) << np.uint64(lane)
            first[edges], second[edges], joined[edges] = i, j, states
            edges += 1
    return Joined(first[:edges], second[:edges], joined[:edges])


@compiled
def choose_clusters(
    x: SpinArray, state: RandomArray, begin: int, end: int, beta: float, path: SparsePath, joined: Joined
) -> WordArray:
    """Find the clusters of the states ``begin`` to ``end``; return in which of them each spin turns, as bits."""
    n = len(x)
    turned = np.zeros(n, np.uint64)
    parents, log_odds, stays = np.empty(n, np.int32), np.empty(n), np.empty(n, np.bool_)
    has_fields = False
    for i in range(n):
        has_fields = has_fields or path.field[i] + beta * path.field_change[i] != 0.0
    for lane in range(begin, end):
        bit = ONE_BIT << np.uint64(lane)
        _find_clusters(joined, bit, parents)
        for i in range(n):
            log_odds[i] = 0.0
        if has_fields:
            for i in range(n):
                field = path.field[i] + beta * path.field_change[i]
                log_odds[parents[i]] += 2.0 * field * x[i, lane]
        for i in range(n):
            root = parents[i]
            if root == i:  # the first of its cluster
                stays[i] = drawn(np.float32(log_odds[i]), next_word(state, lane)) > 0
            if not stays[root]:
                turned[i] |= bit
    return turned


@compiled
def turn_spins(x: SpinArray, turned: WordArray) -> None:
    """Turn spins where a bit in some row of ``turned``, (rows, n), says so."""
    for i in range(len(x)):
        states = np.uint64(0)
        for row in range(len(turned)):
            states |= turned[row, i]
        for lane in range(LANES):
            x[i, lane] = -x[i, lane] if (states >> np.uint64(lane)) & ONE_BIT else x[i, lane]


@inlined
def _find_clusters(joined: Joined, bit: Any, parents: ColumnArray) -> None:
    """Write the first spin of each spin's cluster to ``parents``."""
    n = len(parents)
    for i in range(n):
        parents[i] = i
    for edge in range(len(joined.states)):
        if joined.states[edge] & bit:
            first, second = _root(parents, joined.first[edge]), _root(parents, joined.second[edge])
            parents[max(first, second)] = min(first, second)
    # The root of a cluster is its first spin, so that those of all spins before have been found.
    for i in range(n):
        parents[i] = parents[parents[i]]


@inner
def _root(parents: ColumnArray, i: Any) -> Any:
    """Return the root of a spin's cluster, and halve the way to it."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i

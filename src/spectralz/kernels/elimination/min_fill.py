"""The min-fill order of a graph, compiled: each time the spin whose elimination joins the fewest new pairs.

The graph is a matrix of bits, 64 to a word: the spins that v is joined to and its neighbor u is not are the bits of v
and not u, counted a word at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spectralz._support.compiling import compiled, inner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.elimination.tree import Adjacency, Order

__all__ = ["MOST_SPINS_FOR_MIN_FILL", "min_fill"]

# The graph is kept as a matrix of bits; beyond this many spins only the other orders are tried.
MOST_SPINS_FOR_MIN_FILL = 5000


def min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, seed: int | None = None) -> Order | None:
    """Eliminate a spin that joins the fewest new pairs each time; None if a separator grows beyond ``max_width``.

    Of several such spins the one with the fewest neighbors and then the first is taken, or with a seed a random one.
    """
    if len(spins) > MOST_SPINS_FOR_MIN_FILL:
        return None
    position = {v: k for k, v in enumerate(spins)}
    bits = np.zeros((len(spins), (len(spins) + 63) // 64), dtype=np.uint64)
    for v, k in position.items():
        for u in adjacency[v]:
            j = position[u]
            bits[k, j // 64] |= np.uint64(1 << (j % 64))
    random = seed is not None
    priority = np.random.default_rng(seed).permutation(len(spins)) if random else np.arange(len(spins))
    order, widths = _min_fill_of_bits(bits, priority, random, max_width)
    if len(order) < len(spins):
        return None
    return [spins[k] for k in order.tolist()], sum(1 << width for width in widths.tolist())


@intrinsic
def _count_bits(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(builder.bitcast(args[0], ir.IntType(64)))

    return types.int64(types.uint64), codegen


@inner
def _has_bit(row: NDArray[np.uint64], k: int) -> bool:
    return bool((row[k >> 6] >> np.uint64(k & 63)) & np.uint64(1))


@inner
def _clear_bit(row: NDArray[np.uint64], k: int) -> None:
    row[k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


@inner
def _fill_of(bits: NDArray[np.uint64], v: int) -> int:
    """Count the pairs of neighbors of v that are not joined yet."""
    n, words = bits.shape
    missing = 0
    for u in range(n):
        if _has_bit(bits[v], u):
            for w in range(words):
                missing += _count_bits(bits[v, w] & ~bits[u, w])
            missing -= 1  # u itself is a neighbor of v and not of u
    return missing // 2


@inner
def _degree_of(bits: NDArray[np.uint64], v: int) -> int:
    degree = 0
    for w in range(bits.shape[1]):
        degree += _count_bits(bits[v, w])
    return degree


@compiled
def _min_fill_of_bits(
    bits: NDArray[np.uint64], priority: NDArray[np.int64], ignore_degree: bool, max_width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the min-fill order (ties: fewest neighbors, then priority) and its widths, cut short where too wide."""
    n, words = bits.shape
    fill = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    alive = np.ones(n, np.bool_)
    affected = np.empty(n, np.bool_)
    order = np.empty(n, np.int64)
    widths = np.empty(n, np.int64)
    for v in range(n):
        fill[v] = _fill_of(bits, v)
        degree[v] = _degree_of(bits, v)
    for step in range(n):
        best = -1
        for v in range(n):
            if not alive[v]:
                continue
            if best < 0 or fill[v] < fill[best]:
                best = v
            elif fill[v] == fill[best]:
                tied = ignore_degree or degree[v] == degree[best]
                if (tied and priority[v] < priority[best]) or (not tied and degree[v] < degree[best]):
                    best = v
        if degree[best] > max_width:
            return order[:step], widths[:step]
        order[step] = best
        widths[step] = degree[best]
        alive[best] = False
        affected[:] = False
        separator = bits[best].copy()
        for u in range(n):
            if _has_bit(separator, u):
                affected[u] = True
                for w in range(words):
                    bits[u, w] |= separator[w]
                _clear_bit(bits[u], u)
                _clear_bit(bits[u], best)
                degree[u] = _degree_of(bits, u)
        if fill[best] > 0:  # new edges change the fill of whoever sees both their ends
            for u in range(n):
                if _has_bit(separator, u):
                    for x in range(n):
                        if _has_bit(bits[u], x):
                            affected[x] = True
        for u in range(n):
            if affected[u]:
                fill[u] = _fill_of(bits, u)
    return order, widths

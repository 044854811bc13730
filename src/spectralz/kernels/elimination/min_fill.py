"""The min-fill order of a graph, compiled: always eliminate the spin that joins the fewest new pairs.

The graph is a matrix of bits, 64 per word. The spins joined to v but not to its neighbor u are the bits of v and not u,
counted one word at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner, intrinsic, ir, types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import IntArray, WordArray
    from spectralz.kernels.elimination.tree import Adjacency, Order

# The graph is kept as a matrix of bits; beyond this many spins only the other orders are tried.
MOST_SPINS_FOR_MIN_FILL = 5000


def min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, seed: int | None = None) -> Order | None:
    """Repeatedly eliminate a spin that joins the fewest new pairs; None if a separator grows beyond ``max_width``.

    Ties go to the spin with the fewest neighbors and then to the first one, or with a seed to a random one.
    """
    if len(spins) > MOST_SPINS_FOR_MIN_FILL:
        return None
    position = {v: k for k, v in enumerate(spins)}
    n = len(spins)
    bits = np.zeros((n + 1, (n + 63) // 64), dtype=np.uint64)
    for v, k in position.items():
        for u in adjacency[v]:
            j = position[u]
            bits[k, j // 64] |= np.uint64(1 << (j % 64))
    random = seed is not None
    priority = np.random.default_rng(seed).permutation(n) if random else np.arange(n)
    degree = np.array([len(adjacency[v]) for v in spins], dtype=np.int64)
    order, key = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    if not _min_fill_of_bits(bits, priority, random, max_width, degree, key, order):
        return None
    return [spins[k] for k in order.tolist()], sum(1 << width for width in degree.tolist())


def most_time_of_min_fill(n: int, max_width: int) -> float:
    """Return how many nanoseconds it takes at most, about: each spin changes the fill of the neighbors' neighbors."""
    return n * max_width**3 * (n / 64.0)


@intrinsic
def count_bits(typingctx: Any, word: Any) -> Any:
    """Count the ones of a word with one instruction; for use in kernels."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(builder.bitcast(args[0], ir.IntType(64)))

    return types.int64(types.uint64), codegen


@inner
def _has_bit(bits: WordArray, v: int, u: int) -> bool:
    return (bits[v, u >> 6] >> np.uint64(u & 63)) & np.uint64(1) != 0


@inlined
def _fill_of(bits: WordArray, v: int) -> int:
    """Count the pairs of neighbors of v that are not joined yet."""
    missing = 0
    rows, words = bits.shape
    for u in range(rows - 1):
        if _has_bit(bits, v, u):
            for w in range(words):
                missing += count_bits(bits[v, w] & ~bits[u, w])
            missing -= 1  # u itself is a neighbor of v and not of u
    return missing // 2


@compiled
def _min_fill_of_bits(
    bits: WordArray,
    priority: IntArray,
    ignore_degree: bool,
    max_width: int,
    degree: IntArray,
    key: IntArray,
    order: IntArray,
) -> bool:
    """Write the min-fill order (ties: fewest neighbors, then priority); return False where it becomes too wide.

    ``degree`` holds the spins' degrees, and in the end the widths at which they were eliminated. One more row of
    ``bits`` marks the spins whose fill has changed. The smallest ``key`` is eliminated: one number made of a spin's
    fill, degree and priority.
    """
    n, words = len(order), (len(priority) + 63) >> 6
    for w in range(words):
        bits[n, w] = ~np.uint64(0)
    for step in range(n):
        best = -1
        for u in range(n):
            if _has_bit(bits, n, u):
                key[u] = (_fill_of(bits, u) * n + (0 if ignore_degree else degree[u])) * n + priority[u]
            if key[u] >= 0 and (best < 0 or key[u] < key[best]):
                best = u
        if degree[best] > max_width:
            return False
        order[step] = best
        joins = key[best] >= n * n
        key[best] = -1
        for w in range(words):
            bits[n, w] = bits[best, w]
        for u in range(n):
            if _has_bit(bits, best, u):
                for w in range(words):
                    bits[u, w] |= bits[best, w]
                bits[u, u >> 6] &= ~(np.uint64(1) << np.uint64(u & 63))
                bits[u, best >> 6] &= ~(np.uint64(1) << np.uint64(best & 63))
                degree[u] = 0
                for w in range(words):
                    degree[u] += count_bits(bits[u, w])
                    if joins:  # new edges change the fill of whoever sees both their ends
                        bits[n, w] |= bits[u, w]
    return True

"""Improve an elimination order by annealing: random turns of the elimination tree, compiled.

Let p be the parent of v in the elimination tree. Eliminating p just before v instead of just after it changes only two
separators: v takes over the separator of p, and p gets a new one,

    (neighbors of p among its old separator and v) + (separators of p's other children)
        + (separators of those children of v that contain p) + v - p.

These children of v become children of p. Such turns reach every order, and each costs only a few operations on words of
bits. The tables of the pair have 2^|sep v| + 2^|sep p| entries. A turn that multiplies this by 2^d is made with
probability exp(-beta d), and always if d <= 0. Comparing pairs instead of the whole tree improves the whole tree and
not only its widest tables. The same was done for trees of tensor contractions in [1]_.

References
----------
.. [1] Kalachev, Panteleev, Yung, "Recursive multi-tensor contraction for XEB verification of quantum circuits",
   arXiv:2108.05665 (2021).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support import costs
from spectralz._support.compiling import compiled, inner
from spectralz.kernels.elimination.min_fill import count_bits
from spectralz.kernels.elimination.tree import separators_of
from spectralz.kernels.sampling.heat_bath import GOLDEN, mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.kernels.arrays import FloatArray, IntArray, WordArray
    from spectralz.kernels.elimination.tree import Adjacency

# The separators are kept as rows of bits.
MOST_SPINS_TO_ANNEAL = 5000
# The beta at which each round begins, and the beta at which all end. Warm rounds forget their start, cold ones improve
# it.
WARMEST_BETAS = (2.5, 2.5, 2.5, 3.0, 1.5)
COLDEST_BETA = 6.0
TEMPERATURES = 100
FEWEST_SWEEPS = 200  # in a round, over all temperatures
# A table of twice the size must save this share of the work: of two orders that take about as long, the narrower one
# wins.
PRICE_OF_WIDTH = 0.15
# log2(1 + 2^x) for x from -LOWEST to 1: a separator is at most one spin wider than that of its parent.
LOWEST = 60
LOG_OF_PAIR = np.log2(1.0 + 2.0 ** np.arange(-LOWEST, 2))
HALF, LOW_HALF, ONE = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)


def steps_in(nanoseconds: float, n: int) -> int:
    """Return how many turns of a tree of ``n`` spins are tried in a given time; predicted, not measured."""
    return int(nanoseconds / (costs.ORDER_TRY_NANOSECONDS + costs.ORDER_WORD_NANOSECONDS * ((n + 63) // 64)))


def annealed_order(
    starts: Sequence[Sequence[int]], adjacency: Adjacency, steps: int, max_width: int, report: Callable[[float], None]
) -> list[int]:
    """Return the best order found by ``steps`` tried turns; the result is reproducible.

    Parameters
    ----------
    starts
        Orders of the same spins to begin from, the best first.
    adjacency
        The neighbors of each spin, all among those of the orders.
    steps
        How many turns to try; a million takes about a tenth of a second.
    max_width
        Wider separators than this are avoided.
    report
        Called with the share that is done.
    """
    spins = sorted(starts[0])
    n = len(spins)
    sweeps = max(steps // (len(WARMEST_BETAS) * max(n, 1)), FEWEST_SWEEPS)
    rounds = min(max(steps // (sweeps * max(n, 1)), 1), len(WARMEST_BETAS))
    best, best_cost = list(starts[0]), np.inf
    for k in range(rounds):
        tree = _Tree.of_order(starts[k] if k < len(starts) else best, spins, adjacency)
        betas = np.linspace(WARMEST_BETAS[k], COLDEST_BETA, TEMPERATURES)
        cost = float(_anneal(tree, betas, -(-sweeps // TEMPERATURES), max_width, k))
        if cost < best_cost:
            best, best_cost = _order_of(spins, tree.best_parent), cost
        report((k + 1) / rounds)
    return best


class _Tree(NamedTuple):
    """An elimination tree as arrays: separators as bits, parents, and children as linked lists."""

    neighbors: WordArray
    separator: WordArray
    width: IntArray
    parent: IntArray
    first: IntArray
    following: IntArray
    best_parent: IntArray  # in the best tree on the way

    @classmethod
    def of_order(cls, order: Sequence[int], spins: list[int], adjacency: Adjacency) -> _Tree:
        """Return the tree of an order of the spins, which are numbered by their places in ``spins``."""
        n = len(spins)
        place = {v: k for k, v in enumerate(spins)}
        separators, children, _ = separators_of(order, adjacency)
        neighbors, separator = np.zeros((2, n, (n + 63) // 64), dtype=np.uint64)
        width, parent, first, following = np.full((4, n), -1, dtype=np.int64)
        for v, spins_between, below in zip(order, separators, children, strict=True):
            at = place[v]
            _set_bits(neighbors[at], [place[u] for u in adjacency[v]])
            _set_bits(separator[at], [place[u] for u in spins_between])
            width[at] = len(spins_between)
            for child in below:
                c = place[order[child]]
                parent[c], following[c], first[at] = at, first[at], c
        return cls(neighbors, separator, width, parent, first, following, parent.copy())


def _order_of(spins: list[int], parents: IntArray) -> list[int]:
    """Return the order of a tree, each spin after all below it."""
    below: list[list[int]] = [[] for _ in spins]
    stack: list[int] = []
    for v, p in enumerate(parents.tolist()):
        (stack if p < 0 else below[p]).append(v)
    order = []
    while stack:
        order.append(stack.pop())
        stack.extend(below[order[-1]])
    return [spins[v] for v in reversed(order)]


def _set_bits(row: WordArray, places: list[int]) -> None:
    for j in places:
        row[j // 64] |= np.uint64(1 << (j % 64))


@inner
def _cost(width: IntArray, max_width: int) -> float:
    """Return the table entries, scaled up by the price of the widest table and by a penalty for excess width."""
    total = 0.0
    widest = 0
    for w in width:
        total += 2.0**w
        widest = max(widest, w)
    return total * 2.0 ** (PRICE_OF_WIDTH * widest + 0.5 * max(widest - max_width, 0))


@inner
def _put_in_place(first: IntArray, following: IntArray, of: int, old: int, new: int) -> None:
    """Replace ``old`` by ``new`` among the children of ``of``."""
    if first[of] == old:
        first[of] = new
        return
    c = first[of]
    while following[c] != old:
        c = following[c]
    following[c] = new


@compiled
def _anneal(tree: _Tree, betas: FloatArray, sweeps: int, max_width: int, seed: int) -> float:
    """Turn the tree, with the given sweeps at each temperature; return the cost of the best tree on the way."""
    neighbors, separator, width, parent, first, following, best_parent = tree
    n, words = neighbors.shape
    new = np.empty(words, np.uint64)
    best = _cost(width, max_width)
    counter = np.uint64(seed) << np.uint64(40)
    for beta in betas:
        for _ in range(sweeps):
            for _ in range(n):
                counter += GOLDEN
                z = mixed(counter)
                v = np.int64(((z >> HALF) * np.uint64(n)) >> HALF)
                p = parent[v]
                if p < 0:
                    continue
                v_word, v_bit = v >> 6, ONE << np.uint64(v & 63)
                p_word, p_bit = p >> 6, ONE << np.uint64(p & 63)
                for w in range(words):
                    new[w] = separator[p, w] & neighbors[p, w]
                c = first[p]
                while c >= 0:
                    if c != v:
                        for w in range(words):
                            new[w] |= separator[c, w]
                    c = following[c]
                c = first[v]
                while c >= 0:
                    if separator[c, p_word] & p_bit:
                        for w in range(words):
                            new[w] |= separator[c, w]
                    c = following[c]
                new[v_word] |= v_bit
                new[p_word] &= ~p_bit
                wide = 0
                for w in range(words):
                    wide += count_bits(new[w])
                before, after = max(width[v] - width[p], -LOWEST), max(wide - width[p], -LOWEST)
                growth = LOG_OF_PAIR[after + LOWEST] - LOG_OF_PAIR[before + LOWEST]
                if growth > 0.0 and (z & LOW_HALF) * 2.0**-32 >= math.exp(-beta * growth):
                    continue

                _put_in_place(first, following, p, v, following[v])
                if parent[p] >= 0:
                    _put_in_place(first, following, parent[p], p, v)
                parent[v], following[v] = parent[p], following[p]
                c = first[v]
                first[v] = -1
                while c >= 0:
                    after_c = following[c]
                    above = p if separator[c, p_word] & p_bit else v
                    parent[c], following[c], first[above] = above, first[above], c
                    c = after_c
                parent[p], following[p], first[v] = v, first[v], p
                for w in range(words):
                    separator[v, w] = separator[p, w]
                    separator[p, w] = new[w]
                width[v], width[p] = width[p], wide
            cost = _cost(width, max_width)
            if cost < best:
                best = cost
                for u in range(n):
                    best_parent[u] = parent[u]
    return best

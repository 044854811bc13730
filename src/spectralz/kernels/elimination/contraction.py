"""Elimination orders from contractions of tensor networks found by the package cotengra.

Each edge is a tensor over its two spins. A contraction joins two tensors at a time. A spin is summed out once all
tensors that contain it have been joined; this gives an order of the spins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz._support.extras import from_extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spectralz.kernels.elimination.tree import Adjacency

# Number of contractions that cotengra tries; the best is taken. It draws them with a seed, so they are always the same.
REPEATS = 64


def contraction_order(spins: Sequence[int], adjacency: Adjacency) -> list[int]:
    """Return the spins of one component in the order in which the best of cotengra's random contractions ends them."""
    cotengra = from_extra("cotengra", "orders", "an elimination order by cotengra")
    pairs = [(u, v) for u in spins for v in sorted(adjacency[u]) if u < v]
    optimizer = cotengra.RandomGreedyOptimizer(max_repeats=REPEATS, seed=0, accel=False, parallel=False)
    path = optimizer.ssa_path(pairs, (), dict.fromkeys(spins, 2))
    return order_of_contraction(pairs, path)


def order_of_contraction(pairs: Sequence[tuple[int, int]], path: Iterable[Sequence[int]]) -> list[int]:
    """Return the spins in the order in which a contraction of edges sums them out.

    ``path`` names the tensors that are joined: edges by their number, then the results one after the other.

    Examples
    --------
    >>> order_of_contraction([(0, 1), (1, 2), (2, 3)], [(0, 1), (2, 3)])
    [0, 1, 2, 3]
    """
    left: dict[int, int] = {}  # tensors that contain each spin
    for pair in pairs:
        for v in pair:
            left[v] = left.get(v, 0) + 1
    tensors = [set(pair) for pair in pairs]
    order: list[int] = []
    for joined in path:
        result: set[int] = set()
        for tensor in joined:
            for v in tensors[tensor]:
                left[v] -= 1
            result |= tensors[tensor]
        for v in sorted(v for v in result if left[v] == 0):
            order.append(v)
            result.discard(v)
        for v in result:
            left[v] += 1
        tensors.append(result)
    # Spins left over by a path that does not join everything: of a single edge, or of a part of the edges.
    return order + sorted(set(left) - set(order))

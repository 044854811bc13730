"""Exchange clusters of spins between copies at the same temperature, compiled (Houdayer).

Where two copies of a model differ, connected spins form clusters. To exchange a cluster between the copies changes the
energies of both, but not their sum: inside it their spins are opposite, around it they are equal. So each exchange
leaves the joint distribution of the copies as it is, and turns as many spins as a valley is wide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.sampling.lanes import LANES, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, IntArray, RandomArray, SpinArray


@inner
def _below(state: RandomArray, lane: int, count: int) -> int:
    """Draw a whole number from 0 to ``count`` - 1."""
    return int(np.uint64(next_word(state, lane)) * np.uint64(count) >> np.uint64(32))


@inner
def _start(x: SpinArray, one: int, other: int, is_even: bool, state: RandomArray, left: SpinArray) -> int:
    """Mark where two lanes differ, and return a random such spin, or -1.

    In a model that is even, a lane with more than half of its spins opposite is turned over first.
    """
    n, count = len(x), 0
    for i in range(n):
        count += x[i, one] != x[i, other]
    if is_even and 2 * count > n:
        count = n - count
        for i in range(n):
            x[i, other] = -x[i, other]
    if count == 0:
        return -1
    before = _below(state, one, count)
    start = -1
    for i in range(n):
        left[i] = x[i, one] != x[i, other]
        if left[i]:
            if before == 0:
                start = i
            before -= 1
    return start


@compiled
def exchange_clusters(
    x: SpinArray, state: RandomArray, group: int, is_even: bool, indptr: IntArray, indices: ColumnArray
) -> int:
    """Exchange a cluster between the lanes of random pairs, each within its group of so many lanes.

    ``x`` is (n, 64), ``state`` (4, 64). Return how many spins were exchanged.
    """
    n, exchanged = len(x), 0
    stack, left = np.empty(n, np.int64), np.zeros(n, np.int8)
    lanes = np.arange(LANES)
    for begin in range(0, LANES, group):
        for k in range(group - 1):  # a random order of the group; its neighbors are the pairs
            other = k + _below(state, begin, group - k)
            lanes[begin + k], lanes[begin + other] = lanes[begin + other], lanes[begin + k]
        for k in range(begin, begin + group - 1, 2):
            one, other = lanes[k], lanes[k + 1]
            start = _start(x, one, other, is_even, state, left)
            size = 0
            if start >= 0:
                stack[0], size = start, 1
                left[start] = 0
            while size > 0:
                size -= 1
                i = stack[size]
                x[i, one], x[i, other] = x[i, other], x[i, one]
                exchanged += 1
                for place in range(indptr[i], indptr[i + 1]):
                    j = indices[place]
                    if left[j]:
                        left[j] = 0
                        stack[size] = j
                        size += 1
            if is_even and _below(state, other, 2) == 0:  # so that no side is preferred
                for i in range(n):
                    x[i, other] = -x[i, other]
    return exchanged

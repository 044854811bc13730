"""Walsh transforms in place, for kernels that sum over all states of a few spins.

Bit i of an index is spin i: in a set if it is 1, and +1 in a state if it is 1.
"""

from __future__ import annotations

import numpy as np

from spectralz._support.compiling import compiled_for_kernels


@compiled_for_kernels
def sum_over_sets(table, size):  # type: ignore[no-untyped-def]
    """Turn numbers of sets into their sums over all sets in every state, times the products of the sets' spins."""
    for a in range(size):
        bit = 1 << a
        for s in range(1 << size):
            if not s & bit:
                even, odd = table[s], table[s | bit]
                table[s], table[s | bit] = even - odd, even + odd


@compiled_for_kernels
def sum_over_states(table, size):  # type: ignore[no-untyped-def]
    """Turn numbers of states into their sums over all states for every set, times the products of the sets' spins."""
    for a in range(size):
        bit = 1 << a
        for s in range(1 << size):
            if not s & bit:
                low, high = table[s], table[s | bit]
                table[s], table[s | bit] = low + high, high - low


@compiled_for_kernels
def normalize(table, size):  # type: ignore[no-untyped-def]
    """Turn log-weights of states into probabilities; return the log of the sum of the weights."""
    highest = table[0]
    for s in range(1, 1 << size):
        highest = max(highest, table[s])
    total = 0.0
    for s in range(1 << size):
        table[s] = np.exp(table[s] - highest)
        total += table[s]
    for s in range(1 << size):
        table[s] /= total
    return highest + np.log(total)

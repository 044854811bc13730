"""Fields of a population of states, compiled, and random numbers that belong to counters.

For each state x the fields h_i = theta_i + sum_j J_ij x_j are kept up to date, so that a flipped spin costs a pass over
its row. The kernels release the interpreter's lock, so parts of a population may run in threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, SpinArray
    from spectralz.kernels.coupling import Couplings

# Steele, Lea and Flood's splitmix64: a counter in steps of the golden ratio, whose bits are then mixed.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


@inner
def mixed(counter: Any) -> Any:
    """Return the 64 random bits that belong to a counter."""
    z = (counter ^ (counter >> SHIFT_1)) * MIX_1
    z = (z ^ (z >> SHIFT_2)) * MIX_2
    return z ^ (z >> SHIFT_3)


@inlined
def tell_neighbors(i: int, spin: int, h: FloatArray, couplings: Couplings) -> None:
    """Update the fields of the neighbors of spin i after it has become ``spin``."""
    begin, end = couplings.indptr[i], couplings.indptr[i + 1]
    change = 2.0 * spin
    if couplings.is_dense:
        for j in range(end - begin):
            h[j] += change * couplings.data[begin + j]
    else:
        for place in range(begin, end):
            h[couplings.indices[place]] += change * couplings.data[place]


@compiled
def refresh(x: SpinArray, h: FloatArray, theta: FloatArray, couplings: Couplings) -> None:
    """Recompute the fields of every state, which removes accumulated rounding errors."""
    size, n = x.shape
    for r in range(size):
        for i in range(n):
            total = theta[i]
            begin = couplings.indptr[i]
            for place in range(begin, couplings.indptr[i + 1]):
                j = place - begin if couplings.is_dense else couplings.indices[place]
                total += couplings.data[place] * x[r, j]
            h[r, i] = total

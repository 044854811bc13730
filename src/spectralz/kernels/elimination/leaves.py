"""Sum out together spins that have the same neighbors, and no tables to use up: those of an RBM's larger layer.

Each of them has a field y = low + high, of the spins in the low and the high bits of the state, and its sum is

    2 cosh(y) = exp(|low| + |high|) (P p + M m),    P = exp(low - |low|), M = exp(-low - |low|), p and m alike of high.

P and M are tabulated once, p and m are the same in all of a block, and all terms are positive: nothing cancels. So an
entry takes two multiplications and an addition, and one logarithm serves several spins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import inner
from spectralz.kernels.logsum import exp_minus, log_add_exp

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray
    from spectralz.kernels.elimination.program import Program, Steps

# Spins summed out together at most, a multiple of four, and the bits of a state that are low.
TOGETHER, LOW_BITS = 16, 9
# A product of factors is at least exp of minus this; beyond it each spin takes a logarithm of its own.
MOST_SPREAD = 600.0


class Leaves(NamedTuple):
    """Work arrays: one row per spin, and one column per state of the low bits."""

    low: FloatArray
    plus: FloatArray  # P
    minus: FloatArray  # M
    sizes: FloatArray  # the sum of |low| over the spins
    product: FloatArray
    largest: FloatArray  # |low| of each spin
    high: FloatArray  # of each spin: high, p and m

    @classmethod
    def of(cls, program: Program) -> Leaves | None:
        """Make room if there are such spins; None if there are none."""
        if not np.any((program.slot[1:] == program.slot[:-1]) & (program.width[1:] >= LOW_BITS)):
            return None
        rows, size = TOGETHER, 1 << LOW_BITS
        low, plus, minus = (np.empty((rows, size)) for _ in range(3))
        return cls(low, plus, minus, np.empty(size), np.empty(size), np.empty(rows), np.empty((rows, 3)))


@inner
def count_alike(steps: Steps, t: int, end: int) -> int:
    """Return how many spins from step t on can be summed out together; 1 if there is no other."""
    count = 1
    if steps.width[t] < LOW_BITS or steps.child_start[t + 1] > steps.child_start[t]:
        return count
    if steps.term_start[t + 1] > steps.term_start[t] or len(steps.table_entry):
        return count
    while (
        count < TOGETHER
        and t + count < end
        and steps.slot[t + count] == steps.slot[t]
        and steps.child_start[t + count + 1] == steps.child_start[t + count]
        and steps.term_start[t + count + 1] == steps.term_start[t + count]
    ):
        count += 1
    return count


@inner
def fill_together(steps: Steps, t: int, count: int, out: FloatArray, leaves: Leaves) -> float:
    """Write the table of the spins of steps t to t + count, shifted to begin with 0; return the shift."""
    size = 1 << LOW_BITS
    _tabulate(steps, t, count, leaves)
    shift = 0.0
    for number in range(len(out) >> LOW_BITS):
        part = out[number * size : (number + 1) * size]
        height, spread = _find_high(steps, t, count, number, leaves)
        if spread <= MOST_SPREAD:
            _multiply(leaves)
            for i in range(size):
                part[i] = np.log(leaves.product[i]) + (leaves.sizes[i] + height)
        else:
            part[:] = 0.0
            for k in range(count):
                for i in range(size):
                    y = leaves.low[k, i] + leaves.high[k, 0]
                    part[i] += log_add_exp(y, -y)
        if number == 0:
            shift = part[0]
        for i in range(size):
            part[i] -= shift
    return shift


@inner
def _tabulate(steps: Steps, t: int, count: int, leaves: Leaves) -> None:
    """Tabulate what the low bits add; rows without a spin have the factor 1."""
    low, plus, minus, sizes, _, largest, high = leaves
    size = 1 << LOW_BITS
    sizes[:] = 0.0
    for k in range(TOGETHER):
        low[k, :] = 0.0
        if k < count:
            for pair in range(steps.pair_start[t + k], steps.pair_start[t + k + 1]):
                bit, weight = steps.pair_bit[pair], steps.pair_weight[pair]
                if bit < LOW_BITS:
                    for i in range(size):
                        low[k, i] += weight if (i >> bit) & 1 else -weight
        most = 0.0
        for i in range(size):
            y = low[k, i]
            small = exp_minus(2.0 * abs(y))
            plus[k, i] = 1.0 if y >= 0.0 else small
            minus[k, i] = small if y >= 0.0 else 1.0
            sizes[i] += abs(y)
            most = max(most, abs(y))
        largest[k] = most
        high[k, 1], high[k, 2] = 1.0, 0.0
        if k >= count:
            plus[k, :] = 1.0


@inner
def _find_high(steps: Steps, t: int, count: int, number: int, leaves: Leaves) -> tuple[float, float]:
    """Find what the high bits of a block add; return the sum of its sizes, and how small a product may be."""
    height, spread = 0.0, 0.0
    for k in range(count):
        y = steps.field[t + k]
        for pair in range(steps.pair_start[t + k], steps.pair_start[t + k + 1]):
            bit, weight = steps.pair_bit[pair] - LOW_BITS, steps.pair_weight[pair]
            if bit >= 0:
                y += weight if (number >> bit) & 1 else -weight
        small = exp_minus(2.0 * abs(y))
        leaves.high[k, 0] = y
        leaves.high[k, 1] = 1.0 if y >= 0.0 else small
        leaves.high[k, 2] = small if y >= 0.0 else 1.0
        height += abs(y)
        spread += 2.0 * min(abs(y), leaves.largest[k])
    return height, spread


@inner
def _multiply(leaves: Leaves) -> None:
    """Multiply the factors of all spins, four at a time."""
    _, plus, minus, _, product, _, high = leaves
    for k in range(0, TOGETHER, 4):
        p0, p1, p2, p3 = high[k, 1], high[k + 1, 1], high[k + 2, 1], high[k + 3, 1]
        m0, m1, m2, m3 = high[k, 2], high[k + 1, 2], high[k + 2, 2], high[k + 3, 2]
        P0, P1, P2, P3 = plus[k], plus[k + 1], plus[k + 2], plus[k + 3]
        M0, M1, M2, M3 = minus[k], minus[k + 1], minus[k + 2], minus[k + 3]
        for i in range(1 << LOW_BITS):
            first = (P0[i] * p0 + M0[i] * m0) * (P1[i] * p1 + M1[i] * m1)
            second = (P2[i] * p2 + M2[i] * m2) * (P3[i] * p3 + M3[i] * m3)
            product[i] = first * second * (product[i] if k else 1.0)

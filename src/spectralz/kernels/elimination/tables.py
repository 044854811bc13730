"""Fill the tables of an elimination block by block, for the passes in either direction.

A table of 2^w entries is filled in blocks of 2^9. Terms that depend on the low bits of the state are tabulated once,
and terms that depend on the high bits are constant in a block. So the inner loops are plain sums over arrays that stay
in the first-level cache.

States that a constraint excludes have the log-weight ``EXCLUDED`` instead of minus infinity, far below that of any
other state: sums with it are never NaN, and whatever is below ``LEAST`` is set to it again when a table is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.elimination.program import Program, Steps

BLOCK_BITS = 9
# The weights of a model add up to at most 1e300 (model/checks.py).
EXCLUDED, LEAST = -1e305, -1e303


class Tables(NamedTuple):
    """The entries of all tables, where each table begins, and how large its entries are."""

    arena: FloatArray
    where: IntArray
    spread: FloatArray  # the largest entry of each table, or nothing if that is not wanted


class Block(NamedTuple):
    """Work arrays for one block: the log-weights of x_v = -1 and +1, and what is the same in all blocks of a step."""

    minus: FloatArray
    plus: FloatArray
    low_field: FloatArray  # what the spins in the low bits add to the field of x_v
    places: IntArray  # of a block's entries in the table of the first child, of the second, ..., of each constraint

    @classmethod
    def of(cls, program: Program | Steps) -> Block:
        """Make room for the blocks of all steps."""
        size = 1 << BLOCK_BITS
        count = np.diff(program.child_start) + np.diff(program.table_start)
        places = count << np.minimum(program.width, BLOCK_BITS)
        room = np.empty(places.max(initial=0), dtype=np.int64)
        return cls(np.empty(size), np.empty(size), np.empty(size), room)


@inner
def compressed(index: int, mask: int) -> int:
    """Gather the bits of ``index`` that stand under the ones of ``mask``."""
    out = 0
    place = 0
    while mask:
        if mask & 1:
            out |= (index & 1) << place
            place += 1
        mask >>= 1
        index >>= 1
    return out


@inner
def sign_of(state: int, mask: int) -> float:
    """Return the product of the spins under the ones of ``mask``; a bit of the state is 1 for +1."""
    down = mask & ~state
    down ^= down >> 32
    down ^= down >> 16
    down ^= down >> 8
    down ^= down >> 4
    return -1.0 if (0x6996 >> (down & 15)) & 1 else 1.0


@inner
def fill_block(steps: Steps, t: int, number: int, low: int, tables: Tables, block: Block) -> None:
    """Write the log-weights of x_v = -1 and +1 for all separator states of one block; number 0 must come first."""
    minus, plus, low_field, places = block
    arena, where, _ = tables
    size = 1 << low
    first = steps.child_start[t]
    if number == 0:
        for i in range(size):
            low_field[i] = 0.0
        for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
            bit, weight = steps.pair_bit[k], steps.pair_weight[k]
            if bit < low:
                for i in range(size):
                    low_field[i] += weight if (i >> bit) & 1 else -weight
        for k in range(steps.term_start[t], steps.term_start[t + 1]):
            mask, weight = steps.term_mask[k], steps.term_weight[k]
            if mask < size:
                for i in range(size):
                    low_field[i] += weight * sign_of(i, mask)
        for k in range(first, steps.child_start[t + 1]):
            for i in range(size):
                places[(k - first) * size + i] = 2 * compressed(i, steps.child_mask[k])
        for k in range(steps.table_start[t], steps.table_start[t + 1]):
            row = steps.child_start[t + 1] - first + k - steps.table_start[t]
            for i in range(size):
                places[row * size + i] = 2 * compressed(i, steps.table_mask[k])
    high_field = steps.field[t]
    for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
        bit, weight = steps.pair_bit[k] - low, steps.pair_weight[k]
        if bit >= 0:
            high_field += weight if (number >> bit) & 1 else -weight
    for i in range(size):
        plus[i] = low_field[i] + high_field
        minus[i] = -plus[i]
    for k in range(steps.term_start[t], steps.term_start[t + 1]):
        mask = steps.term_mask[k]
        if mask >= size:
            weight = steps.term_weight[k] * sign_of(number, mask >> low)
            for i in range(size):
                change = weight * sign_of(i, mask & (size - 1))
                plus[i] += change
                minus[i] -= change
    for k in range(first, steps.child_start[t + 1]):
        mask = steps.child_mask[k]
        base = where[steps.child_slot[k]] + 2 * compressed(number << low, mask)
        if mask & (size - 1) == size - 1:  # the entries lie one after the other
            table = arena[base : base + 2 * size]
            for i in range(size):
                minus[i] += table[2 * i]
                plus[i] += table[2 * i + 1]
        else:
            for i in range(size):
                at = base + places[(k - first) * size + i]
                minus[i] += arena[at]
                plus[i] += arena[at + 1]
    for k in range(steps.table_start[t], steps.table_start[t + 1]):
        row = steps.child_start[t + 1] - first + k - steps.table_start[t]
        base = steps.table_at[k] + 2 * compressed(number << low, steps.table_mask[k])
        for i in range(size):
            at = base + places[row * size + i]
            minus[i] += steps.table_entry[at]
            plus[i] += steps.table_entry[at + 1]

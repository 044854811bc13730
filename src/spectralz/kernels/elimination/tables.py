"""Filling the tables of an elimination block by block, for the passes in either direction.

A table of 2^w entries is filled in blocks of 2^9: what depends on the low bits of the state is tabulated once, and what
depends on the high bits is the same for a whole block, so that the inner loops are plain sums over arrays that stay in
the first-level cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.elimination.program import Program

__all__ = ["BLOCK_BITS", "block_tables", "compressed", "fill_block"]

BLOCK_BITS = 9


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
def block_tables(
    program: Program,
    low: int,
    pairs: tuple[int, int],
    children: tuple[int, int],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Tabulate what is the same in all blocks.

    That is the low pairs' part of the field, the places of a block's entries in each child's table, and how many of
    the block's bits that table has: if all, the entries lie one after the other.
    """
    size = 1 << low
    field_low = np.zeros(size)
    for k in range(pairs[0], pairs[1]):
        if program.pair_bit[k] < low:
            for i in range(size):
                field_low[i] += program.pair_weight[k] if (i >> program.pair_bit[k]) & 1 else -program.pair_weight[k]
    count = children[1] - children[0]
    places = np.empty((count, size), np.int64)
    bits = np.zeros(count, np.int64)
    for c in range(count):
        mask = program.child_mask[children[0] + c] & (size - 1)
        for i in range(size):
            places[c, i] = 2 * compressed(i, mask)
        for b in range(low):
            bits[c] += (mask >> b) & 1
    return field_low, places, bits


@inner
def fill_block(
    program: Program,
    t: int,
    block: int,
    low: int,
    pairs: tuple[int, int],
    children: tuple[int, int],
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    field_low: NDArray[np.float64],
    places: NDArray[np.int64],
    bits: NDArray[np.int64],
    minus: NDArray[np.float64],
    plus: NDArray[np.float64],
) -> None:
    """Write the log-weights of x_v = -1 and +1 for all separator states of one block."""
    size = 1 << low
    local = program.field[t]
    for k in range(pairs[0], pairs[1]):
        if program.pair_bit[k] >= low:
            local += program.pair_weight[k] if (block >> (program.pair_bit[k] - low)) & 1 else -program.pair_weight[k]
    for i in range(size):
        plus[i] = field_low[i] + local
        minus[i] = -plus[i]
    for c in range(children[1] - children[0]):
        k = children[0] + c
        base = where[program.child_slot[k]] + ((2 * compressed(block, program.child_mask[k] >> low)) << bits[c])
        if bits[c] == low:
            table = arena[base : base + 2 * size]
            for i in range(size):
                minus[i] += table[2 * i]
                plus[i] += table[2 * i + 1]
        else:
            for i in range(size):
                minus[i] += arena[base + places[c, i]]
                plus[i] += arena[base + places[c, i] + 1]

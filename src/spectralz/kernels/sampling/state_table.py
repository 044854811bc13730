"""A set of distinct states, compiled: spins packed 64 per word, found by hashing, and compared in full.

The sum of their weights is a lower bound on Z because the states are distinct. So two states with the same hash must
not count as one, nor one state as two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.sampling.heat_bath import GOLDEN, MIX_1, MIX_2, SHIFT_1, SHIFT_2, SHIFT_3

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, IntArray, SpinArray, WordArray

EMPTY = -1


def pack(x: SpinArray) -> WordArray:
    """Return states, given as rows of -1 and +1, as rows of words with one bit per spin.

    Examples
    --------
    >>> pack(np.array([[1, -1, 1]], dtype=np.int8)).tolist()
    [[5]]
    """
    count, n = x.shape
    words = max(-(-n // 64), 1)
    padded = np.zeros((count, 8 * words), dtype=np.uint8)
    packed = np.packbits(x > 0, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64)


@inner
def _place(table: IntArray, keys: WordArray, rows: WordArray, r: int) -> np.int64:
    """Return the slot of the table that holds row r of ``rows``, or the empty slot where it belongs."""
    _, words = rows.shape
    z = GOLDEN
    for w in range(words):
        z = (z ^ rows[r, w]) * MIX_1
        z = (z ^ (z >> SHIFT_1)) * MIX_2
        z = (z ^ (z >> SHIFT_2)) + GOLDEN
    z = z ^ (z >> SHIFT_3)
    mask = len(table) - 1
    slot = np.int64(z) & mask
    while table[slot] != EMPTY:
        w = 0
        while w < words and keys[table[slot], w] == rows[r, w]:
            w += 1
        if w == words:
            break
        slot = (slot + 1) & mask
    return slot


@compiled
def insert(table: IntArray, keys: WordArray, count: int, new: WordArray, is_new: BoolArray) -> int:
    """Add the rows of ``new`` that are not yet among the first ``count`` keys; return the new number of keys.

    The number of slots of ``table`` is a power of two, larger than the number of keys. ``is_new`` says which rows were
    added.
    """
    size, words = new.shape
    for r in range(size):
        is_new[r] = False
        if count == len(keys):
            continue
        slot = _place(table, keys, new, r)
        if table[slot] == EMPTY:
            for w in range(words):
                keys[count, w] = new[r, w]
            table[slot] = count
            is_new[r] = True
            count += 1
    return count


@compiled
def contains(table: IntArray, keys: WordArray, rows: WordArray, is_known: BoolArray) -> None:
    """Write for each row of ``rows`` whether it is a key."""
    for r in range(len(rows)):
        is_known[r] = table[_place(table, keys, rows, r)] != EMPTY

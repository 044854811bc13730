"""Assign each spin a bit of a packed frontier state, and locate the spins of mini-buckets among these bits.

Spins are added in a linear order. A spin gets a bit when it is added and releases it when its last neighbor has been
added. A released bit goes to the spin just added, so that on a lattice neighbors in a row have neighboring bits.
Mini-buckets eliminate in the reverse order, so the mini-buckets of the t-th spin depend on it and on spins that have a
bit at that time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import IntArray, WordArray
    from spectralz.kernels.mini_buckets.passes import Forest

WORD = 64


class Bits(NamedTuple):
    """The arrays that compiled steps read; ragged arrays are indexed by ``start[t]:start[t + 1]``.

    A run is a range of neighboring bits of a state that are also neighboring bits of a table index: ``(word >> shift &
    mask) << at``.
    """

    stays: WordArray  # one row of words per spin: the bits of spins that are still needed when it is added
    own: WordArray  # its own bit; none if it has no neighbors left to come
    part_start: IntArray  # the mini-buckets of each spin
    part: IntArray  # which step of the forest each is
    run_start: IntArray  # the runs of each of them
    run_word: IntArray
    run_shift: WordArray
    run_mask: WordArray
    run_at: WordArray
    bit_start: IntArray
    bit: IntArray  # bits of the separator in the order of the state's bits
    pair_start: IntArray  # the edges from each spin to earlier ones
    pair_edge: IntArray
    pair_word: IntArray
    pair_shift: WordArray


@dataclass(frozen=True)
class FrontierBits:
    """The bits of all spins.

    Attributes
    ----------
    order
        The spins in the order in which they are added.
    words
        Number of 64-bit words in a state.
    width
        Most spins in the frontier at a time, including the spin just added.
    merging
        For each step, the most states that may become equal in it, as a power of two.
    bits
        The arrays that compiled steps read.
    """

    order: list[int]
    words: int
    width: int
    merging: IntArray
    bits: Bits

    @classmethod
    def of_order(cls, order: Sequence[int], edges: IntArray, forest: Forest) -> FrontierBits:
        """Assign the bits; the forest's mini-buckets must have been made for the reverse order."""
        n = len(order)
        place = np.empty(n, dtype=np.int64)
        place[list(order)] = np.arange(n)
        early, late = np.sort(place[edges], axis=1).T if len(edges) else np.empty((2, 0), dtype=np.int64)
        slot, ends = _slots(n, early, late)
        words = max(-(-(int(slot.max(initial=0)) + 1) // WORD), 1)
        own = np.zeros((n, words), dtype=np.uint64)
        stays = np.full((n, words), ~np.uint64(0), dtype=np.uint64)
        for t in range(n):
            if slot[t] >= 0:
                own[t, slot[t] // WORD] = np.uint64(1) << np.uint64(slot[t] % WORD)
            for u in ends[t]:
                stays[t, slot[u] // WORD] &= ~(np.uint64(1) << np.uint64(slot[u] % WORD))
        by_late = np.argsort(late, kind="stable")
        pair_slot = slot[early[by_late]]
        alive = np.zeros(n + 1, dtype=np.int64)
        np.add.at(alive, np.flatnonzero(slot >= 0), 1)
        for t, gone in enumerate(ends):
            alive[t + 1] -= len(gone)
        part_start, part, separators = _parts(n, forest)
        run_start, runs, bit_start, bit = [0], [], [0], []
        for ranks in separators:
            slots = slot[n - 1 - np.array(ranks, dtype=np.int64)]
            by_slot = np.argsort(slots)
            runs += _runs(slots[by_slot].tolist())
            run_start.append(len(runs))
            bit += by_slot.tolist()
            bit_start.append(len(bit))
        word, shift, mask, at = np.array(runs, dtype=np.uint64).reshape(-1, 4).T
        return cls(
            order=list(order),
            words=words,
            width=int(np.cumsum(alive).max(initial=0)),
            merging=np.array([len(gone) + (slot[t] < 0) for t, gone in enumerate(ends)], dtype=np.int64),
            bits=Bits(
                stays=stays,
                own=own,
                part_start=part_start,
                part=part,
                run_start=np.array(run_start, dtype=np.int64),
                run_word=word.astype(np.int64),
                run_shift=np.ascontiguousarray(shift),
                run_mask=np.ascontiguousarray(mask),
                run_at=np.ascontiguousarray(at),
                bit_start=np.array(bit_start, dtype=np.int64),
                bit=np.array(bit, dtype=np.int64),
                pair_start=np.searchsorted(late[by_late], np.arange(n + 1)).astype(np.int64),
                pair_edge=by_late.astype(np.int64),
                pair_word=pair_slot // WORD,
                pair_shift=(pair_slot % WORD).astype(np.uint64),
            ),
        )


def _slots(n: int, early: IntArray, late: IntArray) -> tuple[IntArray, list[list[int]]]:
    """Return the bit of each spin, by place in the order (-1: needs none), and which spins give theirs back when."""
    last = np.arange(n)
    np.maximum.at(last, early, late)
    ends: list[list[int]] = [[] for _ in range(n)]
    for u in range(n):
        if last[u] > u:
            ends[last[u]].append(u)
    slot = np.full(n, -1, dtype=np.int64)
    free: list[int] = []
    used = 0
    for t in range(n):
        for u in ends[t]:
            heapq.heappush(free, int(slot[u]))
        if last[t] > t:
            # A bit given back in this very step is the nearest one: what was next to its spin is next to this one.
            back = min((int(slot[u]) for u in ends[t]), default=-1)
            if back >= 0:
                free.remove(back)
                heapq.heapify(free)
                slot[t] = back
            elif free:
                slot[t] = heapq.heappop(free)
            else:
                slot[t] = used
                used += 1
    return slot, ends


def _parts(n: int, forest: Forest) -> tuple[IntArray, IntArray, list[list[int]]]:
    """Return the forest's steps by spin in the order of adding, and the ranks of their separators."""
    added = n - 1 - forest.rank
    part = np.argsort(added, kind="stable").astype(np.int64)
    start = np.searchsorted(added[part], np.arange(n + 1)).astype(np.int64)
    bits = forest.steps.bit_start
    return start, part, [forest.pair_rank[bits[m] : bits[m + 1]].tolist() for m in part.tolist()]


def _runs(slots: list[int]) -> list[tuple[int, int, int, int]]:
    """Return word, shift, mask and place of each row of neighboring bits, of bits in ascending order."""
    runs: list[list[int]] = []
    for at, s in enumerate(slots):
        if runs and s == slots[at - 1] + 1 and s % WORD:
            runs[-1][2] = 2 * runs[-1][2] + 1
        else:
            runs.append([s // WORD, s % WORD, 1, at])
    return [(word, shift, mask, at) for word, shift, mask, at in runs]

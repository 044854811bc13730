"""Grow a strongly coupled subgraph of small treewidth, sum it out, and draw states from it; compiled.

The subgraph is a partial k-tree that grows spin by spin, as a spanning tree does in Prim's algorithm: the next spin is
the one whose couplings to the spins of some bag are the strongest. It is joined to at most ``width`` spins of that bag,
and forms a new bag with them. Its couplings to all other earlier spins are left out.

Spins are summed out in the reverse order. Each leaves a table over the spins that it was joined to, which are all in
one bag. So the tables have at most 2^width entries. States are drawn in the order of growth, each spin given the spins
that it was joined to.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.sampling.lanes import LANES, drawn, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import (
        BoolArray,
        ColumnArray,
        FloatArray,
        IntArray,
        RandomArray,
        SingleArray,
        SpinArray,
    )
    from spectralz.kernels.coupling import Couplings


NOBODY = -1


class Growth(NamedTuple):
    """The growth of a partial k-tree.

    Attributes
    ----------
    bags, sizes
        One row for each spin in the order of growth: the spins that it was joined to, and behind these the spin itself;
        and the number of the former.
    parent
        Which of them formed the bag that contains the spins it was joined to; -1 for the first spin of a component.
    kept
        Which entries of the coupling's CSR matrix are in the subgraph.
    """

    bags: IntArray
    sizes: IntArray
    parent: IntArray
    kept: BoolArray


@inner
def push(gains: FloatArray, entries: IntArray, size: int, gain: float, spin: int, bag: int) -> None:
    """Push an entry onto a binary heap, the largest gain on top; ties go to the latest bag."""
    k = size
    while k > 0:
        above = (k - 1) >> 1
        if gains[above] > gain or (gains[above] == gain and entries[above, 1] >= bag):
            break
        gains[k] = gains[above]
        entries[k, 0] = entries[above, 0]
        entries[k, 1] = entries[above, 1]
        k = above
    gains[k] = gain
    entries[k, 0] = spin
    entries[k, 1] = bag


@inner
def pop(gains: FloatArray, entries: IntArray, size: int) -> None:
    """Pop the top of a heap of ``size`` entries; it is left just behind the last one."""
    top_gain, top_spin, top_bag = gains[0], entries[0, 0], entries[0, 1]
    last = size - 1
    gain, spin, bag = gains[last], entries[last, 0], entries[last, 1]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= last:
            break
        if below + 1 < last and (
            gains[below + 1] > gains[below]
            or (gains[below + 1] == gains[below] and entries[below + 1, 1] > entries[below, 1])
        ):
            below += 1
        if gain > gains[below] or (gain == gains[below] and bag >= entries[below, 1]):
            break
        gains[k] = gains[below]
        entries[k, 0], entries[k, 1] = entries[below, 0], entries[below, 1]
        k = below
    gains[k] = gain
    entries[k, 0], entries[k, 1] = spin, bag
    gains[last] = top_gain
    entries[last, 0], entries[last, 1] = top_spin, top_bag


def grow(indptr: IntArray, indices: ColumnArray, strength: FloatArray, width: int) -> Growth:
    """Grow a partial k-tree over all spins; the ``strength`` of each entry of the CSR matrix is positive."""
    room = 2 * len(indices) + 1024
    while (growth := _grown(indptr, indices, strength, width, room)) is None:
        room *= 2
    return growth


def _grown(indptr: IntArray, indices: ColumnArray, strength: FloatArray, width: int, room: int) -> Growth | None:
    """Grow it with a heap of at most ``room`` entries; None if these are too few."""
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    open_strength = np.bincount(rows, strength, minlength=n)  # of a spin's couplings to those still to come
    bags, sizes, parent = np.empty((n, width + 1), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    kept = np.zeros(len(indices), np.bool_)
    heap = np.empty(room), np.empty((room, 2), np.int64)
    is_done = _grow(indptr, indices, strength, open_strength, *heap, bags, sizes, parent, kept)
    return Growth(bags, sizes, parent, kept) if is_done else None


@compiled
def _grow(
    indptr: IntArray,
    indices: ColumnArray,
    strength: FloatArray,
    open_strength: FloatArray,
    gains: FloatArray,
    entries: IntArray,
    bags: IntArray,
    sizes: IntArray,
    parents: IntArray,
    kept: BoolArray,
) -> bool:
    """Write the growth; return whether the heap had enough room."""
    n, width = len(sizes), bags.shape[1] - 1
    step_of, best_bag = np.full(n, NOBODY), np.full(n, NOBODY)  # the last bag that offers a spin its largest gain
    best, is_member = np.zeros(n), np.zeros(n, np.bool_)
    to_spin, to_come = np.empty(width + 1), np.empty(width + 1)
    root, size = 0, 0
    for step in range(n):
        spin, parent = NOBODY, NOBODY
        while size > 0 and spin == NOBODY:
            pop(gains, entries, size)
            size -= 1
            top = entries[size, 0]
            if step_of[top] == NOBODY:
                spin, parent = top, best_bag[top]
        if spin == NOBODY:  # the next component
            while step_of[root] != NOBODY:
                root += 1
            spin = root
        step_of[spin] = step
        for place in range(indptr[spin], indptr[spin + 1]):
            open_strength[indices[place]] -= strength[place]
        # The spins of the bag that it is joined to: its neighbors first, then those with the most couplings still to
        # come. A bag has at most one spin too many.
        many = 0
        members = bags[step]
        if parent != NOBODY:
            for k in range(sizes[parent] + 1):
                member = bags[parent, k]
                is_open, coupled = False, 0.0
                for place in range(indptr[member], indptr[member + 1]):
                    if indices[place] == spin:
                        coupled = strength[place]
                    elif step_of[indices[place]] == NOBODY:
                        is_open = True
                if is_open or coupled > 0.0:
                    members[many], to_spin[many] = member, coupled
                    to_come[many] = open_strength[member] if is_open else 0.0
                    many += 1
            if many > width:
                least = 0
                for k in range(1, many):  # ties go to the oldest, or bags would not move on
                    change = to_spin[k] - to_spin[least]
                    if change == 0.0:
                        change = to_come[k] - to_come[least]
                    if change < 0.0 or (change == 0.0 and step_of[members[k]] < step_of[members[least]]):
                        least = k
                many -= 1
                members[least] = members[many]
        members[many], sizes[step], parents[step] = spin, many, parent
        for k in range(many):
            is_member[members[k]] = True
        for place in range(indptr[spin], indptr[spin + 1]):
            j = indices[place]
            if is_member[j]:
                kept[place] = True
                for back in range(indptr[j], indptr[j + 1]):
                    if indices[back] == spin:
                        kept[back] = True
        # What the spins still to come would gain by this bag.
        is_member[spin] = True
        for k in range(many + 1):
            for place in range(indptr[members[k]], indptr[members[k] + 1]):
                j = indices[place]
                if step_of[j] != NOBODY or best_bag[j] == step:
                    continue
                gain, neighbors, weakest = 0.0, 0, math.inf
                for there in range(indptr[j], indptr[j + 1]):
                    if is_member[indices[there]]:
                        gain += strength[there]
                        neighbors += 1
                        if strength[there] < weakest:
                            weakest = strength[there]
                if neighbors > width:
                    gain -= weakest
                if gain >= best[j]:
                    if size == len(gains):
                        return False
                    best[j], best_bag[j] = gain, step
                    push(gains, entries, size, gain, j, step)
                    size += 1
        for k in range(many + 1):
            is_member[members[k]] = False
    return True


def sum_out(growth: Growth, field: FloatArray, couplings: Couplings, begin: IntArray) -> tuple[float, SingleArray]:
    """Return log Z of the subgraph, and every spin's log-odds given the spins that it was joined to.

    The log-odds of step t start at ``begin[t]``; bit k of an index is the k-th of those spins.
    """
    log_odds = np.empty(begin[-1], np.float32)
    tables = np.zeros(2 * begin[-1])  # the sums that later spins have left over the spins of each bag
    bags, sizes, parents, _ = growth
    data, indices, indptr, _ = couplings
    log_z: float = _sum_out(bags, sizes, parents, field, indptr, indices, data, begin, tables, log_odds)
    return log_z, log_odds


@compiled
def _sum_out(
    bags: IntArray,
    sizes: IntArray,
    parents: IntArray,
    field: FloatArray,
    indptr: IntArray,
    indices: ColumnArray,
    data: FloatArray,
    begin: IntArray,
    tables: FloatArray,
    log_odds: SingleArray,
) -> float:
    n, most = bags.shape
    weights, local, place_of = np.empty(most), np.empty(1 << most), np.empty(1 << most, np.int64)
    log_z = 0.0
    for step in range(n - 1, -1, -1):
        many, parent = sizes[step], parents[step]
        size = 1 << many
        spin = bags[step, many]
        local[0] = field[spin]
        for k in range(many):
            weights[k] = 0.0
            for place in range(indptr[spin], indptr[spin + 1]):
                if indices[place] == bags[step, k]:
                    weights[k] = data[place]
            local[0] -= weights[k]
        for k in range(many):
            for place in range(1 << k):
                local[place + (1 << k)] = local[place] + 2.0 * weights[k]
        here = 2 * begin[step]
        for place in range(size):
            down, up = tables[here + place] - local[place], tables[here + size + place] + local[place]
            log_odds[begin[step] + place] = up - down
            local[place] = log_add_exp(up, down)
        if parent == NOBODY:
            log_z += local[0]
            continue
        # The places of the bag's spins among those of the table.
        place_of[0] = 0
        for k in range(sizes[parent] + 1):
            bit = 0
            for other in range(many):
                if bags[step, other] == bags[parent, k]:
                    bit = 1 << other
            for place in range(1 << k):
                place_of[place + (1 << k)] = place_of[place] + bit
        there = 2 * begin[parent]
        for place in range(2 << sizes[parent]):
            tables[there + place] += local[place_of[place]]
    return log_z


def draw_from_tables(x: SpinArray, state: RandomArray, growth: Growth, begin: IntArray, log_odds: SingleArray) -> None:
    """Draw 64 states of the subgraph into ``x``, (n, 64)."""
    _draw(x, state, growth.bags, growth.sizes, begin, log_odds)


@compiled
def _draw(
    x: SpinArray, state: RandomArray, bags: IntArray, sizes: IntArray, begin: IntArray, log_odds: SingleArray
) -> None:
    places = np.empty(LANES, np.int64)
    for step in range(len(x)):
        for lane in range(LANES):
            places[lane] = begin[step]
        for k in range(sizes[step]):
            spin = bags[step, k]
            for lane in range(LANES):
                places[lane] += (x[spin, lane] > 0) << k
        spin = bags[step, sizes[step]]
        for lane in range(LANES):
            x[spin, lane] = np.int8(drawn(log_odds[places[lane]], next_word(state, lane)))

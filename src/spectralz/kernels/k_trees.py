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
    spins
        The spins in the order of growth.
    joined, sizes
        For each of them, the spins that it was joined to, and their number.
    bag
        Which of them formed the bag that contains these; -1 for the first spin of a component.
    kept
        Which entries of the coupling's CSR matrix are in the subgraph.
    """

    spins: IntArray
    joined: IntArray
    sizes: IntArray
    bag: IntArray
    kept: BoolArray


@inner
def push(
    gains: FloatArray, entries: IntArray, size: int, gain: float, spin: int, bag: int
) -> tuple[FloatArray, IntArray]:
    """Push an entry onto a binary heap, the largest gain on top; ties go to the latest bag.

    Returns the arrays of the heap, which are new ones if the old ones were full.
    """
    if size == len(gains):
        more, more_entries = np.empty(2 * size), np.empty((2 * size, 2), np.int64)
        more[:size], more_entries[:size] = gains, entries
        gains, entries = more, more_entries
    k = size
    while k > 0:
        above = (k - 1) // 2
        if gains[above] > gain or (gains[above] == gain and entries[above, 1] >= bag):
            break
        gains[k] = gains[above]
        entries[k, 0], entries[k, 1] = entries[above, 0], entries[above, 1]
        k = above
    gains[k] = gain
    entries[k, 0], entries[k, 1] = spin, bag
    return gains, entries


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


@compiled
def grow(indptr: IntArray, indices: ColumnArray, strength: FloatArray, width: int) -> Growth:
    """Grow a partial k-tree over all spins; the ``strength`` of each entry of the CSR matrix is positive."""
    n = len(indptr) - 1
    spins, sizes, bag = np.empty(n, np.int64), np.zeros(n, np.int64), np.full(n, NOBODY)
    joined = np.full((n, width), NOBODY)
    kept = np.zeros(len(indices), np.bool_)
    step_of = np.full(n, NOBODY)  # the step at which a spin was added
    open_strength = np.zeros(n)  # of a spin's couplings to those still to come
    for i in range(n):
        for place in range(indptr[i], indptr[i + 1]):
            open_strength[i] += strength[place]
    is_member = np.zeros(n, np.bool_)
    best, best_bag = np.zeros(n), np.full(n, NOBODY)  # the largest gain of each spin, and the last bag that offers it
    gains, entries, size = np.empty(1024), np.empty((1024, 2), np.int64), 0
    members, to_spin, to_come = np.empty(width + 1, np.int64), np.empty(width + 1), np.empty(width + 1)
    root, step = 0, 0
    while step < n:
        spin, parent = NOBODY, NOBODY
        while size > 0:
            pop(gains, entries, size)
            size -= 1
            if step_of[entries[size, 0]] == NOBODY:
                spin, parent = entries[size, 0], best_bag[entries[size, 0]]
                break
        if spin == NOBODY:  # the next component
            while step_of[root] != NOBODY:
                root += 1
            spin = root
        # The spins of the bag that it is joined to: its neighbors first, then those with the most couplings still to
        # come. A bag has at most one spin too many.
        many = 0
        for place in range(indptr[spin], indptr[spin + 1]):
            open_strength[indices[place]] -= strength[place]
        if parent != NOBODY:
            for k in range(sizes[parent] + 1):
                member = joined[parent, k] if k < sizes[parent] else spins[parent]
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
                    if (to_spin[k], to_come[k], step_of[members[k]]) < (
                        to_spin[least],
                        to_come[least],
                        step_of[members[least]],
                    ):
                        least = k
                many -= 1
                members[least] = members[many]
        spins[step], bag[step], sizes[step] = spin, parent, many
        for k in range(many):
            joined[step, k] = members[k]
            is_member[members[k]] = True
        step_of[spin] = step
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
            member = members[k] if k < many else spin
            for place in range(indptr[member], indptr[member + 1]):
                j = indices[place]
                if step_of[j] != NOBODY:
                    continue
                gain, neighbors, weakest = 0.0, 0, math.inf
                for there in range(indptr[j], indptr[j + 1]):
                    if is_member[indices[there]]:
                        gain += strength[there]
                        neighbors += 1
                        weakest = min(weakest, strength[there])
                if neighbors > width:
                    gain -= weakest
                if gain >= best[j] and best_bag[j] != step:
                    best[j], best_bag[j] = gain, step
                    gains, entries = push(gains, entries, size, gain, j, step)
                    size += 1
        for k in range(many):
            is_member[members[k]] = False
        is_member[spin] = False
        step += 1
    return Growth(spins, joined, sizes, bag, kept)


@compiled
def sum_out(growth: Growth, field: FloatArray, couplings: Couplings, begin: IntArray) -> tuple[float, SingleArray]:
    """Return log Z of the subgraph, and every spin's log-odds given the spins that it was joined to.

    The log-odds of step t start at ``begin[t]``; bit k of an index is the k-th of those spins.
    """
    n, width = growth.joined.shape
    indptr, indices = couplings.indptr, couplings.indices
    weights, log_odds = np.empty(width), np.empty(begin[n], np.float32)
    tables = np.zeros(2 * begin[n])  # the sums that later spins have left over the spins of each bag
    local, place_of = np.empty(1 << width), np.empty(1 << (width + 1), np.int64)
    log_z = 0.0
    for step in range(n - 1, -1, -1):
        many, parent = growth.sizes[step], growth.bag[step]
        size = 1 << many
        spin = growth.spins[step]
        local[0] = field[spin]
        for k in range(many):
            weights[k] = 0.0
            for place in range(indptr[spin], indptr[spin + 1]):
                if indices[place] == growth.joined[step, k]:
                    weights[k] = couplings.data[place]
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
        for k in range(growth.sizes[parent] + 1):
            member = growth.joined[parent, k] if k < growth.sizes[parent] else growth.spins[parent]
            bit = 0
            for other in range(many):
                if growth.joined[step, other] == member:
                    bit = 1 << other
            for place in range(1 << k):
                place_of[place + (1 << k)] = place_of[place] + bit
        there = 2 * begin[parent]
        for place in range(1 << (growth.sizes[parent] + 1)):
            tables[there + place] += local[place_of[place]]
    return log_z, log_odds


@compiled
def draw_from_tables(x: SpinArray, state: RandomArray, growth: Growth, begin: IntArray, log_odds: SingleArray) -> None:
    """Draw 64 states of the subgraph into ``x``, (n, 64)."""
    places = np.empty(LANES, np.int64)
    for step in range(len(x)):
        for lane in range(LANES):
            places[lane] = begin[step]
        for k in range(growth.sizes[step]):
            spin = growth.joined[step, k]
            for lane in range(LANES):
                places[lane] += (x[spin, lane] > 0) << k
        for lane in range(LANES):
            x[growth.spins[step], lane] = np.int8(drawn(log_odds[places[lane]], next_word(state, lane)))

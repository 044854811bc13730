"""Grow blocks of spins whose subgraphs have small treewidth, and eliminate them symbolically; compiled.

A block grows spin by spin, as a spanning tree does in Prim's algorithm: the next spin is the one that adds the least to
the strength of the couplings that the block cuts. A spin that would make the block too wide is left to later blocks.
The width of a block is that of a min-degree order of its induced subgraph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.elimination.screening import Elimination, min_degree
from spectralz.kernels.k_trees import pop, push

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, FloatArray, IntArray


NOBODY = -1
# While other spins are eliminated, a spin may have up to this many times as many neighbors as the widest separator.
ROOM = 2


def block_separators(
    indptr: IntArray, indices: ColumnArray, order: IntArray, label: IntArray, most: int
) -> tuple[int, IntArray, IntArray, IntArray]:
    """Eliminate the spins of ``order`` symbolically, each within its block; return how many steps fit, and arrays.

    Spins of a block are consecutive. Row t of ``separator`` has the steps that eliminate the spins of the separator of
    step t, in order; there are ``width[t]`` of them, at most ``most``. ``parent[t]`` is the first, or -1 if there is
    none. It stops at the first step whose separator has more spins than fit in a row.
    """
    steps = len(order)
    separator, width = np.empty((steps, most), np.int64), np.empty(steps, np.int64)
    rank = np.full(len(label), NOBODY)
    rank[order] = np.arange(steps)
    parent, first_child, sister, seen = (np.full(steps, NOBODY) for _ in range(4))
    work = first_child, sister, seen
    fit = _separate(indptr, indices, order, label, rank, *work, separator, width, parent)
    return fit, separator, width, parent


@compiled
def _separate(
    indptr: IntArray,
    indices: ColumnArray,
    order: IntArray,
    label: IntArray,
    rank: IntArray,
    first_child: IntArray,
    sister: IntArray,
    seen: IntArray,
    separator: IntArray,
    width: IntArray,
    parent: IntArray,
) -> int:
    """Write the separators; return how many steps fit."""
    steps, most = separator.shape
    for t in range(steps):
        v = order[t]
        count = 0
        seen[t] = t
        for place in range(indptr[v], indptr[v + 1]):
            u = indices[place]
            r = rank[u]
            if label[u] == label[v] and r > t and seen[r] != t:
                if count == most:
                    return t
                seen[r] = t
                separator[t, count] = r
                count += 1
        child = first_child[t]
        while child != NOBODY:
            for k in range(width[child]):
                r = separator[child, k]
                if seen[r] != t:
                    if count == most:
                        return t
                    seen[r] = t
                    separator[t, count] = r
                    count += 1
            child = sister[child]
        for k in range(1, count):  # sorted by insertion
            r, j = separator[t, k], k
            while j > 0 and separator[t, j - 1] > r:
                separator[t, j] = separator[t, j - 1]
                j -= 1
            separator[t, j] = r
        width[t] = count
        if count > 0:
            first = separator[t, 0]
            parent[t] = first
            sister[t] = first_child[first]
            first_child[first] = t
    return steps


def grow_blocks(
    indptr: IntArray,
    indices: ColumnArray,
    strength: FloatArray,
    seeds: IntArray,
    max_width: int,
    most_spins: int,
    most_entries: float,
    most_left_out: float,
    growth: float,
) -> tuple[IntArray, IntArray]:
    """Divide all spins into blocks; return them in an order of elimination, block by block, and each spin's block.

    ``seeds`` lists all spins. Each block begins at the first of them that is not yet in a block. A block has at most
    ``most_spins`` spins and ``most_entries`` table entries. It ends once more than ``most_left_out`` times as many
    spins have been left out. Its width is checked whenever it has grown by a factor of ``growth``. With a growth of 1
    it is checked at every spin; with more, a block that has become too wide is cut back to where it was at the last
    check.
    """
    n, room = len(indptr) - 1, len(indices) + 1  # a block reaches each neighbor of its spins once
    graph = Elimination.of_size(most_spins, ROOM * max(max_width, 1) + 2, max_width)
    whole = np.bincount(np.repeat(np.arange(n), np.diff(indptr)), strength, minlength=n)
    order, label = np.empty(n, np.int64), np.full(n, NOBODY)
    limits = max_width, most_entries, most_left_out, growth
    heap = np.empty(room), np.empty((room, 2), np.int64)
    _grow_blocks(indptr, indices, strength, seeds, whole, *limits, *heap, graph, order, label)
    return order, label


@inner
def _block_entries(
    indptr: IntArray,
    indices: ColumnArray,
    spins: IntArray,
    place_of: IntArray,
    count: int,
    max_width: int,
    graph: Elimination,
) -> float:
    """Find a min-degree order of the subgraph of ``spins[:count]``; return its table entries, -1 if it is too wide.

    ``place_of`` gives the place of a spin in ``spins``, and ``NOBODY`` for other spins. The order consists of places.
    """
    neighbors, degree = graph.neighbors, graph.degree
    room = neighbors.shape[1]
    for v in range(count):
        size = 0
        for place in range(indptr[spins[v]], indptr[spins[v] + 1]):
            u = place_of[indices[place]]
            if u != NOBODY:
                if size == room:
                    return -1.0
                neighbors[v, size] = u
                size += 1
        degree[v] = size
    _, entries = min_degree(graph, count, max_width)
    return entries


@compiled
def _grow_blocks(
    indptr: IntArray,
    indices: ColumnArray,
    strength: FloatArray,
    seeds: IntArray,
    whole: FloatArray,
    max_width: int,
    most_entries: float,
    most_left_out: float,
    growth: float,
    gains: FloatArray,
    entries: IntArray,
    graph: Elimination,
    order: IntArray,
    label: IntArray,
) -> None:
    """Write the blocks; ``whole`` is the strength of all couplings of a spin, and all labels are ``NOBODY``."""
    n, most_spins = len(order), len(graph.order)
    gain, spins = np.zeros(n), np.empty(most_spins, np.int64)
    banned, place_of = np.full(n, NOBODY), np.full(n, NOBODY)
    blocks, done = 0, 0
    for number in range(n):
        seed = seeds[number]
        if label[seed] != NOBODY:
            continue
        count, sure, left_out, is_full, has_loops = 0, 1, 0, False, False
        gains[0], entries[0, 0], entries[0, 1] = 2.0 * gain[seed] - whole[seed], seed, 0
        size = 1
        while size > 0 and count < most_spins and not is_full:
            pop(gains, entries, size)
            size -= 1
            v = entries[size, 0]
            if label[v] != NOBODY or banned[v] == blocks or gains[size] != 2.0 * gain[v] - whole[v]:
                continue
            inside = 0
            for place in range(indptr[v], indptr[v + 1]):
                if place_of[indices[place]] != NOBODY:
                    inside += 1
            spins[count], place_of[v], label[v] = v, count, blocks
            count += 1
            has_loops = has_loops or inside > 1  # a spin with one neighbor makes nothing wider
            if has_loops and count >= growth * sure and (inside > 1 or growth > 1.0):
                needed = _block_entries(indptr, indices, spins, place_of, count, max_width, graph)
                if needed < 0.0 or needed > most_entries:
                    if growth > 1.0:
                        break
                    count -= 1
                    place_of[v], label[v], banned[v] = NOBODY, NOBODY, blocks
                    left_out += 1
                    is_full = needed > most_entries or left_out > most_left_out * count
                    continue
                sure = count
            for place in range(indptr[v], indptr[v + 1]):
                u = indices[place]
                if label[u] == NOBODY and banned[u] != blocks:
                    gain[u] += strength[place]
                    push(gains, entries, size, 2.0 * gain[u] - whole[u], u, 0)
                    size += 1
        grown = count
        needed = _block_entries(indptr, indices, spins, place_of, count, max_width, graph)
        if needed < 0.0 or needed > most_entries:
            # Drop what came since the last check; even spins with one neighbor may have changed the order.
            for k in range(sure, count):
                place_of[spins[k]], label[spins[k]] = NOBODY, NOBODY
            count = sure
            _block_entries(indptr, indices, spins, place_of, count, max_width, graph)
        for k in range(count):
            order[done + k] = spins[graph.order[k]]
        for k in range(grown):
            v = spins[k]
            place_of[v] = NOBODY
            for place in range(indptr[v], indptr[v + 1]):
                gain[indices[place]] = 0.0
        done += count
        blocks += 1

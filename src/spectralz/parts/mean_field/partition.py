"""Divide spins into blocks whose induced subgraphs have small treewidth, with little coupling cut between them.

Several partitions are tried, and the one that cuts the least is taken. On lattices strips are hard to beat: a few
layers of equal distance from a corner, or rows, or columns. On other graphs blocks grow along the strongest couplings.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz.kernels.block_trees import block_separators, grow_blocks
from spectralz.kernels.coupling import Couplings, frozen
from spectralz.kernels.elimination.best_order import best_order
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.propagation.messages import Graph, graph_of
from spectralz.kernels.single_spin import log_2cosh
from spectralz.parts.compressed.frontier import corners, distances_from_an_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, IntArray, Ising

# Most table entries of one block; all are kept at once, twice: 512 MB.
MOST_ENTRIES = 1 << 25
# Growing blocks leave out up to these shares of spins that would make them too wide. They have at most this many spins.
SHARES_LEFT_OUT, MOST_SPINS = (0.0, 0.03), 4000
# With more spins than this, the width of blocks is checked only when they have grown by this factor.
MOST_SPINS_LOOKED_AT_ALWAYS, GROWTH = 1_000, 1.1
# Components up to this size are first tried as one block, with the orders of ``exact``.
MOST_SPINS_WHOLE = 2000
# Strips are made for this many of the largest components, with at least this many spins. Several kinds of layers are
# tried, up to this many spins in total.
MOST_COMPONENTS_IN_STRIPS, FEWEST_SPINS_IN_STRIPS, MOST_SPINS_LOOKED_AT = 20, 9, 2_000_000
# A strip of layers of equal distance from a corner has twice as many layers as spins in its separators. With more spins
# than this, only the number of layers that rows have is tried.
LAYERS_PER_WIDTH, MOST_SPINS_TO_SEARCH = 2, 30_000


@dataclass(frozen=True)
class Partition:
    """Blocks of spins, each with an order in which they are eliminated.

    Attributes
    ----------
    order
        All spins, block by block, each block in its order of elimination.
    label
        The block of each spin.
    color
        A number per spin, the same within a block and different in coupled blocks; blocks of one color are consecutive.
    separator, width, parent
        For each step of the order, the output of :func:`spectralz.kernels.block_trees.block_separators`.
    cut
        The sum of what each coupling between blocks adds to log Z by itself.
    """

    order: IntArray
    label: IntArray
    color: IntArray
    separator: IntArray
    width: IntArray
    parent: IntArray
    cut: float

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(np.unique(self.label))

    @property
    def widest(self) -> int:
        """Spins of the widest separator."""
        return int(self.width.max(initial=0))

    @property
    def entries(self) -> float:
        """Table entries of one elimination of all blocks."""
        return float((2.0**self.width).sum())


@dataclass(frozen=True)
class _Graph:
    """The rows of the couplings, and what each entry adds to log Z by itself."""

    indptr: IntArray
    indices: NDArray[np.int32]
    strength: FloatArray

    @classmethod
    def of(cls, couplings: Couplings) -> _Graph:
        indptr, indices, data = couplings.indptr, couplings.indices, couplings.data
        if couplings.is_dense:
            n = len(indptr) - 1
            rows, columns = np.nonzero(data.reshape(n, n))
            indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            indices, data = columns.astype(np.int32), data.reshape(n, n)[rows, columns]
        return cls(frozen(indptr), frozen(indices), frozen(log_2cosh(data) - math.log(2.0)))

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def row(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def strength_between(self, layer: IntArray, count: int) -> FloatArray:
        """Return the strength of the couplings from the spins up to each layer to those beyond; layer -1 is none."""
        first, second = layer[self.row], layer[self.indices]
        up = (first >= 0) & (second > first)
        change = np.zeros(count + 1)
        np.add.at(change, first[up], self.strength[up])
        np.add.at(change, second[up], -self.strength[up])
        return np.cumsum(change)[: count - 1]

    def partition(self, order: IntArray, label: IntArray, max_width: int) -> Partition | None:
        """Return the blocks of an order, or None if one is too wide."""
        steps, separator, width, parent = block_separators(self.indptr, self.indices, order, label, max_width)
        if steps < len(order):
            return None
        cut = float(self.strength[label[self.row] != label[self.indices]].sum()) / 2.0
        return Partition(order, label, label, separator, width, parent, cut)

    def in_colors(self, partition: Partition, max_width: int) -> Partition:
        """Return the same blocks, those of one color consecutive."""
        number = np.unique(partition.label, return_inverse=True)[1].reshape(-1)
        blocks = int(number.max(initial=-1)) + 1
        first, second = number[self.row], number[self.indices]
        touching = np.unique(first[first != second] * blocks + second[first != second])
        starts = np.searchsorted(touching, np.arange(blocks + 1) * blocks)
        others, color = (touching % max(blocks, 1)).tolist(), [-1] * blocks
        for block, (begin, end) in enumerate(itertools.pairwise(starts.tolist())):
            taken = {color[other] for other in others[begin:end]}
            color[block] = next(c for c in itertools.count() if c not in taken)
        color_of_spin = np.array(color, dtype=np.int64)[number]
        order = partition.order
        order = order[np.lexsort((number[order], color_of_spin[order]))]
        same = self.partition(order, number, max_width)
        return partition if same is None else replace(same, color=color_of_spin)


def divide(model: Ising, max_width: int) -> Partition:
    """Return the partition of a model's spins into blocks of at most ``max_width`` that cuts the least.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = divide(sz.generators.grid(side=20, strength=1.0, seed=0), 7)
    >>> found.blocks, found.widest
    (3, 7)
    """
    few = min(model.n, MOST_SPINS_LOOKED_AT_ALWAYS)
    clock.charge(costs.PARTITION_SPIN_OF_FEW * few + costs.PARTITION_SPIN * (model.n - few))
    graph = _Graph.of(model.storage.for_kernels())
    whole = _whole(model, graph, max_width)
    if whole is not None:
        return graph.in_colors(whole, max_width)
    best = min(_grown(graph, max_width), key=lambda partition: partition.cut)
    strips = _in_strips(model, graph, max_width, best)
    return graph.in_colors(best if strips is None or strips.cut > best.cut else strips, max_width)


def _whole(model: Ising, graph: _Graph, max_width: int) -> Partition | None:
    """Return the components as blocks, if all are narrow enough."""
    components = model.components()
    largest = max((len(spins) for spins in components), default=0)
    if largest > MOST_SPINS_WHOLE or model.storage.least_width > max_width:
        return None
    adjacency = adjacency_of(model.n, model.edges()[0])
    label = np.empty(model.n, np.int64)
    order: list[int] = []
    for number, spins in enumerate(components):
        label[spins] = number
        named = best_order(spins.tolist(), adjacency, len(spins) << (max_width + 1))  # no bound on live entries
        if named is None or named[1].width > max_width or named[1].terms > MOST_ENTRIES:
            return None
        order += named[1].order
    return graph.partition(np.array(order, dtype=np.int64), label, max_width)


# --- blocks that grow -----------------------------------------------------------------------------------------------


def _grown(graph: _Graph, max_width: int) -> Iterator[Partition]:
    """Yield blocks that grow along the strongest couplings, with more and more spins left out."""
    seeds = _from_an_end(graph)
    is_large = graph.n > MOST_SPINS_LOOKED_AT_ALWAYS
    for share in SHARES_LEFT_OUT[:1] if is_large else SHARES_LEFT_OUT:
        limits = max_width, min(MOST_SPINS, max(graph.n, 1)), float(MOST_ENTRIES), share, GROWTH if is_large else 1.0
        order, label = grow_blocks(graph.indptr, graph.indices, graph.strength, seeds, *limits)
        partition = graph.partition(order, label, max_width)
        if partition is not None:
            yield partition


def _from_an_end(graph: _Graph) -> IntArray:
    """Return all spins by their distance from a spin far from others; unreachable spins come last."""
    if not graph.n:
        return np.empty(0, np.int64)
    distance = distances_from_an_end(graph.indptr, graph.indices.astype(np.int64))
    return np.argsort(np.where(distance < 0, graph.n, distance), kind="stable")


# --- strips ---------------------------------------------------------------------------------------------------------


def _in_strips(model: Ising, graph: _Graph, max_width: int, others: Partition) -> Partition | None:
    """Return strips of neighboring layers of large components, the rest as in another partition; None if too wide."""
    components = sorted(model.components(), key=len, reverse=True)[:MOST_COMPONENTS_IN_STRIPS]
    messages = graph_of(model.n, model.edges()[0])
    label = others.label.copy()
    orders, is_in_strips = [], np.zeros(model.n, np.bool_)
    for spins in components:
        if len(spins) < FEWEST_SPINS_IN_STRIPS:
            break
        best = min(_strips(messages, graph, spins, max_width), key=lambda strips: strips.cut, default=None)
        if best is None:
            continue
        is_in_strips[spins] = True
        label[spins] = best.label[spins] + label.max() + 1
        orders.append(best.order)
    if not orders:
        return None
    orders.append(others.order[~is_in_strips[others.order]])
    return graph.partition(np.concatenate(orders), label, max_width)


def _strips(messages: Graph, graph: _Graph, spins: IntArray, max_width: int) -> Iterator[_Strips]:
    """Yield strips of one component, by rows, by columns and by distances from a corner.

    On a lattice, the difference of the distances to two corners of a side counts the columns, the sum the rows.
    """
    views = [distance[spins] for distance, _ in corners(messages, spins)]
    looked_at = 0
    # The first two corners are far from each other, the third is on a side with the first.
    for near, far in itertools.combinations([*views[::2], *views[1::2]], 2):
        for layers, across in ((near - far, near + far), (near + far, near - far), (near, far)):
            if looked_at > MOST_SPINS_LOOKED_AT:
                return
            if np.ptp(layers) and np.ptp(across):
                looked_at += len(spins)
                strips = _Strips.of(graph, spins, layers, across, max_width)
                if strips is not None:
                    yield strips


@dataclass(frozen=True)
class _Strips:
    """Strips of one component: its spins in order of elimination, the strip of each spin, and the strength they cut."""

    order: IntArray
    label: IntArray
    cut: float

    @classmethod
    def of(cls, graph: _Graph, spins: IntArray, layers: IntArray, across: IntArray, max_width: int) -> _Strips | None:
        """Cut between layers at the least cost, with strips as thick as the width allows."""
        _, layer = np.unique(layers, return_inverse=True)
        count = int(layer.max()) + 1
        number = np.full(graph.n, -1, dtype=np.int64)
        number[spins] = layer

        def cut_after(ends: IntArray) -> Partition | None:
            strip = np.searchsorted(ends, layer, side="left")
            label = np.full(graph.n, -1, dtype=np.int64)
            label[spins] = strip
            return graph.partition(spins[np.lexsort((layer, across, strip))], label, max_width)

        def uniform(thickness: int) -> IntArray:
            strips = -(-count // thickness)
            return np.arange(1, strips) * count // strips - 1  # the last layers of all strips but one

        thickness = _thickest(lambda t: cut_after(uniform(t)), count, max_width, len(spins))
        if not thickness:
            return None
        cheapest = _cheapest_cuts(graph.strength_between(number, count), thickness)
        best = cut_after(cheapest) or cut_after(uniform(thickness))
        if best is None:
            return None
        label = _in_pieces(best)
        inside = number[graph.row] >= 0
        cut = graph.strength[inside & (label[graph.row] != label[graph.indices])].sum() / 2.0
        return cls(best.order, label, float(cut))


def _thickest(fits: Callable[[int], object], count: int, max_width: int, spins: int) -> int:
    """Return how many layers a strip may have, 0 if even one is too wide."""
    if spins > MOST_SPINS_TO_SEARCH:
        return next((t for t in (max_width, max_width // 2, 1) if t and fits(min(t, count)) is not None), 0)
    low, high = 0, min(LAYERS_PER_WIDTH * max_width + 1, count)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) is not None else (low, middle - 1)
    return low


def _cheapest_cuts(cost: FloatArray, thickness: int) -> IntArray:
    """Return the layers after which to cut, at the least cost, so that no strip is thicker than allowed.

    Examples
    --------
    >>> _cheapest_cuts(np.array([5.0, 1.0, 5.0, 5.0, 2.0, 5.0]), 3).tolist()
    [1, 4]
    """
    count = len(cost) + 1
    least, before = np.zeros(count + 1), np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        begins = np.arange(max(end - thickness, 0), end)
        best = int(np.argmin(least[begins]))
        before[end] = begins[best]
        least[end] = least[begins[best]] + (cost[end - 1] if end < count else 0.0)
    cuts = []
    while before[count] > 0:
        count = int(before[count])
        cuts.append(count - 1)
    return np.array(cuts[::-1], dtype=np.int64)


def _in_pieces(strips: Partition) -> IntArray:
    """Return the blocks of spins, with strips cut across if their tables would not fit."""
    label = strips.label.copy()
    block = label[strips.order]
    entries = np.cumsum(2.0**strips.width)
    first = np.searchsorted(block, np.arange(block.max(initial=-1) + 1))
    before = np.concatenate([[0.0], entries])[first]
    piece = ((entries - before[block]) // MOST_ENTRIES).astype(np.int64)
    new = np.concatenate([[0], np.cumsum((np.diff(block) != 0) | (np.diff(piece) != 0))])
    label[strips.order] = new
    return label

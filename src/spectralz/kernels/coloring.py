"""Colors of a graph, such that coupled spins differ, and the layout in which those of a color are drawn together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.coupling import Couplings

# Spins of a color stand in tiles of so many rows.
TILE = 32


class Colored(NamedTuple):
    """A graph in tiles of spins of one color.

    Attributes
    ----------
    row
        The row of each spin. Colors follow each other, in each of them spins with many neighbors come first.
    rows
        The number of rows; some at the end of each color have no spin.
    first
        The first tile of each color, and the number of tiles.
    begin
        Where the entries of each tile begin, and the number of all. They stand neighbor by neighbor, a row each.
    neighbor, coupling
        The row of a neighbor, and the coupling to it; 0 where a row has fewer neighbors than the first of its tile.
    """

    row: IntArray
    rows: int
    first: NDArray[np.int32]
    begin: NDArray[np.int32]
    neighbor: NDArray[np.int32]
    coupling: FloatArray


def colored(couplings: Couplings) -> Colored:
    """Return the layout of a sparse graph."""
    indptr, indices = couplings.indptr, couplings.indices
    n, degree = len(indptr) - 1, np.diff(indptr)
    color = first_fit(indptr, indices)
    sizes = np.bincount(color, minlength=1)
    tiles = -(-sizes // TILE)
    first = np.concatenate([[0], np.cumsum(tiles)])
    order = np.lexsort((-degree, color))
    row = np.empty(n, np.int64)
    row[order] = np.arange(n) + np.repeat(first[:-1] * TILE - (np.cumsum(sizes) - sizes), sizes)
    width = np.zeros(int(first[-1]), np.int64)
    np.maximum.at(width, row // TILE, degree)
    begin = np.concatenate([[0], np.cumsum(width * TILE)])
    # Entry number k of spin i stands in the k-th line of its tile.
    of_entry = np.repeat(np.arange(n), degree)
    slot = np.arange(len(indices)) - np.repeat(indptr[:-1], degree)
    place = begin[row[of_entry] // TILE] + slot * TILE + row[of_entry] % TILE
    size = max(int(begin[-1]), TILE)  # arrays without entries are no good to kernels
    neighbor, coupling = np.zeros(size, np.int32), np.zeros(size)
    neighbor[place], coupling[place] = row[indices], couplings.data
    return Colored(row, int(first[-1]) * TILE, first.astype(np.int32), begin.astype(np.int32), neighbor, coupling)


@compiled
def first_fit(indptr: IntArray, indices: IntArray) -> IntArray:
    """Return a color for each spin, the first that no neighbor has, in breadth-first order: two on bipartite graphs."""
    n = len(indptr) - 1
    color = np.full(n, -1, np.int64)
    queue, is_queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    taken_by = np.full(n + 1, -1, np.int64)  # the last spin that has a neighbor of the color
    end = 0
    for start in range(n):
        if is_queued[start]:
            continue
        head = end
        queue[end], is_queued[start] = start, True
        end += 1
        while head < end:
            spin = queue[head]
            head += 1
            for entry in range(indptr[spin], indptr[spin + 1]):
                other = indices[entry]
                if color[other] >= 0:
                    taken_by[color[other]] = spin
                if not is_queued[other]:
                    queue[end], is_queued[other] = other, True
                    end += 1
            least = 0
            while taken_by[least] == spin:
                least += 1
            color[spin] = least
    return color

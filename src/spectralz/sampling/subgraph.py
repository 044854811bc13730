"""A subgraph of small treewidth as the base of a path: its log Z is known, and its states are drawn exactly.

Only the remaining couplings are then annealed in. On a random graph of degree 3 the strongest two thirds of the edges
form a tree, and the path from there is twenty times shorter than from independent spins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import log_2cosh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.k_trees import Growth
    from spectralz.model import FloatArray

# Tables have at most 2^8 entries each, and this many in total.
MOST_WIDTH, MOST_ENTRIES = 8, 8_000_000
# Replaces a strength of 0 for an existing coupling.
LEAST_STRENGTH = 1e-300


def width_of(n: int) -> int:
    """Return the largest width of a subgraph whose tables are made in one or two tenths of a second.

    Examples
    --------
    >>> width_of(100), width_of(100_000), width_of(10**7)
    (8, 6, 1)
    """
    return max(min(int(MOST_ENTRIES // max(n, 1)).bit_length() - 1, MOST_WIDTH), 1)


@dataclass(frozen=True)
class Subgraph:
    """A partial k-tree with the strongest couplings of a model that fit into one.

    Attributes
    ----------
    log_z
        Of the subgraph with the model's fields.
    kept
        Which entries of the couplings' CSR matrix are in it.
    """

    log_z: float
    kept: NDArray[np.bool_]
    _growth: Growth
    _begin: NDArray[np.int64]
    _log_odds: NDArray[np.float32]

    def draw(self, x: NDArray[np.int8], state: NDArray[np.uint32]) -> None:
        """Draw 64 states into ``x``, (n, 64), with the random numbers of the lanes."""
        from spectralz.kernels.k_trees import draw_from_tables

        draw_from_tables(x, state, self._growth, self._begin, self._log_odds)


def strongest_subgraph(theta: FloatArray, couplings: Couplings, width: int) -> Subgraph:
    """Return a subgraph of a given width, grown along the strongest couplings of a sparse graph."""
    from spectralz.kernels.k_trees import grow, sum_out

    n = len(theta)
    clock.charge(costs.SUBGRAPH_ENTRY * n * 2**width + costs.SUBGRAPH_COUPLING * width * len(couplings.data))
    # What an edge alone adds to log Z.
    strength = np.maximum(log_2cosh(couplings.data) - math.log(2.0), LEAST_STRENGTH)
    growth = grow(couplings.indptr, couplings.indices, strength, width)
    begin = np.concatenate([[0], np.cumsum(1 << growth.sizes)])
    log_z, log_odds = sum_out(growth, theta, couplings, begin)
    return Subgraph(log_z, frozen(growth.kept), growth, begin, log_odds)

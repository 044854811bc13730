"""Rows of data with missing cells under a model: the weight of what is known, and the means of what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, IntArray, SpinArray

# Summing over more states than this takes minutes; a group of so many cells alone takes a second.
MOST_STATES = 2**27
MOST_TOGETHER = 22


class Neighbors(NamedTuple):
    """A graph: the neighbors of spin i and the numbers of its edges begin at ``start[i]``."""

    start: IntArray
    neighbor: IntArray
    edge: IntArray


def neighbors_of(n: int, edges: IntArray) -> Neighbors:
    """Return the graph of some edges.

    Examples
    --------
    >>> graph = neighbors_of(3, np.array([[0, 1], [0, 2]]))
    >>> graph.start.tolist(), graph.neighbor.tolist(), graph.edge.tolist()
    ([0, 2, 3, 4], [1, 2, 0, 0], [0, 1, 0, 1])
    """
    ends = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
    order = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
    others = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)
    return Neighbors(start, others[order], np.tile(np.arange(len(edges)), 2)[order])


@dataclass(frozen=True)
class MissingCells:
    """Rows of -1, 0 (missing) and +1, and the groups of their missing cells that are coupled.

    Attributes
    ----------
    x
        The rows.
    graph
        Which spins are coupled.
    row, first, spin
        The row of each group, where its spins begin, and the spins of all groups.
    """

    x: SpinArray
    graph: Neighbors
    row: IntArray
    first: IntArray
    spin: IntArray

    @property
    def sizes(self) -> IntArray:
        """How many cells each group has."""
        return np.diff(self.first)

    @property
    def states(self) -> float:
        """The number of states of all groups, over which sums run."""
        return float(np.exp2(self.sizes.astype(np.float64)).sum())

    @property
    def are_few(self) -> bool:
        """Whether the sums over all states are affordable."""
        return bool(self.sizes.max(initial=0) <= MOST_TOGETHER and self.states <= MOST_STATES)

    def of_rows(self, rows: NDArray[Any]) -> MissingCells:
        """Return some of the rows."""
        return missing_cells(self.x[rows], self.graph)

    def sums(self, field: FloatArray, coupling: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log of the sum over the missing cells of each row, and the probability of +1 in every cell.

        The sum has the terms with at least one missing cell only.
        """
        log_sum, up, _, _ = self._sums(field, coupling, np.empty(0), 0, False)
        return log_sum, up

    def moments(
        self, field: FloatArray, coupling: FloatArray, weight: FloatArray, information: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-sums of rows, and the weighted sums of moments and of their covariances given the rows."""
        log_sum, _, moments, covariance = self._sums(field, coupling, weight, len(field) + len(coupling), information)
        return log_sum, moments, covariance

    def completed(self, field: FloatArray, coupling: FloatArray, count: int, rng: np.random.Generator) -> SpinArray:
        """Return the rows ``count`` times (count x rows x spins), their missing cells drawn given the known ones."""
        from spectralz.kernels.missing_cells import draw

        drawn = np.tile(self.x, (count, 1, 1))
        uniform = rng.random((count, len(self.row)))
        groups = (self.row, self.first, self.spin)
        draw(self.x, *groups, *self.graph, field, coupling, uniform, drawn)
        return drawn

    def _sums(
        self, field: FloatArray, coupling: FloatArray, weight: FloatArray, size: int, information: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        from spectralz.kernels.missing_cells import sum_out

        log_sum, up, moments = np.zeros(len(self.x)), (self.x + 1) / 2.0, np.zeros(size)
        covariance = np.zeros((size, size) if information else (0, 0))
        groups = (self.row, self.first, self.spin)
        sum_out(self.x, weight, *groups, *self.graph, field, coupling, log_sum, up, moments, covariance)
        return log_sum, up, moments, covariance


def missing_cells(x: SpinArray, graph: Neighbors) -> MissingCells:
    """Return the groups of missing cells of some rows.

    Examples
    --------
    >>> graph = neighbors_of(3, np.array([[0, 1], [1, 2]]))
    >>> cells = missing_cells(np.array([[0, 0, 1], [0, 1, 0]], dtype=np.int8), graph)
    >>> cells.row.tolist(), cells.sizes.tolist()
    ([0, 1, 1], [2, 1, 1])
    """
    from spectralz.kernels.missing_cells import groups_of

    x = np.ascontiguousarray(x)
    return MissingCells(x, graph, *groups_of(x, graph.start, graph.neighbor))


def distinct_rows(x: SpinArray) -> tuple[SpinArray, IntArray]:
    """Return the different rows, and for each row which of them it is."""
    if not x.size:
        return x[:1], np.zeros(len(x), dtype=np.int64)
    keys = np.ascontiguousarray(x).view(np.dtype((np.void, x.shape[1]))).ravel()
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return np.ascontiguousarray(x[first]), place.reshape(-1)

"""What data say about the sufficient statistics x_i and x_i x_j: their moments, expected ones where cells are missing.

The likelihood of the known part x_o of a row is the sum over its missing cells: log Z with x_o fixed, minus log Z. Its
gradient is E[statistics | x_o] - E[statistics], its Hessian Cov[statistics | x_o] - Cov[statistics].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from spectralz.errors import TooLargeError
from spectralz.model.coupling.entries import symmetric
from spectralz.parts.missing_cells import MOST_TOGETHER, MissingCells, missing_cells, neighbors_of

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.learning.table import Table
    from spectralz.model import FloatArray, IntArray, SpinArray


class Expected(NamedTuple):
    """The mean over rows of the log-weight of what is known, of E[statistics | row] and of Cov[statistics | row]."""

    log_weight: float
    moments: FloatArray
    lost: FloatArray | float


class Observed(Protocol):
    """Data as a likelihood needs them."""

    def expected(self, parameters: FloatArray, *, lost: bool = False) -> Expected:
        """Return the means over rows; the covariances, the information lost with missing cells, if they are wanted."""


@dataclass(frozen=True)
class Complete:
    """Data without missing cells, of which only the moments matter."""

    moments: FloatArray

    def expected(self, parameters: FloatArray, *, lost: bool = False) -> Expected:
        """Return the means over rows, of which only the first depends on the parameters."""
        return Expected(float(parameters @ self.moments), self.moments, 0.0)


@dataclass(frozen=True)
class Incomplete:
    """Rows with missing cells: the moments of the known ones, the groups of the others, and the share of each row."""

    edges: IntArray
    known: FloatArray
    cells: MissingCells
    share: FloatArray

    @property
    def n(self) -> int:
        """Number of variables."""
        return int(self.cells.x.shape[1])

    def log_weight(self, states: SpinArray, parameters: FloatArray) -> FloatArray:
        """Return the log-weights of whole states."""
        x = states.astype(np.float64)
        couplings = symmetric(self.n, self.edges, parameters[self.n :] / 2.0)
        return np.asarray(np.einsum("ri,ri->r", x @ couplings.tocsr() + parameters[: self.n], x))

    def expected(self, parameters: FloatArray, *, lost: bool = False) -> Expected:
        """Return the means over rows, from sums over the missing cells."""
        field, coupling = parameters[: self.n], parameters[self.n :]
        log_sum, moments, covariance = self.cells.moments(field, coupling, self.share, lost)
        value = float(parameters @ self.known) + float(self.share @ log_sum)
        return Expected(value, self.known + moments, covariance if lost else 0.0)


def observed(problem: Problem, table: Table) -> Observed:
    """Return what a table says, or refuse rows with too many missing cells."""
    if table.is_complete or table.states is None:
        return Complete(problem.moments)
    distinct = table.distinct()
    states = distinct.known_states("a sum over missing cells")
    cells = missing_cells(states, neighbors_of(problem.n, problem.edges))
    if not cells.are_few:
        most = int(cells.sizes.max())
        raise TooLargeError(
            f"rows lack up to {most} values that are coupled with one another, and the sums over all missing values "
            f"have {cells.states:.2g} terms; leave out rows that lack more than about {min(most - 1, MOST_TOGETHER)}"
        )
    share = distinct.weight / distinct.rows
    x = states.astype(np.float64)
    i, j = problem.edges.T
    pairs = ((x * share[:, None]).T @ x)[i, j]
    return Incomplete(problem.edges, np.concatenate([x.T @ share, pairs]), cells, share)

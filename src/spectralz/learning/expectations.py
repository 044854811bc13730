"""The pseudo-likelihood of rows with missing cells, by expectations (EM).

A row with missing cells is replaced by its completions, weighted by their probabilities given the known cells under
the present parameters; then the pseudo-likelihood of all rows is maximized, and so on until nothing changes. This
assumes, as every likelihood of known cells does, that whether a value is missing does not depend on the value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.learning.minimizing import Minimum, minimize
from spectralz.learning.pseudo import PseudoLikelihood, scores_of

if TYPE_CHECKING:
    from spectralz.learning.observed import Incomplete
    from spectralz.learning.problem import Problem
    from spectralz.learning.table import Table
    from spectralz.model import FloatArray, IntArray, SpinArray

# Rows that lack at most so many values are completed in all ways, others by so many draws.
MOST_LISTED, DRAWS = 5, 32
MOST_ROUNDS = 200
UNSETTLED = "the parameters still change with the expectations"
# No parameter changes by less than this at the end; with draws, than this share of one over the root of rows.
LEAST_CHANGE, LEAST_CHANGE_OF_DRAWS = 1e-6, 1e-2
# Completed rows of this many numbers are compared at a time.
MOST_NUMBERS = 2**22


@dataclass(frozen=True)
class Completed:
    """Completions of rows: whole states, the row that each completes, and their shares, which add up to 1."""

    states: SpinArray
    row: IntArray
    share: FloatArray

    def as_table(self, table: Table) -> Table:
        """Return these rows with their weights instead of those of the table that they complete."""
        return replace(table, states=self.states, weight=self.share * table.rows, known=None)


def completed(data: Incomplete, parameters: FloatArray, seed: int) -> Completed:
    """Return the completions of all rows under some parameters; the same seed draws with the same random numbers."""
    cells = data.cells
    lacking = (cells.x == 0).sum(axis=1)
    field, coupling = parameters[: data.n], parameters[data.n :]
    parts = []
    for count in np.unique(lacking[lacking <= MOST_LISTED]).tolist():
        rows = np.flatnonzero(lacking == count)
        parts.append(_all_ways(data, parameters, rows, count))
    rows = np.flatnonzero(lacking > MOST_LISTED)
    if len(rows):
        drawn = cells.of_rows(rows).completed(field, coupling, DRAWS, np.random.default_rng(seed))
        share = np.tile(data.share[rows] / DRAWS, DRAWS)
        parts.append(Completed(drawn.reshape(-1, data.n), np.tile(rows, DRAWS), share))
    states, row, share = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("states", "row", "share")
    )
    order = np.argsort(row, kind="stable")
    return Completed(states[order], row[order], share[order])


def _all_ways(data: Incomplete, parameters: FloatArray, rows: IntArray, count: int) -> Completed:
    """Complete rows that all lack ``count`` values in all ways."""
    ways = 1 << count
    states = np.repeat(data.cells.x[rows][:, None, :], ways, axis=1)
    missing = np.nonzero(data.cells.x[rows] == 0)[1].reshape(len(rows), count)
    spins = 2 * (np.arange(ways)[:, None] >> np.arange(count) & 1) - 1
    states[np.arange(len(rows))[:, None, None], np.arange(ways)[:, None], missing[:, None, :]] = spins
    states = states.reshape(-1, data.n)
    log_weight = data.log_weight(states, parameters).reshape(len(rows), ways)
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    share = data.share[rows, None] * weight / weight.sum(axis=1, keepdims=True)
    return Completed(states, np.repeat(rows, ways), share.ravel())


def table_completed(table: Table, data: Incomplete, parameters: FloatArray, seed: int) -> Table:
    """Return a table of the completions of all rows, with their weights."""
    return completed(data, parameters, seed).as_table(table)


def maximized(
    problem: Problem, table: Table, data: Incomplete, start: FloatArray, tol: float, max_iter: int, seed: int
) -> Minimum:
    """Return where the pseudo-likelihood of the completed rows has its maximum under its own parameters.

    The search ends when no parameter changes by more than ``tol``, or than draws can decide.
    """
    at, iterations = start, 0
    has_draws = bool(((data.cells.x == 0).sum(axis=1) > MOST_LISTED).any())
    enough = max(tol, LEAST_CHANGE_OF_DRAWS / np.sqrt(table.rows) if has_draws else LEAST_CHANGE)
    for _ in range(MOST_ROUNDS):
        objective = PseudoLikelihood(problem, table_completed(table, data, at, seed))
        best = minimize(objective, problem, at, tol, max_iter)
        iterations += best.iterations
        change = float(np.abs(best.parameters - at).max(initial=0.0))
        at = best.parameters
        if best.stopped or change <= enough:
            return replace(best, iterations=iterations)
    return replace(best, iterations=iterations, stopped=UNSETTLED)


def curvature_and_scores(
    problem: Problem, table: Table, data: Incomplete, at: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the slope of the equations that are solved, and the covariance of the rows' parts of them.

    The equations are ``sum over rows of E[s | row] = 0`` with s the score of the pseudo-likelihood. Their slope has two
    parts: the mean slope of s, and minus its covariance given the row with the statistics, by which the expectation
    changes.
    """
    whole = completed(data, at, seed)
    slope = PseudoLikelihood(problem, whole.as_table(table)).hessian(at)[2]
    spread = np.zeros_like(slope)
    first = np.flatnonzero(np.diff(whole.row, prepend=-1))
    step = max(1, MOST_NUMBERS // problem.size)
    cuts = np.unique(np.append(first[np.searchsorted(first, np.arange(0, len(whole.row), step))], len(whole.row)))
    for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        x, share = whole.states[low:high].astype(np.float64), whole.share[low:high, None]
        begins = first[(first >= low) & (first < high)] - low
        scores = scores_of(problem, x, at)
        statistics = np.hstack([x, x[:, problem.edges[:, 0]] * x[:, problem.edges[:, 1]]])
        total = np.add.reduceat(share, begins)
        mean = np.add.reduceat(share * scores, begins) / total
        mean_statistics = np.add.reduceat(share * statistics, begins) / total
        slope -= (share * scores).T @ statistics - (total * mean).T @ mean_statistics
        spread += (total * mean).T @ mean
    return slope, spread

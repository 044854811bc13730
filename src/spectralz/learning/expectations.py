"""Likelihoods and their derivatives: exact, over missing cells, and of each spin given the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from spectralz.errors import TooLargeError
from spectralz.learning.minimizing import Minimum, minimize
from spectralz.model.coupling.entries import symmetric
from spectralz.parts.missing_cells import MOST_TOGETHER, MissingCells, missing_cells, neighbors_of

if TYPE_CHECKING:
    from typing import Any

    from spectralz.learning.problem import Problem
    from spectralz.learning.table import Table
    from spectralz.model import FloatArray, IntArray, Ising, SpinArray


# 2^25 numbers are 256 MiB, and a few such arrays are needed.
MOST_SPINS = 25
# How many spins one matrix product sums over.
CHUNK = 6


def walsh(values: FloatArray) -> FloatArray:
    """Return ``sum_x values[x] prod_(i in s) x_i`` for every set s of spins; bit i of an index is spin i, 1 for +1.

    Examples
    --------
    >>> import numpy as np
    >>> walsh(np.array([0.1, 0.2, 0.3, 0.4])).round(12).tolist()  # 1, E[x_0], E[x_1], E[x_0 x_1]
    [1.0, 0.2, 0.4, 0.0]
    """
    return _transformed(np.asarray(values, dtype=np.float64), is_over_sets=False)


def _transformed(values: FloatArray, *, is_over_sets: bool) -> FloatArray:
    """Return the transform, or the transform that sums over sets and is indexed by states."""
    n = len(values).bit_length() - 1
    sums = values
    for first in range(0, n, CHUNK):
        spins = min(CHUNK, n - first)
        matrix = _matrix(spins).T if is_over_sets else _matrix(spins)
        if first == 0:
            sums = sums.reshape(-1, 1 << spins) @ matrix.T
        else:  # the middle axis holds these spins; lower bits are behind it, higher bits before it
            sums = np.matmul(matrix, sums.reshape(-1, 1 << spins, 1 << first))
    return sums.reshape(-1)


def _matrix(spins: int) -> FloatArray:
    """Return the products of spins of every set (rows) in every state (columns)."""
    products = np.ones((1, 1))
    for _ in range(spins):
        products = np.kron(np.array([[1.0, 1.0], [-1.0, 1.0]]), products)
    return products


def probabilities(model: Ising) -> FloatArray:
    """Return the probability of each of the 2^n states of a small model."""
    pairs, J = model.edges()
    engine = Walsh(model.n, pairs)
    return engine.distribution(np.concatenate([model.field, J]))[1]


class Walsh:
    """log Z, moments and their covariance for all parameters of a graph of few spins."""

    def __init__(self, n: int, edges: IntArray) -> None:
        self.n = n
        self.masks = np.concatenate([1 << np.arange(n, dtype=np.int64), (1 << edges[:, 0]) | (1 << edges[:, 1])])

    @classmethod
    def of(cls, problem: Problem) -> Walsh:
        """Return the engine for a problem."""
        return cls(problem.n, problem.edges)

    def distribution(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z and the probabilities of all states."""
        placed = np.zeros(1 << self.n)
        placed[self.masks] = parameters
        log_weight = _transformed(placed, is_over_sets=True)
        largest = float(log_weight.max())
        log_weight -= largest
        weight = np.exp(log_weight, out=log_weight)
        total = float(weight.sum())
        weight /= total
        return largest + float(np.log(total)), weight

    def moments(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z and the means of the statistics."""
        log_z, p = self.distribution(parameters)
        return log_z, walsh(p)[self.masks]

    def moments_and_covariance(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return log Z, the means of the statistics and their covariance, the Fisher information of one row."""
        log_z, p = self.distribution(parameters)
        products = walsh(p)
        mean = products[self.masks]
        return log_z, mean, products[self.masks[:, None] ^ self.masks[None, :]] - np.outer(mean, mean)


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


# Above this share of all pairs a matrix of all couplings is quicker than a sparse one.
DENSE = 0.2
# Scores of this many numbers are computed at a time.
MOST_SCORES = 2**22


class PseudoLikelihood:
    """The mean negative log-pseudo-likelihood per row, its gradient, its Hessian and the scores of rows."""

    def __init__(self, problem: Problem, table: Table) -> None:
        distinct = table.distinct()
        self.problem = problem
        self.n, self.edges = problem.n, problem.edges
        self.x = distinct.known_states("the pseudo-likelihood").astype(np.float64)
        self.share = distinct.weight / distinct.rows
        self._is_dense = len(self.edges) >= DENSE * max(problem.n * (problem.n - 1) / 2, 1)

    def _fields(self, parameters: FloatArray) -> FloatArray:
        """Return the field on every variable in every row."""
        couplings = symmetric(self.n, self.edges, parameters[self.n :])
        matrix: Any = couplings.toarray() if self._is_dense else couplings.tocsr()
        return np.asarray(self.x @ matrix + parameters[: self.n])

    def value(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        value, t = self._value_and_means(self._fields(parameters))
        return value, self._gradient(t)

    def _value_and_means(self, h: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and E[x_i | others] = tanh(h_i), from one exponential that cannot overflow."""
        small = np.exp(-2.0 * np.abs(h))
        value = float(self.share @ (np.log1p(small) + np.maximum(-2.0 * self.x * h, 0.0)).sum(axis=1))
        return value, np.copysign((1.0 - small) / (1.0 + small), h)

    def _gradient(self, t: FloatArray) -> FloatArray:
        weighted = self.share[:, None] * (t - self.x)
        i, j = self.edges.T
        if self._is_dense:
            products = weighted.T @ self.x
            return np.concatenate([weighted.sum(axis=0), products[i, j] + products[j, i]])
        pairs = [float(weighted[:, a] @ self.x[:, b] + weighted[:, b] @ self.x[:, a]) for a, b in self.edges.tolist()]
        return np.concatenate([weighted.sum(axis=0), pairs])

    def hessian(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return value, gradient and Hessian: a sum over variables of a small matrix each."""
        value, t = self._value_and_means(self._fields(parameters))
        size = self.n + len(self.edges)
        total = np.zeros((size, size))
        i, j = self.edges.T
        for spin in range(self.n):
            edges = np.flatnonzero((i == spin) | (j == spin))
            others = i[edges] + j[edges] - spin
            weight = self.share * (1.0 - t[:, spin]) * (1.0 + t[:, spin])
            design = np.column_stack([np.ones(len(self.x)), self.x[:, others]])
            where = np.concatenate([[spin], self.n + edges])
            total[np.ix_(where, where)] += (weight[:, None] * design).T @ design
        return value, self._gradient(t), total

    def covariance_of_scores(self, parameters: FloatArray) -> FloatArray:
        """Return the mean of s s' over rows, where s is the gradient of one row's log-pseudo-likelihood."""
        size = self.problem.size
        total = np.zeros((size, size))
        step = max(1, MOST_SCORES // size)
        for first in range(0, len(self.x), step):
            rows = slice(first, first + step)
            scores = scores_of(self.problem, self.x[rows], parameters)
            total += (self.share[rows, None] * scores).T @ scores
        return total


def scores_of(problem: Problem, x: FloatArray, parameters: FloatArray) -> FloatArray:
    """Return the gradient of the log-pseudo-likelihood of each row."""
    i, j = problem.edges.T
    couplings = symmetric(problem.n, problem.edges, parameters[problem.n :])
    rest = x - np.tanh(np.asarray(x @ couplings.tocsr() + parameters[: problem.n]))
    return np.hstack([rest, x[:, j] * rest[:, i] + x[:, i] * rest[:, j]])

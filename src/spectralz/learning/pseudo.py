"""The pseudo-likelihood: each variable given all others, with one symmetric coupling per pair.

The mean per row is ``sum_i log P(x_i | others) = - sum_i log(1 + exp(-2 x_i h_i))``, where
``h_i = theta_i + sum_j J_ij x_j``.
It needs no log Z and is concave, and its maximum tends to the true parameters as the number of rows grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.model.coupling.entries import symmetric

if TYPE_CHECKING:
    from typing import Any

    from spectralz.learning.problem import Problem
    from spectralz.learning.table import Table
    from spectralz.model import FloatArray

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

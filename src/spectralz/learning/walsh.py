"""The likelihood over all 2^n states at once, by the Walsh-Hadamard transform.

The log-weights of all states are the transform of the parameters, each placed at the bits of its spins. The transform
of the probabilities holds the mean product of every set of spins, at the bits of that set. So the covariance of two
statistics is a look-up too: x_a x_b has the bits that are in one of them but not in both. One evaluation with its
whole Hessian therefore takes two transforms, which are products with small matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray, IntArray, Ising

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

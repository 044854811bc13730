"""The oracle: every state written out, its log-weight by the definition, sums in fifty digits.

Nothing is taken from the package but the numbers of the model, read off as arrays.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np

import spectralz as sz


def all_states(n: int) -> np.ndarray:
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8).reshape(2**n, n)


def dense(model: sz.Ising) -> np.ndarray:
    return model.coupling.toarray() if model.is_sparse else np.array(model.coupling)


def log_weight(model: sz.Ising, x: np.ndarray) -> mpmath.mpf:
    """offset + sum_i theta_i x_i + sum_ij A_ij x_i x_j, term by term."""
    A = dense(model)
    total = mpmath.mpf(model.offset)
    for i in range(model.n):
        total += mpmath.mpf(float(model.field[i])) * int(x[i])
        for j in range(model.n):
            total += mpmath.mpf(float(A[i, j])) * int(x[i]) * int(x[j])
    return total


def solve(model: sz.Ising) -> tuple[float, np.ndarray, np.ndarray]:
    """Return log Z, E[x_i] and E[x_i x_j] (n x n)."""
    with mpmath.workdps(50):
        states = all_states(model.n)
        weights = [log_weight(model, x) for x in states]
        largest = max(weights)
        p = [mpmath.exp(w - largest) for w in weights]
        total = mpmath.fsum(p)
        p = np.array([float(value / total) for value in p])
        X = states.astype(float)
        return float(largest + mpmath.log(total)), X.T @ p, X.T @ (p[:, None] * X)


def chi_square(model, x):
    """Pearson's statistic of samples against the exact probabilities, with its degrees of freedom."""
    X = all_states(model.n)
    log_p = np.asarray(model.log_weight(X))
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    counts = np.bincount(((x.astype(int) + 1) // 2) @ (1 << np.arange(model.n - 1, -1, -1)), minlength=len(p))
    expected = p * len(x)
    common = expected >= 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    rest = expected[~common].sum()
    if rest > 5:
        statistic += (counts[~common].sum() - rest) ** 2 / rest
    return statistic, common.sum() - 1 + (rest > 5)

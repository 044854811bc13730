"""The diagonal SDP by other means: exact arithmetic for feasibility, closed forms, and general solvers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def is_semidefinite(C: np.ndarray, y: np.ndarray) -> bool:
    """Say whether Diag(y) - C >= 0, by elimination in exact rational arithmetic."""
    n = len(y)
    M = [[Fraction(float(y[i])) if i == j else -Fraction(float(C[i, j])) for j in range(n)] for i in range(n)]
    left = set(range(n))
    while left:
        if any(M[i][i] < 0 for i in left):
            return False
        pivot = next((i for i in left if M[i][i] > 0), None)
        if pivot is None:  # all diagonals are zero, so everything must be
            return all(M[i][j] == 0 for i in left for j in left)
        left.discard(pivot)
        for i in left:
            factor = M[i][pivot] / M[pivot][pivot]
            for j in left:
                M[i][j] -= factor * M[pivot][j]
    return True


def odd_cycle(n: int) -> np.ndarray:
    """The smallest y for the cycle of odd length with couplings -1: the vectors are as far apart as they can be."""
    return np.full(n, 2.0 * np.cos(np.pi / n))


def general_solver(A: np.ndarray, solver: str = "CLARABEL") -> float:
    """The smallest sum y as a general solver finds it: max <A_off, X> over X >= 0 with X_ii = 1."""
    import cvxpy as cp

    n = len(A)
    off = A - np.diag(np.diag(A))
    X = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Maximize(cp.trace(off @ X)), [cp.diag(X) == 1])
    problem.solve(solver=solver)
    return float(problem.value)

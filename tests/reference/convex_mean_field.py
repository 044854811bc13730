"""The convex mean-field bound by other means: the primal problem by a general optimizer, D by a barrier method."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def least_diagonal(C: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The y of least <weights, y> with Diag(y) - C >= 0, by Newton steps on t <weights, y> - log det(Diag(y) - C)."""
    n = len(C)
    w = np.ones(n) if weights is None else weights
    scale = np.abs(C).max()
    if scale == 0.0:
        return np.zeros(n)
    y = 2.0 * np.abs(C / scale).sum(axis=1) + 0.1
    t = 1.0
    while n / t > 1e-10:
        t *= 3.0
        for _ in range(50):
            inverse = np.linalg.inv(np.diag(y) - C / scale)
            gradient = t * w - np.diag(inverse)
            step = -np.linalg.solve(inverse**2, gradient)
            decrement = -gradient @ step
            share = 1.0 / (1.0 + np.sqrt(max(decrement, 0.0)))
            y = y + (share if decrement > 0.1 else 1.0) * step
            if decrement < 1e-12:
                break
    return scale * y


def bound(theta: np.ndarray, A: np.ndarray, offset: float, D: np.ndarray) -> tuple[float, np.ndarray]:
    """max over m of <theta, m> + m' (A + D) m + H(m) - Tr D + offset, and that m, written by its fields h.

    A has its diagonal, so that D is the whole shift: A + D <= 0 and x' A x = x' (A + D) x - Tr D for every state.
    """
    B = A + np.diag(D)

    def negative(h: np.ndarray) -> tuple[float, np.ndarray]:
        m = np.tanh(h)
        p, q = 1.0 / (1.0 + np.exp(-2.0 * h)), 1.0 / (1.0 + np.exp(2.0 * h))
        entropy = -sum(x * np.log(x) for k in range(len(h)) for x in (p[k], q[k]) if x > 0.0)
        gradient = (theta + 2.0 * B @ m - h) * (1.0 - m**2)
        return -(theta @ m + m @ B @ m + entropy), -gradient

    best = min(
        (minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-11}) for start in (0 * theta, theta)),
        key=lambda found: found.fun,
    )
    return -best.fun - D.sum() + offset, np.tanh(best.x)


def least_bound(theta: np.ndarray, A: np.ndarray, offset: float, rounds: int = 100) -> float:
    """The same at the best D, by conditional gradients with the step 2 / (k + 2)."""
    C = A - np.diag(np.diag(A))
    own = np.diag(A)
    y = least_diagonal(C)
    best = np.inf
    for k in range(rounds):
        value, m = bound(theta, A, offset, -y - own)
        best = min(best, value)
        y = y + 2.0 / (k + 2.0) * (least_diagonal(C, 1.0 - m**2) - y)
    return best

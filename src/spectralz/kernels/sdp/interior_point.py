"""The diagonal SDP by a primal-dual interior-point method (Helmberg, Rendl, Vanderbei, Wolkowicz 1996).

    minimize sum y  subject to  Z = Diag(y) - C >= 0,      maximize <C, X>  subject to  X_ii = 1, X >= 0.

Both iterates are always strictly feasible, so that <X, Z> is the gap. Newton's equation for X = mu Z^-1 has the n x n
matrix Z^-1 o X; its predictor and corrector share that factorization. It takes ten to fifteen iterations of a few dense
factorizations, O(n^3) each, and is the fastest method below about fifty spins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray

STEP_BACK = 0.95
MAX_ITERATIONS = 60


def solve_interior_point(C: FloatArray, tol: float, report: Callable[[float], None]) -> tuple[FloatArray, FloatArray]:
    """Return y, strictly feasible, and V with X = V V'; the relative gap is about ``tol``.

    ``C`` is dense, symmetric, with zero diagonal. If rounding stops the progress before ``tol`` is reached, the last
    iterate is returned.
    """
    n = len(C)
    X = np.eye(n)
    y = 1.1 * np.abs(C).sum(axis=1) + 0.1 * np.abs(C).max()
    Z = np.diag(y) - C
    factor = np.eye(n)
    first = gap = float(y.sum())
    for _ in range(MAX_ITERATIONS):
        try:
            Z_inverse = _inverse(Z)
            schur = _inverse(Z_inverse * X)
            direction = _corrected_direction(X, Z_inverse, schur, gap)
        except np.linalg.LinAlgError:
            break
        if direction is None:
            break
        dX, dy = direction
        along_x = _longest_step(X, dX)
        along_y = _longest_step(Z, np.diag(dy))
        if along_x is None or along_y is None:
            break
        X = X + along_x[0] * dX
        factor = along_x[1]
        y = y + along_y[0] * dy
        Z = np.diag(y) - C
        new_gap = float(np.sum(X * Z))
        report(_progress(first, new_gap, tol * float(y.sum())))
        if not new_gap > tol * float(y.sum()) or new_gap > 0.9 * gap:
            break
        gap = new_gap
    return y, factor / np.linalg.norm(factor, axis=1, keepdims=True)


def _inverse(Z: FloatArray) -> FloatArray:
    inverse = np.linalg.inv(Z)
    return np.asarray((inverse + inverse.T) / 2.0, dtype=np.float64)


def _corrected_direction(
    X: FloatArray, Z_inverse: FloatArray, schur: FloatArray, gap: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return Mehrotra's direction: aim at gap 0 first, then correct for the second-order term, aiming at mu."""
    n = len(X)
    # Predictor, mu = 0: X + dX + Z^-1 Diag(dy) X = 0 and diag(dX) = 0.
    dy_0 = -schur @ np.ones(n)
    dX_0 = -X - Z_inverse @ (dy_0[:, None] * X)
    mu = 0.1 * gap / n
    # Corrector: the same equations with mu Z^-1 and the product of the predictor's two parts.
    second = Z_inverse @ (dy_0[:, None] * dX_0)
    dy_1 = schur @ (mu * np.diagonal(Z_inverse) - np.diagonal(second))
    dX_1 = mu * Z_inverse - second - Z_inverse @ (dy_1[:, None] * X)
    dX = dX_0 + dX_1
    dX = (dX + dX.T) / 2.0
    dX[np.diag_indices(n)] = 1.0 - np.diagonal(X)  # zero up to rounding, which is undone here
    dy = dy_0 + dy_1
    return (dX, dy) if np.all(np.isfinite(dy)) and np.all(np.isfinite(dX)) else None


def _longest_step(P: FloatArray, dP: FloatArray) -> tuple[float, FloatArray] | None:
    """Return a step of at most 1 that keeps P + step dP positive definite, and the Cholesky factor there."""
    step = 1.0
    for _ in range(60):
        try:
            factor = np.asarray(np.linalg.cholesky(P + step * dP), dtype=np.float64)
        except np.linalg.LinAlgError:
            step *= 0.8
            continue
        if step == 1.0:
            return step, factor
        try:  # back off the boundary
            step *= STEP_BACK
            return step, np.asarray(np.linalg.cholesky(P + step * dP), dtype=np.float64)
        except np.linalg.LinAlgError:
            step *= 0.8
    return None


def _progress(first: float, now: float, wanted: float) -> float:
    """Return the progress of the gap, on a log scale."""
    if now <= wanted:
        return 1.0
    return float(np.clip(np.log(first / now) / np.log(first / wanted), 0.0, 1.0))

"""Expectation consistency for spins: a free energy of their means, maximized by Newton steps.

At the fixed points of expectation propagation the Gaussian exp(-x' (Lambda - J) x / 2 + gamma' x) has the means m and
the variances v = 1 - m^2 of the sites. Its gamma can be eliminated at any m, and its Lambda minimizes a convex
function. So the fixed points are the stationary points of a function of m alone (Opper and Winther 2005, Sec. 4):

    Phi(m) = <theta, m> + m' J m / 2 + sum_i H(m_i) + Delta(m),
    Delta(m) = min over Lambda of sum_i Lambda_i v_i / 2 - log det(Lambda - J) / 2 - sum_i (1 + log v_i) / 2,
    dPhi/dm_i = theta_i + (J m)_i - V_i m_i - atanh m_i,    V_i = Lambda_i - 1 / v_i >= 0.

Phi is finite and falls toward the walls of the cube, so it has a maximum inside. Ascent finds it even where the
iteration of expectation propagation cycles.

Everything is kept in units of the spins' own deviations. With K = sqrt(v_i) J_ij sqrt(v_j) and 1 + b = v Lambda, the
precision is Diag(1 + b) - K and its inverse C is a matrix of correlations, C_ii = 1. Means are kept as fields h, m =
tanh(h). Neither loses digits where spins are almost fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from spectralz.kernels.single_spin import entropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.arrays import FloatArray

# A variance below this is that of a fixed spin; its square root still makes couplings of 1e100 negligible.
LEAST_VARIANCE = 1e-300
# Precisions beyond this leave too few digits in the correlations, their inverse.
LARGEST_PRECISION = 1e6
# Errors of the minimum over Lambda enter Phi quadratically, so rounding errors of C_ii - 1 do not matter.
INNER_TOLERANCE = 1e-12
MOST_INNER_STEPS = 60
MOST_HALVINGS = 40
# A spin's field moves in one step by at most this, or to the value set by its neighbors if that is farther.
LARGEST_STEP = 4.0
LEAST_SHIFT, LARGEST_SHIFT, SHIFT_FACTOR = 1e-2, 1e12, 4.0
ROUNDING = 1e-12
# Beyond this an exponential counts as infinite.
LARGEST_EXPONENT = 700.0
# This many rows of a matrix are processed together: all entries at once would take a dozen times its memory.
ROWS_TOGETHER, MIRRORED_TOGETHER = 128, 512
# Beyond this many spins the next corrections are summed in single precision, which is enough for an error scale.
MOST_IN_DOUBLE = 500


class Point(NamedTuple):
    """A point in the cube of means, with the Gaussian fitted to it.

    Attributes
    ----------
    h, mean, variance
        Fields of the spins, tanh(h), and 1 - tanh(h)^2.
    precision
        1 + b: the diagonal of Lambda times the variances.
    coupling, correlation
        K and C; n x n.
    value
        Phi.
    mismatch
        Largest |C_ii - 1|: how well the Gaussian's variances match those of the spins.
    """

    h: FloatArray
    mean: FloatArray
    variance: FloatArray
    precision: FloatArray
    coupling: FloatArray
    correlation: FloatArray
    value: float
    mismatch: float


class Terms(NamedTuple):
    """The correction's sums over pairs for l = 3 and l = 4, and the sum of all sizes."""

    third: float
    fourth: float
    sizes: float


def inverse_in_place(matrix: NDArray[Any]) -> tuple[NDArray[Any], float] | None:
    """Return the inverse and log det of a symmetric matrix, or None if it is not positive definite.

    The matrix (in row-major order) is overwritten: with thousands of spins a copy takes as much memory as the model.
    Single precision is used if the matrix has it.
    """
    if not len(matrix):
        return matrix, 0.0
    is_single = matrix.dtype == np.float32
    factorize, invert = (lapack.spotrf, lapack.spotri) if is_single else (lapack.dpotrf, lapack.dpotri)
    factor, info = factorize(matrix.T, lower=1, clean=0, overwrite_a=1)  # column-major order, as LAPACK expects
    if info:
        return None
    log_det = 2.0 * float(np.log(factor.diagonal(), dtype=np.float64).sum())
    half, info = invert(factor, lower=1, overwrite_c=1)
    if info or not np.isfinite(log_det):
        return None
    n = len(half)
    for begin in range(0, n, MIRRORED_TOGETHER):
        end = min(begin + MIRRORED_TOGETHER, n)
        corner = half[begin:end, begin:end]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        half[begin:end, end:] = half[end:, begin:end].T
    return half.T, log_det


def _solution(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve with a symmetric matrix, which is written over, or return None if it is not positive definite."""
    factored = factored_in_place(matrix)
    if factored is None:
        return None
    solution = factored[0](right)
    return solution if np.isfinite(solution).all() else None


def factored_in_place(matrix: NDArray[Any]) -> tuple[Callable[[FloatArray], FloatArray], float] | None:
    """Return what solves with a symmetric matrix, which is written over, and its log det.

    None if it is not positive definite. In single precision if it is of that.
    """
    kind = matrix.dtype
    is_single = kind == np.float32
    factorize, solve = (lapack.spotrf, lapack.spotrs) if is_single else (lapack.dpotrf, lapack.dpotrs)
    factor, info = factorize(matrix.T, lower=1, clean=0, overwrite_a=1)
    if info:
        return None

    def solved(right: FloatArray) -> FloatArray:
        return np.asarray(solve(factor, right.astype(kind), lower=1)[0], dtype=np.float64)

    return solved, 2.0 * float(np.log(factor.diagonal(), dtype=np.float64).sum())


class _Gaussian(NamedTuple):
    """A feasible precision, its inverse, and the value of the convex function to be minimized."""

    precision: FloatArray
    correlation: FloatArray
    value: float


def _gaussian(precision: FloatArray, coupling: FloatArray) -> _Gaussian | None:
    if not (np.all(precision > 0.0) and np.all(precision <= LARGEST_PRECISION)):
        return None
    inverted = inverse_in_place(precision_matrix(precision, coupling))
    if inverted is None:
        return None
    correlation, log_det = inverted
    return _Gaussian(precision, correlation, 0.5 * float((precision - 1.0).sum()) - 0.5 * log_det)


def precision_matrix(precision: FloatArray, coupling: NDArray[Any]) -> NDArray[Any]:
    """Return Diag(1 + b) - K, in the precision of K."""
    matrix = np.negative(coupling, order="C")
    matrix[np.diag_indices(len(matrix))] += precision
    return matrix


def _fitted(coupling: FloatArray, start: FloatArray | None, is_up: Callable[[], bool], tol: float) -> _Gaussian | None:
    """Minimize sum b / 2 - log det(Diag(1 + b) - K) / 2 by Newton's method; the gradient is (1 - C_ii) / 2.

    Begins at ``start`` if that is feasible, otherwise where the matrix is diagonally dominant. Returns None if the
    precisions are too large for double precision. If the time is up it returns a Gaussian that does not fit yet.
    """
    now = None if start is None else _gaussian(start, coupling)
    if now is None:
        now = _gaussian(1.0 + np.abs(coupling).sum(axis=1), coupling)
    for _ in range(MOST_INNER_STEPS):
        if now is None:
            return None
        excess = now.correlation.diagonal() - 1.0
        if np.abs(excess).max(initial=0.0) <= tol or is_up():
            break
        step = _solution(now.correlation**2, excess)
        better = None if step is None else _line_search(now, coupling, step, float(excess @ step))
        if better is None:
            break
        now = better
    return now


def _line_search(now: _Gaussian, coupling: FloatArray, step: FloatArray, slope: float) -> _Gaussian | None:
    """Halve the step until it is feasible and lowers the function; None if rounding prevents this."""
    size, before = 1.0, _mismatch(now.correlation)
    for _ in range(MOST_HALVINGS):
        new = _gaussian(now.precision + size * step, coupling)
        if new is not None:
            # Close to the minimum the decrease of the function is below rounding, but the variances still improve.
            rounding = ROUNDING * float(now.precision.sum())
            descends = new.value <= now.value - 1e-4 * size * slope / 2.0
            if descends or (new.value <= now.value + rounding and _mismatch(new.correlation) <= 0.5 * before):
                return new
        size /= 2.0
    return None


def _mismatch(correlation: FloatArray) -> float:
    return float(np.abs(correlation.diagonal() - 1.0).max(initial=0.0))


def variances(h: FloatArray) -> FloatArray:
    """Return 1 - tanh(h)^2, at least the variance of a fixed spin."""
    small = np.exp(-2.0 * np.abs(h))
    return np.maximum(4.0 * small / (1.0 + small) ** 2, LEAST_VARIANCE)


def never() -> bool:
    """Return False: the time is never up."""
    return False


def point_at(
    theta: FloatArray,
    J: FloatArray,
    h: FloatArray,
    start: FloatArray | None = None,
    is_up: Callable[[], bool] = never,
    tol: float = INNER_TOLERANCE,
) -> Point | None:
    """Return Phi and its Gaussian at the means tanh(h), or None where double precision cannot hold them.

    ``start`` is a guess at the precisions, from a nearby point. Variances fit within ``tol``, unless ``is_up`` ends the
    fit earlier.
    """
    mean, variance = np.tanh(h), variances(h)
    deviation = np.sqrt(variance)
    coupling = deviation[:, None] * J * deviation
    fitted = _fitted(coupling, start, is_up, tol)
    if fitted is None:
        return None
    value = own_part(theta, J, h) + fitted.value
    return Point(
        h, mean, variance, fitted.precision, coupling, fitted.correlation, value, _mismatch(fitted.correlation)
    )


def own_part(theta: FloatArray, J: FloatArray, h: FloatArray) -> float:
    """Return Phi without Delta, which is the mean-field free energy."""
    mean = np.tanh(h)
    return float(mean @ (theta + 0.5 * (J @ mean)) + entropy(h).sum())


def upper_bound(theta: FloatArray, J: FloatArray, h: FloatArray, known: Point) -> float:
    """Return an upper bound on Phi at the means tanh(h), from the Gaussian of another point.

    Delta is a minimum over Lambda, and log det(Lambda - J) is known at the Lambda of that point. So any known Lambda
    gives a bound without a new factorization. It holds to second order about means of 0.
    """
    Lambda, variance = known.precision / known.variance, variances(h)
    # Delta of the known point with other variances; log det itself is not needed.
    delta = known.value - own_part(theta, J, known.h)
    with np.errstate(over="ignore", invalid="ignore"):
        delta += 0.5 * float((Lambda * (variance - known.variance) - np.log(variance / known.variance)).sum())
    return own_part(theta, J, h) + delta if np.isfinite(delta) else np.inf


def _onsager(point: Point) -> FloatArray:
    """Return V, from b_i C_ii = sum_j K_ij C_ij (+ 1 - C_ii): small b keep the digits that v Lambda - 1 would lose."""
    weight = point.variance * point.correlation.diagonal()
    return np.asarray((point.coupling * point.correlation).sum(axis=1) / weight)


def gradient(theta: FloatArray, J: FloatArray, point: Point) -> FloatArray:
    """Return dPhi/dm: the field of the other spins on each spin, minus its own."""
    return np.asarray(theta + J @ point.mean - _onsager(point) * point.mean - point.h)


def improved(
    theta: FloatArray, J: FloatArray, point: Point, shift: float, least_gain: float, is_up: Callable[[], bool] = never
) -> tuple[Point, float] | None:
    """Make a Newton step that does not lower Phi, with the curvature raised by ``shift`` or more if needed.

    Returns the new point and the shift for the next step, or None if no step ascends or the time is up. ``least_gain``
    is the rounding error of Phi.
    """
    push = gradient(theta, J, point)
    deviation = np.sqrt(point.variance)
    curvature = _curvature(point)
    while shift <= LARGEST_SHIFT and not is_up():
        step = None if curvature is None else _solution(_shifted(curvature, shift), push * deviation)
        if step is not None:
            reach = np.maximum(LARGEST_STEP, np.abs(push))
            new = point_at(theta, J, point.h + np.clip(step / deviation, -reach, reach), point.precision, is_up)
            if new is not None and new.value >= point.value - least_gain:
                return new, shift / SHIFT_FACTOR if shift > LEAST_SHIFT / SHIFT_FACTOR else 0.0
        shift = max(SHIFT_FACTOR * shift, LEAST_SHIFT)
    return None


def _shifted(curvature: FloatArray, shift: float) -> FloatArray:
    matrix = curvature.copy()
    matrix[np.diag_indices(len(matrix))] += shift
    return matrix


def _curvature(point: Point) -> FloatArray | None:
    """Return minus the second derivatives of Phi, in units of the deviations.

    These are Lambda - J + 2 M ((S o S)^-1 - Diag(1 / v^2)) M with S the covariances, from dLambda/dv = -(S o S)^-1. S o
    S is Diag(v) (I + E) Diag(v), where E holds the squares of the off-diagonal correlations. (I + E)^-1 - I is written
    as E (I + E)^-1 E - E to avoid cancellation.
    """
    n = len(point.h)
    E = point.correlation**2
    E[np.diag_indices(n)] = 0.0
    inverse = inverse_in_place(np.eye(n) + E)
    if inverse is None:
        return None
    slope = point.mean / np.sqrt(point.variance)
    rows = slope[:, None] * E
    total = np.diag(1.0 + _onsager(point) * point.variance) - point.coupling
    total += 2.0 * (rows @ inverse[0] @ rows.T - rows * slope)
    return np.asarray(0.5 * (total + total.T))


def correction_terms(point: Point) -> Terms:
    """Return the leading correction to log Z, from the third and fourth cumulants of the sites.

    1/2 sum_{i != j} sum_{l = 3, 4} k_l(m_i) k_l(m_j) / l! (S_ij / (v_i v_j))^l with k_3 = -2 m v and k_4 = v (6 m^2 -
    2); S_ij = sqrt(v_i v_j) C_ij turns k_l / v^l into k_3 / v^(3/2) = -2 m / sqrt(v) and k_4 / v^2 = (4 - 6 v) / v.
    """
    k3, k4 = _cumulants(point)
    sums = np.zeros(3)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, C in _off_diagonal(point):
            third = (k3[rows, None] * C) * (C * k3) * C / 6.0
            fourth = (k4[rows, None] * C**2) * (C**2 * k4) / 24.0
            sums += 0.5 * third.sum(), 0.5 * fourth.sum(), 0.5 * (np.abs(third).sum() + np.abs(fourth).sum())
    return Terms(*(float(total) for total in sums))


def _cumulants(point: Point) -> tuple[FloatArray, FloatArray]:
    """Return k_3 / v^(3/2) and k_4 / v^2."""
    return -2.0 * point.mean / np.sqrt(point.variance), (4.0 - 6.0 * point.variance) / point.variance


def _off_diagonal(point: Point) -> Iterator[tuple[slice, FloatArray]]:
    """Yield a few rows of the correlations at a time, with 0 on the diagonal, and their indices."""
    n = len(point.h)
    for begin in range(0, n, ROWS_TOGETHER):
        C = point.correlation[begin : begin + ROWS_TOGETHER].copy()
        C[np.arange(len(C)), begin + np.arange(len(C))] = 0.0
        yield slice(begin, begin + len(C)), C


def loop_terms(point: Point) -> tuple[float, float]:
    """Return the next corrections, from three and four spins: the sums of the positive and of the negative ones.

    With k_l in the units of :func:`correction_terms`, vertices of at least three lines and no line from a spin to
    itself, these are the following. With five lines: k_4 k_3 k_3 on a triangle with two double sides. With six lines:
    k_3^4 on a square with two double sides and on a tetrahedron, and k_4^3 on a triangle with three double sides. A
    mode that all spins share, C = lambda u u' / n, contributes lambda^5 / n^2 and lambda^6 / n^2 to the first three and
    lambda^6 / n^3 to the last. Next to lambda^3 / n and lambda^4 / n^2 of the correction these are the leading terms.
    For one mode the tetrahedron is two thirds of the square, for several modes no more. It would take n^4 operations,
    so it is counted in this way.
    """
    C = point.correlation.copy()
    C[np.diag_indices(len(C))] = 0.0
    k3, k4 = _cumulants(point)
    # In units of the largest correlation and cumulants: single precision holds all their powers that matter.
    c, u3, u4 = (float(np.abs(x).max(initial=0.0)) or 1.0 for x in (C, k3, k4))
    kind = np.float64 if len(C) <= MOST_IN_DOUBLE or not np.isfinite(c * u3 * u4) else np.float32
    if kind is np.float64:
        c, u3, u4 = 1.0, 1.0, 1.0
    C, k3, k4 = (C / c).astype(kind, copy=False), (k3 / u3).astype(kind), (k4 / u4).astype(kind)
    triangle, square = 0.0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        C2 = C**2
        double = _sum_over_triangles(C2, k4) / 48.0 * u4**3 * c**6
        if k3.any():
            third = C2 * k3
            ways = third @ C
            triangle = _total((ways * third).sum(axis=1) * k4) / 8.0 * u4 * u3**2 * c**5
            ways *= k3[:, None]
            square = sum(
                _total(ways[rows] * ways[:, rows].T)
                for rows in (slice(begin, begin + ROWS_TOGETHER) for begin in range(0, len(C), ROWS_TOGETHER))
            )
            square *= u3**4 * c**6 / 16.0
    terms = np.array([triangle, 5.0 / 3.0 * square, double])
    return float(terms[~(terms < 0.0)].sum()), float(terms[terms < 0.0].sum())


def _total(terms: NDArray[Any]) -> float:
    return float(terms.sum(dtype=np.float64))


def _sum_over_triangles(C2: NDArray[Any], k: NDArray[Any]) -> float:
    """Return the trace of (C2 Diag(k))^3, with half of the work of a matrix product: C2 Diag(k) C2 is symmetric."""
    multiply = blas.ssyrk if C2.dtype == np.float32 else blas.dsyrk
    half = np.zeros_like(C2, order="F")
    for sign in (1.0, -1.0):
        of_sign = sign * k > 0.0
        if of_sign.any():
            weighted = C2[of_sign] * np.sqrt(sign * k[of_sign])[:, None]
            # The transpose is column-major, so no copy is made; C2 is symmetric.
            half = multiply(sign, weighted.T, beta=1.0, c=half, lower=1, overwrite_c=1)
    total = 0.0
    for begin in range(0, len(k), ROWS_TOGETHER):
        rows = slice(begin, begin + ROWS_TOGETHER)
        below = np.tril(half[rows, : rows.stop], begin)
        terms = k[rows, None] * below * C2[rows, : rows.stop] * k[: rows.stop]
        total += 2.0 * _total(terms)  # the diagonal of C2 is 0
    return total


def higher_terms(point: Point) -> float:
    """Return the sum of sizes of the pairs' terms from l = 5 on, which the correction leaves out.

    k_5 = v (16 m - 24 m^3) and k_6 = v (16 - 120 m^2 + 120 m^4), in the units of :func:`correction_terms`. For spins
    that are almost fixed k_l is 2^(l-2) v, so that the terms are those of the series of exp(y) with y = 4 C_ij /
    sqrt(v_i v_j). The terms beyond l = 6 are taken from this series.
    """
    m, v = point.mean, point.variance
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        k5 = np.abs(16.0 * m - 24.0 * m**3) / v**1.5
        k6 = np.abs(16.0 - 120.0 * m**2 + 120.0 * m**4) / v**2
        for rows, signed in _off_diagonal(point):
            C = np.abs(signed)
            fifth = (k5[rows, None] * C**2) * (C**2 * k5) * C / 120.0
            sixth = (k6[rows, None] * C**3) * (C**3 * k6) / 720.0
            y = 4.0 * C / np.sqrt(v[rows, None] * v)
            more = 1.0 + y**2 / 42.0
            large = y > 1.0
            if large.any():
                more[large] = _all_that_follow(y[large])
            terms = np.nan_to_num((fifth + sixth) * more, nan=0.0, posinf=np.inf)  # what nothing moves has no share
            total += float(terms.sum())
    return 0.5 * total


def _all_that_follow(y: FloatArray) -> FloatArray:
    """Return the series of exp(y) from y^5 on, in units of its terms of y^5 and y^6."""
    up_to_four = 1.0 + y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0)))
    from_five = np.exp(np.minimum(y, LARGEST_EXPONENT)) - up_to_four
    return np.asarray(from_five / (y**5 / 120.0 * (1.0 + y / 6.0)))

"""Expectation consistency for spins: a free energy of their means, and its ascent by Newton steps.

At the fixed points of expectation propagation the Gaussian exp(-x' (Lambda - J) x / 2 + gamma' x) has the means m and
the variances v = 1 - m^2 of the sites. Its gamma can be eliminated at any m, and its Lambda is the minimum of a convex
function, so that the fixed points are the stationary points of a function of m alone (Opper and Winther 2005, Sec. 4):

    Phi(m) = <theta, m> + m' J m / 2 + sum_i H(m_i) + Delta(m),
    Delta(m) = min over Lambda of sum_i Lambda_i v_i / 2 - log det(Lambda - J) / 2 - sum_i (1 + log v_i) / 2,
    dPhi/dm_i = theta_i + (J m)_i - V_i m_i - atanh m_i,    V_i = Lambda_i - 1 / v_i >= 0.

Phi is finite and falls towards the walls of the cube, so it has a maximum inside, which ascent finds where the
iteration of expectation propagation goes round in circles.

Everything is kept in units of the spins' own deviations: with K = sqrt(v_i) J_ij sqrt(v_j) and 1 + b = v Lambda the
precision is Diag(1 + b) - K and its inverse C a matrix of correlations, C_ii = 1. Means are kept as fields h, m =
tanh(h). Neither loses digits where spins are all but fixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from spectralz.kernels.single_spin import entropy

__all__ = ["Point", "Terms", "correction_terms", "gradient", "higher_terms", "improved", "loop_terms", "point_at"]

FloatArray = NDArray[np.float64]

# Below this a variance is that of a fixed spin; its square root still multiplies couplings of 1e100 to nothing.
LEAST_VARIANCE = 1e-300
# Precisions beyond this leave too few digits to the correlations, their inverse.
LARGEST_PRECISION = 1e6
# The minimum over Lambda enters Phi quadratically: what rounding leaves of C_ii - 1 does not matter.
INNER_TOLERANCE = 1e-12
MOST_INNER_STEPS = 60
MOST_HALVINGS = 40
# A spin's field moves no farther in a step than this, or than to where its neighbours want it.
LARGEST_STEP = 4.0
LEAST_SHIFT, LARGEST_SHIFT, SHIFT_FACTOR = 1e-2, 1e12, 4.0
ROUNDING = 1e-12
# Beyond this an exponential is as good as infinite.
LARGEST_EXPONENT = 700.0


class Point(NamedTuple):
    """A place in the cube of means, with the Gaussian that fits it.

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
        Largest |C_ii - 1|: how well the Gaussian's variances are those of the spins.
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


def _inverse(matrix: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the inverse and log det of a symmetric matrix, or None if it is not positive definite."""
    if not len(matrix):
        return matrix, 0.0
    factor, info = lapack.dpotrf(matrix, lower=1)
    if info:
        return None
    log_det = 2.0 * float(np.log(factor.diagonal()).sum())
    half, info = lapack.dpotri(factor, lower=1)
    if info or not np.isfinite(log_det):
        return None
    lower = np.tril(half)
    return lower + np.tril(half, -1).T, log_det


def _solution(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve with a symmetric matrix, or return None if it is not positive definite."""
    factor, info = lapack.dpotrf(matrix, lower=1)
    if info:
        return None
    found, _ = lapack.dpotrs(factor, right, lower=1)
    return found if np.isfinite(found).all() else None


class _Gaussian(NamedTuple):
    """A feasible precision, its inverse, and the convex function that is to be least."""

    precision: FloatArray
    correlation: FloatArray
    value: float


def _gaussian(precision: FloatArray, coupling: FloatArray) -> _Gaussian | None:
    if not (np.all(precision > 0.0) and np.all(precision <= LARGEST_PRECISION)):
        return None
    found = _inverse(np.diag(precision) - coupling)
    if found is None:
        return None
    correlation, log_det = found
    return _Gaussian(precision, correlation, 0.5 * float((precision - 1.0).sum()) - 0.5 * log_det)


def _fitted(coupling: FloatArray, start: FloatArray | None) -> _Gaussian | None:
    """Minimise sum b / 2 - log det(Diag(1 + b) - K) / 2 by Newton's method; the gradient is (1 - C_ii) / 2.

    Begins at ``start`` if that is feasible, else where the matrix is diagonally dominant. None if the precisions are
    too large for the digits there are.
    """
    now = None if start is None else _gaussian(start, coupling)
    if now is None:
        now = _gaussian(1.0 + np.abs(coupling).sum(axis=1), coupling)
    for _ in range(MOST_INNER_STEPS):
        if now is None:
            return None
        excess = now.correlation.diagonal() - 1.0
        if np.abs(excess).max(initial=0.0) <= INNER_TOLERANCE:
            break
        step = _solution(now.correlation**2, excess)
        better = None if step is None else _line_search(now, coupling, step, float(excess @ step))
        if better is None:
            break
        now = better
    return now


def _line_search(now: _Gaussian, coupling: FloatArray, step: FloatArray, slope: float) -> _Gaussian | None:
    """Halve the step until it is feasible and lowers the function; None if rounding lets it no lower."""
    size, before = 1.0, _mismatch(now.correlation)
    for _ in range(MOST_HALVINGS):
        new = _gaussian(now.precision + size * step, coupling)
        if new is not None:
            # Close to the minimum the function has no digits left to fall by, but the variances fit still better.
            rounding = ROUNDING * float(now.precision.sum())
            descends = new.value <= now.value - 1e-4 * size * slope / 2.0
            if descends or (new.value <= now.value + rounding and _mismatch(new.correlation) <= 0.5 * before):
                return new
        size /= 2.0
    return None


def _mismatch(correlation: FloatArray) -> float:
    return float(np.abs(correlation.diagonal() - 1.0).max(initial=0.0))


def point_at(theta: FloatArray, J: FloatArray, h: FloatArray, start: FloatArray | None = None) -> Point | None:
    """Return Phi and its Gaussian at the means tanh(h), or None where double precision cannot hold them.

    ``start`` is a guess at the precisions, those of a point close by.
    """
    mean = np.tanh(h)
    small = np.exp(-2.0 * np.abs(h))
    variance = np.maximum(4.0 * small / (1.0 + small) ** 2, LEAST_VARIANCE)
    deviation = np.sqrt(variance)
    coupling = deviation[:, None] * J * deviation
    fitted = _fitted(coupling, start)
    if fitted is None:
        return None
    value = float(mean @ (theta + 0.5 * (J @ mean)) + entropy(h).sum()) + fitted.value
    return Point(
        h, mean, variance, fitted.precision, coupling, fitted.correlation, value, _mismatch(fitted.correlation)
    )


def _onsager(point: Point) -> FloatArray:
    """V, from b_i C_ii = sum_j K_ij C_ij (+ 1 - C_ii): small b keep the digits that v Lambda - 1 would lose."""
    weight = point.variance * point.correlation.diagonal()
    return np.asarray((point.coupling * point.correlation).sum(axis=1) / weight)


def gradient(theta: FloatArray, J: FloatArray, point: Point) -> FloatArray:
    """Return dPhi/dm: the field that the others make at each spin, less its own."""
    return np.asarray(theta + J @ point.mean - _onsager(point) * point.mean - point.h)


def improved(
    theta: FloatArray, J: FloatArray, point: Point, shift: float, least_gain: float
) -> tuple[Point, float] | None:
    """Make a Newton step that does not lower Phi, with its curvature raised by ``shift`` or as much more as it needs.

    Returns the new point and the shift for the next one, or None if no step ascends. ``least_gain`` is what rounding
    may take from Phi.
    """
    push = gradient(theta, J, point)
    deviation = np.sqrt(point.variance)
    curvature = _curvature(point)
    while shift <= LARGEST_SHIFT:
        step = None if curvature is None else _solution(curvature + shift * np.eye(len(push)), push * deviation)
        if step is not None:
            reach = np.maximum(LARGEST_STEP, np.abs(push))
            new = point_at(theta, J, point.h + np.clip(step / deviation, -reach, reach), point.precision)
            if new is not None and new.value >= point.value - least_gain:
                return new, shift / SHIFT_FACTOR if shift > LEAST_SHIFT / SHIFT_FACTOR else 0.0
        shift = max(SHIFT_FACTOR * shift, LEAST_SHIFT)
    return None


def _curvature(point: Point) -> FloatArray | None:
    """Return minus the second derivatives of Phi, in units of the deviations.

    Lambda - J + 2 M ((S o S)^-1 - Diag(1 / v^2)) M with S the covariances, from dLambda/dv = -(S o S)^-1. S o S is
    Diag(v) (I + E) Diag(v), E the squares of the correlations off the diagonal; (I + E)^-1 - I is written as
    E (I + E)^-1 E - E, lest 1 be taken from 1.
    """
    n = len(point.h)
    E = point.correlation**2
    E[np.diag_indices(n)] = 0.0
    inverse = _inverse(np.eye(n) + E)
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
    C = point.correlation.copy()
    C[np.diag_indices(len(C))] = 0.0
    k3 = -2.0 * point.mean / np.sqrt(point.variance)
    k4 = (4.0 - 6.0 * point.variance) / point.variance
    with np.errstate(over="ignore", invalid="ignore"):
        third = (k3[:, None] * C) * (C * k3) * C / 6.0
        fourth = (k4[:, None] * C**2) * (C**2 * k4) / 24.0
        sums = 0.5 * third.sum(), 0.5 * fourth.sum(), 0.5 * (np.abs(third).sum() + np.abs(fourth).sum())
    return Terms(*(float(total) for total in sums))


def loop_terms(point: Point) -> tuple[float, float]:
    """Return the next corrections, those of three and four spins: the sum of the positive ones, and of the negative.

    With k_l in the units of :func:`correction_terms`, vertices of at least three lines and no line from a spin to
    itself, these are: of five lines k_4 k_3 k_3 on a triangle with two double sides; of six k_3^4 on a square with two
    double sides and on a tetrahedron, and k_4^3 on a triangle with three double sides. A mode that all spins share, C =
    lambda u u' / n, puts lambda^5 / n^2 and lambda^6 / n^2 into the first three, lambda^6 / n^3 into the last: beside
    lambda^3 / n and lambda^4 / n^2 of the correction these are the leading ones. Of one mode the tetrahedron has two
    thirds of the square, of several no more; it would take n^4 operations and is counted in this way.
    """
    C = point.correlation.copy()
    C[np.diag_indices(len(C))] = 0.0
    k3 = -2.0 * point.mean / np.sqrt(point.variance)
    k4 = (4.0 - 6.0 * point.variance) / point.variance
    with np.errstate(over="ignore", invalid="ignore"):
        C2 = C**2
        third, fourth = C2 * k3, C2 * k4
        triangle = float(((third @ C) * third).sum(axis=1) @ k4) / 8.0
        ways = k3[:, None] * (third @ C)
        square = float((ways * ways.T).sum()) / 16.0
        double = float(((fourth @ fourth) * fourth.T).sum()) / 48.0
    terms = np.array([triangle, 5.0 / 3.0 * square, double])
    return float(terms[~(terms < 0.0)].sum()), float(terms[terms < 0.0].sum())


def higher_terms(point: Point) -> float:
    """Return the sum of sizes of the pairs' terms from l = 5 on, which the correction leaves out.

    k_5 = v (16 m - 24 m^3) and k_6 = v (16 - 120 m^2 + 120 m^4), in the units of :func:`correction_terms`. Of spins
    that are all but fixed k_l is 2^(l-2) v, so that the terms are those of the series of exp(y) with
    y = 4 C_ij / sqrt(v_i v_j): what follows l = 6 is taken from there.
    """
    C = np.abs(point.correlation)
    C[np.diag_indices(len(C))] = 0.0
    m, v = point.mean, point.variance
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        k5 = np.abs(16.0 * m - 24.0 * m**3) / v**1.5
        k6 = np.abs(16.0 - 120.0 * m**2 + 120.0 * m**4) / v**2
        fifth = (k5[:, None] * C**2) * (C**2 * k5) * C / 120.0
        sixth = (k6[:, None] * C**3) * (C**3 * k6) / 720.0
        y = 4.0 * C / np.sqrt(v[:, None] * v)
        up_to_four = 1.0 + y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0)))
        from_five = np.exp(np.minimum(y, LARGEST_EXPONENT)) - up_to_four
        more = np.where(y > 1.0, from_five / (y**5 / 120.0 * (1.0 + y / 6.0)), 1.0 + y**2 / 42.0)
        terms = np.nan_to_num((fifth + sixth) * more, nan=0.0, posinf=np.inf)  # a spin that nothing moves has no share
    return 0.5 * float(terms.sum())

"""Fixed points of expectation consistency for many spins, with one factorization per step.

``kernels/expectation_consistency.py`` fits the Gaussian again at every point of a climb, with several factorizations
each. Here Newton's method moves means and Gaussian together. Let F(m, Lambda) be the function whose minimum over Lambda
is Phi(m). In units of the deviations,

    (Diag(1 + b) - K) x + 2 s ((C o C)^-1 - 1) s x = push - s (C o C)^-1 e,    v dLambda = (C o C)^-1 (e + 2 s x),

with s = m / sqrt(v), e = C_ii - 1 and x the step of the means. The first matrix has the inverse C, so conjugate
gradients converge in a few steps; (C o C) is factorized in single precision, which is enough for a direction. While the
residual is large the inverse is computed in single precision, too. All of this starts at the fixed point of the
equations of Thouless, Anderson and Palmer (TAP), which need only products of matrices and vectors.

Where this fails, because a matrix is not positive definite or the residual does not fall, the climb takes over.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz.kernels.conjugate_gradients import conjugate_gradients
from spectralz.kernels.expectation_consistency import (
    LARGEST_PRECISION,
    LARGEST_STEP,
    Point,
    factored_in_place,
    inverse_in_place,
    own_part,
    precision_matrix,
    variances,
)
from spectralz.kernels.single_spin import entropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.kernels.arrays import FloatArray

# If the next residual will be larger than this, its inverse is computed in single precision.
ROUGH = 1e-3
MOST_STEPS = 20
# A step must reduce the residual to the first share; otherwise it is halved, down to the second share of its length.
LEAST_FALL, LEAST_PART = 0.9, 0.1
MOST_CG_STEPS, CG_TOLERANCE = 60, 1e-7
TAP_STEPS, TAP_TOLERANCE = 25, 1e-3
TAP_CG_STEPS, TAP_CG_TOLERANCE = 30, 0.05
ROWS_TOGETHER = 256
# Error of log det in single precision, per spin and relative to its size.
SINGLE_ROUNDING = 1e-5
MOST_RELAXING_STEPS, LEAST_SIZE = 40, 1e-3


class Way(NamedTuple):
    """A fixed point, and what it took.

    Attributes
    ----------
    point
        Where it ended.
    residual
        Largest distance of a field from its fixed point, in units of its deviation, or of a variance from its own.
    steps
        Number of inverses of n x n matrices, including those in single precision.
    """

    point: Point
    residual: float
    steps: int


def squares_times(J: FloatArray, x: FloatArray) -> FloatArray:
    """Return (J o J) x, a few rows at a time: the squares would take as much memory as J."""
    out = np.empty_like(x)
    for begin in range(0, len(J), ROWS_TOGETHER):
        rows = slice(begin, begin + ROWS_TOGETHER)
        out[rows] = J[rows] ** 2 @ x
    return out


def tap_start(theta: FloatArray, J: FloatArray, h: FloatArray, is_up: Callable[[], bool]) -> FloatArray:
    """Climb the free energy of Thouless, Anderson and Palmer from the fields h, by Newton steps; return the fields.

    Psi(m) = <theta, m> + m' J m / 2 + sum H(m_i) + v' (J o J) v / 4. Ends early if a step does not ascend, if it meets
    a direction of the wrong curvature, or if the time is up: the result is only a starting point.
    """
    value, push, reaction = _tap(theta, J, h)
    for _ in range(TAP_STEPS):
        deviation = np.sqrt(variances(h))
        if np.abs(push * deviation).max(initial=0.0) <= TAP_TOLERANCE or is_up():
            break
        step = _tap_step(J, h, reaction, push * deviation)
        reach = np.maximum(LARGEST_STEP, np.abs(push))
        new = h + np.clip(step / deviation, -reach, reach)
        climbed = _tap(theta, J, new)
        if not climbed[0] > value:
            break
        h, (value, push, reaction) = new, climbed
    return h


def _tap_step(J: FloatArray, h: FloatArray, reaction: FloatArray, push: FloatArray) -> FloatArray:
    """Return the Newton step of the means, in units of the deviations."""
    mean, variance = np.tanh(h), variances(h)
    deviation = np.sqrt(variance)

    def curvature(x: FloatArray) -> FloatArray:
        dm = deviation * x
        around = J @ dm + 2.0 * mean * squares_times(J, mean * dm)
        return np.asarray(x + variance * reaction * x - deviation * around)

    return conjugate_gradients(curvature, push, lambda x: x, TAP_CG_TOLERANCE, TAP_CG_STEPS)[0]


def _tap(theta: FloatArray, J: FloatArray, h: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return Psi, its gradient, and the reaction V = (J o J) v."""
    mean, variance = np.tanh(h), variances(h)
    around, reaction = J @ mean, squares_times(J, variance)
    value = float(mean @ (theta + 0.5 * around) + entropy(h).sum() + 0.25 * variance @ reaction)
    return value, theta + around - reaction * mean - h, reaction


def settled(
    theta: FloatArray,
    J: FloatArray,
    h: FloatArray,
    tol: float,
    max_steps: int,
    is_up: Callable[[], bool],
    made: Callable[[], None],
) -> Way | None:
    """Find the fixed point close to the means tanh(h) by Newton steps in means and Gaussian together.

    Returns the last point in double precision if the time is up, and None if the steps do not lead to a maximum; the
    climb is then used. ``made`` is called after each inverse.
    """
    precision = 1.0 + variances(h) * squares_times(J, variances(h))
    at: _Matched | None = None
    moved, size, expected = (h, precision), 1.0, math.inf
    for step in range(min(MOST_STEPS, max_steps)):
        is_last = step > 0 and is_up()
        if is_last and at is not None and at.correlation.dtype == np.float64:
            return Way(at.point(theta, J), at.residual, step)
        kind: Any = np.float32 if expected > ROUGH and not is_last else np.float64
        new = _matched(theta, J, *_between(at, moved, size), kind)
        made()
        most = math.inf if at is None else max(LEAST_FALL * at.residual, tol)
        if new is None or not new.residual <= most:
            if at is None or is_last or size < LEAST_PART:
                return None
            size *= 0.5
            continue
        if kind is np.float64 and (new.residual <= tol or is_last):
            return Way(new.point(theta, J), new.residual, step + 1)
        target = _newton_step(new)
        if target is None:
            return None
        at, moved, size = new, target, 1.0
        # Newton's method squares the residual, but not where it is large.
        expected = at.residual * min(1.0, 10.0 * at.residual)
    return None


def _between(at: _Matched | None, moved: tuple[FloatArray, FloatArray], size: float) -> tuple[FloatArray, FloatArray]:
    """Return fields and precisions that are part of the way to others."""
    if at is None or size == 1.0:
        return moved
    return at.h + size * (moved[0] - at.h), at.precision + size * (moved[1] - at.precision)


class _Matched(NamedTuple):
    """Means and a Gaussian that need not fit each other."""

    h: FloatArray
    mean: FloatArray
    variance: FloatArray
    precision: FloatArray
    coupling: NDArray[Any]
    correlation: NDArray[Any]
    log_det: float
    push: FloatArray

    @property
    def excess(self) -> FloatArray:
        return self.correlation.diagonal().astype(np.float64) - 1.0

    @property
    def residual(self) -> float:
        """Distance of means and variances from a fixed point, in units of the deviations."""
        wrong = np.abs(self.push * np.sqrt(self.variance)).max(initial=0.0), np.abs(self.excess).max(initial=0.0)
        return float(max(wrong))

    def point(self, theta: FloatArray, J: FloatArray) -> Point:
        value = own_part(theta, J, self.h) + 0.5 * float((self.precision - 1.0).sum()) - 0.5 * self.log_det
        mismatch = float(np.abs(self.excess).max(initial=0.0))
        return Point(self.h, self.mean, self.variance, self.precision, self.coupling, self.correlation, value, mismatch)


def _matched(theta: FloatArray, J: FloatArray, h: FloatArray, precision: FloatArray, kind: Any) -> _Matched | None:
    """Invert the Gaussian's precision at the means tanh(h), in single or double precision."""
    if not (np.all(precision > 0.0) and np.all(precision <= LARGEST_PRECISION)):
        return None
    mean, variance = np.tanh(h), variances(h)
    coupling = _scaled(J, variance, kind)
    inverted = inverse_in_place(precision_matrix(precision, coupling))
    if inverted is None or not np.isfinite(inverted[0][-1, -1]):
        return None
    correlation, log_det = inverted
    # (1 + b) C_ii = 1 + sum_j K_ij C_ij: small b keep their digits.
    variances_there = correlation.diagonal().astype(np.float64)
    b = (np.einsum("ij,ij->i", coupling, correlation) + (1.0 - variances_there)) / variances_there
    push = theta + J @ mean - b / variance * mean - h
    return _Matched(h, mean, variance, precision, coupling, correlation, log_det, push)


def _scaled(J: FloatArray, variance: FloatArray, kind: Any) -> NDArray[Any]:
    """Return K = sqrt(v_i) J_ij sqrt(v_j) in single or double precision."""
    deviation = np.sqrt(variance).astype(kind)
    coupling = J.astype(kind, copy=True)
    coupling *= deviation
    coupling *= deviation[:, None]
    return coupling


def _newton_step(at: _Matched) -> tuple[FloatArray, FloatArray] | None:
    """Return the next fields and precisions; None where Phi is not concave, or (C o C) not positive definite."""
    deviation = np.sqrt(at.variance)
    slope = at.mean / deviation
    squares = np.square(at.correlation, dtype=np.float32)
    factored = factored_in_place(squares)
    if factored is None:
        return None
    unmixed, _ = factored

    def product(matrix: NDArray[Any], x: FloatArray) -> FloatArray:
        return np.asarray(matrix @ x.astype(matrix.dtype), dtype=np.float64)

    def curvature(x: FloatArray) -> FloatArray:
        bent = slope * x
        return at.precision * x - product(at.coupling, x) + 2.0 * slope * (unmixed(bent) - bent)

    right = deviation * at.push - slope * unmixed(at.excess)
    step, is_concave = conjugate_gradients(
        curvature, right, lambda x: product(at.correlation, x), CG_TOLERANCE, MOST_CG_STEPS
    )
    if not (is_concave and np.isfinite(step).all()):
        return None
    reach = np.maximum(LARGEST_STEP, np.abs(at.push))
    h = at.h + np.clip(step / deviation, -reach, reach)
    Lambda = (at.precision + unmixed(at.excess + 2.0 * slope * step)) / at.variance
    return h, variances(h) * Lambda


def looser_bound(theta: FloatArray, J: FloatArray, h: FloatArray, known: Point) -> float:
    """Return a number that Phi at the means tanh(h) does not exceed, with one factorization in single precision.

    Any Lambda gives such a bound. That of TAP, with its reaction scaled to be right at a known fixed point, is close to
    the best. A bound on the rounding error of log det is added. The result is infinite if that Lambda is not feasible.
    """
    variance = variances(h)
    b = variance * squares_times(J, variance) * reaction_scale(J, known)
    factored = factored_in_place(precision_matrix(1.0 + b, _scaled(J, variance, np.float32)))
    if factored is None:
        return math.inf
    half = 0.5 * factored[1]
    rounding = SINGLE_ROUNDING * (len(h) + abs(half))
    value = own_part(theta, J, h) + 0.5 * float(b.sum()) - half + rounding
    return value if math.isfinite(value) else math.inf


def reaction_scale(J: FloatArray, known: Point) -> float:
    """Return the c for which c v (J o J) v has the same sum as v Lambda - 1 at a known point.

    It is 1 where many weak couplings of either sign add up, and large where a Gaussian covers several phases.
    """
    reaction = float(known.variance @ squares_times(J, known.variance))
    return float((known.precision - 1.0).sum()) / reaction if reaction > 0.0 else 1.0


def relaxed(
    theta: FloatArray, J: FloatArray, starts: FloatArray, known: Point, near: float, is_up: Callable[[], bool]
) -> FloatArray:
    """Climb from several starts at once toward the fixed points of TAP; return the fields, one column per start.

    The reaction is V = c (J o J) v, where c is right at a known fixed point. Steps use the curvature there, since its
    inverse is known. A start that belongs to that fixed point reaches it in a few steps, to within ``near`` of its
    deviations. Each step ascends Psi (see :func:`tap_start`) or is halved.
    """
    scale = reaction_scale(J, known)
    H = starts.copy()
    size = np.ones(H.shape[1])
    value, push = _tap_of_many(theta, J, H, scale)
    open_ = np.arange(H.shape[1])
    for _ in range(MOST_RELAXING_STEPS):
        open_ = open_[(size[open_] > LEAST_SIZE) & (deviations_to(known, np.tanh(H[:, open_])) > near)]
        if not len(open_) or is_up():
            break
        now = H[:, open_]
        deviation = np.sqrt(variances(now))
        g = push[:, open_]
        reach = np.maximum(LARGEST_STEP, np.abs(g))
        step = np.clip((known.correlation @ (deviation * g)) / deviation, -reach, reach)
        new = now + size[open_] * step
        new_value, new_push = _tap_of_many(theta, J, new, scale)
        better = new_value >= value[open_]
        H[:, open_[better]] = new[:, better]
        push[:, open_[better]] = new_push[:, better]
        value[open_[better]] = new_value[better]
        size[open_] = np.where(better, np.minimum(2.0 * size[open_], 1.0), 0.25 * size[open_])
    return H


def _tap_of_many(theta: FloatArray, J: FloatArray, H: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return Psi with a scaled reaction, and its gradient, for each column."""
    M, v = np.tanh(H), variances(H)
    around, reaction = J @ M, scale * squares_times(J, v)
    field = theta[:, None]
    value = (M * (field + 0.5 * around) + entropy(H) + 0.25 * v * reaction).sum(axis=0)
    return value, field + around - reaction * M - H


def deviations_to(point: Point, means: FloatArray) -> FloatArray:
    """Return the distance from a point to other means in standard deviations, along the lines to them; by column."""
    line = means - point.mean[:, None]
    scaled = line * np.sqrt(point.variance)[:, None]
    variance = np.einsum("il,il->l", scaled, point.correlation @ scaled)
    lengths = np.einsum("il,il->l", line, line)
    return np.divide(lengths, np.sqrt(np.maximum(variance, 0.0)), out=np.zeros_like(lengths), where=variance > 0.0)

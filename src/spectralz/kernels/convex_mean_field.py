"""The convex mean field: the least upper bound on log Z from a linearized quadratic form, and its evaluation.

With C the coupling without its diagonal, K = Diag(y) - C >= 0 and B = -K, every state has

    x' C x = sum y + x' B x <= sum y + 2 m' B x - m' B m        since (x - m)' B (x - m) <= 0,

for any m, and summing exp(<theta, x> + ...) over all x gives

    log Z <= g(m) = sum_i log 2cosh(h_i) + m' K m + sum y,      h = theta - 2 K m.

g is convex. With t = tanh(h) its gradient is 2 K (m - t), so its minimum is where m = t, up to the kernel of K. Let H
be the entropy of independent spins. The concave f(m) = <theta, m> - m' K m + H(m) + sum y has f(t) = g(m) - r' K r with
r = t - m. So r' K r bounds the gap between g(m) and the least g, free of cancellation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.conjugate_gradients import conjugate_gradients
from spectralz.kernels.single_spin import log_2cosh

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray

# Up to this |field| on a spin Newton's method needs no help. Beyond it the problem is first solved at higher
# temperatures, each the second number times the next.
EASY_FIELD = 4.0
COOLING = 4.0
# Warmer problems only give a start for the next one.
WARM_TOL = 1e-3
MOST_WARM_STEPS = 8
# Fields beyond this are almost hard constraints, and this temperature changes only the last digits of the bound.
FROZEN_FIELD = 1e9
# Newton's direction is a small difference of large vectors, so its system must be solved accurately.
CG_TOL = 1e-9
CG_STEPS = 1000
BISECTIONS = 40


class Minimum(NamedTuple):
    """The point that was reached, and how far g there can be above its minimum: ``gap`` is r' K r."""

    m: FloatArray
    gap: float
    steps: int
    converged: bool


class Bound(NamedTuple):
    """g(m), and a bound on its rounding error."""

    value: float
    rounding: float


def evaluate(C: Any, y: FloatArray, theta: FloatArray, m: FloatArray) -> Bound:
    """Return g(m): a bound on log Z without the constant, at any m of size at most 1."""
    Km = y * m - C @ m
    h = theta - 2.0 * Km
    value = math.fsum([*log_2cosh(h).tolist(), *(m * Km).tolist(), *y.tolist()])
    # An inner product of k terms has an error of at most k roundings of its terms' sizes; the derivative of log 2cosh
    # is at most 1. Every other computed number adds a few roundings.
    terms = (int(np.diff(C.indptr).max(initial=0)) if sp.issparse(C) else len(m)) + 4
    sizes = abs(C) @ np.abs(m) + y * np.abs(m)
    per_spin = 1.01 * terms * (2.0 + np.abs(m)) * sizes + 8.0 * (np.abs(theta) + 2.0 * np.abs(Km) + 1.0) + 2.0 * y
    return Bound(value, 1.01 * UNIT_ROUNDOFF * (float(per_spin.sum()) + 2.0 * abs(value)))


def minimize(C: Any, y: FloatArray, theta: FloatArray, m: FloatArray, tol: float, max_iter: int) -> Minimum:
    """Lower g from ``m`` until the gap is at most ``tol`` times n + sum y, by at most ``max_iter`` Newton steps."""
    if not len(m):
        return Minimum(m, 0.0, 0, True)
    strongest = float((np.abs(theta) + 2.0 * y).max())
    last = max(1.0, strongest / FROZEN_FIELD)
    steps = 0
    if not np.any(m):  # a start given by the caller needs no warmer problems
        stages = max(0, math.ceil(math.log(max(strongest / last, 1e-300) / EASY_FIELD, COOLING)))
        for stage in range(stages, 0, -1):
            warm = _newton(C, y, theta, m, last * COOLING**stage, WARM_TOL, MOST_WARM_STEPS)
            m, steps = warm.m, steps + warm.steps
    minimum = _newton(C, y, theta, m, last, tol, max_iter)
    return minimum._replace(steps=steps + minimum.steps)


def _newton(
    C: Any, y: FloatArray, theta: FloatArray, m: FloatArray, temperature: float, tol: float, max_iter: int
) -> Minimum:
    """Minimize g of the model whose log-weights are divided by the temperature."""

    def apply_to(v: FloatArray) -> FloatArray:
        return np.asarray((y * v - C @ v) / temperature)

    theta = theta / temperature
    allowed = tol * (len(m) + float(y.sum()) / temperature)
    Km = apply_to(m)
    gap = np.inf
    for step in range(max_iter + 1):
        h = theta - 2.0 * Km
        r = np.tanh(h) - m
        Kr = apply_to(r)
        gap = max(float(r @ Kr), 0.0)
        if gap <= allowed or step == max_iter:
            break
        d = _direction(apply_to, y / temperature, h, r, Kr)
        Kd = apply_to(d)
        share = _line_minimum(h, m, d, Kd)
        m, Km = m + share * d, Km + share * Kd
    return Minimum(np.clip(m, -1.0, 1.0), gap * temperature, step, bool(gap <= allowed))


def _direction(
    apply_to: Callable[[FloatArray], FloatArray], y: FloatArray, h: FloatArray, r: FloatArray, Kr: FloatArray
) -> FloatArray:
    """Return Newton's direction (I + 2 S K)^-1 r with S = Diag(1 - t^2).

    It is r - 2 S^1/2 e where (I + 2 S^1/2 K S^1/2) e = S^1/2 K r, positive definite whatever underflows in S; solved by
    conjugate gradients with the diagonal as preconditioner.
    """
    root = 1.0 / np.cosh(np.minimum(np.abs(h), 350.0))
    diagonal = 1.0 + 2.0 * root**2 * y

    def times(p: FloatArray) -> FloatArray:
        return p + 2.0 * root * apply_to(root * p)

    e, _ = conjugate_gradients(times, root * Kr, lambda z: z / diagonal, CG_TOL, CG_STEPS)
    return np.asarray(r - 2.0 * root * e)


def _line_minimum(h: FloatArray, m: FloatArray, d: FloatArray, Kd: FloatArray) -> float:
    """Return the share of the step d, from 0 to 1, at which g is least along it; each evaluation costs O(n)."""
    linear, quadratic = 2.0 * float(m @ Kd), 2.0 * float(d @ Kd)

    def slope(share: float) -> float:
        return linear + share * quadratic - 2.0 * float(Kd @ np.tanh(h - 2.0 * share * Kd))

    if slope(1.0) <= 0.0:
        return 1.0
    # scipy.optimize.brentq takes a third of the time of these 0.1 ms; but importing it takes 0.2 s, which makes the
    # first answer for 50 spins take 1.2 times as long.
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)

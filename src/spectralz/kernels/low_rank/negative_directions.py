"""Negative directions of a low-rank model: a contour through the saddle point, then the trapezoidal rule.

Z = E prod_i 2 cosh(theta_i + i <a_i, g>) over independent standard normal g_j, and

    F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i - <a_i, t>)

is convex. Moving the contour by i t through its minimum leaves exp(F) times an integral over x of the normal density,
exp(-i <x, t>) and the factors cos b_i + i m_i sin b_i with b_i = <a_i, x> and m_i = tanh(theta_i - <a_i, t>), none
larger than 1. Its frequencies are at most |a_j|_1 + |t_j|, and at the saddle |t_j| <= |a_j|_1. Errors are relative to
exp(F): where the integral is small, digits are lost, and it is known how many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.logsum import ROUNDER, as_bits, log_2cosh
from spectralz.kernels.low_rank.positive_directions import TAIL
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "cos_sin_of_half_turns",
    "negative_error",
    "negative_node_count",
    "negative_steps",
    "next_node",
    "saddle_point",
    "sum_negative",
    "tilted_means",
]

BLOCK = 64  # nodes at a time
TINY = 1e-44  # square of a modulus beneath which a product of factors no larger than 1 is nothing


def negative_steps(a: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return step and half the number of nodes for each negative direction: 2 pi / h = 2 |a_j|_1 + 8.5."""
    steps = 2.0 * math.pi / (2.0 * np.abs(a).sum(axis=1) + TAIL)
    return steps, np.ceil(TAIL / steps).astype(np.int64)


def negative_node_count(a: NDArray[np.float64]) -> int:
    """Return the number of nodes for the negative directions a (r x n), half of them by symmetry."""
    if not len(a):
        return 1
    halves = negative_steps(a)[1].tolist()
    return (halves[0] + 1) * math.prod(2 * half + 1 for half in halves[1:])


def negative_error(r: int, n: int, norm: float) -> float:
    """Bound the error of the integral over r negative directions, which is at most 1; ``norm`` is the sum of |a_j|_1.

    Aliasing and the cut tails give 6e-16 per direction. Rounding: each of n factors is computed to 8 units, and its
    angle, an inner product, to (r + 3) units of its size, whose mean is at most 0.8 |a_j|_1 per direction.
    """
    return 6e-16 * r * 2.0 + UNIT_ROUNDOFF * (8.0 * n + (r + 3) * norm + 50.0)


@inner
def cos_sin_of_half_turns(c: float) -> tuple[float, float]:
    """Return cos(pi c) and sin(pi c), each to a few units of 2^-53, as straight-line arithmetic."""
    shifted = c + ROUNDER
    f = math.pi * (c - (shifted - ROUNDER))  # at most a quarter turn from the nearest multiple of pi
    sign = 1.0 - 2.0 * (as_bits(shifted) & 1)
    y = f * f
    # Taylor's series for |f| <= pi / 2; the next terms are below 2e-17.
    p = 1.0 / 2432902008176640000.0
    p = -1.0 / 6402373705728000.0 + p * y
    p = 1.0 / 20922789888000.0 + p * y
    p = -1.0 / 87178291200.0 + p * y
    p = 1.0 / 479001600.0 + p * y
    p = -1.0 / 3628800.0 + p * y
    p = 1.0 / 40320.0 + p * y
    p = -1.0 / 720.0 + p * y
    p = 1.0 / 24.0 + p * y
    p = -1.0 / 2.0 + p * y
    cosine = 1.0 + p * y
    q = 1.0 / 51090942171709440000.0
    q = -1.0 / 121645100408832000.0 + q * y
    q = 1.0 / 355687428096000.0 + q * y
    q = -1.0 / 1307674368000.0 + q * y
    q = 1.0 / 6227020800.0 + q * y
    q = -1.0 / 39916800.0 + q * y
    q = 1.0 / 362880.0 + q * y
    q = -1.0 / 5040.0 + q * y
    q = 1.0 / 120.0 + q * y
    q = -1.0 / 6.0 + q * y
    sine = f + f * (q * y)
    return sign * cosine, sign * sine


@compiled
def saddle_point(theta: NDArray[np.float64], a: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Minimize F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i - <a_i, t>) by Newton's method with halved steps."""
    r, n = a.shape
    t = np.zeros(r)
    value = _saddle_value(theta, a, t)
    for _ in range(200):
        gradient = t.copy()
        hessian = np.eye(r)
        for i in range(n):
            z = theta[i]
            for j in range(r):
                z -= a[j, i] * t[j]
            m = np.tanh(z)
            slope = 1.0 - m * m
            for j in range(r):
                gradient[j] -= a[j, i] * m
                for k in range(r):
                    hessian[j, k] += a[j, i] * a[k, i] * slope
        direction = np.linalg.solve(hessian, gradient)
        decrease = np.sum(direction * gradient)
        if decrease <= 1e-22 * (1.0 + abs(value)):
            break
        scale = 1.0
        moved = False
        for _ in range(60):
            new_t = t - scale * direction
            new_value = _saddle_value(theta, a, new_t)
            if new_value < value:
                t, value, moved = new_t, new_value, True
                break
            scale *= 0.5
        if not moved:
            break
    return t, value


@inner
def _saddle_value(theta: NDArray[np.float64], a: NDArray[np.float64], t: NDArray[np.float64]) -> float:
    value = 0.5 * np.sum(t * t)
    lost = 0.0
    for i in range(len(theta)):
        z = theta[i]
        for j in range(len(t)):
            z -= a[j, i] * t[j]
        value, lost = add(value, lost, log_2cosh(z))
    return value + lost


@inner
def tilted_means(theta: NDArray[np.float64], a: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return m_i = tanh(theta_i - <a_i, t>)."""
    m = theta.copy()
    for j in range(len(t)):
        for i in range(len(m)):
            m[i] -= a[j, i] * t[j]
    return np.tanh(m)


@inner
def next_node(node: NDArray[np.int64], halves: NDArray[np.int64]) -> bool:
    """Go on to the next node of a grid from -halves to halves, in the first direction from 0; False at the end."""
    for j in range(len(node) - 1, -1, -1):
        node[j] += 1
        if node[j] <= halves[j]:
            return True
        node[j] = 0 if j == 0 else -halves[j]
    return False


@inner
def _line_sum(
    base: NDArray[np.float64],
    slope: NDArray[np.float64],
    m: NDArray[np.float64],
    first: int,
    last: int,
    step: float,
    lead_phase: float,
    t: float,
    halved: bool,
) -> float:
    """Sum one line of nodes x = k step, k = first ... last: normal density times the real part of the product.

    The angles are pi (base_i + k slope_i), the product's own phase is lead_phase - x t. With ``halved`` the nodes
    k > 0 count twice.
    """
    n = len(base)
    re, im = np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(first, last + 1, BLOCK):
        re[:] = 1.0
        im[:] = 0.0
        alive = True
        for i in range(n):
            for q in range(BLOCK):
                cosine, sine = cos_sin_of_half_turns(base[i] + (begin + q) * slope[i])
                sine *= m[i]
                real = re[q] * cosine - im[q] * sine
                im[q] = re[q] * sine + im[q] * cosine
                re[q] = real
            if i % 16 == 15:
                largest = 0.0
                for q in range(BLOCK):
                    size = re[q] * re[q] + im[q] * im[q]
                    largest = size if size > largest else largest
                if largest < TINY:
                    alive = False
                    break
        if not alive:
            continue
        for q in range(min(BLOCK, last + 1 - begin)):
            x = (begin + q) * step
            phase = lead_phase - x * t
            twice = 2.0 if halved and begin + q > 0 else 1.0
            total += twice * np.exp(-0.5 * x * x) * (re[q] * np.cos(phase) - im[q] * np.sin(phase))
    return total * step / np.sqrt(2.0 * math.pi)


@compiled
def _integral_at_saddle(
    theta: NDArray[np.float64],
    a: NDArray[np.float64],
    t: NDArray[np.float64],
    steps: NDArray[np.float64],
    halves: NDArray[np.int64],
) -> float:
    """Return the integral over the negative directions, with exp(F(t)) divided out: at most 1."""
    r, n = a.shape
    m = tilted_means(theta, a, t)
    slope = a[r - 1] * (steps[r - 1] / math.pi)
    base = np.zeros(n)
    if r == 1:
        return _line_sum(base, slope, m, 0, halves[0], steps[0], 0.0, t[0], True)
    total = 0.0
    lead = np.zeros(r - 1, np.int64)
    lead[1:] = -halves[1 : r - 1]
    while True:
        base[:] = 0.0
        phase = weight = 0.0
        for j in range(r - 1):
            x = lead[j] * steps[j]
            weight += 0.5 * x * x
            phase -= x * t[j]
            for i in range(n):
                base[i] += x / math.pi * a[j, i]
        factor = 1.0
        for j in range(r - 1):
            factor *= steps[j] / np.sqrt(2.0 * math.pi)
        twice = 2.0 if lead[0] > 0 else 1.0
        last = halves[r - 1]
        total += (
            twice
            * factor
            * np.exp(-weight)
            * _line_sum(base, slope, m, -last, last, steps[r - 1], phase, t[r - 1], False)
        )
        if not next_node(lead, halves):
            return total


def sum_negative(
    theta: NDArray[np.float64], positive: NDArray[np.float64], negative: NDArray[np.float64], g: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log of the negative directions' integral at points g (m x r) of the positive ones, from above and below.

    Where all digits are lost the lower value is -1e300.
    """
    steps, halves = negative_steps(negative)
    r, n = negative.shape
    error = negative_error(r, n, float(np.abs(negative).sum()))
    upper, lower = np.empty(len(g)), np.empty(len(g))
    for k, point in enumerate(g):
        field = theta + point @ positive
        t, value = saddle_point(field, negative)
        left = _integral_at_saddle(field, negative, t, steps, halves)
        upper[k] = value + math.log(max(left + error, error))
        lower[k] = value + math.log(left - error) if left > error else -1e300
    return upper, lower

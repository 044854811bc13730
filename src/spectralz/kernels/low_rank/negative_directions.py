"""Negative directions of a low-rank model: a contour through the saddle point, then the trapezoidal rule.

Z = E prod_i 2 cosh(theta_i + i <a_i, g>) over independent standard normal g_j, and

    F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i - <a_i, t>)

is convex. Moving the contour by i t through its minimum leaves exp(F) times an integral over x of the normal density,
exp(-i <x, t>) and the factors cos b_i + i m_i sin b_i with b_i = <a_i, x> and m_i = tanh(theta_i - <a_i, t>), none
larger than 1. Its frequencies are at most |a_j|_1 + |t_j|, and at the saddle |t_j| <= |a_j|_1. Errors are relative to
exp(F): where the integral is small, digits are lost, and their number is known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import frozen
from spectralz.kernels.logsum import ROUNDER, as_bits, log_2cosh_excess
from spectralz.kernels.low_rank.positive_directions import TAIL
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray, IntArray

BLOCK = 64  # nodes at a time
# Interrupts are noticed, and progress is reported, after about this many factors of the integrand (a tenth of a
# second).
FACTORS_AT_A_TIME = 1 << 24
TINY = 1e-44  # square of the modulus below which a product of factors no larger than 1 is negligible


class Contour(NamedTuple):
    """The contour through a saddle point, and the nodes on it.

    Attributes
    ----------
    a
        The negative directions (r x n).
    m
        The `tilted_means` at the saddle point.
    t
        The saddle point.
    steps, halves
        Step and half the number of nodes for each direction.
    """

    a: FloatArray
    m: FloatArray
    t: FloatArray
    steps: FloatArray
    halves: IntArray


def negative_steps(a: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return step and half the number of nodes for each negative direction: 2 pi / h = 2 |a_j|_1 + 8.5."""
    steps = 2.0 * math.pi / (2.0 * np.abs(a).sum(axis=1) + TAIL)
    return steps, np.ceil(TAIL / steps).astype(np.int64)


def negative_node_count(a: FloatArray) -> float:
    """Return the number of nodes for the negative directions a (r x n), half of them by symmetry.

    It may exceed int64, for which `negative_steps` does not work.
    """
    if not len(a):
        return 1.0
    periods = 2.0 * np.abs(a).sum(axis=1) + TAIL
    halves = np.ceil(TAIL * periods / (2.0 * math.pi)).tolist()
    return float((halves[0] + 1.0) * math.prod(2.0 * half + 1.0 for half in halves[1:]))


def negative_error(r: int, n: int, norm: float) -> float:
    """Bound the error of the integral over r negative directions, which is at most 1; ``norm`` is the sum of |a_j|_1.

    Aliasing and the cut tails give 6e-16 per direction. Rounding: each of n factors is computed to 8 units, and its
    angle, an inner product of numbers that are themselves rounded, to (r + 8) units of its size, whose mean is at most
    0.8 |a_j|_1 per direction.
    """
    return 6e-16 * r * 2.0 + UNIT_ROUNDOFF * (8.0 * n + (r + 8) * norm + 50.0)


def error_of_means(theta: FloatArray, push: FloatArray, a: FloatArray, t: FloatArray, terms: int) -> float:
    """Bound the total error of the m_i = tanh(theta_i + push_i - <a_i, t>) with inner products of ``terms`` numbers.

    A large field makes z_i inexact, but then m_i hardly depends on it, unless the directions cancel the field.
    """
    beside = np.abs(push) + np.abs(t) @ np.abs(a)
    error = (terms + 10.0) * UNIT_ROUNDOFF * (np.abs(theta) + beside)
    size = np.minimum(np.maximum(np.abs(theta + (push - t @ a)) - error, 0.0), 350.0)
    return float(np.minimum(error / np.cosh(size) ** 2 + 2.0 * UNIT_ROUNDOFF, 2.0).sum())


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


def saddle_point(theta: FloatArray, push: FloatArray, a: FloatArray) -> tuple[FloatArray, float]:
    """Minimize F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i + push_i - <a_i, t>) by Newton's method with halved steps.

    Returns t and F(t) - sum_i |theta_i|, since a large field would swamp the digits of everything else.
    """
    t, value = _descend(frozen(theta), frozen(push), a)
    return t, float(value)


@compiled
def _descend(theta: FloatArray, push: FloatArray, a: FloatArray) -> tuple[FloatArray, float]:
    """Return the minimum t, and F there minus all |theta_i|."""
    r, n = a.shape
    t, new_t, direction, hessian = np.zeros(r), np.empty(r), np.empty(r), np.empty((r, r))
    value = _saddle_value(theta, push, a, t)
    for _ in range(200):
        for j in range(r):
            direction[j] = t[j]
            for k in range(r):
                hessian[j, k] = 1.0 if j == k else 0.0
        for i in range(n):
            z = push[i]
            for j in range(r):
                z -= a[j, i] * t[j]
            m = math.tanh(theta[i] + z)
            slope = 1.0 - m * m
            for j in range(r):
                direction[j] -= a[j, i] * m
                for k in range(j + 1):
                    hessian[j, k] += a[j, i] * a[k, i] * slope
        decrease = _solve(hessian, direction)
        if decrease <= 1e-22 * (1.0 + abs(value)):
            return t, value
        scale = 1.0
        new_value = value
        for _ in range(60):
            for j in range(r):
                new_t[j] = t[j] - scale * direction[j]
            new_value = _saddle_value(theta, push, a, new_t)
            if new_value < value:
                break
            scale *= 0.5
        if new_value >= value:
            return t, value
        value = new_value
        for j in range(r):
            t[j] = new_t[j]
    return t, value


@inlined
def _solve(H: FloatArray, b: FloatArray) -> float:
    """Replace b by H^-1 b and return <b, H^-1 b>, by Cholesky's factors; only H on and below the diagonal is read."""
    r = len(b)
    square = 0.0
    for j in range(r):
        for k in range(j + 1):
            for i in range(k):
                H[j, k] -= H[j, i] * H[k, i]
            H[j, k] = math.sqrt(H[j, j]) if j == k else H[j, k] / H[k, k]
        for i in range(j):
            b[j] -= H[j, i] * b[i]
        b[j] /= H[j, j]
        square += b[j] * b[j]
    for j in range(r - 1, -1, -1):
        for i in range(j + 1, r):
            b[j] -= H[i, j] * b[i]
        b[j] /= H[j, j]
    return square


@inner
def _saddle_value(theta: FloatArray, push: FloatArray, a: FloatArray, t: FloatArray) -> float:
    value = lost = 0.0
    for j in range(len(t)):
        value += 0.5 * t[j] * t[j]
    for i in range(len(theta)):
        z = push[i]
        for j in range(len(t)):
            z -= a[j, i] * t[j]
        value, lost = add(value, lost, log_2cosh_excess(abs(theta[i]), z if theta[i] >= 0.0 else -z))
    return value + lost


def tilted_means(theta: FloatArray, push: FloatArray, a: FloatArray, t: FloatArray) -> FloatArray:
    """Return m_i = tanh(theta_i + push_i - <a_i, t>)."""
    return np.asarray(np.tanh(theta + (push - t @ a)))


def first_node(halves: IntArray) -> IntArray:
    """Return the first node of a grid from -halves to halves, in the first direction from 0."""
    node = -halves
    node[:1] = 0
    return node


@inner
def next_node(node: IntArray, halves: IntArray) -> bool:
    """Advance to the next node of the grid; return False at the end."""
    for j in range(len(node) - 1, -1, -1):
        node[j] += 1
        if node[j] <= halves[j]:
            return True
        node[j] = 0 if j == 0 else -halves[j]
    return False


@inlined
def _line_sum(contour: Contour, base: FloatArray, slope: FloatArray, first: int, last: int, lead_phase: float) -> float:
    """Sum one line of nodes x = k step, k = first ... last: normal density times the real part of the product.

    The angles are pi (base_i + k slope_i), and the product's own phase is lead_phase - x t. A line alone is taken from
    0 on, and this half also stands for the other half.
    """
    m, n, r = contour.m, len(base), len(contour.t)
    step, t, is_half = contour.steps[r - 1], contour.t[r - 1], r == 1
    re, im = np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(first, last + 1, BLOCK):
        for q in range(BLOCK):
            re[q] = 1.0
            im[q] = 0.0
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
        for q in range(BLOCK if begin + BLOCK <= last else last + 1 - begin):
            x = (begin + q) * step
            phase = lead_phase - x * t
            twice = 2.0 if is_half and begin + q > 0 else 1.0
            total += twice * math.exp(-0.5 * x * x) * (re[q] * math.cos(phase) - im[q] * math.sin(phase))
    return total * step / math.sqrt(2.0 * math.pi)


def _integral_at_saddle(contour: Contour, report: Callable[[float], None]) -> float:
    """Return the integral over the negative directions, with exp(F(t)) divided out: at most 1.

    Compiled code does not notice interrupts, so it is called for a few nodes at a time.
    """
    a, m, _, steps, halves = contour
    slope = a[-1] * (steps[-1] / math.pi)
    last = int(halves[-1])
    begin = 0 if len(a) == 1 else -last
    nodes = BLOCK * max(1, FACTORS_AT_A_TIME // (BLOCK * max(len(m), 1)))
    total = 0.0
    for first in range(begin, last + 1, nodes):
        end = min(first + nodes - 1, last)
        lines = max(1, nodes // (end + 1 - first))
        lead, more = first_node(halves[:-1]), True
        while more:
            part, more = _sum_lines(contour, lead, slope, first, end, lines)
            total += part
            report((end + 1 - begin) / (last + 1 - begin) if not more else (first - begin) / (last + 1 - begin))
    return total


@compiled
def _sum_lines(
    contour: Contour, lead: IntArray, slope: FloatArray, first: int, last: int, lines: int
) -> tuple[float, bool]:
    """Sum nodes first to last of some lines along the last direction, from ``lead`` on in the grid of the others.

    Returns the sum, and whether there are more lines; ``lead`` is then the next one.
    """
    a, _, t, steps, halves = contour
    r, n = a.shape
    base = np.empty(n)
    total = 0.0
    for _ in range(lines):
        for i in range(n):
            base[i] = 0.0
        phase = 0.0
        weight = 2.0 if r > 1 and lead[0] > 0 else 1.0
        for j in range(r - 1):
            x = lead[j] * steps[j]
            weight *= math.exp(-0.5 * x * x) * steps[j] / math.sqrt(2.0 * math.pi)
            phase -= x * t[j]
            for i in range(n):
                base[i] += x / math.pi * a[j, i]
        total += weight * _line_sum(contour, base, slope, first, last, phase)
        if not next_node(lead, halves):
            return total, False
    return total, True


def sum_negative(
    theta: FloatArray, positive: FloatArray, negative: FloatArray, g: FloatArray, report: Callable[[float], None]
) -> tuple[FloatArray, FloatArray]:
    """Return log of the negative directions' integral at points g (m x r) of the positive ones, from above and below.

    sum_i |theta_i| is subtracted from all of them. If all digits are lost the lower value is -1e300.
    """
    steps, halves = negative_steps(negative)
    r, n = negative.shape
    plain_error = negative_error(r, n, float(np.abs(negative).sum()))
    upper, lower = np.empty(len(g)), np.empty(len(g))
    for k, point in enumerate(g):
        push = point @ positive
        t, value = saddle_point(theta, push, negative)
        contour = Contour(negative, tilted_means(theta, push, negative, t), t, steps, halves)
        # An error d in a factor changes the product by at most d, since the other factors are at most 1.
        error = plain_error + error_of_means(theta, push, negative, t, r + len(positive))
        left = _integral_at_saddle(contour, lambda done, k=k: report((k + done) / len(g)))  # type: ignore[misc]
        upper[k] = value + math.log(max(left + error, error))
        lower[k] = value + math.log(left - error) if left > error else -1e300
    return upper, lower

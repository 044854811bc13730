"""Low-rank models by exact quadrature: Hubbard-Stratonovich and the trapezoidal rule.

With u_j = sqrt|lambda_j| v_j, a_j = sqrt(2) u_j, s_j the sign of lambda_j and g_j independent standard normal numbers,

    exp(s_j <u_j, x>^2) = E exp(sqrt(s_j) g_j <a_j, x>),
    Z = E prod_i 2 cosh(theta_i + sum_j sqrt(s_j) g_j a_ji).

*Positive directions.* A state's part of the integrand is a Gaussian of width 1 with its centre within |g_j| <= |a_j|_1.
By Poisson's formula the trapezoidal rule of step h gives each with a relative error of at most about
2 exp(-2 pi^2 / h^2), and so their sum, all of them being positive.

*Negative directions.* F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i - <a_i, t>) is convex. Moving the contour by i t
through its minimum leaves exp(F) times an integral over x of the normal density, exp(-i <x, t>) and the factors
cos b_i + i m_i sin b_i with b_i = <a_i, x> and m_i = tanh(theta_i - <a_i, t>), none larger than 1. Its frequencies are
at most |a_j|_1 + |t_j|, and at the saddle |t_j| <= |a_j|_1. Errors are relative to exp(F): where the integral is small,
digits are lost, and it is known how many.

With both, the negative directions are integrated at every node of the positive ones, each time with its own saddle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.logsum import COMPILE, ROUNDER, as_bits, log_2cosh
from spectralz.kernels.sums import add, log_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Integrand",
    "Nodes",
    "inner_moments",
    "log_expectations",
    "negative_node_count",
    "positive_node_count",
    "positive_nodes",
    "sum_negative",
    "sum_positive",
]

STEP = 0.7  # 2 exp(-2 pi^2 / 0.49) = 6e-18
TAIL = 8.5  # a standard normal number is beyond with probability 2e-17; 2 exp(-8.5^2 / 2) = 4e-16
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
NEGLIGIBLE = 45.0  # exp(-45) = 3e-20
DEVIATIONS = 8.9  # exp(-8.9^2 / 2) = 6e-18
BLOCK = 64
SHORT_BLOCK = 24  # nodes at a time; loops of 16 are unrolled by the compiler and then not vectorised
PI = math.pi
MOST_NODES = 1e6
NOTHING = 1e-18  # a product beneath this one adds nothing to a sum of about 1
TINY = 1e-44  # square of a modulus beneath which a product of factors no larger than 1 is nothing


# --- positive directions -------------------------------------------------------------------------------------------


def positive_node_count(a: NDArray[np.float64]) -> int:
    """Return the number of nodes of the whole grid of the positive directions a (r x n)."""
    return math.prod(2 * half + 1 for half in _half_counts(a)) if len(a) else 1


def _half_counts(a: NDArray[np.float64]) -> list[int]:
    return [math.ceil((norm + TAIL) / STEP) for norm in np.abs(a).sum(axis=1).tolist()]


@dataclass(frozen=True)
class Nodes:
    """The nodes that matter, and the logs of their terms.

    Attributes
    ----------
    g
        The nodes (m x r).
    log_term, log_term_lower
        Log of weight times integrand at each, from above and from below. What was left out is less than exp(-45) of
        the largest.
    """

    g: NDArray[np.float64]
    log_term: NDArray[np.float64]
    log_term_lower: NDArray[np.float64]


Integrand = Callable[["NDArray[np.float64]"], tuple["NDArray[np.float64]", "NDArray[np.float64]"]]


def positive_nodes(a: NDArray[np.float64], integrand: Integrand) -> Nodes:
    """Evaluate the integrand where it matters: from a coarse grid down to the nodes themselves.

    ``integrand(g)`` gives log K from above and below at points (m x r); log K is convex, as a log-partition function of
    its fields. Over a box with sides L_j the log of the term, log K - |g|^2 / 2, is therefore at most its largest value
    at the corners plus sum_j L_j^2 / 8, and a box whose bound is negligible beside the best node is left out.
    """
    r = len(a)
    if r == 0:
        upper, lower = integrand(np.zeros((1, 0)))
        return Nodes(np.zeros((1, 0)), upper, lower)
    spacing = {1: 16, 2: 8}.get(r, 4)
    halves = np.array([spacing * math.ceil(half / spacing) for half in _half_counts(a)], dtype=np.int64)
    shape = tuple((2 * halves + 1).tolist())
    strides = np.concatenate([np.cumprod(shape[::-1])[::-1][1:], [1]]).astype(np.int64)
    corners = np.array(list(itertools.product((0, 1), repeat=r)), dtype=np.int64) @ strides
    cutoff = NEGLIGIBLE + math.log(math.prod(shape))

    def terms(keys: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        g = _points(keys, shape, halves)
        upper, lower = integrand(g)
        gauss = 0.5 * (g**2).sum(axis=1)
        return upper - gauss, lower - gauss

    # A node is known by its place in the whole grid written as one row.
    axes = np.meshgrid(*(np.arange(0, size, spacing) for size in shape), indexing="ij")
    keys = np.ravel_multi_index([axis.ravel() for axis in axes], shape).astype(np.int64)
    inside = np.all([axis.ravel() < size - 1 for axis, size in zip(axes, shape, strict=True)], axis=0)
    boxes = keys[inside]
    upper, lower = terms(keys)
    while True:
        at = np.searchsorted(keys, boxes[:, None] + spacing * corners)
        bound = upper[at].max(axis=1) + r * (spacing * STEP) ** 2 / 8.0
        boxes = boxes[bound > upper.max() - cutoff]
        if spacing == 1:
            break
        spacing //= 2
        boxes = (boxes[:, None] + spacing * corners).ravel()
        new = np.setdiff1d((boxes[:, None] + spacing * corners).ravel(), keys)
        new_upper, new_lower = terms(new)
        order = np.argsort(np.concatenate([keys, new]), kind="stable")
        keys = np.concatenate([keys, new])[order]
        upper, lower = np.concatenate([upper, new_upper])[order], np.concatenate([lower, new_lower])[order]
    weight = r * (math.log(STEP) - LOG_SQRT_2PI)
    return Nodes(_points(keys, shape, halves), upper + weight, lower + weight)


def _points(keys: NDArray[np.int64], shape: tuple[int, ...], halves: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the nodes g (m x r) that stand at the given places of the grid."""
    lattice = np.stack(np.unravel_index(keys, shape), axis=-1) - halves
    return STEP * lattice.astype(np.float64)


@njit(**COMPILE)
def sum_positive(theta: NDArray[np.float64], a: NDArray[np.float64], g: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum_i log 2 cosh(theta_i + <a_i, g>) at points g (m x r), a (r x n)."""
    m, r = g.shape
    n = len(theta)
    out = np.empty(m)
    z = np.empty(512)
    lanes = np.empty(8)
    for p in range(m):
        total = lost = 0.0
        for begin in range(0, n, 512):
            count = min(512, n - begin)
            for i in range(count):
                z[i] = theta[begin + i]
            for i in range(count, 512):
                z[i] = 0.0
            for j in range(r):
                for i in range(count):
                    z[i] += g[p, j] * a[j, begin + i]
            for i in range(count):
                z[i] = log_2cosh(z[i])
            lanes[:] = 0.0
            for i in range(0, 512, 8):
                for lane in range(8):
                    lanes[lane] += z[i + lane]
            chunk = 0.0
            for lane in range(8):
                chunk += lanes[lane]
            total, lost = add(total, lost, chunk)
        out[p] = total + lost
    return out


# --- negative directions -------------------------------------------------------------------------------------------


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


def negative_error(a: NDArray[np.float64]) -> float:
    """Bound the error of the negative directions' integral, which is at most 1.

    Aliasing and the cut tails give 6e-16 a direction. Rounding: each of n factors is computed to 8 units, and its
    angle, an inner product, to (r + 3) units of its size, whose mean is at most 0.8 |a_j|_1 a direction.
    """
    r, n = a.shape
    return _negative_error(r, n, float(np.abs(a).sum()))


def _negative_error(r: int, n: int, norm: float) -> float:
    return 6e-16 * r * 2.0 + UNIT_ROUNDOFF * (8.0 * n + (r + 3) * norm + 50.0)


@njit(**COMPILE)
def _cos_sin_of_half_turns(c: float) -> tuple[float, float]:
    """Return cos(pi c) and sin(pi c), each to a few units of 2^-53, as straight-line arithmetic."""
    shifted = c + ROUNDER
    f = PI * (c - (shifted - ROUNDER))  # within half a turn of the nearest multiple of pi
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


@njit(cache=True, error_model="numpy")
def saddle_point(theta: NDArray[np.float64], a: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Minimise F(t) = |t|^2 / 2 + sum_i log 2 cosh(theta_i - <a_i, t>) by Newton's method with halved steps."""
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


@njit(cache=True)
def _saddle_value(theta: NDArray[np.float64], a: NDArray[np.float64], t: NDArray[np.float64]) -> float:
    value = 0.5 * np.sum(t * t)
    lost = 0.0
    for i in range(len(theta)):
        z = theta[i]
        for j in range(len(t)):
            z -= a[j, i] * t[j]
        value, lost = add(value, lost, log_2cosh(z))
    return value + lost


@njit(cache=True)
def _tilted_means(theta: NDArray[np.float64], a: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return m_i = tanh(theta_i - <a_i, t>)."""
    m = theta.copy()
    for j in range(len(t)):
        for i in range(len(m)):
            m[i] -= a[j, i] * t[j]
    return np.tanh(m)


@njit(**COMPILE)
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
                cosine, sine = _cos_sin_of_half_turns(base[i] + (begin + q) * slope[i])
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
    return total * step / np.sqrt(2.0 * PI)


@njit(cache=True, error_model="numpy")
def _integral_at_saddle(
    theta: NDArray[np.float64],
    a: NDArray[np.float64],
    t: NDArray[np.float64],
    steps: NDArray[np.float64],
    halves: NDArray[np.int64],
) -> float:
    """Return the integral over the negative directions, with exp(F(t)) divided out: at most 1."""
    r, n = a.shape
    m = _tilted_means(theta, a, t)
    slope = a[r - 1] * (steps[r - 1] / PI)
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
                base[i] += x / PI * a[j, i]
        factor = 1.0
        for j in range(r - 1):
            factor *= steps[j] / np.sqrt(2.0 * PI)
        twice = 2.0 if lead[0] > 0 else 1.0
        last = halves[r - 1]
        total += (
            twice
            * factor
            * np.exp(-weight)
            * _line_sum(base, slope, m, -last, last, steps[r - 1], phase, t[r - 1], False)
        )
        j = r - 2
        while j >= 0:
            lead[j] += 1
            if lead[j] <= halves[j]:
                break
            lead[j] = 0 if j == 0 else -halves[j]
            j -= 1
        if j < 0:
            return total


def sum_negative(
    theta: NDArray[np.float64], positive: NDArray[np.float64], negative: NDArray[np.float64], g: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log of the negative directions' integral at points g (m x r) of the positive ones, from above and below.

    Where all digits are lost the lower value is -1e300.
    """
    steps, halves = negative_steps(negative)
    error = negative_error(negative)
    upper, lower = np.empty(len(g)), np.empty(len(g))
    for k, point in enumerate(g):
        field = theta + point @ positive
        t, value = saddle_point(field, negative)
        left = _integral_at_saddle(field, negative, t, steps, halves)
        upper[k] = value + math.log(max(left + error, error))
        lower[k] = value + math.log(left - error) if left > error else -1e300
    return upper, lower


@njit(cache=True, error_model="numpy")
def inner_moments(
    theta: NDArray[np.float64],
    a: NDArray[np.float64],
    t: NDArray[np.float64],
    steps: NDArray[np.float64],
    halves: NDArray[np.int64],
    pairs: bool,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the integral at the saddle and its moments by x_i and, with ``pairs``, by x_i x_j (i < j).

    A factor cos b_i + i m_i sin b_i becomes m_i cos b_i + i sin b_i where x_i multiplies the weight; products of all
    the other factors come from the left and from the right, so that none is divided by.
    """
    r, n = a.shape
    m = _tilted_means(theta, a, t)
    total = 0.0
    first = np.zeros(n)
    second = np.zeros((n, n) if pairs else (0, 0))
    even, odd = np.empty(n, np.complex128), np.empty(n, np.complex128)
    right = np.empty(n + 1, np.complex128)
    node = -halves
    node[0] = 0
    while True:
        weight = 2.0 if node[0] > 0 else 1.0
        phase = 0.0
        for j in range(r):
            x = node[j] * steps[j]
            weight *= np.exp(-0.5 * x * x) * steps[j] / np.sqrt(2.0 * PI)
            phase -= x * t[j]
        turn = weight * complex(np.cos(phase), np.sin(phase))
        for i in range(n):
            b = 0.0
            for j in range(r):
                b += node[j] * steps[j] * a[j, i]
            even[i] = complex(np.cos(b), m[i] * np.sin(b))
            odd[i] = complex(m[i] * np.cos(b), np.sin(b))
        right[n] = turn
        for i in range(n - 1, -1, -1):
            right[i] = right[i + 1] * even[i]
        total += right[0].real
        left = complex(1.0, 0.0)
        for i in range(n):
            one = left * odd[i]
            first[i] += (one * right[i + 1]).real
            if pairs:
                for j in range(i + 1, n):
                    second[i, j] += (one * odd[j] * right[j + 1]).real
                    one *= even[j]
            left *= even[i]
        j = r - 1
        while j >= 0:
            node[j] += 1
            if node[j] <= halves[j]:
                break
            node[j] = 0 if j == 0 else -halves[j]
            j -= 1
        if j < 0:
            return total, first, second


# --- many rank-1 factors at once -----------------------------------------------------------------------------------


@njit(**COMPILE)
def _cosine_line(slope: NDArray[np.float64], last: int, step: float) -> float:
    """Sum the normal density times prod_i cos(pi k slope_i) over k = -last ... last."""
    n = len(slope)
    product = np.empty(SHORT_BLOCK)
    total = 0.0
    for begin in range(0, last + 1, SHORT_BLOCK):
        product[:] = 1.0
        alive = True
        for i in range(n):
            for q in range(SHORT_BLOCK):
                cosine, _ = _cos_sin_of_half_turns((begin + q) * slope[i])
                product[q] *= cosine
            if i % 16 == 15:
                largest = 0.0
                for q in range(SHORT_BLOCK):
                    size = abs(product[q])
                    largest = size if size > largest else largest
                if largest < NOTHING:
                    alive = False
                    break
        if alive:
            for q in range(min(SHORT_BLOCK, last + 1 - begin)):
                x = (begin + q) * step
                twice = 2.0 if begin + q > 0 else 1.0
                total += twice * np.exp(-0.5 * x * x) * product[q]
    return total * step / np.sqrt(2.0 * PI)


@njit(cache=True, error_model="numpy")
def _cosine_lines(values: NDArray[np.float64], vectors: NDArray[np.float64], left: NDArray[np.float64]) -> None:
    """Set left_j to E exp(lambda_j <v_j, x>^2) for the negative lambda_j.

    The trapezoidal rule repeats <a, x> with the period T = 2 pi / step. A period of |a|_1 + 8.5 is beyond all its
    values; and <a, x> is sub-Gaussian with variance |a|_2^2, so that E exp(-(<a, x> - T)^2 / 2) is at most
    exp(-T^2 / (2 (1 + |a|_2^2))), which 8.9 standard deviations make 6e-18. The shorter one will do.
    """
    for j in range(len(values)):
        if values[j] < 0.0:
            a = np.sqrt(-2.0 * values[j]) * vectors[j]
            period = min(np.sum(np.abs(a)) + TAIL, DEVIATIONS * np.sqrt(1.0 + np.sum(a * a)))
            step = 2.0 * PI / period
            nodes = np.ceil(TAIL / step)
            # So many nodes are for weights that leave no digits, and would take forever.
            left[j] = _cosine_line(a * (step / PI), int(nodes), step) if nodes <= MOST_NODES else 0.0


def log_expectations(
    values: NDArray[np.float64], vectors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log E exp(lambda_j <v_j, x>^2) over uniform x for every row v_j of ``vectors``, and bounds on the errors.

    These are the rank-1 factors of Algorithm 2. Without a field the saddle is at 0 and the integrand is real. An error
    bound of infinity says that all digits were lost, or that more than a million nodes would be needed.
    """
    n = vectors.shape[1]
    logs, errors = np.zeros(len(values)), np.zeros(len(values))
    left = np.ones(len(values))
    _cosine_lines(values, np.ascontiguousarray(vectors), left)
    norms = np.sqrt(2.0 * np.abs(values)) * np.abs(vectors).sum(axis=1)
    for j, value in enumerate(values.tolist()):
        if value > 0.0 and not norms[j] <= STEP * MOST_NODES:
            errors[j] = math.inf
        elif value > 0.0:
            a = math.sqrt(2.0 * value) * vectors[j : j + 1]
            nodes = positive_nodes(a, lambda g, a=a: (sum_positive(np.zeros(n), a, g),) * 2)  # type: ignore[misc]
            logs[j] = log_sum(nodes.log_term) - n * math.log(2.0)
            sums = 80.0 * (abs(logs[j]) + 2.0 * n) + 5.0 * norms[j] * (norms[j] + TAIL)
            errors[j] = 1e-14 + UNIT_ROUNDOFF * sums
        elif value < 0.0:
            error = _negative_error(1, n, norms[j])
            logs[j] = math.log(max(left[j], error))
            errors[j] = -math.log1p(-error / left[j]) if left[j] > error else math.inf
    return logs, errors

"""Positive directions of a low-rank model by the trapezoidal rule, at the nodes that matter.

Z = E prod_i 2 cosh(theta_i + sum_j g_j a_ji) over independent standard normal g_j. A state's part of the integrand is a
Gaussian of width 1 with its center within |g_j| <= |a_j|_1. By Poisson's formula the trapezoidal rule of step h gives
each part with a relative error of at most about 2 exp(-2 pi^2 / h^2). All parts are positive, so the same holds for
their sum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.logsum import log_2cosh_excess
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray

STEP = 0.7  # 2 exp(-2 pi^2 / 0.49) = 6e-18
TAIL = 8.5  # a standard normal number exceeds this with probability 2e-17; 2 exp(-8.5^2 / 2) = 4e-16
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
NEGLIGIBLE = 45.0  # exp(-45) = 3e-20
# Error of sums over nodes beyond that of their terms: trapezoidal rule, dropped nodes, summation.
SUM_ERROR = 1e-14
CHUNK = 512  # spins at a time, a power of two


def positive_node_count(a: FloatArray) -> float:
    """Return the number of nodes of the whole grid of the positive directions a (r x n), which may exceed int64."""
    return math.prod(2.0 * half + 1.0 for half in _half_counts(a))


def _half_counts(a: FloatArray) -> list[int]:
    return [math.ceil((norm + TAIL) / STEP) for norm in np.abs(a).sum(axis=1).tolist()]


def positive_rounding(rank: int, n: int, norms: FloatArray) -> float:
    """Bound the error of the log of the sum over the nodes, for directions with the |a_j|_1 that are given.

    The trapezoidal rule, the cut tails and the sum itself contribute 1e-14. The rounding errors of the terms enter by
    their mean over the nodes, where g_j is a standard normal number plus some <a_j, x>: the mean of g_j^2 is at most 1
    + |a_j|_1^2. A spin's part is an inner product of numbers, each accurate to 6 units, and its excess over |theta_i|
    is accurate to 7 units of that and of 1. Nine additions in chunks make up the rest. Nodes are accurate to a unit,
    and their Gaussians to r + 3.
    """
    return SUM_ERROR + 1.01 * UNIT_ROUNDOFF * (2.0 * (rank + 16.0) * float((1.0 + norms**2).sum()) + 24.0 * n)


@dataclass(frozen=True)
class Nodes:
    """The nodes that matter, and the logs of their terms.

    Attributes
    ----------
    g
        The nodes (m x r).
    log_term, log_term_lower
        Log of weight times integrand at each, from above and from below. The omitted terms are less than exp(-45) of
        the largest.
    """

    g: FloatArray
    log_term: FloatArray
    log_term_lower: FloatArray


Integrand = Callable[["FloatArray"], tuple["FloatArray", "FloatArray"]]


def positive_nodes(a: FloatArray, integrand: Integrand) -> Nodes:
    """Evaluate the integrand where it matters: from a coarse grid down to the nodes themselves.

    ``integrand(g)`` gives upper and lower values of log K at points (m x r). log K is convex, being a log-partition
    function of its fields. Over a box with sides L_j the log of the term, log K - |g|^2 / 2, is therefore at most its
    largest value at the corners plus sum_j L_j^2 / 8, and a box whose bound is negligible beside the best node is left
    out.
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

    def terms(keys: IntArray) -> tuple[FloatArray, FloatArray]:
        g = _points(keys, shape, halves)
        upper, lower = integrand(g)
        gauss = 0.5 * (g**2).sum(axis=1)
        return upper - gauss, lower - gauss

    # A node is identified by its index in the whole grid written as one row.
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


def _points(keys: IntArray, shape: tuple[int, ...], halves: IntArray) -> FloatArray:
    """Return the nodes g (m x r) at the given places of the grid."""
    lattice = np.stack(np.unravel_index(keys, shape), axis=-1) - halves
    return STEP * lattice.astype(np.float64)


@compiled
def sum_positive(theta: FloatArray, a: FloatArray, g: FloatArray) -> FloatArray:
    """Return sum_i log 2 cosh(theta_i + <a_i, g>) - theta_i at points g (m x r), a (r x n), for theta_i >= 0.

    theta_i, which all points have in common, is left out so that no large field swamps the digits of the others. For a
    negative theta_i, flip its sign and those of a_i.
    """
    m, r = g.shape
    n = len(theta)
    out = np.empty(m)
    z = np.empty(CHUNK)
    for p in range(m):
        total = lost = 0.0
        for begin in range(0, n, CHUNK):
            count = min(CHUNK, n - begin)
            z[:] = 0.0
            for j in range(r):
                for i in range(count):
                    z[i] += g[p, j] * a[j, begin + i]
            for i in range(count):
                z[i] = log_2cosh_excess(theta[begin + i], z[i])
            # Added up in pairs, nine additions deep.
            half = CHUNK // 2
            while half > 0:
                for i in range(half):
                    z[i] += z[i + half]
                half //= 2
            total, lost = add(total, lost, z[0])
        out[p] = total + lost
    return out

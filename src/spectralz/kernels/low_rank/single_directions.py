"""Expectations of single directions over uniform spins, many at a time: the rank-1 factors of Algorithm 2.

E exp(lambda <v, x>^2) = E prod_i cosh(sqrt(2 lambda) g v_i) over a standard normal g. A positive lambda is a positive
direction like any other. A negative one, without a field, has its saddle at 0 and leaves the real integrand prod_i
cos(g a_i), a = sqrt(-2 lambda) v.

The trapezoidal rule repeats <a, x> with the period T = 2 pi / step. A period of |a|_1 + 8.5 exceeds all its values.
Also, <a, x> is sub-Gaussian with variance |a|_2^2, so that E exp(-(<a, x> - T)^2 / 2) is at most exp(-T^2 / (2 (1 +
|a|_2^2))), which is 6e-18 at 8.9 standard deviations. The shorter of the two periods is used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled
from spectralz._support.devices import computing_on, device_for_matrix
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.low_rank.negative_directions import (
    FACTORS_AT_A_TIME,
    cos_sin_of_half_turns,
    negative_error,
    negative_node_count,
    sum_negative,
)
from spectralz.kernels.low_rank.positive_directions import STEP, TAIL, positive_nodes, positive_rounding, sum_positive
from spectralz.kernels.sums import log_sum

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray

DEVIATIONS = 8.9  # exp(-8.9^2 / 2) = 6e-18
SHORT_BLOCK = 24  # nodes at a time; loops of 16 are unrolled by the compiler and then not vectorized
MOST_NODES = 1e6
FEW_DIGITS = 1e-9  # an error beyond which another way is tried
NOTHING = 1e-18  # a product below this adds nothing to a sum of about 1


@compiled
def _cosine_line(slope: FloatArray, first: int, last: int, step: float, product: FloatArray) -> float:
    """Sum the normal density times prod_i cos(pi k slope_i) over |k| = first ... last; ``product`` is a work array."""
    n = len(slope)
    total = 0.0
    for begin in range(first, last + 1, SHORT_BLOCK):
        for q in range(SHORT_BLOCK):
            product[q] = 1.0
        alive = True
        for i in range(n):
            for q in range(SHORT_BLOCK):
                cosine, _ = cos_sin_of_half_turns((begin + q) * slope[i])
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
            for q in range(SHORT_BLOCK):
                if begin + q <= last:
                    x = (begin + q) * step
                    twice = 2.0 if begin + q > 0 else 1.0
                    total += twice * math.exp(-0.5 * x * x) * product[q]
    return total * step / math.sqrt(2.0 * math.pi)


def _cosine_lines(values: FloatArray, vectors: FloatArray, left: FloatArray) -> None:
    """Set left_j to E exp(lambda_j <v_j, x>^2) for the negative lambda_j."""
    device = device_for_matrix(vectors.shape[1])
    lines: dict[int, _Line] = {}
    for j in np.flatnonzero(values < 0.0).tolist():
        line = _line_of(math.sqrt(-2.0 * values[j]) * vectors[j])
        left[j] = 0.0  # of weights that leave no digits
        if line is not None and device is None:
            left[j] = _sum_of(line)
        elif line is not None:
            lines[j] = line
    if lines:
        from spectralz.kernels.device.single_directions import cosine_lines

        slopes, steps, lasts = zip(*lines.values(), strict=True)
        with computing_on(device):
            left[list(lines)] = cosine_lines(np.array(slopes), np.array(steps), np.array(lasts, dtype=np.int64))


class _Line(NamedTuple):
    """The nodes k step, k = 0 ... last, of a negative direction; slope_i are the half turns of its cosines per node."""

    slope: FloatArray
    step: float
    last: int


def _line_of(a: FloatArray) -> _Line | None:
    """Return the nodes of a direction, or None if there are too many of them."""
    with np.errstate(over="ignore"):
        period = min(float(np.abs(a).sum()) + TAIL, DEVIATIONS * math.sqrt(1.0 + float(a @ a)))
    nodes = TAIL * period / (2.0 * math.pi)
    if nodes > MOST_NODES:  # it would take forever
        return None
    step = 2.0 * math.pi / period
    return _Line(a * (step / math.pi), step, math.ceil(nodes))


def _sum_of(line: _Line) -> float:
    """Sum a line by compiled code, which sees no interrupt: some nodes at a time."""
    product = np.empty(SHORT_BLOCK)
    at_a_time = SHORT_BLOCK * max(1, FACTORS_AT_A_TIME // (SHORT_BLOCK * max(len(line.slope), 1)))
    return sum(
        _cosine_line(line.slope, first, min(first + at_a_time - 1, line.last), line.step, product)
        for first in range(0, line.last + 1, at_a_time)
    )


def log_expectations(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log E exp(lambda_j <v_j, x>^2) over uniform x for every row v_j of ``vectors``, and bounds on the errors.

    An infinite error bound means that all digits were lost, or that more than a million nodes would be needed.
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
            errors[j] = positive_rounding(1, n, norms[j : j + 1]) + 4.0 * UNIT_ROUNDOFF * (abs(logs[j]) + n)
        elif value < 0.0:
            error = negative_error(1, n, norms[j])
            logs[j] = math.log(max(left[j], error))
            errors[j] = -math.log1p(-error / left[j]) if left[j] > error else math.inf
            if errors[j] > FEW_DIGITS:
                pinned, its_error = _with_largest_pinned(value, vectors[j])
                if its_error < errors[j]:
                    logs[j], errors[j] = pinned, its_error
    return logs, errors


def _with_largest_pinned(value: float, v: FloatArray) -> tuple[float, float]:
    """Return log E exp(value <v, x>^2) of a negative direction and a bound on its error, the largest spin being +1.

    That spin may be either by symmetry. It has a field on the others, and the contour goes through their saddle: where
    one spin has most of the direction, as the spin that stands for a field, E is tiny and nothing cancels any more.
    """
    k = int(np.abs(v).argmax())
    others = np.delete(v, k)
    n = len(others)
    theta = 2.0 * value * v[k] * others
    with np.errstate(over="ignore"):
        a = math.sqrt(-2.0 * value) * others[None, :]
        if not n or not negative_node_count(a) <= MOST_NODES:
            return value * float(v[k]) ** 2, 0.0 if not n else math.inf
    upper, lower = (float(bound[0]) for bound in sum_negative(theta, a[:0], a, np.zeros((1, 0)), lambda _: None))
    if lower <= -1e300:
        return upper, math.inf
    parts = [value * float(v[k]) ** 2, *np.abs(theta).tolist(), -n * math.log(2.0), 0.5 * (upper + lower)]
    rounding = 8.0 * UNIT_ROUNDOFF * (math.fsum(map(abs, parts)) + n)
    return math.fsum(parts), 0.5 * (upper - lower) + rounding

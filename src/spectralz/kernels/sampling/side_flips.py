"""Heat-bath flips of one side of a bipartite model, spin by spin, with the other side summed out; compiled.

A state is the kept side ``v``, and weighs what ``collapsed.py`` says. A flip of v_j changes the fields g_i of the
summed spins by -2 beta W_ji v_j. With the probabilities p_i and q_i that summed spin i is up and down, it multiplies
the weight by

    exp(-2 f_j v_j) prod_i cosh(2 beta W_ji) (p_i (1 - v_j T_ji) + q_i (1 + v_j T_ji)),    T_ji = tanh(2 beta W_ji).

All terms are positive, so nothing cancels, and a flip needs no transcendental function. What belongs to a point of the
path is shared by all states (:class:`Tables`). Alternating the sides (``collapsed.py``) takes less time, but strong
couplings freeze each side in the state that the other one holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_in_any_order, compiled_in_place, inlined
from spectralz.kernels.sampling.collapsed import record
from spectralz.kernels.sampling.lanes import LANES, ONE, TWO, U8, ZERO, _exp_minus, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RandomArray, SingleArray
    from spectralz.kernels.sampling.collapsed import CollapsedPath

# States that are swept together, so that a row of the tables is read once for all of them. Two at a time share what is
# read.
GROUP = 4
# So many factors, each at most 2, are multiplied. A product above the smallest has lost no digits on the way; otherwise
# one factor after the other is multiplied, and logarithms are added up beyond the other limits.
AT_ONCE, SMALLEST_PRODUCT, SMALLEST, LARGEST = 400, 1e-180, 1e-30, 1e30
LARGEST_LOG = 600.0


class Tables(NamedTuple):
    """What a flip needs at one point of the path.

    Attributes
    ----------
    less, more
        1 - T and 1 + T, kept side x summed side.
    gain
        For each kept spin, the log of what multiplies the weight beside the products: if it flips from +1, and from -1.
    """

    less: SingleArray
    more: SingleArray
    gain: FloatArray


@compiled
def fill_tables(begin: int, end: int, beta: float, path: CollapsedPath, tables: Tables) -> None:
    """Write the rows from ``begin`` to ``end`` of the tables."""
    scale = np.float32(4.0 * beta)
    for j in range(end - begin):
        row, less, more = path.weights[begin + j], tables.less[begin + j], tables.more[begin + j]
        for i in range(len(row)):
            smaller = _exp_minus(abs(scale * row[i]))
            larger = TWO / (ONE + smaller)
            smaller *= larger
            less[i] = smaller if row[i] > ZERO else larger
            more[i] = larger if row[i] > ZERO else smaller
        # From the rounded tables: then a flip and the flip back multiply the weight by exactly 1.
        log_cosh = -0.5 * _log_of_products(less, more)
        field = path.kept[begin + j] + beta * path.kept_change[begin + j]
        tables.gain[begin + j, 0] = log_cosh - 2.0 * field
        tables.gain[begin + j, 1] = log_cosh + 2.0 * field


@inlined
def _log_of_products(a: SingleArray, b: SingleArray) -> float:
    total, product = 0.0, 1.0
    for i in range(len(a)):
        total, product = _multiplied(total, product, np.float64(a[i]) * np.float64(b[i]))
    return total + math.log(product)


@inlined
def _multiplied(total: float, product: float, factor: float) -> tuple[float, float]:
    """Multiply a number, kept as the log of one part and as the other part, which stays within limits."""
    product *= factor
    if SMALLEST < product < LARGEST:
        return total, product
    return total + math.log(product), 1.0


@compiled
def sweep_flips(
    v: SingleArray,
    pushes: SingleArray,
    state: RandomArray,
    points: FloatArray,
    sweeps: int,
    path: CollapsedPath,
    tables: Tables,
    back: FloatArray,
    on: FloatArray,
) -> None:
    """Sweep over 64 states at a point of the path, and write the changes of their log-weights to ``back`` and ``on``.

    Arrays are those of ``collapsed.sweep_collapsed``, ``points`` the previous point, the point, and the next point.
    """
    summed = len(pushes)
    pushed = np.empty((GROUP, summed), np.float32)
    odds = np.empty((GROUP, 2, summed), np.float32)
    fields, logs = np.empty(summed, np.float32), np.empty(GROUP)
    for i in range(summed):
        fields[i] = 2.0 * (path.summed[i] + points[1] * path.summed_change[i])
    for first in range(0, LANES, GROUP):
        for k in range(GROUP):
            for i in range(summed):
                pushed[k, i] = pushes[i, first + k]
            _find_probabilities(odds[k, 0], odds[k, 1], pushed[k], fields, np.float32(2.0 * points[1]))
        for _ in range(sweeps):
            for j in range(len(v)):
                spins = v[j, first : first + GROUP]
                _draw(spins, first, state, odds, pushed, path.weights[j], j, tables, logs)
        for k in range(GROUP):
            for i in range(summed):
                pushes[i, first + k] = pushed[k, i]
    record(v, pushes, points, path, back, on)


@compiled_in_any_order
def _find_probabilities(
    up: SingleArray, down: SingleArray, pushed: SingleArray, fields: SingleArray, scale: float
) -> None:
    for i in range(len(up)):
        log_odds = fields[i] + scale * pushed[i]
        smaller = _exp_minus(abs(log_odds))
        larger = ONE / (ONE + smaller)
        smaller *= larger
        up[i] = larger if log_odds >= ZERO else smaller
        down[i] = smaller if log_odds >= ZERO else larger


@inlined
def _draw(
    spins: SingleArray,
    first: int,
    state: RandomArray,
    odds: Any,
    pushed: SingleArray,
    weights: SingleArray,
    j: int,
    tables: Tables,
    logs: FloatArray,
) -> None:
    """Flip spin j of each state of a group, or not."""
    less, more = tables.less[j], tables.more[j]
    s0, s1, s2, s3 = _is_down(spins[0]), _is_down(spins[1]), _is_down(spins[2]), _is_down(spins[3])
    _find_logs(odds[0, s0], odds[0, 1 - s0], odds[1, s1], odds[1, 1 - s1], less, more, logs[:2])
    _find_logs(odds[2, s2], odds[2, 1 - s2], odds[3, s3], odds[3, 1 - s3], less, more, logs[2:])
    for k in range(GROUP):
        is_down = _is_down(spins[k])
        ratio = math.exp(min(tables.gain[j, is_down] + logs[k], LARGEST_LOG))
        u = (np.float64(np.int32(next_word(state, first + k) >> U8)) + 0.5) * 2.0**-24
        if u * (1.0 + ratio) < ratio:
            _turn(odds[k, is_down], odds[k, 1 - is_down], pushed[k], less, more, weights, -TWO * spins[k])
            spins[k] = -spins[k]


@inlined
def _is_down(spin: float) -> int:
    return 0 if spin > ZERO else 1


@compiled_in_place
def _find_logs(
    a: SingleArray,
    b: SingleArray,
    c: SingleArray,
    d: SingleArray,
    less: SingleArray,
    more: SingleArray,
    logs: FloatArray,
) -> None:
    """Write the logs of the products of two states."""
    first = second = 1.0
    logs[0] = logs[1] = 0.0
    for begin in range(0, len(less), AT_ONCE):
        end = min(begin + AT_ONCE, len(less))
        x, y = less[begin:end], more[begin:end]
        one, other = _two_products(a[begin:end], b[begin:end], c[begin:end], d[begin:end], x, y)
        logs[0], first = _multiplied_by(logs[0], first, one, a[begin:end], b[begin:end], x, y)
        logs[1], second = _multiplied_by(logs[1], second, other, c[begin:end], d[begin:end], x, y)
    logs[0] += math.log(first)
    logs[1] += math.log(second)


@compiled_in_any_order
def _two_products(
    a: SingleArray, b: SingleArray, c: SingleArray, d: SingleArray, less: SingleArray, more: SingleArray
) -> tuple[float, float]:
    """Return the products of two states, which share what is read of the tables."""
    first = second = 1.0
    for i in range(len(less)):
        first *= np.float64(a[i] * less[i] + b[i] * more[i])
        second *= np.float64(c[i] * less[i] + d[i] * more[i])
    return first, second


@inlined
def _multiplied_by(
    total: float, product: float, factor: float, a: SingleArray, b: SingleArray, less: SingleArray, more: SingleArray
) -> tuple[float, float]:
    """Multiply by a product of factors, or if it is too small by one after the other."""
    if factor > SMALLEST_PRODUCT:
        return _multiplied(total, product, factor)
    for i in range(len(less)):
        total, product = _multiplied(total, product, np.float64(a[i] * less[i] + b[i] * more[i]))
    return total, product


@compiled_in_any_order
def _turn(
    up: SingleArray,
    down: SingleArray,
    pushed: SingleArray,
    a: SingleArray,
    b: SingleArray,
    weights: SingleArray,
    change: float,
) -> None:
    """Update what belongs to the summed side after a flip that changes a kept spin by ``change``."""
    for i in range(len(up)):
        p, q = up[i] * a[i], down[i] * b[i]
        scale = ONE / (p + q)
        up[i], down[i] = p * scale, q * scale
        pushed[i] += change * weights[i]

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

from spectralz._support.compiling import compiled, compiled_in_any_order, inlined
from spectralz.kernels.sampling.collapsed import record
from spectralz.kernels.sampling.lanes import LANES, ONE, TWO, U8, ZERO, _exp_minus, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RandomArray, SingleArray
    from spectralz.kernels.sampling.collapsed import CollapsedPath

# States that are swept together, so that a row of the tables is read once for all of them.
GROUP = 8
# A product in single precision is exact to its digits within these limits, and its factor in double precision below the
# last one; otherwise logarithms are added up.
SMALLEST, LARGEST, LARGEST_LOG = 1e-30, 1e30, 600.0


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
    up, down = np.empty((GROUP, summed), np.float32), np.empty((GROUP, summed), np.float32)
    fields = np.empty(summed, np.float32)
    for i in range(summed):
        fields[i] = 2.0 * (path.summed[i] + points[1] * path.summed_change[i])
    for first in range(0, LANES, GROUP):
        for k in range(GROUP):
            for i in range(summed):
                pushed[k, i] = pushes[i, first + k]
            _find_probabilities(up[k], down[k], pushed[k], fields, np.float32(2.0 * points[1]))
        for _ in range(sweeps):
            for j in range(len(v)):
                for k in range(GROUP):
                    _draw(v, j, first + k, state, up[k], down[k], pushed[k], path.weights[j], tables)
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
    v: SingleArray,
    j: int,
    lane: int,
    state: RandomArray,
    up: SingleArray,
    down: SingleArray,
    pushed: SingleArray,
    weights: SingleArray,
    tables: Tables,
) -> None:
    """Flip spin j of a state, or not."""
    is_up = v[j, lane] > ZERO
    a = tables.less[j] if is_up else tables.more[j]
    b = tables.more[j] if is_up else tables.less[j]
    gain = tables.gain[j, 0 if is_up else 1]
    product = float(_product(up, down, a, b))
    if SMALLEST < product < LARGEST and gain < LARGEST_LOG:
        ratio = math.exp(gain) * product
    else:
        ratio = math.exp(min(gain + _log_product(up, down, a, b), LARGEST_LOG))
    u = np.float64(np.int32(next_word(state, lane) >> U8)) * 2.0**-24
    if u * (1.0 + ratio) < ratio:
        _turn(up, down, pushed, a, b, weights, -TWO * v[j, lane])
        v[j, lane] = -v[j, lane]


@compiled_in_any_order
def _product(up: SingleArray, down: SingleArray, a: SingleArray, b: SingleArray) -> Any:
    product = ONE
    for i in range(len(up)):
        product *= up[i] * a[i] + down[i] * b[i]
    return product


@compiled
def _log_product(up: SingleArray, down: SingleArray, a: SingleArray, b: SingleArray) -> float:
    total, product = 0.0, 1.0
    for i in range(len(up)):
        total, product = _multiplied(total, product, np.float64(up[i] * a[i] + down[i] * b[i]))
    return total + math.log(product)


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

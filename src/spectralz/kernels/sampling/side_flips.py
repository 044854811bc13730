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

# States that are swept together, so that a row of the tables is read once for all of them. Two at a time share what is
# read.
GROUP = 4
# So many factors are multiplied in single precision, which is exact to its digits within these limits, and their
# products in double precision. Beyond its limits, logarithms are added up now and then.
AT_ONCE, SMALLEST, LARGEST = 196, 1e-30, 1e30
AT_ONCE_IN_DOUBLE, SMALLEST_IN_DOUBLE, LARGEST_IN_DOUBLE, LARGEST_LOG = 16, 1e-250, 1e40, 600.0
# Largest logarithm of the part of a product that each factor of the tables takes over.
LARGEST_PART = 30.0


class Tables(NamedTuple):
    """What a flip needs at one point of the path.

    Attributes
    ----------
    less, more
        1 - T and 1 + T, kept side x summed side, each times the same part of the product of cosh.
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
        # With a part of prod_i cosh in each factor, products are about 1 and fit into single precision.
        part = np.float32(math.exp(min(-0.5 * _log_of_products(less, more) / max(len(row), 1), LARGEST_PART)))
        for i in range(len(row)):
            less[i] *= part
            more[i] *= part
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
    fields, products = np.empty(summed, np.float32), np.empty(GROUP)
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
                _draw(spins, first, state, odds, pushed, path.weights[j], j, tables, products)
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
    products: FloatArray,
) -> None:
    """Flip spin j of each state of a group, or not."""
    less, more = tables.less[j], tables.more[j]
    s0, s1, s2, s3 = _is_down(spins[0]), _is_down(spins[1]), _is_down(spins[2]), _is_down(spins[3])
    _find_products(odds[0, s0], odds[0, 1 - s0], odds[1, s1], odds[1, 1 - s1], less, more, products[:2])
    _find_products(odds[2, s2], odds[2, 1 - s2], odds[3, s3], odds[3, 1 - s3], less, more, products[2:])
    for k in range(GROUP):
        is_down = _is_down(spins[k])
        a, b = odds[k, is_down], odds[k, 1 - is_down]
        gain, product = tables.gain[j, is_down], products[k]
        if SMALLEST_IN_DOUBLE < product < LARGEST_IN_DOUBLE and gain < LARGEST_LOG:
            ratio = math.exp(gain) * product
        else:
            ratio = math.exp(min(gain + _log_product(a, b, less, more), LARGEST_LOG))
        u = (np.float64(np.int32(next_word(state, first + k) >> U8)) + 0.5) * 2.0**-24
        if u * (1.0 + ratio) < ratio:
            _turn(a, b, pushed[k], less, more, weights, -TWO * spins[k])
            spins[k] = -spins[k]


@inlined
def _is_down(spin: float) -> int:
    return 0 if spin > ZERO else 1


@inlined
def _find_products(
    a: SingleArray,
    b: SingleArray,
    c: SingleArray,
    d: SingleArray,
    less: SingleArray,
    more: SingleArray,
    products: FloatArray,
) -> None:
    """Write the products of two states."""
    products[0] = products[1] = 1.0
    for begin in range(0, len(less), AT_ONCE):
        end = min(begin + AT_ONCE, len(less))
        first, second = _two_products(
            a[begin:end], b[begin:end], c[begin:end], d[begin:end], less[begin:end], more[begin:end]
        )
        if SMALLEST < first < LARGEST:
            products[0] *= np.float64(first)
        else:
            products[0] *= _product_in_double(a[begin:end], b[begin:end], less[begin:end], more[begin:end])
        if SMALLEST < second < LARGEST:
            products[1] *= np.float64(second)
        else:
            products[1] *= _product_in_double(c[begin:end], d[begin:end], less[begin:end], more[begin:end])


@compiled_in_any_order
def _two_products(
    a: SingleArray, b: SingleArray, c: SingleArray, d: SingleArray, less: SingleArray, more: SingleArray
) -> Any:
    """Return the products of two states, which share what is read of the tables."""
    first = second = ONE
    for i in range(len(less)):
        first *= a[i] * less[i] + b[i] * more[i]
        second *= c[i] * less[i] + d[i] * more[i]
    return first, second


@inlined
def _log_product(a: SingleArray, b: SingleArray, less: SingleArray, more: SingleArray) -> float:
    """Return the log of the product of a state, however small it is."""
    total, product = 0.0, 1.0
    for begin in range(0, len(less), AT_ONCE_IN_DOUBLE):
        end = min(begin + AT_ONCE_IN_DOUBLE, len(less))
        factor = _product_in_double(a[begin:end], b[begin:end], less[begin:end], more[begin:end])
        if factor > SMALLEST_IN_DOUBLE:
            total, product = _multiplied(total, product, factor)
        else:
            for i in range(begin, end):
                total, product = _multiplied(total, product, np.float64(a[i] * less[i] + b[i] * more[i]))
    return total + math.log(product)


@compiled_in_any_order
def _product_in_double(a: SingleArray, b: SingleArray, less: SingleArray, more: SingleArray) -> float:
    """Return the product of a state in double precision."""
    product = 1.0
    for i in range(len(less)):
        product *= np.float64(a[i] * less[i] + b[i] * more[i])
    return product


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

"""Block heat-bath sweeps over 64 states of a bipartite model at once, with one side summed out; compiled.

A state is the kept side ``v`` alone. On the path from independent spins to the model its weight at ``beta`` is

    exp(sum_i f_i v_i) prod_j 2cosh(g_j),    f = f_0 + beta (f_1 - f_0),    g = g_0 + beta (g_1 - g_0 + W'v),

with f_0, g_0 the fields of the base, f_1, g_1 those of the model, and W the couplings J between the sides. The spins of
one side are independent given the other side. So a sweep is two matrix products in single precision, each followed by a
loop without branches. Weights are summed in double precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner
from spectralz.kernels.sampling.lanes import LANES, _exp_minus, drawn, next_word

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RandomArray, SingleArray


# 1 + exp(-2|g|) is at most 2: the product of this many does not overflow, and needs one logarithm.
FACTORS_PER_LOG = 512


class CollapsedPath(NamedTuple):
    """The models on a path.

    Attributes
    ----------
    weights
        W, kept side x summed side.
    kept, kept_change
        Fields of the kept side: those of the base, and those of the model minus the base.
    summed, summed_change
        Fields of the summed side, likewise.
    """

    weights: SingleArray
    kept: FloatArray
    kept_change: FloatArray
    summed: FloatArray
    summed_change: FloatArray


@compiled
def draw_side(
    x: SingleArray, pushes: SingleArray, state: RandomArray, beta: float, base: FloatArray, change: FloatArray
) -> None:
    """Draw all spins of one side of 64 states into ``x``, given the fields ``pushes`` from the other side."""
    scale = np.float32(2.0 * beta)
    for i in range(len(x)):
        field = np.float32(2.0 * (base[i] + beta * change[i]))
        for lane in range(LANES):
            x[i, lane] = drawn(field + scale * pushes[i, lane], next_word(state, lane))


@compiled
def sweep_collapsed(
    v: SingleArray, pushes: SingleArray, state: RandomArray, points: FloatArray, sweeps: int, path: CollapsedPath
) -> tuple[FloatArray, FloatArray]:
    """Sweep over 64 states at each point of the path in turn; return the changes of their log-weights.

    ``points`` has one row for each: the previous point, the point at which to sweep, and the next point. ``v`` is
    (kept, 64); ``pushes`` = W'v is (summed, 64) and kept up to date. The changes back and on are (points, 64).
    """
    h, returned = np.empty_like(pushes), np.empty_like(v)
    back, on = np.empty((len(points), LANES)), np.empty((len(points), LANES))
    for k in range(len(points)):
        beta = points[k, 1]
        for _ in range(sweeps):
            draw_side(h, pushes, state, beta, path.summed, path.summed_change)
            np.dot(path.weights, h, returned)
            draw_side(v, returned, state, beta, path.kept, path.kept_change)
            np.dot(path.weights.T, v, pushes)
        record(v, pushes, points[k], path, back[k], on[k])
    return back, on


@inner
def record(
    v: SingleArray, pushes: SingleArray, points: FloatArray, path: CollapsedPath, back: FloatArray, on: FloatArray
) -> None:
    """Write the log-weights at the first and the last of three points minus those at the second."""
    logs, products, factor = np.empty((3, LANES)), np.empty((3, LANES)), np.empty(LANES, np.float32)
    for lane in range(LANES):
        back[lane] = 0.0
    for i in range(len(v)):
        change = path.kept_change[i]
        for lane in range(LANES):
            back[lane] += change * np.float64(v[i, lane])
    for p in range(3):
        for lane in range(LANES):
            logs[p, lane] = points[p] * back[lane]
    for begin in range(0, len(pushes), FACTORS_PER_LOG):
        end = begin + FACTORS_PER_LOG if begin + FACTORS_PER_LOG < len(pushes) else len(pushes)
        for p in range(3):
            for lane in range(LANES):
                products[p, lane] = 1.0
        for j in range(begin, end):
            for p in range(3):
                field = path.summed[j] + points[p] * path.summed_change[j]
                _multiply(field, points[p], pushes[j], logs[p], products[p], factor)
        for p in range(3):
            for lane in range(LANES):
                logs[p, lane] += math.log(products[p, lane])
    for lane in range(LANES):
        back[lane] = logs[0, lane] - logs[1, lane]
        on[lane] = logs[2, lane] - logs[1, lane]


@inlined
def _multiply(
    field: float, beta: float, push: SingleArray, logs: FloatArray, products: FloatArray, factor: SingleArray
) -> None:
    """Multiply in a spin's 2cosh(g) = exp(|g|) (1 + exp(-2|g|)): the first factor as a logarithm, the second directly.

    The exponential is in single precision, with an error of at most 2e-7 that is always the same for the same g. This
    amounts to a model, and a base, whose log-weights differ by as little. Each loop uses one precision, which is
    faster.
    """
    twice, scale = np.float32(2.0 * field), np.float32(2.0 * beta)
    for lane in range(LANES):
        factor[lane] = _exp_minus(abs(twice + scale * push[lane]))
    for lane in range(LANES):
        logs[lane] += abs(field + beta * np.float64(push[lane]))
    for lane in range(LANES):
        products[lane] *= 1.0 + np.float64(factor[lane])

"""Means of spins and of pairs for models with negative directions.

The integral is that of ``negative_directions``. A factor cos b_i + i m_i sin b_i becomes m_i cos b_i + i sin b_i if x_i
multiplies the weight. Products of all other factors are accumulated from the left and from the right, which avoids
division.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.low_rank.negative_directions import FACTORS_AT_A_TIME, first_node, next_node

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.low_rank.negative_directions import Contour


def inner_moments(contour: Contour) -> tuple[float, FloatArray, FloatArray]:
    """Return the integral at the saddle, with its moments of x_i and of x_i x_j (i < j).

    Compiled code does not notice interrupts, so it is called for a few nodes at a time.
    """
    n = len(contour.m)
    first, second = np.zeros(n), np.zeros((n, n))
    node, total, more = first_node(contour.halves), 0.0, True
    at_a_time = max(1, FACTORS_AT_A_TIME // max(n * n, 1))
    while more:
        part, more = _add_moments(contour, node, at_a_time, first, second)
        total += part
    return total, first, second


@compiled
def _add_moments(
    contour: Contour, node: IntArray, nodes: int, first: FloatArray, second: FloatArray
) -> tuple[float, bool]:
    """Add up the moments of several nodes of the grid, starting at ``node``.

    Returns their part of the integral, and whether there are more; ``node`` is then the next one.
    """
    a, m, t, steps, halves = contour
    r, n = a.shape
    even, odd, right = np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty(n + 1, np.complex128)
    total = 0.0
    for _ in range(nodes):
        weight = 2.0 if node[0] > 0 else 1.0
        phase = 0.0
        for j in range(r):
            x = node[j] * steps[j]
            weight *= math.exp(-0.5 * x * x) * steps[j] / math.sqrt(2.0 * math.pi)
            phase -= x * t[j]
        for i in range(n):
            b = 0.0
            for j in range(r):
                b += node[j] * steps[j] * a[j, i]
            cosine, sine = math.cos(b), math.sin(b)
            even[i] = complex(cosine, m[i] * sine)
            odd[i] = complex(m[i] * cosine, sine)
        right[n] = complex(weight * math.cos(phase), weight * math.sin(phase))
        for i in range(n - 1, -1, -1):
            right[i] = right[i + 1] * even[i]
        total += right[0].real
        left = complex(1.0, 0.0)
        for i in range(n):
            one = left * odd[i]
            first[i] += (one * right[i + 1]).real
            for j in range(i + 1, n):
                second[i, j] += (one * odd[j] * right[j + 1]).real
                one *= even[j]
            left *= even[i]
        if not next_node(node, halves):
            return total, False
    return total, True

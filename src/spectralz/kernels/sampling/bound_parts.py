"""Turn some spins of a state together by the rule of Metropolis, compiled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled_in_place

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, IntArray, SingleArray, SpinArray


@compiled_in_place
def turn_parts(
    x: SpinArray,
    begin: IntArray,
    spins: IntArray,
    indptr: ColumnArray,
    indices: ColumnArray,
    data: SingleArray,
    field: SingleArray,
    uniform: SingleArray,
    pull: SingleArray,
    gain: SingleArray,
) -> None:
    """Turn parts of the states ``x``, (n, states), in place.

    The spins of part k are ``spins[begin[k] : begin[k + 1]]``. ``indptr``, ``indices`` and ``data`` are the couplings
    between spins of different parts, J in both triangles. ``uniform``, (parts, states), decides. ``pull`` and ``gain``
    are room for a number per state.
    """
    states = x.shape[1]
    for k in range(len(begin) - 1):
        for r in range(states):
            gain[r] = 0.0
        for at in range(begin[k], begin[k + 1]):
            i = spins[at]
            for r in range(states):
                pull[r] = field[i]
            for place in range(indptr[i], indptr[i + 1]):
                j, J = indices[place], data[place]
                for r in range(states):
                    pull[r] += J * np.float32(x[j, r])
            for r in range(states):
                gain[r] -= pull[r] * np.float32(2 * x[i, r])
        for r in range(states):
            gain[r] = 1.0 if gain[r] >= 0.0 or uniform[k, r] < math.exp(gain[r]) else 0.0
        for at in range(begin[k], begin[k + 1]):
            i = spins[at]
            for r in range(states):
                if gain[r] > 0.0:
                    x[i, r] = -x[i, r]

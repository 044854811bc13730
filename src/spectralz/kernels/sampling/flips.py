"""Log-weights of one side of a bipartite model with the other summed out, and their changes by flips; compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled_in_any_order, inlined
from spectralz.kernels.logsum import log_2cosh

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, SpinArray
    from spectralz.kernels.coupling import Couplings


@compiled_in_any_order
def sums_of_logs(fields: FloatArray, sums: FloatArray) -> None:
    """Write the sum of log 2cosh over each row of ``fields`` to ``sums``."""
    rows, columns = fields.shape
    for r in range(rows):
        total = 0.0
        for j in range(columns):
            total += log_2cosh(fields[r, j])
        sums[r] = total


# Compiled separately: an inlined function keeps its own rules for sums, and this sum may be added in any order.
@compiled_in_any_order
def _change(fields: FloatArray, logs: FloatArray, push: float, i: int, couplings: Couplings) -> float:
    """Return the change of the sum of log 2cosh when kept spin i flips, by J times ``push`` in each field."""
    data, indices, indptr, is_dense = couplings
    change, begin, count = 0.0, indptr[i], indptr[i + 1] - indptr[i]
    if is_dense:  # a loop that is vectorized
        for j in range(count):
            change += log_2cosh(fields[j] + push * data[begin + j]) - logs[j]
    else:
        for place in range(begin, begin + count):
            j = indices[place]
            change += log_2cosh(fields[j] + push * data[place]) - logs[j]
    return change


@inlined
def _turn(fields: FloatArray, logs: FloatArray, push: float, i: int, couplings: Couplings) -> None:
    """Update the fields after a flip of kept spin i."""
    data, indices, indptr, is_dense = couplings
    begin, count = indptr[i], indptr[i + 1] - indptr[i]
    if is_dense:
        for j in range(count):
            fields[j] += push * data[begin + j]
        for j in range(count):
            logs[j] = log_2cosh(fields[j])
    else:
        for place in range(begin, begin + count):
            j = indices[place]
            fields[j] += push * data[place]
            logs[j] = log_2cosh(fields[j])


@compiled_in_any_order
def flip_changes(v: SpinArray, fields: FloatArray, field: FloatArray, couplings: Couplings) -> FloatArray:
    """Return the change of the log-weight for the flip of each kept spin of each state.

    ``fields`` are those of the summed spins, (states, summed); ``field`` is that of the kept spins alone. Row i of the
    couplings holds those of kept spin i to the summed spins.
    """
    states, kept = v.shape
    logs, changes = np.empty(fields.shape[1]), np.empty((states, kept))
    for r in range(states):
        for j in range(len(logs)):
            logs[j] = log_2cosh(fields[r, j])
        for i in range(kept):
            push = -2.0 * v[r, i]
            changes[r, i] = push * field[i] + _change(fields[r], logs, push, i, couplings)
    return changes


@compiled_in_any_order
def ascend(v: SpinArray, fields: FloatArray, field: FloatArray, couplings: Couplings, most_sweeps: int) -> None:
    """Flip kept spins of states, one after the other, while that increases their weight; arrays as above."""
    states, kept = v.shape
    logs = np.empty(fields.shape[1])
    for r in range(states):
        for j in range(len(logs)):
            logs[j] = log_2cosh(fields[r, j])
        for _ in range(most_sweeps):
            flipped = 0
            for i in range(kept):
                push = -2.0 * v[r, i]
                if push * field[i] + _change(fields[r], logs, push, i, couplings) <= 0.0:
                    continue
                flipped += 1
                v[r, i] = -v[r, i]
                _turn(fields[r], logs, push, i, couplings)
            if flipped == 0:
                break

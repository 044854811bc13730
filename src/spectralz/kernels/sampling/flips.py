"""Log-weights of one side of a bipartite model with the other summed out, and what flips change in them, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled_in_any_order
from spectralz.kernels.logsum import log_2cosh

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["flip_changes", "sums_of_logs"]


@compiled_in_any_order
def sums_of_logs(fields: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Write the sum of log 2cosh over each row of ``fields`` to ``sums``."""
    rows, columns = fields.shape
    for r in range(rows):
        total = 0.0
        for j in range(columns):
            total += log_2cosh(fields[r, j])
        sums[r] = total


@compiled_in_any_order
def flip_changes(
    v: NDArray[np.int8],
    fields: NDArray[np.float64],
    field: NDArray[np.float64],
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    logs: NDArray[np.float64],
    changes: NDArray[np.float64],
) -> None:
    """Write down by how much log-weights change with the flip of each kept spin of each state.

    ``fields`` are those of the summed spins, (states, summed); ``field`` is that of the kept spins alone; row i of the
    CSR arrays holds the couplings J of kept spin i; ``logs`` is room for a number per summed spin.
    """
    states, kept = v.shape
    for r in range(states):
        for j in range(len(logs)):
            logs[j] = log_2cosh(fields[r, j])
        for i in range(kept):
            spin = np.float64(v[r, i])
            change = 0.0
            for place in range(indptr[i], indptr[i + 1]):
                j = indices[place]
                change += log_2cosh(fields[r, j] - 2.0 * spin * data[place]) - logs[j]
            changes[r, i] = change - 2.0 * spin * field[i]

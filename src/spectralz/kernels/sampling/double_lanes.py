"""Heat-bath sweeps over 64 states at once in double precision, compiled.

Like ``lanes.py``, but three or four times as slow, and with the conditional distribution of a spin accurate to 1e-15.
It is for estimates of Z that are assumed only to be unbiased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import exp_minus
from spectralz.kernels.sampling.lanes import LANES, next_word, record_energies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.sampling.lanes import FloatArray, SparsePath

__all__ = ["sweep_sparse_in_double"]

U5, U6 = np.uint32(5), np.uint32(6)
LAST_OF_27_BITS, LAST_OF_53_BITS = 2.0**-27, 2.0**-53


@inner
def _uniform(state: NDArray[np.uint32], lane: int) -> Any:
    """Return a number in [0, 1) with 53 random bits, from two words."""
    high = np.float64(np.int32(next_word(state, lane) >> U5))
    low = np.float64(np.int32(next_word(state, lane) >> U6))
    return high * LAST_OF_27_BITS + low * LAST_OF_53_BITS


@compiled
def sweep_sparse_in_double(
    x: NDArray[np.int8],
    state: NDArray[np.uint32],
    betas: FloatArray,
    sweeps: int,
    path: SparsePath,
    log_odds: FloatArray,
    energies: FloatArray,
) -> None:
    """Sweep over 64 states at each point of the path in turn, and record their energies there.

    ``x`` is (n, 64), ``state`` (4, 64), ``energies`` (len(betas), 64); ``log_odds`` is a work array of 64 numbers. At a
    point without couplings, such as the base of independent spins, a sweep draws states independently of the previous
    ``x``.
    """
    n = len(x)
    for k in range(len(betas)):
        beta = betas[k]
        for _ in range(sweeps):
            for i in range(n):
                field = 2.0 * (path.field[i] + beta * path.field_change[i])
                for lane in range(LANES):
                    log_odds[lane] = field
                for place in range(path.indptr[i], path.indptr[i + 1]):
                    j, coupling = path.indices[place], 2.0 * (path.data[place] + beta * path.data_change[place])
                    for lane in range(LANES):
                        log_odds[lane] += coupling * np.float64(np.int32(x[j, lane]))
                for lane in range(LANES):
                    # P(x = the likely side) = 1 / (1 + exp(-|log-odds|))
                    unlikely = exp_minus(abs(log_odds[lane]))
                    likely = np.int8(1) if log_odds[lane] >= 0.0 else np.int8(-1)
                    x[i, lane] = likely if _uniform(state, lane) * (1.0 + unlikely) < 1.0 else -likely
        record_energies(x, path, energies, k)

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
    from spectralz.kernels.arrays import FloatArray, RandomArray, SpinArray
    from spectralz.kernels.sampling.lanes import DensePath, SparsePath

U5, U6 = np.uint32(5), np.uint32(6)
# Beyond this the other state of a spin has a probability below any number drawn.
CERTAIN = 40.0
LAST_OF_27_BITS, LAST_OF_53_BITS = 2.0**-27, 2.0**-53


@inner
def _uniform(state: RandomArray, lane: int) -> Any:
    """Return a number in [0, 1) with 53 random bits, from two words."""
    high = np.float64(np.int32(next_word(state, lane) >> U5))
    low = np.float64(np.int32(next_word(state, lane) >> U6))
    return high * LAST_OF_27_BITS + low * LAST_OF_53_BITS


@inner
def drawn_in_double(log_odds: float, state: RandomArray, lane: int) -> Any:
    """Draw a spin that is +1 with the given log-odds."""
    # P(x = the likely side) = 1 / (1 + exp(-|log-odds|))
    unlikely = exp_minus(abs(log_odds))
    likely = np.int8(1) if log_odds >= 0.0 else np.int8(-1)
    return likely if _uniform(state, lane) * (1.0 + unlikely) < 1.0 else -likely


@compiled
def draw_spins_in_double(x: SpinArray, state: RandomArray, field: FloatArray) -> None:
    """Draw independent spins with the given fields into ``x``, (n, 64)."""
    for i in range(len(x)):
        for lane in range(LANES):
            x[i, lane] = drawn_in_double(2.0 * field[i], state, lane)


@compiled
def sweep_sparse_in_double(
    x: SpinArray, state: RandomArray, betas: FloatArray, sweeps: int, path: SparsePath
) -> FloatArray:
    """Sweep over 64 states at each point of the path in turn; return their energies there, (len(betas), 64).

    ``x`` is (n, 64), ``state`` (4, 64).
    """
    energies, log_odds = np.empty((len(betas), LANES)), np.empty(LANES)
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
                least = abs(log_odds[0])
                for lane in range(LANES):
                    least = min(least, abs(log_odds[lane]))
                if least > CERTAIN:  # in all states, as in frozen ones
                    for lane in range(LANES):
                        x[i, lane] = np.int8(1) if log_odds[lane] > 0.0 else np.int8(-1)
                    continue
                for lane in range(LANES):
                    x[i, lane] = drawn_in_double(log_odds[lane], state, lane)
        record_energies(x, path, energies, k)
    return energies


@compiled
def sweep_dense_in_double(
    x: SpinArray, h: FloatArray, state: RandomArray, betas: FloatArray, sweeps: int, path: DensePath
) -> FloatArray:
    """Sweep over 64 states at each point of the path in turn; return their energies there, (len(betas), 64).

    ``x`` is (n, 64). The fields ``h`` of the model are (64, n), one state per row: a flip updates those of its own
    state alone, and at low temperature there are few flips. The arrays of ``path`` are in double precision here.
    """
    n = len(x)
    energies = np.empty((len(betas), LANES))
    for k in range(len(betas)):
        of_base, of_model = 2.0 * (1.0 - betas[k]), 2.0 * betas[k]
        for lane in range(LANES):
            for _ in range(sweeps):
                for i in range(n):
                    log_odds = of_base * path.base[i] + of_model * h[lane, i]
                    if abs(log_odds) > CERTAIN:
                        spin = np.int8(1) if log_odds > 0.0 else np.int8(-1)
                    else:
                        spin = drawn_in_double(log_odds, state, lane)
                    if spin != x[i, lane]:
                        change = 2.0 * np.float64(np.int32(spin))
                        x[i, lane] = spin
                        for j in range(n):
                            h[lane, j] += change * path.coupling[i, j]
            total = 0.0
            for i in range(n):
                # x_i (theta_i + h_i) / 2 adds up to E(x), x_i theta_i of the base to E_0(x)
                total += np.float64(np.int32(x[i, lane])) * (path.field[i] - 2.0 * path.base[i] + h[lane, i])
            energies[k, lane] = 0.5 * total
    return energies

"""Heat-bath sweeps over a population of states, compiled; every state has its own fields and random numbers.

For each state x the fields h_i = theta_i + sum_j J_ij x_j are kept up to date. So an unchanged spin costs one random
number, and a flipped spin costs a pass over its row. The kernels release the interpreter's lock, so parts of a
population may run in threads. The result is the same, since every state has its own random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import exp_minus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings

__all__ = ["descend", "draw_states", "heat_bath", "refresh"]

# Steele, Lea and Flood's splitmix64: a counter in steps of the golden ratio, whose bits are then mixed.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3, SHIFT_TO_53_BITS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
LAST_OF_53_BITS = 2.0**-53
# Beyond this the other state of a spin has a probability below any number drawn.
CERTAIN = 40.0


@inner
def _uniform(counter: int) -> float:
    """Return the number in [0, 1) that belongs to a counter."""
    z = (counter ^ (counter >> SHIFT_1)) * MIX_1
    z = (z ^ (z >> SHIFT_2)) * MIX_2
    z = z ^ (z >> SHIFT_3)
    return (z >> SHIFT_TO_53_BITS) * LAST_OF_53_BITS


@inner
def _flip(
    i: int,
    spin: int,
    h: NDArray[np.float64],
    r: int,
    couplings: Couplings,
) -> None:
    """Update the neighbors of spin i of state r after it has become ``spin``."""
    begin, end = couplings.indptr[i], couplings.indptr[i + 1]
    change = 2.0 * spin
    if couplings.is_dense:
        for j in range(end - begin):
            h[r, j] += change * couplings.data[begin + j]
    else:
        for place in range(begin, end):
            h[r, couplings.indices[place]] += change * couplings.data[place]


@compiled
def draw_states(x: NDArray[np.int8], counters: NDArray[np.uint64]) -> None:
    """Fill ``x`` with states of independent unbiased spins."""
    size, n = x.shape
    for r in range(size):
        counter = counters[r]
        for i in range(n):
            counter += GOLDEN
            x[r, i] = 1 if _uniform(counter) < 0.5 else -1
        counters[r] = counter


@compiled
def refresh(
    x: NDArray[np.int8],
    h: NDArray[np.float64],
    theta: NDArray[np.float64],
    couplings: Couplings,
) -> None:
    """Recompute the fields of every state, which removes accumulated rounding errors."""
    size, n = x.shape
    for r in range(size):
        for i in range(n):
            total = theta[i]
            begin = couplings.indptr[i]
            for place in range(begin, couplings.indptr[i + 1]):
                j = place - begin if couplings.is_dense else couplings.indices[place]
                total += couplings.data[place] * x[r, j]
            h[r, i] = total


@compiled
def heat_bath(
    x: NDArray[np.int8],
    h: NDArray[np.float64],
    energy: NDArray[np.float64],
    counters: NDArray[np.uint64],
    beta: float,
    sweeps: int,
    theta: NDArray[np.float64],
    couplings: Couplings,
) -> None:
    """Sweep over the spins of every state, redrawing each given the others at inverse temperature ``beta``.

    Afterwards ``energy`` holds <theta, x> + x'Jx / 2 of every state.
    """
    size, n = x.shape
    for r in range(size):
        counter = counters[r]
        for _ in range(sweeps):
            for i in range(n):
                field = 2.0 * beta * h[r, i]
                # With such a strong field no number is drawn, but the counter advances, which keeps sweeps in step.
                counter += GOLDEN
                if field > CERTAIN:
                    spin = 1
                elif field < -CERTAIN:
                    spin = -1
                else:
                    # P(x_i = sign of the field) = 1 / (1 + exp(-|field|))
                    likely = _uniform(counter) * (1.0 + exp_minus(abs(field))) < 1.0
                    spin = 1 if likely == (field >= 0.0) else -1
                if spin != x[r, i]:
                    x[r, i] = spin
                    _flip(i, spin, h, r, couplings)
        counters[r] = counter
        total = 0.0
        for i in range(n):
            total += x[r, i] * (theta[i] + h[r, i])
        energy[r] = 0.5 * total


@compiled
def descend(
    x: NDArray[np.int8],
    h: NDArray[np.float64],
    sweeps: int,
    couplings: Couplings,
) -> None:
    """Flip spins that are opposite to their field until none is: a quench to a local maximum of the weight."""
    size, n = x.shape
    for r in range(size):
        for _ in range(sweeps):
            still = True
            for i in range(n):
                if x[r, i] * h[r, i] < 0.0:
                    x[r, i] = -x[r, i]
                    _flip(i, x[r, i], h, r, couplings)
                    still = False
            if still:
                break

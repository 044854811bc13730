"""The kernel that sampling is compared with: heat-bath sweeps over one state after the other, in double precision.

Every state keeps the fields of its spins. So an unchanged spin costs one random number, and a flipped spin a pass over
its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import exp_minus
from spectralz.kernels.sampling.heat_bath import GOLDEN, mixed, tell_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings

__all__ = ["draw_states", "heat_bath"]


# Beyond this the other state of a spin has a probability below any number drawn.
CERTAIN = 40.0


@inner
def uniform(counter: Any) -> float:
    """Return the number in [0, 1) that belongs to a counter."""
    return (mixed(counter) >> np.uint64(11)) * 2.0**-53


@compiled
def draw_states(x: NDArray[np.int8], counters: NDArray[np.uint64]) -> None:
    """Fill ``x`` with states of independent unbiased spins."""
    size, n = x.shape
    for r in range(size):
        counter = counters[r]
        for i in range(n):
            counter += GOLDEN
            x[r, i] = 1 if uniform(counter) < 0.5 else -1
        counters[r] = counter


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
                    likely = uniform(counter) * (1.0 + exp_minus(abs(field))) < 1.0
                    spin = 1 if likely == (field >= 0.0) else -1
                if spin != x[r, i]:
                    x[r, i] = spin
                    tell_neighbors(i, spin, h[r], couplings)
        counters[r] = counter
        total = 0.0
        for i in range(n):
            total += x[r, i] * (theta[i] + h[r, i])
        energy[r] = 0.5 * total

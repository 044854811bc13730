"""Simulated annealing of single states with fields that are kept up to date, compiled.

Where it is cold, few spins flip: a spin that stays costs a comparison, and only flips cost as much as they have
neighbors. So slow cooling takes a fraction of the time of sweeps that sum up every field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.sampling.tabu import SCALE, flip, random_number

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RandomArray, SpinArray
    from spectralz.kernels.coupling import Couplings

# A flip that loses more than this, in units of the temperature, is not even considered: its odds are those of a random
# number of 32 bits being zero.
HOPELESS = 22.0


@compiled
def cool(x: SpinArray, h: FloatArray, couplings: Couplings, betas: FloatArray, random: RandomArray) -> None:
    """Sweep a state with the fields ``h`` at one inverse temperature after the other, by Metropolis's rule."""
    for beta in betas:
        for i in range(len(x)):
            loss = 2.0 * beta * x[i] * h[i]
            if loss <= 0.0 or (loss < HOPELESS and random_number(random) * SCALE < np.exp(-loss)):
                flip(i, x, h, couplings)

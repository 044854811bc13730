"""Naive mean field by coordinate ascent, compiled: product distributions written by their fields h, means tanh(h).

Keeping h instead of the mean loses no digits where a spin is all but fixed: 1 - |tanh(h)| is exp(-2 |h|), which the
mean itself cannot hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.single_spin import entropy
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings

__all__ = ["ascend", "bound"]

_entropy = inner(entropy)


@inner
def _field_of_others(i: int, couplings: Couplings, mean: NDArray[np.float64]) -> float:
    """Return sum_j J_ij m_j over the others."""
    total = 0.0
    begin = couplings.indptr[i]
    for place in range(begin, couplings.indptr[i + 1]):
        j = place - begin if couplings.is_dense else couplings.indices[place]
        total += couplings.data[place] * mean[j]
    return total


@compiled
def ascend(
    h: NDArray[np.float64],
    theta: NDArray[np.float64],
    couplings: Couplings,
    sweeps: int,
    tol: float,
) -> tuple[int, float]:
    """Sweep over the spins, setting each h_i to its best given the others; return the sweeps made and the last change.

    Each step maximises the bound over one spin, so that it never decreases. Stops once no mean changes by more than
    ``tol`` in a sweep.
    """
    n = len(h)
    mean = np.tanh(h)
    change = 0.0
    for sweep in range(sweeps):
        change = 0.0
        for i in range(n):
            h[i] = theta[i] + _field_of_others(i, couplings, mean)
            new = np.tanh(h[i])
            change = max(change, abs(new - mean[i]))
            mean[i] = new
        if change <= tol:
            return sweep + 1, change
    return sweeps, change


@compiled
def bound(
    h: NDArray[np.float64],
    theta: NDArray[np.float64],
    couplings: Couplings,
) -> tuple[float, float]:
    """Return the lower bound on log Z that the product distribution gives, and the sum of sizes that its rounding has.

    <theta, m> + sum of J_ij m_i m_j over pairs + entropy.
    """
    mean = np.tanh(h)
    value = lost = sizes = 0.0
    for i in range(len(h)):
        energy = mean[i] * (theta[i] + 0.5 * _field_of_others(i, couplings, mean))
        value, lost = add(value, lost, energy + _entropy(h[i]))
        sizes += abs(theta[i]) + 2.0
        for place in range(couplings.indptr[i], couplings.indptr[i + 1]):
            sizes += abs(couplings.data[place])
    return value + lost, sizes

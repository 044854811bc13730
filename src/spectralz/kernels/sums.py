"""Sums whose rounding error does not grow with the number of terms: running sums in compiled loops, and log-sum-exp."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray


@inner
def add(total: float, lost: float, value: float) -> tuple[float, float]:
    """Return a running sum with ``value`` added, and the total of its rounding errors so far.

    Knuth's two-sum gives the rounding error of an addition exactly, whichever number is the larger one. In the end
    ``total + lost`` is as exact as if all were added in twice the precision.
    """
    new = total + value
    rest = new - total
    return new, lost + ((total - (new - rest)) + (value - rest))


def log_sum(logs: FloatArray) -> float:
    """Return log of the sum of exp(logs), added without rounding errors.

    ``scipy.special.logsumexp`` takes 4 times as long for 500 numbers, and the spectral method calls it for every
    direction.
    """
    largest = float(logs.max())
    return largest + math.log(math.fsum(np.exp(logs - largest).tolist()))

"""A single spin in a field h, for arrays of fields: no overflow, and no lost digits where the spin is almost fixed.

``kernels.logsum`` has log 2cosh for compiled loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray


def log_2cosh(h: FloatArray) -> FloatArray:
    """Return log(exp(h) + exp(-h))."""
    size = np.abs(h)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)))


def entropy(h: FloatArray) -> FloatArray:
    """Return log 2cosh h - h tanh h, written so that terms of size |h| do not cancel."""
    size = np.abs(h)
    small = np.exp(-2.0 * size)
    return np.log1p(small) + 2.0 * size * small / (1.0 + small)

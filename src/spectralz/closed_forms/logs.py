"""Logarithms of small differences and of large sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_TOTAL_WEIGHT = 1e300
# From here on log(coth(x / 2)) is 2 exp(-x) to the last digit.
LARGE = 40.0


def log_cosh(x: float) -> float:
    """Return log cosh(x)."""
    return abs(x) + math.log1p(math.exp(-2.0 * abs(x))) - math.log(2.0)


def log_sinh(x: float) -> float:
    """Return log sinh(abs(x)), minus infinity for 0."""
    return abs(x) + math.log(-math.expm1(-2.0 * abs(x))) - math.log(2.0) if x else -math.inf


def log_add(*logs: float) -> float:
    """Return log of the sum of exp(logs)."""
    return float(np.logaddexp.reduce(logs))


def log_decay(x: Any) -> NDArray[np.float64]:
    """Return log(-log(tanh(x / 2))) for x >= 0: the log of what a factor tanh(x / 2) takes from a logarithm."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.where(x > LARGE, math.log(2.0) - x, np.log(np.log1p(2.0 / np.expm1(x)))))


def log_with_decay(log_delta: float, sign: float) -> float:
    """Return log(1 + sign * exp(-delta)) for sign +1 or -1 and delta = exp(log_delta) >= 0."""
    delta = math.exp(min(log_delta, 700.0))
    if sign > 0.0:
        return math.log1p(math.exp(-delta))
    return math.log(-math.expm1(-delta)) if delta > 1e-300 else log_delta


def refuse_overflow(n: int, weight: float) -> None:
    """Raise an error if the weights of n spins are so large that their sums overflow, as models do."""
    if n > LARGEST_TOTAL_WEIGHT:
        raise OptionError("the number of spins is too large for a floating-point number; give fewer")
    if n * weight > LARGEST_TOTAL_WEIGHT:
        raise OptionError(
            f"the weights of all spins add up to more than {LARGEST_TOTAL_WEIGHT:.0e}, where their sums overflow; "
            "lower strength or field"
        )

"""Trust in the likelihood of data under a Boltzmann machine: annealing forwards and backwards must agree."""

from __future__ import annotations

import math

# How far forwards and backwards may differ, in nats per row, which is little beside what machines differ by, and in
# standard errors: normal ones are larger in 6 of 100,000 cases. Not measured, since no machine of known likelihood is
# hard for both.
LARGEST_DIFFERENCE, LARGEST_Z = 0.1, 4.0


def agree_per_row(forwards: float, error: float, backwards: float, noise: float) -> bool:
    """Return whether two estimates of the likelihood per row agree, each with its error.

    Examples
    --------
    >>> agree_per_row(-80.0, 0.01, -80.05, 0.01), agree_per_row(-80.0, 0.01, -81.0, 0.01)
    (True, False)
    """
    return abs(forwards - backwards) <= max(LARGEST_DIFFERENCE, LARGEST_Z * math.hypot(error, noise))

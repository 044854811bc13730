"""Trust in several answers to the same question: when two agree, and when one contradicts proven bounds.

``portfolio/verdict.py`` chooses among answers by these rules.
"""

from __future__ import annotations

import math

# Two answers agree if they are at most this many of their joint standard errors apart: normal errors are farther apart
# in 0.3% of all cases.
AGREEMENT = 3.0
# Agreement with a less certain answer is no check: it would agree even if a phase with half of Z were missing.
LARGEST_CHECKING_ERROR = math.log(2.0) / AGREEMENT
# An answer may lie outside the proven bounds by as many of its errors. Where a bound is tight, as that of a sum over
# nearly all of P(x) is, right answers are outside by 2 errors once in 40 times.
OUTSIDE_BOUNDS = AGREEMENT
# An error bar that its own method does not trust is widened by this factor, but not beyond the standard deviation of a
# number uniform between the bounds: their width divided by the second constant. Methods have already included what
# their runs show. `benchmarks.honesty` lists the bars of untrusted answers relative to their errors.
DOUBT = 1.25
WIDTHS_PER_DEVIATION = math.sqrt(12.0)


def agree(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Return whether two answers, each with its error, agree.

    Examples
    --------
    >>> agree((1.0, 0.1), (1.2, 0.1)), agree((1.0, 0.1), (2.0, 0.1))
    (True, False)
    """
    return abs(first[0] - second[0]) <= AGREEMENT * math.hypot(first[1], second[1])


def is_within(log_z: float, error: float, lower: float, upper: float) -> bool:
    """Return whether an answer is consistent with proven bounds, within its error."""
    slack = OUTSIDE_BOUNDS * error
    return lower - slack <= log_z <= upper + slack

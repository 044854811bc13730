"""Trust in a proven bracket from the heaviest frontier states.

If the bracket is narrow, the answer is its middle, with half of its width as the error. Otherwise the lower bound is
much closer than the upper one: the answer is the lower bound, and its growth with the number of states shows how much
may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from collections.abc import Sequence

# A bracket as narrow as this is trusted: the width is an error that is proven, not measured.
NARROW = 0.02
# The growth of the lower bound with four times as many states, times this, is the scale of what is still missing.
# Measured by `benchmarks.trust` (docs/measurements/trust.md).
GROWTHS = 2.0


def judge_bracket(lower: float, upper: float, lower_bounds: Sequence[float]) -> Judgment:
    """Judge a bracket; ``lower_bounds`` are those of sums over more and more states.

    Examples
    --------
    >>> judge_bracket(1.0, 1.01, [0.9, 1.0]).trusted, judge_bracket(1.0, 2.0, [0.9, 1.0]).std_error
    (True, 0.19999999999999996)
    """
    gap = upper - lower
    if gap <= NARROW:
        return Judgment(0.5 * (lower + upper), 0.5 * gap, True)
    grown = GROWTHS * abs(lower_bounds[-1] - lower_bounds[-2]) if len(lower_bounds) > 1 else gap
    return Judgment(lower, min(max(grown, NARROW), gap), False, ": too wide, do not trust")

"""Trust in a sum over states whose share of P(x) was measured by independent populations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spectralz.sampling.pool import share_of_strata
from spectralz.trust.judgment import Judgment, with_rounding
from spectralz.trust.runs import summary_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sampling.pool import Share, StatePool
    from spectralz.sampling.populations import Run

# If fewer independent states than this are found again, the share is not known: the error of its logarithm is then
# beyond a third, and no longer normal. Measured by `benchmarks.trust` (docs/measurements/trust.md).
FEWEST_HITS = 10.0


def is_measured(share: Share) -> bool:
    """Return whether enough independent states were found again for the share to be usable."""
    return share.share * share.families >= FEWEST_HITS


def can_measure(share: Share) -> bool:
    """Return whether the populations have enough independent states to measure any share."""
    return share.families >= 2.0 * FEWEST_HITS


def share_by_strata(pool: StatePool, testing: Sequence[Sequence[Run]]) -> Share:
    """Return the share of P(x) that a pool holds, measured by the runs that count for each stratum."""
    return share_of_strata(pool, testing, [summary_of(runs).std_error for runs in testing])


def judge_pool(log_sum: float, share: Share) -> Judgment:
    """Judge the sum of the weights of some states, divided by their measured share of P(x).

    Examples
    --------
    >>> from spectralz.sampling.pool import Share
    >>> judge_pool(3.0, Share(1.0, 0.01, families=400.0)).trusted, judge_pool(3.0, Share(0.01, 0.1, 400.0)).trusted
    (True, False)
    """
    if not is_measured(share):
        return Judgment(log_sum, math.inf, False, "; their share of P(x) is not known")
    return Judgment(log_sum - math.log(share.share), with_rounding(share.std_error, log_sum), True)

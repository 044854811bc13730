"""Trust in a sum over states whose share of P(x) was measured by independent populations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz.trust.agreement import agree
from spectralz.trust.judgment import Judgment, with_rounding
from spectralz.trust.rules import RULES

if TYPE_CHECKING:
    from spectralz.sampling.heavy.pool import Share

# If fewer independent states than this are found again, the share is not known: the error of its logarithm is then
# beyond a third, and no longer normal. Measured by `benchmarks.trust` (docs/measurements/trust.md).
FEWEST_HITS = 10.0
# If the sum over states that runs have met contradicts the runs, these are still trusted up to this distance, with an
# error that covers it.
LARGEST_GAP = 0.05
# Populations whose own log Z is less certain than this confirm no sum: one valley may be missing in both halves.
LARGEST_ERROR = 1.0


def is_measured(share: Share) -> bool:
    """Return whether enough independent states were found again for the share to be usable."""
    return share.share * share.families >= FEWEST_HITS


def can_measure(share: Share) -> bool:
    """Return whether the populations have enough independent states to measure any share."""
    return share.families >= 2.0 * FEWEST_HITS


def judge_pool(log_sum: float, share: Share) -> Judgment:
    """Judge the sum of the weights of some states, divided by their measured share of P(x).

    Examples
    --------
    >>> from spectralz.sampling.heavy.pool import Share
    >>> judge_pool(3.0, Share(1.0, 0.01, families=400.0)).trusted, judge_pool(3.0, Share(0.01, 0.1, 400.0)).trusted
    (True, False)
    """
    if not is_measured(share):
        return Judgment(log_sum, math.inf, False, "; their share of P(x) is not known")
    hits = share.share * share.families
    why = "" if hits >= RULES.families else f"; only {hits:.3g} independent states were found again, do not trust"
    return Judgment(log_sum - math.log(share.share), with_rounding(share.std_error, log_sum), not why, why)


def beside_populations(summed: Judgment, judged: Judgment) -> Judgment:
    """Judge a sum over states beside the populations that measured their share of P(x).

    The same populations estimate log Z by themselves. If they contradict the sum, they have missed some of its states,
    and may have missed others: the share is too large. Nor is it known if phases were not looked for. Phases that were
    left out as too light hold states that neither the sum nor the share has.
    """
    summed = replace(summed, std_error=max(summed.std_error, judged.left_out))
    gap = gap_to(summed, judged)
    if gap:
        why = f"{summed.why}; log Z of the populations differs by {gap:.2g}: they have missed states, do not trust"
        return Judgment(summed.log_z, max(summed.std_error, gap), False, why)
    if judged.std_error > LARGEST_ERROR:
        why = f"{summed.why}; log Z of the populations is known to {judged.std_error:.2g} only, do not trust"
        return Judgment(summed.log_z, summed.std_error, False, why)
    if judged.doubt and judged.doubt not in summed.why:
        return Judgment(summed.log_z, summed.std_error, False, f"{summed.why}; {judged.doubt}")
    return summed


def gap_to(summed: Judgment, judged: Judgment) -> float:
    """Return how far a sum over states is from the log Z of populations, if that contradicts it; otherwise 0."""
    agrees = agree((summed.log_z, summed.std_error), (judged.log_z, judged.std_error))
    return 0.0 if agrees else abs(summed.log_z - judged.log_z)


def populations_beside(judged: Judgment, gap: float) -> Judgment:
    """Judge populations beside a sum over states that is so far from them: one of both has missed states."""
    if not gap:
        return judged
    why = f"{judged.why}; the sum over the states found differs by {gap:.2g}, which the error covers"
    return Judgment(judged.log_z, max(judged.std_error, gap), judged.trusted and gap <= LARGEST_GAP, why)

"""Trust in populations beside a state that they have not visited.

Chains that start in a collective state and stay there show that populations have missed it (``sampling/phases.py``).
Mean field in that state proves a part of Z. If that part is a large enough share of Z, the populations are not trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from spectralz.sampling.phases import MissedState

# Populations are distrusted if a state that they have not visited holds at least this share of Z. A smaller share
# leaves them trusted, with an error of this many times the share, since mean field proves only part of it. Measured by
# `benchmarks.honesty` (its families trap, two_blocks and hopfield) and `benchmarks.trust` (docs/measurements/trust.md).
LARGEST_SHARE, ERRORS_PER_SHARE = 0.02, 2.0
# With such a state added, the error is at least this, or the amount added; measured likewise.
LEAST_ERROR = 0.5


@dataclass(frozen=True)
class Doubt:
    """What a missed state may mean for an estimate of log Z.

    Attributes
    ----------
    share
        Its least share of Z, given the populations' estimate without it.
    is_negligible
        Whether the estimate can still be trusted.
    may_add
        How much log Z may exceed the estimate.
    """

    share: float
    is_negligible: bool
    may_add: float


def doubt(log_z: float, missed: MissedState | None) -> Doubt:
    """Return what a missed state means for populations that estimate ``log_z`` without it.

    Examples
    --------
    >>> from spectralz.sampling.phases import MissedState
    >>> doubt(10.0, None).is_negligible, doubt(10.0, MissedState(9.0, 1.0)).is_negligible
    (True, False)
    >>> doubt(10.0, MissedState(0.0, 1.0))
    Doubt(share=4.539...e-05, is_negligible=True, may_add=9.07...e-05)
    """
    if missed is None:
        return Doubt(0.0, True, 0.0)
    share = 1.0 / (1.0 + math.exp(min(max(log_z - missed.lower, -700.0), 700.0)))
    if share < LARGEST_SHARE:
        return Doubt(share, True, ERRORS_PER_SHARE * share)
    return Doubt(share, False, float(np.logaddexp(log_z, missed.lower + missed.beyond)) - log_z)


def add_missed(judged: Judgment, missed: MissedState | None) -> Judgment:
    """Return a judgment on populations that takes account of a state that they have missed.

    If its share is large, its proven weight is added to the answer, with half of what it may hold beyond that. The
    error is the largest of the samples' error times their share, of what the state may hold beyond its proven weight,
    and of a part of what was added, since other states may be missing too; all of it if the samples tell nothing.
    """
    if missed is None:
        return judged
    doubted = doubt(judged.log_z, missed)
    error, share = judged.std_error, doubted.share
    if doubted.is_negligible:
        return Judgment(judged.log_z, max(error, doubted.may_add), judged.trusted, judged.why)
    gain = max(float(np.logaddexp(judged.log_z, missed.lower + 0.5 * missed.beyond)) - judged.log_z, 0.0)
    why = f"; chains from a state along a leading eigenvector, at least {share:.0%} of Z, do not merge with it"
    widened = max((1.0 - share) * error, missed.beyond, min(gain, max(error, LEAST_ERROR)))
    return Judgment(judged.log_z + gain, widened, False, judged.why + why)

"""Trust in sums over states, in states that go to the model and back, and in ratios of two models.

A sum over states is divided by their share of P(x), which independent populations measure.

Near equilibrium states lag equally far behind on the way to the model and on the way back, and the gap between the two
mean log-weights is the mean of both variances (Jarzynski; Crooks; Hendrix and Jarzynski). The deviation from this
relation sets the scale of the remaining error.

A ratio of two models is trusted if the ways there and back agree, and the states of both models are trusted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from spectralz.trust.judgment import RULES, Judgment, agree, with_rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import FloatArray
    from spectralz.sampling.bridge import Bridge
    from spectralz.sampling.heavy.pool import Share
    from spectralz.sampling.round_trips import RoundTrip

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


# --------------------------------------------------------------------------------------------- states that go both ways


# The error, as a share of the inconsistency between the gap and the variances, and of the gap itself, since the two
# lags are equal only to first order. Found on lattices with a closed form, at the critical point and on both sides of
# it, and measured by `benchmarks.trust` (docs/measurements/trust.md), as are the constants below.
ERROR_PER_INCONSISTENCY, ERROR_PER_GAP = 1.0 / 3.0, 1.0 / 16.0
# An inconsistency above this many times its noise plus the second number is real.
NOISE_DEVIATIONS, LEAST_INCONSISTENCY = 2.0, 0.05


def inconsistency_of(trip: RoundTrip) -> float:
    """Return how far the gap is from the mean of the variances, and the variances from each other."""
    there, back = trip.variances
    return abs(trip.gap - 0.5 * (there + back)) + 0.5 * abs(there - back)


def judge_round_trip(trip: RoundTrip, constant: float = 0.0) -> Judgment:
    """Judge the middle of both ways; ``constant`` is added to it."""
    inconsistency = inconsistency_of(trip)
    noise = math.hypot(*trip.variances) * math.sqrt(2.0 / max(len(trip.there) - 1, 1))
    error = math.hypot(trip.scatter, ERROR_PER_INCONSISTENCY * inconsistency, ERROR_PER_GAP * trip.gap)
    trusted = inconsistency <= NOISE_DEVIATIONS * noise + LEAST_INCONSISTENCY
    log_z = trip.log_z + constant
    why = "" if trusted else ": out of equilibrium, do not trust"
    return Judgment(log_z, with_rounding(error, log_z), trusted, why)


# ------------------------------------------------------------------------------------------------- ratios of two models


# The ways there and back agree up to this many errors of their middle, three of their difference, or this many nats
# (docs/measurements/trust.md).
MOST_ERRORS_APART, LEAST_APART = 6.0, 0.1


def judge_bridge(bridge: Bridge, ends: Sequence[Judgment], families: float = math.inf) -> Judgment:
    """Judge log(Z_second / Z_first), without the constants, by both ways and by the states at both ends.

    ``ends`` has a judgment on the states of each model. They have so many independent families at least, and the error
    is no smaller than what one of these could change.
    """
    forth, home = (bridge.there, bridge.shares_there), (-bridge.back, bridge.shares_back)
    there, back = _log_mean(*forth), -_log_mean(*home)
    scatter = 0.25 * (_variance(*forth) + _variance(*home))
    # Half of the disagreement beyond the scatter of the groups.
    error = math.sqrt(scatter + max((0.5 * (there - back)) ** 2 - scatter, 0.0))
    # The mean of the logs is far from the log of the mean if few groups hold the weight.
    apart = abs(float(bridge.there.mean() - bridge.back.mean()))
    trusted = abs(there - back) <= max(MOST_ERRORS_APART * math.sqrt(scatter), LEAST_APART)
    trusted = trusted and apart <= max(MOST_ERRORS_APART * error, LEAST_APART)
    trusted = trusted and all(judged.trusted for judged in ends)
    why = "" if trusted else "; the states are too few, out of equilibrium, or miss a phase: do not trust"
    # States that the error of an end allows for may have other weights.
    missing = max([-math.expm1(-judged.std_error) for judged in ends if not judged.trusted], default=0.0)
    return Judgment(0.5 * (there + back), max(error, bridge.contrast * max(1.0 / families, missing)), trusted, why)


def _log_mean(values: FloatArray, shares: FloatArray | None) -> float:
    """Return the log of the mean estimate of the groups, by their shares."""
    return float(logsumexp(values, b=1.0 / len(values) if shares is None else shares / shares.sum()))


def _variance(values: FloatArray, shares: FloatArray | None) -> float:
    """Return the variance of that, by the jackknife over groups."""
    count = len(values)
    without = [_log_mean(np.delete(values, k), None if shares is None else np.delete(shares, k)) for k in range(count)]
    return float((count - 1) / count * np.square(np.array(without) - np.mean(without)).sum())

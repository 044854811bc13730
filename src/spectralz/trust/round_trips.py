"""Trust in states that go to the model and back: the gap between both ways must match their variances.

Near equilibrium the states lag equally far behind on both ways, and the gap between the two mean log-weights is the
mean of both variances (Jarzynski; Crooks; Hendrix and Jarzynski). The deviation from this relation sets the scale of
the remaining error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spectralz.trust.judgment import Judgment, with_rounding

if TYPE_CHECKING:
    from spectralz.sampling.round_trips import RoundTrip

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

"""Trust in the ratio of two models: the ways there and back agree, and the states of both models are trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.populations import mean_and_shares
from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import FloatArray
    from spectralz.sampling.bridge import Bridge

# The ways there and back agree up to this many errors of their middle, three of their difference, or this many nats
# (docs/measurements/trust.md).
MOST_ERRORS_APART, LEAST_APART = 6.0, 0.1


def judge_bridge(bridge: Bridge, ends: Sequence[tuple[Judgment, float]]) -> Judgment:
    """Judge log(Z_second / Z_first), without the constants, by both ways and by the states at both ends.

    ``ends`` has a judgment on the states of each model, and what phases may add to its log Z that were not measured.
    """
    there, back = _log_mean(bridge.there), _log_mean(bridge.back)
    scatter = 0.25 * (_variance(bridge.there) + _variance(bridge.back))
    # Half of the disagreement beyond the scatter of the runs.
    error = math.sqrt(scatter + max((0.5 * (there - back)) ** 2 - scatter, 0.0))
    # The mean of the logs is far from the log of the mean if few runs hold the weight.
    apart = abs(float(bridge.there.mean() - bridge.back.mean()))
    trusted = abs(there - back) <= max(MOST_ERRORS_APART * math.sqrt(scatter), LEAST_APART)
    trusted = trusted and apart <= max(MOST_ERRORS_APART * error, LEAST_APART)
    for judged, may_add in ends:
        trusted = trusted and judged.trusted
        error = max(error, may_add)
    why = "" if trusted else "; the states are too few, out of equilibrium, or miss a phase: do not trust"
    return Judgment(0.5 * (there + back), error, trusted, why)


def _log_mean(values: FloatArray) -> float:
    """Return the log of the mean estimate of the runs."""
    return mean_and_shares(values)[0]


def _variance(values: FloatArray) -> float:
    """Return the variance of that, by the jackknife over runs."""
    count = len(values)
    without = np.array([_log_mean(np.delete(values, k)) for k in range(count)])
    return float((count - 1) / count * ((without - without.mean()) ** 2).sum())

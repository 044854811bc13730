"""Trust in the ratio of two models: the ways there and back agree, and the states of both models are trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import FloatArray
    from spectralz.sampling.bridge import Bridge

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

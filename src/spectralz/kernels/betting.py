"""Bound a mean with a stated probability, from independent samples and nothing else.

Let W >= 0 have the mean z. A gambler who believes that the mean is larger bets a share r of their money on each sample
in turn. After N samples they have

    K(z) = product over i of ( 1 - r + r W_i / z ).

If the mean is z the game is fair: K is a martingale that starts at 1, and by Ville's inequality it ever reaches 1 /
delta with probability at most delta. So a z for which K has reached 1 / delta is rejected. K decreases with z, so all
smaller z are rejected too. The smallest remaining z is a lower end of the mean with probability 1 - delta, after any
number of samples and for any reason to stop. A single sample with r = 1 gives Markov's inequality. A gambler may divide
the money between several r in advance; the total is then the mean of their K.

With W in [0, 1], 1 - W has a lower end too, which gives an upper end of the mean of W. These ends are at least as good
as those of empirical Bernstein inequalities (Waudby-Smith and Ramdas, J. R. Stat. Soc. B 86, 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray

# exp(700) does not overflow yet. Larger samples count as this many times the mean in question, which lowers the end.
LARGEST_RATIO = 700.0
# Rounding may add this to the logarithm of a gambler's money: a constant, and an amount per sample.
ROUNDING, ROUNDING_PER_SAMPLE = 1e-12, 1e-15
# Ratio of one share to the next: where a pilot has chosen the share that gets half of the money, and where it has not.
RATIO_WITH_PILOT, RATIO = 4.0, 2.0
# A share is chosen for an end that is below the mean by this share of it, at most.
LARGEST_SHARE_BELOW = 0.5


@dataclass(frozen=True)
class Bets:
    """How the money is divided, before any sample is seen.

    Attributes
    ----------
    rates
        The shares r that are bet each time, from 0 to 1.
    money
        The money bet with each of them; adds up to 1.
    """

    rates: FloatArray
    money: FloatArray

    @classmethod
    def for_few(cls, count: int) -> Bets:
        """Divide the money evenly between shares from 1 down to one over the number of samples expected."""
        rates = RATIO ** -np.arange(max(math.ceil(math.log(max(count, 1), RATIO)), 0) + 1.0)
        return cls(rates, np.full(len(rates), 1.0 / len(rates)))

    @classmethod
    def for_many(cls, pilot: FloatArray, count: int, delta: float) -> Bets:
        """Put half of the money on the share that is best according to a pilot, and the rest on all others.

        ``pilot`` holds logarithms of samples that are not used in the bet.
        """
        least = math.ceil(math.log(max(count, 1), RATIO_WITH_PILOT))
        others = RATIO_WITH_PILOT ** -np.arange(least + 1.0)
        rates = np.concatenate([[_best_rate(pilot, count, delta)], others])
        return cls(rates, np.concatenate([[0.5], np.full(len(others), 0.5 / len(others))]))


def _best_rate(pilot: FloatArray, count: int, delta: float) -> float:
    """Return the share whose money grows fastest at the end of the interval, by mean and variance.

    At a relative distance e below the mean, log K grows by r e - r^2 (v + e^2) / 2 per sample, where v is the relative
    variance. This is at most e^2 / (2 (v + e^2)), which must add up to log(2 / delta) over all samples.
    """
    sizes = np.exp(pilot - pilot.max())
    mean = float(sizes.mean())
    variance = float(sizes.var()) / mean**2 if mean > 0.0 else 0.0
    nats = 2.0 * math.log(2.0 / delta)
    below = min(math.sqrt(nats * variance / max(count - nats, 1.0)), LARGEST_SHARE_BELOW)
    rate = below / (variance + below**2) if below > 0.0 else 1.0
    return min(max(rate, 1.0 / count), 1.0)


def lower_end(log_w: FloatArray, delta: float, bets: Bets) -> float:
    """Return the log of a number that exceeds the mean with probability at most ``delta``.

    ``log_w`` holds the logarithms of independent non-negative samples. The result is -inf if all samples are 0.

    Examples
    --------
    >>> single = Bets(np.ones(1), np.ones(1))
    >>> round(lower_end(np.zeros(1), 0.01, single), 6) == round(math.log(0.01), 6)  # Markov's inequality
    True
    """
    if not len(log_w) or log_w.max() == -np.inf:
        return -math.inf
    enough = math.log(1.0 / delta) + ROUNDING + ROUNDING_PER_SAMPLE * len(log_w)
    top = float(log_w.max())
    relative = log_w - top  # logarithms may be so large that steps of 1 are lost in them

    def surplus(log_z: float) -> float:
        return _log_money(relative, log_z, bets) - enough

    # By concavity no share wins at the mean of the samples; some way below it one does.
    high = math.log(float(np.exp(relative).mean()))
    step = 1.0 / 1024.0
    while surplus(high - step) < 0.0:
        high, step = high - step, 2.0 * step
    return top + _crossing(surplus, high - step, high)


def _crossing(surplus: Callable[[float], float], low: float, high: float) -> float:
    """Return the last number at which a falling function was seen not to be negative, close to its zero."""
    from scipy.optimize import brentq

    if surplus(high) >= 0.0:  # rounding, where the samples are all the same
        return low
    narrow = 1e-12 * max(1.0, abs(low))
    root = float(brentq(surplus, low, high, xtol=narrow, rtol=1e-15))
    for step in (narrow, 10.0 * narrow, 1000.0 * narrow):
        if low <= root - step and surplus(root - step) >= 0.0:
            return root - step
    return low


def _log_money(log_w: FloatArray, log_z: float, bets: Bets) -> float:
    """Return log K at a mean."""
    apart = np.minimum(log_w - log_z, LARGEST_RATIO)
    gain = np.expm1(apart)
    logs = []
    for rate, money in zip(bets.rates.tolist(), bets.money.tolist(), strict=True):
        with np.errstate(divide="ignore"):
            won = float(apart.sum() if rate == 1.0 else np.log1p(rate * gain).sum())
        logs.append(math.log(money) + won)
    best = max(logs)
    return best + math.log(sum(math.exp(log - best) for log in logs)) if best > -math.inf else -math.inf

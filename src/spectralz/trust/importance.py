"""Trust in contractions and in importance samples drawn from them.

The evidence: a contraction, a coarser one and one in reverse; weights of states drawn from their distributions; and
heavy states found in other ways. The constants are measured by `benchmarks.honesty --bond` (docs/honesty.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.sampling.population import mean_and_shares, means_and_shares
from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray

# This share of the difference from a coarser contraction counts as error if nothing was truncated. With truncation, the
# error falls as the root of the discarded weight; a few times this counts, but no less than the last of these.
SHARE_OF_COARSE, ROOTS_OF_RATIO, LEAST_OF_COARSE = 0.3, 3.0, 0.01
# The difference from the reverse order counts this many times. It does not count if the reverse order is expected to be
# worse: the order itself discards less than this share of what the reverse discards.
TIMES_REVERSE, POOR_REVERSE = 3.0, 1e-3
# Samples are trusted from this effective number on, and from this share of all.
FEWEST_EFFECTIVE, LEAST_SHARE = 50.0, 0.1
# The answers of two sources agree up to this many of their errors.
DEVIATIONS = 4.0
# The sum of the shares of wrong sign over the draws of a state is noise up to this.
MOST_NEGATIVE = 0.05
# Heavy states that are unlikely to be drawn may hold at most this share.
MOST_MISSED = 1e-3
# A state with fewer expected draws than this may have been missed.
EXPECTED_DRAWS = 5.0
# Contractions alone are trusted up to this error.
LARGEST_ERROR_ALONE = 0.02
# With this share of their spread added to what counts.
LEAST_OF_SPREAD = 0.1
# In warm models the error is about the root of the sum of all discarded weights; this many times the root covers it.
ROOTS_OF_DISCARDED = 3.0
# A sample gives no information on regions with fewer expected draws than this; contractions may disagree about these.
UNSEEN_DRAWS = 5.0
# Both orders may have lost the same region, which their samples do not show. So this share of the disagreement of
# contractions, with each other and with the sample, is also part of the sample's error.
SHARE_UNSEEN = 0.3
# If contractions are further than this from the sample, the bond is too small for anything to be trusted.
LARGEST_APART = 0.5
# How such complaints end.
TOO_SMALL = ": do not trust, the bond is too small"


@dataclass(frozen=True)
class Contractions:
    """Answers of contractions: in the order, in the same order but coarser, and in reverse; None if not made.

    ``discarded``, ``discarded_coarsely`` and ``discarded_in_reverse`` are the sums of the weights truncated at the bond
    dimension; ``rounding`` bounds the rounding error.
    """

    log_z: float
    coarse: float | None
    reverse: float | None
    rounding: float
    discarded: float = 0.0
    discarded_coarsely: float = 0.0
    discarded_in_reverse: float = 0.0

    @property
    def _is_reverse_poor(self) -> bool:
        """Whether the reverse order discards so much more that this explains its different answer."""
        return self.discarded < POOR_REVERSE * self.discarded_in_reverse

    @property
    def _share_of_coarse(self) -> float:
        """The share of the coarser contraction's error that remains in the finer one."""
        if self.discarded_coarsely <= 0.0:
            return SHARE_OF_COARSE
        ratio = ROOTS_OF_RATIO * math.sqrt(self.discarded / self.discarded_coarsely)
        return min(max(ratio, LEAST_OF_COARSE), SHARE_OF_COARSE)

    @property
    def error(self) -> float:
        """Their disagreement, or more if more was discarded."""
        expected = ROOTS_OF_DISCARDED * math.sqrt(self.discarded_in_reverse)
        discarded = self.discarded if self._is_reverse_poor else max(self.discarded, self.discarded_in_reverse)
        error = max(self.rounding, ROOTS_OF_DISCARDED * math.sqrt(discarded))
        if self.reverse is not None:
            apart = abs(self.log_z - self.reverse)
            error = max(error, TIMES_REVERSE * max(apart - (expected if self._is_reverse_poor else 0.0), 0.0))
        if self.coarse is not None:
            error = max(error, self._share_of_coarse * abs(self.log_z - self.coarse))
        return error

    @property
    def spread(self) -> float:
        """The largest difference between any two of them."""
        answers = [answer for answer in (self.log_z, self.coarse, self.reverse) if answer is not None]
        return max(answers) - min(answers)

    def apart_from(self, log_z: float) -> float:
        """Return the larger of the two orders' distances from another answer."""
        return max(abs(answer - log_z) for answer in (self.log_z, self.reverse) if answer is not None)

    @property
    def is_checked(self) -> bool:
        """Whether there is anything to compare with."""
        return self.reverse is not None and self.coarse is not None


@dataclass(frozen=True)
class Weighted:
    """States drawn from q, or from two of them in turn, with their log-weights log(P / q).

    Attributes
    ----------
    log_weight
        For each state, the log of its weight over its density.
    stratum
        The distribution that each state was drawn from.
    negative
        For each state, the sum of shares of wrong sign.
    alone
        The estimate of log Z from each distribution's own states, and its standard error.
    missed
        The share of P held by heavy states that are unlikely to be drawn.
    """

    log_weight: FloatArray
    stratum: NDArray[np.int64]
    negative: FloatArray
    alone: tuple[tuple[float, float], ...] = ()
    missed: float = 0.0

    @property
    def log_z(self) -> float:
        """The log of the mean weight, an unbiased estimate of Z."""
        return mean_and_shares(self.log_weight)[0]

    @property
    def shares(self) -> FloatArray:
        """The weights, which add up to 1."""
        return mean_and_shares(self.log_weight)[1]

    @property
    def effective(self) -> float:
        """The effective number of independent states of P."""
        return 1.0 / float((self.shares**2).sum())

    @property
    def std_error(self) -> float:
        """The standard error of log Z, from the scatter within the strata, widened where few states count."""
        relative = self.shares * len(self.shares)
        variance = 0.0
        for number in np.unique(self.stratum):
            shares = relative[self.stratum == number]
            if len(shares) > 1:
                variance += float(shares.var(ddof=1)) * len(shares)
        return math.sqrt(variance) / len(relative) * (1.0 + 20.0 / self.effective)

    @property
    def is_consistent(self) -> bool:
        """Whether the answers of all distributions agree, up to their errors and regions that a sample cannot see."""
        answers = [log_z for log_z, _ in self.alone]
        error = math.hypot(*(error for _, error in self.alone)) + UNSEEN_DRAWS / len(self.log_weight)
        return not answers or max(answers) - min(answers) <= DEVIATIONS * error

    @property
    def complaint(self) -> str:
        """The reason to distrust the weights, as the end of a sentence; empty if they are trusted."""
        words = ""
        if self.effective < max(FEWEST_EFFECTIVE, LEAST_SHARE * len(self.log_weight)):
            words += f"; {len(self.log_weight)} samples are worth only {self.effective:.1f} independent ones"
        if float(self.shares @ self.negative) > MOST_NEGATIVE:
            words += "; truncation made probabilities negative"
        if not self.is_consistent:
            words += "; samples drawn in the two orders give different answers"
        if self.missed > MOST_MISSED:
            words += f"; the samples miss heavy states with {self.missed:.2g} of Z"
        return words


def log_mixture(log_densities: FloatArray) -> FloatArray:
    """Return the log of the mean of densities, one row each."""
    return means_and_shares(log_densities.T)[0]


def missed_share(x: NDArray[np.int8], log_weight: FloatArray, log_q: FloatArray, log_z: float, samples: int) -> float:
    """Return the share of Z held by distinct states that are too rare under q to be expected in a sample."""
    _, first = np.unique(x, axis=0, return_index=True)
    share = np.exp(np.minimum(log_weight[first] - log_z, 50.0))
    rare = log_q[first] < math.log(EXPECTED_DRAWS / samples)
    # Part of the sample may represent them: only the excess over q is missing.
    return float(np.maximum(share - np.exp(log_q[first]), 0.0)[rare].sum())


def judge_contractions(contractions: Contractions, sample: Weighted | None) -> Judgment:
    """Combine contractions with a sample.

    Examples
    --------
    >>> same = Contractions(10.0, coarse=10.0, reverse=10.0, rounding=1e-12)
    >>> judge_contractions(same, None)
    Judgment(log_z=10.0, std_error=1e-12, trusted=True, why='')
    """
    if sample is None:
        return _judge_alone(contractions)
    error, apart = contractions.error, contractions.apart_from(sample.log_z)
    unseen = max(min(error, UNSEEN_DRAWS / len(sample.log_weight)), SHARE_UNSEEN * error)
    statistical = max(sample.std_error, contractions.rounding, unseen)
    words = sample.complaint
    if not words and apart > max(LARGEST_APART, DEVIATIONS * sample.std_error):
        words = f"; contractions and samples differ by {apart:.2g}"
    if words:
        # Neither is trusted: the error covers all of them, and the heavy states.
        wide = max(error, apart, contractions.spread, sample.std_error, math.log1p(sample.missed), LARGEST_ERROR_ALONE)
        best = sample.log_z if sample.missed <= MOST_MISSED else max(sample.log_z, contractions.log_z)
        return Judgment(best, wide, False, words + TOO_SMALL)
    if not contractions.is_checked:
        return Judgment(
            sample.log_z,
            max(statistical, LARGEST_ERROR_ALONE),
            False,
            "; no second contraction checked it: do not trust",
        )
    difference = abs(contractions.log_z - sample.log_z)
    if error < statistical:
        log_z, std_error, limit = contractions.log_z, error, DEVIATIONS * statistical
    else:
        log_z, std_error = sample.log_z, max(statistical, SHARE_UNSEEN * difference)
        limit = DEVIATIONS * (statistical + error)
    if difference <= limit:
        return Judgment(log_z, std_error, True, "")
    words = f"; contraction and samples differ by {apart:.2g}, more than their errors{TOO_SMALL}"
    return Judgment(sample.log_z, max(std_error, apart, contractions.spread), False, words)


def _judge_alone(contractions: Contractions) -> Judgment:
    """Judge contractions without a sample."""
    log_z, error, spread = contractions.log_z, contractions.error, contractions.spread
    if not contractions.is_checked:
        return Judgment(log_z, max(error, spread, 1.0), False, "; no second contraction checked it: do not trust")
    if max(error, LEAST_OF_SPREAD * spread) > LARGEST_ERROR_ALONE:
        return Judgment(log_z, max(error, spread), False, f"; contractions disagree by {spread:.2g}{TOO_SMALL}")
    return Judgment(log_z, error, True, "")


def rounding_of(log_z: float, n: int, largest: float) -> float:
    """Bound the rounding error of the log of a sum over n spins whose log-weights are up to ``largest``."""
    return 16.0 * UNIT_ROUNDOFF * (abs(log_z) + largest + n)

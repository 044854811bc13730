"""What contractions and importance samples say together of log Z, and whether to believe it.

Everything here is a pure function of numbers: contractions at two bond dimensions and in two orders, weights of states
drawn from the distributions that they leave behind, and heavy states that were found elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray

__all__ = ["Contractions", "Judged", "Weighted", "judge", "log_mixture", "missed_share", "rounding_of"]

# A share of the difference to half the bond dimension counts as error: at the full one it is smaller by far.
SHARE_OF_HALF = 0.3
# Samples are believed from this effective number on, and from this share of all.
FEWEST_EFFECTIVE, LEAST_SHARE = 50.0, 0.1
# The answers of two sources agree up to so many of their errors.
DEVIATIONS = 4.0
# Shares of wrong sign among the draws of a state, summed, that are still noise.
MOST_NEGATIVE = 0.05
# Heavy states that were not to be expected among the draws may hold this share at most.
MOST_MISSED = 1e-3
# A state with fewer expected draws than this may have been missed.
EXPECTED_DRAWS = 5.0
# Contractions alone are believed up to this error.
LARGEST_ERROR_ALONE = 0.02


@dataclass(frozen=True)
class Contractions:
    """Answers of contractions: in the order at the bond dimension, at half of it, and in reverse; None if not made.

    ``is_whole`` says that nothing was truncated at the bond dimension; ``rounding`` is what rounding may do.
    """

    log_z: float
    half: float | None
    reverse: float | None
    is_whole: bool
    rounding: float

    @property
    def error(self) -> float:
        """What they disagree about."""
        error = self.rounding
        if self.reverse is not None:
            error = max(error, abs(self.log_z - self.reverse))
        if self.half is not None:
            error = max(error, SHARE_OF_HALF * abs(self.log_z - self.half))
        return error

    @property
    def is_checked(self) -> bool:
        """Whether there is anything to compare with."""
        return self.reverse is not None and (self.half is not None or self.is_whole)


@dataclass(frozen=True)
class Weighted:
    """States drawn from q, or from two of them in turn, with their log-weights log(P / q).

    Attributes
    ----------
    log_weight
        Of each state the log of its weight over its density.
    stratum
        Which distribution each was drawn from.
    negative
        Of each state the sum of shares of wrong sign.
    missed
        The share of P that heavy states have which were not to be expected among the draws.
    """

    log_weight: FloatArray
    stratum: NDArray[np.int64]
    negative: FloatArray
    missed: float = 0.0

    @property
    def log_z(self) -> float:
        """The log of the mean weight, an unbiased estimate of Z."""
        top = float(self.log_weight.max())
        return top + math.log(float(np.exp(self.log_weight - top).mean()))

    @property
    def shares(self) -> FloatArray:
        """The weights, which add up to 1."""
        weight = np.exp(self.log_weight - self.log_weight.max())
        return np.asarray(weight / weight.sum())

    @property
    def effective(self) -> float:
        """How many independent states of P these are worth."""
        return 1.0 / float((self.shares**2).sum())

    @property
    def std_error(self) -> float:
        """The standard error of log Z, from the scatter within the strata, widened where few states count."""
        relative = self.shares * len(self.shares)
        variance = 0.0
        for number in np.unique(self.stratum):
            own = relative[self.stratum == number]
            if len(own) > 1:
                variance += float(own.var(ddof=1)) * len(own)
        return math.sqrt(variance) / len(relative) * (1.0 + 20.0 / self.effective)

    @property
    def complaint(self) -> str:
        """What is wrong with the weights, as the end of a sentence; nothing if they are trusted."""
        words = ""
        if self.effective < max(FEWEST_EFFECTIVE, LEAST_SHARE * len(self.log_weight)):
            words += f"; {len(self.log_weight)} states are worth {self.effective:.1f}, too few to trust"
        if float(self.shares @ self.negative) > MOST_NEGATIVE:
            words += "; truncation has made probabilities negative"
        if self.missed > MOST_MISSED:
            words += f"; heavy states with {self.missed:.2g} of the weight are out of the sample's reach"
        return words


def log_mixture(log_densities: FloatArray) -> FloatArray:
    """Return the log of the mean of densities, one row each."""
    top = log_densities.max(axis=0)
    return np.asarray(top + np.log(np.exp(log_densities - top).mean(axis=0)))


def missed_share(x: NDArray[np.int8], log_weight: FloatArray, log_q: FloatArray, log_z: float, samples: int) -> float:
    """Return the share of Z that distinct states hold which are too rare under q to be expected in a sample."""
    _, first = np.unique(x, axis=0, return_index=True)
    share = np.exp(np.minimum(log_weight[first] - log_z, 50.0))
    rare = log_q[first] < math.log(EXPECTED_DRAWS / samples)
    # Part of what the sample does see may stand for them: only what exceeds q is missing.
    return float(np.maximum(share - np.exp(log_q[first]), 0.0)[rare].sum())


@dataclass(frozen=True)
class Judged:
    """What to make of it all: the answer, its error, whether to believe it, and why not, as the end of a sentence."""

    log_z: float
    std_error: float
    is_trusted: bool
    complaint: str


def judge(found: Contractions, sample: Weighted | None) -> Judged:
    """Combine contractions with a sample.

    Examples
    --------
    >>> same = Contractions(10.0, half=10.0, reverse=10.0, is_whole=False, rounding=1e-12)
    >>> judge(same, None)
    Judged(log_z=10.0, std_error=1e-12, is_trusted=True, complaint='')
    """
    error = found.error
    if sample is None:
        is_small = found.is_checked and error <= LARGEST_ERROR_ALONE
        words = ""
        if not found.is_checked:
            words = "; there was nothing to check it by"
        elif not is_small:
            words = f"; contractions disagree by {error:.2g}"
        if not found.is_checked:
            error = max(error, 1.0)
        return Judged(found.log_z, error, is_small, words)
    words = sample.complaint
    if words:
        # Neither is believed: the error covers both, and what heavy states add.
        apart = abs(found.log_z - sample.log_z)
        best = sample.log_z if sample.missed <= MOST_MISSED else max(sample.log_z, found.log_z)
        wide = max(error, apart, sample.std_error, math.log1p(sample.missed), LARGEST_ERROR_ALONE)
        return Judged(best, wide, False, words)
    statistical = max(sample.std_error, found.rounding)
    apart = abs(found.log_z - sample.log_z)
    if found.is_checked and error < statistical:
        log_z, std_error = found.log_z, error
        agrees = apart <= DEVIATIONS * statistical
    else:
        log_z, std_error = sample.log_z, statistical
        agrees = apart <= DEVIATIONS * (statistical + error) or not found.is_checked
    if agrees:
        return Judged(log_z, std_error, True, "")
    return Judged(
        sample.log_z, max(std_error, apart), False, f"; contraction and sample differ by {apart:.2g}, too much for both"
    )


def rounding_of(log_z: float, n: int, largest: float) -> float:
    """Return what rounding may do to the log of a sum over n spins whose log-weights are up to ``largest``."""
    return 16.0 * UNIT_ROUNDOFF * (abs(log_z) + largest + n)

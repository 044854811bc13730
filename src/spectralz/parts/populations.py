"""Combine cooled populations into estimates of log Z, marginals and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.parts.pairs import pairs_of
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising

__all__ = [
    "Annealed",
    "Mean",
    "combine",
    "deviation_of",
    "log_means",
    "marginals_of",
    "mean_and_shares",
    "outcome_of_runs",
    "pair_means",
    "sample_of",
    "systematic",
    "variance_of",
    "weights_of",
    "with_rounding",
]

# With fewer independent families than this, the populations may have lost important states, and the error is
# unreliable.
FEWEST_FAMILIES = 30.0
# Few families tell little about missing ones; their error is widened by this over their number.
MISSING_FAMILIES = 20.0
# The gap between the way down and the way back is noise up to this many of its errors, harmless up to this share of the
# answer's error, and ignored below the last of these.
GAP_DEVIATIONS, GAP_SHARE, LEAST_GAP = 3.0, 0.5, 0.05
# The largest deviation whose square does not overflow.
LARGEST_DEVIATION = 1e150
# Number of spins of states whose fields are computed together.
SPINS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Annealed:
    """A population that has arrived at beta = 1.

    Attributes
    ----------
    log_z
        Logarithm of an unbiased estimate of Z, without offset and trace.
    x
        The states, one per row.
    weight
        Their weights, which add up to 1.
    family
        The initial state that each one descends from.
    variance
        Relative variance of the estimate of Z, from the weights of the families: sum_k (W_k - 1/R)^2.
    gap
        The growth of log Z on the way down as estimated backwards, from the states after each step's sweeps, minus the
        growth estimated forwards. It is zero in equilibrium, up to noise.
    points, spread
        Points of the path that were visited, and the variance of the log-weights up to each of them, added up over
        resampled generations.
    """

    log_z: float
    x: NDArray[np.int8]
    weight: FloatArray
    family: NDArray[np.int64]
    variance: float
    gap: float = 0.0
    spread: FloatArray = field(default_factory=lambda: np.zeros(1))
    points: FloatArray = field(default_factory=lambda: np.ones(1))

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.x)

    @property
    def effort(self) -> float:
        """Number of sweeps over a state, which is about its weight relative to other runs."""
        return float(self.size * len(self.points))

    @property
    def dissipation(self) -> float:
        """The variance of the log-weights times the number of points, which hardly depends on that number."""
        return float(self.spread[-1]) * len(self.points)

    @property
    def families(self) -> float:
        """The effective number of independent states of this population."""
        return 1.0 / float((self.family_weights() ** 2).sum())

    def family_weights(self, values: FloatArray | None = None) -> FloatArray:
        """Return the weight of every family, or the sum of weight times ``values`` over its states."""
        counted = self.weight if values is None else self.weight * values
        return np.asarray(np.bincount(self.family, weights=counted, minlength=self.size), dtype=np.float64)


def mean_and_shares(log_weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of the mean weight, and each weight's share of the sum."""
    # Called at every temperature: scipy.special.logsumexp takes 20 times as long for a hundred states.
    top = float(log_weight.max())
    weight = np.exp(log_weight - top)
    total = float(weight.sum())
    return top + math.log(total / len(weight)), weight / total


def log_means(log_weights: FloatArray) -> FloatArray:
    """Return the logs of the mean weights of each row."""
    top = log_weights.max(axis=1)
    return np.asarray(top + np.log(np.exp(log_weights - top[:, None]).mean(axis=1)))


def deviation_of(values: FloatArray) -> FloatArray:
    """Return the standard deviation of each row, or of a vector, even if squares overflow."""
    apart = values - values.mean(axis=-1, keepdims=True)
    largest = np.maximum(np.abs(apart).max(axis=-1), np.finfo(float).tiny)
    return np.asarray(largest * np.sqrt(((apart / largest[..., None]) ** 2).mean(axis=-1)))


def variance_of(values: FloatArray) -> FloatArray:
    """Return the square of :func:`deviation_of`, at most 1e300."""
    return np.minimum(deviation_of(values), LARGEST_DEVIATION) ** 2


def systematic(weight: FloatArray, u: float, size: int) -> NDArray[np.int64]:
    """Return how many of ``size`` offspring each state has: its share, rounded up or down without bias."""
    reached = np.floor(size * np.cumsum(weight) + u)
    reached[-1] = size  # exactly, whatever the rounding of the sum; u is below 1
    return np.diff(np.minimum(reached, size), prepend=0.0).astype(np.int64)


@dataclass(frozen=True)
class Mean:
    """The combined estimate of several runs.

    Attributes
    ----------
    log_z
        Logarithm of the mean of their estimates of Z, weighted by effort; the mean is unbiased, as each of them is.
    std_error
        The larger of the two errors below, widened if families are few; or the shortfall of the weights if that is
        larger.
    family_error
        Standard error of log Z from the sizes of families within the runs.
    run_error
        The same from the scatter of the runs, 0 for a single run.
    families
        The effective number of independent states of all populations.
    gap, gap_error
        Mean of the runs' gaps, and its standard error, infinite for a single run.
    """

    log_z: float
    std_error: float
    family_error: float
    run_error: float
    families: float
    gap: float = 0.0
    gap_error: float = math.inf

    @property
    def has_families(self) -> bool:
        """Whether there are enough families for the error to be meaningful."""
        return self.families >= FEWEST_FAMILIES

    @property
    def is_closed(self) -> bool:
        """Whether the way down and the way back agree: their gap is noise, or less than the error."""
        return abs(self.gap) <= max(GAP_DEVIATIONS * self.gap_error, GAP_SHARE * self.std_error, LEAST_GAP)

    @property
    def is_trusted(self) -> bool:
        """Whether the error is trusted."""
        return self.has_families and self.is_closed

    @property
    def complaint(self) -> str:
        """The reason to distrust the runs, as the end of a sentence; empty if they are trusted."""
        words = ""
        if not self.has_families:
            words += f"; {self.families:.0f} independent families are left, too few to trust the answer or its error"
        if not self.is_closed:
            words += (
                f"; the growth of log Z differs by {self.gap:.2g} between the states before and after the sweeps: "
                "they are out of equilibrium, do not trust"
            )
        return words


def combine(found: Sequence[Annealed]) -> Mean:
    """Return the mean of runs, and two estimates of its error."""
    effort = np.array([run.effort for run in found])
    share = effort / effort.sum()
    logs = np.array([run.log_z for run in found])
    z = np.exp(logs - logs.max())
    mean = float(share @ z)
    family_error = math.sqrt(float((share * z) ** 2 @ [run.variance for run in found])) / mean
    run_error = 0.0
    if len(found) > 1:
        run_error = math.sqrt(float(share @ (z - mean) ** 2) / (len(found) - 1)) / mean
    posterior = share * z / mean
    families = 1.0 / float(posterior**2 @ [1.0 / run.families for run in found])
    std_error = max(family_error, run_error) * (1.0 + MISSING_FAMILIES / families)
    if families < FEWEST_FAMILIES:
        variance, states = float(share @ [run.spread[-1] for run in found]), sum(run.size for run in found)
        std_error = max(std_error, _shortfall(variance, states))
    gaps = np.array([run.gap for run in found])
    gap = float(share @ gaps)
    largest = max(float(np.abs(gaps).max()), 1.0)  # factored out, since the squares may overflow
    gap_error = math.inf
    if len(found) > 1:
        gap_error = largest * math.sqrt(float(share @ ((gaps - gap) / largest) ** 2) / (len(found) - 1))
    return Mean(
        float(logs.max()) + math.log(mean), std_error, family_error, run_error, families, gap=gap, gap_error=gap_error
    )


def _shortfall(variance: float, states: int) -> float:
    """Return the scale by which the log of the mean of some weights is too small, given the variance of their logs.

    For a normal distribution of variance V the log of the mean is V / 2 above the mean log. With R weights it hardly
    exceeds the largest one, sqrt(2 V log R) above the mean log. The distribution has a finite range, so at most as much
    again is expected.
    """
    largest = math.sqrt(2.0 * variance * math.log(states))
    return min(max(0.5 * variance - largest, 0.0), largest)


def with_rounding(std_error: float, log_z: float) -> float:
    """Return a standard error that includes the rounding of a huge answer."""
    return math.hypot(std_error, 8.0 * UNIT_ROUNDOFF * log_z)


def outcome_of_runs(
    model: Ising, found: Sequence[Annealed], mean: Mean, temperatures: int, words: str, *, interrupted: bool = False
) -> Outcome:
    """Return the estimate of log Z from runs and their mean; ``words`` describe the runs."""
    log_z = mean.log_z + model.constant
    return Outcome(
        log_z=log_z,
        kind=Kind.ESTIMATE,
        status=Status(words, converged=mean.is_trusted and not interrupted),
        std_error=with_rounding(mean.std_error, log_z),
        iterations=temperatures - 1,
        trusted=mean.is_trusted,
        interrupted=interrupted,
        details={
            "families": mean.families,
            "family_error": mean.family_error,
            "run_error": mean.run_error,
            "gap": mean.gap,
            "log_z_of_runs": [run.log_z + model.constant for run in found],
            "temperatures": temperatures,
            "interrupted": interrupted,
        },
    )


def weights_of(found: Sequence[Annealed]) -> list[FloatArray]:
    """Return the weights of the states of every run in the mean of all."""
    top = max(run.log_z for run in found)
    totals = np.array([run.effort * math.exp(run.log_z - top) for run in found])
    return [run.weight * total for run, total in zip(found, totals / totals.sum(), strict=True)]


def sample_of(found: Sequence[Annealed], size: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw states from populations by their weights, in random order; as few as possible are drawn twice."""
    x = np.concatenate([run.x for run in found])
    weight = np.concatenate(weights_of(found))
    places = np.repeat(np.arange(len(x)), systematic(weight, rng.random(), size))
    return np.asarray(x[rng.permutation(places)])


def marginals_of(model: Ising, found: Sequence[Annealed], outcome: Outcome) -> MarginalOutcome:
    """Return the marginals that weighted populations give.

    A spin's mean given all others is tanh of its field. The average of that has the same expectation as that of the
    spin, is less noisy, and keeps its digits where the spin is almost fixed.
    """
    from scipy.special import expit

    from spectralz.kernels.sampling.heat_bath import refresh

    pairs = pairs_of(model)
    up = np.zeros(model.n)
    down = np.zeros(model.n)
    pair_mean = np.zeros(len(pairs))
    couplings = model.storage.for_kernels()
    for run, weight in zip(found, weights_of(found), strict=True):
        together = max(SPINS_AT_ONCE // max(model.n, 1), 1)
        for part in (slice(k, k + together) for k in range(0, run.size, together)):
            x, h = run.x[part], np.empty((len(run.x[part]), model.n))
            refresh(x, h, model.field, couplings)
            up += weight[part] @ expit(2.0 * h)
            down += weight[part] @ expit(-2.0 * h)
            if len(pairs):
                pair_mean += pair_means(x, np.tanh(h), weight[part], pairs)
    total = up + down  # 1 but for rounding
    return MarginalOutcome(
        probability=np.stack([down, up], axis=1) / total[:, None],
        mean=(up - down) / total,
        pair_mean=np.clip(pair_mean, -1.0, 1.0),
        kind=Kind.ESTIMATE,
        outcome=outcome,
    )


def pair_means(
    x: NDArray[np.int8], y: FloatArray | NDArray[np.int8], weight: FloatArray, pairs: NDArray[np.int64]
) -> FloatArray:
    """Return the weighted means of (x_i y_j + x_j y_i) / 2 along the edges; y is x, or its mean given the rest."""
    i, j = pairs.T
    n = x.shape[1]
    if len(pairs) * 8 > n * n:  # dense enough for a matrix product
        products = (x * weight[:, None]).T @ y
        return np.asarray(0.5 * (products[i, j] + products[j, i]))
    means = np.empty(len(pairs))
    for k in range(0, len(pairs), 256):
        a, b = i[k : k + 256], j[k : k + 256]
        means[k : k + 256] = 0.5 * weight @ (x[:, a] * y[:, b] + x[:, b] * y[:, a])
    return means

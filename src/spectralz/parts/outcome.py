"""The outcome of a method, before it is timed and packed into a result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.parts.pairs import pairs_of
from spectralz.result import AnyMethod, Interval, Kind, Populations, Status, Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising


# An interval is called exact up to this half-width, as a share of log Z or of 1.
EXACT_WIDTH = 1e-9
# A value that rounding may change by more is not trusted, although its interval is proven.
LARGEST_TRUSTED_ROUNDING = 0.01
# The largest rounding error of means that are called exact.
LARGEST_MEAN_ERROR = 1e-9
# A value is called impossible only if it violates a bound by more than rounding can explain.
SANITY_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The return value of a method's ``_solve``; ``run`` turns it into an Estimate, which describes the fields.

    ``method`` names the method that really ran if it is not the one called, as with ``auto``. ``trusted`` is None if
    the method has no verdict beyond the kind of number it gives.
    """

    log_z: float
    kind: Kind
    status: Status
    lower: float | None = None
    upper: float | None = None
    std_error: float | None = None
    interval: Interval | None = None
    iterations: int | None = None
    trusted: bool | None = None
    checked_by: tuple[str, ...] = ()
    interrupted: bool = False
    tried: tuple[Trial, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    method: AnyMethod | None = None
    populations: Populations | None = None

    @property
    def is_trusted(self) -> bool:
        """The verdict: the method's own, or the one implied by its kind of number."""
        return self.kind.is_proven if self.trusted is None else self.trusted


@dataclass(frozen=True)
class MarginalOutcome:
    """The return value of a method's ``_solve_marginals``.

    Pairs are those of ``model.edges()``, in its order. If they are not wanted (``parts/pairs.py``), ``pair_mean`` is
    not used. The standard errors are None if the means are exact, or if the method has none.
    """

    probability: NDArray[np.float64]
    mean: NDArray[np.float64]
    pair_mean: NDArray[np.float64]
    kind: Kind
    outcome: Outcome
    std_error: NDArray[np.float64] | None = None
    pair_std_error: NDArray[np.float64] | None = None

    def within_limits(self) -> MarginalOutcome:
        """Return the same without what rounding may have put beyond 0 and 1, or -1 and 1."""
        probability = np.clip(self.probability, 0.0, 1.0)
        mean, pair_mean = (np.clip(means, -1.0, 1.0) for means in (self.mean, self.pair_mean))
        return replace(self, probability=probability, mean=mean, pair_mean=pair_mean)

    def with_rest(self, share: float) -> MarginalOutcome:
        """Return the same with wider errors, for means over a part of the states: others hold this share of P(x).

        Their means may be anything between -1 and 1, and on average the square of the change is share^2 (1/3 + mean^2).
        """
        error, pair_error = (share * np.sqrt(1.0 / 3.0 + means**2) for means in (self.mean, self.pair_mean))
        return replace(
            self,
            std_error=error if self.std_error is None else np.hypot(self.std_error, error),
            pair_std_error=pair_error if self.pair_std_error is None else np.hypot(self.pair_std_error, pair_error),
        )

    def checked_by(self, other: MarginalOutcome) -> MarginalOutcome:
        """Return the same with errors that others, which have errors, allow: what they differ by, and their errors."""
        if other.std_error is None or other.pair_std_error is None:
            return self
        pair_mean = self.pair_mean[: len(other.pair_mean)]  # all, or none if pairs are not wanted
        return replace(
            self,
            std_error=np.abs(self.mean - other.mean) + other.std_error,
            pair_std_error=np.abs(pair_mean - other.pair_mean) + other.pair_std_error,
        )


def contradiction(
    value: float, lower: float, upper: float, weight: float, below: str, above: str, verdict: str = "impossible"
) -> str:
    """Say, as the end of a sentence, why a log Z cannot be right if it violates bounds; otherwise nothing.

    ``weight`` is the total of all weights, which sets the rounding that is excused. ``below`` and ``above`` name the
    bounds, and ``verdict`` is for a value above the upper one.
    """
    slack = SANITY_SLACK * max(1.0, weight)
    if value < lower - slack:
        return f"; the value is impossible: {lower - value:.3g} below {below}"
    if value > upper + slack:
        return f"; the value is {verdict}: {value - upper:.3g} above {above}"
    return ""


def exact_outcome(log_z: float, rounding: float, words: str, **others: Any) -> Outcome:
    """Return an exact log Z, enclosed with its rounding error."""
    return Outcome(
        log_z=log_z, kind=Kind.EXACT, status=Status(words), lower=log_z - rounding, upper=log_z + rounding, **others
    )


def impossible_outcome(words: str = "exact") -> Outcome:
    """Return the log Z of a model whose constraints no state satisfies: minus infinity."""
    zero = -math.inf
    status = Status(f"{words}; no state satisfies the constraints, so Z is 0")
    return Outcome(log_z=zero, kind=Kind.EXACT, status=status, lower=zero, upper=zero, details={"rounding": 0.0})


def saying(outcome: Outcome, words: str, **changes: Any) -> Outcome:
    """Return an outcome whose status goes on with these words; it has not converged if it is no longer trusted."""
    converged = outcome.status.converged and changes.get("trusted", True)
    return replace(outcome, status=Status(f"{outcome.status}{words}", converged=converged), **changes)


def with_proven_kind(outcome: Outcome) -> Outcome:
    """Return an outcome that is called exact only if its own enclosure is narrow; with cancellation it may not be."""
    if outcome.kind is not Kind.EXACT or outcome.lower is None or outcome.upper is None:
        return outcome
    error = (outcome.upper - outcome.lower) / 2.0 if outcome.upper > outcome.lower else 0.0  # both may be -inf
    if error <= EXACT_WIDTH * max(1.0, abs(outcome.log_z)):
        return outcome
    words = f"; the weights are so large that rounding may change log Z by {error:.1g}"
    return saying(outcome, words, kind=Kind.ESTIMATE, std_error=error, trusted=error <= LARGEST_TRUSTED_ROUNDING)


def with_kind_of_means(outcome: Outcome, change: float) -> tuple[Outcome, Kind]:
    """Return the kind of means with a rounding error of up to ``change``, and an outcome that states it if large."""
    if change <= LARGEST_MEAN_ERROR:
        return outcome, Kind.EXACT
    words = f"; the weights are so large that rounding may change means by {min(change, 2.0):.1g}"
    return saying(outcome, words), Kind.ESTIMATE


def probabilities(h: FloatArray) -> FloatArray:
    """Return P(x_i = -1) and P(x_i = +1) of spins in the fields h; small ones keep their digits."""
    from scipy.special import expit

    return np.column_stack([expit(-2.0 * h), expit(2.0 * h)])


def independent_spins(model: Ising, h: FloatArray, outcome: Outcome) -> MarginalOutcome:
    """Return the marginals of independent spins with the fields h; exact if the model's spins are independent."""
    mean = np.tanh(h)
    pairs = pairs_of(model)
    kind = Kind.EXACT if outcome.kind is Kind.EXACT else Kind.ESTIMATE
    return MarginalOutcome(probabilities(h), mean, mean[pairs[:, 0]] * mean[pairs[:, 1]], kind, outcome)

"""What is asked of the portfolio, and the answers that its methods have given so far: frozen values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spectralz.portfolio import policy
from spectralz.result import Bounds, Kind
from spectralz.sampling.engines.collapsed import sides_that_pay
from spectralz.trust.agreement import LARGEST_CHECKING_ERROR, agree, is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome, Outcome


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The question: log Z of a model with at least one spin.

    Attributes
    ----------
    model
        The model.
    tol
        Standard error at which to stop early.
    exclude
        Names of methods to leave out.
    seed
        Seed of all random choices.
    max_memory
        Most memory for tables and populations, in bytes.
    with_means
        Whether marginals are wanted beside log Z.
    """

    model: Model
    tol: float
    exclude: tuple[str, ...] = ()
    seed: int = 0
    max_memory: int = 4 * 2**30
    with_means: bool = False

    @cached_property
    def sums_out_many(self) -> bool:
        """Whether the model has many spins, and annealing sums out one of its two sides."""
        return self.model.n >= policy.MANY_SPINS_OF_SIDES and sides_that_pay(self.model) is not None


@dataclass(frozen=True)
class Answer:
    """The answer of one method.

    Attributes
    ----------
    method
        The name of the method.
    outcome
        Its log Z, and how far it trusts it.
    seconds
        How long it took.
    marginals
        Computes the marginals that belong to it.
    """

    method: str
    outcome: Outcome
    seconds: float
    marginals: Callable[[], MarginalOutcome] | None = None

    @property
    def log_z(self) -> float:
        """Its log Z."""
        return self.outcome.log_z

    @property
    def error(self) -> float:
        """Its error: that of rounding if it is exact, infinite if it gives none."""
        outcome = self.outcome
        if outcome.kind is Kind.EXACT and outcome.lower is not None and outcome.upper is not None:
            return 0.5 * (outcome.upper - outcome.lower)
        return math.inf if outcome.std_error is None else outcome.std_error

    @property
    def has_samples(self) -> bool:
        """Whether its error comes from samples."""
        return self.method not in policy.WITHOUT_SAMPLES

    def is_as_good_as(self, tol: float) -> bool:
        """Return whether it is trusted, with an error up to ``tol``."""
        return self.outcome.is_trusted and self.error <= tol

    def is_within(self, bounds: Bounds) -> bool:
        """Return whether the answer is consistent with proven bounds, within its error."""
        return is_within(self.log_z, self.error, bounds.lower, bounds.upper)

    def agrees_with(self, other: Answer) -> bool:
        """Return whether two answers agree within their errors."""
        return agree((self.log_z, self.error), (other.log_z, other.error))

    def checks(self, other: Answer) -> bool:
        """Return whether it confirms an answer of another kind: it agrees, and its error is small enough to tell."""
        kinds = {policy.KINDS.get(answer.method, answer.method) for answer in (self, other)}
        return len(kinds) == 2 and self.error <= LARGEST_CHECKING_ERROR and self.agrees_with(other)


@dataclass(frozen=True)
class Answers:
    """The answers so far; a step of the schedule returns new ones.

    Attributes
    ----------
    bounds
        The best proven bounds.
    by_method
        The latest answer of each method.
    not_run
        The methods that gave no answer, and why.
    is_interrupted
        Whether an interrupt ended the work.
    complaint
        What to tell of workers that lost runs.
    """

    bounds: Bounds
    by_method: Mapping[str, Answer] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    is_interrupted: bool = False
    complaint: str = ""

    def with_answer(self, answer: Answer) -> Answers:
        """Replace the earlier answer of a method, add up their times, and take over the bounds that it proves."""
        before = self.by_method.get(answer.method)
        answer = answer if before is None else replace(answer, seconds=before.seconds + answer.seconds)
        bounds, lower, upper = self.bounds, answer.outcome.lower, answer.outcome.upper
        if lower is not None and lower > bounds.lower:
            bounds = replace(bounds, lower=lower, lower_method=answer.method)
        if upper is not None and upper < bounds.upper:
            bounds = replace(bounds, upper=upper, upper_method=answer.method)
        return replace(self, bounds=bounds, by_method={**self.by_method, answer.method: answer})

    def without(self, why: str, *methods: str) -> Answers:
        """Say why methods were not run."""
        return replace(self, not_run={**self.not_run, **dict.fromkeys(methods, why)})

    def trusts(self, method: str) -> bool:
        """Return whether a method has an answer that it trusts."""
        return method in self.by_method and self.by_method[method].outcome.is_trusted

    def is_compressed(self, tol: float) -> bool:
        """Return whether compressed elimination has given an answer as accurate as wanted."""
        return "mps" in self.by_method and self.by_method["mps"].is_as_good_as(tol)

    def wanted_growth(self, tol: float) -> float:
        """Return by which factor the states must grow to reach the wanted error."""
        errors = [answer.error for answer in self.by_method.values() if answer.outcome.is_trusted]
        return min(min(errors) / tol, policy.MOST_GROWTH) ** 2 if errors else math.inf

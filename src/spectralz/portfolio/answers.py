"""What is asked of the portfolio, and the answers that its methods have given so far: frozen values.

The verdict says which of several answers to trust, and how far. It is a pure function of answers and bounds.

No method can detect all the ways in which it can be wrong. An answer is believed if its own method trusts it and it is
consistent with the proven bounds. Of the believed answers the one with the smallest error is chosen, and its error
covers the others. If samples disagree with an answer without samples, the samples are preferred. The chosen answer is
trusted if nothing contradicts it: no other believed answer, and for one without samples no sampler that distrusts
itself. Whether a method of another kind agreed is a second fact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz.portfolio import policy
from spectralz.result import Bounds, Kind, Trial, Verdict
from spectralz.sampling.engines.collapsed import sides_that_pay
from spectralz.trust.judgment import DOUBT, LARGEST_CHECKING_ERROR, WIDTHS_PER_DEVIATION, agree, is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome, Outcome
    from spectralz.result import Bounds, BoundsRow


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


def too_long(what: str, needed: float, left: float) -> str:
    """Say that something would take longer than there is time for."""
    return f"{what} would take about {clock.in_words(needed)}, {clock.in_words(left)} are left"


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


# ---------------------------------------------------------------------------------------------------------- the verdict


@dataclass(frozen=True)
class Conclusion:
    """The conclusion from all answers.

    Attributes
    ----------
    log_z, std_error
        The answer, and an error that covers what was not decided.
    chosen
        The name of the method that gave it; None if there was no answer to choose.
    why
        Why it was chosen, as a sentence.
    verdicts
        The verdicts on the methods.
    checked_by
        The methods of another kind that agreed with a trusted answer.
    trusted
        Whether the method's own checks hold and nothing contradicts it.
    tried
        One row for each answer, each method that was not run, and each bound.
    """

    log_z: float
    std_error: float
    chosen: str | None
    why: str
    verdicts: Mapping[str, Verdict]
    checked_by: tuple[str, ...] = ()
    trusted: bool = False
    tried: tuple[Trial, ...] = ()


def conclude(answers: Sequence[Answer], bounds: Bounds, not_run: Mapping[str, str]) -> Conclusion:
    """Choose among answers and explain the choice, with an error that covers their disagreement.

    Parameters
    ----------
    answers
        The answers of the methods, one each.
    bounds
        Proven bounds.
    not_run
        The methods that gave no answer, and why.
    """
    believed = [answer for answer in answers if answer.outcome.is_trusted and answer.is_within(bounds)]
    choice = _agreed(believed, answers, bounds) if believed else _doubted(answers, bounds)
    trusted = bool(believed) and Verdict.DISAGREES not in choice.verdicts.values()
    rows = [_trial_of(answer, choice.verdicts.get(answer.method, Verdict.NOT_TRUSTED), bounds) for answer in answers]
    rows += [Trial(method=name, verdict=Verdict.NOT_RUN, why=reason) for name, reason in not_run.items()]
    rows += [_trial_of_bound(row) for row in bounds.rows]
    return replace(
        choice,
        # Rounding and errors within their bars may leave the bracket slightly.
        log_z=min(max(choice.log_z, bounds.lower), bounds.upper),
        trusted=trusted,
        checked_by=choice.checked_by if trusted else (),
        tried=tuple(rows),
    )


def _agreed(believed: Sequence[Answer], answers: Sequence[Answer], bounds: Bounds) -> Conclusion:
    """Choose among trusted answers: the smallest error, widened if others disagree."""
    chosen = min(believed, key=lambda answer: answer.error)
    why = f"{chosen.method} has the smallest error bar"
    sampled = [answer for answer in believed if answer.has_samples]
    if not chosen.has_samples and any(not answer.agrees_with(chosen) for answer in sampled):
        chosen = min(sampled, key=lambda answer: answer.error)
        why = f"{chosen.method} has the smallest error bar of those with samples"
    others = [answer for answer in believed if answer is not chosen]
    samplers = [answer for answer in answers if answer.method in policy.SAMPLERS]
    doubtful = [] if others or chosen.has_samples else samplers
    rivals = [answer for answer in others if not answer.agrees_with(chosen)]
    verdicts = {answer.method: Verdict.DISAGREES if answer in rivals else Verdict.AGREES for answer in others}
    verdicts[chosen.method] = Verdict.CHOSEN
    if rivals:
        why += f"; {_named(rivals)} disagree{_s(rivals)}, so it was widened: do not trust"
    elif others:
        why += f"; {_named(others)} agree{_s(others)}"
    elif doubtful:
        doubts, contradicting = _compared_with_doubtful(chosen, doubtful, bounds)
        why += doubts
        rivals = [answer for answer in contradicting if answer.is_within(bounds)]
        verdicts |= {answer.method: Verdict.DISAGREES for answer in contradicting}
    else:
        why += "; there was no second method to check it"
    # Two standard errors reach the farthest of them.
    gap = max((abs(answer.log_z - chosen.log_z) for answer in rivals), default=0.0)
    checked_by = tuple(answer.method for answer in (*others, *doubtful) if answer.checks(chosen))
    return Conclusion(chosen.log_z, max(chosen.error, gap / 2.0), chosen.method, why, verdicts, checked_by)


def _compared_with_doubtful(chosen: Answer, doubtful: Sequence[Answer], bounds: Bounds) -> tuple[str, list[Answer]]:
    """Compare an answer with samplers that distrust themselves; return the words, and which of them contradict it."""
    contradicting = [answer for answer in doubtful if not (answer.is_within(bounds) and answer.agrees_with(chosen))]
    if not contradicting:
        if any(answer.checks(chosen) for answer in doubtful):
            return f"; {_named(doubtful)} agree{_s(doubtful)} despite failed checks", []
        return f"; the error of {_named(doubtful)} is too large for a check", []
    outside = any(not answer.is_within(bounds) for answer in contradicting)
    words = f"lie{_s(contradicting)} outside the proven bounds" if outside else f"disagree{_s(contradicting)}"
    return f"; {_named(contradicting)} {words}, and nothing confirms this answer: do not trust", contradicting


def _doubted(answers: Sequence[Answer], bounds: Bounds) -> Conclusion:
    """Choose if no answer is trusted: the smallest error, with an error bar that is not reliable."""
    deviation = bounds.width / WIDTHS_PER_DEVIATION
    finite = [answer for answer in answers if answer.error < math.inf]
    guesses = [answer for answer in finite if answer.is_within(bounds)]
    if finite and not guesses:
        return _closest_bound(finite, bounds)
    if not guesses:
        why = "no method gave a usable answer: this is the middle of the proven bounds; raise the budget"
        if bounds.lower == -math.inf:
            why = "no state was found that satisfies all constraints: there may be none; raise the budget"
        return Conclusion(0.5 * (bounds.lower + bounds.upper), deviation, None, why, {})
    chosen = min(guesses, key=lambda answer: answer.error)
    gap = max((abs(answer.log_z - chosen.log_z) for answer in guesses if not answer.agrees_with(chosen)), default=0.0)
    wanted = max(DOUBT * chosen.error, gap / 2.0)
    error = max(chosen.error, min(wanted, deviation))
    why = f"no method trusts its own answer: raise the budget; {chosen.method} has the smallest error"
    if wanted > deviation:
        why += ", limited by the width of the proven bounds"
    elif gap / 2.0 > DOUBT * chosen.error:
        why += ", widened to cover the others"
    else:
        why += f", widened {DOUBT:g} times"
    return Conclusion(chosen.log_z, error, chosen.method, why, {chosen.method: Verdict.CHOSEN})


def _closest_bound(outside: Sequence[Answer], bounds: Bounds) -> Conclusion:
    """Choose the proven bound beyond which the closest answer lies, with an error that reaches as far to the inside."""

    def beyond(answer: Answer) -> float:
        return max(bounds.lower - answer.log_z, answer.log_z - bounds.upper)

    closest = min(outside, key=beyond)
    log_z = min(max(closest.log_z, bounds.lower), bounds.upper)
    error = max(closest.error, min(beyond(closest), bounds.width / WIDTHS_PER_DEVIATION))
    why = f"{_named([closest])} lies outside the proven bounds: this is the bound that is closest to it"
    return Conclusion(log_z, error, None, why, {})


def _trial_of(answer: Answer, verdict: Verdict, bounds: Bounds) -> Trial:
    return Trial(
        method=answer.method,
        log_z=answer.log_z,
        std_error=answer.outcome.std_error,
        lower=answer.outcome.lower,
        upper=answer.outcome.upper,
        seconds=answer.seconds,
        verdict=verdict,
        why=str(answer.outcome.status) if answer.is_within(bounds) else "outside the proven bounds",
    )


def _trial_of_bound(row: BoundsRow) -> Trial:
    return Trial(
        method=row.method,
        lower=row.lower,
        upper=row.upper,
        seconds=row.seconds,
        verdict=Verdict.NOT_RUN if row.lower is None and row.upper is None else Verdict.BOUND,
        why=row.status,
    )


def _named(answers: Sequence[Answer]) -> str:
    return " and ".join(f"{answer.method} ({answer.log_z:.6f} ± {answer.error:.2g})" for answer in answers)


def _s(answers: Sequence[Answer]) -> str:
    """Return the ending of a verb in the present tense."""
    return "s" if len(answers) == 1 else ""

"""Decide which of several answers to trust, and how far: a pure function of answers and bounds, without a clock.

No method can detect all the ways in which it can be wrong. An answer is believed if its own method trusts it and it is
consistent with the proven bounds. Of the believed answers the one with the smallest error is chosen, and its error
covers the others. If samples disagree with an answer without samples, the samples are preferred. The chosen answer is
trusted if nothing contradicts it: no other believed answer, and for one without samples no sampler that distrusts
itself. Whether a method of another kind agreed is a second fact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spectralz.portfolio import policy
from spectralz.result import Trial, Verdict
from spectralz.trust.agreement import DOUBT, WIDTHS_PER_DEVIATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spectralz.portfolio.answers import Answer
    from spectralz.result import Bounds, BoundsRow


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
    trusted
        Whether the method's own checks hold and nothing contradicts it.
    checked_by
        The methods of another kind that agreed with a trusted answer.
    tried
        One row for each answer, each method that was not run, and each bound.
    """

    log_z: float
    std_error: float
    chosen: str | None
    why: str
    trusted: bool
    checked_by: tuple[str, ...]
    tried: tuple[Trial, ...]


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
    return Conclusion(
        # Rounding and errors within their bars may leave the bracket slightly.
        log_z=min(max(choice.log_z, bounds.lower), bounds.upper),
        std_error=choice.error,
        chosen=choice.chosen,
        why=choice.why,
        trusted=trusted,
        checked_by=choice.checked_by if trusted else (),
        tried=tuple(rows),
    )


class _Choice(NamedTuple):
    """An answer with its error, the method that gave it, why, the verdicts on the methods, and which of them agreed."""

    log_z: float
    error: float
    chosen: str | None
    why: str
    verdicts: dict[str, Verdict]
    checked_by: tuple[str, ...] = ()


def _agreed(believed: Sequence[Answer], answers: Sequence[Answer], bounds: Bounds) -> _Choice:
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
    return _Choice(chosen.log_z, max(chosen.error, gap / 2.0), chosen.method, why, verdicts, checked_by)


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


def _doubted(answers: Sequence[Answer], bounds: Bounds) -> _Choice:
    """Choose if no answer is trusted: the smallest error, with an error bar that is not reliable."""
    deviation = bounds.width / WIDTHS_PER_DEVIATION
    finite = [answer for answer in answers if answer.error < math.inf]
    guesses = [answer for answer in finite if answer.is_within(bounds)]
    if finite and not guesses:
        return _closest_bound(finite, bounds)
    if not guesses:
        why = "no method gave a usable answer: this is the middle of the proven bounds; raise the budget"
        return _Choice(0.5 * (bounds.lower + bounds.upper), deviation, None, why, {})
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
    return _Choice(chosen.log_z, error, chosen.method, why, {chosen.method: Verdict.CHOSEN})


def _closest_bound(outside: Sequence[Answer], bounds: Bounds) -> _Choice:
    """Choose the proven bound beyond which the closest answer lies, with an error that reaches as far to the inside."""

    def beyond(answer: Answer) -> float:
        return max(bounds.lower - answer.log_z, answer.log_z - bounds.upper)

    closest = min(outside, key=beyond)
    log_z = min(max(closest.log_z, bounds.lower), bounds.upper)
    error = max(closest.error, min(beyond(closest), bounds.width / WIDTHS_PER_DEVIATION))
    why = f"{_named([closest])} lies outside the proven bounds: this is the bound that is closest to it"
    return _Choice(log_z, error, None, why, {})


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

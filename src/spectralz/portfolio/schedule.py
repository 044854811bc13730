"""Several estimates of one log Z by a deadline, compared with each other and with proven bounds.

Expectation propagation is good for weak couplings, sums over states for strong ones, and annealing in between and as a
check of both. The schedule says in which order they run, and how long; ``answers.py`` draws the conclusion.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spectralz._support.deadline import Deadline
from spectralz._support.progress import note
from spectralz._support.threads import using_threads
from spectralz.errors import catching_interrupt
from spectralz.methods.base import estimated
from spectralz.methods.mean_field import MeanField
from spectralz.parts.outcome import Outcome
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer, Answers, Problem, conclude
from spectralz.portfolio.bracket import BOUNDERS, bound, trivial_bounds
from spectralz.portfolio.steps.anneal import anneal
from spectralz.portfolio.steps.before_annealing import compress, pass_messages, propagate
from spectralz.result import Kind, Status
from spectralz.sampling.long_runs import long_run
from spectralz.trust.judgment import Judgment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spectralz.parts.outcome import MarginalOutcome
    from spectralz.portfolio.answers import Conclusion

# Names that may be excluded; bounders have their own names.
METHODS_TRIED = tuple(
    dict.fromkeys(["exact", "planar", "quadrature", "ep", "bp", "mps", "annealing", "states", *BOUNDERS])
)


@dataclass(frozen=True)
class Step:
    """A step of the schedule, and its time: the longer of these.

    Attributes
    ----------
    run
        Takes the problem, a deadline and the answers so far, and returns new ones, or yields them one by one.
    of_left
        A share of what is left of the budget.
    of_budget
        A share of the whole budget.
    """

    run: Callable[[Problem, Deadline, Answers], Answers | Iterator[Answers]]
    of_left: float = 0.0
    of_budget: float = 0.0

    def deadline(self, whole: Deadline) -> Deadline:
        """Return the deadline of this step, if it begins now."""
        return Deadline.after(max(self.of_left * whole.left, self.of_budget * whole.seconds))


# The order of the steps. Annealing gets some time in any case, even if others took too long.
STEPS = (
    Step(bound, of_budget=policy.BOUNDS_SHARE),
    Step(compress, of_left=policy.MPS_SHARE),
    Step(propagate, of_left=policy.EP_SHARE),
    Step(pass_messages, of_left=policy.BP_SHARE),
    Step(anneal, of_left=1.0, of_budget=policy.LEAST_FOR_ANNEALING),
    Step(bound, of_left=policy.NEXT_ROUND_SHARE),
)


def answer(problem: Problem, deadline: Deadline) -> Answers:
    """Run the steps one after the other; an interrupt keeps the answers so far.

    What earlier calls have done is only continued: their bounds are known, and populations are added to theirs.
    """
    answers, steps = Answers(trivial_bounds(problem.model)), list(STEPS)
    if long_run().earlier is not None:
        answers, steps = _with_earlier(answers), [step for step in STEPS if step.run is anneal]
    with catching_interrupt() as interrupt, using_threads(None, problem.model.n):
        for step in steps:
            found = step.run(problem, step.deadline(deadline), answers)
            for latest in [found] if isinstance(found, Answers) else found:
                if latest is not answers:
                    answers = latest
                    _note(answers)
            if answers.is_interrupted:
                break
    return replace(answers, is_interrupted=True) if interrupt.happened else answers


def _note(answers: Answers) -> None:
    """Note the answer so far, for the history and the progress line."""
    bounds, families = answers.bounds, None
    if "annealing" in answers.by_method:
        families = answers.by_method["annealing"].outcome.details.get("families")
    found = _conclusion(answers) if answers.by_method else None
    value, error = (None, None) if found is None else (found.log_z, found.std_error)
    note(value, error, families, bounds.lower, bounds.upper)


def _with_earlier(answers: Answers) -> Answers:
    """Add the bounds that earlier calls have proven, and the answers that methods other than annealing trusted."""
    done = long_run()
    bounds = Outcome(log_z=0.0, kind=Kind.LOWER_BOUND, status=Status(""), lower=done.lower, upper=done.upper)
    answers = replace(answers.with_answer(Answer("an earlier call", bounds, 0.0)), by_method={})
    for trial in done.answers:
        assert trial.log_z is not None
        judged = Judgment(trial.log_z, trial.std_error or 0.0, True)
        answers = answers.with_answer(Answer(trial.method, estimated(judged, trial.why), trial.seconds))
    return answers


def outcome_of(answers: Answers, deadline: Deadline) -> Outcome:
    """Return the verdict on the answers, as the outcome of all methods together."""
    return _outcome(_conclusion(answers), answers, deadline)


def marginals_of(problem: Problem, answers: Answers, deadline: Deadline) -> MarginalOutcome:
    """Return the marginals of the method chosen, with the answer of all."""
    conclusion = _conclusion(answers)
    outcome = _outcome(conclusion, answers, deadline)
    chosen = conclusion.chosen
    if chosen is None:  # only mean field gives any information on the spins
        with _time_for_means(answers, deadline).in_force():
            return replace(MeanField(restarts=policy.RESTARTS)._solve_marginals(problem.model), outcome=outcome)
    if chosen == "states" and answers.trusts("annealing"):
        # A pool that holds 80% of P(x) can give log Z, since the share is measured, but not the means.
        share = answers.by_method["states"].outcome.details["share"]
        chosen = "annealing" if share < policy.SHARE_FOR_MARGINALS else chosen
    marginals = answers.by_method[chosen].marginals
    assert marginals is not None
    with _time_for_means(answers, deadline).in_force() if chosen == "annealing" else nullcontext():
        found = replace(marginals(), kind=Kind.ESTIMATE, outcome=outcome)
    if found.std_error is not None or answers.is_interrupted or not answers.trusts("annealing"):
        return found
    sampled = answers.by_method["annealing"].marginals
    if sampled is None:
        return found
    with _time_for_means(answers, deadline).in_force():
        return found.checked_by(sampled())


def _time_for_means(answers: Answers, deadline: Deadline) -> Deadline:
    """Return until when means over samples may be computed."""
    if answers.is_interrupted:
        return Deadline.after(policy.SECONDS_FOR_MEANS_AFTER_INTERRUPT)
    return Deadline.after(max(deadline.left, policy.SHARE_FOR_MEANS * deadline.seconds))


def _conclusion(answers: Answers) -> Conclusion:
    return conclude(list(answers.by_method.values()), answers.bounds, answers.not_run)


def _outcome(conclusion: Conclusion, answers: Answers, deadline: Deadline) -> Outcome:
    is_interrupted = answers.is_interrupted
    words = ("interrupted: " if is_interrupted else "") + conclusion.why + answers.complaint
    return Outcome(
        log_z=conclusion.log_z,
        kind=Kind.ESTIMATE,
        status=Status(words, converged=conclusion.trusted and not is_interrupted),
        lower=answers.bounds.lower,
        upper=answers.bounds.upper,
        std_error=conclusion.std_error,
        trusted=conclusion.trusted,
        checked_by=conclusion.checked_by,
        interrupted=is_interrupted,
        tried=conclusion.tried,
        details={"why": conclusion.why, "budget": deadline.seconds},
        populations=next((a.outcome.populations for a in answers.by_method.values() if a.outcome.populations), None),
    )

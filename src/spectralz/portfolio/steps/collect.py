"""Sum over the heaviest states that populations have met."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.methods.annealing import judged
from spectralz.methods.states import sum_over
from spectralz.parts.outcome import saying
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.result import Kind
from spectralz.sampling.heavy.pool import MOST_STATES, Share, pool_marginals, state_pool
from spectralz.sampling.heavy.quench import SWEEPS_OF_A_QUENCH
from spectralz.trust.judgment import Judgment
from spectralz.trust.pools import gap_to, judge_pool, populations_beside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.sampling.core import Work


def collect(problem: Problem, deadline: Deadline, work: Work, answers: Answers) -> Answers:
    """Sum over the states of one half of the groups, and measure their share with the other half."""
    if "states" in problem.exclude or not _can_hold_a_share(work):
        why = "no two of the states drawn are the same: none holds a useful share of Z"
        return answers if "states" in (*problem.exclude, *answers.by_method) else answers.without(why, "states")
    began = clock.seconds()
    pool = state_pool(problem.model, MOST_STATES, problem.max_memory // 4)
    one = work.pace * work.path.engine.operations
    quenches = int(min(policy.QUENCHES, policy.QUENCHES_SHARE * deadline.left / (SWEEPS_OF_A_QUENCH * one)))

    def seconds_to_search(share: Share) -> float:
        is_worth_it = share.share > 0.0 and answers.wanted_growth(problem.tol) > 1.0
        return policy.COLLECT_SHARE * deadline.left if is_worth_it else 0.0

    with deadline.in_force():
        _, outcome = sum_over(work, pool, quenches, seconds_to_search)
    seconds = clock.seconds() - began
    return answers.with_answer(Answer("states", outcome, seconds, lambda: pool_marginals(pool, outcome)))


def _can_hold_a_share(work: Work) -> bool:
    """Return whether states that were drawn, or all states of a small side, can hold a useful share of Z."""
    sides = work.path.sides
    kept = slice(None) if sides is None else sides.kept
    drawn = np.concatenate([population.x[:, kept] for counted in work.counted for population in counted])
    return _has_repeats(drawn) or 2.0 ** min(drawn.shape[1], 60) <= MOST_STATES


def _has_repeats(x: NDArray[np.int8]) -> bool:
    """Return whether a state occurs twice."""
    return len({row.tobytes() for row in x}) < len(x)


def sum_beside(work: Work, answers: Answers) -> Answers:
    """Widen the error of populations that the sum over their states contradicts."""
    runs, states = (answers.by_method.get(name) for name in ("annealing", "states"))
    if runs is None or runs.outcome.std_error is None or states is None or states.outcome.kind is not Kind.ESTIMATE:
        return answers
    details = states.outcome.details
    share = Share(details["share"], details["share_error"], details["families"])
    gap = gap_to(judge_pool(details["log_sum"], share), judged(work)[2])
    widened = populations_beside(Judgment(runs.log_z, runs.error, runs.outcome.is_trusted), gap)
    outcome = saying(runs.outcome, widened.why, std_error=widened.std_error, trusted=widened.trusted)
    return replace(answers, by_method={**answers.by_method, "annealing": replace(runs, outcome=outcome)})

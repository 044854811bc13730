"""Sum over the heaviest states that populations have met."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz.methods.annealing import judged, states_of
from spectralz.methods.states import pool_outcome
from spectralz.parts.outcome import saying
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.result import Kind
from spectralz.sampling.core import half_of
from spectralz.sampling.heavy import pool as pools
from spectralz.sampling.heavy.pool import Share
from spectralz.sampling.heavy.quench import SWEEPS_OF_A_QUENCH
from spectralz.trust.judgment import Judgment
from spectralz.trust.pools import beside_populations, gap_to, judge_pool, populations_beside, share_by_strata

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.sampling.core import Work


def collect(problem: Problem, deadline: Deadline, work: Work, answers: Answers) -> Answers:
    """Sum over the states of one half of the groups, and measure their share with the other half."""
    model, path = problem.model, work.path
    if "states" in problem.exclude:
        return answers
    finding, testing = (states_of(half_of(work, half)) for half in (0, 1))
    kept = slice(None) if path.sides is None else path.sides.kept
    if model.n > policy.MOST_SPINS_TO_COLLECT and not _has_repeats(testing.x[:, kept]):
        why = "no two of the states drawn are the same: none holds a useful share of Z"
        return answers if "states" in answers.by_method else answers.without(why, "states")
    began = clock.seconds()
    pool = pools.state_pool(model, pools.MOST_STATES, problem.max_memory // 4)
    one = work.pace * path.engine.operations
    quenches = int(min(policy.QUENCHES, policy.QUENCHES_SHARE * deadline.left / (SWEEPS_OF_A_QUENCH * one)))

    def seconds_to_search(share: Share) -> float:
        is_worth_it = share.share > 0.0 and answers.wanted_growth(problem.tol) > 1.0
        return policy.COLLECT_SHARE * deadline.left if is_worth_it else 0.0

    measure = partial(share_by_strata, testing=[[testing]])
    with deadline.in_force():
        *_, share = pools.collect(
            pool, path, [finding], measure, quenches, work.rng, seconds_to_search, work.crew.parallel
        )
    outcome = pool_outcome(pool, share, partial(beside_populations, judged=_judgment_of(work)))
    seconds = clock.seconds() - began
    return answers.with_answer(Answer("states", outcome, seconds, lambda: pools.pool_marginals(pool, outcome)))


def _judgment_of(work: Work) -> Judgment:
    judgment = judged(work)[2]
    return replace(judgment, log_z=judgment.log_z + work.model.constant)


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
    gap = gap_to(judge_pool(details["log_sum"], share), _judgment_of(work))
    widened = populations_beside(Judgment(runs.log_z, runs.error, runs.outcome.is_trusted), gap)
    outcome = saying(runs.outcome, widened.why, std_error=widened.std_error, trusted=widened.trusted)
    return replace(answers, by_method={**answers.by_method, "annealing": replace(runs, outcome=outcome)})

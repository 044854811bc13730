"""Sum over the heaviest states that annealing has met."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz.methods.states import pool_outcome
from spectralz.parts.outcome import saying
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.result import Kind
from spectralz.sampling import pool as pools
from spectralz.sampling.pool import Share
from spectralz.sampling.quench import SWEEPS_OF_A_QUENCH
from spectralz.trust.judgment import Judgment
from spectralz.trust.pools import judge_pool, share_by_strata
from spectralz.trust.strata import beside_sum, gap_to_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.portfolio.steps.way import Way
    from spectralz.sampling.populations import Run


def collect(
    problem: Problem,
    deadline: Deadline,
    answers: Answers,
    way: Way,
    finding: list[Run],
    testing: list[list[Run]],
    doubted: Callable[[Judgment], Judgment],
) -> Answers:
    """Sum over the states of some runs, and measure their share with others, those that count for each stratum.

    ``doubted`` takes account of strata that no run has measured.
    """
    model = problem.model
    if "states" in problem.exclude or not finding or not testing:
        return answers
    kept = slice(None) if way.path.sides is None else way.path.sides.kept
    drawn = (run.x[:, kept] for runs in testing for run in runs)
    if model.n > policy.MOST_SPINS_TO_COLLECT and not any(_has_repeats(x) for x in drawn):
        why = "no two of the states drawn are the same: none holds a useful share of Z"
        return answers if "states" in answers.by_method else answers.without(why, "states")
    began = clock.seconds()
    pool = pools.state_pool(model, pools.MOST_STATES, problem.max_memory // 4)
    affordable = policy.QUENCHES_SHARE * deadline.left / (SWEEPS_OF_A_QUENCH * way.one)
    quenches = int(min(policy.QUENCHES, affordable))

    def seconds_to_search(share: Share) -> float:
        is_worth_it = share.share > 0.0 and answers.wanted_growth(problem.tol) > 1.0
        return policy.SEARCH_SHARE * deadline.left if is_worth_it else 0.0

    measure = partial(share_by_strata, testing=testing)
    with deadline.in_force():
        parallel = way.crew.parallel
        *_, share = pools.collect(pool, way.path, finding, measure, quenches, way.rng, seconds_to_search, parallel)
    outcome = pool_outcome(pool, share, doubted)
    seconds = clock.seconds() - began
    return answers.with_answer(Answer("states", outcome, seconds, lambda: pools.pool_marginals(pool, outcome)))


def _has_repeats(x: NDArray[np.int8]) -> bool:
    """Return whether a state occurs twice."""
    return len({row.tobytes() for row in x}) < len(x)


def runs_beside_sum(answers: Answers, groups: list[list[Run]], constant: float) -> Answers:
    """Widen the error of runs that the sum over their states contradicts."""
    runs, states = (answers.by_method.get(name) for name in ("annealing", "states"))
    if runs is None or runs.outcome.std_error is None or states is None or states.outcome.kind is not Kind.ESTIMATE:
        return answers
    details = states.outcome.details
    share = Share(details["share"], details["share_error"], details["families"])
    gap = gap_to_runs(judge_pool(details["log_sum"], share), groups, constant)
    judged = beside_sum(Judgment(runs.log_z, runs.error, runs.outcome.is_trusted), gap)
    outcome = saying(runs.outcome, judged.why, std_error=judged.std_error, trusted=judged.trusted)
    return replace(answers, by_method={**answers.by_method, "annealing": replace(runs, outcome=outcome)})

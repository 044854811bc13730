"""Anneal: take the actions of the core one by one, and judge after each what was counted.

States that populations have met are also summed up: those of one half of the groups, whose share the other measures.

A model so large that a population has no time to reach it, whose weights on the way there alone say nothing of Z, is
reached by states that go both ways. With many spins log-weights are sums of many parts and nearly normal. Their mean is
too small on the way there and too large on the way back, by about as much.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.deadline import Deadline, current
from spectralz._support.progress import report
from spectralz.methods.annealing import actions_left, begin, judged, keeper, limits_of, outcome_of, states_of
from spectralz.methods.base import estimated
from spectralz.methods.states import sum_over
from spectralz.parts.leading import leading_directions
from spectralz.parts.outcome import saying
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer, too_long
from spectralz.result import Kind
from spectralz.sampling.cells import Cells
from spectralz.sampling.core import ACTIONS, begun, expected_families, look_for_phases
from spectralz.sampling.engines.sparse import CLUSTERED_TOGETHER, move_operations
from spectralz.sampling.heavy.pool import MOST_STATES, Share, pool_marginals, state_pool
from spectralz.sampling.path import from_coins, path_to
from spectralz.sampling.penalties import penalized
from spectralz.sampling.phases_found import TOGETHER, Missing, cost_of_proposal, search
from spectralz.sampling.population import VARIANCE, Population, marginals_of
from spectralz.sampling.round_trips import there_and_back_in_parts
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import (
    LEAST_POINTS,
    SURVEY_SWEEPS,
    SWEEPS_OF_A_QUENCH,
    Survey,
    bytes_per_state,
    prolonged,
    quench,
    seconds_of_sweeps,
    seconds_per_point,
    seconds_per_state,
    seconds_per_sweep,
    survey,
)
from spectralz.sampling.symmetries import images_of
from spectralz.trust.judgment import RULES, Judgment
from spectralz.trust.states import gap_to, inconsistency_of, judge_pool, judge_round_trip, populations_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome, Outcome
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.sampling.core import Work
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Run
    from spectralz.sampling.round_trips import RoundTrip
    from spectralz.sampling.spread import Crew


# What annealing needs at least.
FEWEST = "the fewest useful states"


def anneal(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Anneal, and sum over the states found; after compressed elimination only as a check."""
    model = penalized(problem.model)
    methods = [name for name in ("annealing", "states") if name not in problem.exclude]
    if not methods:
        return
    if answers.is_compressed(problem.tol):
        deadline = deadline.share(policy.CHECK_SHARE)
    needed = seconds_of_sweeps(model, LEAST_POINTS) if model.storage.for_kernels().is_dense else 0.0
    if needed > policy.HOPELESS_TIMES * deadline.seconds:
        yield answers.without(too_long(FEWEST, needed, deadline.seconds), *methods)
        return
    path = from_coins(model)
    with crew_for(path) as crew:
        one = seconds_per_sweep(path, parallel=crew.parallel)
        needed = path.engine.together * LEAST_POINTS * one
        if needed > policy.ANNEALING_SHARE * deadline.seconds:
            yield answers.without(too_long(FEWEST, needed, deadline.seconds), *methods)
            return
        needed = path.engine.together * seconds_per_state(path, VARIANCE, one)
        is_hasty = needed > policy.POPULATION_SHARE * deadline.left
        if is_hasty and not path.can_begin_from_subgraph:
            steps = both_ways(problem, deadline, crew, answers)
        elif _states_in_memory(problem, path) < policy.STATES_TOGETHER:
            yield answers.without(f"{policy.STATES_TOGETHER} states do not fit into max_memory", *methods)
            return
        else:
            steps = _by_populations(problem, model, deadline, crew, answers, is_hasty=is_hasty)
        for latest in steps:
            yield replace(latest, complaint=crew.workers.complaint)


def _by_populations(
    problem: Problem, model: Model, deadline: Deadline, crew: Crew, answers: Answers, *, is_hasty: bool
) -> Iterator[Answers]:
    """Take the actions of the core, until the error is as small as wanted; the model has penalties for constraints."""
    states = _states_in_memory(problem, from_coins(model))
    keep, in_time = keeper(answers.bounds.lower, answers.bounds.upper), deadline.share(policy.POPULATIONS_SHARE)
    limits = limits_of(in_time, states=states, tol=problem.tol, is_hasty=is_hasty, keep=keep)
    work, seconds = begin(model, crew, problem.seed, limits), 0.0
    if work.earlier:
        answers = _with_annealing(problem, work, answers, seconds)
        yield answers
    for action in actions_left(limits):
        if begun(work) and not deadline.left:
            break
        began = clock.seconds()
        work = action(work)
        seconds += clock.seconds() - began
        if not begun(work):
            if expected_families(work) < RULES.families and model.n >= policy.FEWEST_BOTH_WAYS:
                yield from both_ways(problem, deadline, crew, answers)
                return
            continue
        answers, seconds = _with_annealing(problem, work, answers, seconds), 0.0
        yield answers
        if work.is_interrupted:
            raise KeyboardInterrupt
        # States are summed up as soon as all phases are measured.
        if not work.earlier and action is (look_for_phases if len(work.bases) == 1 else ACTIONS[-1]):
            answers = collect(problem, deadline, work, answers)
            yield answers
            if answers.wanted_growth(problem.tol) <= 1.0:
                return
    if not work.earlier:
        yield sum_beside(work, answers)


def _states_in_memory(problem: Problem, path: Path) -> float:
    """Return how many states of a population fit into the memory, with all that is made of them."""
    return problem.max_memory / (2.0 * (bytes_per_state(path) + 3 * path.n))


def _with_annealing(problem: Problem, work: Work, answers: Answers, seconds: float) -> Answers:
    """Return the answers with that of the populations counted so far."""
    if "annealing" in problem.exclude:
        return answers
    outcome = outcome_of(work)

    def marginals() -> MarginalOutcome:
        return marginals_of(problem.model, continued(problem.model, states_of(work), work.rng), outcome)

    return answers.with_answer(Answer("annealing", outcome, seconds, marginals))


def continued(model: Model, run: Run, rng: np.random.Generator) -> Run:
    """Return states that go on at the model, as many as there is time for: log Z needs fewer than means do.

    With constraints they stay as they are.
    """
    one = costs.MEANS_ENTRY * (model.n + 2 * model.edge_count + len(model.higher.spin)) / clock.OPERATIONS_PER_SECOND
    affordable = min(policy.SPINS_FOR_MARGINALS / max(model.n, 1), current().left / one, policy.STATES_FOR_MARGINALS)
    run = run.thinned(math.ceil(run.size / max(affordable, policy.FEWEST_FOR_MARGINALS)))
    sweeps = int(affordable / run.size)
    if sweeps <= 1 or model.constraints:
        return run
    path = from_coins(model)
    with crew_for(path) as crew:
        return prolonged(path, run, sweeps, rng, crew.parallel)


# ----------------------------------------------------------------------------------------------------- sums over states


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
    has_repeats = len({row.tobytes() for row in drawn}) < len(drawn)
    return has_repeats or 2.0 ** min(drawn.shape[1], 60) <= MOST_STATES


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


# ------------------------------------------------------------------------------------------------------------ both ways


def both_ways(problem: Problem, deadline: Deadline, crew: Crew, answers: Answers) -> Iterator[Answers]:
    """Take a few states to the model and back, through as many points as there is time for."""
    if "annealing" in problem.exclude:
        return
    if problem.model.constraints:
        yield answers.without("there is no time for as many states as a model with constraints needs", "annealing")
        return
    model, rng = problem.model, np.random.default_rng(problem.seed)
    began = clock.seconds()
    clusters = None if _has_time_for_clusters(model, deadline) else False
    path = path_to(model, clusters=clusters)
    spacing = _surveyed(path, deadline, crew, rng)
    directions = leading_directions(model.storage)
    ordered = _ordered_states(path, directions) if directions else None
    size, count = path.engine.together, policy.FEWEST_RUNS
    seconds = max(seconds_per_point(path, count * size, parallel=crew.parallel), policy.TICK)
    affordable = policy.NEXT_ROUND_SHARE * deadline.left / (seconds * policy.BOTH_WAYS_TIMES)
    points = spacing.spaced(
        int(np.clip(affordable, policy.FEWEST_POINTS_BOTH_WAYS, policy.MOST_POINTS)), policy.FEWEST_POINTS_BOTH_WAYS
    )

    def tell(_: float) -> None:
        report("annealing", deadline.done)

    trip = there_and_back_in_parts(crew, path, points, size, count, rng, ordered=ordered, tell=tell)
    outcome = _outcome_of_trip(problem, trip, len(points), _missed(path, trip, deadline, crew, rng))
    run = trip.as_run()
    answer = Answer(
        "annealing",
        outcome,
        clock.seconds() - began,
        lambda: marginals_of(model, continued(model, run, rng), outcome),
    )
    yield answers.with_answer(answer)


def _has_time_for_clusters(model: Model, deadline: Deadline) -> bool:
    """Return whether clusters could be turned at enough points; otherwise more points without them do better."""
    one = policy.FEWEST_RUNS * CLUSTERED_TOGETHER * move_operations(model.n, 2 * model.edge_count)
    affordable = policy.NEXT_ROUND_SHARE * deadline.seconds * clock.OPERATIONS_PER_SECOND
    return affordable >= policy.FEWEST_CLUSTER_POINTS * one


def _surveyed(path: Path, deadline: Deadline, crew: Crew, rng: np.random.Generator) -> Survey:
    """Measure the length of the path, if there is time for it; otherwise it is taken to be straight."""
    one = seconds_per_sweep(path, parallel=crew.parallel)
    needed = path.engine.together * SURVEY_SWEEPS * (LEAST_POINTS + 1) * one
    if needed > policy.SURVEY_SHARE * deadline.seconds:
        return Survey(np.array([0.0, 1.0]), np.array([0.0, math.sqrt(path.n)]))
    with Deadline.after(policy.SURVEY_TIMES * needed).in_force():
        return survey(path, rng, crew.parallel)


def _ordered_states(path: Path, directions: list[NDArray[np.float64]]) -> NDArray[np.int8]:
    """Return the heaviest states along leading directions."""
    along = np.concatenate([np.where(np.array(directions) * sign >= 0.0, 1, -1) for sign in (1, -1)]).astype(np.int8)
    x = quench(path, along)
    weights = path.model.log_weight(x)
    return np.asarray(x[weights >= weights.max() - 1e-9 * abs(weights.max())])


def _missed(path: Path, trip: RoundTrip, deadline: Deadline, crew: Crew, rng: np.random.Generator) -> str:
    """Return why there may be phases that the states missed: the search found some, or there was no time for it."""
    limits = limits_of(deadline)
    one = seconds_per_sweep(path, parallel=crew.parallel) / path.engine.operations
    affordable = int(
        min(policy.SEARCH_FOR_PHASES_SHARE * deadline.seconds / (one * cost_of_proposal(path)), 4 * TOGETHER)
    )
    if affordable < 1:
        return ""
    size = len(trip.x)
    population = Population(np.array([trip.log_z]), trip.x, np.full((1, size), 1.0 / size), np.arange(size))
    cells = Cells.around(population.mean(), images_of(path.model))
    numbers, plain = (trip.log_z, limits.enough, limits.light, 1), replace(path, clusters=False)
    with deadline.in_force():
        found = search(Missing(plain, cells, population, [], *numbers, rng, crew.parallel, affordable))
    return "; the search for phases found one that the states have missed: do not trust" if found.phases else ""


def _outcome_of_trip(problem: Problem, trip: RoundTrip, points: int, missed: str) -> Outcome:
    """Return the estimate of log Z from states that went to the model and back."""
    judged = judge_round_trip(trip, problem.model.constant)
    judged = replace(judged, trusted=judged.trusted and not missed, why=judged.why + missed)
    inconsistency = inconsistency_of(trip)
    words = (
        f"{len(trip.there)} states to the model and back through {points} points; the two ways differ by "
        f"{trip.gap:.3g}, {inconsistency:.2g} away from what their variances predict"
    )
    details = {"gap": trip.gap, "scatter": trip.scatter, "inconsistency": inconsistency}
    return estimated(judged, words, details=details)

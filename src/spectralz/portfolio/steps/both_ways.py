"""Go to the model and back: for models so large that weights on the way there alone say nothing of Z.

With many spins log-weights are sums of many parts and nearly normal. Their mean is too small on the way there and too
large on the way back, by about as much.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz._support.progress import report
from spectralz.methods.annealing import limits_of
from spectralz.methods.base import estimated
from spectralz.parts.leading import leading_directions
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.sampling.bound_parts import bound_parts
from spectralz.sampling.cells import Cells
from spectralz.sampling.heavy.quench import quench
from spectralz.sampling.moves.clusters import CLUSTERED_TOGETHER, move_operations
from spectralz.sampling.path import path_to
from spectralz.sampling.phases_found import TOGETHER, Missing, cost_of_proposal, search
from spectralz.sampling.plan import LEAST_POINTS, Survey, seconds_per_point, seconds_per_sweep, survey
from spectralz.sampling.plan import SWEEPS as SURVEY_SWEEPS
from spectralz.sampling.population import Population
from spectralz.sampling.populations import marginals_of
from spectralz.sampling.round_trips import there_and_back_in_parts
from spectralz.sampling.symmetries import images_of
from spectralz.trust.round_trips import inconsistency_of, judge_round_trip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.model import Model
    from spectralz.parts.outcome import Outcome
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.sampling.path import Path
    from spectralz.sampling.round_trips import RoundTrip
    from spectralz.sampling.spread import Crew


def both_ways(problem: Problem, deadline: Deadline, crew: Crew, answers: Answers) -> Iterator[Answers]:
    """Take a few states to the model and back, through as many points as there is time for."""
    if "annealing" in problem.exclude:
        return
    from spectralz.portfolio.steps.anneal import continued

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
    images = images_of(path.model)
    cells = Cells(population.mean()[None] * (len(images) == 1), images, np.zeros(1, dtype=np.int64))
    plain = replace(path, clusters=False)
    missing = Missing(
        plain, cells, population, [], trip.log_z, limits.enough, limits.light, 1, bound_parts(path.model), affordable
    )
    with deadline.in_force():
        found = search(missing, rng, crew.parallel)
    if found.phases and found.phases[0].log_weight > trip.log_z - limits.light:
        return "; the search for phases found one that the states have missed: do not trust"
    return ""


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

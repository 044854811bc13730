"""Anneal in rounds: a short one, then as many points and states as the error needs and the deadline allows.

If the weights of states on the way to the model are not informative, states go to the model and back instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from spectralz._support import clock, costs
from spectralz._support.compile_times import kernels_in, refusal_of
from spectralz._support.deadline import Deadline, current
from spectralz._support.devices import device_for
from spectralz._support.progress import report
from spectralz.methods.annealing import outcome_of_runs
from spectralz.methods.base import estimated
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.portfolio.steps.collect import collect, runs_beside_sum
from spectralz.portfolio.steps.temper import suits_ladder, temper
from spectralz.portfolio.steps.way import Way, begun, way_along, way_to_stratum
from spectralz.result import Kind
from spectralz.sampling.engines.dense import dense_operations
from spectralz.sampling.met import LOG_NEGLIGIBLE
from spectralz.sampling.moves.clusters import CLUSTERED_TOGETHER, move_operations
from spectralz.sampling.path import from_coins, path_to
from spectralz.sampling.phases import (
    MOST_CANDIDATES,
    STATES_OF_SEARCH,
    SWEEPS_PER_CANDIDATE,
    SWEEPS_PER_CHAIN,
    Phases,
    find_phases,
    heaviest_of,
)
from spectralz.sampling.plan import LEAST_POINTS, Survey, seconds_per_point
from spectralz.sampling.populations import log_mean_z, marginals_of
from spectralz.sampling.run import RESAMPLE_BELOW, prolonged
from spectralz.sampling.spread import anneal_many, crew_for, there_and_back_many
from spectralz.sampling.strata import counted, is_measured, together
from spectralz.trust.round_trips import inconsistency_of, judge_round_trip
from spectralz.trust.runs import FEWEST_FAMILIES, centered
from spectralz.trust.strata import (
    beside_unmeasured,
    in_words,
    judge_share,
    judge_strata,
    summary_of_strata,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome, Outcome
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.portfolio.steps.rounds import Round
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run
    from spectralz.sampling.run import RoundTrip


@dataclass(frozen=True)
class _Progress:
    """The runs so far, the number of rounds, the time of a sweep in the last, phases they have missed, and answers.

    ``ways`` lead to the strata of these phases, and ``runs_to`` are the runs along each.
    """

    way: Way
    answers: Answers
    runs: tuple[Run, ...] = ()
    rounds: int = 0
    pace: float = 0.0
    phases: Phases = field(default_factory=Phases)
    ways: tuple[Way, ...] = ()
    runs_to: tuple[tuple[Run, ...], ...] = ()

    @cached_property
    def groups(self) -> list[list[Run]]:
        """The runs that count for each stratum, first for what is in none."""
        return counted(self.phases, self.runs, self.runs_to)


def anneal(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Anneal, and sum over the states found (``collect.py``); after compressed elimination only as a check."""
    model = problem.model
    methods = [name for name in ("annealing", "states") if name not in problem.exclude]
    if not methods:
        return
    if answers.is_compressed(problem.tol):
        deadline = deadline.share(policy.CHECK_SHARE)
    needed = _seconds_of_dense(model)
    if needed > policy.HOPELESS_TIMES * deadline.seconds:
        yield answers.without(_too_long(needed, deadline), *methods)
        return
    late = "" if model.storage.for_kernels().is_dense else _refusal_of_trees()
    clusters = None if _has_time_for_clusters(model, deadline) else False
    with deadline.in_force():
        path = path_to(model, block_width=0 if late else None, clusters=clusters)
    with crew_for(path) as crew:
        way = way_along(problem, deadline, crew, path)
        whole = way.plan(way.sweeps_in(policy.NEXT_ROUND_SHARE * deadline.seconds), math.inf)
        if whole is None:
            needed = path.engine.together * LEAST_POINTS * way.one / policy.NEXT_ROUND_SHARE
            yield answers.without(_too_long(needed, deadline), *methods)
            return
        has_trees = path.can_begin_from_subgraph
        way = begun(way, tries_subgraph=has_trees and not late)
        words = f"; without blocks and a path from a subgraph: {late}" if late and has_trees else ""
        for latest in _rounds(_Progress(way, answers), whole):
            yield replace(latest, complaint=crew.workers.complaint + words)


def _refusal_of_trees() -> str:
    """Return why sparse models are annealed without trees of small width, if compiling their kernels takes too long."""
    from spectralz.kernels import k_trees
    from spectralz.kernels.sampling import block_heat_bath

    return refusal_of(*kernels_in(k_trees, block_heat_bath))


def _too_long(needed: float, deadline: Deadline) -> str:
    words = clock.in_words(needed), clock.in_words(deadline.seconds)
    return f"the fewest useful states would take about {words[0]}, {words[1]} are left"


def _seconds_of_dense(model: Model) -> float:
    """Return the time of the fewest states of a large dense model on a CPU, where even timing a sweep takes long."""
    if model.n <= policy.LARGE_DENSE or not model.storage.for_kernels().is_dense or device_for(model.n) is not None:
        return 0.0
    return policy.STATES_TOGETHER * LEAST_POINTS * dense_operations(model.n) / clock.OPERATIONS_PER_SECOND


def _has_time_for_clusters(model: Model, deadline: Deadline) -> bool:
    """Return whether clusters could be turned at enough points; otherwise more points without them do better."""
    one = policy.FEWEST_RUNS * CLUSTERED_TOGETHER * move_operations(model.n, 2 * model.edge_count)
    affordable = policy.NEXT_ROUND_SHARE * deadline.seconds * clock.OPERATIONS_PER_SECOND
    return affordable >= policy.FEWEST_CLUSTER_POINTS * one


# ---------------------------------------------------------------------------------------------------------- rounds


def _rounds(progress: _Progress, whole: Round) -> Iterator[Answers]:
    """Make rounds as long as they are planned; ``whole`` is the plan if all of the time went to one."""
    plan, goes_both_ways = _first_plan(progress.way, whole)
    while plan is not None and not goes_both_ways:
        progress = yield from _round(progress, plan)
        plan, goes_both_ways = _next_plan(progress)
    if plan is not None:
        if _is_to_temper(progress):
            progress = yield from _tempered(progress)
        yield from _both_ways(progress, plan)


def _is_to_temper(progress: _Progress) -> bool:
    """Return whether annealing is not trusted, and there is time to temper."""
    return not progress.answers.trusts("annealing") and suits_ladder(progress.way, progress.answers)


def _tempered(progress: _Progress) -> Generator[Answers, None, _Progress]:
    for answers in temper(progress.way, progress.answers):
        progress = replace(progress, answers=answers)
        yield answers
    return progress


def _first_plan(way: Way, whole: Round) -> tuple[Round | None, bool]:
    """Plan a short round, or all of the time if weights would vary too much; return whether states go both ways."""
    dissipation = float(way.spacing.length[-1]) ** 2
    first = way.plan(way.sweeps_in(policy.FIRST_ROUND_SHARE * way.deadline.seconds), dissipation)
    if first is None or dissipation / whole.points > _hopeless_spread(way.path):
        return whole, True
    return first, False


def _next_plan(progress: _Progress) -> tuple[Round | None, bool]:
    """Plan another round from the last run: None if it is not needed, or there is too little time."""
    way, answers, runs = progress.way, progress.answers, progress.runs
    growth = answers.wanted_growth(way.problem.tol)
    if not runs or growth <= 1.0 or way.deadline.left <= policy.LEAST_LEFT * way.deadline.seconds:
        return None, False
    last = runs[-1]
    share = policy.NEXT_ROUND_SHARE
    if _has_few_families(progress):  # the second round shows where points are needed
        share = policy.SECOND_FLIPS_SHARE if progress.rounds == 1 else policy.LATER_FLIPS_SHARE
    share /= 1.0 + len(_active(progress))
    left = way.deadline.left
    if _is_search_costly(progress):
        left -= min(_seconds_to_search(way), (1.0 - policy.LEAST_FOR_SECOND) * left)
    affordable = share * left / max(progress.pace, policy.TICK)
    plan = way.plan(affordable, last.dissipation)
    if plan is None:
        return None, False
    spread = last.spread[-1] * (len(last.points) / plan.points) ** policy.SPREAD_POWER
    is_doubted = "annealing" in answers.by_method and not answers.trusts("annealing")
    is_stuck = is_doubted and len(runs) > plan.runs and not way.path.flips
    if not answers.trusts("states") and (spread > _hopeless_spread(way.path) or is_stuck):
        return plan, True
    wanted = sum(run.effort for run in runs) * growth
    if wanted < plan.updates:
        plan = way.plan(wanted, last.dissipation, runs) or plan
    return plan, False


def _hopeless_spread(path: Path) -> float:
    """Return from which variance on the weights of states are of no use.

    States of a side that is flipped fall into few valleys, whose weights are anything but normal: going both ways would
    not help, large populations do.
    """
    if path.flips:
        return math.inf
    if path.engine.together < policy.STATES_TOGETHER:  # each takes long, and so there are few of them
        return policy.HOPELESS_SPREAD_OF_FEW
    most = min(policy.HOPELESS_SPREAD_SPINS / path.n, policy.MOST_HOPELESS_SPREAD)
    return max(most, policy.LEAST_HOPELESS_SPREAD)


def _round(progress: _Progress, plan: Round) -> Generator[Answers, None, _Progress]:
    """Make the runs of a round, and judge by all runs so far."""
    way, answers, earlier, before = progress.way, progress.answers, progress.runs, progress
    began, started = clock.seconds(), clock.now()
    points = _spacing(way, progress.runs).spaced(plan.points)
    # Without resampling log-weights add up along the whole path; their variance is what later rounds plan by.
    threshold = RESAMPLE_BELOW if earlier else 0.0
    runs: list[Run] = []
    making = anneal_many(
        way.crew, way.path, points, plan.size, plan.runs, way.rng, resample_below=threshold, tell=_teller(way.deadline)
    )
    try:
        for run in making:
            runs.append(run)
    finally:  # the runs that were done before an interrupt count too
        if earlier or runs:
            progress = replace(progress, runs=(*_comparable(way.path, earlier, len(points)), *runs))
            answers = _judged(progress, clock.seconds() - began)
            yield answers
    seconds = clock.now() - started
    pace = seconds / (len(points) * plan.size * plan.runs)
    began = clock.seconds()
    progress = replace(progress, answers=answers, pace=pace, rounds=progress.rounds + 1)
    if _is_to_temper(progress):  # which has a search for phases of its own
        return (yield from _tempered(progress))
    if way.path.flips:
        progress = replace(progress, answers=_collected(progress, before))
        if _has_most_states(progress.answers):
            yield progress.answers
            return progress
    progress = _to_strata(_searched(progress), seconds)
    if progress.phases.strata or not progress.phases.is_complete:
        progress = replace(progress, answers=_judged(progress, clock.seconds() - began))
    if progress.phases.strata or not way.path.flips:
        progress = replace(progress, answers=_collected(progress, before))
    yield progress.answers
    return progress


def _has_most_states(answers: Answers) -> bool:
    """Return whether a trusted sum over states holds most of P(x): it would hold another phase as well."""
    states = answers.by_method.get("states")
    if states is None or not answers.trusts("states"):
        return False
    return states.outcome.kind is Kind.EXACT or states.outcome.details["share"] >= policy.SHARE_WITHOUT_SEARCH


def _comparable(path: Path, runs: tuple[Run, ...], points: int) -> tuple[Run, ...]:
    """Return the runs that count beside others through so many points.

    Where a side is flipped, a short run has few heavy families. Its Z is unbiased, but often the largest of all, and
    would then hide what better runs have found.
    """
    return tuple(run for run in runs if not path.flips or len(run.points) >= policy.COMPARABLE * points)


def _searched(progress: _Progress) -> _Progress:
    """Search for phases that the populations have missed, and begin ways to their strata.

    Where a side is flipped, nearly every state that few families have met looks like a phase: more runs come first.
    They also do where the search takes long.
    """
    if _has_few_families(progress):
        return progress
    if _is_search_costly(progress):
        plan, goes_both_ways = _next_plan(progress)
        if plan is not None and not (goes_both_ways and progress.answers.trusts("annealing")):
            return progress
    phases, ways = _phases_beside(progress.way, progress.groups, progress.phases), list(progress.ways)
    for stratum in phases.strata[len(ways) :]:
        if not progress.way.deadline.left:
            phases = replace(phases, strata=phases.strata[: len(ways)], is_complete=False)
            break
        ways.append(way_to_stratum(progress.way, stratum))
    runs_to = (*progress.runs_to, *(() for _ in ways[len(progress.ways) :]))
    return replace(progress, phases=phases, ways=tuple(ways), runs_to=runs_to)


def _is_search_costly(progress: _Progress) -> bool:
    """Return whether a search after the first round would take so long that it comes after the second."""
    way = progress.way
    return progress.rounds == 1 and _seconds_to_search(way) > policy.SHARE_TO_POSTPONE * way.deadline.left


def _seconds_to_search(way: Way) -> float:
    """Predict the time of a search: sweeps, and what is done with their states."""
    return STATES_OF_SEARCH * way.pace + _seconds_beside_sweeps(way)


def _seconds_beside_sweeps(way: Way) -> float:
    """Predict the time of what a search does with the states of its sweeps, which is not counted as operations."""
    return 0.0 if clock.counts_operations() else costs.SEARCH_SPIN_SECONDS * way.path.n


def _has_few_families(progress: _Progress) -> bool:
    """Return whether a side is flipped and few families have found its heavy valleys."""
    return progress.way.path.flips and summary_of_strata(progress.groups).families < FEWEST_FAMILIES


def _phases_beside(way: Way, groups: list[list[Run]], known: Phases | None = None) -> Phases:
    """Return the known phases, and those that populations have missed."""
    runs = together(groups)
    limit = way.deadline.share(policy.SEARCH_FOR_PHASES_SHARE)
    needed = SWEEPS_PER_CHAIN * way.path.engine.together * way.one
    if way.path.device is not None:  # sweeps take the least time there
        needed += _seconds_beside_sweeps(way)
    if needed > policy.MOST_SEARCH_SHARE * way.deadline.seconds:
        return known or Phases()
    most = min(limit.seconds / max(SWEEPS_PER_CANDIDATE * way.pace, policy.TICK), MOST_CANDIDATES)
    with Deadline.after(way.deadline.left + policy.LATE_SECONDS).in_force():
        return find_phases(way.path, runs, way.directions, way.rng, known, most, limit, way.crew.parallel)


def _to_strata(progress: _Progress, seconds: float) -> _Progress:
    """Make runs to each stratum that may matter, in about so many seconds each."""
    way, made = progress.way, []
    active = _active(progress)
    seconds = min(seconds, policy.NEXT_ROUND_SHARE * way.deadline.left / max(len(active), 1))
    for k, (to, runs) in enumerate(zip(progress.ways, progress.runs_to, strict=True)):
        if k in active:
            dissipation = runs[-1].dissipation if runs else float(to.spacing.length[-1]) ** 2
            plan = to.plan(to.sweeps_in(seconds), dissipation, runs)
            if plan is not None:
                points = _spacing(to, runs).spaced(plan.points)
                tell = _teller(way.deadline)
                runs += tuple(anneal_many(way.crew, to.path, points, plan.size, plan.runs, to.rng, tell=tell))
        made.append(runs)
    return replace(progress, runs_to=tuple(made))


def _active(progress: _Progress) -> set[int]:
    """Return the strata that were not measured, or have a share that matters."""
    groups = progress.groups
    log_z = log_mean_z(together(groups))
    measured = {k for k, runs in enumerate(groups[1:]) if is_measured(runs)}
    negligible = {k for k in measured if log_mean_z(groups[k + 1]) < log_z + LOG_NEGLIGIBLE}
    return set(range(len(progress.phases.strata))) - negligible


def _collected(progress: _Progress, before: _Progress) -> Answers:
    """Add the sum over the states that earlier runs have met; those of this round measure their share."""
    way, groups = progress.way, progress.groups
    is_early = way.deadline.left > policy.LEAST_LEFT * way.deadline.seconds
    if is_early and _has_few_families(progress):
        return progress.answers  # a larger round measures shares better
    found, tested = _divided(progress.runs, before.runs)
    parts = [_divided(*runs) for runs in zip_longest(progress.runs_to, before.runs_to, fillvalue=())]
    finding = [run for runs in (found, *(first for first, _ in parts)) for run in runs]
    testing = replace(progress, runs=tested, runs_to=tuple(second for _, second in parts)).groups
    testing = [runs for runs in testing if is_measured(runs)]
    constant = way.problem.model.constant
    doubted = partial(judge_share, phases=progress.phases, groups=groups, constant=constant)
    answers = collect(way.problem, way.deadline, progress.answers, way, finding, testing, doubted)
    return runs_beside_sum(answers, groups, constant)


def _divided(runs: tuple[Run, ...], earlier: tuple[Run, ...]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Divide runs into earlier and new ones, or in halves if there are none of either: no run does both tasks."""
    new = tuple(run for run in runs if not any(run is other for other in earlier))
    return (earlier, new) if earlier and new else (runs[: len(runs) // 2], runs[len(runs) // 2 :])


def _spacing(way: Way, runs: Sequence[Run]) -> Survey:
    """Return how points are spaced: by the variance that the last run has seen, or by the survey."""
    if not runs or not runs[-1].spread[-1] > 0.0:
        return way.spacing
    is_rare = way.path.flips and runs[-1].families < FEWEST_FAMILIES
    return Survey.of_variance(runs[-1].points, runs[-1].spread, is_rare=is_rare)


def _teller(deadline: Deadline) -> Callable[[float], None]:
    return lambda _: report("annealing", deadline.done)


def _judged(progress: _Progress, seconds: float) -> Answers:
    """Return the answers with that of all runs so far."""
    problem, runs = progress.way.problem, list(progress.runs)
    if "annealing" in problem.exclude:
        return progress.answers
    groups = progress.groups
    summary = summary_of_strata(groups)
    judged = judge_strata(centered(summary), progress.phases, groups, problem.model.constant)
    words = (
        f"{len(runs)} runs with {sum(run.size for run in runs)} states in all through up to "
        f"{len(runs[-1].points)} temperatures{in_words(groups, summary)}"
    )
    if summary.families >= FEWEST_FAMILIES:  # the judgment names them if they are too few
        words += f"; {summary.families:.0f} independent families"
    outcome = outcome_of_runs(problem.model, runs, summary, judged, words)
    return _with_annealing(progress, together(groups), outcome, seconds)


def _with_annealing(progress: _Progress, runs: list[Run], outcome: Outcome, seconds: float) -> Answers:
    way = progress.way
    answer = Answer("annealing", outcome, seconds, lambda: _marginals_of(way, runs, outcome))
    return progress.answers.with_answer(answer)


def _marginals_of(way: Way, runs: list[Run], outcome: Outcome) -> MarginalOutcome:
    """Return marginals from states that continue at the model: few are enough for log Z, but not for means."""
    model, states = way.problem.model, sum(run.size for run in runs)
    one = costs.MEANS_ENTRY * (model.n + 2 * model.edge_count + len(model.higher.spin)) / clock.OPERATIONS_PER_SECOND
    affordable = min(policy.SPINS_FOR_MARGINALS / max(model.n, 1), current().left / one, policy.STATES_FOR_MARGINALS)
    runs = [run.thinned(math.ceil(states / max(affordable, policy.FEWEST_FOR_MARGINALS))) for run in runs]
    sweeps = int(affordable / states)
    if sweeps > 1:
        path = from_coins(model, block_width=0)
        with crew_for(path) as crew:
            runs = [prolonged(path, run, sweeps, way.rng, crew.parallel) for run in runs]
    return marginals_of(model, runs, outcome)


# ------------------------------------------------------------------------------------------------------- both ways


def _both_ways(progress: _Progress, plan: Round) -> Iterator[Answers]:
    """Go to the model and back, if the weights on the way there alone are not informative."""
    way, answers = progress.way, progress.answers
    if "annealing" in way.problem.exclude:
        return
    began = clock.seconds()
    ordered = heaviest_of(way.problem.model, way.seeds) if len(way.seeds) else None
    runs, size, seconds = 1, plan.size * plan.runs, 0.0
    if way.worker_count > 1:  # each makes its runs one after the other, in one thread
        runs, size = plan.runs, plan.size
        seconds = way.one * size * math.ceil(runs / way.worker_count)
    seconds = max(seconds or seconds_per_point(way.path, size, parallel=way.crew.parallel), policy.TICK)
    affordable = policy.NEXT_ROUND_SHARE * way.deadline.left / (seconds * policy.BOTH_WAYS_TIMES)
    count = int(max(min(affordable, policy.MOST_POINTS), policy.FEWEST_POINTS_BOTH_WAYS))
    points = _spacing(way, progress.runs).spaced(count, policy.FEWEST_POINTS_BOTH_WAYS)
    tell = _teller(way.deadline)
    trip = there_and_back_many(way.crew, way.path, points, size, runs, way.rng, ordered=ordered, tell=tell)
    states = [trip.as_run()]
    outcome = outcome_of_trip(way.problem.model, trip, len(points), _phases_beside(way, [states]))
    before = answers.by_method.get("annealing")
    if before is None or _is_preferred(outcome, judge_round_trip(trip).std_error, before):
        yield _with_annealing(progress, states, outcome, clock.seconds() - began)


def _is_preferred(outcome: Outcome, error: float, before: Answer) -> bool:
    """Return whether an answer by both ways takes the place of an earlier one, by weights on the way there or not."""
    families = before.outcome.details.get("families")
    if families is None:  # it went both ways too, in less time
        return error < before.error
    if before.log_z - policy.UNLIKELY_NATS > outcome.log_z:
        return False  # an unbiased estimate is rarely that much too large, so both ways are too small
    return bool(families < policy.FEWEST_FAMILIES_LEFT or (outcome.is_trusted and error < before.error))


def outcome_of_trip(model: Model, trip: RoundTrip, points: int, phases: Phases) -> Outcome:
    """Return the estimate of log Z from states that went to the model and back, beside phases that they missed."""
    inconsistency = inconsistency_of(trip)
    judged = beside_unmeasured(judge_round_trip(trip, model.constant), phases, [], model.constant)
    words = (
        f"{len(trip.there)} states to the model and back through {points} points; the two ways differ by "
        f"{trip.gap:.3g}, {inconsistency:.2g} away from what their variances predict"
    )
    details = {"gap": trip.gap, "scatter": trip.scatter, "inconsistency": inconsistency}
    return estimated(judged, words, details=details)

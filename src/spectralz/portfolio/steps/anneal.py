"""Anneal: take the actions of the core one by one, and judge after each what was counted.

A model so large that a population has no time to reach it goes another way (``both_ways.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz._support import clock, costs
from spectralz._support.deadline import current
from spectralz._support.devices import device_for
from spectralz.methods.annealing import actions_left, begin, keeper, limits_of, outcome_of, states_of
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.portfolio.steps.both_ways import both_ways
from spectralz.portfolio.steps.collect import collect, sum_beside
from spectralz.sampling.core import ACTIONS, begun, expected_families, look_for_phases
from spectralz.sampling.engines.dense import dense_operations
from spectralz.sampling.path import from_coins
from spectralz.sampling.pilot import VARIANCE
from spectralz.sampling.plan import LEAST_POINTS, bytes_per_state, seconds_per_state, seconds_per_sweep
from spectralz.sampling.populations import marginals_of
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import prolonged
from spectralz.trust.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from spectralz._support.deadline import Deadline
    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.sampling.core import Work
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run
    from spectralz.sampling.spread import Crew


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
    path = from_coins(model)
    with crew_for(path) as crew:
        one = seconds_per_sweep(path, parallel=crew.parallel)
        needed = path.engine.together * LEAST_POINTS * one
        if needed > policy.ANNEALING_SHARE * deadline.seconds:
            yield answers.without(_too_long(needed, deadline), *methods)
            return
        needed = path.engine.together * seconds_per_state(path, VARIANCE, one)
        is_hasty = needed > policy.POPULATION_SHARE * deadline.left
        if is_hasty and not path.can_begin_from_subgraph:
            steps = both_ways(problem, deadline, crew, answers)
        elif _states_in_memory(problem, path) < policy.STATES_TOGETHER:
            yield answers.without(f"{policy.STATES_TOGETHER} states do not fit into max_memory", *methods)
            return
        else:
            steps = _by_populations(problem, deadline, crew, answers, is_hasty=is_hasty)
        for latest in steps:
            yield replace(latest, complaint=crew.workers.complaint)


def _by_populations(
    problem: Problem, deadline: Deadline, crew: Crew, answers: Answers, *, is_hasty: bool
) -> Iterator[Answers]:
    """Take the actions of the core, until the error is as small as wanted."""
    model = problem.model
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


def _seconds_of_dense(model: Model) -> float:
    """Return the time of the fewest states of a large dense model on a CPU, where even timing a sweep takes long."""
    if model.n <= policy.LARGE_DENSE or not model.storage.for_kernels().is_dense or device_for(model.n) is not None:
        return 0.0
    return policy.STATES_TOGETHER * LEAST_POINTS * dense_operations(model.n) / clock.OPERATIONS_PER_SECOND


def _too_long(needed: float, deadline: Deadline) -> str:
    words = clock.in_words(needed), clock.in_words(deadline.seconds)
    return f"the fewest useful states would take about {words[0]}, {words[1]} are left"


def _with_annealing(problem: Problem, work: Work, answers: Answers, seconds: float) -> Answers:
    """Return the answers with that of the populations counted so far."""
    if "annealing" in problem.exclude:
        return answers
    outcome = outcome_of(work)

    def marginals() -> MarginalOutcome:
        return marginals_of(problem.model, continued(problem.model, states_of(work), work.rng), outcome)

    return answers.with_answer(Answer("annealing", outcome, seconds, marginals))


def continued(model: Model, run: Run, rng: np.random.Generator) -> Run:
    """Return states that go on at the model, as many as there is time for: log Z needs fewer than means do."""
    one = costs.MEANS_ENTRY * (model.n + 2 * model.edge_count + len(model.higher.spin)) / clock.OPERATIONS_PER_SECOND
    affordable = min(policy.SPINS_FOR_MARGINALS / max(model.n, 1), current().left / one, policy.STATES_FOR_MARGINALS)
    run = run.thinned(math.ceil(run.size / max(affordable, policy.FEWEST_FOR_MARGINALS)))
    sweeps = int(affordable / run.size)
    if sweeps <= 1:
        return run
    path = from_coins(model)
    with crew_for(path) as crew:
        return prolonged(path, run, sweeps, rng, crew.parallel)

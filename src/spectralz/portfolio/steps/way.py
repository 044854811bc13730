"""The way to the model that annealing takes: its path, how its points are spaced, and what a sweep costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.leading import DIRECTIONS as SEED_DIRECTIONS
from spectralz.parts.leading import collective_directions
from spectralz.portfolio import policy
from spectralz.portfolio.steps.rounds import plan_round
from spectralz.sampling.base_rates import weak_biases
from spectralz.sampling.path import from_subgraph
from spectralz.sampling.phases import DIRECTIONS, seed_states
from spectralz.sampling.plan import LEAST_POINTS, Survey, bytes_per_state, seconds_per_point, seconds_per_sweep, survey
from spectralz.sampling.plan import SWEEPS as SURVEY_SWEEPS
from spectralz.sampling.run import RESAMPLE_BELOW, anneal
from spectralz.sampling.strata import path_to_stratum
from spectralz.sampling.subgraph import width_of
from spectralz.trust.runs import FEWEST_FAMILIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.portfolio.answers import Problem
    from spectralz.portfolio.steps.rounds import Round
    from spectralz.sampling.path import Path
    from spectralz.sampling.phases import Stratum
    from spectralz.sampling.populations import Run
    from spectralz.sampling.spread import Crew


@dataclass(frozen=True)
class Way:
    """How one model is annealed.

    Attributes
    ----------
    problem, deadline
        What is asked, and by when.
    crew, rng
        The threads and workers that make runs, and their random numbers.
    path, spacing
        The path, and the density of points along it.
    one, pace
        Seconds of a sweep over one state in one thread, and of one among many on all threads.
    """

    problem: Problem
    deadline: Deadline
    crew: Crew
    rng: np.random.Generator
    path: Path
    spacing: Survey
    one: float
    pace: float

    @cached_property
    def directions(self) -> list[FloatArray]:
        """Directions of collective states, along which phases are searched for."""
        return collective_directions(self.problem.model, DIRECTIONS)

    @cached_property
    def seeds(self) -> NDArray[np.int8]:
        """States along the first of these eigenvectors."""
        return seed_states(self.path, self.directions[:SEED_DIRECTIONS], self.crew.parallel)

    @property
    def worker_count(self) -> int:
        """Number of runs made at once; if operations are counted, the plan must not depend on it."""
        return 1 if clock.counts_operations() else self.crew.workers.count

    def sweeps_in(self, seconds: float) -> float:
        """Return how many sweeps over a state that takes."""
        return seconds / max(self.pace, policy.TICK)

    def plan(self, sweeps: float, dissipation: float, runs: Sequence[Run] = ()) -> Round | None:
        """Divide so many sweeps into points, states and runs, beside runs that are kept."""
        room = self.problem.max_memory / bytes_per_state(self.path) - sum(run.size for run in runs)
        sides, together = self.path.sides, self.path.engine.together
        spins = self.path.n if sides is None else len(sides.kept)
        divided = partial(plan_round, sweeps, dissipation, room, self.worker_count, spins)
        many = divided(_states_to_flip(self.path)) if self.path.flips else None
        return many if many is not None and many.runs >= policy.FEWEST_RUNS else divided(together)


def way_along(problem: Problem, deadline: Deadline, crew: Crew, path: Path) -> Way:
    """Return the way along a path that has not been surveyed: as if it were straight."""
    one = seconds_per_sweep(path, parallel=crew.parallel)
    straight = Survey(np.array([0.0, 1.0]), np.array([0.0, math.sqrt(problem.model.n)]))
    rng = np.random.default_rng(problem.seed)
    return Way(problem, deadline, crew, rng, path, straight, one, crew.seconds_of_many(path, one))


def way_to_stratum(way: Way, stratum: Stratum) -> Way:
    """Return the way to a stratum of the same model, with random numbers of its own."""
    to = way_along(way.problem, way.deadline, way.crew, path_to_stratum(way.path, stratum))
    return _surveyed(replace(to, rng=np.random.default_rng([way.problem.seed, stratum.number])))


def begun(way: Way, *, tries_subgraph: bool) -> Way:
    """Choose the base of the path, and on a bipartite model how states are swept, and survey it.

    The path from a subgraph is shorter. But it is as cold as the model all along, and states may freeze on it. So it is
    tried, and taken if log-weights vary less than on the other path, and vary less with more points.
    """
    path = way.path
    if path.can_flip_sides:
        return _begun_between_sides(way)
    if not tries_subgraph:
        return _surveyed(way)
    point = seconds_per_point(path, policy.STATES_TOGETHER, parallel=way.crew.parallel)
    points = policy.TRIAL_SHARE * way.deadline.seconds / max(point, policy.TICK)
    can_be_tried = points >= policy.TRIAL_TIMES * LEAST_POINTS
    if not can_be_tried and path.couplings.mean_strength > policy.WARM:
        return _surveyed(way)
    shorter = _surveyed(replace(way, path=from_subgraph(path, width_of(way.problem.model.n))))
    if not can_be_tried:
        return shorter
    many = min(points, policy.MOST_POINTS_OF_TRIAL)
    spread = _spread_of_trial(shorter, many)
    is_frozen = (
        spread > policy.HARMLESS_SPREAD
        and _spread_of_trial(shorter, many / policy.TRIAL_TIMES) < policy.LEAST_FALL * spread
    )
    other = _surveyed(way)
    is_other_better = is_frozen or policy.TRIAL_MARGIN * spread > _spread_of_trial(other, many)
    return other if is_other_better else shorter


def _begun_between_sides(way: Way) -> Way:
    """Choose whether a side of a bipartite model is drawn at once or flipped spin by spin, and the base of the path.

    All get the same time for a few states. Their mean log-weight is below log Z by what is lost on the way, so the
    largest is the best.
    """
    path, first = way.path, _surveyed(way)
    ways = [first] if not path.base.any() else [first, _surveyed(_along(first, replace(path, base=np.zeros(path.n))))]
    # Points are spaced alike for both kinds of sweeps: by variances in equilibrium.
    ways += [_along(one, replace(one.path, flips=True)) for one in ways]
    seconds = policy.SIDES_TRIAL_SHARE * way.deadline.seconds
    tried = [
        (_mean_log_weight_of_trial(one, seconds) - policy.FLIPS_MARGIN * one.path.flips, one)
        for one in ways
        if _points_in(one, seconds) >= LEAST_POINTS
    ]
    best = max(tried, key=lambda trial: trial[0])[1] if len(tried) > 1 else first
    return _from_best_base(best) if best.path.flips else best


def _from_best_base(way: Way) -> Way:
    """Return the way from weak biases instead, if few states find heavy valleys, unless they find a smaller Z.

    Mean log-weights do not show that. An unbiased estimate is rarely much too large, and less so without its heaviest
    family.
    """
    states, seconds = _states_to_flip(way.path), policy.BASES_TRIAL_SHARE * way.deadline.seconds
    points = way.sweeps_in(seconds) / states
    if points < LEAST_POINTS:
        return way
    run = _trial(way, points, states, RESAMPLE_BELOW)
    if run.families >= FEWEST_FAMILIES:
        return way
    layers = replace(way.path, base=weak_biases(way.problem.model), flips=False)
    other = _along(_surveyed(_along(way, layers)), replace(layers, flips=True))
    other_run = _trial(other, points, states, RESAMPLE_BELOW)
    is_lost = log_z_without_heaviest(other_run) < log_z_without_heaviest(run) - policy.BASES_MARGIN
    return way if is_lost else other


def log_z_without_heaviest(run: Run) -> float:
    """Return the log Z of a run without its heaviest family."""
    others = np.sort(run.family_weights())[:-1].sum()
    return run.log_z + float(np.log(max(others, UNIT_ROUNDOFF)))


def _states_to_flip(path: Path) -> int:
    """Return the fewest states of a run that flips a side."""
    on_device = path.engine.together > policy.STATES_TOGETHER
    return policy.STATES_TO_FLIP_ON_DEVICE if on_device else policy.STATES_TO_FLIP


def _along(way: Way, path: Path) -> Way:
    """Return the way along another path, with points spaced alike."""
    other = way_along(way.problem, way.deadline, way.crew, path)
    return replace(other, rng=way.rng, spacing=way.spacing)


def _points_in(way: Way, seconds: float) -> float:
    """Return how many points a few states pass in so many seconds."""
    return min(seconds / (way.one * way.path.engine.together), policy.MOST_POINTS_OF_TRIAL)


def _mean_log_weight_of_trial(way: Way, seconds: float) -> float:
    """Return the mean log-weight of a few states after so many seconds on a path."""
    return mean_log_weight(_trial(way, _points_in(way, seconds), way.path.engine.together))


def mean_log_weight(run: Run) -> float:
    """Return the mean log-weight of the states of a run without resampling."""
    with np.errstate(divide="ignore"):  # a weight may underflow
        return run.log_z + float(np.log(run.size * run.weight).mean())


def _spread_of_trial(way: Way, points: float) -> float:
    """Return the variance of the log-weights of a few states at the end of a path."""
    return float(_trial(way, points, way.path.engine.together).spread[-1])


def _trial(way: Way, points: float, states: int, resample_below: float = 0.0) -> Run:
    """Take some states along a path."""
    at = way.spacing.spaced(points)
    return anneal(way.path, at, states, way.rng, resample_below=resample_below, parallel=way.crew.parallel)


def _surveyed(way: Way) -> Way:
    """Measure the length of the path, if there is time for it."""
    path, crew = way.path, way.crew
    states = path.engine.together  # as many take as long
    needed = states * SURVEY_SWEEPS * (LEAST_POINTS + 1) * way.one
    if needed > policy.SURVEY_SHARE * way.deadline.seconds:
        return way
    began = clock.now()
    with Deadline.after(policy.SURVEY_TIMES * needed).in_force():
        measured = survey(path, way.rng, crew.parallel)
    # On shared cores this tells more than a few sweeps did.
    seen = (clock.now() - began) / (states * SURVEY_SWEEPS * len(measured.points))
    return replace(way, spacing=measured, pace=crew.seconds_of_many(path, max(seen, way.one)))

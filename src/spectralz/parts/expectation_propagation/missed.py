"""What the phases of expectation propagation may miss: states beyond them, between them, and unseen ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, deadline
from spectralz.kernels.consistency_of_many import deviations_to, looser_bound
from spectralz.kernels.expectation_consistency import INNER_TOLERANCE, Point, point_at, upper_bound
from spectralz.parts.expectation_propagation.phases import Fit, Phases, fields_of
from spectralz.parts.expectation_propagation.problem import Problem, State, mean_field, state_at, step_operations

if TYPE_CHECKING:
    from spectralz.model import FloatArray

# Mean field underrates the states that it bounds: a state's share of Z was up to this many times what its bound says.
UNDERRATED = 2.0
# A Gaussian covers what is within this many of its deviations along a line; what is beyond is another state.
REACH = 3.0
# States lighter than this, by the mean-field bound, are not looked for; most states whose weight is evaluated.
NEGLIGIBLE, MOST_TARGETS = 1e-9, 3
# The weight on the way to another state is evaluated at this many points, or at fewer if the time is up.
SHELF_POINTS, FEW_SHELF_POINTS = 9, 3
# With many spins, errors of this size in the variances change Phi by n times its square.
SHELF_TOLERANCE = 1e-4
# The weight between two phases is this share of the bound's weight at the lowest of this many points on the way.
BARRIER_SHARE, BARRIER_POINTS = 0.5, 11


def missed(problem: Problem, phases: Phases, states: list[State]) -> float:
    """Return what log Z may gain from mean-field states that no phase reaches, and from unseen states.

    A state is reached if it is no farther from the mean than the Gaussian's own samples are, in units of the Gaussian.
    """
    nearest = mean_field(problem, phases.first.point.h)
    reference, gains = nearest.lower, []
    means = _means_of(states)
    is_reached = np.any([_distances(fit.point, means) <= problem.n for fit in phases.fits], axis=0)
    for state, reached in zip(states, is_reached, strict=True):
        if reached or state.is_at(nearest.h):
            reference = max(reference, state.lower)
        else:
            gains.append(state.lower)
    others = float(np.logaddexp.reduce([0.0, *(math.log(UNDERRATED) + gain - reference for gain in gains)]))
    unseen = _unseen(states) if phases.first.start == "mean field" else 0.0
    if len(phases.fits) > 1:
        unseen += _overlooked(states)
    beyond = _beyond(problem, phases, states, nearest.lower)
    return max(others, beyond) + _between(problem, phases, reference) + unseen


def _means_of(states: list[State]) -> FloatArray:
    """Return the means of states, one state per column."""
    return np.asarray(np.tanh(np.array([state.h for state in states]).T))


def _distances(point: Point, means: FloatArray) -> FloatArray:
    """Return squared Mahalanobis distances from the Gaussian's mean; for its own samples their mean is n."""
    apart = (means - point.mean[:, None]) / np.sqrt(point.variance)[:, None]
    return np.asarray((apart * (point.precision[:, None] * apart - point.coupling @ apart)).sum(axis=0))


def _beyond(problem: Problem, phases: Phases, states: list[State], reference: float) -> float:
    """Return what log Z gains from states that Phi shows beyond the Gaussian.

    A collective mode is one direction of n: two phases that are many deviations apart in it are hardly farther from
    each other, in all directions together, than samples are. The opposite means may hold a share of Z without being an
    optimum.
    """
    first = phases.first
    against = min(0.0, -2.0 * float(problem.field @ first.point.mean))
    # Only the way to an optimum may be a shelf; with strong couplings Phi is too large on any way.
    means = np.column_stack([-first.point.mean, _means_of(states)])
    nearest = np.min([deviations_to(fit.point, means) for fit in phases.fits], axis=0)
    gains = [against, *(state.lower - reference for state in states)]
    targets = [
        (means[:, k], k > 0 and problem.is_weak)
        for k in sorted(range(len(gains)), key=lambda k: -gains[k])
        if gains[k] > math.log(NEGLIGIBLE) and nearest[k] > REACH and not phases.has_between(means[:, k])
    ]
    added = [0.0]
    for target in targets[:MOST_TARGETS]:
        if deadline.is_past():  # a state that was not evaluated may be as heavy as the phase itself
            return math.log(2.0)
        added.append(_gain_at(problem, first, *target))
    return max(added)


def _gain_at(problem: Problem, fit: Fit, mean: FloatArray, has_way: bool) -> float:
    """Return what another state adds and, if ``has_way``, what the way to it adds beyond the Gaussian's reach.

    Relative to the phase, the state's weight is exp(Phi) at its means, as measured, and the weight of the way is the
    integral of exp(Phi) along it, in deviations of the phase. A state that is about to merge with a phase is a shelf,
    almost flat, and its length matters more than the height at its end.
    """
    length = fit.deviations_to(mean)
    end = _weight_at(problem, fit, mean, length)
    if not has_way:
        return math.log1p(end)
    # The points are densest where the weight decreases fastest.
    places = np.geomspace(REACH, length, FEW_SHELF_POINTS if deadline.is_past() else SHELF_POINTS)
    line = (mean - fit.point.mean) / length
    weights = [_weight_at(problem, fit, fit.point.mean + place * line, place) for place in places[:-1]]
    steps = 0.5 * (np.diff(places[:-1], prepend=REACH) + np.diff(places))
    return math.log1p(float(steps @ weights) / math.sqrt(2.0 * math.pi) + end)


def _weight_at(problem: Problem, fit: Fit, mean: FloatArray, deviations: float) -> float:
    """Return exp(Phi) at means this many deviations away, relative to that of a phase, or 0 in the phase's tail."""
    theta, J, h = problem.field, problem.J, fields_of(mean)
    # What decreases as fast as the Gaussian, or half as fast, is its own tail; a bound shows this without
    # factorizations.
    tail = fit.point.value - 0.25 * deviations**2
    if upper_bound(theta, J, h, fit.point) <= tail:
        return 0.0
    clock.charge(step_operations(problem.n))
    if problem.has_many_spins and looser_bound(theta, J, h, fit.point) <= tail:
        return 0.0
    tol = SHELF_TOLERANCE if problem.has_many_spins else INNER_TOLERANCE
    point = point_at(theta, J, h, fit.point.precision, deadline.is_past, tol)
    if point is None or point.value <= tail:
        return 0.0
    return math.exp(min(point.value - fit.point.value, 0.0))


def _between(problem: Problem, phases: Phases, reference: float) -> float:
    """Return what log Z gains between phases, by the mean-field bound at the lowest point on the way."""
    weight = 0.0
    for p, first in enumerate(phases.fits):
        for second in phases.fits[:p]:
            way = np.linspace(first.point.mean, second.point.mean, BARRIER_POINTS + 2)[1:-1]
            lowest = min(state_at(problem, h).lower for h in fields_of(way))
            weight += BARRIER_SHARE * math.exp(min(lowest - reference, 0.0))
    return math.log1p(weight)


def _unseen(states: list[State]) -> float:
    """Return what a better state that no start reached may add.

    It is how far below the best state the starts ended on average, and less if several starts reached the best.
    """
    hits = np.array([state.hits for state in states])
    ends = np.array([state.lower for state in states])
    return float(hits @ (ends[0] - ends) / hits.sum() / hits[0] ** 2)


def _overlooked(states: list[State]) -> float:
    """Return what as many new starts would miss of the states found: a state with k hits with probability exp(-k).

    It stands for the phases that these starts have missed themselves.
    """
    lower = np.array([state.lower for state in states])
    shares = np.exp(lower - np.logaddexp.reduce(lower))
    return math.log1p(float(shares @ np.exp([-state.hits for state in states])))

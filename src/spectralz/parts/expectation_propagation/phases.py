"""Fixed points of expectation propagation: where climbs of Phi end, and which of them are separate phases."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels import expectation_consistency as consistency
from spectralz.kernels.consistency_of_many import deviations_to, reaction_scale, relaxed, settled, tap_start
from spectralz.kernels.expectation_consistency import Point, Terms, correction_terms
from spectralz.parts.expectation_propagation.problem import SAME_MEAN, Problem, State, step_operations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spectralz.model import FloatArray

# Beyond this sum of sizes the series of corrections is useless: the first one is not added, and Phi is not trusted.
LARGEST_SIZES = 2.0
# The corrections that follow, relative to the leading ones: a positive sum grows by the terms after it, a negative sum
# belongs to an alternating series, and neither exceeds this share; as measured on Curie-Weiss models, on blocks and on
# Hopfield networks. The total is multiplied by the last number.
RISING, SETTLING, MOST_OF_LOOPS, SAFETY = 3.0, 1.5, 0.6, 1.25
# Fixed points are separate phases if each is this many of the other's standard deviations away, along their line.
APART = 4.0
# A point is between two phases if the way through it is at most this many times as long as the direct way.
DETOUR = 1.1
# Most other states from which the climb is repeated.
MOST_STARTS = 12
# The reaction of the spins counts as that of a glass if it differs from it by at most this factor, either way.
OTHER_REACTION = 1.5
# A start that comes this close to a fixed point, in standard deviations, would end there.
NEAR = 0.3


@dataclass(frozen=True)
class Fit:
    """Where an ascent of Phi ended."""

    point: Point
    terms: Terms
    iterations: int
    residual: float
    damping: float
    start: str
    is_settled: bool

    @property
    def is_correctable(self) -> bool:
        """Whether the series of corrections is useful."""
        return self.terms.sizes <= LARGEST_SIZES

    @property
    def correction(self) -> float:
        """The leading correction to Phi."""
        return self.terms.third + self.terms.fourth

    @property
    def value(self) -> float:
        """Phi, with the correction if that is useful."""
        return self.point.value + (self.correction if self.is_correctable else 0.0)

    @cached_property
    def left_out(self) -> float:
        """An error scale for the corrections of higher order.

        They begin with those of three and four spins and those of pairs from l = 5 on. If these are not small compared
        with the correction itself, the terms after them count as well.
        """
        sizes = self.terms.sizes
        if not 0.0 < sizes < math.inf:
            return sizes
        if deadline.is_past() and not self.is_settled:
            return sizes  # there will be no error to quote, and products of matrices take as long as a step
        above, below = (abs(total) / sizes for total in consistency.loop_terms(self.point))
        # In this order of arguments, NaN counts as the largest share.
        loops = min(MOST_OF_LOOPS, above * (1.0 + RISING * above) + below / (1.0 + SETTLING * below))
        return SAFETY * (loops * sizes + consistency.higher_terms(self.point))

    @property
    def covariance(self) -> FloatArray:
        """The covariances of the spins."""
        deviation = np.sqrt(self.point.variance)
        return np.asarray(deviation[:, None] * self.point.correlation * deviation)

    def is_at(self, other: Fit) -> bool:
        """Return whether the means are those of another fit."""
        return bool(np.abs(self.point.mean - other.point.mean).max(initial=0.0) <= SAME_MEAN)

    def deviations_to(self, mean: FloatArray) -> float:
        """Return the distance to ``mean`` in standard deviations of the spins' sum along the line to it."""
        return float(deviations_to(self.point, mean[:, None])[0])

    def is_apart_from(self, other: Fit) -> bool:
        """Return whether the two are separate states according to both Gaussians."""
        return min(self.deviations_to(other.point.mean), other.deviations_to(self.point.mean)) >= APART


@dataclass(frozen=True)
class Phases:
    """Fixed points that are separate states, the preferred one first; their weights add up."""

    fits: list[Fit]

    @property
    def first(self) -> Fit:
        """The preferred one."""
        return self.fits[0]

    @property
    def shares(self) -> FloatArray:
        """The share of each in Z."""
        values = np.array([fit.value for fit in self.fits])
        return np.asarray(np.exp(values - np.logaddexp.reduce(values)))

    def has_between(self, mean: FloatArray) -> bool:
        """Return whether the means lie between two phases, where one Gaussian covers both."""
        return any(
            np.linalg.norm(mean - p) + np.linalg.norm(mean - q) <= DETOUR * np.linalg.norm(p - q)
            for p, q in itertools.combinations([fit.point.mean for fit in self.fits], 2)
        )

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the fields that give the means over all phases, and the covariances."""
        if len(self.fits) == 1:
            return self.first.point.h, self.first.covariance
        means = np.array([fit.point.mean for fit in self.fits])
        mean = self.shares @ means
        within = sum(share * fit.covariance for share, fit in zip(self.shares, self.fits, strict=True))
        between = (self.shares[:, None] * (means - mean)).T @ (means - mean)
        return fields_of(mean), within + between


def fields_of(mean: FloatArray) -> FloatArray:
    """Return the fields in which single spins have these means; they are finite, even where a mean is -1 or 1."""
    return np.asarray(np.arctanh(np.clip(mean, -1.0 + UNIT_ROUNDOFF, 1.0 - UNIT_ROUNDOFF)))


def phases_of(
    problem: Problem, states: list[State], climbed: Callable[[FloatArray, str], Fit | None], largest_error: float
) -> Phases | None:
    """Climb from the fields and from the mean-field states; return the fixed point to use, and separate ones.

    A single Gaussian may cover several phases, with a large correction. So among the fixed points with a possible
    value, the one that leaves out least is used. Those that are many of its deviations away from it, and leave out no
    more than ``largest_error``, are separate phases, and their weights are added.
    """
    fits: list[Fit] = []
    for h, start in _starts(problem, states, fits):
        fit = climbed(h, start)
        if fit is not None and not any(fit.is_at(other) for other in fits):
            fits.append(fit)
        if fits and (len(states) == 1 or deadline.is_past()):
            break  # nothing else to find, or no time for it
    if not fits:
        return None
    least = states[0].lower
    best = min(fits, key=lambda fit: (fit.point.value < least, not fit.is_settled, fit.left_out))
    others = [fit for fit in fits if fit is not best and fit.is_settled and fit.left_out <= largest_error]
    phases = [best]
    for fit in sorted(others, key=lambda fit: -fit.value):
        if all(fit.is_apart_from(phase) for phase in phases):
            phases.append(fit)
    return Phases(phases)


def _starts(problem: Problem, states: list[State], fits: list[Fit]) -> Iterator[tuple[FloatArray, str]]:
    """Yield starts of a climb, each with a word for it, while ``fits`` are found.

    In a glass at high temperature mean field finds states that do not exist, and all climbs from these would end at one
    point. So with many spins they first relax, without factorizations, and those that come to a known fixed point are
    left out.
    """
    yield problem.field, "field"
    starts = [state.h for state in states[:MOST_STARTS]]
    is_glass = problem.has_many_spins and bool(fits) and _is_glass(problem, fits[0].point)
    if is_glass:
        starts = list(relaxed(problem.field, problem.J, np.array(starts).T, fits[0].point, NEAR, deadline.is_past).T)
    for h in starts:
        if not is_glass or all(fit.deviations_to(np.tanh(h)) > NEAR for fit in fits):
            yield h, "mean field"


def _is_glass(problem: Problem, point: Point) -> bool:
    """Say whether the spins react to each other as in a glass: only then does TAP predict where a climb ends.

    A Gaussian that covers two phases of a ferromagnet would draw all starts to its center.
    """
    return 1.0 / OTHER_REACTION <= reaction_scale(problem.J, point) <= OTHER_REACTION


def climb(problem: Problem, h: FloatArray, start: str, *, max_iter: int, tol: float, damping: float) -> Fit | None:
    """Ascend Phi from the fields ``h``; None if there is no feasible Gaussian in double precision."""
    fit = _settled(problem, h, start, max_iter, tol) if problem.has_many_spins and not damping else None
    if fit is not None:
        return fit
    theta, J, shift = problem.field, problem.J, damping
    point = consistency.point_at(theta, J, h, is_up=deadline.is_past)
    if point is None:
        return None
    slack = 1e-12 * max(1.0, float(np.abs(theta) @ np.abs(point.mean)) + abs(point.value))
    iterations, residual = 0, _residual(problem, point)
    clock.charge(2.0 * step_operations(problem.n))
    while iterations < max_iter and residual > tol and not deadline.is_past():
        clock.charge(step_operations(problem.n))
        better = consistency.improved(theta, J, point, shift, slack, deadline.is_past)
        if better is None:
            break
        point, shift = better
        iterations, residual = iterations + 1, _residual(problem, point)
        report("climbing", iterations / max_iter)
    return Fit(point, correction_terms(point), iterations, residual, shift, start, residual <= tol)


def _settled(problem: Problem, h: FloatArray, start: str, max_iter: int, tol: float) -> Fit | None:
    """Find a fixed point close to the fields ``h`` with few factorizations; None if that does not work at once."""
    steps = itertools.count(1)

    def made() -> None:
        clock.charge(step_operations(problem.n))
        report("climbing", min(next(steps) / max_iter, 1.0))

    near = tap_start(problem.field, problem.J, h, deadline.is_past)
    way = settled(problem.field, problem.J, near, tol, max_iter + 1, deadline.is_past, made)
    if way is None:
        return None
    is_settled = way.residual <= tol
    return Fit(way.point, correction_terms(way.point), way.steps - 1, way.residual, 0.0, start, is_settled)


def _residual(problem: Problem, point: Point) -> float:
    """Return the largest distance of a field from a fixed point, in deviations, or the mismatch of the variances."""
    push = consistency.gradient(problem.field, problem.J, point) * np.sqrt(point.variance)
    return max(float(np.abs(push).max(initial=0.0)), point.mismatch)

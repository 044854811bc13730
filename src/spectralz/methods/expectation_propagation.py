"""Expectation propagation: a Gaussian and single spins that agree on means and variances, and what they leave out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import device_option
from spectralz._support.options import count, flag, not_negative, option, positive, repetitions, threads_option
from spectralz._support.progress import report
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import Couplings
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field.ascents import ascend_in_time, ascend_together_in_time, bound_at, bounds_at
from spectralz.parts.mean_field.independent_spins import probabilities
from spectralz.parts.pairs import pairs_of
from spectralz.result import Kind, Status
from spectralz.trust.propagation import LARGEST_ERROR, judge_propagation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.kernels.expectation_consistency import Point, Terms
    from spectralz.model import FloatArray, Ising

__all__ = ["MANY_SPINS", "ExpectationPropagation", "step_operations"]

# About ten matrices of n x n numbers, and dozens of their factorizations.
MOST_SPINS = 5000
# Beyond this sum of sizes the series of corrections is useless: the first one is not added, and Phi is not trusted.
LARGEST_SIZES = 2.0
MEAN_FIELD_SWEEPS = 300
# The share of the time that all of these take.
STATES_SHARE = 0.4
# Operations of a step per n^3 and per n^2; then the same for steps with only one factorization.
CUBIC_OPERATIONS, SQUARE_OPERATIONS = 0.6, 400.0
OPERATIONS_OF_MANY = 0.015, 30.0
MEAN_FIELD_TOLERANCE = 1e-8
# Beyond this many spins factorizations take most of the time: kernels/consistency_of_many.py needs only a few of them.
# Mean field climbs from all starts at once, and not as far, since its states are then only starting points.
MANY_SPINS = 500
FEW_MEAN_FIELD_SWEEPS, ROUGH_MEAN_FIELD_TOLERANCE = 100, 1e-5
# Errors of this size in the variances change Phi by n times its square.
SHELF_TOLERANCE = 1e-4
# The reaction of the spins counts as that of a glass if it differs from it by at most this factor, either way.
OTHER_REACTION = 1.5
# A start that comes this close to a fixed point, in standard deviations, would end there.
NEAR = 0.3
# Optima of mean field whose means differ by less are the same.
SAME_MEAN = 1e-3
# Fixed points are separate phases if each is this many of the other's standard deviations away, along their line.
APART = 4.0
# A Gaussian covers what is within this many of its deviations along a line; what is beyond is another state.
REACH = 3.0
# Most other states from which the climb is repeated, and most states whose weight is evaluated.
MOST_STARTS, MOST_TARGETS = 12, 3
# The weight between two phases is this share of the bound's weight at the lowest of this many points on the way.
BARRIER_SHARE, BARRIER_POINTS = 0.5, 11
# States lighter than this, by the mean-field bound, are not looked for.
NEGLIGIBLE = 1e-9
# The weight on the way to another state is evaluated at this many points, or at fewer if the time is up.
SHELF_POINTS, FEW_SHELF_POINTS = 9, 3
# The corrections that follow, relative to the leading ones: a positive sum grows by the terms after it, a negative sum
# belongs to an alternating series, and neither exceeds this share; as measured on Curie-Weiss models, on blocks and on
# Hopfield networks. The total is multiplied by the last number.
RISING, SETTLING, MOST_OF_LOOPS, SAFETY = 3.0, 1.5, 0.6, 1.25
# A point is between two phases if the way through it is at most this many times as long as the direct way.
DETOUR = 1.1
# Phases are trusted if no coupling is larger than this.
LARGEST_OF_MANY = 0.2
# With strong couplings this share of the leading terms' sizes is left out as well: clusters of spins flip together.
STRONG_SHARE = 0.5
# Mean field underrates the states that it bounds: a state's share of Z was up to this many times what its bound says.
UNDERRATED = 2.0
SANITY_SLACK = 1e-9


@dataclass(frozen=True)
class _Problem:
    """theta; J = 2 A without its diagonal, dense; and the leading eigenvectors of J."""

    field: FloatArray
    J: FloatArray
    leading: list[FloatArray]

    @classmethod
    def of(cls, model: Ising) -> _Problem:
        J = 2.0 * model.storage.without_diagonal().dense()
        return cls(np.array(model.field), J, leading_directions(model.storage))

    @property
    def n(self) -> int:
        return len(self.field)

    @property
    def has_many_spins(self) -> bool:
        return self.n > MANY_SPINS

    @property
    def rows(self) -> Couplings:
        """J in the form that the mean-field kernels take."""
        return Couplings.of_dense(self.J)

    @cached_property
    def is_collective(self) -> bool:
        """Whether no single coupling matters: only then do phases belong to modes that many spins share.

        On lattices neighboring spins cause the transition, and a Gaussian puts it elsewhere.
        """
        return float(np.abs(self.J).max(initial=0.0)) <= LARGEST_OF_MANY

    @cached_property
    def is_weak(self) -> bool:
        """Whether the squares of a spin's couplings add up to less than 1, on average.

        With strong couplings and small correlations, as in antiferromagnets, whose sum of spins takes only a few
        values, the error is larger than any of the corrections shows.
        """
        return self.rows.mean_strength < 1.0

    @cached_property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + 0.5 * np.abs(self.J).sum())


@dataclass(frozen=True)
class _State:
    """An end point of mean-field ascents: the bound there, lowered by rounding, and how many ascents ended there."""

    h: FloatArray
    lower: float
    hits: int = 1

    def is_at(self, h: FloatArray) -> bool:
        """Return whether the means are those of the fields ``h``."""
        return bool(np.abs(np.tanh(self.h) - np.tanh(h)).max(initial=0.0) <= SAME_MEAN)


@dataclass(frozen=True)
class _Fit:
    """Where an ascent of Phi ended."""

    point: Point
    terms: Terms
    iterations: int
    residual: float
    damping: float
    start: str
    is_settled: bool

    @property
    def value(self) -> float:
        """Phi, with the correction if that is useful."""
        return self.point.value + (self.correction if self.terms.sizes <= LARGEST_SIZES else 0.0)

    @property
    def correction(self) -> float:
        return self.terms.third + self.terms.fourth

    @cached_property
    def left_out(self) -> float:
        """An error scale for the corrections of higher order.

        They begin with those of three and four spins and those of pairs from l = 5 on. If these are not small compared
        with the correction itself, the terms after them count as well.
        """
        from spectralz.kernels.expectation_consistency import higher_terms, loop_terms

        sizes = self.terms.sizes
        if not 0.0 < sizes < math.inf:
            return sizes
        if clock.is_up() and not self.is_settled:
            return sizes  # there will be no error to quote, and products of matrices take as long as a step
        above, below = (abs(total) / sizes for total in loop_terms(self.point))
        # In this order of arguments, NaN counts as the largest share.
        loops = min(MOST_OF_LOOPS, above * (1.0 + RISING * above) + below / (1.0 + SETTLING * below))
        return SAFETY * (loops * sizes + higher_terms(self.point))

    def is_at(self, other: _Fit) -> bool:
        """Return whether the means are those of another fit."""
        return bool(np.abs(self.point.mean - other.point.mean).max(initial=0.0) <= SAME_MEAN)

    def deviations_to(self, mean: FloatArray) -> float:
        """Return the distance to ``mean`` in standard deviations of the spins' sum along the line to it."""
        return float(self.all_deviations_to(mean[:, None])[0])

    def all_deviations_to(self, means: FloatArray) -> FloatArray:
        """Return the same for several means, given as columns."""
        from spectralz.kernels.consistency_of_many import deviations_to

        return deviations_to(self.point, means)

    def is_apart_from(self, other: _Fit) -> bool:
        """Return whether the two are separate states according to both Gaussians."""
        return min(self.deviations_to(other.point.mean), other.deviations_to(self.point.mean)) >= APART


@dataclass(frozen=True)
class _Phases:
    """Fixed points that are separate states, the preferred one first; their weights add up."""

    fits: list[_Fit]

    @property
    def first(self) -> _Fit:
        return self.fits[0]

    @property
    def shares(self) -> FloatArray:
        """The share of each in Z."""
        values = np.array([fit.value for fit in self.fits])
        return np.asarray(np.exp(values - np.logaddexp.reduce(values)))

    @property
    def gain(self) -> float:
        """What the other phases add to log Z of the first."""
        return -math.log(float(self.shares[0]))

    def has_between(self, mean: FloatArray) -> bool:
        """Return whether the means lie between two phases, where one Gaussian covers both."""
        ways = [np.linalg.norm(mean - fit.point.mean) for fit in self.fits]
        return any(
            ways[p] + ways[q] <= DETOUR * np.linalg.norm(self.fits[p].point.mean - self.fits[q].point.mean)
            for p in range(len(ways))
            for q in range(p)
        )

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the fields that give the means over all phases, and the covariances."""
        if len(self.fits) == 1:
            return self.first.point.h, _covariance(self.first.point)
        means = np.array([fit.point.mean for fit in self.fits])
        mean = self.shares @ means
        within = sum(share * _covariance(fit.point) for share, fit in zip(self.shares, self.fits, strict=True))
        between = (self.shares[:, None] * (means - mean)).T @ (means - mean)
        return np.arctanh(np.clip(mean, -1.0 + UNIT_ROUNDOFF, 1.0 - UNIT_ROUNDOFF)), within + between


@dataclass(frozen=True, kw_only=True)
class ExpectationPropagation(Method):
    r"""Estimate log Z by expectation propagation (expectation consistency), with a correction and an error scale.

    A Gaussian with the model's couplings and single spins with its fields are made to agree on means and variances.
    Then log Z = log Z_Gaussian + log Z_spins - log Z_overlap, plus the leading term of what this leaves out, from the
    third and fourth cumulants of the spins. The fixed points are the maxima of a function of the means. Newton steps
    climb it from the means of the fields alone; this converges in cases in which the usual iteration does not. The
    climb is repeated from the states that mean field finds. The fixed point with the smallest error is used. Others
    that are separate phases, many standard deviations away, are added up.

    It is much better than mean field and `bp` on dense graphs with weak couplings. Each step takes a few factorizations
    of n x n matrices: a second for hundreds of spins; from 501 to 5,000 spins, one factorization.

    ``std_error`` is not statistical. It is an error scale, calibrated on models that can be solved: the size of
    corrections of higher order, and what states that the Gaussian does not reach may add. The page
    ``docs/expectation-propagation.md`` has the formula, and how often the error was within twice this scale.
    ``trusted`` says whether it is at most 0.1 and couplings are weak (sum_j J_ij^2 below 1, on average; with several
    phases, no J above 0.2). If it is False, take log Z as an order of magnitude; ``status`` then has not converged.
    ``lower`` is the mean-field bound.

    Parameters
    ----------
    max_iter
        Most Newton steps in one climb.
    tol
        Converged when every field is within this distance of its fixed-point equation, in units of its spin's
        deviation, and all variances agree as well. The error of log Z is then about the square of this.
    damping
        What is added to the curvature in the first step, 0 or more. It is raised after a step that does not ascend and
        lowered after one that does.
    correction
        Whether to add the correction to log Z if it is small enough to be useful.
    restarts
        How many random starts mean field makes in its search for other states.
    seed
        Seed of these starts.
    threads
        Most threads for linear algebra; by default all cores that the process may use. Up to 1,000 spins one thread is
        used; beyond that, the answer depends on the number of threads, but only by rounding.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model is dense with at least 2,000 spins.

    See Also
    --------
    BeliefPropagation : better if the graph is nearly a tree.
    Spectral : gives proven bounds at any strength.

    References
    ----------
    .. [1] Opper, Winther, "Expectation consistent approximate inference", JMLR 6, 2005.
    .. [2] Opper, Paquet, Winther, "Perturbative corrections for approximate inference in Gaussian latent variable
       models", JMLR 14, 2013.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "ep")
    >>> abs(result.log_z - sz.log_z(model, "exact").log_z) < 2 * result.std_error < 0.01
    True
    >>> strong = sz.log_z(model.scaled(20.0), "ep")
    >>> strong.trusted, strong.status.converged, "do not trust" in strong.status
    (False, False, True)
    """

    max_iter: int = option(200, count(least=1))
    tol: float = option(1e-8, positive())
    damping: float = option(0.0, not_negative)
    correction: bool = option(True, flag)
    restarts: int = option(20, repetitions(least=0))
    seed: int = option(0, count(least=0))
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "ep"
    gives_marginals: ClassVar[bool] = True
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self._run(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, h, covariance = self._run(model)
        mean = np.tanh(h)
        i, j = pairs_of(model).T
        # Two spins with these means cannot have a mean product outside these limits.
        least, most = np.abs(mean[i] + mean[j]) - 1.0, 1.0 - np.abs(mean[i] - mean[j])
        return MarginalOutcome(
            mean=mean,
            probability=probabilities(h),
            pair_mean=np.clip(covariance[i, j] + mean[i] * mean[j], least, most),
            kind=Kind.ESTIMATE,
            outcome=outcome,
        )

    def _run(self, model: Ising) -> tuple[Outcome, FloatArray, FloatArray]:
        """Return the outcome, the fields of the spins, and their covariances."""
        if model.n > MOST_SPINS:
            raise TooLargeError(
                f"ep factorizes dense matrices of {model.n} x {model.n} numbers many times and takes up to "
                f"{MOST_SPINS} spins; use bp, or mf for a bound"
            )
        problem = _Problem.of(model)
        states = self._mean_field_states(problem)
        found = self._phases(problem, states)
        if found is None:
            return _out_of_reach(model, states[0]), states[0].h, np.zeros((model.n, model.n))
        return self._outcome(model, problem, found, states), *found.moments()

    def _mean_field_states(self, problem: _Problem) -> list[_State]:
        """Climb the mean-field bound from the fields and from random starts; return the distinct ends, best first."""
        rng = np.random.default_rng(self.seed)
        starts = [problem.field, *problem.leading, *rng.standard_normal((self.restarts, problem.n))]
        # The states only check the answer: enough time must be left for the answer itself.
        with clock.within(STATES_SHARE):
            return self._ends_of_many(problem, starts) if problem.has_many_spins else self._ends_of(problem, starts)

    def _ends_of_many(self, problem: _Problem, starts: list[FloatArray]) -> list[_State]:
        """Do what :meth:`_ends_of` does, from all starts at once."""
        has_field = bool(problem.field.any())
        signed = [sign * h for h in starts for sign in ((1.0, -1.0) if has_field else (1.0,))]
        found: list[_State] = []
        for new in _mean_field_of_many(problem, signed):
            _count_in(found, new)
            if not has_field:  # the opposite start would take the opposite way
                _count_in(found, replace(new, h=-new.h))
        if has_field and not clock.is_up():
            ends = _mean_field_of_many(problem, [-state.h for state in found])
            for new, state in zip(ends, tuple(found), strict=True):
                if not any(other.is_at(new.h) for other in found):
                    found.append(replace(new, hits=state.hits))
        return sorted(found, key=lambda state: -state.lower)

    def _ends_of(self, problem: _Problem, starts: list[FloatArray]) -> list[_State]:
        found: list[_State] = []
        for k, h in enumerate(starts):
            if k and clock.is_up():
                break
            for sign in (1.0, -1.0):
                _count_in(found, _mean_field(problem, sign * h))
            report("looking for states", (k + 1) / len(starts))
        # In a weak field a state and its opposite both matter, but the starts may reach only one of them.
        for state in tuple(found):
            if clock.is_up():
                break
            new = replace(_mean_field(problem, -state.h), hits=state.hits)
            if not any(other.is_at(new.h) for other in found):
                found.append(new)
        return sorted(found, key=lambda state: -state.lower)

    def _phases(self, problem: _Problem, states: list[_State]) -> _Phases | None:
        """Climb from the fields and from the mean-field states; return the fixed point to use, and separate ones.

        A single Gaussian may cover several phases, with a large correction. So among the fixed points with a possible
        value, the one that leaves out least is used. Those that are many of its deviations away from it are separate
        phases, and their weights are added.
        """
        fits: list[_Fit] = []
        for h, start in _starts(problem, states, fits):
            fit = self._climb(problem, h, start)
            if fit is not None and not any(fit.is_at(other) for other in fits):
                fits.append(fit)
            if fits and (len(states) == 1 or clock.is_up()):
                break  # nothing else to find, or no time for it
        if not fits:
            return None
        least = states[0].lower
        best = min(fits, key=lambda fit: (fit.point.value < least, not fit.is_settled, fit.left_out))
        others = [fit for fit in fits if fit is not best and fit.is_settled and fit.left_out <= LARGEST_ERROR]
        phases = [best]
        for fit in sorted(others, key=lambda fit: -fit.value):
            if all(fit.is_apart_from(phase) for phase in phases):
                phases.append(fit)
        return _Phases(phases)

    def _settle(self, problem: _Problem, h: FloatArray, start: str) -> _Fit | None:
        """Find a fixed point close to the fields ``h`` with few factorizations; None if that does not work at once."""
        from spectralz.kernels.consistency_of_many import settled, tap_start
        from spectralz.kernels.expectation_consistency import correction_terms

        steps = 0

        def made() -> None:
            nonlocal steps
            steps += 1
            clock.charge(step_operations(problem.n))
            report("climbing", min(steps / self.max_iter, 1.0))

        theta, J = problem.field, problem.J
        near = tap_start(theta, J, h, clock.is_up)
        way = settled(theta, J, near, self.tol, self.max_iter + 1, clock.is_up, made)
        if way is None:
            return None
        return _Fit(
            way.point, correction_terms(way.point), way.steps - 1, way.residual, 0.0, start, way.residual <= self.tol
        )

    def _climb(self, problem: _Problem, h: FloatArray, start: str) -> _Fit | None:
        """Ascend Phi from the fields ``h``; None if there is no feasible Gaussian in double precision."""
        from spectralz.kernels.expectation_consistency import correction_terms, improved, point_at

        if problem.has_many_spins and not self.damping:
            fit = self._settle(problem, h, start)
            if fit is not None:
                return fit
        theta, J, shift = problem.field, problem.J, self.damping
        point = point_at(theta, J, h, is_up=clock.is_up)
        if point is None:
            return None
        slack = 1e-12 * max(1.0, float(np.abs(theta) @ np.abs(point.mean)) + abs(point.value))
        iterations, residual = 0, _residual(problem, point)
        clock.charge(2.0 * step_operations(problem.n))
        while iterations < self.max_iter and residual > self.tol and not clock.is_up():
            clock.charge(step_operations(problem.n))
            better = improved(theta, J, point, shift, slack, clock.is_up)
            if better is None:
                break
            point, shift = better
            iterations, residual = iterations + 1, _residual(problem, point)
            report("climbing", iterations / self.max_iter)
        return _Fit(point, correction_terms(point), iterations, residual, shift, start, residual <= self.tol)

    def _outcome(self, model: Ising, problem: _Problem, phases: _Phases, states: list[_State]) -> Outcome:
        fit, constant = phases.first, model.constant
        uncorrected = fit.point.value + phases.gain + constant
        lower = states[0].lower + constant
        lower -= 4.0 * UNIT_ROUNDOFF * (abs(lower) + abs(constant)) + model.rounding
        total = fit.correction
        is_useful = fit.terms.sizes <= LARGEST_SIZES and uncorrected + total >= lower
        value = uncorrected + total if self.correction and is_useful else uncorrected
        left_out = float(phases.shares @ [each.left_out for each in phases.fits])
        missed = _missed(problem, phases, states)
        others = UNIT_ROUNDOFF * problem.n * (abs(value) + problem.total_weight)
        if not self.correction:
            others += abs(total)
        if not problem.is_weak and math.isfinite(fit.terms.sizes):
            others += STRONG_SHARE * fit.terms.sizes
        judged = judge_propagation(
            value,
            is_settled=fit.is_settled,
            left_out=left_out,
            missed=missed,
            other_errors=others,
            correction=total,
            is_weak=problem.is_weak,
            phases=len(phases.fits),
            is_collective=problem.is_collective,
            contradiction=_contradiction(value, lower, problem, constant),
        )
        return estimated(
            judged,
            _sentence(phases),
            lower=lower,
            iterations=fit.iterations,
            details={
                "trusted": judged.trusted,
                "uncorrected": uncorrected,
                "correction": total if math.isfinite(total) else None,
                "correction_terms": [t if math.isfinite(t) else None for t in fit.terms],
                "is_corrected": self.correction and is_useful,
                "left_out": left_out if math.isfinite(left_out) else None,
                "missed": missed,
                "residual": fit.residual,
                "damping": fit.damping,
                "start": fit.start,
                "states": len(states),
                "phases": [float(share) for share in phases.shares],
            },
        )


def step_operations(n: int) -> float:
    """Return the operations counted for one step."""
    cubic, square = OPERATIONS_OF_MANY if n > MANY_SPINS else (CUBIC_OPERATIONS, SQUARE_OPERATIONS)
    return cubic * n**3 + square * n**2


def _covariance(point: Point) -> FloatArray:
    deviation = np.sqrt(point.variance)
    return np.asarray(deviation[:, None] * point.correlation * deviation)


def _starts(problem: _Problem, states: list[_State], fits: list[_Fit]) -> Iterator[tuple[FloatArray, str]]:
    """Yield starts of a climb, each with a word for it, while ``fits`` are found.

    In a glass at high temperature mean field finds states that do not exist, and all climbs from these would end at one
    point. So with many spins they first relax, without factorizations, and those that come to a known fixed point are
    left out.
    """
    yield problem.field, "field"
    starts = [state.h for state in states[:MOST_STARTS]]
    is_glass = problem.has_many_spins and bool(fits) and _is_glass(problem, fits[0].point)
    if is_glass:
        from spectralz.kernels.consistency_of_many import relaxed

        starts = list(relaxed(problem.field, problem.J, np.array(starts).T, fits[0].point, NEAR, clock.is_up).T)
    for h in starts:
        if not is_glass or all(fit.deviations_to(np.tanh(h)) > NEAR for fit in fits):
            yield h, "mean field"


def _is_glass(problem: _Problem, point: Point) -> bool:
    """Say whether the spins react to each other as in a glass: only then does TAP predict where a climb ends.

    A Gaussian that covers two phases of a ferromagnet would draw all starts to its center.
    """
    from spectralz.kernels.consistency_of_many import reaction_scale

    return 1.0 / OTHER_REACTION <= reaction_scale(problem.J, point) <= OTHER_REACTION


def _count_in(found: list[_State], new: _State) -> None:
    """Add a state to the list, or count a hit if it is there already."""
    for place, state in enumerate(found):
        if state.is_at(new.h):
            found[place] = replace(state, hits=state.hits + new.hits)
            return
    found.append(new)


def _mean_field(problem: _Problem, start: FloatArray) -> _State:
    """Climb the mean-field bound from the fields ``start``."""
    if problem.has_many_spins:
        return _mean_field_of_many(problem, [start])[0]
    h = start.copy()
    ascend_in_time(h, problem.field, problem.rows, MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE)
    return _bound_at(problem, h)


def _mean_field_of_many(problem: _Problem, starts: list[FloatArray]) -> list[_State]:
    """Climb the mean-field bound from several fields at once."""
    h = np.array(starts).T.copy()

    def tell(sweeps: int) -> None:
        report("looking for states", sweeps / FEW_MEAN_FIELD_SWEEPS)

    ascend_together_in_time(h, problem.field, problem.J, FEW_MEAN_FIELD_SWEEPS, ROUGH_MEAN_FIELD_TOLERANCE, tell)
    values, roundings = bounds_at(h, problem.field, problem.rows)
    return [_State(h[:, k].copy(), float(values[k] - roundings[k])) for k in range(len(starts))]


def _bound_at(problem: _Problem, h: FloatArray) -> _State:
    """Evaluate the mean-field bound, lowered by its rounding."""
    value, rounding = bound_at(h, problem.field, problem.rows)
    return _State(h, value - rounding)


def _residual(problem: _Problem, point: Point) -> float:
    """Return the largest distance of a field from a fixed point, in deviations, or the mismatch of the variances."""
    from spectralz.kernels.expectation_consistency import gradient

    push = gradient(problem.field, problem.J, point) * np.sqrt(point.variance)
    return max(float(np.abs(push).max(initial=0.0)), point.mismatch)


def _missed(problem: _Problem, phases: _Phases, states: list[_State]) -> float:
    """Return what log Z may gain from mean-field states that no phase reaches, and from unseen states.

    A state is reached if it is no farther from the mean than the Gaussian's own samples are, in units of the Gaussian.
    """
    point = phases.first.point
    own = _mean_field(problem, point.h)
    reference, gains = own.lower, []
    means = _means_of(states)
    is_reached = np.any([_distances(fit.point, means) <= problem.n for fit in phases.fits], axis=0)
    for state, reached in zip(states, is_reached, strict=True):
        if reached or state.is_at(own.h):
            reference = max(reference, state.lower)
        else:
            gains.append(state.lower)
    others = float(np.logaddexp.reduce([0.0, *(math.log(UNDERRATED) + gain - reference for gain in gains)]))
    unseen = _unseen(states) if phases.first.start == "mean field" else 0.0
    if len(phases.fits) > 1:
        unseen += _overlooked(states)
    elsewhere = _elsewhere(problem, phases, states, own.lower)
    return max(others, elsewhere) + _between(problem, phases, max(reference, own.lower)) + unseen


def _elsewhere(problem: _Problem, phases: _Phases, states: list[_State], reference: float) -> float:
    """Return what log Z gains from states that Phi shows beyond the Gaussian.

    A collective mode is one direction of n: two phases that are many deviations apart in it are hardly farther from
    each other, in all directions together, than samples are. The opposite means may hold a share of Z without being an
    optimum.
    """
    first = phases.first
    against = min(0.0, -2.0 * float(problem.field @ first.point.mean))
    # Only the way to an optimum may be a shelf; with strong couplings Phi is too large on any way.
    means = np.column_stack([-first.point.mean, _means_of(states)])
    nearest = np.min([fit.all_deviations_to(means) for fit in phases.fits], axis=0)
    targets = [(against, nearest[0], means[:, 0], False)]
    targets += [
        (state.lower - reference, nearest[k], means[:, k], problem.is_weak) for k, state in enumerate(states, start=1)
    ]
    apart = [
        (mean, has_way)
        for gain, deviations, mean, has_way in sorted(targets, key=lambda target: -target[0])
        if gain > math.log(NEGLIGIBLE) and deviations > REACH and not phases.has_between(mean)
    ]
    gains = [0.0]
    for target in apart[:MOST_TARGETS]:
        if clock.is_up():  # a state that was not evaluated may be as heavy as the phase itself
            return math.log(2.0)
        gains.append(_beyond(problem, first, *target))
    return max(gains)


def _beyond(problem: _Problem, fit: _Fit, mean: FloatArray, has_way: bool) -> float:
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
    places = np.geomspace(REACH, length, FEW_SHELF_POINTS if clock.is_up() else SHELF_POINTS)
    line = (mean - fit.point.mean) / length
    weights = [_weight_at(problem, fit, fit.point.mean + place * line, place) for place in places[:-1]]
    steps = 0.5 * (np.diff(places[:-1], prepend=REACH) + np.diff(places))
    return math.log1p(float(steps @ weights) / math.sqrt(2.0 * math.pi) + end)


def _weight_at(problem: _Problem, fit: _Fit, mean: FloatArray, deviations: float) -> float:
    """Return exp(Phi) at means this many deviations away, relative to that of a phase, or 0 in the phase's tail."""
    from spectralz.kernels.expectation_consistency import INNER_TOLERANCE, point_at, upper_bound

    h = np.arctanh(np.clip(mean, -1.0 + UNIT_ROUNDOFF, 1.0 - UNIT_ROUNDOFF))
    # What decreases as fast as the Gaussian, or half as fast, is its own tail; a bound shows this without
    # factorizations.
    tail = fit.point.value - 0.25 * deviations**2
    if upper_bound(problem.field, problem.J, h, fit.point) <= tail:
        return 0.0
    clock.charge(step_operations(problem.n))
    if problem.has_many_spins and _looser_bound(problem, h, fit) <= tail:
        return 0.0
    tol = SHELF_TOLERANCE if problem.has_many_spins else INNER_TOLERANCE
    point = point_at(problem.field, problem.J, h, fit.point.precision, clock.is_up, tol)
    if point is None or point.value <= tail:
        return 0.0
    return math.exp(min(point.value - fit.point.value, 0.0))


def _looser_bound(problem: _Problem, h: FloatArray, fit: _Fit) -> float:
    from spectralz.kernels.consistency_of_many import looser_bound

    return looser_bound(problem.field, problem.J, h, fit.point)


def _between(problem: _Problem, phases: _Phases, reference: float) -> float:
    """Return what log Z gains between phases, by the mean-field bound at the lowest point on the way."""
    weight = 0.0
    for p, first in enumerate(phases.fits):
        for second in phases.fits[:p]:
            way = np.linspace(first.point.mean, second.point.mean, BARRIER_POINTS + 2)[1:-1]
            inside = np.clip(way, -1.0 + UNIT_ROUNDOFF, 1.0 - UNIT_ROUNDOFF)
            lowest = min(_bound_at(problem, h).lower for h in np.arctanh(inside))
            weight += BARRIER_SHARE * math.exp(min(lowest - reference, 0.0))
    return math.log1p(weight)


def _means_of(states: list[_State]) -> FloatArray:
    """Return the means of states, one state per column."""
    return np.asarray(np.tanh(np.array([state.h for state in states]).T))


def _distances(point: Point, means: FloatArray) -> FloatArray:
    """Return squared Mahalanobis distances from the Gaussian's mean; for its own samples their mean is n."""
    apart = (means - point.mean[:, None]) / np.sqrt(point.variance)[:, None]
    return np.asarray((apart * (point.precision[:, None] * apart - point.coupling @ apart)).sum(axis=0))


def _unseen(states: list[_State]) -> float:
    """Return what a better state that no start reached may add.

    It is how far below the best state the starts ended on average, and less if several starts reached the best.
    """
    hits = np.array([state.hits for state in states])
    ends = np.array([state.lower for state in states])
    return float(hits @ (ends[0] - ends) / hits.sum() / hits[0] ** 2)


def _overlooked(states: list[_State]) -> float:
    """Return what as many new starts would miss of the states found: a state with k hits with probability exp(-k).

    It stands for the phases that these starts have missed themselves.
    """
    lower = np.array([state.lower for state in states])
    shares = np.exp(lower - np.logaddexp.reduce(lower))
    return math.log1p(float(shares @ np.exp([-state.hits for state in states])))


def _sentence(phases: _Phases) -> str:
    fit = phases.first
    words = f"converged after {fit.iterations} iterations"
    if not fit.is_settled:
        words = f"stopped after {fit.iterations} iterations with residual {fit.residual:.2g}"
    if len(phases.fits) > 1:
        words += f"; {len(phases.fits)} phases apart were added up"
    return words


def _contradiction(value: float, lower: float, problem: _Problem, constant: float) -> str:
    """Say why a log Z cannot be right, given proven bounds; otherwise nothing."""
    weight = problem.total_weight
    slack = SANITY_SLACK * max(1.0, weight)
    upper = problem.n * math.log(2.0) + weight + constant
    if value < lower - slack:
        return f"; the value is impossible: {lower - value:.3g} below a proven bound"
    if value > upper + slack:
        return f"; the value is impossible: {value - upper:.3g} above n log 2 + all weights"
    return ""


def _out_of_reach(model: Ising, best: _State) -> Outcome:
    """Return the mean-field bound if double precision cannot represent any Gaussian."""
    lower = best.lower + model.constant
    lower -= 4.0 * UNIT_ROUNDOFF * (abs(lower) + abs(model.constant)) + model.rounding
    words = "the couplings are too strong for a Gaussian in double precision: this is the bound of mean field"
    return Outcome(
        log_z=lower,
        kind=Kind.ESTIMATE,
        status=Status(f"{words}; do not trust", converged=False),
        lower=lower,
        trusted=False,
        details={"residual": None, "damping": None, "uncorrected": None, "correction": None, "trusted": False},
    )

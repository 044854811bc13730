"""Minimize a likelihood: where to begin, and the steps of the search."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spectralz._support import deadline
from spectralz._support.progress import report
from spectralz.errors import catching_interrupt

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray


# How many more starts, how far from the first, and which difference of values per row shows another minimum.
MORE_STARTS, DISTANCE, SAME_VALUE = 3, 0.5, 1e-7


def best_of_starts(
    objective: Objective, problem: Problem, first: Minimum, tol: float, max_iter: int, seed: int
) -> tuple[Minimum, str]:
    """Return the lowest of some minima, and words about the others if they differ.

    Parameters
    ----------
    objective
        What is minimized, such as the negative log-likelihood per row.
    problem
        The problem, with its penalty.
    first
        A minimum that was found before.
    tol, max_iter
        As in ``minimize``.
    seed
        Seed of the other starts.
    """
    rng = np.random.default_rng(seed)
    degree = max(1.0, 2.0 * len(problem.edges) / problem.n)
    size = np.where(np.arange(problem.size) < problem.n, DISTANCE, DISTANCE / math.sqrt(degree))
    ends = [first]
    for _ in range(MORE_STARTS):
        if ends[-1].is_interrupted or deadline.is_past():
            break
        start = np.where(problem.free, problem.start() + size * rng.normal(size=problem.size), problem.given)
        ends.append(minimize(objective, problem, start, tol, max_iter, "from another start"))
    reached = [end for end in ends if end.residual <= 10.0 * tol] or [first]
    values = [_penalized(objective, problem, end.parameters) for end in reached]
    best = reached[int(np.argmin(values))]
    if ends[-1].is_interrupted:
        best = replace(best, stopped=INTERRUPTED)
    others = sum(value > min(values) + SAME_VALUE for value in values)
    if not others:
        return best, ""
    words = f"{others} of {len(reached)} starts ended in a lower maximum, by {max(values) - min(values):.2g} per row"
    return best, f"; {words}, so that there may be a higher one"


def _penalized(objective: Objective, problem: Problem, at: FloatArray) -> float:
    J, penalty = at[problem.n :], problem.penalty
    return objective.value(at)[0] + penalty.l1 * float(np.abs(J).sum()) + penalty.l2 / 2.0 * float(J @ J)


# Most parameters for which a Hessian is computed and solved in every step.
MOST_OF_NEWTON = 1500
# A step is shortened until the value falls by this share of what the slope promises.
SUFFICIENT = 1e-4
FEWEST_HALVINGS = 30
# Beyond this size of a parameter the likelihood is flat in double precision: the parameter would be infinite.
LARGEST = 40.0
LBFGS_MEMORY = 20
INTERRUPTED, TIME_UP = "interrupted", "the time was up"


class Objective(Protocol):
    """A convex function; ``hessian(parameters)`` returns the Hessian too, if there is one."""

    def value(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""


@dataclass(frozen=True)
class Minimum:
    """Where a minimization ended.

    Attributes
    ----------
    parameters
        The best parameters found.
    residual
        The largest entry of the (sub)gradient with penalty, over the free parameters.
    iterations
        How many steps.
    stopped
        Why it ended before the residual was small, or an empty text.
    """

    parameters: FloatArray
    residual: float
    iterations: int
    stopped: str = ""

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt ended it."""
        return self.stopped == INTERRUPTED


@dataclass(frozen=True)
class _Penalized:
    """An objective plus ``ridge / 2 x^2 + slope x``, summed over all parameters."""

    objective: Any
    ridge: FloatArray
    slope: FloatArray

    def value(self, at: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        value, gradient = self.objective.value(at)
        return value + self._penalty(at), gradient + self.ridge * at + self.slope

    def hessian(self, at: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient and the Hessian."""
        value, gradient, hessian = self.objective.hessian(at)
        return value + self._penalty(at), gradient + self.ridge * at + self.slope, hessian + np.diag(self.ridge)

    def _penalty(self, at: FloatArray) -> float:
        return 0.5 * float(self.ridge @ at**2) + float(self.slope @ at)


def minimize(
    objective: Objective, problem: Problem, start: FloatArray, tol: float, max_iter: int, task: str = "fitting"
) -> Minimum:
    """Return the minimum of ``objective`` plus the penalty of ``problem`` over its free parameters."""
    has_hessian = hasattr(objective, "hessian") and problem.size <= MOST_OF_NEWTON
    smooth = _Penalized(objective, problem.ridge, np.zeros(problem.size))
    if has_hessian and problem.penalty.l1 == 0.0:
        return _newton(smooth, problem, problem.free, start, tol, max_iter, task)
    minimum = _lbfgs(smooth, problem, start, tol, max_iter, task)
    if has_hessian and minimum.stopped not in (INTERRUPTED, TIME_UP):
        return _polished(smooth, problem, minimum, tol, max_iter, task)
    return minimum


def _newton(
    objective: _Penalized, problem: Problem, free: Any, start: FloatArray, tol: float, max_iter: int, task: str
) -> Minimum:
    """Take Newton steps, shortened if needed, of the parameters that are ``free``."""
    at, residual = start.copy(), np.inf
    k = 0
    with catching_interrupt() as interrupt:
        for k in range(max_iter):
            value, gradient, hessian = objective.hessian(at)
            gradient = gradient[free]
            residual = float(np.abs(gradient).max(initial=0.0))
            report(task, min(1.0, (k + 1) / 12))
            if residual <= tol:
                return Minimum(at, residual, k)
            if np.abs(at[problem.free]).max() > LARGEST:
                return Minimum(at, residual, k, "a parameter would be infinite")
            if deadline.is_past():
                return Minimum(at, residual, k, TIME_UP)
            step = np.zeros(problem.size)
            step[free] = -_solved(hessian[np.ix_(free, free)], gradient)
            length = _length(objective, at, step, value, float(gradient @ step[free]), residual, free)
            if length == 0.0:
                return Minimum(at, residual, k, "" if residual <= 1e3 * tol else "rounding stops it")
            at = at + length * step
    return Minimum(at, residual, k + 1, INTERRUPTED if interrupt.happened else "the limit on iterations was reached")


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for a step, after adding to the diagonal until the matrix is positive definite."""
    import scipy.linalg

    size = max(float(np.abs(np.diag(hessian)).max(initial=0.0)), 1e-300)
    added = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(hessian + added * size * np.eye(len(hessian)), check_finite=False)
            return np.asarray(scipy.linalg.cho_solve(factor, gradient, check_finite=False))
        except np.linalg.LinAlgError:
            added = max(10.0 * added, 1e-12)


def _length(
    objective: _Penalized, at: FloatArray, step: FloatArray, value: float, slope: float, residual: float, free: Any
) -> float:
    """Return the longest of 1, 1/2, 1/4, ... that makes enough progress, also near the minimum despite rounding."""
    length = min(1.0, 2.0 * LARGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300))
    for _ in range(FEWEST_HALVINGS):
        reached, gradient = objective.value(at + length * step)
        if reached <= value + SUFFICIENT * length * slope:
            return length
        is_flat = abs(reached - value) <= 1e-13 * max(1.0, abs(value))
        if is_flat and float(np.abs(gradient[free]).max(initial=0.0)) <= 0.5 * residual:
            return length
        length /= 2.0
    return 0.0


def _lbfgs(objective: _Penalized, problem: Problem, start: FloatArray, tol: float, max_iter: int, task: str) -> Minimum:
    """Minimize by L-BFGS; with an l1 penalty, over the bounded positive and negative parts of couplings."""
    import scipy.optimize

    l1 = problem.penalty.l1
    free = np.flatnonzero(problem.free)
    pairs = free[free >= problem.n] if l1 > 0.0 else free[:0]
    fields = len(free) - len(pairs)
    best: list[Any] = [np.inf, start.copy(), np.inf, 0]

    def penalized(z: FloatArray) -> tuple[float, FloatArray]:
        at = problem.given.copy()
        at[free] = z[: len(free)]
        positive, negative = z[fields : len(free)], z[len(free) :]
        at[pairs] -= negative
        value, gradient = objective.value(at)
        residual = _residual(gradient, at, problem)
        value += l1 * float(np.abs(at[pairs]).sum() + 2.0 * np.minimum(positive, negative).sum())
        slope = np.concatenate([gradient[free], -gradient[pairs]])
        slope[fields:] += l1
        noise = 1e-13 * max(1.0, abs(value))
        if value < best[0] - noise or (value <= best[0] + noise and residual < best[2]):
            best[:3] = value, at, residual
        best[3] += 1
        report(task, 1.0 - 1.0 / (1.0 + best[3] / 30.0))
        if deadline.is_past():
            raise _TimeUpError
        return value, slope

    signed = start[pairs]
    first = np.concatenate([start[free[:fields]], np.maximum(signed, 0.0), np.maximum(-signed, 0.0)])
    bounds = [(None, None)] * fields + [(0.0, None)] * (2 * len(pairs))
    options = {"maxiter": max_iter * 10, "maxfun": max_iter * 20, "ftol": 0.0, "gtol": tol, "maxcor": LBFGS_MEMORY}
    stopped = TIME_UP
    with catching_interrupt() as interrupt, suppress(_TimeUpError):
        if len(free):
            scipy.optimize.minimize(penalized, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        else:
            penalized(first)
        stopped = ""
    stopped = INTERRUPTED if interrupt.happened else stopped
    at, residual = best[1], best[2]
    if not stopped and residual > tol:
        is_large = bool(len(free)) and float(np.abs(at[free]).max()) > LARGEST / 2.0
        stopped = "a parameter would be infinite" if is_large else "no better parameters are found"
    return Minimum(at, residual, best[3], stopped)


class _TimeUpError(Exception):
    """Ends a minimization of scipy."""


def _residual(gradient: FloatArray, at: FloatArray, problem: Problem) -> float:
    """Return the largest entry of the smallest subgradient; ``gradient`` does not include the l1 penalty."""
    smallest = gradient.copy()
    l1 = problem.penalty.l1
    if l1 > 0.0:
        J, g = at[problem.n :], gradient[problem.n :]
        smallest[problem.n :] = np.where(J != 0.0, g + l1 * np.sign(J), np.sign(g) * np.maximum(np.abs(g) - l1, 0.0))
    return float(np.abs(smallest[problem.free]).max(initial=0.0))


def _polished(objective: _Penalized, problem: Problem, rough: Minimum, tol: float, max_iter: int, task: str) -> Minimum:
    """Continue with Newton's method over the couplings that are not zero, if they keep their signs."""
    at = rough.parameters.copy()
    # Couplings that L-BFGS left close to zero are set to zero if the gradient allows it.
    pairs = np.arange(problem.size) >= problem.n
    at[pairs & problem.free & (np.abs(at) < 1e-7)] = 0.0
    active = problem.free & (~pairs | (at != 0.0))
    with_slope = replace(objective, slope=np.where(pairs, problem.penalty.l1 * np.sign(at), 0.0))
    better = _newton(with_slope, problem, active, at, tol, max_iter, task)
    if np.any(np.sign(better.parameters[pairs]) != np.sign(at[pairs])):
        return rough
    residual = _residual(objective.value(better.parameters)[1], better.parameters, problem)
    if residual > max(rough.residual, tol):
        return rough
    stopped = "" if residual <= tol else better.stopped or rough.stopped
    return Minimum(better.parameters, residual, rough.iterations + better.iterations, stopped)

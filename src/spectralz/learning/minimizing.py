"""Minimize a convex function of the parameters plus the penalty: Newton's method, or L-BFGS for many parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spectralz._support import deadline
from spectralz._support.progress import report

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray

__all__ = ["Minimum", "Objective", "minimize"]

# Most parameters for which a Hessian is computed and solved in every step.
MOST_OF_NEWTON = 600
# A step is shortened until the value falls by this share of what the slope promises.
SUFFICIENT = 1e-4
FEWEST_HALVINGS = 30
# Beyond this size of a parameter the likelihood is flat in double precision: the parameter would be infinite.
LARGEST = 40.0
LBFGS_MEMORY = 20


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
        return self.stopped == "interrupted"


def minimize(
    objective: Objective, problem: Problem, start: FloatArray, tol: float, max_iter: int, task: str = "fitting"
) -> Minimum:
    """Return the minimum of ``objective`` plus the penalty of ``problem`` over its free parameters."""
    has_hessian = hasattr(objective, "hessian") and problem.size <= MOST_OF_NEWTON
    if problem.penalty.l1 > 0.0:
        found = _lbfgs(objective, problem, start, tol, max_iter, task)
        return _polished(objective, problem, found, tol, max_iter, task) if has_hessian else found
    if has_hessian:
        return _newton(objective, problem, start, tol, max_iter, task)
    return _lbfgs(objective, problem, start, tol, max_iter, task)


def _newton(
    objective: Any,
    problem: Problem,
    start: FloatArray,
    tol: float,
    max_iter: int,
    task: str,
    slope: FloatArray | None = None,
    active: Any = None,
) -> Minimum:
    """Take Newton steps, shortened if needed; ``slope`` is a linear penalty, ``active`` says what may change."""
    free = problem.free if active is None else active
    ridge, linear = problem.ridge, np.zeros(problem.size) if slope is None else slope
    at, residual, stopped = start.copy(), np.inf, "the limit on iterations was reached"
    k = 0
    try:
        for k in range(max_iter):
            value, gradient, hessian = objective.hessian(at)
            gradient = (gradient + ridge * at + linear)[free]
            value += 0.5 * float(ridge @ at**2) + float(linear @ at)
            residual = float(np.abs(gradient).max(initial=0.0))
            report(task, min(1.0, (k + 1) / 12))
            if residual <= tol:
                return Minimum(at, residual, k)
            if np.abs(at[problem.free]).max() > LARGEST:
                return Minimum(at, residual, k, "a parameter would be infinite")
            if deadline.is_past():
                return Minimum(at, residual, k, "the time was up")
            step = np.zeros(problem.size)
            step[free] = -_solved(hessian[np.ix_(free, free)] + np.diag(ridge[free]), gradient)
            length = _length(objective, at, step, value, float(gradient @ step[free]), residual, free, ridge, linear)
            if length == 0.0:
                return Minimum(at, residual, k, "" if residual <= 1e3 * tol else "rounding stops it")
            at = at + length * step
    except KeyboardInterrupt:
        stopped = "interrupted"
    return Minimum(at, residual, k + 1, stopped)


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for a step, after adding to the diagonal until the matrix is positive definite."""
    import scipy.linalg

    size = max(float(np.abs(np.diag(hessian)).max(initial=0.0)), 1e-300)
    added = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(hessian + added * size * np.eye(len(hessian)), check_finite=False)
            own: FloatArray = scipy.linalg.cho_solve(factor, gradient, check_finite=False)
            return own
        except np.linalg.LinAlgError:
            added = max(10.0 * added, 1e-12)


def _length(
    objective: Any,
    at: FloatArray,
    step: FloatArray,
    value: float,
    slope: float,
    residual: float,
    free: Any,
    ridge: FloatArray,
    linear: FloatArray,
) -> float:
    """Return the longest of 1, 1/2, 1/4, ... that makes enough progress, also near the minimum despite rounding."""
    length = min(1.0, 2.0 * LARGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300))
    for _ in range(FEWEST_HALVINGS):
        trial = at + length * step
        own, gradient = objective.value(trial)
        own += 0.5 * float(ridge @ trial**2) + float(linear @ trial)
        if own <= value + SUFFICIENT * length * slope:
            return length
        reached = float(np.abs((gradient + ridge * trial + linear)[free]).max(initial=0.0))
        if abs(own - value) <= 1e-13 * max(1.0, abs(value)) and reached <= 0.5 * residual:
            return length
        length /= 2.0
    return 0.0


def _lbfgs(objective: Objective, problem: Problem, start: FloatArray, tol: float, max_iter: int, task: str) -> Minimum:
    """Minimize by L-BFGS; with an l1 penalty, over the bounded positive and negative parts of couplings."""
    import scipy.optimize

    n, l1 = problem.n, problem.penalty.l1
    free = np.flatnonzero(problem.free)
    ridge = problem.ridge
    pairs = free[free >= n]
    split = l1 > 0.0
    best: list[Any] = [np.inf, start.copy(), np.inf, 0]

    def whole(z: FloatArray) -> FloatArray:
        own = problem.given.copy()
        own[free] = z[: len(free)]
        if split:
            own[pairs] -= z[len(free) :]
        return own

    def penalized(z: FloatArray) -> tuple[float, FloatArray]:
        at = whole(z)
        value, gradient = objective.value(at)
        gradient = gradient + ridge * at
        value += 0.5 * float(ridge @ at**2)
        residual = _residual(gradient, at, problem)
        own = gradient[free]
        if split:
            value += l1 * float(np.abs(at[pairs]).sum() + 2.0 * np.minimum(_positive(z), _negative(z)).sum())
            own = np.concatenate([own, -gradient[pairs]])
            own[len(free) - len(pairs) :] += l1
        if value < best[0] - noise(value) or (value <= best[0] + noise(value) and residual < best[2]):
            best[:3] = value, at, residual
        best[3] += 1
        report(task, 1.0 - 1.0 / (1.0 + best[3] / 30.0))
        if deadline.is_past():
            raise _TimeUpError
        return value, own

    def noise(value: float) -> float:
        return 1e-13 * max(1.0, abs(value))

    def _positive(z: FloatArray) -> FloatArray:
        return z[len(free) - len(pairs) : len(free)]

    def _negative(z: FloatArray) -> FloatArray:
        return z[len(free) :]

    first = start[free]
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * len(free)
    if split:
        first = np.concatenate([np.where(free >= n, np.maximum(first, 0.0), first), np.maximum(-start[pairs], 0.0)])
        bounds = [(None, None)] * (len(free) - len(pairs)) + [(0.0, None)] * (2 * len(pairs))
    options = {"maxiter": max_iter * 10, "maxfun": max_iter * 20, "ftol": 0.0, "gtol": tol, "maxcor": LBFGS_MEMORY}
    stopped = ""
    try:
        if len(free):
            scipy.optimize.minimize(penalized, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        else:
            penalized(first)
    except KeyboardInterrupt:
        stopped = "interrupted"
    except _TimeUpError:
        stopped = "the time was up"
    at, residual = best[1], best[2]
    if not stopped and residual > tol:
        is_large = bool(len(free)) and float(np.abs(at[free]).max()) > LARGEST / 2.0
        stopped = "a parameter would be infinite" if is_large else "no better parameters are found"
    return Minimum(at, residual, best[3], stopped)


class _TimeUpError(Exception):
    """Ends a minimization of scipy."""


def _residual(gradient: FloatArray, at: FloatArray, problem: Problem) -> float:
    """Return the largest entry of the smallest subgradient; ``gradient`` does not include the l1 penalty."""
    own = gradient.copy()
    l1 = problem.penalty.l1
    if l1 > 0.0:
        J, g = at[problem.n :], own[problem.n :]
        own[problem.n :] = np.where(J != 0.0, g + l1 * np.sign(J), np.sign(g) * np.maximum(np.abs(g) - l1, 0.0))
    return float(np.abs(own[problem.free]).max(initial=0.0))


def _polished(objective: Any, problem: Problem, found: Minimum, tol: float, max_iter: int, task: str) -> Minimum:
    """Continue with Newton's method over the couplings that are not zero, if they keep their signs."""
    if found.stopped in ("interrupted", "the time was up"):
        return found
    at = found.parameters.copy()
    # Couplings that L-BFGS left close to zero are set to zero if the gradient allows it.
    pairs = np.arange(problem.size) >= problem.n
    at[pairs & problem.free & (np.abs(at) < 1e-7)] = 0.0
    active = problem.free & (~pairs | (at != 0.0))
    slope = np.where(pairs, problem.penalty.l1 * np.sign(at), 0.0)
    better = _newton(objective, problem, at, tol, max_iter, task, slope, active)
    if np.any(np.sign(better.parameters[pairs]) != np.sign(at[pairs])):
        return found
    _, gradient = objective.value(better.parameters)
    residual = _residual(gradient + problem.ridge * better.parameters, better.parameters, problem)
    if residual > max(found.residual, tol):
        return found
    stopped = "" if residual <= tol else better.stopped or found.stopped
    return Minimum(better.parameters, residual, found.iterations + better.iterations, stopped)

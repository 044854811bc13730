"""The convex mean field: an upper bound on log Z from a concave mean-field problem, proven at any point.

With C the coupling without its diagonal and y such that K = Diag(y) - C >= 0, the diagonal D = -y makes the quadratic
form of the model concave without changing the model, since x' C x = sum y - x' K x. Its mean-field problem then has one
maximum. This maximum is above log Z, while the usual one (D = 0) is below:

    log Z <= constant + F(y),    F(y) = max over means m of <theta, m> - m' K m + H(m) + sum y.

The maximum need not be found exactly: the dual g(m) >= F(y) of ``kernels.convex_mean_field`` bounds log Z at every m.

F is convex in y, with derivative 1 - m_i^2 by y_i. The best y is found by conditional gradients. Each step needs the y
that minimizes sum w_i y_i, w = 1 - m^2: the same semidefinite program on W^1/2 C W^1/2, with its solution divided by w.
All these y are feasible, and so are their convex combinations.

By duality in y, the least F is the maximum of <theta, m> + <C, X> + H(m) over X >= m m', X_ii = 1. The bound of the
semidefinite program alone, with the field as one more spin, is the same with n log 2 instead of H(m): never below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import deadline
from spectralz._support.options import count, option, positive, threads_option
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.outcome import exact_outcome, independent_spins
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.model import Entries, FloatArray, Ising

# Relative gap between the bound at the m found and the lowest bound for the same D.
MINIMUM_TOL = 1e-10
# A spin that is almost fixed has a weight near 0, so that its y could become huge; below this it makes no difference.
LEAST_WEIGHT = 1e-2
# Halvings of the step between two choices of D.
HALVINGS = 6


@dataclass(frozen=True)
class _Problem:
    """The part that is the same for all choices of D: the coupling without its diagonal, and the field."""

    coupling: Entries
    theta: FloatArray


@dataclass(frozen=True)
class _Choice:
    """One y with K = Diag(y) - C >= 0 proven, the best m for it, and the bound there."""

    y: FloatArray
    m: FloatArray
    upper: float
    value: float
    steps: int
    converged: bool


@dataclass(frozen=True, kw_only=True)
class ConvexMeanField(Method):
    r"""Bound log Z from above, with proof, by a concave mean-field problem; gives rough marginals too.

    A diagonal D with A + D <= 0 is added to the coupling; this changes log Z by Tr D only. Then the mean-field
    problem is concave, and its maximum is a bound. Apart from the offset,

    .. math::

       \log Z \le \max_m \bigl( \theta^\top m + m^\top (A + D) m + H(m) \bigr) - \operatorname{Tr} D,

    where H(m) is the entropy of independent spins with the means m. The bound is evaluated by a dual formula that holds
    at any m, with rounding, for a D whose feasibility is proven. With the best D it is never above the bound of
    ``spectral``, n log 2 - Tr D, and much below it if fields are strong relative to couplings. Without a field the two
    bounds are equal.

    Parameters
    ----------
    rounds
        How many times to choose D anew for the m found (conditional gradients); each choice solves the semidefinite
        program once more. 0 keeps the D of largest trace.
    tol
        Relative gap of the semidefinite programs.
    max_iter
        Most Newton steps for each m.
    threads
        Most threads for linear algebra; by default all cores that the process may use. Up to 1,000 spins one thread is
        used; beyond that, the answer depends on the number of threads, but only by rounding.

    See Also
    --------
    Spectral : the same D, with the field as one more spin.
    MeanField : the lower bound.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "convex_mf")
    >>> print(result.kind)
    upper bound
    >>> sz.log_z(model, "exact").log_z < result.upper < sz.log_z(model, "spectral").upper
    True
    """

    rounds: int = option(3, count(least=0))
    tol: float = option(1e-6, positive(below=1.0))
    max_iter: int = option(100, count(least=0))
    threads: int | None = threads_option()

    name: ClassVar[str] = "convex_mf"
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self._run(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, problem, best = self._run(model)
        h = problem.theta - 2.0 * (best.y * best.m - problem.coupling.matrix @ best.m)
        return independent_spins(model, h, outcome)

    def _run(self, model: Ising) -> tuple[Outcome, _Problem, _Choice]:
        from spectralz.parts.sdp.diagonal import solve_diagonal

        problem = _Problem(model.storage.without_diagonal(), np.asarray(model.field))
        sdp = solve_diagonal(problem.coupling, self.tol)
        choices = [self._minimized(problem, -sdp.diagonal, np.zeros(model.n))]
        for k in range(self.rounds):
            report("choosing the diagonal", k / self.rounds)
            if deadline.is_past() or not np.any(choices[-1].m):  # if all means are 0, all weights are still 1
                break
            following = self._improved(problem, choices[-1])
            if following is None:
                break
            choices.append(following)
        best = min(choices, key=lambda choice: choice.upper)
        return self._outcome(model, choices, best, sdp.gap), problem, best

    def _minimized(self, problem: _Problem, y: FloatArray, m: FloatArray) -> _Choice:
        """Find the best m for a feasible y, starting at ``m``."""
        from spectralz.kernels.convex_mean_field import evaluate, minimize

        matrix, theta = problem.coupling.matrix, problem.theta
        minimum = minimize(matrix, y, theta, m, MINIMUM_TOL, self.max_iter)
        bound = evaluate(matrix, y, theta, minimum.m)
        return _Choice(y, minimum.m, bound.value + bound.rounding, bound.value, minimum.steps, minimum.converged)

    def _improved(self, problem: _Problem, old: _Choice) -> _Choice | None:
        """Move y towards the best one for the weights 1 - m^2 as long as F decreases; None if it does not."""
        y = _weighted_sdp(problem.coupling, np.maximum(1.0 - old.m**2, LEAST_WEIGHT), self.tol)
        if y is None:
            return None

        def slope(choice: _Choice) -> float:
            return float((1.0 - choice.m**2) @ (y - old.y))

        if slope(old) >= 0.0:
            return None
        new = self._minimized(problem, y, old.m)
        if slope(new) <= 0.0:
            return new
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            if deadline.is_past():
                break
            share = 0.5 * (low + high)
            new = self._minimized(problem, _between(old.y, y, share), new.m)
            low, high = (share, high) if slope(new) < 0.0 else (low, share)
        return new

    def _outcome(self, model: Ising, choices: list[_Choice], best: _Choice, gap: float) -> Outcome:
        value = best.value + model.constant
        sizes = abs(value) + abs(best.upper) + abs(model.constant)
        upper = best.upper + model.constant + model.rounding + 4.0 * UNIT_ROUNDOFF * sizes
        bounds = [choice.upper + model.constant for choice in choices]
        others: dict[str, Any] = {
            "iterations": sum(choice.steps for choice in choices),
            "details": {"diagonal": -best.y - model.diagonal, "gap": gap, "bounds": bounds},
        }
        if model.storage.couples_nothing:
            return exact_outcome(value, upper - value, "nothing is coupled", **others)
        rounds = f"{len(choices) - 1} more choice{'' if len(choices) == 2 else 's'} of D"
        words = f"A + D <= 0 is proven; {rounds} lowered the bound by {choices[0].upper - best.upper:.2g}"
        rest = "" if best.converged else "; the means have not converged: the bound holds, but could be lower"
        status = Status(words + rest, converged=best.converged)
        return Outcome(log_z=upper, kind=Kind.UPPER_BOUND, status=status, upper=upper, **others)


def _weighted_sdp(C: Entries, weights: FloatArray, tol: float) -> FloatArray | None:
    """Return the y of least <weights, y> with Diag(y) - C >= 0 proven, or None if the proof fails.

    The substitution y = y' / w is exact on paper only: what is proven for W^1/2 C W^1/2 must be proven again for C.
    """
    from spectralz.parts.sdp.diagonal import lowered_until_proven, solve_diagonal

    scaled = C.congruent(np.sqrt(weights))
    D = lowered_until_proven(C, solve_diagonal(scaled, tol).diagonal / weights)
    return None if D is None else np.asarray(-D)


def _between(a: FloatArray, b: FloatArray, share: float) -> FloatArray:
    """Return (1 - share) a + share b, rounded up, so that it is feasible if both are."""
    mixed = ((1.0 - share) * a + share * b) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    return np.asarray(np.where(mixed > 0.0, np.nextafter(mixed, math.inf), 0.0))

"""Expectation propagation: a Gaussian and single spins that agree on means and variances, and what they leave out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.options import count, flag, not_negative, option, positive, threads_option
from spectralz._support.progress import report
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import Couplings
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.independent_spins import probabilities
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.kernels.expectation_consistency import Point, Terms
    from spectralz.model import FloatArray, Ising

__all__ = ["ExpectationPropagation"]

# About ten matrices of n x n numbers, and dozens of their factorisations.
MOST_SPINS = 5000
# Beyond this sum of sizes the series of corrections has no use: neither is the first one added nor is Phi believed.
LARGEST_SIZES = 2.0
# With a larger scale of error the answer is called untrusted.
LARGEST_TRUSTED_ERROR = 0.1
MEAN_FIELD_SWEEPS = 300
MEAN_FIELD_TOLERANCE = 1e-8
# Optima of mean field whose means differ by less are the same.
SAME_MEAN = 1e-3
# Opposite means count from this many times the mean square of a sample's distance.
FAR_OFF = 4.0
# Mean field underrates the states that it bounds: a state's share of Z was up to so many times what its bound says.
UNDERRATED = 2.0
SANITY_SLACK = 1e-9


@dataclass(frozen=True)
class _Problem:
    """theta and J = 2 A without its diagonal, dense."""

    field: FloatArray
    J: FloatArray

    @classmethod
    def of(cls, model: Ising) -> _Problem:
        return cls(np.array(model.field), 2.0 * model.storage.without_diagonal().dense())

    @property
    def n(self) -> int:
        return len(self.field)

    @property
    def rows(self) -> Couplings:
        """J as the kernels of mean field take it."""
        return Couplings.of_dense(self.J)

    @property
    def is_weak(self) -> bool:
        """Whether the squares of a spin's couplings add up to less than 1, on average.

        Strong couplings that leave small correlations, as in antiferromagnets, whose sum of spins takes a few values
        only, are wrong by more than any of the corrections shows.
        """
        return self.rows.mean_strength < 1.0

    @property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + 0.5 * np.abs(self.J).sum())


@dataclass(frozen=True)
class _State:
    """Where ascents of mean field ended: the bound there, rounding taken off, and how many of them did."""

    h: FloatArray
    lower: float
    hits: int = 1

    def is_at(self, h: FloatArray) -> bool:
        """Whether the means are those of the fields ``h``."""
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


@dataclass(frozen=True, kw_only=True)
class ExpectationPropagation(Method):
    r"""Log Z by expectation propagation (expectation consistency), with a correction that is also its warning.

    A Gaussian with the model's couplings and single spins with its fields are made to agree on means and variances;
    log Z = log Z_Gaussian + log Z_spins - log Z_overlap, plus the leading term of what this leaves out, from the third
    and fourth cumulants of the spins. The fixed points are the maxima of a function of the means, which is climbed by
    Newton steps from the means of the fields alone; this settles where the usual iteration does not. Where the
    correction is large, or the value below a bound, the climb is repeated from the best state of mean field, and the
    end with less correction is kept.

    Much better than mean field and `bp` on dense graphs with weak couplings. Each step takes a few factorisations of
    n x n matrices: a second for hundreds of spins, up to 5,000.

    ``std_error`` is not statistical: it is a scale of error, calibrated on models that can be solved: what corrections
    of higher order come to, and what states that the Gaussian does not reach may add; the page
    ``docs/expectation-propagation.md`` has the formula, and how often the error was within twice it.
    ``trusted`` says whether it is at most 0.1 and couplings are weak (sum_j J_ij^2 below 1, on average); where it is
    False, take the number for an order of magnitude, and ``status`` has not converged.
    ``lower`` is the bound of mean field.

    Parameters
    ----------
    max_iter
        Most Newton steps of one climb.
    tol
        Converged when no field is farther from what its neighbours want, in units of its spin's deviation, and all
        variances agree as well. log Z is then good to about the square of it.
    damping
        What is added to the curvature in the first step, 0 or more. It is raised when a step does not ascend and
        lowered when one does.
    correction
        Whether to add the correction to log Z, where it is small enough to be of use.
    restarts
        How many random starts mean field makes in its search for other states.
    seed
        For these starts.
    threads
        Most threads to use; by default all cores that the process may use. They are those of linear algebra, which has
        one for up to 500 spins; beyond, the answer depends on their number, but only by rounding.

    See Also
    --------
    BeliefPropagation : better where the graph is nearly a tree.
    Spectral : proven bounds at any strength.

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
    restarts: int = option(20, count(least=0))
    seed: int = option(0, count(least=0))
    threads: int | None = threads_option()

    name: ClassVar[str] = "ep"
    gives_marginals: ClassVar[bool] = True
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self._run(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, h, covariance = self._run(model)
        mean = np.tanh(h)
        i, j = model.edges()[0].T
        # No two spins with these means have a mean product beyond these.
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
                f"ep factorises dense matrices of {model.n} x {model.n} numbers many times and takes up to "
                f"{MOST_SPINS} spins; use bp, or mf for a bound"
            )
        problem = _Problem.of(model)
        states = self._mean_field_states(problem)
        fit = self._best_fit(problem, states)
        if fit is None:
            return _out_of_reach(model, states[0]), states[0].h, np.zeros((model.n, model.n))
        deviation = np.sqrt(fit.point.variance)
        return (
            self._outcome(model, problem, fit, states),
            fit.point.h,
            deviation[:, None] * fit.point.correlation * deviation,
        )

    def _mean_field_states(self, problem: _Problem) -> list[_State]:
        """Climb the bound of mean field from the fields and at random; return the different ends, the best first."""
        rng = np.random.default_rng(self.seed)
        starts = [problem.field, *rng.standard_normal((self.restarts, problem.n))]
        found: list[_State] = []
        for k, h in enumerate(starts):
            for sign in (1.0, -1.0):
                new = _mean_field(problem, sign * h)
                place = next((i for i, state in enumerate(found) if state.is_at(new.h)), len(found))
                found[place : place + 1] = [
                    new if place == len(found) else replace(found[place], hits=found[place].hits + 1)
                ]
            report("looking for states", (k + 1) / len(starts))
        return sorted(found, key=lambda state: -state.lower)

    def _best_fit(self, problem: _Problem, states: list[_State]) -> _Fit | None:
        """Climb from the fields, and if the correction there is large from the best state of mean field too."""
        best = states[0]
        first = self._climb(problem, problem.field, "field")
        if first is not None and first.point.value >= best.lower and first.terms.sizes <= LARGEST_SIZES:
            return first
        # Phi is nowhere below the bound of mean field, so this climb cannot end below it.
        second = self._climb(problem, best.h, "mean field")
        found = [fit for fit in (first, second) if fit is not None]
        return min(
            found,
            key=lambda fit: (fit.point.value < best.lower, fit.residual > self.tol, fit.terms.sizes),
            default=None,
        )

    def _climb(self, problem: _Problem, h: FloatArray, start: str) -> _Fit | None:
        """Ascend Phi from the fields ``h``; None if there is no feasible Gaussian in double precision."""
        from spectralz.kernels.expectation_consistency import correction_terms, improved, point_at

        theta, J, shift = problem.field, problem.J, self.damping
        point = point_at(theta, J, h)
        if point is None:
            return None
        slack = 1e-12 * max(1.0, float(np.abs(theta) @ np.abs(point.mean)) + abs(point.value))
        iterations, residual = 0, _residual(problem, point)
        while iterations < self.max_iter and residual > self.tol:
            better = improved(theta, J, point, shift, slack)
            if better is None:
                break
            point, shift = better
            iterations, residual = iterations + 1, _residual(problem, point)
            report("climbing", iterations / self.max_iter)
        return _Fit(point, correction_terms(point), iterations, residual, shift, start)

    def _outcome(self, model: Ising, problem: _Problem, fit: _Fit, states: list[_State]) -> Outcome:
        constant, terms = model.constant, fit.terms
        uncorrected = fit.point.value + constant
        lower = states[0].lower + constant
        lower -= 4.0 * UNIT_ROUNDOFF * (abs(lower) + abs(constant)) + model.rounding
        total = terms.third + terms.fourth
        is_useful = terms.sizes <= LARGEST_SIZES and uncorrected + total >= lower
        value = uncorrected + total if self.correction and is_useful else uncorrected
        left_out, missed = _left_out(fit), _missed(problem, fit, states)
        settled = fit.residual <= self.tol
        complaint = _complaint(value, lower, problem, constant)
        scale = left_out + missed + UNIT_ROUNDOFF * problem.n * (abs(value) + problem.total_weight)
        if not self.correction:
            scale += abs(total)
        has_scale = settled and not complaint and math.isfinite(scale)
        is_trusted = has_scale and scale <= LARGEST_TRUSTED_ERROR and problem.is_weak
        return Outcome(
            log_z=value,
            kind=Kind.ESTIMATE,
            status=Status(_sentence(problem, fit, settled, left_out, missed) + complaint, converged=is_trusted),
            lower=lower,
            std_error=scale if has_scale else None,
            iterations=fit.iterations,
            trusted=is_trusted,
            details={
                "trusted": is_trusted,
                "uncorrected": uncorrected,
                "correction": total if math.isfinite(total) else None,
                "correction_terms": [t if math.isfinite(t) else None for t in terms],
                "is_corrected": self.correction and is_useful,
                "left_out": left_out if math.isfinite(left_out) else None,
                "missed": missed,
                "residual": fit.residual,
                "damping": fit.damping,
                "start": fit.start,
                "states": len(states),
            },
        )


def _mean_field(problem: _Problem, start: FloatArray) -> _State:
    """Climb the bound of mean field from the fields ``start``."""
    from spectralz.kernels.mean_field import ascend

    h = start.copy()
    ascend(h, problem.field, problem.rows, MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE)
    return _bound_at(problem, h)


def _bound_at(problem: _Problem, h: FloatArray) -> _State:
    """Evaluate the bound of mean field, its rounding taken off."""
    from spectralz.kernels.mean_field import bound

    value, sizes = bound(h, problem.field, problem.rows)
    return _State(h, float(value - UNIT_ROUNDOFF * ((problem.n + 16.0) * sizes + 4.0 * abs(value))))


def _residual(problem: _Problem, point: Point) -> float:
    """Return how far the farthest field is from a fixed point in units of its deviation, or a variance from its own."""
    from spectralz.kernels.expectation_consistency import gradient

    push = gradient(problem.field, problem.J, point) * np.sqrt(point.variance)
    return max(float(np.abs(push).max(initial=0.0)), point.mismatch)


def _missed(problem: _Problem, fit: _Fit, states: list[_State]) -> float:
    """Return what log Z may gain from states of mean field that the Gaussian does not reach, and from unseen ones.

    A state is reached if it is no farther from the mean, in units of the Gaussian, than its own samples are.
    """
    point = fit.point
    own = _mean_field(problem, point.h)
    reference, gains = own.lower, []
    for state in states:
        if state.is_at(own.h) or _distance(point, np.tanh(state.h)) <= problem.n:
            reference = max(reference, state.lower)
        else:
            gains.append(state.lower)
    others = float(np.logaddexp.reduce([0.0, *(math.log(UNDERRATED) + gain - reference for gain in gains)]))
    unseen = _unseen(states) if fit.start == "mean field" else 0.0
    return max(others, _opposite(problem, point)) + unseen


def _distance(point: Point, mean: FloatArray) -> float:
    """Return the square of Mahalanobis' distance from the Gaussian's mean; of its own samples it is n on average."""
    apart = (mean - point.mean) / np.sqrt(point.variance)
    return float(apart @ (point.precision * apart) - apart @ (point.coupling @ apart))


def _opposite(problem: _Problem, point: Point) -> float:
    """Return what the opposite means add, which need be no optimum to hold a share of Z.

    Against the means themselves they have exp(-2 <theta, m>) in the bound of mean field, and have been given
    exp(-2 <h, m>) by the spins. Means that are not far off are the Gaussian's business.
    """
    if _distance(point, -point.mean) <= FAR_OFF * problem.n:
        return 0.0
    share = math.exp(min(0.0, -2.0 * float(problem.field @ point.mean)))
    return math.log1p(UNDERRATED * max(0.0, share - math.exp(-2.0 * float(point.h @ point.mean))))


def _unseen(states: list[_State]) -> float:
    """Return what a better state may have that no start came to.

    It is how far below the best the starts ended on average, and less if several came to the best.
    """
    hits = np.array([state.hits for state in states])
    ends = np.array([state.lower for state in states])
    return float(hits @ (ends[0] - ends) / hits.sum() / hits[0] ** 2)


def _left_out(fit: _Fit) -> float:
    """Return a scale of what the corrections of higher order come to, by measurement.

    The next ones have two more correlations for each of the leading one's terms: those of one pair, at most the square
    of the largest, or those along a path through other spins, of which the largest eigenvalue takes the sum.
    """
    C = fit.point.correlation - np.eye(len(fit.point.h))
    if not len(C):
        return 0.0
    return fit.terms.sizes * float(np.abs(C).max() ** 2 + np.linalg.norm(C, 2) ** 2 / len(C))


def _sentence(problem: _Problem, fit: _Fit, settled: bool, left_out: float, missed: float) -> str:
    words = f"converged after {fit.iterations} iterations"
    if not settled:
        words = f"stopped after {fit.iterations} iterations with residual {fit.residual:.2g}"
    if not left_out <= LARGEST_TRUSTED_ERROR:
        words += f"; correction of {fit.terms.third + fit.terms.fourth:.2g}, and {left_out:.2g} beyond it: do not trust"
    if missed > LARGEST_TRUSTED_ERROR:
        words += f"; other states may add {missed:.2g}: do not trust"
    if not problem.is_weak and "do not trust" not in words:
        words += "; couplings are strong, for which its error is not known: do not trust"
    return words


def _complaint(value: float, lower: float, problem: _Problem, constant: float) -> str:
    """Say why a log Z cannot be right beside proven bounds, or nothing."""
    weight = problem.total_weight
    slack = SANITY_SLACK * max(1.0, weight)
    upper = problem.n * math.log(2.0) + weight + constant
    if value < lower - slack:
        return f"; the value is impossible: {lower - value:.3g} below a proven bound"
    if value > upper + slack:
        return f"; the value is impossible: {value - upper:.3g} above n log 2 + all weights"
    return ""


def _out_of_reach(model: Ising, best: _State) -> Outcome:
    """Give mean field's bound where no Gaussian can be held in double precision."""
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

"""Expectation propagation: a Gaussian and single spins that agree on means and variances, and what they leave out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import deadline
from spectralz._support.deadline import Deadline
from spectralz._support.options import count, flag, not_negative, option, positive, repetitions, threads_option
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.expectation_propagation.missed import missed
from spectralz.parts.expectation_propagation.phases import Phases, climb, phases_of
from spectralz.parts.expectation_propagation.problem import Problem, State, mean_field_states
from spectralz.parts.outcome import contradiction, independent_spins
from spectralz.parts.pairs import pairs_of
from spectralz.trust.judgment import Judgment
from spectralz.trust.propagation import LARGEST_ERROR, judge_propagation

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Ising

# About ten matrices of n x n numbers, and dozens of their factorizations.
MOST_SPINS = 5000
# With strong couplings this share of the leading terms' sizes is left out as well: clusters of spins flip together.
STRONG_SHARE = 0.5
# If no budget is set, strong couplings are tried for so many seconds: the answer is hardly ever trusted.
SECONDS_OF_STRONG = 1.0


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
    phases, no J above 0.2). If it is False, take log Z as an order of magnitude; ``status.converged`` is then False.
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

    name: ClassVar[str] = "ep"
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self._run(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, h, covariance = self._run(model)
        independent = independent_spins(model, h, outcome)
        mean, (i, j) = independent.mean, pairs_of(model).T
        # Two spins with these means cannot have a mean product outside these limits.
        least, most = np.abs(mean[i] + mean[j]) - 1.0, 1.0 - np.abs(mean[i] - mean[j])
        return replace(independent, pair_mean=np.clip(covariance[i, j] + independent.pair_mean, least, most))

    def _run(self, model: Ising) -> tuple[Outcome, FloatArray, FloatArray]:
        """Return the outcome, the fields of the spins, and their covariances."""
        if model.n > MOST_SPINS:
            raise TooLargeError(
                f"ep factorizes dense matrices of {model.n} x {model.n} numbers many times and takes up to "
                f"{MOST_SPINS} spins; use bp, or mf for a bound"
            )
        problem = Problem.of(model)
        with _time_for(problem).in_force():
            return self._run_in_time(model, problem)

    def _run_in_time(self, model: Ising, problem: Problem) -> tuple[Outcome, FloatArray, FloatArray]:
        states = mean_field_states(problem, self.restarts, self.seed)
        climbed = partial(climb, problem, max_iter=self.max_iter, tol=self.tol, damping=self.damping)
        phases = phases_of(problem, states, climbed, LARGEST_ERROR)
        lower = states[0].lower + model.constant
        lower -= 4.0 * UNIT_ROUNDOFF * (abs(lower) + abs(model.constant)) + model.rounding
        if phases is None:
            return _out_of_reach(lower), states[0].h, np.zeros((model.n, model.n))
        return self._outcome(model, problem, phases, states, lower), *phases.moments()

    def _outcome(self, model: Ising, problem: Problem, phases: Phases, states: list[State], lower: float) -> Outcome:
        fit, shares, correction = phases.first, phases.shares, phases.first.correction
        uncorrected = fit.point.value - math.log(float(shares[0])) + model.constant
        is_corrected = self.correction and fit.is_correctable and uncorrected + correction >= lower
        value = uncorrected + correction if is_corrected else uncorrected
        left_out = float(shares @ [phase.left_out for phase in phases.fits])
        missed_states = missed(problem, phases, states)
        upper = problem.n * math.log(2.0) + problem.total_weight + model.constant
        others = UNIT_ROUNDOFF * problem.n * (abs(value) + problem.total_weight)
        if not self.correction:
            others += abs(correction)
        if not problem.is_weak and math.isfinite(fit.terms.sizes):
            others += STRONG_SHARE * fit.terms.sizes
        judged = judge_propagation(
            value,
            is_settled=fit.is_settled,
            left_out=left_out,
            missed=missed_states,
            other_errors=others,
            correction=correction,
            is_weak=problem.is_weak,
            phases=len(phases.fits),
            is_collective=problem.is_collective,
            contradiction=contradiction(
                value, lower, upper, problem.total_weight, "a proven bound", "n log 2 + all weights"
            ),
        )
        return estimated(
            judged,
            _sentence(phases),
            lower=lower,
            iterations=fit.iterations,
            details={
                "trusted": judged.trusted,
                "uncorrected": uncorrected,
                "correction": _if_finite(correction),
                "correction_terms": [_if_finite(term) for term in fit.terms],
                "is_corrected": is_corrected,
                "left_out": _if_finite(left_out),
                "missed": missed_states,
                "residual": fit.residual,
                "damping": fit.damping,
                "start": fit.start,
                "states": len(states),
                "phases": shares.tolist(),
            },
        )


def _time_for(problem: Problem) -> Deadline:
    """Return until when to try: couplings that are strong hardly ever give an answer to trust, so not for long."""
    is_timed = deadline.current().seconds < math.inf
    return Deadline() if problem.is_weak or is_timed else Deadline.after(SECONDS_OF_STRONG)


def _if_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sentence(phases: Phases) -> str:
    fit = phases.first
    words = f"converged after {fit.iterations} iterations"
    if not fit.is_settled:
        words = f"stopped after {fit.iterations} iterations with residual {fit.residual:.2g}"
    if len(phases.fits) > 1:
        words += f"; sum over {len(phases.fits)} separate phases"
    return words


def _out_of_reach(lower: float) -> Outcome:
    """Return the mean-field bound if double precision cannot represent any Gaussian."""
    words = "couplings are too strong for double precision: this is the mean-field bound"
    details = {"residual": None, "damping": None, "uncorrected": None, "correction": None, "trusted": False}
    return estimated(Judgment(lower, math.inf, False, "; do not trust"), words, lower=lower, details=details)

"""Mean field: the best product distribution, whose bound on log Z is a proven lower one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.options import choice, count, option, positive, repetitions
from spectralz._support.progress import report
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.independent_spins import independent_spins
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field import OPERATIONS_PER_SPIN, ascend_in_time, bound_of_model
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Ising

__all__ = ["MeanField"]

STARTS = ("zero", "random", "leading", "spectral", "bp")
# Eigenvalues of A + D above this share of the lowest one count as zero: those of the SDP's primal solution.
NEARLY_ZERO = 0.02


@dataclass(frozen=True)
class _Run:
    """One ascent: where it ended, the bound there, and how."""

    h: FloatArray
    bound: float
    lower: float
    sweeps: int
    change: float


@dataclass(frozen=True, kw_only=True)
class MeanField(Method):
    """A lower bound on log Z from the best product distribution, by coordinate ascent.

    log Z >= <theta, m> + sum_ij A_ij m_i m_j + entropy(m) for all means m of independent spins; m_i = tanh(theta_i +
    sum_j J_ij m_j) maximises it over one spin. Which of its many maxima is reached depends on the start; each
    is a proven lower bound, and the best is reported.

    Parameters
    ----------
    max_iter
        Most sweeps over all spins for each start.
    tol
        Stop once no mean changes by more than this in a sweep.
    restarts
        How many starts; all but the first are random.
    start
        The first one: ``"zero"`` (the paper's), ``"random"``, ``"leading"`` (along two leading eigenvectors of the
        coupling, both ways, where collective states lie), ``"spectral"`` (along the eigenvectors of A + D that
        Algorithm 2 finds near zero) or ``"bp"`` (the means of belief propagation).
    seed
        For the random starts.

    References
    ----------
    .. [1] Parisi, "Statistical Field Theory", 1988.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=15, strength=0.3, seed=0)
    >>> result = sz.log_z(model, "mf", restarts=10)
    >>> result.kind
    <Kind.LOWER_BOUND: 'lower bound'>
    >>> result.lower < sz.log_z(model, "exact").log_z
    True
    """

    max_iter: int = option(1000, count(least=1))
    tol: float = option(1e-10, positive())
    restarts: int = option(1, repetitions(least=1))
    start: str = option("zero", choice(STARTS))
    seed: int = option(0, count(least=0))

    name: ClassVar[str] = "mf"
    gives_marginals: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self._best(model)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, h = self._best(model)
        return independent_spins(model, h, outcome)

    def _best(self, model: Ising) -> tuple[Outcome, FloatArray]:
        """Ascend from every start; return the outcome of the best and its fields."""
        couplings = model.storage.for_kernels()
        rng = np.random.default_rng(self.seed)
        runs = []
        for k in range(self.restarts):
            starts = self._first_starts(model, rng) if k == 0 else [rng.standard_normal(model.n)]
            for h in starts:
                runs.append(self._ascend(model, couplings, h, k))
                if clock.is_up():
                    break
            if clock.is_up():
                break
        best = max(runs, key=lambda run: run.lower)
        return self._outcome(model, runs, best), best.h

    def _first_starts(self, model: Ising, rng: np.random.Generator) -> list[FloatArray]:
        if self.start == "leading":
            directions = leading_directions(model.storage)
            return [sign * h for h in directions for sign in (1.0, -1.0)] or [np.zeros(model.n)]
        return [self._first_start(model, rng)]

    def _first_start(self, model: Ising, rng: np.random.Generator) -> FloatArray:
        if self.start == "random":
            return rng.standard_normal(model.n)
        if self.start == "spectral":
            return _spectral_start(model, rng)
        if self.start == "bp":
            from spectralz.methods.belief_propagation import BeliefPropagation

            mean = BeliefPropagation(damping=0.5).run_marginals(model, pairs=False).mean
            return np.arctanh(np.clip(mean, -1.0 + 1e-15, 1.0 - 1e-15))
        return np.zeros(model.n)

    def _ascend(self, model: Ising, couplings: Couplings, h: FloatArray, k: int) -> _Run:
        def tell(sweeps: int) -> None:
            report("sweeping", (k + min(sweeps / self.max_iter, 1.0)) / self.restarts)

        sweeps, change = ascend_in_time(h, model.field, couplings, self.max_iter, self.tol, tell)
        clock.charge(len(couplings.data) + OPERATIONS_PER_SPIN * model.n)
        return _Run(h, *bound_of_model(model, couplings, h), sweeps, change)

    def _outcome(self, model: Ising, runs: list[_Run], best: _Run) -> Outcome:
        is_exact = model.storage.couples_nothing
        converged = best.change <= self.tol
        how = (
            f"converged after {best.sweeps} sweeps"
            if converged
            else (f"stopped after {best.sweeps} sweeps, the last of which changed a mean by {best.change:.1e}")
        )
        if self.restarts > 1:
            how += f"; best of {len(runs)} starts"
        return Outcome(
            log_z=best.bound,
            kind=Kind.EXACT if is_exact else Kind.LOWER_BOUND,
            status=Status(how, converged=converged),
            lower=best.lower,
            upper=2.0 * best.bound - best.lower if is_exact else None,
            iterations=best.sweeps,
            details={"residual": best.change, "bounds": [run.bound for run in runs]},
        )


def _spectral_start(model: Ising, rng: np.random.Generator) -> FloatArray:
    """Return fields along a random mixture of the eigenvectors of A + D with eigenvalues near zero.

    At the solution of the SDP they span the vectors of max-cut's relaxation, and the signs of the mixture are a cut by
    a random hyperplane, as Goemans and Williamson make it.
    """
    from spectralz.parts.diagonal_sdp import solve_diagonal

    whole = model.absorb_field()
    found = solve_diagonal(whole.storage, 1e-4)
    shifted = whole.storage.dense() + np.diag(found.diagonal)
    values, vectors = np.linalg.eigh(shifted)
    near = vectors[:, values >= NEARLY_ZERO * values[0]]
    mixture = near @ rng.standard_normal(near.shape[1])
    # The last spin stands for the field, which is +1.
    return np.asarray(np.sign(mixture[-1]) * mixture[:-1] * np.sqrt(whole.n))

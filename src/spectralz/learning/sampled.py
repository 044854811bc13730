"""Maximum likelihood by sampling: a population of states follows the parameters, and its moments give the gradient.

Steps are those of Newton's method with the population's own covariance, first almost in full, then shortened as 1/k.
This averages the noise of all populations seen (the scheme of Robbins and Monro with its best gain).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import deadline
from spectralz._support.progress import report
from spectralz.errors import catching_interrupt
from spectralz.sampling.path import from_coins
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import relax

if TYPE_CHECKING:
    from spectralz.learning.expectations import Observed
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray, SpinArray

FEWEST_STATES, MOST_STATES = 2000, 20_000
SWEEPS_AT_FIRST, SWEEPS = 100, 10
FIRST_STEPS, FIRST_LENGTH = 20, 0.7
LEAST_AVERAGED = 30
# Steps to the parameters of data drawn again: two in full, then shorter and shorter.
STEPS_AGAIN = 14
# The covariance is computed anew after this many steps, from at most this many numbers.
STEPS_PER_COVARIANCE = 5
MOST_FEATURES = 40_000_000
MOST_SOLVED = 1500
MOST_CONJUGATE_STEPS = 30
# At the end moments are taken from this many populations.
LAST_POPULATIONS, POPULATIONS_AFTER_INTERRUPT = 10, 2
# In standard errors of the data's moments: the difference that may remain, or that noise explains.
LARGEST_REST = 0.5
# No parameter moves farther than this in one step.
LONGEST_STEP = 0.5


@dataclass(frozen=True)
class Walk:
    """The end of a climb.

    Attributes
    ----------
    parameters
        The parameters, averaged over the last steps.
    states
        States of the model with these parameters.
    residual, noise
        The root mean square difference of moments, and the part that sampling alone explains, both in standard errors
        of the data's moments.
    iterations, stopped
        How many steps, and why it ended early, or an empty text.
    """

    parameters: FloatArray
    states: SpinArray
    residual: float
    noise: float
    iterations: int
    stopped: str

    @property
    def is_matched(self) -> bool:
        """Whether the moments match within the noise."""
        return self.residual <= max(LARGEST_REST, 2.0 * self.noise)

    @property
    def sentence(self) -> str:
        """A phrase that says how well the moments match."""
        words = f"moments match to {self.residual:.2g} of their standard errors"
        if self.noise >= self.residual:
            return f"{words}, within the noise of {self.noise:.2g}"
        return f"{words} (of which {self.noise:.2g} is noise)"


def climb(
    problem: Problem, data: Observed, start: FloatArray, rows: float, seed: int, max_iter: int, states: Any = None
) -> Walk:
    """Climb the likelihood from ``start``.

    Parameters
    ----------
    problem
        The problem to fit.
    data
        What the data say about the statistics.
    start
        First parameters, at best those of the pseudo-likelihood.
    rows
        Number of rows of the data; the population is about as large.
    seed
        Seed of the population.
    max_iter
        Most steps.
    states
        First states, one per row, for example those of the data.
    """
    rng = np.random.default_rng(seed)
    size = int(np.clip(rows, FEWEST_STATES, MOST_STATES))
    x = _first_states(problem, size, rng, states)
    averaged = int(np.clip(20.0 * rows / size, LEAST_AVERAGED, 5 * LEAST_AVERAGED))
    steps = min(FIRST_STEPS + averaged, max_iter)
    lengths = [FIRST_LENGTH if k < FIRST_STEPS else 1.0 / (k - FIRST_STEPS + 2.0) for k in range(steps)]
    at, stopped, k = start.copy(), "", 0
    solve: Any = None
    with catching_interrupt() as interrupt:
        x = _relaxed(problem, at, x, SWEEPS_AT_FIRST, rng)
        for k, length in enumerate(lengths):
            report("fitting", k / (steps + LAST_POPULATIONS))
            if deadline.is_past():
                stopped = "the time was up"
                break
            features = _Features(problem, x)
            is_due = solve is None or k % STEPS_PER_COVARIANCE == 0
            known = data.expected(at, lost=is_due and problem.size <= MOST_SOLVED)
            if is_due:
                solve = features.solver(known.lost)
            at = at + _step(problem, known.moments - features.mean - problem.ridge * at, solve, length)
            x = _relaxed(problem, at, x, SWEEPS, rng)
    if interrupt.happened:
        stopped = "interrupted"
    return _ended(problem, data, at, x, rows, k + 1, stopped, rng)


def _step(problem: Problem, gradient: FloatArray, solve: Any, length: float) -> FloatArray:
    step = length * solve(gradient)
    return np.asarray(step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-300)))


class Population(NamedTuple):
    """States of a model, and a solver for Newton steps there."""

    states: SpinArray
    solve: Any


def population_at(problem: Problem, data: Observed, at: FloatArray, rows: float, seed: int) -> Population:
    """Return states of the model with parameters ``at``, from which searches nearby begin."""
    rng = np.random.default_rng(seed)
    x = _first_states(problem, int(np.clip(rows, FEWEST_STATES, MOST_STATES)), rng, None)
    x = _relaxed(problem, at, x, SWEEPS_AT_FIRST, rng)
    lost = data.expected(at, lost=problem.size <= MOST_SOLVED).lost
    return Population(x, _Features(problem, x).solver(lost))


def climbed_again(
    problem: Problem, data: Observed, start: FloatArray, population: Population, rng: np.random.Generator
) -> FloatArray:
    """Return the parameters for other data that are not far from ``start``, where the population is."""
    at, x = start.copy(), population.states
    for k in range(STEPS_AGAIN):
        gradient = data.expected(at).moments - _Features(problem, x).mean - problem.ridge * at
        at = at + _step(problem, gradient, population.solve, 1.0 / max(1.0, k - 1.0))
        x = _relaxed(problem, at, x, SWEEPS, rng)
    return at


def _first_states(problem: Problem, size: int, rng: np.random.Generator, states: Any) -> SpinArray:
    if states is not None:
        return np.asarray(states[rng.integers(len(states), size=size)])
    up = (1.0 + problem.moments[: problem.n]) / 2.0
    return np.where(rng.random((size, problem.n)) < up, 1, -1).astype(np.int8)


def _relaxed(problem: Problem, at: FloatArray, x: SpinArray, sweeps: int, rng: np.random.Generator) -> SpinArray:
    path = from_coins(problem.model(at))
    with crew_for(path) as crew:
        return relax(path, np.ascontiguousarray(x), sweeps, rng, crew.parallel)


def _ended(
    problem: Problem,
    data: Observed,
    at: FloatArray,
    x: SpinArray,
    rows: float,
    iterations: int,
    stopped: str,
    rng: np.random.Generator,
) -> Walk:
    """Compare the moments of the last parameters, over several populations, with the moments of the data."""
    means, kept = [], []
    with catching_interrupt() as interrupt:
        for _ in range(LAST_POPULATIONS if stopped != "interrupted" else POPULATIONS_AFTER_INTERRUPT):
            x = _relaxed(problem, at, x, SWEEPS, rng)
            means.append(_Features(problem, x).mean)
            kept.append(x)
    if interrupt.happened:
        stopped = "interrupted"
        means, kept = means or [_Features(problem, x).mean], kept or [x]
    free = problem.free
    drawn, wanted = np.array(means)[:, free], data.expected(at).moments[free]
    scale = np.sqrt(np.maximum(1.0 - wanted**2, 1.0 / rows) / rows)
    rest = (drawn.mean(axis=0) - wanted + (problem.ridge * at)[free]) / scale
    # Successive populations are not independent; twice the naive variance allows for that.
    spread = drawn.var(axis=0, ddof=1) * 2.0 / len(drawn) if len(drawn) > 1 else np.ones(len(wanted))
    residual = float(np.sqrt(np.mean(rest**2))) if len(wanted) else 0.0
    noise = float(np.sqrt(np.mean(spread / scale**2))) if len(wanted) else 0.0
    return Walk(at, np.concatenate(kept), residual, noise, iterations, stopped)


class _Features:
    """The statistics of a population: their means, and a solver for their covariance."""

    def __init__(self, problem: Problem, x: SpinArray) -> None:
        self._problem, self._x = problem, x
        spins = x.astype(np.float32)
        i, j = problem.edges.T
        if problem.is_complete:
            sums = (spins.T @ spins).astype(np.float64)[i, j]
        else:
            sums = np.array([np.dot(spins[:, a], spins[:, b]) for a, b in problem.edges.tolist()], dtype=np.float64)
        self.mean = np.concatenate([spins.mean(axis=0, dtype=np.float64), sums / len(x)])

    def solver(self, lost: FloatArray | float) -> Any:
        """Return a solver of C d = g over the free parameters; with few states C is shrunk towards its diagonal.

        ``lost`` is the information lost with missing cells; without it steps are those of EM, which are too short.
        """
        problem = self._problem
        free = np.flatnonzero(problem.free)
        count = max(2, min(len(self._x), MOST_FEATURES // max(problem.size, 1)))
        spins = self._x[:count].astype(np.float32)
        features = np.hstack([spins, spins[:, problem.edges[:, 0]] * spins[:, problem.edges[:, 1]]])[:, free]
        features -= features.mean(axis=0)
        diagonal = np.maximum(1.0 - self.mean[free] ** 2, 1.0 / count)
        shrink = len(free) / (len(free) + count)
        ridge = problem.ridge[free] + shrink * diagonal

        if len(free) <= MOST_SOLVED:
            import scipy.linalg

            matrix = (1.0 - shrink) * (features.T @ features).astype(np.float64) / count + np.diag(ridge)
            missing = lost[np.ix_(free, free)] if isinstance(lost, np.ndarray) else 0.0
            try:
                factor = scipy.linalg.cho_factor(matrix - missing)
            except np.linalg.LinAlgError:
                factor = scipy.linalg.cho_factor(matrix)
            return lambda gradient: _placed(problem, free, scipy.linalg.cho_solve(factor, gradient[free]))
        from scipy.sparse.linalg import LinearOperator, cg

        def times(v: FloatArray) -> FloatArray:
            product = features.T @ (features @ v.astype(np.float32))
            return np.asarray((1.0 - shrink) * product.astype(np.float64) / count + ridge * v)

        shape = len(free), len(free)
        covariance = LinearOperator(shape, matvec=times)
        inverse = LinearOperator(shape, matvec=lambda v: v / diagonal)  # the preconditioner

        def solve(gradient: FloatArray) -> FloatArray:
            step = cg(covariance, gradient[free], rtol=1e-4, maxiter=MOST_CONJUGATE_STEPS, M=inverse)[0]
            return _placed(problem, free, step)

        return solve


def _placed(problem: Problem, free: Any, values: FloatArray) -> FloatArray:
    step = np.zeros(problem.size)
    step[free] = values
    return step

"""Fit the same model to rows drawn again from the data, many times, in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz._support.settings import using_settings
from spectralz._support.threads import NO_MATRICES, thread_count, using_threads
from spectralz.errors import catching_interrupt, showing_interrupts
from spectralz.learning import expectations, sampled
from spectralz.learning.likelihood import Likelihood, exact_moments
from spectralz.learning.minimizing import LARGEST, minimize
from spectralz.learning.observed import Incomplete, observed
from spectralz.learning.pseudo import PseudoLikelihood
from spectralz.learning.table import Table, of_states
from spectralz.result import Bootstrap

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray
    from spectralz.result import Fit

# Repetitions stop at a distance from their maximum that is small beside their own spread.
TOL = 1e-6
TOL_OF_EXPECTATIONS = 1e-3
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class _Again:
    """What all repetitions share: the problem, its rows, the estimates to begin from, and how to search."""

    problem: Problem
    table: Table
    start: FloatArray
    method: str
    engine: Any
    population: Any
    seed: int

    def parameters(self, k: int) -> FloatArray:
        """Return the estimates of repetition k."""
        rng = np.random.default_rng([self.seed, k])
        count = max(1, round(self.table.rows))
        drawn = rng.multinomial(count, self.table.weight / self.table.weight.sum())
        kept = np.flatnonzero(drawn)
        states = self.table.known_states("a bootstrap")[kept]
        table = of_states(states, drawn[kept].astype(np.float64), self.table.names, self.table.values)
        problem = replace(self.problem, moments=table.moments(self.problem.edges))
        data = observed(problem, table)
        with using_settings(threads=1):  # repetitions are in threads already
            if self.method == "sampled":
                return sampled.climbed_again(problem, data, self.start, self.population, rng)
            if self.method == "exact":
                return minimize(Likelihood(self.engine, data), problem, self.start, TOL, MOST_ITERATIONS).parameters
            if isinstance(data, Incomplete):
                tol = TOL_OF_EXPECTATIONS / np.sqrt(count)
                best = expectations.maximized(problem, table, data, self.start, tol, MOST_ITERATIONS, self.seed)
                return best.parameters
            return minimize(PseudoLikelihood(problem, table), problem, self.start, TOL, MOST_ITERATIONS).parameters


def bootstrapped(fit: Fit, count: int, seed: int) -> Bootstrap:
    """Return the estimates of ``count`` repetitions, or of those made before an interrupt."""
    count, seed = checked_count(count, "count", least=2), checked_count(seed, "seed", least=0)
    again = _again(fit, seed)
    found: dict[int, FloatArray] = {}
    with (
        showing_interrupts(),
        using_threads(None, NO_MATRICES),
        ThreadPoolExecutor(thread_count()) as pool,
        catching_interrupt() as interrupt,
    ):
        futures = {pool.submit(again.parameters, k): k for k in range(count)}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                report("bootstrap", len(found) / count)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if len(found) < 2:
        raise KeyboardInterrupt
    estimates = np.array([found[k] for k in sorted(found)])
    return Bootstrap(
        parameters=again.problem.keys(),
        estimate=again.start,
        estimates=estimates,
        unbounded=int((np.abs(estimates).max(axis=1, initial=0.0) > LARGEST / 2.0).sum()),
        interrupted=interrupt.happened,
    )


def _again(fit: Fit, seed: int) -> _Again:
    """Return what repetitions share; for sampled fits this includes a population at the estimates."""
    problem, parameters = fit.recipe.problem, fit.recipe.parameters
    table: Table = fit.table.distinct()
    table.known_states("a bootstrap")
    engine, population = None, None
    if fit.method == "exact":
        engine = exact_moments(problem)
    elif fit.method == "sampled":
        population = sampled.population_at(problem, observed(problem, table), parameters, table.rows, seed)
    return _Again(problem, table, parameters, fit.method, engine, population, seed)

"""The sum over the heaviest states as a method: one half of the populations finds them, the other measures their share.

Quenches of random states, and a search among the neighbors of heavy ones, find more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.deadline import current
from spectralz._support.devices import device_option
from spectralz._support.options import count, option, repetitions, threads_option
from spectralz.errors import warn_inaccurate
from spectralz.methods.annealing import counted, judged, limits_of, states_of
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.outcome import exact_outcome, saying
from spectralz.result import Kind, Status
from spectralz.sampling.core import Work, half_of
from spectralz.sampling.heavy.pool import (
    MOST_STATES,
    Share,
    StatePool,
    fill,
    pool_marginals,
    search,
    share_held,
    state_pool,
)
from spectralz.sampling.path import from_coins
from spectralz.sampling.penalties import penalized
from spectralz.sampling.population import layout_of
from spectralz.sampling.spread import crew_for
from spectralz.trust.states import beside_populations, can_measure, is_measured, judge_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Model
    from spectralz.trust.judgment import Judgment

# Samples from a pool that holds less come with a warning.
LEAST_SHARE_TO_SAMPLE = 0.99


@dataclass(frozen=True, kw_only=True)
class States(Method):
    r"""Sum over the heaviest states: a proven lower bound, and an estimate from the share of P(x) that they hold.

    With the log-weight w, and the share P(S) that a set of states S holds,

    .. math::

       \log Z = \log \sum_{x \in S} e^{w(x)} - \log P(S) \ge \log \sum_{x \in S} e^{w(x)}.

    The states are found by annealing, by quenches of random states, and among the neighbors of states already found.
    The answer is sharp at low temperature. If the states found hold too little of P(x), ``status`` says so and only the
    bound is returned. In a bipartite model, such as a restricted Boltzmann machine, only states of the smaller side are
    listed, and the other side is summed out: with a dozen hidden units the answer is exact.

    Parameters
    ----------
    population
        States in each group of the populations of annealing.
    runs
        Number of groups; every second one finds states, the others measure the share that these hold. If there are
        phases that the populations have missed, as many states are annealed again.
    quenches
        Random states quenched to the nearest local maximum of the weight.
    max_states
        Most states to keep.
    seed
        The same seed gives the same answer.
    threads
        Most threads to use; by default all cores that the process may use. The answer does not depend on it.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model has at least 2,000 spins (1,000 on a sparse graph).

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=18, strength=2.0, seed=0)
    >>> result = sz.log_z(model, "states")
    >>> truth = sz.log_z(model, "exact").log_z
    >>> bool(result.lower <= truth), bool(abs(result.log_z - truth) < 1e-3)
    (True, True)
    """

    population: int = option(2000, repetitions(least=2))
    runs: int = option(4, repetitions(least=2))
    quenches: int = option(1000, repetitions(least=0))
    max_states: int = option(MOST_STATES, count(least=1))
    seed: int = option(0, count(least=0))
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "states"
    gives_all_pairs: ClassVar[bool] = True
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    spreads_runs: ClassVar[bool] = True

    def _solve(self, model: Model) -> Outcome:
        return self._collect(model)[2]

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        pool, _, outcome = self._collect(model)
        return pool_marginals(pool, outcome)

    def _sample(self, model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        pool, share, _ = self._collect(model)
        if share.share < LEAST_SHARE_TO_SAMPLE:
            warn_inaccurate(
                f"samples are drawn from the states found, which hold only {100.0 * share.share:.2g}% of P(x)"
            )
        return pool.sample(size, rng)

    def _collect(self, model: Model) -> tuple[StatePool, Share, Outcome]:
        rng = np.random.default_rng(self.seed)
        pool = state_pool(model, self.max_states)
        if pool.can_be_filled:
            pool.add_all()
            whole = Share(1.0, 0.0, math.inf)
            return pool, whole, pool_outcome(pool, whole)
        soft = penalized(model)
        path = from_coins(soft)
        with crew_for(path) as crew:
            limits = limits_of(current(), layout=layout_of(path.engine, self.population * self.runs, self.runs))
            work = counted(Work(soft, crew, rng, limits))
            share, outcome = sum_over(work, pool, self.quenches, lambda share: math.inf if is_measured(share) else 0.0)
        advice = "; raise population, or use annealing" if outcome.kind is Kind.LOWER_BOUND else ""
        return pool, share, saying(outcome, advice + crew.workers.complaint, interrupted=work.is_interrupted)


def sum_over(
    work: Work, pool: StatePool, quenches: int, seconds_to_search: Callable[[Share], float]
) -> tuple[Share, Outcome]:
    """Sum over the states of one half of the groups, and measure their share with the other half.

    Quenches find what the groups have not met. ``seconds_to_search`` takes the share as measured and returns how long
    to search among the neighbors of heavy states; 0 for no search.
    """
    finding, testing = (states_of(half_of(work, half)) for half in (0, 1))
    fill(pool, work.path, finding.x, quenches, work.rng, work.crew.parallel)
    share = share_held(pool, testing)
    seconds = seconds_to_search(share)
    if seconds > 0.0:
        search(pool, work.path, seconds, work.crew.parallel)
        share = share_held(pool, testing)
    # If the heavy states are in one half alone, both halves together may still agree with the sum.
    return share, pool_outcome(pool, share, [judged(part)[2] for part in (half_of(work, 1), work)])


def pool_outcome(pool: StatePool, share: Share, seen: Sequence[Judgment] = ()) -> Outcome:
    """Return the estimate of log Z from a pool and its share; ``seen`` are those of the populations themselves."""
    log_sum, lower = pool.log_sum, pool.lower
    details = {
        "states": len(pool),
        "share": share.share,
        "share_error": _finite(share.std_error),
        "families": _finite(share.families),
        "log_sum": log_sum,
    }
    if pool.is_complete:
        return exact_outcome(log_sum, log_sum - lower, f"all {_counted(pool)} were found", details=details)
    if not len(pool):
        status = Status("no state was found that satisfies all constraints", converged=False)
        return Outcome(log_z=-math.inf, kind=Kind.ESTIMATE, status=status, trusted=False, details=details)
    summed = judge_pool(log_sum, share)
    if not is_measured(share):
        words = f"a loose lower bound: {_counted(pool)} hold about {100.0 * share.share:.2g}% of P(x)"
        if not can_measure(share):
            few = f"{share.families:.2g} independent samples are too few"
            words = f"a lower bound: {few} to measure which share of P(x) {_counted(pool)} hold"
        return Outcome(
            log_z=log_sum,
            kind=Kind.LOWER_BOUND,
            status=Status(words, converged=False),
            lower=lower,
            trusted=False,
            details=details,
        )
    words = f"{_counted(pool)} hold {100.0 * share.share:.6g}% of P(x)"
    for judgment in seen:
        summed = beside_populations(summed, judgment)
    return estimated(summed, words, lower=lower, details=details)


def _finite(number: float) -> float | None:
    """Return a number, or None if it is infinite, which JSON has no word for."""
    return number if number < math.inf else None


def _counted(pool: StatePool) -> str:
    words = f"{len(pool)} states"
    if pool.space.summed:
        words += f" of {pool.space.width} spins, the other {pool.space.summed} summed out,"
    return words

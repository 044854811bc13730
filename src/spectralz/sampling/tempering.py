"""Parallel tempering: copies of a model at all points of a path at once, which change places with their neighbors.

A copy that is stuck in a valley climbs to high temperature, forgets it, and comes back to another. The points are the
rungs of a ladder from the base to the model. After each sweep neighboring copies change places with the probability
that leaves the distributions of all rungs as they are. Log Z grows from rung to rung by the ratio that makes both
neighbors accept each other equally often (Bennett's acceptance ratio).

The copies of a rung form groups that exchange nothing, so that errors can be taken from the scatter of the groups.
Copies at the base are drawn anew in every round: each of them that arrives at a rung is a new, independent visitor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcinv, expit

from spectralz._support import clock, costs
from spectralz._support.progress import report
from spectralz.errors import catching_interrupt
from spectralz.sampling.engines.dense import DenseEngine
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.engines.sparse import GROUPS, SparseEngine
from spectralz.sampling.plan import Survey
from spectralz.sampling.run import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path

# Copies at each rung.
COPIES = 64
# The distance of neighbors along the path, in standard deviations of log-weights: about a quarter change places.
DISTANCE = 1.5
# No two rungs are further apart than one over this.
FEWEST_RUNGS = 4
# The share of neighbors that change places is measured from this on, and up to one less this.
LEAST_ACCEPTED = 0.02
# Copies of fewer spins are swept before a thread would begin.
FEWEST_FOR_THREADS = 150
# Sweeps at each rung on the first way down, when copies are cooled.
SWEEPS_DOWN = 4
# The rounds that are kept: at most twice this many; the first ones do not count.
MOST_KEPT, SHARE_LEFT_OUT = 1000, 0.5
# Iterations for a ratio, which converge as Newton's do.
ITERATIONS, TOLERANCE = 50, 1e-10


@dataclass(frozen=True)
class Tempered:
    """What the copies of a ladder have passed.

    Attributes
    ----------
    points
        The K rungs, from the base at 0 to the model at 1.
    energy
        E - E_0 of every copy in every round kept, (rounds, K, copies).
    early
        The same of earlier rounds, half as many, which do not count: they show how far copies were from equilibrium.
    visitors
        The number of copies at each rung that have come from the base during the run.
    log_z_of_base
        The log Z of the first rung.
    accepted
        The share of neighbors that changed places, K - 1 numbers.
    rounds
        Rounds made, those that are not kept included.
    x
        The states in the end, (K, copies, n).
    interrupted
        Whether an interrupt ended it.
    """

    points: FloatArray
    energy: FloatArray
    early: FloatArray
    visitors: NDArray[np.int64]
    log_z_of_base: float
    accepted: FloatArray
    rounds: int
    x: NDArray[np.int8]
    interrupted: bool = False

    @cached_property
    def log_z(self) -> tuple[FloatArray, FloatArray]:
        """Return log Z at each rung, and how far each group is off to first order: K numbers, and (K, groups)."""
        steps = np.diff(self.points)
        growth, apart = np.zeros(len(self.points)), np.zeros((len(self.points), GROUPS))
        for k, step in enumerate(steps.tolist()):
            growth[k + 1], apart[k + 1] = _ratio(step * self.energy[:, k], -step * self.energy[:, k + 1])
        return self.log_z_of_base + np.cumsum(growth), np.cumsum(apart, axis=0)


@dataclass(frozen=True)
class At:
    """A point of the path, as seen from the rungs next to it.

    Attributes
    ----------
    rungs
        Their numbers.
    log_z, apart
        Log Z at the point, and how far each group is off.
    weight
        Of the copies at these rungs in all rounds, 1 on average, so that they follow the distribution of the point.
    log_weight
        The function that gives the logs of such weights for any energies.
    """

    rungs: slice
    log_z: float
    apart: FloatArray
    weight: FloatArray
    log_weight: Callable[[FloatArray], FloatArray]


def at(tempered: Tempered, point: float) -> At:
    """Weigh the copies of neighboring rungs so that they follow the distribution of a point (multiple histograms).

    A state that rungs k have drawn together with density sum_k exp(p_k E) / Z_k gets the weight exp(p E) over that.
    """
    log_z, apart = tempered.log_z
    position = float(np.interp(point, tempered.points, np.arange(len(tempered.points))))
    near = slice(max(math.floor(position) - 1, 0), math.ceil(position) + 2)
    points, logs = tempered.points[near], log_z[near]

    def log_weight(energy: FloatArray) -> FloatArray:
        # relative to the point itself, so that nothing overflows
        terms = [(p - point) * energy - log for p, log in zip(points.tolist(), logs.tolist(), strict=True)]
        top = np.maximum.reduce(terms)
        return np.asarray(-top - np.log(sum(np.exp(term - top) for term in terms)))

    energy = tempered.energy[:, near]
    weights = log_weight(energy)
    top = float(weights.max())
    weight = np.exp(weights - top)
    mean = top + math.log(float(weight.mean()))
    weight *= math.exp(top - mean)
    # the share of each rung in what is seen of the point
    shares = [
        float(np.exp((p - point) * energy - log + weights + (weights - mean)).mean())
        for p, log in zip(points.tolist(), logs.tolist(), strict=True)
    ]
    off = np.array(shares) @ apart[near] + grouped(weight).mean(axis=0) - 1.0
    here = mean + math.log(len(points))
    return At(near, here, off, weight, lambda energy: log_weight(energy) - mean)


def grouped(values: FloatArray) -> FloatArray:
    """Return the means of groups of copies over all rounds, from (rounds, ..., copies): (..., groups)."""
    by_group = values.reshape(*values.shape[:-1], GROUPS, -1)
    return np.asarray(by_group.mean(axis=(0, -1)))


def _ratio(on: FloatArray, back: FloatArray) -> tuple[float, FloatArray]:
    """Return log(Z_2 / Z_1) from log-weights of states of each model in the other; and the same for groups, apart."""
    log_ratio = 0.5 * (float(on.mean()) - float(back.mean()))
    for _ in range(ITERATIONS):
        there, here = expit(on - log_ratio), expit(back + log_ratio)
        slope = float((there * (1.0 - there)).mean() + (here * (1.0 - here)).mean())
        change = float(np.log(max(there.mean(), 1e-300)) - np.log(max(here.mean(), 1e-300)))
        log_ratio += change
        if abs(change) < TOLERANCE:
            break
    return log_ratio, (grouped(there) - grouped(here)) / max(slope, 1e-300)


def can_temper(path: Path) -> bool:
    """Return whether the copies of a path can be at several points at once."""
    return path.n > 0 and not path.in_double and isinstance(path.engine, SparseEngine | DenseEngine)


def operations_of_round(path: Path, rungs: int) -> float:
    """Return the cost of a round of all copies of a ladder."""
    exchanges = costs.EXCHANGED_SPIN * path.n if isinstance(path.engine, SparseEngine) else 0.0
    each = costs.TEMPERING_RUNG + exchanges
    return costs.TEMPERING_ROUND + rungs * each + operations(path.engine, rungs, COPIES)


def rungs(measured: Survey) -> FloatArray:
    """Return the rungs of a ladder: as far apart as makes a quarter change places."""
    return measured.spaced(float(measured.length[-1]) / DISTANCE, least=FEWEST_RUNGS)


def respaced(tempered: Tempered) -> tuple[FloatArray, NDArray[np.int8]]:
    """Return better rungs, by how many neighbors have changed places, and states to begin from there.

    Copies with normal energies of deviation s at two rungs d apart change places with probability erfc(s d / 2).
    """
    points = tempered.points
    distance = 2.0 * erfcinv(np.clip(tempered.accepted, LEAST_ACCEPTED, 1.0 - LEAST_ACCEPTED))
    better = rungs(Survey(points, np.concatenate([[0.0], np.cumsum(distance)])))
    nearest = np.abs(better[:, None] - points).argmin(axis=1)
    return better, tempered.x[nearest]


def temper(
    path: Path,
    points: FloatArray,
    deadline: Deadline,
    rng: np.random.Generator,
    *,
    start: NDArray[np.int8] | None = None,
    look: Callable[[NDArray[np.int8], FloatArray], None] = lambda _, __: None,
    looks: int = 0,
    parallel: Parallel = one_after_the_other,
) -> Tempered:
    """Let copies climb a ladder until the time is up.

    Parameters
    ----------
    path, points
        The path, and the rungs, from 0 to 1.
    deadline
        When to end.
    rng
        Random numbers.
    start
        States to begin from, (K, copies, n), instead of states that are cooled from the base.
    look
        Called with the states of all copies, (K, copies, n), and their energies, after rounds that count.
    looks
        How many times, in equal shares of the time; at least once, if any.
    parallel
        Spreads work over threads.
    """
    engine, K = path.engine, len(points)
    assert isinstance(engine, SparseEngine | DenseEngine)
    cost = operations_of_round(path, K)
    parallel = parallel if engine.n >= FEWEST_FOR_THREADS else one_after_the_other
    if start is None:
        chains = engine.start(K * COPIES, rng, parallel)
        for k in range(1, K):
            for _ in range(SWEEPS_DOWN):
                clock.charge(cost)
                chains.sweep_ladder(np.minimum(points, points[k]))
    else:
        chains = engine.start_from(start.reshape(K * COPIES, -1), rng, parallel)
    kept: list[FloatArray] = []
    births = np.arange(K * COPIES).reshape(K, COPIES)
    visits = _Visits(K)
    tries, successes = np.zeros(K - 1), np.zeros(K - 1)
    rounds, stride, looked, begun = 0, 1, 0, deadline.left
    with catching_interrupt() as interrupt:
        while rounds < 2 or deadline.left > 0.0:
            clock.charge(cost)
            energy = chains.sweep_ladder(points)
            if rounds % stride == 0:
                kept.append(energy)
            done = 1.0 - deadline.left / begun if begun > 0.0 else 1.0
            if (looked + 1) / (looks + 1) * (1.0 - SHARE_LEFT_OUT) < done - SHARE_LEFT_OUT and looked < looks:
                looked += 1
                look(chains.states().reshape(K, COPIES, -1), energy)
            births[0] = K * COPIES + rounds * COPIES + np.arange(COPIES)
            lower = np.arange(rounds % 2, K - 1, 2)
            changes = _changes(energy, points, lower, rng)
            chains.swap(lower, changes)
            births[lower], births[lower + 1] = (
                np.where(changes, births[lower + 1], births[lower]),
                np.where(changes, births[lower], births[lower + 1]),
            )
            visits.count(births)
            tries[lower] += 1.0
            successes[lower] += changes.mean(axis=1)
            rounds += 1
            if len(kept) > 2 * MOST_KEPT:
                kept, stride = kept[::2], 2 * stride
            report("tempering", done)
    if not kept:
        raise KeyboardInterrupt
    if looks and not looked:
        energy = chains.sweep_ladder(points)
        look(chains.states().reshape(K, COPIES, -1), energy)
    quarter, half = (int(share * len(kept)) for share in (0.5 * SHARE_LEFT_OUT, SHARE_LEFT_OUT))
    early, counted = np.array(kept[quarter:half]), np.array(kept[half:])
    share = successes / np.maximum(tries, 1.0)
    x = chains.states().reshape(K, COPIES, -1)
    return Tempered(points, counted, early, visits.totals, engine.log_z_of_base, share, rounds, x, interrupt.happened)


class _Visits:
    """Count the copies that arrive at each rung for the first time since they left the base."""

    def __init__(self, rungs: int) -> None:
        self.totals = np.zeros(rungs, np.int64)
        self._first = rungs * COPIES  # copies of the first way down do not count
        self._highest = np.zeros(0, np.int64)

    def count(self, births: NDArray[np.int64]) -> None:
        """Count the copies that stand on rungs that they have not reached before."""
        is_new = births >= self._first
        numbers = births[is_new] - self._first
        places = np.nonzero(is_new)[0]
        size = int(numbers.max(initial=-1)) + 1
        if size > len(self._highest):
            self._highest = np.concatenate([self._highest, np.zeros(max(size, len(self._highest)), np.int64)])
        reached = places > self._highest[numbers]
        # A copy climbs one rung at a time.
        self.totals += np.bincount(places[reached], minlength=len(self.totals))
        self._highest[numbers[reached]] = places[reached]


def _changes(
    energy: FloatArray, points: FloatArray, lower: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which copies at some rungs change places with those at the next, by the rule of Metropolis."""
    log_odds = (points[lower + 1] - points[lower])[:, None] * (energy[lower] - energy[lower + 1])
    return np.asarray(np.log1p(-rng.random(log_odds.shape)) < log_odds)

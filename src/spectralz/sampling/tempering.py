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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy.special import erfcinv, expit

from spectralz._support import clock, costs
from spectralz._support.progress import report
from spectralz.errors import catching_interrupt
from spectralz.sampling.engines.lanes import swap_places
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.engines.sparse import COPIES_PER_GROUP, SparseEngine
from spectralz.sampling.plan import Survey
from spectralz.sampling.populations import Run
from spectralz.sampling.run import neighbors, operations, relax

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Ladder, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.phases import Phases, Stratum

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
# The rounds that are kept: at most twice this many, fewer of many copies; the first ones do not count.
MOST_KEPT, FEWEST_KEPT, SHARE_LEFT_OUT = 1000, 50, 0.5
# Fewer copies that came from the base may have missed a valley, or have a wrong share of a phase.
FEWEST_VISITORS = 30
# Sweeps that states of a phase make before they begin in it.
SWEEPS_IN_PHASE = 20
# Blocks of rounds whose scatter shows errors, beside that of the copies.
BLOCKS = 8
# Errors of so few groups are a little too small: the quantiles of Student's distribution are this much larger.
STUDENT = 1.25
# If copies approach equilibrium exponentially, they lag behind it at most by this share of how far they came since the
# rounds before those that count.
LAG_SHARE = 0.5
# Log-weights that change by less do not change.
ROUNDED_TO_NOTHING = 1e-12
# Iterations for a ratio, which converge as Newton's do.
ITERATIONS, TOLERANCE = 50, 1e-10


class Passed(NamedTuple):
    """How the log-weights of copies change from their rung to the one before and to the one after.

    Both are (rounds, K, copies); an end of the ladder is its own missing neighbor.
    """

    back: FloatArray
    on: FloatArray


class Sight(NamedTuple):
    """The copies in a round.

    Attributes
    ----------
    x, passed
        Their states, (K, copies, n), and how their log-weights change.
    births
        When each came from the base, in order; below 0 for those that did not, during this run.
    """

    x: NDArray[np.int8]
    passed: Passed
    births: NDArray[np.int64]


@dataclass(frozen=True)
class Tempered:
    """What the copies of a ladder have passed.

    Attributes
    ----------
    points
        The K rungs, from the base at 0 to the model at 1.
    passed
        What copies passed in the rounds that count.
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
    stayed
        The share of copies at the model, in rounds that count, that have not been at the base during the run.
    interrupted
        Whether an interrupt ended it.
    """

    points: FloatArray
    passed: Passed
    early: Passed
    visitors: NDArray[np.int64]
    log_z_of_base: float
    accepted: FloatArray
    rounds: int
    x: NDArray[np.int8]
    stayed: float = 0.0
    interrupted: bool = False

    @cached_property
    def energy(self) -> FloatArray:
        """E - E_0 of every copy in every round that counts, if log-weights are linear along the path."""
        return energies(self.passed, self.points)

    @cached_property
    def steps(self) -> list[Step]:
        """The growth of log Z from each rung to the next."""
        back, on = self.passed
        return [grown(on[:, k], back[:, k + 1]) for k in range(len(self.points) - 1)]

    @cached_property
    def log_z(self) -> tuple[FloatArray, FloatArray]:
        """Return log Z at each rung, and how far each group is off to first order: K numbers, and (K, groups)."""
        growth = np.array([0.0, *(step.growth for step in self.steps)])
        none = np.zeros(self.passed.on.shape[2] // COPIES_PER_GROUP)
        apart = np.array([none, *(step.off for step in self.steps)])
        return self.log_z_of_base + np.cumsum(growth), np.cumsum(apart, axis=0)


def energies(passed: Passed, points: FloatArray) -> FloatArray:
    """Return E - E_0 of copies from how their log-weights change, if these are linear along the path."""
    steps = np.diff(points)
    energy: FloatArray = np.asarray(passed.on) / np.append(steps, math.inf)[:, None]
    energy[..., -1, :] = passed.back[..., -1, :] / -steps[-1]
    return energy


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
    by_group = values.reshape(*values.shape[:-1], -1, COPIES_PER_GROUP)
    return np.asarray(by_group.mean(axis=(0, -1)))


class Step(NamedTuple):
    """The growth of log Z from a rung to the next, by acceptance ratios.

    Attributes
    ----------
    growth
        The growth.
    off
        How far each group of copies is off to first order.
    off_in_time
        How far each of some blocks of rounds is off, as the mean over its copies.
    """

    growth: float
    off: FloatArray
    off_in_time: FloatArray


def grown(on: FloatArray, back: FloatArray) -> Step:
    """Return log(Z_2 / Z_1) from log-weights of states of each model in the other, (rounds, copies)."""
    growth = 0.5 * (float(on.mean()) - float(back.mean()))
    for _ in range(ITERATIONS):
        there, here = expit(on - growth), expit(back + growth)
        slope = float((there * (1.0 - there)).mean() + (here * (1.0 - here)).mean())
        change = float(np.log(max(there.mean(), 1e-300)) - np.log(max(here.mean(), 1e-300)))
        growth += change
        if abs(change) < TOLERANCE:
            break
    off = (there - here) / max(slope, 1e-300)
    return Step(growth, grouped(off), np.array([part.mean() for part in np.array_split(off, BLOCKS) if len(part)]))


def integrated(tempered: Tempered) -> tuple[float, float]:
    """Return log Z by integrating mean changes of log-weights, as a check, and the scale of the rule's own error.

    The rule of trapezoids, with the derivatives at both ends of each step, which are variances (Euler and Maclaurin).
    These make more difference than what is left out.
    """
    back, on = tempered.passed.back[:, 1:], tempered.passed.on[:, :-1]
    growth = 0.5 * (on.mean(axis=(0, 2)) - back.mean(axis=(0, 2)))
    curvature = (back.var(axis=(0, 2)) - on.var(axis=(0, 2))) / 12.0
    return tempered.log_z_of_base + float((growth - curvature).sum()), float(np.abs(curvature).sum())


def error_of(off: FloatArray) -> FloatArray:
    """Return the standard error of the mean of groups, given how far each is off; infinity from a single group."""
    if off.shape[-1] < 2:
        return np.full(off.shape[:-1], np.inf)
    return np.asarray(off.std(axis=-1, ddof=1) / np.sqrt(off.shape[-1]))


def drift(tempered: Tempered) -> FloatArray:
    """Return by how many of its errors the mean log-weight of each rung changed between the halves of the rounds."""
    back, on = tempered.passed
    changes = np.concatenate([on[:, :-1], back[:, -1:]], axis=1)
    if len(changes) < 2:
        return np.full(len(tempered.points), np.inf)
    half = len(changes) // 2
    change = grouped(changes[half:]) - grouped(changes[:half])
    size = np.maximum(np.abs(changes).max(axis=(0, 2)), ROUNDED_TO_NOTHING)
    return np.asarray(np.abs(change.mean(axis=1)) / np.maximum(error_of(change), 1e-12 * size))


def can_temper(path: Path) -> bool:
    """Return whether the copies of a path can be at several points at once."""
    return not path.in_double and path.origin is None and hasattr(getattr(path.engine, "chains", None), "sweep_ladder")


def operations_of_round(path: Path, rungs: int, copies: int = COPIES) -> float:
    """Return the cost of a round of all copies of a ladder."""
    exchanges = costs.EXCHANGED_SPIN * path.n if isinstance(path.engine, SparseEngine) else 0.0
    each = costs.TEMPERING_RUNG + exchanges
    return costs.TEMPERING_ROUND + rungs * each * (copies // COPIES) + operations(path.engine, rungs, copies)


def rungs(measured: Survey, count: int | None = None) -> FloatArray:
    """Return ``count`` rungs of a ladder, or rungs as far apart as makes a quarter change places."""
    if count is not None:
        return measured.spaced(count - 1, least=1)
    return measured.spaced(float(measured.length[-1]) / DISTANCE, least=FEWEST_RUNGS)


def respaced(tempered: Tempered, count: int | None = None) -> tuple[FloatArray, NDArray[np.int8]]:
    """Return better rungs, by how many neighbors have changed places, and states to begin from there.

    Copies with normal energies of deviation s at two rungs d apart change places with probability erfc(s d / 2).
    """
    points = tempered.points
    distance = 2.0 * erfcinv(np.clip(tempered.accepted, LEAST_ACCEPTED, 1.0 - LEAST_ACCEPTED))
    better = rungs(Survey(points, np.concatenate([[0.0], np.cumsum(distance)])), count)
    nearest = np.abs(better[:, None] - points).argmin(axis=1)
    return better, tempered.x[nearest]


def temper(
    path: Path,
    points: FloatArray,
    deadline: Deadline,
    rng: np.random.Generator,
    *,
    copies: int = COPIES,
    most_rounds: float = math.inf,
    start: NDArray[np.int8] | None = None,
    look: Callable[[Sight], None] = lambda _: None,
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
    copies
        Copies at each rung, a multiple of 64.
    most_rounds
        Rounds after which it ends in any case.
    start
        States to begin from, (K, copies, n), instead of states that are cooled from the base.
    look
        Called with the copies after rounds that count.
    looks
        How many times, in equal shares of the time; at least once, if any.
    parallel
        Spreads work over threads.
    """
    engine, K = path.engine, len(points)
    cost = operations_of_round(path, K, copies)
    parallel = parallel if engine.n >= FEWEST_FOR_THREADS else one_after_the_other
    around = neighbors(points)
    if start is None:
        chains = cast("Ladder", engine.start(K * copies, rng, parallel))
        for k in range(1, K):
            for _ in range(SWEEPS_DOWN):
                clock.charge(cost)
                reached = np.minimum(points, points[k])
                chains.sweep_ladder(reached, reached, reached)
    else:
        chains = cast("Ladder", engine.start_from(start.reshape(K * copies, -1), rng, parallel))
    kept: list[tuple[Passed, float]] = []
    births = np.arange(K * copies).reshape(K, copies)
    visits = _Visits(K, copies)
    tries, successes = np.zeros(K - 1), np.zeros(K - 1)
    rounds, stride, looked, begun = 0, 1, 0, deadline.left
    most_kept = max(MOST_KEPT * COPIES // copies, FEWEST_KEPT)
    with catching_interrupt() as interrupt:
        while rounds < 2 or (deadline.left > 0.0 and rounds < most_rounds):
            clock.charge(cost)
            passed = Passed(*chains.sweep_ladder(around[0], points, around[1]))
            if rounds % stride == 0:
                kept.append((passed, float((births[-1] < K * copies).mean())))
            done = max(_done(deadline, begun), (rounds + 1) / most_rounds)
            if (looked + 1) / (looks + 1) * (1.0 - SHARE_LEFT_OUT) < done - SHARE_LEFT_OUT and looked < looks:
                looked += 1
                look(Sight(chains.states().reshape(K, copies, -1), passed, births - K * copies))
            births[0] = K * copies + rounds * copies + np.arange(copies)
            lower = np.arange(rounds % 2, K - 1, 2)
            changes = _changes(passed, lower, rng)
            chains.swap(lower, changes)
            swap_places(births, lower, changes)
            visits.count(births)
            tries[lower] += 1.0
            successes[lower] += changes.mean(axis=1)
            rounds += 1
            if len(kept) > 2 * most_kept:
                kept, stride = kept[::2], 2 * stride
            report("tempering", done)
    if not kept:
        raise KeyboardInterrupt
    if looks and not looked:
        passed = Passed(*chains.sweep_ladder(around[0], points, around[1]))
        look(Sight(chains.states().reshape(K, copies, -1), passed, births - K * copies))
    quarter, half = (int(share * len(kept)) for share in (0.5 * SHARE_LEFT_OUT, SHARE_LEFT_OUT))
    early, counted = (_joined([passed for passed, _ in part], K, copies) for part in (kept[quarter:half], kept[half:]))
    return Tempered(
        points=points,
        passed=counted,
        early=early,
        visitors=visits.totals,
        log_z_of_base=engine.log_z_of_base,
        accepted=successes / np.maximum(tries, 1.0),
        rounds=rounds,
        x=chains.states().reshape(K, copies, -1),
        stayed=float(np.mean([stayed for _, stayed in kept[half:]])),
        interrupted=interrupt.happened,
    )


def _done(deadline: Deadline, begun: float) -> float:
    """Return the share of the time that has passed; ``begun`` is what was left at first."""
    if begun == math.inf:
        return 0.0
    return 1.0 - deadline.left / begun if begun > 0.0 else 1.0


def _joined(kept: list[Passed], rungs: int, copies: int) -> Passed:
    """Return what copies passed in some rounds as one."""
    if not kept:
        return Passed(np.empty((0, rungs, copies)), np.empty((0, rungs, copies)))
    return Passed(*(np.array(parts) for parts in zip(*kept, strict=True)))


class _Visits:
    """Count the copies that arrive at each rung for the first time since they left the base."""

    def __init__(self, rungs: int, copies: int = COPIES) -> None:
        self.totals = np.zeros(rungs, np.int64)
        self._first = rungs * copies  # copies of the first way down do not count
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


def _changes(passed: Passed, lower: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which copies at some rungs change places with those at the next, by the rule of Metropolis."""
    log_odds = passed.on[lower] + passed.back[lower + 1]
    return np.asarray(np.log1p(-rng.random(log_odds.shape)) < log_odds)


# ------------------------------------------------------------------------------------------- states, and their phases


class Sights:
    """States at the model that were looked at, with their births."""

    def __init__(self) -> None:
        self._x: list[NDArray[np.int8]] = []
        self._births: list[NDArray[np.int64]] = []

    def add(self, sight: Sight) -> None:
        """Keep the copies at the model."""
        self._x.append(sight.x[-1].copy())
        self._births.append(sight.births[-1].copy())

    def run(self, log_z: float) -> Run:
        """Return the states as a population, whose families are the copies that came from the base."""
        x, births = np.concatenate(self._x), np.concatenate(self._births)
        family = np.unique(births, return_inverse=True)[1]
        return Run(log_z, x, np.full(len(x), 1.0 / len(x)), family, 0.0)

    def visitors_in(self, phases: Phases, stratum: Stratum) -> int:
        """Return how many copies that came from the base were in a stratum."""
        births = np.array(self._births)
        is_in = np.array([phases.have([stratum], x) for x in self._x])
        return len(np.unique(births[is_in & (births >= 0)]))


def unmet(phases: Phases, sights: Sights) -> Phases:
    """Return the phases, with those strata that hold their states and that few copies from the base have met.

    Where copies cross a barrier rarely, those that have done so stay, and more and more gather there: their share shows
    nothing. Copies that began in a phase prove nothing either.
    """

    def is_met(stratum: Stratum) -> bool:
        return sights.visitors_in(phases, stratum) >= FEWEST_VISITORS

    return replace(phases, strata=tuple(each for each in phases.strata if not (each.is_left or is_met(each))))


def in_phases(
    path: Path, phases: Phases, x: NDArray[np.int8], rng: np.random.Generator, parallel: Parallel
) -> NDArray[np.int8]:
    """Return states to begin from, (K, copies, n): on the colder half of the rungs, as many in each of the phases."""
    start = x.copy()
    rungs, copies, n = x.shape
    count = len(phases.strata) + 1  # the others stay where they are
    for k, stratum in enumerate(phases.strata, 1):
        is_up = rng.random((len(range(k, copies, count)), n)) < expit(2.0 * stratum.base)
        states = relax(path, np.where(is_up, 1, -1).astype(np.int8), SWEEPS_IN_PHASE, rng, parallel)
        start[rungs // 2 :, k::count] = states
    return start

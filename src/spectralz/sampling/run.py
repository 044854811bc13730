"""Annealing: states follow a path from a base to a model, and their weights on the way give an estimate of Z.

Between two points of the path Z grows by the mean change of weight over states drawn at the first point. So each state
collects log-weights on its way. Once these have become uneven, the population is resampled: light states die and heavy
ones multiply. Sweeps keep the states in equilibrium, or near it.

The product of the mean weights has Z as its expectation, however few or far from equilibrium the states are, as long as
points do not depend on them (Neal; Del Moral). So a survey chooses the points in advance.

With many spins the log-weights vary by much more than 1, and no number of states contains the heavy ones that dominate
the mean weight. Then states also go back from the model to the base. The mean log-weight is too small on the way there,
because states lag behind equilibrium, and too large on the way back. Near equilibrium both lags are equal, and the
middle is right (Jarzynski; Crooks; Hendrix and Jarzynski).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.populations import Run, log_means, mean_and_shares, systematic, variance_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Chains, Engine, Parallel
    from spectralz.sampling.path import Path

# A population is resampled once its effective share is below this, by default.
RESAMPLE_BELOW = 0.5
# Points of the path that are passed between two looks at the weights: this share of all, at most this many, and no more
# than take this many operations, some hundredths of a second: an interrupt waits for them.
SHARE_PER_LOOK, MOST_PER_LOOK, OPERATIONS_PER_LOOK = 1.0 / 32.0, 64, 3e7
# States that relax make at least this many sweeps.
FEWEST_TO_RELAX = 3
# Sweeps at the model before going back, as a share of the points of the path.
RELAXING_SHARE = 0.25
# The way back starts from ordered states if their log-weights exceed those of the annealed states by this many of their
# joint errors.
DEVIATIONS_BETTER = 3.0


def operations(engine: Engine, points: int, size: int, sweeps: int = 1) -> float:
    """Return the cost of so many states at so many points of the path."""
    return float(points * size) * (sweeps * engine.operations + costs.WEIGHT_AT_POINT)


def neighbors(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points before and after each point of a path; each end is its own missing neighbor."""
    return np.concatenate([points[:1], points[:-1]]), np.concatenate([points[1:], points[-1:]])


def anneal(
    path: Path,
    points: FloatArray,
    size: int,
    rng: np.random.Generator,
    *,
    sweeps: int = 1,
    resample_below: float = RESAMPLE_BELOW,
    start: Run | None = None,
    stops: Mapping[int, Callable[[Run], None]] | None = None,
    parallel: Parallel = one_after_the_other,
    tell: Callable[[float], None] = lambda _: None,
) -> Run:
    """Take a population through given points of a path.

    Parameters
    ----------
    path, points
        The path, and its points, the last of them usually 1.
    size
        Number of states.
    rng
        Random numbers.
    sweeps
        Sweeps at every point.
    resample_below
        Resample once the effective share of the population is below this; 0 never does.
    start
        States to begin from, with their weights, instead of states drawn from the base.
    stops
        Functions by numbers of points; each is called with the population as it is at that point.
    parallel
        Spreads work over threads.
    tell
        Called with the share that is done.
    """
    engine = path.engine
    clock.charge(operations(engine, len(points), size, sweeps))
    if start is None:
        chains = engine.start(size, rng, parallel)
        log_weight, family = np.zeros(size), np.arange(size)
    else:
        chains = engine.start_from(start.x, rng, parallel)
        log_weight, family = np.log(np.maximum(size * start.weight, 1e-300)), start.family
    before, after = neighbors(points)
    log_z = engine.log_z_of_base
    gap, last_growth, mean = 0.0, 0.0, 0.0
    variances: list[FloatArray] = []
    variance = 0.0
    stops = stops or {}
    for part in parts_of_path(engine, len(points), size, sweeps, stops):
        back, on = chains.sweep(before[part], points[part], after[part], sweeps)
        weights = log_weight + np.cumsum(on, axis=0)
        earlier = np.concatenate([log_weight[None], weights[:-1]])
        means = log_means(weights)
        means_earlier = np.concatenate([[mean], means[:-1]])
        # The growth of log Z since the point before, as seen by the states after the sweeps and before them.
        behind = means_earlier - log_means(earlier + back)
        growth = means - means_earlier
        gap += float(behind.sum() - growth[:-1].sum()) - last_growth
        last_growth = float(growth[-1])
        variances.append(variance + variance_of(earlier))
        if part.stop - 1 in stops:  # the states are at the last point, their weights already at the next
            spread = np.concatenate(variances)
            stops[part.stop - 1](_run(chains, log_z, earlier[-1], family, gap, points[: part.stop], spread))
        log_weight = weights[-1]
        mean, share = mean_and_shares(log_weight)
        if 1.0 / float((share**2).sum()) < resample_below * size and part.stop < len(points):
            places = np.repeat(np.arange(size), systematic(share, rng.random(), size))
            chains.take(places)
            family, log_weight = family[places], np.zeros(size)
            log_z, mean = log_z + mean, 0.0
            variance += float(variance_of(weights[-1]))
        tell(part.stop / len(points))
    return _run(chains, log_z, log_weight, family, gap, points, np.concatenate(variances))


def _run(
    chains: Chains,
    log_z: float,
    log_weight: FloatArray,
    family: NDArray[np.int64],
    gap: float,
    points: FloatArray,
    spread: FloatArray,
) -> Run:
    """Return the population at the last of some points, with its log-weights since it was last resampled."""
    mean, share = mean_and_shares(log_weight)
    totals = np.bincount(family, weights=share, minlength=len(share))
    return Run(
        log_z=log_z + mean,
        x=chains.states(),
        weight=share,
        family=family,
        variance=float(((totals - 1.0 / len(share)) ** 2).sum()),
        gap=gap,
        points=points,
        spread=spread,
    )


def parts_of_path(engine: Engine, points: int, size: int, sweeps: int, stops: Iterable[int] = ()) -> list[slice]:
    """Divide a path into parts that are passed between two looks at the weights; one ends at each of the stops."""
    affordable = OPERATIONS_PER_LOOK / (engine.operations * sweeps * size)
    length = int(max(min(SHARE_PER_LOOK * points, MOST_PER_LOOK, affordable), 1))
    edges = sorted({*range(0, points, length), *(stop + 1 for stop in stops), points})
    return [slice(begin, end) for begin, end in pairwise(edges)]


@dataclass(frozen=True)
class RoundTrip:
    """Log-weights of states on their way to the model and back.

    Attributes
    ----------
    there, back
        log Z from each state alone: too small on the way there, too large on the way back.
    x
        The states at the model, one per row.
    is_ordered
        Whether the way back began in ordered states.
    """

    there: FloatArray
    back: FloatArray
    x: NDArray[np.int8]
    is_ordered: bool = False

    @property
    def log_z(self) -> float:
        """The middle of both ways, offset and trace not included."""
        return 0.5 * float(self.there.mean() + self.back.mean())

    @property
    def gap(self) -> float:
        """The excess of the way back over the way there."""
        return float(self.back.mean() - self.there.mean())

    @property
    def variances(self) -> tuple[float, float]:
        """The variances of the log-weights on the way there and on the way back."""
        return float(variance_of(self.there)), float(variance_of(self.back))

    @property
    def scatter(self) -> float:
        """Standard error of the middle, from the scatter of the states."""
        return 0.5 * math.sqrt(sum(self.variances) / max(len(self.there) - 1, 1))

    def as_run(self) -> Run:
        """Return the states at the model, all with the same weight."""
        size = len(self.x)
        share = np.full(size, 1.0 / size)
        return Run(log_z=self.log_z, x=self.x, weight=share, family=np.arange(size), variance=self.scatter**2)

    @classmethod
    def joined(cls, trips: Iterable[RoundTrip]) -> RoundTrip:
        """Return the states of several trips as one."""
        there, back, x, is_ordered = zip(
            *((trip.there, trip.back, trip.x, trip.is_ordered) for trip in trips), strict=True
        )
        return cls(np.concatenate(there), np.concatenate(back), np.concatenate(x), any(is_ordered))


def there_and_back(
    path: Path,
    points: FloatArray,
    size: int,
    rng: np.random.Generator,
    *,
    ordered: NDArray[np.int8] | None = None,
    sweeps: int = 1,
    parallel: Parallel = one_after_the_other,
    tell: Callable[[float], None] = lambda _: None,
) -> RoundTrip:
    """Take states to the model, let them relax there, and take them back.

    ``ordered`` are states along leading eigenvectors. If they have larger log-weights after relaxing than the annealed
    states, which may be stuck with domain walls, the way back starts from them. The others are as in :func:`anneal`.
    """
    engine = path.engine
    # Where clusters are turned, a sweep takes long and few are needed.
    share = RELAXING_SHARE * (engine.slow_share or 1.0)
    relaxing = max(int(share * len(points)), 1)
    clock.charge(operations(engine, 2 * len(points) + relaxing, size, sweeps))
    chains = engine.start(size, rng, parallel)
    there = engine.log_z_of_base + _log_weights(engine, chains, points, sweeps, lambda done: tell(0.45 * done))
    energy = _relaxed(engine, chains, relaxing, sweeps)
    x = chains.states()
    is_ordered = False
    if ordered is not None and len(ordered):
        clock.charge(operations(engine, relaxing, size, sweeps))
        others = engine.start_from(ordered[np.arange(size) % len(ordered)], rng, parallel)
        better = _relaxed(engine, others, relaxing, sweeps)
        error = math.sqrt((float(variance_of(energy)) + float(variance_of(better))) / size)
        is_ordered = bool(better.mean() - energy.mean() > DEVIATIONS_BETTER * error)
        chains = others if is_ordered else chains
    back = _log_weights(engine, chains, points[::-1], sweeps, lambda done: tell(0.55 + 0.45 * done))
    return RoundTrip(there, engine.log_z_of_base - back, x, is_ordered)


def way_back(path: Path, points: FloatArray, x: NDArray[np.int8], rng: np.random.Generator) -> FloatArray:
    """Take given states of the model back to the base; return log Z from each state alone."""
    engine = path.engine
    clock.charge(operations(engine, len(points), len(x)))
    chains = engine.start_from(x, rng)
    return engine.log_z_of_base - _log_weights(engine, chains, points[::-1], 1, lambda _: None)


def _log_weights(
    engine: Engine, chains: Chains, points: FloatArray, sweeps: int, tell: Callable[[float], None]
) -> FloatArray:
    """Take states along points of the path, and return the log-weights that they collect."""
    before, after = neighbors(points)
    total = np.zeros(chains.size)
    for part in parts_of_path(engine, len(points), chains.size, sweeps):
        _, on = chains.sweep(before[part], points[part], after[part], sweeps)
        total += on.sum(axis=0)
        tell(part.stop / len(points))
    return total


def _relaxed(engine: Engine, chains: Chains, count: int, sweeps: int) -> FloatArray:
    """Sweep at the model; return log-weights minus those of the base."""
    ones = np.ones(count)
    for part in parts_of_path(engine, count, chains.size, sweeps):
        chains.sweep(ones[part], ones[part], ones[part], 1)
    back, _ = chains.sweep(np.zeros(1), np.ones(1), np.ones(1), 1)
    return np.asarray(-back[0])


def relax(
    path: Path, x: NDArray[np.int8], sweeps: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> NDArray[np.int8]:
    """Return states after so many sweeps at the model, or fewer once the time is up."""
    engine = path.engine
    chains = engine.start_from(x, rng, parallel)
    for k in range(0, sweeps, engine.points_together):
        ones = np.ones(min(engine.points_together, sweeps - k))
        clock.charge(len(ones) * len(x) * engine.operations)
        chains.sweep(ones, ones, ones, 1)
        if k + len(ones) >= FEWEST_TO_RELAX and deadline.is_past():
            break
    return chains.states()


def prolonged(
    path: Path, run: Run, sweeps: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> Run:
    """Return a run with all states that its states pass in so many sweeps at the model, each with a share."""
    engine, one = path.engine, np.ones(1)
    chains = engine.start_from(run.x, rng, parallel)
    clock.charge(operations(engine, sweeps, run.size))
    passed = [run.x]
    for _ in range(sweeps - 1):
        chains.sweep(one, one, one, 1)
        passed.append(chains.states())
    return replace(
        run,
        x=np.concatenate(passed),
        weight=np.tile(run.weight, sweeps) / sweeps,
        family=np.tile(run.family, sweeps),
    )

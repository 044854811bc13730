"""States that go to the model and back.

With many spins the log-weights vary by much more than 1, and no number of states contains the heavy ones that dominate
the mean weight. Then states also go back from the model to the base. The mean log-weight is too small on the way there,
because states lag behind equilibrium, and too large on the way back. Near equilibrium both lags are equal, and the
middle is right (Jarzynski; Crooks; Hendrix and Jarzynski).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.population import Run
from spectralz.sampling.spread import spread_runs
from spectralz.sampling.sweeps import neighbors, operations, parts_of_path, variance_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.lanes import Chains, Engine, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew

# Sweeps at the model before going back, as a share of the points of the path.
RELAXING_SHARE = 0.25
# The way back starts from ordered states if their log-weights exceed those of the annealed states by this many of their
# joint errors.
DEVIATIONS_BETTER = 3.0


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
        return Run.of_families(self.x, share, np.arange(size))


def there_and_back(
    path: Path,
    points: FloatArray,
    size: int,
    rng: np.random.Generator,
    *,
    ordered: NDArray[np.int8] | None = None,
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
    clock.charge(operations(engine, 2 * len(points) + relaxing, size))
    chains = engine.start(size, rng, parallel)
    there = engine.log_z_of_base + _log_weights(engine, chains, points, lambda done: tell(0.45 * done))
    energy = _relaxed(engine, chains, relaxing)
    x = chains.states()
    is_ordered = False
    if ordered is not None and len(ordered):
        clock.charge(operations(engine, relaxing, size))
        others = engine.start_from(ordered[np.arange(size) % len(ordered)], rng, parallel)
        better = _relaxed(engine, others, relaxing)
        error = math.sqrt((float(variance_of(energy)) + float(variance_of(better))) / size)
        is_ordered = bool(better.mean() - energy.mean() > DEVIATIONS_BETTER * error)
        chains = others if is_ordered else chains
    back = _log_weights(engine, chains, points[::-1], lambda done: tell(0.55 + 0.45 * done))
    return RoundTrip(there, engine.log_z_of_base - back, x, is_ordered)


def way_back(path: Path, points: FloatArray, x: NDArray[np.int8], rng: np.random.Generator) -> FloatArray:
    """Take given states of the model back to the base; return log Z from each state alone."""
    engine = path.engine
    clock.charge(operations(engine, len(points), len(x)))
    chains = engine.start_from(x, rng)
    return engine.log_z_of_base - _log_weights(engine, chains, points[::-1], lambda _: None)


def _log_weights(engine: Engine, chains: Chains, points: FloatArray, tell: Callable[[float], None]) -> FloatArray:
    """Take states along points of the path, and return the log-weights that they collect."""
    before, after = neighbors(points)
    total = np.zeros(chains.size)
    for part in parts_of_path(engine, len(points), chains.size, 1):
        _, on = chains.sweep(before[part], points[part], after[part], 1)
        total += on.sum(axis=0)
        tell(part.stop / len(points))
    return total


def _relaxed(engine: Engine, chains: Chains, count: int) -> FloatArray:
    """Sweep at the model; return log-weights minus those of the base."""
    ones = np.ones(count)
    for part in parts_of_path(engine, count, chains.size, 1):
        chains.sweep(ones[part], ones[part], ones[part], 1)
    back, _ = chains.sweep(np.zeros(1), np.ones(1), np.ones(1), 1)
    return np.asarray(-back[0])


def there_and_back_in_parts(
    crew: Crew,
    path: Path,
    points: FloatArray,
    size: int,
    count: int,
    rng: np.random.Generator,
    *,
    ordered: NDArray[np.int8] | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> RoundTrip:
    """Take ``count`` times ``size`` states to the model and back, in threads or by the workers."""
    work = partial(there_and_back, path, points, size, ordered=ordered)
    cost = operations(path.engine, round((2.0 + RELAXING_SHARE) * len(points)), size)
    trips = list(spread_runs(crew, path, work, size, count, cost, rng, tell))
    there, back, x = (np.concatenate([getattr(trip, name) for trip in trips]) for name in ("there", "back", "x"))
    return RoundTrip(there, back, x, any(trip.is_ordered for trip in trips))

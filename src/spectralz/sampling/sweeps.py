"""Sweeps of states along a path and at its end: what they cost, and in which parts they are made."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz.sampling.engines.protocol import one_after_the_other

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Engine, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run

# States are resampled once their effective share is below this, by default.
RESAMPLE_BELOW = 0.5
# Points of the path that are passed between two looks at the weights: this share of all, at most this many, and no more
# than take this many operations, some hundredths of a second: an interrupt waits for them.
SHARE_PER_LOOK, MOST_PER_LOOK, OPERATIONS_PER_LOOK = 1.0 / 32.0, 64, 3e7
# States that relax make at least this many sweeps.
FEWEST_TO_RELAX = 3


def operations(engine: Engine, points: int, size: int, sweeps: int = 1) -> float:
    """Return the cost of so many states at so many points of the path."""
    return float(points * size) * (sweeps * engine.operations + costs.WEIGHT_AT_POINT)


def neighbors(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points before and after each point of a path; each end is its own missing neighbor."""
    return np.concatenate([points[:1], points[:-1]]), np.concatenate([points[1:], points[-1:]])


def parts_of_path(engine: Engine, points: int, size: int, sweeps: int, stops: Iterable[int] = ()) -> list[slice]:
    """Divide a path into parts that are passed between two looks at the weights; one ends at each of the stops."""
    affordable = OPERATIONS_PER_LOOK / (engine.operations * sweeps * size)
    length = int(max(min(SHARE_PER_LOOK * points, MOST_PER_LOOK, affordable), 1))
    edges = sorted({*range(0, points, length), *(stop + 1 for stop in stops), points})
    return [slice(begin, end) for begin, end in pairwise(edges)]


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

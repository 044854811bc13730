"""Annealing: states follow a path from a base to a model, and their weights on the way give an estimate of Z.

Between two points of the path Z grows by the mean change of weight over states drawn at the first point. So each state
collects log-weights on its way. Once these have become uneven, the population is resampled: light states die and heavy
ones multiply. Sweeps keep the states in equilibrium, or near it.

The product of the mean weights has Z as its expectation, however few or far from equilibrium the states are, as long as
points do not depend on them (Neal; Del Moral). So a survey chooses the points in advance.

Curves, ratios and the search for the heaviest state make such runs. log Z has populations in groups
(``population.py``).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.populations import Run, log_means, mean_and_shares, systematic, variance_of
from spectralz.sampling.spread import spread_runs
from spectralz.sampling.sweeps import RESAMPLE_BELOW, neighbors, operations, parts_of_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Chains, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew


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


def anneal_many(
    crew: Crew,
    path: Path,
    points: FloatArray,
    size: int,
    count: int,
    rng: np.random.Generator,
    *,
    sweeps: int = 1,
    resample_below: float = RESAMPLE_BELOW,
    tell: Callable[[float], None] = lambda _: None,
) -> Iterator[Run]:
    """Yield ``count`` runs through the same points; ``tell`` is called with the share of all that is done.

    Each run has its own stream of random numbers, so the result does not depend on the number of threads. Threads make
    runs side by side if these are small, otherwise parts of one run. With an executor its workers make the runs.
    """
    work = partial(anneal, path, points, size, sweeps=sweeps, resample_below=resample_below)
    cost = operations(path.engine, len(points), size, sweeps)
    yield from spread_runs(crew, path, work, size, count, cost, rng, tell)


def log_mean_z(runs: Sequence[Run]) -> float:
    """Return the log of the mean of the runs' estimates of Z, weighted by effort; the mean is unbiased, as they are."""
    logs, effort = np.array([run.log_z for run in runs]), np.array([run.effort for run in runs])
    top = float(logs.max())
    return top + math.log(float(effort @ np.exp(logs - top)) / float(effort.sum())) if top > -math.inf else top


def weights_of(runs: Sequence[Run]) -> list[FloatArray]:
    """Return the weights of the states of every run in the mean of all."""
    top = max(run.log_z for run in runs)
    totals = np.array([run.effort * math.exp(run.log_z - top) for run in runs])
    return [run.weight * total for run, total in zip(runs, totals / totals.sum(), strict=True)]

"""The lower end of an interval of log Z that holds with a stated probability, from annealing runs.

Each run is an unbiased estimate of Z, at any size and temperature. Choices that use random numbers in advance, such as
the points of the path, must have their own stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import deadline
from spectralz._support.progress import reporter_of
from spectralz.errors import catching_interrupt
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.betting import Bets, lower_end
from spectralz.parts.mini_buckets.intervals import Ends
from spectralz.sampling.engines.dense import POINTS_PER_REFRESH
from spectralz.sampling.population import Layout, populations
from spectralz.sampling.sweeps import MOST_PER_LOOK

if TYPE_CHECKING:
    from spectralz.model import FloatArray
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew

# The end is below the mean of the logarithms of this many runs by log(1 / delta) over their number.
RUNS = 64


def annealed_end(
    crew: Crew,
    path: Path,
    points: FloatArray,
    size: int,
    runs: int,
    delta: float,
    rng: np.random.Generator,
    sweeps: int = 1,
) -> Ends:
    """Anneal populations of a given size through given points, and return the lower end of log Z.

    It is wrong with probability at most ``delta``. The path must use double precision, and the points must not depend
    on the random numbers of ``rng``. Fewer runs are made if the time is up or after an interrupt.
    """
    values: list[float] = []
    tell = reporter_of("annealing for an interval")
    with catching_interrupt() as interrupt:
        for run in populations(crew, path, points, Layout(runs, 1, size), rng, sweeps=sweeps, tell=tell):
            values.append(run.under(path.model.constraints).mean_log_z)
            if deadline.is_past():
                break
    if interrupt.happened and not values:
        raise KeyboardInterrupt
    low = lower_end(np.array(values), delta, Bets.for_few(runs)) - _rounding_of_runs(path, sweeps)
    words = f"{len(values)} runs of annealing, {size} states each"
    return Ends(low, None, words, interrupt.happened)


def _rounding_of_runs(path: Path, sweeps: int) -> float:
    """Bound the rounding error of the log of a run's estimate, which is at most that of an energy.

    The fields of dense states are updated with every flip, until they are summed up anew: after so many points, and
    those of the part of the path that is passed at the time.
    """
    couplings = path.couplings
    size = float(np.abs(path.theta).sum() + couplings.row_sums_of_sizes().sum() + path.model.higher.total)
    degree = float(np.diff(couplings.indptr).max(initial=0))
    updates = (POINTS_PER_REFRESH + MOST_PER_LOOK) * (sweeps + 1.0) * degree if couplings.is_dense else 0.0
    terms = updates + path.n + path.entries
    return 2.0 * UNIT_ROUNDOFF * (terms + 64.0) * (size + path.n)

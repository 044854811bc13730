"""Estimate the ratio of two models' partition functions by annealing from one to the other and back.

States of the first model are taken through intermediate models, E_t = E_first + t (E_second - E_first), and collect
log-weights; their mean weight is the ratio. States of the second model do the same in reverse. If states lag behind
equilibrium, the two estimates err on opposite sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz.parts.annealer import Annealer
from spectralz.parts.populations import mean_and_shares, systematic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import Ising
    from spectralz.parts.populations import Annealed

__all__ = ["Bridge", "bridge", "difference_of"]

# Sweeps at each intermediate model.
SWEEPS = 2
# Log-weights change by this standard deviation from one intermediate model to the next; there are at most this many.
CHANGE, MOST_MODELS = 0.5, 400
RESAMPLE_BELOW = 0.5


@dataclass(frozen=True)
class Bridge:
    """Estimates of log(Z_second / Z_first) on the ways there and back, one per run, and the intermediate models."""

    there: NDArray[np.float64]
    back: NDArray[np.float64]
    models: int

    @property
    def value(self) -> float:
        """The middle of both ways."""
        return 0.5 * (_mean(self.there) + _mean(self.back))

    @property
    def std_error(self) -> float:
        """The scatter of the runs, and half of the disagreement of both ways beyond it."""
        scatter = 0.25 * (_variance(self.there) + _variance(self.back))
        apart = 0.5 * (_mean(self.there) - _mean(self.back))
        return math.sqrt(scatter + max(apart**2 - scatter, 0.0))


def _mean(values: NDArray[np.float64]) -> float:
    """Return the log of the mean estimate of the runs."""
    return mean_and_shares(values)[0]


def _variance(values: NDArray[np.float64]) -> float:
    """Return the variance of that, by the jackknife over runs."""
    count = len(values)
    without = np.array([_mean(np.delete(values, k)) for k in range(count)])
    return float((count - 1) / count * ((without - without.mean()) ** 2).sum())


def difference_of(first: Ising, second: Ising, x: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the log-weights of states in the second model minus those in the first, without constants."""
    return np.asarray(second.log_weight(x) - first.log_weight(x)) - (second.constant - first.constant)


def bridge(
    first: Ising,
    second: Ising,
    there: Sequence[Annealed],
    back: Sequence[Annealed],
    seconds: float,
    rng: np.random.Generator,
) -> Bridge:
    """Take populations of each model to the other, in about the given seconds, or as long as one step takes."""
    spread = max(float(np.std(difference_of(first, second, run.x[_likely(run, rng)]))) for run in (*there, *back))
    runs = len(there) + len(back)
    began = clock.now()
    _step(first, second, 0.5, there[0].x, rng)
    affordable = seconds / max((clock.now() - began) * runs, 1e-9)
    models = int(max(min(math.ceil(spread / CHANGE), affordable, MOST_MODELS), 1))
    values = []
    for k, (start, end, population) in enumerate(
        [*((first, second, run) for run in there), *((second, first, run) for run in back)]
    ):
        values.append(_way(start, end, population, models, rng))
        report("going from one model to the other", (k + 1) / runs)
    return Bridge(np.array(values[: len(there)]), -np.array(values[len(there) :]), models)


def _likely(run: Annealed, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the states that a resampling would keep."""
    return np.repeat(np.arange(run.size), systematic(run.weight, rng.random(), run.size))


def _way(first: Ising, second: Ising, run: Annealed, models: int, rng: np.random.Generator) -> float:
    """Return the log of the mean weight that states of the first model collect on their way to the second."""
    x, log_ratio = run.x, 0.0
    log_weight = np.log(np.maximum(run.size * run.weight, 1e-300))  # their mean is 1
    points = np.linspace(0.0, 1.0, models + 1)
    for t, step in zip(points[1:], np.diff(points), strict=True):
        log_weight = log_weight + step * difference_of(first, second, x)
        if t == 1.0:
            break
        mean, share = mean_and_shares(log_weight)
        if 1.0 / float((share**2).sum()) < RESAMPLE_BELOW * len(x):
            log_ratio += mean
            x = x[np.repeat(np.arange(len(x)), systematic(share, rng.random(), len(x)))]
            log_weight = np.zeros(len(x))
        x = _step(first, second, t, x, rng)
    return log_ratio + mean_and_shares(log_weight)[0]


def _step(first: Ising, second: Ising, t: float, x: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """Return the states after some sweeps at an intermediate model."""
    between = (1.0 - t) * first + t * second
    with Annealer(between, block_width=0, from_coins=True) as annealer:
        return annealer.relax(x, SWEEPS, rng)

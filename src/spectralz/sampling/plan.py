"""Plan a run: the points of its path, and what it will cost.

Points are chosen so that log-weights change by equal amounts between them.

A step d of the path changes log-weights by d (E - E_0), whose standard deviation is d times that of the energy. A quick
run measures that deviation along the path. Points are then placed at equal distances in its integral, the length of the
path.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, deadline
from spectralz._support.progress import report
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.populations import deviation_of
from spectralz.sampling.sweeps import operations

if TYPE_CHECKING:
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Chains, Parallel
    from spectralz.sampling.path import Path

# Relative variance of the weights that a step of the path aims at, by default.
STEP = 0.05
# Points that are timed to predict the time of others, or as many times those that are passed together.
TIMED_POINTS = 2
# Sweeps of less than so many seconds are timed so often; the least time counts.
SHORT, TIMED_AGAIN = 0.02, 3
# A device that was idle is slow at first, for about as long as this. It is kept busy for that time before it is timed,
# but for no more than this share of the time left.
SECONDS_TO_WAKE, SHARE_TO_WAKE = 0.2, 0.02
# The length of the path, expected before it is surveyed: this many times the root of the number of spins.
LENGTH_PER_ROOT = 0.8

# No step is longer than one over this, however even the weights of few states look: a collective mode has hardly any
# energy at high temperature, and weights of infinite variance at low temperature.
LEAST_POINTS = 16
# States of a survey, and its sweeps at each point.
STATES, SWEEPS = 64, 2
# Steps of a survey change log-weights by this much, or by this share of the root of the number of spins, and grow at
# least by this share of the way. Otherwise states stuck at different energies would never let it end.
CHANGE, CHANGE_PER_ROOT, LEAST_GROWTH = 1.0, 0.15, 0.25
# In equilibrium beta E varies by at most about this times the root of the number of spins; a much wider spread comes
# from states stuck at different energies.
MOST_DEVIATION = 3.0
# Growth factor of the steps of a survey once its time is up.
HURRY = 4.0


@dataclass(frozen=True)
class Survey:
    """The length of the path up to some of its points.

    Attributes
    ----------
    points
        From 0 to 1, in order.
    length
        The length up to each of them. The unit is a change of log-weights by one standard deviation, or arbitrary where
        only relative lengths matter.
    """

    points: FloatArray
    length: FloatArray

    def spaced(self, count: float, least: int | None = None) -> FloatArray:
        """Return about ``count`` + 1 points from 0 to 1 at equal distances, and no step longer than 1 / ``least``."""
        least = LEAST_POINTS if least is None else least
        count = int(max(math.ceil(count), 1))
        even = np.linspace(0.0, 1.0, least + 1)
        if not 0.0 < self.length[-1] < math.inf:
            return np.unique(np.concatenate([even, np.linspace(0.0, 1.0, count + 1)]))
        points = np.interp(np.linspace(0.0, self.length[-1], count + 1), self.length, self.points)
        points[0], points[-1] = 0.0, 1.0
        if np.diff(points).max() > 1.0 / least:
            points = np.concatenate([points, even])
        return np.unique(points)


def survey(path: Path, rng: np.random.Generator, parallel: Parallel = one_after_the_other) -> Survey:
    """Move along the path in long steps and measure its length; once the time is up the steps grow."""
    engine = path.engine
    states = min(STATES, engine.together)  # fewer where each takes long
    chains = engine.start(states, rng, parallel)
    change = max(CHANGE, CHANGE_PER_ROOT * math.sqrt(engine.n))
    points, deviations = [0.0], []
    while True:
        here, before = points[-1], points[max(len(points) - 2, 0)]
        ahead = min(here + 1.0 / LEAST_POINTS, 1.0)
        clock.charge(states * SWEEPS * engine.operations)
        back, on = chains.sweep(np.array([before]), np.array([here]), np.array([ahead]), SWEEPS)
        log_weights, distance = (on[0], ahead - here) if here < 1.0 else (back[0], here - before)
        slope = float(deviation_of(log_weights)) / distance
        deviations.append(min(slope, MOST_DEVIATION * math.sqrt(engine.n) / here) if here > 0.0 else slope)
        report("surveying the path", here)
        if here >= 1.0:
            break
        change *= HURRY if deadline.is_past() else 1.0
        step = min(change / deviations[-1], 1.0) if deviations[-1] > 0.0 else 1.0
        points.append(min(here + min(max(step, LEAST_GROWTH * here), 1.0 / LEAST_POINTS), 1.0))
    at, deviation = np.array(points), np.array(deviations)
    lengths = 0.5 * (deviation[1:] + deviation[:-1]) * np.diff(at)
    return Survey(at, np.concatenate([[0.0], np.cumsum(lengths)]))


def spaced_by(
    path: Path, step: float, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> FloatArray:
    """Return points between which the relative variance of weights is ``step``, according to a survey."""
    measured = survey(path, rng, parallel)
    return measured.spaced(measured.length[-1] / math.sqrt(step))


# ------------------------------------------------------------------------------------------------------- what it costs


def seconds_per_point(path: Path, size: int, sweeps: int = 1, parallel: Parallel = one_after_the_other) -> float:
    """Return the mean time that so many states take at a point of the path, all threads at work, as measured."""
    engine = path.engine
    chains = engine.start(size, np.random.default_rng(0), parallel)
    seconds, slow = _seconds_at(path, 0.0, chains, sweeps), engine.slow_share
    return (1.0 - slow) * seconds + slow * _seconds_at(path, 1.0, chains, sweeps) if slow else seconds


def _seconds_at(path: Path, beta: float, chains: Chains, sweeps: int) -> float:
    together = path.engine.points_together
    points = np.full(TIMED_POINTS * together, beta)
    first = points[:together]
    chains.sweep(first, first, first, sweeps)  # compiles, and sums up fields
    wait = 0.0
    if path.device is not None and not clock.counts_operations():
        wait = min(SECONDS_TO_WAKE, SHARE_TO_WAKE * deadline.current().left)
    least = math.inf
    for count in itertools.count(1):
        began = clock.now()
        clock.charge(operations(path.engine, len(points), chains.size, sweeps))
        chains.sweep(points, points, points, sweeps)
        seconds = clock.now() - began
        least = min(least, seconds)
        wait -= seconds
        # A machine that was busy for a moment must not look slow.
        if wait <= 0.0 and (count == TIMED_AGAIN or seconds > SHORT):
            break
    return least / len(points)


def seconds_per_sweep(path: Path, sweeps: int = 1, parallel: Parallel = one_after_the_other) -> float:
    """Return the time of a sweep over one state, as measured with as many states as are swept together."""
    together = path.engine.together
    return seconds_per_point(path, together, sweeps, parallel) / (together * sweeps)


def seconds_per_state(path: Path, step: float, one: float) -> float:
    """Predict the time of a state along the whole path, from the time ``one`` of a sweep.

    At high temperature the deviation of the energy is that of independent spins. At low temperature the length of the
    path is about the root of the number of spins.
    """
    hot = math.sqrt(0.5 * path.n) * path.couplings.mean_strength
    hot = math.hypot(hot, *path.model.higher.weight.tolist()) if path.has_terms else hot
    cold = LENGTH_PER_ROOT * math.sqrt(max(path.n, 1))
    return one * max(min(hot, cold) / math.sqrt(step), LEAST_POINTS)


def bytes_per_state(path: Path) -> int:
    """Return the memory of a state."""
    return path.engine.bytes_per_state + path.n

"""Pilots: populations that are not counted, whose weights choose the points of a path and say what a state costs.

A step is as long as the spread of weights allows. A short path needs points as well: two steps from fields that are
nearly right suffice for the weights, but collective modes would have no time to relax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, deadline
from spectralz._support.progress import report
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.population import Population, means_and_shares, offspring
from spectralz.sampling.sweeps import RESAMPLE_BELOW

if TYPE_CHECKING:
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path

# Relative variance of the weights of a step, and the fewest points of a path.
VARIANCE, FEWEST_POINTS = 0.03, 24
# In equilibrium log-weights vary by at most about this times the root of the number of spins over the whole path.
# States stuck at huge and different energies vary by more, and would never let a pilot end.
MOST_DEVIATION = 3.0
# Once the time is up, steps grow by this factor.
HURRY = 2.0
# The length of a step is right once the logarithm of the variance is this close, and found in at most so many tries.
CLOSE, MOST_TRIES, TINY = 1e-6, 60, 1e-300


@dataclass(frozen=True, eq=False)
class Pilot:
    """A pilot, and what it says of the path.

    Attributes
    ----------
    path, points, sweeps
        The path, its points, and the sweeps at each of them.
    population
        Its states, one group.
    seconds
        The time of a state on the whole path, all threads at work.
    hurried
        Whether the time was up before it ended.
    """

    path: Path
    points: FloatArray
    sweeps: int
    population: Population
    seconds: float
    hurried: bool = False

    @property
    def families_per_state(self) -> float:
        """Effective number of families per state."""
        return self.population.families() / self.population.size


def pilot(
    path: Path,
    size: int,
    rng: np.random.Generator,
    parallel: Parallel = one_after_the_other,
    *,
    sweeps: int = 2,
    variance: float = VARIANCE,
    fewest_points: int = FEWEST_POINTS,
) -> Pilot:
    """Carry a group of states to the model in steps whose weights have the relative variance ``variance``."""
    engine = path.engine
    is_curved = path.sides is not None  # weights do not change by energies times steps
    chains = engine.start(size, rng, parallel)
    log_z, family, points = engine.log_z_of_base, np.arange(size), [0.0]
    collected, share = np.zeros((1, size)), np.full((1, size), 1.0 / size)
    began, factor, hurried = clock.now(), 1.0, False
    step = 1.0 / fewest_points
    while points[-1] < 1.0:
        here = points[-1]
        clock.charge(size * sweeps * engine.operations)
        _, on = chains.sweep(_one(here), _one(here), _one(min(here + step, 1.0)), sweeps if here else 1)
        slope = on[0] / (min(here + step, 1.0) - here)
        if deadline.is_past():
            hurried, factor = True, factor * HURRY
        step = min(longest_step(slope, share[0], variance), 1.0 / fewest_points)
        step = min(max(step, math.sqrt(variance / max(engine.n, 1)) / MOST_DEVIATION * here) * factor, 1.0 - here)
        there = here + step if step < 1.0 - here else 1.0
        if is_curved:
            _, on = chains.sweep(_one(here), _one(here), _one(there), 0)
            log_weight = on
        else:
            log_weight = slope[None] * (there - here)
        collected += log_weight
        mean, share = means_and_shares(collected)
        if 1.0 / float((share**2).sum()) < RESAMPLE_BELOW * size:
            log_z += float(mean[0])
            places = offspring(share, rng.random(1))
            chains.take(places)
            family, collected = family[places], np.zeros((1, size))
            share = np.full((1, size), 1.0 / size)
        points.append(there)
        report("choosing temperatures", there)
    clock.charge(size * sweeps * engine.operations)
    one = _one(1.0)
    chains.sweep(one, one, one, sweeps)
    seconds = max(clock.now() - began, 1e-9) / size
    mean, share = means_and_shares(collected)
    population = Population(log_z + mean, chains.states(), share, family)
    return Pilot(path, np.array(points), sweeps, population, seconds, hurried)


def _one(point: float) -> FloatArray:
    return np.array([point])


def longest_step(slope: FloatArray, share: FloatArray, variance: float) -> float:
    """Return the longest step of up to 1 on which weights exp(step * slope) have a relative variance up to a limit."""
    slope, share = slope[share > 0.0], share[share > 0.0]
    above = slope - slope.max()

    def excess(log_step: float) -> float:
        """Return by how much the log of the variance exceeds that of the limit."""
        weight = np.exp(math.exp(log_step) * above)
        mean = float(share @ weight)
        return math.log(max(float(share @ (weight - mean) ** 2) / (variance * mean**2), TINY))

    low, high = -math.log(max(-float(above.min()), 1.0)) - 10.0, 0.0  # in logs: steps for huge energies are tiny
    here = high
    for _ in range(MOST_TRIES):
        more = excess(here)
        if abs(more) < CLOSE or (here == 0.0 and more < 0.0):
            break
        low, high = (low, here) if more > 0.0 else (here, high)
        here -= 0.5 * more  # the variance grows as the square of a short step
        here = here if low < here < high else 0.5 * (low + high)
    return math.exp(here)

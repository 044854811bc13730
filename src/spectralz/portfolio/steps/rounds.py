"""Divide a round of annealing into points of the path, states and runs, for the least error in a given time.

With T points of the path, the log-weights of annealed states have the variance D / T. The error of log Z from R states
is then the root of (exp(D / T) - 1) / R. For a given T R it decreases with T, but hardly any more once D / T is a
quarter: points first, then states, and in the end both alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spectralz.portfolio import policy
from spectralz.sampling.plan import LEAST_POINTS


@dataclass(frozen=True)
class Round:
    """Runs of populations of ``size`` states through ``points`` points of the path."""

    points: int
    size: int
    runs: int

    @property
    def updates(self) -> int:
        """Total number of sweeps over a state."""
        return self.points * self.size * self.runs


def plan_round(
    sweeps: float,
    dissipation: float,
    most_states: float,
    workers: int = 1,
    spins: int = 10_000,
    together: int = policy.STATES_TOGETHER,
) -> Round | None:
    """Divide a number of sweeps over a state; None if there are too few.

    Parameters
    ----------
    sweeps
        How many can be afforded.
    dissipation
        The variance of log-weights times the number of points, as far as it is known.
    most_states
        Most states that fit in memory.
    workers
        Number of runs made at once. The number of runs is a multiple of it, so that no worker waits for the last run.
    spins
        Number of spins of the model; with few spins more states are used.
    together
        Number of states that take about as long as one.

    Examples
    --------
    >>> plan_round(1e6, 100.0, 1e5)
    Round(points=400, size=576, runs=4)
    >>> plan_round(1e6, 1e5, 1e5)
    Round(points=7812, size=64, runs=2)
    >>> plan_round(1e6, 1e5, 1e5, spins=16)
    Round(points=488, size=512, runs=4)
    >>> plan_round(1e6, 100.0, 1e5, workers=3), plan_round(1e6, 1e5, 1e5, workers=3)
    (Round(points=400, size=384, runs=6), Round(points=5208, size=64, runs=3))
    """
    many, few = (workers * -(-runs // workers) for runs in (policy.RUNS_PER_ROUND, policy.FEWEST_RUNS))
    if most_states < together or sweeps < together * LEAST_POINTS:
        return None
    fewest = min(max(few * together, policy.FEWEST_SPINS / max(spins, policy.STATES_TOGETHER // 8)), most_states)
    wanted = max(dissipation / policy.SPREAD_WANTED, policy.POINTS_PER_ROOT * math.sqrt(sweeps), LEAST_POINTS)
    points = int(min(max(min(wanted, sweeps / fewest), LEAST_POINTS), policy.MOST_POINTS))
    states = min(sweeps / points, most_states, policy.LARGEST_POPULATION)
    runs = next((runs for runs in (many, few, policy.FEWEST_RUNS) if states >= runs * together), 1)
    return Round(points, int(states / runs // together * together), runs)

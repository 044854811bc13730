"""Go from one model to another and back: the ratio of their partition functions.

States of the first model are annealed to the second; their mean weight is the ratio. States of the second model do the
same in reverse. If states lag behind equilibrium, the two estimates err on opposite sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz.sampling.engines.between import difference_of
from spectralz.sampling.path import from_model
from spectralz.sampling.population import Population, visit
from spectralz.sampling.populations import GROUPS, systematic
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run

# Sweeps at each intermediate model.
SWEEPS = 2
# Log-weights change by this standard deviation from one model to the next; there are at most this many.
CHANGE, MOST_MODELS = 0.5, 400
# States of each group: as many as a population has for each of them, within these limits.
FEWEST_IN_GROUP, MOST_IN_GROUP = 2, 128


@dataclass(frozen=True, eq=False)
class Bridge:
    """Estimates of log(Z_second / Z_first) on the ways there and back, one per group of families.

    Attributes
    ----------
    there, back
        The estimates.
    shares_there, shares_back
        The share of Z that each group holds where it begins; None if all hold the same.
    models
        Number of models passed.
    contrast
        The range of the difference of log-weights over all states.
    """

    there: FloatArray
    back: FloatArray
    models: int
    shares_there: FloatArray | None = None
    shares_back: FloatArray | None = None
    contrast: float = 0.0


def groups_of(run: Run, rng: np.random.Generator) -> Population:
    """Return the states of a run in groups of families, each drawn by its weights; log Z is the group's share."""
    group = run.family % GROUPS
    shares = np.bincount(group, weights=run.weight, minlength=GROUPS)
    filled = np.flatnonzero(shares > 0.0)
    each = int(np.clip(run.size // len(filled), FEWEST_IN_GROUP, MOST_IN_GROUP))
    rows = []
    for k in filled:
        members = np.flatnonzero(group == k)
        times = systematic(run.weight[members] / shares[k], rng.random(), each)
        rows.append(np.repeat(members, times))
    places = np.concatenate(rows)
    family = np.unique(run.family[places], return_inverse=True)[1]
    return Population(np.log(shares[filled]), run.x[places], np.full((len(filled), each), 1.0 / each), family)


def bridge(first: Model, second: Model, there: Run, back: Run, deadline: Deadline, rng: np.random.Generator) -> Bridge:
    """Take states of each model to the other, by a deadline, or as long as one step takes."""
    forth, home = from_model(first, second), from_model(second, first)
    starts = [groups_of(run, rng) for run in (there, back)]
    apart = [difference_of(first, second, start.x) for start in starts]
    spread = max(float(values.std()) for values in apart)
    with crew_for(forth) as crew:
        began = clock.now()
        visit(forth, np.array([0.5]), (0,), starts[0], rng, sweeps=SWEEPS, parallel=crew.parallel)
        affordable = deadline.seconds / max((clock.now() - began) * len(starts), 1e-9)
        models = int(max(min(math.ceil(spread / CHANGE), affordable, MOST_MODELS), 1))
        points = np.linspace(0.0, 1.0, models + 1)
        ways = [
            _ratios(path, points, start, rng, crew.parallel) for path, start in zip((forth, home), starts, strict=True)
        ]
    values = np.concatenate(apart)
    shares = [np.exp(start.log_z) for start in starts]
    return Bridge(ways[0], -ways[1], models, shares[0], shares[1], float(np.ptp(values)))


def _ratios(
    path: Path, points: FloatArray, start: Population, rng: np.random.Generator, parallel: Parallel
) -> FloatArray:
    """Return how much log Z of each group grows on the way."""
    report("going from one model to the other", 0.0)
    (end,) = visit(path, points, (len(points) - 1,), start, rng, sweeps=SWEEPS, parallel=parallel)
    return end.log_z - start.log_z

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
from spectralz.sampling.populations import systematic
from spectralz.sampling.run import anneal
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.populations import Run

# Sweeps at each intermediate model.
SWEEPS = 2
# Log-weights change by this standard deviation from one model to the next; there are at most this many.
CHANGE, MOST_MODELS = 0.5, 400


@dataclass(frozen=True)
class Bridge:
    """Estimates of log(Z_second / Z_first) on the ways there and back, one per run, and the number of models passed."""

    there: FloatArray
    back: FloatArray
    models: int


def bridge(
    first: Model,
    second: Model,
    there: Sequence[Run],
    back: Sequence[Run],
    deadline: Deadline,
    rng: np.random.Generator,
) -> Bridge:
    """Take populations of each model to the other, by a deadline, or as long as one step takes."""
    forth, home = from_model(first, second), from_model(second, first)
    spread = max(_deviation(first, second, run, rng) for run in (*there, *back))
    runs = [*((forth, run) for run in there), *((home, run) for run in back)]
    values = []
    with crew_for(forth) as crew:
        began = clock.now()
        anneal(forth, np.array([0.5]), there[0].size, rng, sweeps=SWEEPS, start=there[0], parallel=crew.parallel)
        affordable = deadline.seconds / max((clock.now() - began) * len(runs), 1e-9)
        models = int(max(min(math.ceil(spread / CHANGE), affordable, MOST_MODELS), 1))
        points = np.linspace(0.0, 1.0, models + 1)
        for k, (path, run) in enumerate(runs):
            end = anneal(path, points, run.size, rng, sweeps=SWEEPS, start=run, parallel=crew.parallel)
            values.append(end.log_z)
            report("going from one model to the other", (k + 1) / len(runs))
    return Bridge(np.array(values[: len(there)]), -np.array(values[len(there) :]), models)


def _deviation(first: Model, second: Model, run: Run, rng: np.random.Generator) -> float:
    """Return the standard deviation of the models' difference over the states that a resampling would keep."""
    places = np.repeat(np.arange(run.size), systematic(run.weight, rng.random(), run.size))
    return float(np.std(difference_of(first, second, run.x[places])))

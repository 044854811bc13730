"""Go from one model to another and back: the ratio of their partition functions.

States of the first model are annealed to the second; their mean weight is the ratio. States of the second model do the
same in reverse. If states lag behind equilibrium, the two estimates err on opposite sides. At each point of the way,
E_t = E_first + t (E_second - E_first), the model in between is built and swept like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz.sampling.engines.lanes import Engine, changes_of
from spectralz.sampling.path import from_model
from spectralz.sampling.population import BLOCKS, Population, systematic, visit
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Run


def difference_of(first: Model, second: Model, x: NDArray[np.int8]) -> FloatArray:
    """Return the log-weights of states in the second model minus those in the first, without constants."""
    return np.asarray(second.log_weight(x) - first.log_weight(x)) - (second.constant - first.constant)


@dataclass(frozen=True, eq=False, kw_only=True)
class BetweenEngine(Engine):
    """Chains between two models; :func:`between_engine` makes it. Z is relative to that of the first model.

    Attributes
    ----------
    first, second
        The models at t = 0 and t = 1.
    engine_of
        Makes the engine whose chains sweep a given model at the end of its path.
    """

    first: Model
    second: Model
    engine_of: Callable[[Model], Engine]

    multiplies: ClassVar[bool] = True


def between_engine(first: Model, second: Model, engine_of: Callable[[Model], Engine]) -> BetweenEngine:
    """Return an engine; it builds the model halfway, whose costs are those of all."""
    halfway = engine_of(0.5 * first + 0.5 * second)
    return BetweenEngine(
        n=first.n,
        first=first,
        second=second,
        engine_of=engine_of,
        log_z_of_base=0.0,
        operations=halfway.operations,
        bytes_per_state=halfway.bytes_per_state,
    )


class BetweenChains:
    """States that are swept by a new engine at each point; they must be given."""

    def __init__(self, engine: BetweenEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        self.size = size
        self._engine, self._rng, self._parallel = engine, rng, parallel

    def draw(self) -> None:
        """Refuse: states of the first model cannot be drawn independently."""
        raise NotImplementedError("a path between two models begins from given states")

    def fill(self, x: NDArray[np.int8]) -> None:
        """Begin in given states."""
        self._x = x

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point after the other."""
        first, second = self._engine.first, self._engine.second
        energies = np.empty((len(at), self.size))
        ones = np.ones(sweeps)
        for k, t in enumerate(at.tolist()):
            engine = self._engine.engine_of((1.0 - t) * first + t * second)
            chains = engine.start_from(self._x, self._rng, self._parallel)
            chains.sweep(ones, ones, ones, 1)
            self._x = chains.states()
            energies[k] = difference_of(first, second, self._x)
        return changes_of(before, at, after, energies)

    def take(self, places: NDArray[np.int64]) -> None:
        """Replace the r-th state by the one at ``places[r]``."""
        self._x = self._x[places]

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""
        return self._x


BetweenEngine.chains = BetweenChains


# ------------------------------------------------------------------------------------------------------------ the ratio


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
    group = run.block
    shares = np.bincount(group, weights=run.weight, minlength=BLOCKS)
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

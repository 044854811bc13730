"""Chains on the way from one model to another: E_t = E_first + t (E_second - E_first).

At each point of the way the model in between is built and swept like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz.sampling.engines.lanes import CompiledEngine, changes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.protocol import Engine, Parallel


def difference_of(first: Model, second: Model, x: NDArray[np.int8]) -> FloatArray:
    """Return the log-weights of states in the second model minus those in the first, without constants."""
    return np.asarray(second.log_weight(x) - first.log_weight(x)) - (second.constant - first.constant)


@dataclass(frozen=True, eq=False)
class BetweenEngine(CompiledEngine):
    """Chains between two models; :func:`between_engine` makes it.

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
    operations: float
    bytes_per_state: int

    log_z_of_base: ClassVar[float] = 0.0  # Z is relative to that of the first model
    multiplies: ClassVar[bool] = True

    @property
    def n(self) -> int:
        """Number of spins."""
        return self.first.n


def between_engine(first: Model, second: Model, engine_of: Callable[[Model], Engine]) -> BetweenEngine:
    """Return an engine; it builds the model halfway, whose costs are those of all."""
    halfway = engine_of(0.5 * first + 0.5 * second)
    return BetweenEngine(first, second, engine_of, halfway.operations, halfway.bytes_per_state)


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

"""What annealing needs of the chains that it runs: many states, swept together along a path of models.

A path leads from a base whose Z is known, at beta = 0, to the model, at beta = 1. How states are kept and swept depends
on the couplings: ``sparse.py``, which also takes terms of three and more spins, and ``dense.py``, both in single or in
double precision; ``collapsed.py`` for bipartite models with a side summed out; ``device.py`` for all of them on a GPU;
``bridge.py`` has those for the way from one model to another. Compiled code sweeps states in lanes of 64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import log_2cosh
from spectralz.kernels.terms import NO_TERMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.terms import Terms
    from spectralz.model import FloatArray

# Where couplings times the point of the path, sqrt(sum_j J_ij^2) on average, exceed this, it is cold.
COLD = 0.6
# Log-odds up to this size keep four digits after the point in single precision.
LARGEST_LOG_ODDS = 10_000.0


# Calls a function on each number of a sequence, in threads or not.
Parallel = Callable[[Callable[[int], None], Sequence[int]], None]


def one_after_the_other(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Call a function on each number, in this thread."""
    for number in numbers:
        work(number)


def fits_single_precision(theta: FloatArray, couplings: Couplings, higher: Terms = NO_TERMS) -> bool:
    """Return whether the fields that spins can have are small enough for single precision."""
    n = len(theta)
    if not n:
        return True
    sizes = np.abs(theta) + couplings.row_sums_of_sizes() + sums_of_sizes(higher, n)
    return bool(2.0 * sizes.max() <= LARGEST_LOG_ODDS)


def sums_of_sizes(higher: Terms, n: int) -> FloatArray:
    """Return the sum of the sizes of the terms that each of n spins is in."""
    sizes = np.repeat(np.abs(higher.weight), higher.sizes)
    return np.asarray(np.bincount(higher.spin, weights=sizes, minlength=n), dtype=np.float64)


def cold_from(couplings: Couplings) -> float:
    """Return the point of a path from coins at which spins are held by each other rather than by chance."""
    return COLD / max(couplings.mean_strength, np.finfo(float).tiny)


def log_z_of_fields(theta: FloatArray) -> float:
    """Return log Z of independent spins."""
    return float(log_2cosh(theta).sum())


def changes_of(
    before: FloatArray, at: FloatArray, after: FloatArray, energy: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return how log-weights change from points to those before and after, given E - E_0 of states, a row per point."""
    return (before - at)[:, None] * energy, (after - at)[:, None] * energy


class Chains(Protocol):
    """States of a population that are swept together, each with random numbers of its own."""

    size: int

    def draw(self) -> None:
        """Draw the states from the base."""

    def fill(self, x: NDArray[np.int8]) -> None:
        """Begin in given states, one per row."""

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other.

        Parameters
        ----------
        before, at, after
            For each of K points, the previous point, the point itself, and the next point.
        sweeps
            Sweeps at each point.

        Returns
        -------
        back, on
            Arrays of K x size: the change of log-weights from each point to the previous one and to the next one, for
            the states after the sweeps.
        """

    def take(self, places: NDArray[np.int64]) -> None:
        """Replace the r-th state by the one at ``places[r]``; random numbers stay where they are."""

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Engine:
    """Makes chains for one path. It is a value: nothing in it changes after it was made.

    Attributes
    ----------
    n
        Number of spins.
    log_z_of_base
        The log Z of the base, without the offset and the trace of the model.
    operations
        Cost of a sweep over one state, in operations of about 1e-9 seconds.
    bytes_per_state
        Memory of a state.
    together
        Number of states that take about as long as one.
    points_together
        Number of points that are passed together, because starting takes as long as several of them.
    slow_share
        The share of the path, at its end, on which a sweep takes longer than at its beginning.
    multiplies
        Whether a sweep multiplies matrices; linear algebra must then have no threads of its own.
    takes_threads
        Whether our threads make it faster.
    chains
        The class of the chains that it makes.
    """

    n: int
    log_z_of_base: float
    operations: float
    bytes_per_state: int
    together: int = 64
    slow_share: float = 0.0

    points_together: ClassVar[int] = 1
    multiplies: ClassVar[bool] = False
    takes_threads: ClassVar[bool] = True
    chains: ClassVar[Any]

    def start(self, size: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other) -> Chains:
        """Return states drawn from the base, exactly and independently; ``parallel`` spreads work over threads."""
        chains: Chains = self.chains(self, size, rng, parallel)
        chains.draw()
        return chains

    def start_from(
        self, x: NDArray[np.int8], rng: np.random.Generator, parallel: Parallel = one_after_the_other
    ) -> Chains:
        """Return chains that begin in given states, one per row."""
        chains: Chains = self.chains(self, len(x), rng, parallel)
        chains.fill(x)
        return chains


class Lanes:
    """States in chunks of 64 that are swept together; lanes left over in the last chunk are not used."""

    def __init__(self, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        from spectralz.kernels.sampling.lanes import LANES

        self.size = size
        self._chunks = -(-size // LANES)
        self._lanes = self._chunks * LANES
        self._random = rng.integers(2**32, size=(self._chunks, 4, LANES), dtype=np.uint32)
        self._parallel = parallel

    def _room(self, spins: int, kind: Any) -> Any:
        """Return an array for so many spins of all states, (chunks, spins, 64)."""
        return np.empty((self._chunks, spins, self._lanes // self._chunks), dtype=kind)

    def _put(self, rows: NDArray[np.int8], x: Any) -> None:
        """Put states, one per row, into such an array; lanes left over get the last state."""
        padded = np.concatenate([rows, np.repeat(rows[-1:], self._lanes - len(rows), axis=0)])
        x[:] = padded.reshape(self._chunks, self._lanes // self._chunks, rows.shape[1]).transpose(0, 2, 1)

    def _rows(self, x: Any) -> Any:
        """Return the states of such an array, one per row."""
        return x.transpose(0, 2, 1).reshape(self._lanes, -1)[: self.size]

    def _taken(self, x: Any, places: NDArray[np.int64]) -> Any:
        """Return such an array with the state at ``places[r]`` as the r-th."""
        from spectralz.kernels.sampling.lanes import take

        taken = np.empty_like(x)
        places = np.concatenate([places, np.arange(len(places), self._lanes)])
        self._each(lambda chunk: take(x, places, taken, chunk))
        return taken

    def _joined(self, numbers: FloatArray) -> FloatArray:
        """Return numbers of all states at some points, (chunks, points, 64), as (points, states)."""
        return numbers.transpose(1, 0, 2).reshape(numbers.shape[1], self._lanes)[:, : self.size]

    def _each(self, work: Callable[[int], None]) -> None:
        """Call a function on the number of each chunk."""
        self._parallel(work, range(self._chunks))


class SpinBySpin(Lanes):
    """States whose spins are drawn one after the other, on a path on which weights change by energies times steps."""

    def __init__(self, engine: Any, size: int, rng: np.random.Generator, parallel: Parallel, kind: Any) -> None:
        super().__init__(size, rng, parallel)
        self._engine, self._path = engine, engine.path
        self._x = self._room(engine.n, kind)

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.sampling import double_lanes, lanes

        draw = double_lanes.draw_spins_in_double if self._engine.in_double else lanes.draw_spins
        base = frozen(self._engine.base)
        self._each(lambda chunk: draw(self._x[chunk], self._random[chunk], base))

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        self._put(x, self._x)

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        self._x = self._taken(self._x, places)

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""
        return np.array(self._rows(self._x), dtype=np.int8, order="C")  # a copy, also of a single spin's

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        self._refresh(len(at))
        at = np.ascontiguousarray(at)  # the kernels are compiled for one layout
        energies = self._room(len(at), np.float64)
        self._parallel(partial(self._sweep, at, sweeps, energies), range(self._chunks))
        return changes_of(before, at, after, self._joined(energies))

    def _refresh(self, points: int) -> None:
        """Sum up anew what the sweeps at so many points change, if it is time."""

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        raise NotImplementedError

"""Chains on a sparse graph whose states are swept on a device of JAX, color by color."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz._support.devices import computing_on, refuse_too_large
from spectralz.errors import DeviceError
from spectralz.sampling.engines.device import Columns, DeviceEngine, padded, put
from spectralz.sampling.engines.lanes import changes_of, log_z_of_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel

# Points that are passed in one program, whose energies all come back.
POINTS_AT_ONCE = 32
# States that one kernel takes together, all at the same point.
STATES_PER_BLOCK = 64
# States are swept in multiples of the first number; so many take about as long as one on graphs of few spins, and on
# any graph whose states have this many spins in all.
FEWEST_TOGETHER, MOST_TOGETHER, SPINS_TOGETHER = 64, 4096, 4_000_000
# Kernels find a spin of a state by a number of 31 bits.
MOST_SPINS = 2**31
# What an entry of the coupling and a spin of a state take at most: a coupling and its row, and states before and after
# they are put into another order.
BYTES_PER_ENTRY, BYTES_PER_SPIN = 12, 3


def can_be_swept(n: int) -> bool:
    """Return whether a graph is small enough for the fewest states."""
    return 2 * n * FEWEST_TOGETHER < MOST_SPINS


@dataclass(frozen=True, eq=False)
class DeviceSparseEngine(DeviceEngine):
    """Chains on a sparse graph; :func:`device_sparse_engine` makes it.

    Attributes
    ----------
    n, device
        Number of spins, and the device of JAX.
    row, rows
        The row of each spin in the layout of the path, and the number of rows.
    path
        The model on the device.
    most_tiles
        Tiles of the largest color.
    together
        Number of states that take about as long as one.
    """

    n: int
    device: Any
    row: Any
    rows: int
    path: Any
    most_tiles: int
    log_z_of_base: float
    operations: float
    together: int = MOST_TOGETHER

    points_together: ClassVar[int] = POINTS_AT_ONCE

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state on the host, where it is put into another order."""
        return 2 * self.n + 64

    @property
    def device_bytes_per_state(self) -> float:
        """Memory of a state on the device."""
        return float(BYTES_PER_SPIN * self.rows)

    def lanes_of(self, size: int) -> int:
        """Return how many states are swept for a population of ``size``; refuse what a kernel cannot count."""
        lanes = super().lanes_of(size)
        if lanes * self.rows >= MOST_SPINS:
            most = MOST_SPINS // self.rows // self.together * self.together
            raise DeviceError(
                f"a population of {size} states of {self.n} spins is too large for the {self.device.device_kind}, "
                f"which takes up to {most}; use fewer states, or device='cpu'"
            )
        return lanes


def device_sparse_engine(theta: FloatArray, couplings: Couplings, base: FloatArray, device: Any) -> DeviceSparseEngine:
    """Return an engine; it colors the graph and copies the model to the device."""
    from spectralz.kernels.coloring import colored
    from spectralz.kernels.device.sparse_sweeps import ColoredPath

    n, entries = len(theta), len(couplings.data)
    together = int(np.clip(2 ** np.round(np.log2(SPINS_TOGETHER / max(n, 1))), FEWEST_TOGETHER, MOST_TOGETHER))
    needed = BYTES_PER_ENTRY * float(entries) + float(BYTES_PER_SPIN * n * together)
    refuse_too_large(device, needed, f"a model of {n} spins")
    layout = colored(couplings)
    fields = np.zeros((2, layout.rows))
    fields[:, layout.row] = base, theta - base
    arrays = *fields, layout.first, layout.begin, layout.neighbor, layout.coupling
    colors = len(layout.first) - 1
    return DeviceSparseEngine(
        n=n,
        device=device,
        row=put(layout.row, device),
        rows=layout.rows,
        path=ColoredPath(*(put(array, device) for array in arrays)),
        most_tiles=int(np.diff(layout.first).max(initial=1)),
        together=together,
        log_z_of_base=log_z_of_fields(base),
        operations=costs.DEVICE_UPDATE * n
        + costs.DEVICE_NEIGHBOR * entries
        + costs.DEVICE_COLOR * (colors + 1) / together,
    )


class DeviceSparseChains(Columns):
    """States on a sparse graph, spins as bytes, one state per column."""

    x: Any

    def __init__(self, engine: DeviceSparseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng)
        self._engine = engine
        self._is_interpreted = engine.device.platform != "gpu"
        with computing_on(self._device):
            self._words = _words_of(self.next_key())

    def draw(self) -> None:
        """Draw the states from the base: by a sweep without couplings, whatever they were."""
        import jax.numpy as jnp

        with computing_on(self._device):
            self.x = jnp.ones((self._engine.rows, self.lanes), jnp.int8)
        self._swept(np.zeros(1), 1)

    def fill(self, x: NDArray[np.int8]) -> None:
        """Begin in given states."""
        from spectralz.kernels.device.sparse_sweeps import columns_of

        with computing_on(self._device):
            self.x = columns_of(x[padded(len(x), self.lanes)], self._engine.row, self._engine.rows)

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        parts = [self._swept(at[k : k + POINTS_AT_ONCE], sweeps) for k in range(0, len(at), POINTS_AT_ONCE)]
        energy = np.concatenate([np.empty((0, self.size)), *parts])
        return changes_of(before, at, after, energy)

    def _swept(self, at: FloatArray, sweeps: int) -> FloatArray:
        """Sweep all states at a few points, one after the other; return E - E_0 of the states at each."""
        from spectralz.kernels.device.sparse_sweeps import sweep_along

        points = np.zeros((POINTS_AT_ONCE, self.lanes // STATES_PER_BLOCK))
        points[: len(at)] = at[:, None]
        engine = self._engine
        with computing_on(self._device):
            self.x, self._words, energy = sweep_along(
                self.x,
                self._words,
                points,
                np.int32(len(at)),
                engine.path,
                sweeps=sweeps,
                most=engine.most_tiles,
                interpret=self._is_interpreted,
            )
            return np.asarray(energy)[: len(at), : self.size]  # on a device each length is compiled for

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        with computing_on(self._device):
            self.x = self.x[:, self._columns(places)]

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""
        from spectralz.kernels.device.sparse_sweeps import states_of

        with computing_on(self._device):
            return np.array(np.asarray(states_of(self.x, self._engine.row))[: self.size])


def _words_of(key: Any) -> Any:
    """Return the two words of a key of random numbers."""
    import jax

    return jax.random.key_data(key)


DeviceSparseEngine.chains = DeviceSparseChains

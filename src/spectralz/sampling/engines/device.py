"""Chains whose states are swept on a device of JAX: of dense couplings, of bipartite models, and on sparse graphs.

One side of a bipartite model is summed out; sparse graphs are swept color by color. Points, weights, errors and checks
are the same as for other chains (``lanes.py``). The number of states is rounded up to a multiple of 1,024, or less on
sparse graphs, which take as long as one; each new number of states is compiled for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz._support.devices import computing_on, refuse_too_large
from spectralz.errors import DeviceError
from spectralz.sampling.engines.collapsed import collapsed_path
from spectralz.sampling.engines.dense import POINTS_PER_REFRESH
from spectralz.sampling.engines.lanes import Engine, changes_of, log_z_of_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.lanes import Parallel


# This many states take about as long as one.
TOGETHER = 1024
# What an entry of a dense coupling takes at most, while its pieces are made.
BYTES_PER_ENTRY = 14
# Points that bipartite models pass in one program: starting it takes as long as several of them.
POINTS_AT_ONCE = 64
# Numbers in single precision that a spin of a state takes on the device: itself, its noise and room for the next.
NUMBERS_PER_SPIN = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceEngine(Engine):
    """What engines on a device have in common.

    Attributes
    ----------
    device
        The device of JAX.
    path
        The model on the device.
    device_bytes_per_state
        Memory of a state on the device; ``bytes_per_state`` is that on the host.
    """

    device: Any
    path: Any
    device_bytes_per_state: float

    takes_threads: ClassVar[bool] = False

    def lanes_of(self, size: int) -> int:
        """Return how many states are swept for a population of ``size``; refuse what the memory cannot hold."""
        lanes = -(-size // self.together) * self.together
        needed = self.device_bytes_per_state * lanes
        refuse_too_large(self.device, needed, f"a population of {size} states", "fewer states, or ")
        return lanes


class DeviceDenseEngine(DeviceEngine):
    """Chains of a dense coupling in single precision; :func:`device_dense_engine` makes it."""


def _common(device: Any, n: int, base: FloatArray, bytes_of_model: float) -> dict[str, Any]:
    """Return what engines have in common; refuse a model that the device cannot hold with the fewest states."""
    each = 4.0 * NUMBERS_PER_SPIN * n
    refuse_too_large(device, bytes_of_model + each * TOGETHER, f"a model of {n} spins")
    costs_of_state = {"bytes_per_state": n + 64, "device_bytes_per_state": each, "together": TOGETHER}
    return {"n": n, "device": device, "log_z_of_base": log_z_of_fields(base), **costs_of_state}


def device_dense_engine(theta: FloatArray, couplings: Couplings, base: FloatArray, device: Any) -> DeviceDenseEngine:
    """Return an engine; it copies the model to the device."""
    from spectralz.kernels.device.dense_sweeps import BLOCK, DensePath, pieces_of

    n = len(theta)
    padding = -n % BLOCK
    common = _common(device, n, base, BYTES_PER_ENTRY * (n + padding) ** 2)
    coupling = np.zeros((n + padding, n + padding), np.float32)
    coupling[:n, :n] = couplings.data.reshape(n, n)
    fields = (np.pad(array, (0, padding)).astype(np.float32) for array in (base, theta - base))
    with computing_on(device):
        of_base, change, whole = (put(array, device) for array in (*fields, coupling))
        path = DensePath(of_base, change, pieces_of(whole, device.platform == "gpu"))
    return DeviceDenseEngine(path=path, operations=costs.DEVICE_TURN * n + costs.DEVICE_ENTRY * n**2, **common)


class Columns:
    """States, one per column, padded, with a key of random numbers."""

    def __init__(self, engine: Any, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        from spectralz.kernels.device.dense_sweeps import random_key

        self._engine, self._device, self._path = engine, engine.device, engine.path
        self.size = size
        self.lanes = engine.lanes_of(size)
        with computing_on(self._device):
            self._key = random_key(int(rng.integers(2**63)))

    def next_key(self) -> Any:
        """Return a key of random numbers that nothing else has."""
        import jax

        with computing_on(self._device):
            self._key, key = jax.random.split(self._key)
        return key

    def _columns(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what to take for all lanes."""
        return places[padded(len(places), self.lanes)]


class DeviceDenseChains(Columns):
    """States of a dense coupling, with their energies."""

    x: Any

    def __init__(self, engine: DeviceDenseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel)
        # Whether a block of spins is one kernel.
        self._is_fused = engine.device.platform == "gpu"
        self._energy: Any = None
        self._points_left = 0

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.device.dense_sweeps import drawn_from

        with computing_on(self._device):
            self.x = drawn_from(self.next_key(), self._path.base, self.lanes, self._path.pieces[0].dtype)

    def fill(self, x: NDArray[np.int8]) -> None:
        """Begin in given states."""
        columns = np.zeros((len(self._path.base), self.lanes), np.float32)
        columns[: self._engine.n] = x[padded(len(x), self.lanes)].T
        with computing_on(self._device):
            self.x = put(columns, self._device).astype(self._path.pieces[0].dtype)

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other; energies are summed up anew now and then."""
        from spectralz.kernels.device.dense_sweeps import energies, sweep_at_random

        rows = []
        with computing_on(self._device):
            if self._points_left <= 0:
                self._energy = energies(self.x, self._path)
                self._points_left = POINTS_PER_REFRESH
            self._points_left -= len(at)
            for beta in np.asarray(at, np.float32):
                for _ in range(sweeps):
                    self.x, self._energy, self._key = sweep_at_random(
                        self.x, self._energy, self._key, beta, self._path, self._is_fused
                    )
                rows.append(self._energy)
            energy = np.array([np.asarray(row) for row in rows]).reshape(len(at), self.lanes)[:, : self.size]
        return changes_of(before, at, after, energy)

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        with computing_on(self._device):
            columns = self._columns(places)
            self.x = self.x[:, columns]
            self._energy = self._energy[columns] if self._energy is not None else None

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""
        with computing_on(self._device):
            return np.array(self.x[: self._engine.n, : self.size].T.astype(np.int8), order="C")


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceCollapsedEngine(DeviceEngine):
    """Chains of a bipartite model with a side summed out; :func:`device_collapsed_engine` makes it.

    Attributes
    ----------
    sides
        Which spins are kept and which are summed out.
    flips
        Whether the kept spins are flipped one by one.
    """

    sides: Sides
    flips: bool


def device_collapsed_engine(
    model: Model, sides: Sides, base: FloatArray, device: Any, *, flips: bool = False
) -> DeviceCollapsedEngine:
    """Return an engine; it copies the model to the device."""
    from spectralz.kernels.device.collapsed_sweeps import SidesPath

    common = _common(device, model.n, base, 4.0 * len(sides.kept) * len(sides.summed))
    path = SidesPath(*(put(np.asarray(array), device) for array in collapsed_path(model, sides, base)))
    each = costs.DEVICE_FLIP_ENTRY if flips else 6.0 * costs.DEVICE_ENTRY
    operations = costs.DEVICE_DRAW * model.n + each * path.weights.size
    return DeviceCollapsedEngine(path=path, sides=sides, flips=flips, operations=operations, **common)


class DeviceCollapsedChains(Columns):
    """States of the kept side, with the fields that they have on the summed side."""

    v: Any
    pushes: Any

    def __init__(self, engine: DeviceCollapsedEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel)
        self._beta = 0.0
        # The summed side of states that were given, until the first sweep.
        self.given: NDArray[np.int8] | None = None

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.device.dense_sweeps import drawn_from

        with computing_on(self._device):
            self._put_kept(drawn_from(self.next_key(), self._path.kept.astype(np.float32), self.lanes))

    def fill(self, x: NDArray[np.int8]) -> None:
        """Begin in given states."""
        columns = x[padded(len(x), self.lanes)][:, self._engine.sides.kept].T.astype(np.float32)
        with computing_on(self._device):
            self._put_kept(put(columns, self._device))
        self.given = x[:, self._engine.sides.summed]

    def _put_kept(self, v: Any) -> None:
        from spectralz.kernels.device.products import product

        self.v, self.pushes = v, product(self._path.weights.T, v)

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        from spectralz.kernels.device.collapsed_sweeps import sweep_along

        points, rows, flips = np.stack([before, at, after], axis=1), [], self._engine.flips
        with computing_on(self._device):
            for k in range(0, len(at), POINTS_AT_ONCE):
                part, some = points[k : k + POINTS_AT_ONCE], np.zeros((POINTS_AT_ONCE, 3))
                some[: len(part)] = part
                self.v, self.pushes, self._key, changes = sweep_along(
                    self.v, self.pushes, self._key, some, len(part), sweeps, self._path, flips=flips
                )
                rows.append(np.asarray(changes)[: len(part), :, : self.size])  # on a device each length is compiled for
            changes = np.concatenate([np.empty((0, 2, self.size)), *rows])
        if len(at):
            self._beta, self.given = float(at[-1]), None
        return changes[:, 0], changes[:, 1]

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        with computing_on(self._device):
            columns = self._columns(places)
            self.v, self.pushes = self.v[:, columns], self.pushes[:, columns]
        if self.given is not None:
            self.given = self.given[places]

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row, the summed side drawn given the kept one at the last point of the path."""
        x = np.empty((self.size, self._engine.n), np.int8)
        with computing_on(self._device):
            x[:, self._engine.sides.kept] = np.asarray(self.v[:, : self.size].T)
            x[:, self._engine.sides.summed] = self._summed_side() if self.given is None else self.given
        return x

    def _summed_side(self) -> NDArray[Any]:
        from spectralz.kernels.device.collapsed_sweeps import drawn_side
        from spectralz.kernels.device.dense_sweeps import logistic

        path = self._path
        noise = logistic(self.next_key(), self.pushes.shape)
        h = drawn_side(self.pushes, self._beta, path.summed, path.summed_change, noise)
        return np.asarray(h[:, : self.size].T)


def put(array: NDArray[Any], device: Any) -> Any:
    """Return an array on the device, as precise as it is."""
    import jax

    with computing_on(device):
        return jax.device_put(array, device)


def padded(size: int, lanes: int) -> NDArray[np.int64]:
    """Return which of some states stands in each lane: the last one in those that are left over."""
    return np.minimum(np.arange(lanes), size - 1)


DeviceDenseEngine.chains = DeviceDenseChains
DeviceCollapsedEngine.chains = DeviceCollapsedChains


# -------------------------------------------------------------------------------------------------------- sparse graphs


# Points that are passed in one program, whose energies all come back.
POINTS_OF_SPARSE = 32
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


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceSparseEngine(DeviceEngine):
    """Chains on a sparse graph; :func:`device_sparse_engine` makes it.

    Attributes
    ----------
    row, rows
        The row of each spin in the layout of the path, and the number of rows.
    most_tiles
        Tiles of the largest color.
    """

    row: Any
    rows: int
    most_tiles: int

    points_together: ClassVar[int] = POINTS_OF_SPARSE

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
        bytes_per_state=2 * n + 64,  # on the host it is put into another order
        device_bytes_per_state=float(BYTES_PER_SPIN * layout.rows),
        operations=costs.DEVICE_UPDATE * n
        + costs.DEVICE_NEIGHBOR * entries
        + costs.DEVICE_COLOR * (colors + 1) / together,
    )


class DeviceSparseChains(Columns):
    """States on a sparse graph, spins as bytes, one state per column."""

    x: Any

    def __init__(self, engine: DeviceSparseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        import jax

        super().__init__(engine, size, rng, parallel)
        self._is_interpreted = engine.device.platform != "gpu"
        with computing_on(self._device):
            self._words = jax.random.key_data(self.next_key())

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
        parts = [self._swept(at[k : k + POINTS_OF_SPARSE], sweeps) for k in range(0, len(at), POINTS_OF_SPARSE)]
        energy = np.concatenate([np.empty((0, self.size)), *parts])
        return changes_of(before, at, after, energy)

    def _swept(self, at: FloatArray, sweeps: int) -> FloatArray:
        """Sweep all states at a few points, one after the other; return E - E_0 of the states at each."""
        from spectralz.kernels.device.sparse_sweeps import sweep_along

        points = np.zeros((POINTS_OF_SPARSE, self.lanes // STATES_PER_BLOCK))
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


DeviceSparseEngine.chains = DeviceSparseChains

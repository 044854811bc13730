"""Chains whose states are swept on a device of JAX: of dense couplings, and of bipartite ones with a side summed out.

All that is made of them, points, weights, errors and checks, is as of other chains (``chains.py``). States are padded
to a multiple of 1,024, which take as long as one: more would, and each number of states is compiled anew.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import computing_on, refuse_too_large
from spectralz.parts.collapsed import CollapsedEngine
from spectralz.parts.lanes import POINTS_PER_REFRESH, log_z_of_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.collapsed import Sides

__all__ = ["DeviceCollapsedEngine", "DeviceDenseEngine"]

# States that take about as long as one.
TOGETHER = 1024
# What an entry of a dense coupling takes at most, while its pieces are made.
BYTES_PER_ENTRY = 14
# In operations of some 1e-9 s, as measured on an H200 with 1,024 states: a spin that waits for its turn, one that is
# drawn with its side, and an entry of the coupling.
TURN_OPERATIONS, DRAW_OPERATIONS, ENTRY_OPERATIONS = 0.45, 0.15, 1.5e-5
# Numbers in single precision that a spin of a state takes on the device: itself, its noise and room for the next.
NUMBERS_PER_SPIN = 4


class _OnDevice:
    """What engines on a device have in common."""

    multiplies = False  # linear algebra of the CPU
    takes_threads = False
    together = TOGETHER
    slow_share = 0.0

    n: int
    device: Any
    # Numbers of states for which sweeps have been compiled.
    compiled: set[int]

    def lanes_of(self, size: int) -> int:
        """Return how many states are swept for so many that are asked for; refuse what the memory does not hold."""
        lanes = -(-size // TOGETHER) * TOGETHER
        needed = 4.0 * NUMBERS_PER_SPIN * self.n * lanes
        refuse_too_large(self.device, needed, f"a population of {size} states", "fewer states, or ")
        return lanes

    def refuse_model(self, bytes_of_model: float) -> None:
        """Refuse a model that the memory of the device does not hold with the fewest states."""
        needed = bytes_of_model + 4.0 * NUMBERS_PER_SPIN * self.n * TOGETHER
        refuse_too_large(self.device, needed, f"a model of {self.n} spins")


class DeviceDenseEngine(_OnDevice):
    """Chains of a dense coupling, in single precision; parameters as of ``DenseEngine``, and the device."""

    def __init__(self, theta: FloatArray, couplings: Couplings, device: Any, base: FloatArray | None = None) -> None:
        from spectralz.kernels.device.dense_sweeps import BLOCK, DensePath, pieces_of

        self.n = n = len(theta)
        self.device = device
        self.compiled = set()
        base = theta if base is None else base
        padding, is_gpu = -n % BLOCK, device.platform == "gpu"
        self.refuse_model(BYTES_PER_ENTRY * (n + padding) ** 2)
        coupling = np.zeros((n + padding, n + padding), np.float32)
        coupling[:n, :n] = couplings.data.reshape(n, n)
        fields = (np.pad(each, (0, padding)).astype(np.float32) for each in (base, theta - base))
        with computing_on(device):
            own, change, whole = (_put(each, device) for each in (*fields, coupling))
            self.path = DensePath(own, change, pieces_of(whole, is_gpu))
        self.is_fused = is_gpu
        self.log_z_of_base = log_z_of_fields(base)
        self.operations = TURN_OPERATIONS * n + ENTRY_OPERATIONS * n**2
        self.bytes_per_state = n + 64

    def start(self, size: int, rng: np.random.Generator) -> DeviceDenseChains:
        """Return states drawn from the base."""
        from spectralz.kernels.device.dense_sweeps import drawn_from

        chains = DeviceDenseChains(self, size, rng)
        with computing_on(self.device):
            chains.x = drawn_from(chains.next_key(), self.path.base, chains.lanes, self.path.pieces[0].dtype)
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> DeviceDenseChains:
        """Return chains that begin in given states."""
        chains = DeviceDenseChains(self, len(x), rng)
        columns = np.zeros((len(self.path.base), chains.lanes), np.float32)
        columns[: self.n] = x[_padded(len(x), chains.lanes)].T
        with computing_on(self.device):
            chains.x = _put(columns, self.device).astype(self.path.pieces[0].dtype)
        return chains


class _Columns:
    """States, one per column, padded, with a key of random numbers."""

    def __init__(self, engine: _OnDevice, size: int, rng: np.random.Generator) -> None:
        from spectralz.kernels.device.dense_sweeps import random_key

        self._device = engine.device
        self._compiled = engine.compiled
        self.size = size
        self.lanes = engine.lanes_of(size)
        with computing_on(self._device):
            self._key = random_key(int(rng.integers(2**63)))

    def next_key(self) -> Any:
        """Return a key of random numbers that nothing else has."""
        import jax

        with computing_on(self._device):
            self._key, own = jax.random.split(self._key)
        return own

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute on the device, once a sweep of so many states has been compiled, which takes no time of budgets."""
        with computing_on(self._device):
            if self.lanes not in self._compiled:
                clock.begin_leaving_out()
                try:
                    self._compile()
                finally:
                    clock.end_leaving_out()
                self._compiled.add(self.lanes)
            yield

    def _compile(self) -> None:
        """Make one sweep whose result nobody looks at."""
        raise NotImplementedError

    def _columns(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what to take for all lanes."""
        return places[_padded(len(places), self.lanes)]


class DeviceDenseChains(_Columns):
    """States of a dense coupling, with their energies."""

    x: Any

    def __init__(self, engine: DeviceDenseEngine, size: int, rng: np.random.Generator) -> None:
        super().__init__(engine, size, rng)
        self._n, self._path, self._is_fused = engine.n, engine.path, engine.is_fused
        self._energy: Any = None
        self._points_left = 0

    def _compile(self) -> None:
        from spectralz.kernels.device.dense_sweeps import energies, sweep_at_random

        state = self.x + 0, energies(self.x, self._path), self._key
        for _ in range(2):  # what comes from a device is compiled for apart from what is put there
            state = sweep_at_random(*state, np.float32(0.0), self._path, self._is_fused)
        state[0].block_until_ready()

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other; energies are summed up anew now and then."""
        from spectralz.kernels.device.dense_sweeps import energies, sweep_at_random

        found = []
        with self._computing():
            if self._points_left <= 0:
                self._energy = energies(self.x, self._path)
                self._points_left = POINTS_PER_REFRESH
            self._points_left -= len(at)
            for beta in np.asarray(at, np.float32):
                for _ in range(sweeps):
                    self.x, self._energy, self._key = sweep_at_random(
                        self.x, self._energy, self._key, beta, self._path, self._is_fused
                    )
                found.append(self._energy)
            energy = np.array([np.asarray(each) for each in found]).reshape(len(at), self.lanes)[:, : self.size]
        return (before - at)[:, None] * energy, (after - at)[:, None] * energy

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        with computing_on(self._device):
            columns = self._columns(places)
            self.x = self.x[:, columns]
            self._energy = self._energy[columns] if self._energy is not None else None

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""
        with computing_on(self._device):
            return np.array(self.x[: self._n, : self.size].T.astype(np.int8), order="C")


class DeviceCollapsedEngine(_OnDevice, CollapsedEngine):
    """Chains of a bipartite model with a side summed out; parameters as of ``CollapsedEngine``, and the device."""

    def __init__(self, model: Ising, sides: Sides, device: Any, base: FloatArray | None = None) -> None:
        from spectralz.kernels.device.collapsed_sweeps import SidesPath

        self.device = device
        self.compiled = set()
        self.n = model.n
        self.refuse_model(4.0 * len(sides.kept) * len(sides.summed))
        super().__init__(model, sides, base=base)
        self.on_device = SidesPath(*(_put(np.asarray(each), device) for each in self.path))
        self.operations = DRAW_OPERATIONS * self.n + 6.0 * ENTRY_OPERATIONS * self.path.weights.size
        self.bytes_per_state = self.n + 64

    def start(self, size: int, rng: np.random.Generator) -> DeviceCollapsedChains:  # type: ignore[override]
        """Return states drawn from the base."""
        from spectralz.kernels.device.dense_sweeps import drawn_from

        chains = DeviceCollapsedChains(self, size, rng)
        with computing_on(self.device):
            chains.put(drawn_from(chains.next_key(), self.on_device.kept.astype(np.float32), chains.lanes))
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> DeviceCollapsedChains:  # type: ignore[override]
        """Return chains that begin in given states."""
        chains = DeviceCollapsedChains(self, len(x), rng)
        columns = x[_padded(len(x), chains.lanes)][:, self.sides.kept].T.astype(np.float32)
        with computing_on(self.device):
            chains.put(_put(columns, self.device))
        chains.given = x[:, self.sides.summed]
        return chains


class DeviceCollapsedChains(_Columns):
    """States of the kept side, with the fields that they have on the summed side."""

    v: Any
    pushes: Any

    def __init__(self, engine: DeviceCollapsedEngine, size: int, rng: np.random.Generator) -> None:
        super().__init__(engine, size, rng)
        self._n, self._sides, self._path = engine.n, engine.sides, engine.on_device
        self._beta = 0.0
        # The summed side of states that were given, until the first sweep.
        self.given: NDArray[np.int8] | None = None

    def put(self, v: Any) -> None:
        """Let these be the states of the kept side."""
        from spectralz.kernels.device.products import product

        self.v, self.pushes = v, product(self._path.weights.T, v)

    def _compile(self) -> None:
        from spectralz.kernels.device.collapsed_sweeps import changes_of_weight, sweep_sides_at_random

        state = self.v, self.pushes, self._key
        for _ in range(2):  # what comes from a device is compiled for apart from what is put there
            state = sweep_sides_at_random(*state, 0.0, self._path)
            changes_of_weight(*state[:2], np.zeros(3), self._path).block_until_ready()

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        from spectralz.kernels.device.collapsed_sweeps import changes_of_weight, sweep_sides_at_random

        found = []
        with self._computing():
            for points in np.stack([before, at, after], axis=1):
                for _ in range(sweeps):
                    self.v, self.pushes, self._key = sweep_sides_at_random(
                        self.v, self.pushes, self._key, float(points[1]), self._path
                    )
                found.append(changes_of_weight(self.v, self.pushes, points, self._path))
            changes = np.array([np.asarray(each) for each in found]).reshape(len(at), 2, self.lanes)[:, :, : self.size]
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
        x = np.empty((self.size, self._n), np.int8)
        with computing_on(self._device):
            x[:, self._sides.kept] = np.asarray(self.v[:, : self.size].T)
            x[:, self._sides.summed] = self._summed_side() if self.given is None else self.given
        return x

    def _summed_side(self) -> NDArray[Any]:
        from spectralz.kernels.device.collapsed_sweeps import drawn_side
        from spectralz.kernels.device.dense_sweeps import logistic

        path = self._path
        noise = logistic(self.next_key(), self.pushes.shape)
        h = drawn_side(self.pushes, self._beta, path.summed, path.summed_change, noise)
        return np.asarray(h[:, : self.size].T)


def _put(array: NDArray[Any], device: Any) -> Any:
    """Return an array on the device, as precise as it is."""
    import jax

    with computing_on(device):
        return jax.device_put(array, device)


def _padded(size: int, lanes: int) -> NDArray[np.int64]:
    """Return which of some states stands in each lane: the last one in those that are left over."""
    return np.minimum(np.arange(lanes), size - 1)

"""Chains whose states are swept on a device of JAX: of dense couplings, and of bipartite ones with a side summed out.

Points, weights, errors and checks are the same as for other chains (``protocol.py``). The number of states is rounded
up to a multiple of 1,024, which take as long as one; each new number of states is compiled for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz._support.devices import computing_on, refuse_too_large
from spectralz.sampling.engines.collapsed import collapsed_path
from spectralz.sampling.engines.dense import POINTS_PER_REFRESH
from spectralz.sampling.engines.lanes import CompiledEngine, changes_of, log_z_of_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.protocol import Parallel

# This many states take about as long as one.
TOGETHER = 1024
# What an entry of a dense coupling takes at most, while its pieces are made.
BYTES_PER_ENTRY = 14
# Points that bipartite models pass in one program: starting it takes as long as several of them.
POINTS_AT_ONCE = 64
# Numbers in single precision that a spin of a state takes on the device: itself, its noise and room for the next.
NUMBERS_PER_SPIN = 4


class DeviceEngine(CompiledEngine):
    """What engines on a device have in common."""

    takes_threads: ClassVar[bool] = False
    together: int = TOGETHER

    n: int
    device: Any

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state on the host."""
        return self.n + 64

    @property
    def device_bytes_per_state(self) -> float:
        """Memory of a state on the device."""
        return 4.0 * NUMBERS_PER_SPIN * self.n

    def lanes_of(self, size: int) -> int:
        """Return how many states are swept for a population of ``size``; refuse what the memory cannot hold."""
        lanes = -(-size // self.together) * self.together
        needed = self.device_bytes_per_state * lanes
        refuse_too_large(self.device, needed, f"a population of {size} states", "fewer states, or ")
        return lanes


def _refuse_model(device: Any, n: int, bytes_of_model: float) -> None:
    """Refuse a model that the memory of the device cannot hold with the fewest states."""
    needed = bytes_of_model + 4.0 * NUMBERS_PER_SPIN * n * TOGETHER
    refuse_too_large(device, needed, f"a model of {n} spins")


@dataclass(frozen=True, eq=False)
class DeviceDenseEngine(DeviceEngine):
    """Chains of a dense coupling in single precision; :func:`device_dense_engine` makes it.

    Attributes
    ----------
    n, device
        Number of spins, and the device of JAX.
    path
        The model on the device.
    is_fused
        Whether a block of spins is one kernel, as on a GPU.
    """

    n: int
    device: Any
    path: Any
    is_fused: bool
    log_z_of_base: float
    operations: float


def device_dense_engine(theta: FloatArray, couplings: Couplings, base: FloatArray, device: Any) -> DeviceDenseEngine:
    """Return an engine; it copies the model to the device."""
    from spectralz.kernels.device.dense_sweeps import BLOCK, DensePath, pieces_of

    n = len(theta)
    padding, is_gpu = -n % BLOCK, device.platform == "gpu"
    _refuse_model(device, n, BYTES_PER_ENTRY * (n + padding) ** 2)
    coupling = np.zeros((n + padding, n + padding), np.float32)
    coupling[:n, :n] = couplings.data.reshape(n, n)
    fields = (np.pad(array, (0, padding)).astype(np.float32) for array in (base, theta - base))
    with computing_on(device):
        of_base, change, whole = (put(array, device) for array in (*fields, coupling))
        path = DensePath(of_base, change, pieces_of(whole, is_gpu))
    operations = costs.DEVICE_TURN * n + costs.DEVICE_ENTRY * n**2
    return DeviceDenseEngine(n, device, path, is_gpu, log_z_of_fields(base), operations)


class Columns:
    """States, one per column, padded, with a key of random numbers."""

    def __init__(self, engine: DeviceEngine, size: int, rng: np.random.Generator) -> None:
        from spectralz.kernels.device.dense_sweeps import random_key

        self._device = engine.device
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
        super().__init__(engine, size, rng)
        self._n, self._path, self._is_fused = engine.n, engine.path, engine.is_fused
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
        columns[: self._n] = x[padded(len(x), self.lanes)].T
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
            return np.array(self.x[: self._n, : self.size].T.astype(np.int8), order="C")


@dataclass(frozen=True, eq=False)
class DeviceCollapsedEngine(DeviceEngine):
    """Chains of a bipartite model with a side summed out; :func:`device_collapsed_engine` makes it.

    Attributes
    ----------
    n, device
        Number of spins of both sides, and the device of JAX.
    sides
        Which spins are kept and which are summed out.
    path
        The model on the device.
    flips
        Whether the kept spins are flipped one by one.
    """

    n: int
    device: Any
    sides: Sides
    path: Any
    flips: bool
    log_z_of_base: float
    operations: float


def device_collapsed_engine(
    model: Model, sides: Sides, base: FloatArray, device: Any, *, flips: bool = False
) -> DeviceCollapsedEngine:
    """Return an engine; it copies the model to the device."""
    from spectralz.kernels.device.collapsed_sweeps import SidesPath

    _refuse_model(device, model.n, 4.0 * len(sides.kept) * len(sides.summed))
    path = SidesPath(*(put(np.asarray(array), device) for array in collapsed_path(model, sides, base)))
    each = costs.DEVICE_FLIP_ENTRY if flips else 6.0 * costs.DEVICE_ENTRY
    operations = costs.DEVICE_DRAW * model.n + each * path.weights.size
    return DeviceCollapsedEngine(model.n, device, sides, path, flips, log_z_of_fields(base), operations)


class DeviceCollapsedChains(Columns):
    """States of the kept side, with the fields that they have on the summed side."""

    v: Any
    pushes: Any

    def __init__(self, engine: DeviceCollapsedEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng)
        self._n, self._sides, self._path, self._flips = engine.n, engine.sides, engine.path, engine.flips
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
        columns = x[padded(len(x), self.lanes)][:, self._sides.kept].T.astype(np.float32)
        with computing_on(self._device):
            self._put_kept(put(columns, self._device))
        self.given = x[:, self._sides.summed]

    def _put_kept(self, v: Any) -> None:
        from spectralz.kernels.device.products import product

        self.v, self.pushes = v, product(self._path.weights.T, v)

    def _swept(self, v: Any, pushes: Any, key: Any, points: FloatArray, sweeps: int) -> tuple[Any, Any, Any, Any]:
        """Return the kept side, its pushes, the next key and the changes of log-weights, beside a few points."""
        from spectralz.kernels.device.collapsed_sweeps import sweep_along

        some = np.zeros((POINTS_AT_ONCE, 3))
        some[: len(points)] = points
        swept: tuple[Any, Any, Any, Any] = sweep_along(
            v, pushes, key, some, len(points), sweeps, self._path, flips=self._flips
        )
        return swept

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        points, rows = np.stack([before, at, after], axis=1), []
        with computing_on(self._device):
            for k in range(0, len(at), POINTS_AT_ONCE):
                part = points[k : k + POINTS_AT_ONCE]
                self.v, self.pushes, self._key, changes = self._swept(self.v, self.pushes, self._key, part, sweeps)
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

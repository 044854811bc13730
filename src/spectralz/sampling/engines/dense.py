"""Chains of a dense coupling in single precision, 64 states together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.lanes import CompiledEngine, SpinBySpin, cold_from, log_z_of_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.lanes import DensePath
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel

# Fields are summed up anew after so many points of the path, before rounding can be seen in them.
POINTS_PER_REFRESH = 64
# Entries of the coupling that are in double precision at the same time.
ENTRIES_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class DenseEngine(CompiledEngine):
    """Chains of a dense coupling; :func:`dense_engine` makes it.

    Attributes
    ----------
    base
        Fields of the independent spins that the path begins from.
    path
        The model as the arrays of the kernels.
    """

    base: FloatArray
    path: DensePath
    log_z_of_base: float
    operations: float

    multiplies: ClassVar[bool] = True

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.base)

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state."""
        return 13 * self.n + 64


def dense_engine(theta: FloatArray, couplings: Couplings, base: FloatArray) -> DenseEngine:
    """Return an engine; it copies the coupling in single precision."""
    from spectralz.kernels.sampling.lanes import DensePath

    n = len(theta)
    coupling = couplings.data.reshape(n, n).astype(np.float32)
    path = DensePath(
        frozen(base.astype(np.float32)), frozen(theta.astype(np.float32)), frozen(coupling), cold_from(couplings)
    )
    return DenseEngine(base, path, log_z_of_fields(base), dense_operations(n))


def dense_operations(n: int) -> float:
    """Return the cost of a sweep over one state of a dense coupling."""
    return costs.DENSE_UPDATE * max(n, 1) + costs.DENSE_ENTRY * n**2


class DenseChains(SpinBySpin):
    """States of a dense coupling with the fields of their spins, all in single precision."""

    kind: ClassVar[Any] = np.float32

    def __init__(self, engine: DenseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel)
        self._path = engine.path
        self._h = self._room_for_fields()
        self._points_left = 0

    def _refresh(self, points: int) -> None:
        if self._points_left <= 0:
            self._each(self._sum_up)
            self._points_left = POINTS_PER_REFRESH
        self._points_left -= points

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        super().fill(x)
        self._points_left = 0

    def _sum_up(self, chunk: int) -> None:
        # In double precision: in single precision the sums of many equal couplings all err in the same direction.
        coupling, x = self._path.coupling, self._x[chunk].astype(np.float64)
        rows = max(ENTRIES_AT_ONCE // max(len(coupling), 1), 1)
        for part in (slice(k, k + rows) for k in range(0, len(coupling), rows)):
            self._h[chunk][part] = coupling[part].astype(np.float64) @ x + self._path.field[part, None]

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        super().take(places)
        self._h = self._taken_fields(places)

    def _room_for_fields(self) -> NDArray[Any]:
        return np.empty_like(self._x)

    def _taken_fields(self, places: NDArray[np.int64]) -> Any:
        return self._taken(self._h, places)

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling.lanes import sweep_dense

        energies[chunk] = sweep_dense(self._x[chunk], self._h[chunk], self._random[chunk], at, sweeps, self._path)


DenseEngine.chains = DenseChains

"""Chains of a dense coupling, 64 states together, in single or in double precision.

Sweeps in double precision are three or four times as slow: for fields too large for single precision, and intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.lanes import Engine, SpinBySpin, cold_from, log_z_of_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.lanes import DensePath
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.lanes import Parallel

# Fields are summed up anew after so many points of the path, before rounding can be seen in them.
POINTS_PER_REFRESH = 64
# Entries of the coupling that are in double precision at the same time.
ENTRIES_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseEngine(Engine):
    """Chains of a dense coupling; :func:`dense_engine` makes it.

    Attributes
    ----------
    base
        Fields of the independent spins that the path begins from.
    path
        The model as the arrays of the kernels.
    in_double
        Whether spins are drawn in double precision.
    """

    base: FloatArray
    path: DensePath
    in_double: bool

    multiplies: ClassVar[bool] = True


def dense_engine(theta: FloatArray, couplings: Couplings, base: FloatArray, *, in_double: bool = False) -> DenseEngine:
    """Return an engine; it copies the coupling in single precision."""
    from spectralz.kernels.sampling.lanes import DensePath

    n, kind = len(theta), np.float64 if in_double else np.float32
    fields, field, coupling = (frozen(array.astype(kind)) for array in (base, theta, couplings.data.reshape(n, n)))
    of_double = costs.DOUBLE_UPDATE * max(n, 1) + costs.DOUBLE_ENTRY * n**2
    return DenseEngine(
        n=n,
        base=base,
        path=DensePath(fields, field, coupling, cold_from(couplings)),
        in_double=in_double,
        log_z_of_base=log_z_of_fields(base),
        operations=of_double if in_double else dense_operations(n),
        bytes_per_state=(9 if in_double else 13) * n + 64,
    )


def dense_operations(n: int) -> float:
    """Return the cost of a sweep over one state of a dense coupling, in single precision."""
    return costs.DENSE_UPDATE * max(n, 1) + costs.DENSE_ENTRY * n**2


class DenseChains(SpinBySpin):
    """States of a dense coupling with the fields of their spins, in double precision one state per row."""

    def __init__(self, engine: DenseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel, np.int8 if engine.in_double else np.float32)
        self._h = np.empty_like(self._x.transpose(0, 2, 1), float, "C") if engine.in_double else np.empty_like(self._x)
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
        h = self._h[chunk].T if self._engine.in_double else self._h[chunk]
        rows = max(ENTRIES_AT_ONCE // max(len(coupling), 1), 1)
        for part in (slice(k, k + rows) for k in range(0, len(coupling), rows)):
            h[part] = coupling[part].astype(np.float64) @ x + self._path.field[part, None]

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        super().take(places)
        if self._engine.in_double:
            self._points_left = 0
        else:
            self._h = self._taken(self._h, places)

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling import double_lanes, lanes

        sweep = double_lanes.sweep_dense_in_double if self._engine.in_double else lanes.sweep_dense
        energies[chunk] = sweep(self._x[chunk], self._h[chunk], self._random[chunk], at, sweeps, self._path)


DenseEngine.chains = DenseChains

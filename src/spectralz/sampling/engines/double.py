"""Chains in double precision, 64 states together: for fields too large for single precision, and for intervals.

Sweeps are three or four times as slow as in single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.dense import DenseChains, DenseEngine
from spectralz.sampling.engines.lanes import log_z_of_fields
from spectralz.sampling.engines.sparse import SparseChains, SparseEngine, sparse_engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray


class DoubleSparseEngine(SparseEngine):
    """Chains on a sparse graph in double precision."""


class DoubleDenseEngine(DenseEngine):
    """Chains of a dense coupling in double precision."""

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state."""
        return 9 * self.n + 64


def double_engine(theta: FloatArray, couplings: Couplings, base: FloatArray) -> SparseEngine | DenseEngine:
    """Return an engine whose path begins from independent spins with the fields ``base``."""
    from spectralz.kernels.sampling.lanes import DensePath

    if not couplings.is_dense:
        return sparse_engine(theta, couplings, base, kind=DoubleSparseEngine, update_times=costs.DOUBLE_SPARSE_TIMES)
    n = len(theta)
    path = DensePath(frozen(base), frozen(theta), frozen(couplings.data.reshape(n, n)))
    operations = costs.DOUBLE_UPDATE * max(n, 1) + costs.DOUBLE_ENTRY * n**2
    return DoubleDenseEngine(base, path, log_z_of_fields(base), operations)


class DoubleSparseChains(SparseChains):
    """States on a sparse graph that are drawn in double precision."""

    in_double = True

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling.double_lanes import sweep_sparse_in_double

        energies[chunk] = sweep_sparse_in_double(self._x[chunk], self._random[chunk], at, sweeps, self._path)


class DoubleDenseChains(DenseChains):
    """States of a dense coupling in double precision, with the fields of their spins, one state per row."""

    kind: ClassVar[Any] = np.int8
    in_double = True

    def _room_for_fields(self) -> FloatArray:
        return np.empty((self._chunks, self._lanes // self._chunks, self._x.shape[1]))

    def _taken_fields(self, places: NDArray[np.int64]) -> FloatArray:
        rows = self._h.reshape(self._lanes, -1)
        return np.asarray(rows[np.append(places, np.arange(len(places), self._lanes))].reshape(self._h.shape))

    def _sum_up(self, chunk: int) -> None:
        np.matmul(self._x[chunk].T.astype(np.float64), self._path.coupling, out=self._h[chunk])
        self._h[chunk] += self._path.field

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling.double_lanes import sweep_dense_in_double

        x, h = self._x[chunk], self._h[chunk]
        energies[chunk] = sweep_dense_in_double(x, h, self._random[chunk], at, sweeps, self._path)


DoubleSparseEngine.chains = DoubleSparseChains
DoubleDenseEngine.chains = DoubleDenseChains

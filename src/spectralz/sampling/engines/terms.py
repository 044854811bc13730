"""Chains of models with terms of three and more spins, 64 states together, in single or in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.lanes import CompiledEngine, SpinBySpin, log_z_of_fields
from spectralz.sampling.engines.sparse import sparse_operations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.sampling.term_sweeps import TermPath
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.protocol import Parallel


@dataclass(frozen=True, eq=False)
class TermEngine(CompiledEngine):
    """Chains of a model with terms; :func:`term_engine` makes it.

    Attributes
    ----------
    base
        Fields of the base.
    path
        The model and the base as the arrays of the kernels.
    in_double
        Whether spins are drawn in double precision.
    """

    base: FloatArray
    path: TermPath
    in_double: bool
    log_z_of_base: float
    operations: float

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.base)

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state, with the signs of its terms."""
        return 2 * self.n + len(self.path.terms.weight) + 64


def term_engine(model: Model, base: FloatArray, *, in_double: bool = False) -> TermEngine:
    """Return an engine whose path begins from independent spins with the fields ``base``."""
    from spectralz.kernels.sampling.lanes import SparsePath
    from spectralz.kernels.sampling.term_sweeps import TermPath

    J, entries = model.storage.for_kernels(), len(model.higher.spin)
    pairs = SparsePath(
        frozen(base), frozen(model.field - base), frozen(np.zeros(len(J.data))), J.data, J.indices, J.indptr
    )
    path = TermPath(pairs, model.terms_by_spin)
    operations = sparse_operations(model.n, len(J.data)) + costs.TERM_ENTRY * entries
    times = costs.DOUBLE_SPARSE_TIMES if in_double else 1.0
    return TermEngine(base, path, in_double, log_z_of_fields(base), times * operations)


class TermChains(SpinBySpin):
    """States as bytes, with the sign of each term."""

    kind = np.int8

    def __init__(self, engine: TermEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel)
        self._path = engine.path
        self.in_double = engine.in_double
        self._signs = self._room(len(engine.path.terms.weight), np.int8)
        # Whether the signs are those of the states.
        self._is_signed = False

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        super().fill(x)
        self._is_signed = False

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        super().take(places)
        self._is_signed = False

    def _refresh(self, points: int) -> None:
        from spectralz.kernels.sampling.term_sweeps import fill_signs

        if not self._is_signed:
            self._each(lambda chunk: fill_signs(self._x[chunk], self._signs[chunk], self._path.terms))
            self._is_signed = True

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling.term_sweeps import sweep_terms, sweep_terms_in_double

        sweep = sweep_terms_in_double if self.in_double else sweep_terms
        x, signs, random = self._x[chunk], self._signs[chunk], self._random[chunk]
        energies[chunk] = sweep(x, signs, random, at, sweeps, self._path)


TermEngine.chains = TermChains

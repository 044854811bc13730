"""A coupling stored as one rectangular block between two layers of spins, as in an RBM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz.errors import ModelError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.model.checks import as_float_array, refuse_non_finite
from spectralz.model.coupling.base import Conditioned, Coupling, FloatArray, IntArray
from spectralz.model.coupling.entries import Sparse, symmetric

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Bipartite(Coupling):
    """One rectangular block between two layers of spins: rows belong to the first layer, columns to the second."""

    B: FloatArray

    word: ClassVar[str] = "bipartite"
    is_sparse: ClassVar[bool] = True

    @classmethod
    def checked(cls, weights: Any) -> Bipartite:
        """Check the weights J of the edges between two layers, and keep A = J / 2."""
        J = as_float_array(weights, "weights")
        if J.ndim != 2:
            raise ModelError(f"weights has shape {J.shape}; give a matrix, first layer x second layer")
        refuse_non_finite(J, "weights")
        return cls(J / 2.0)

    @property
    def n(self) -> int:
        return sum(self.B.shape)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.B,)

    @cached_property
    def written_out(self) -> Sparse:
        pairs, J = self.edges()
        entries = Sparse.checked(symmetric(self.n, pairs, J / 2.0))
        entries.freeze()
        return entries

    @property
    def diagonal(self) -> FloatArray:
        return np.zeros(self.n)

    @property
    def total(self) -> float:
        return 2.0 * float(np.abs(self.B).sum())

    @property
    def mean_of_pairs(self) -> float:
        return self.total / (2 * self.edge_count) if self.edge_count else 0.0

    @property
    def largest_of_pairs(self) -> float:
        return float(np.abs(self.B).max(initial=0.0))

    @cached_property
    def edge_count(self) -> int:
        return int(np.count_nonzero(self.B))

    def edges(self) -> tuple[IntArray, FloatArray]:
        i, j = np.nonzero(self.B)
        return np.column_stack([i, j + len(self.B)]).astype(np.int64), 2.0 * self.B[i, j]

    @cached_property
    def sides(self) -> tuple[IntArray, IntArray] | None:
        if not (np.all(self.B, axis=1).any() and np.all(self.B, axis=0).any()):  # perhaps not connected
            return super().sides
        first, second = np.split(np.arange(self.n), [len(self.B)])
        return (second, first) if len(first) >= len(second) else (first, second)

    def quadratic(self, X: FloatArray) -> FloatArray:
        first, second = X[:, : len(self.B)], X[:, len(self.B) :]
        return np.asarray(2.0 * np.einsum("mj,mj->m", first @ self.B, second))

    def times(self, factor: float) -> Bipartite:
        return Bipartite(factor * self.B)

    def plus(self, other: Coupling) -> Coupling:
        if isinstance(other, Bipartite) and self.B.shape == other.B.shape:
            return Bipartite(self.B + other.B)
        return super().plus(other)

    def among(self, spins: IntArray) -> Coupling:
        is_first = spins < len(self.B)
        if np.any(np.diff(is_first.astype(np.int8)) > 0):  # the layers are mixed
            return self.written_out.among(spins)
        return Bipartite(self.B[np.ix_(spins[is_first], spins[~is_first] - len(self.B))])

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        x = np.zeros(self.n)
        x[fixed] = value
        first, second = x[: len(self.B)], x[len(self.B) :]
        push = 2.0 * np.concatenate([self.B @ second, first @ self.B])
        sizes = np.abs(first) @ np.abs(self.B)
        lost = (len(fixed) + 2.0) * UNIT_ROUNDOFF * 2.0 * float(sizes.sum() + (np.abs(self.B) @ np.abs(second)).sum())
        return Conditioned(self.among(free), push[free], 2.0 * float(first @ self.B @ second), lost)

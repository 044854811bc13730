"""Couplings stored as less than a matrix: a rectangular block between two layers of spins, or a few rank-1 terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz.errors import ModelError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.error_free import Parts, balanced, pair_rounding, trace_of_terms
from spectralz.model.checks import as_float_array, refuse_non_finite
from spectralz.model.coupling.base import Conditioned, Coupling, Factors, FloatArray, IntArray
from spectralz.model.coupling.entries import Dense, Sparse, symmetric

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


# It is written out as a matrix only up to this many spins (3 GiB).
MOST_DENSE_SPINS = 20_000


@dataclass(frozen=True, eq=False)
class Factored(Coupling):
    """A few rank-1 terms and a diagonal, written out only if the entries are asked for."""

    factors: Factors

    word: ClassVar[str] = "factors"
    is_sparse: ClassVar[bool] = False

    @classmethod
    def checked(cls, values: Any, vectors: Any, diagonal: Any) -> Factored:
        """Check the terms and keep a copy of them."""
        strengths = np.atleast_1d(as_float_array(values, "values"))
        rows = np.atleast_2d(as_float_array(vectors, "vectors"))
        if strengths.ndim != 1 or rows.ndim != 2 or len(strengths) != len(rows):
            raise ModelError(
                f"values has shape {strengths.shape} and vectors {rows.shape}; "
                "give one number and one row of n numbers for each rank-1 term"
            )
        n = rows.shape[1]
        spread = as_float_array(diagonal, "diagonal")
        if spread.shape not in ((), (n,)):
            raise ModelError(f"diagonal has shape {spread.shape}; a model of {n} spins needs ({n},) or one number")
        for array, name in ((strengths, "values"), (rows, "vectors"), (spread, "diagonal")):
            refuse_non_finite(array, name)
        return cls(Factors(strengths, rows, np.array(np.broadcast_to(spread, (n,)))))

    @property
    def n(self) -> int:
        return int(self.factors.vectors.shape[1])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(self.factors)

    @property
    def terms(self) -> Factors:
        return self.factors

    @cached_property
    def written_out(self) -> Dense:
        if self.n > MOST_DENSE_SPINS:
            raise TooLargeError(
                f"the coupling of {self.n} spins is kept as factors and would take {8 * self.n**2 / 2**30:.3g} GiB "
                "as a matrix; use a method that works on factors (quadrature, low_rank)"
            )
        values, vectors = balanced(self.factors.values, self.factors.vectors)
        A = (values[:, None] * vectors).T @ vectors
        A = (A + A.T) / 2.0
        A[np.diag_indices(self.n)] += self.factors.diagonal
        A.flags.writeable = False
        return Dense(A)

    @cached_property
    def rounding(self) -> float:
        # An entry is a sum of r products of three numbers, and then the mean of itself and its mirror image: at most
        # r + 2 roundings of each term, in any order of summation.
        values, vectors, _ = self.factors
        return pair_rounding(values, vectors, len(values) + 4.0)

    def trace(self) -> Parts:
        terms = trace_of_terms(self.factors.values, self.factors.vectors)
        return Parts([*self.factors.diagonal.tolist(), *terms.numbers], terms.left_out)

    @property
    def diagonal(self) -> FloatArray:
        values, vectors, diagonal = self.factors
        return np.asarray(diagonal + np.einsum("j,ji,ji->i", values, vectors, vectors))

    @property
    def total(self) -> float:
        values, vectors, diagonal = self.factors
        used = values != 0.0  # zero times a huge vector is zero
        norms = np.abs(vectors[used]).sum(axis=1)
        return float((np.abs(values[used]) * norms**2).sum() + np.abs(diagonal).sum())

    @property
    def couples_nothing(self) -> bool:
        return False  # not known without writing it out

    @property
    def least_width(self) -> int:
        used = (self.factors.vectors != 0.0) & (self.factors.values != 0.0)[:, None]
        if len(used) == 1:
            return max(int(used.sum()) - 1, 0)  # one rank-1 term couples all its spins
        return self.n - 1 if self.n > MOST_DENSE_SPINS else self.written_out.least_width

    def quadratic(self, X: FloatArray) -> FloatArray:
        values, vectors, diagonal = self.factors
        return np.asarray((X @ vectors.T) ** 2 @ values + math.fsum(diagonal.tolist()))

    def times(self, factor: float) -> Factored:
        values, vectors, diagonal = self.factors
        return Factored(Factors(factor * values, vectors, factor * diagonal))

    def plus(self, other: Coupling) -> Coupling:
        if not isinstance(other, Factored):
            return super().plus(other)
        (values, vectors, diagonal), theirs = self.factors, other.factors
        terms = np.concatenate([values, theirs.values]), np.concatenate([vectors, theirs.vectors])
        return Factored(Factors(*terms, diagonal + theirs.diagonal))

    def plus_diagonal(self, d: FloatArray) -> Factored:
        return Factored(self.factors._replace(diagonal=self.factors.diagonal + d))

    def among(self, spins: IntArray) -> Factored:
        values, vectors, diagonal = self.factors
        return Factored(Factors(values, vectors[:, spins], diagonal[spins]))

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        values, vectors, diagonal = self.factors
        sums = vectors[:, fixed] @ value
        constant = float(values @ sums**2) + math.fsum(diagonal[fixed].tolist())
        sizes = np.abs(values) * np.abs(vectors[:, fixed]).sum(axis=1) * np.abs(vectors).sum(axis=1)
        roundings = 2.0 * (len(fixed) + len(values) + 4.0) * UNIT_ROUNDOFF
        lost = roundings * float(2.0 * sizes.sum() + np.abs(diagonal[fixed]).sum())
        return Conditioned(self.among(free), 2.0 * (values * sums) @ vectors[:, free], constant, lost)

    def summary(self) -> str:
        values, vectors, _ = self.factors
        most = float((np.abs(values) * (vectors**2).max(axis=1, initial=0.0)).sum())
        return f"rank {len(values)} plus diagonal, |A| at most {most:.3g}"

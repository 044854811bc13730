"""Couplings stored entry by entry: all entries, or those that are not zero."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import Couplings
from spectralz.model.checks import as_float_array, refuse_non_finite
from spectralz.model.coupling.base import Conditioned, Coupling, FloatArray, IntArray, Matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


# Products of rounded numbers (a covariance, say) are symmetric to a few units in the last place of the
# largest entry; anything beyond that is a mistake that averaging would hide.
SYMMETRY_TOLERANCE = 1e-10
# How many entries of a dense matrix are copied at once.
ENTRIES_AT_A_TIME = 1 << 20
# Those that are only read together, and rows and columns that are compared together.
ENTRIES_IN_CACHE = 1 << 17
BLOCK = 256

# The weight of an edge that couples nothing.
KEPT_ZERO = 1e-30


class Entries(Coupling):
    """A coupling stored entry by entry, as a numpy or a scipy CSR array."""

    A: Any

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    @property
    def matrix(self) -> Matrix:
        return cast("Matrix", self.A)

    @property
    def written_out(self) -> Entries:
        return self

    @property
    @abstractmethod
    def stored(self) -> FloatArray:
        """The stored entries, as one array."""

    @property
    @abstractmethod
    def longest_row(self) -> int:
        """The largest number of stored entries in a row."""

    @abstractmethod
    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> Entries:
        """Return a coupling with every entry changed; 0 must stay 0."""

    @abstractmethod
    def congruent(self, roots: FloatArray) -> Entries:
        """Return Diag(roots) A Diag(roots)."""

    @abstractmethod
    def doubled(self) -> Couplings:
        """Return 2 A without its diagonal, as the compiled kernels take it."""

    def row_sums(self, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of |A_ij| and of A_ij m_j over the j other than i."""
        C = self.without_diagonal().matrix
        return np.asarray(abs(C).sum(axis=1)), np.asarray(C @ mean)

    @abstractmethod
    def as_sparse(self) -> Sparse:
        """Return it sparse."""

    def as_dense(self) -> Dense:
        """Return it dense."""
        return Dense(self.dense())

    @property
    def total(self) -> float:
        return float(np.abs(self.stored).sum())

    @property
    def largest(self) -> float:
        """The largest |A_ij|."""
        return float(np.abs(self.stored).max(initial=0.0))

    @property
    def diagonal(self) -> FloatArray:
        return np.asarray(self.matrix.diagonal())

    @cached_property
    def edge_count(self) -> int:
        return int(np.count_nonzero(self.stored) - np.count_nonzero(self.diagonal)) // 2

    @abstractmethod
    def row_counts(self) -> IntArray:
        """Return how many entries of each row are not zero."""

    @property
    def least_width(self) -> int:
        if not self.edge_count:
            return 0
        degrees = self.row_counts() - (self.diagonal != 0.0)
        return int(max(degrees.min(), -(-self.edge_count // self.n)))

    def quadratic(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("mi,im->m", X, self.matrix @ X.T))

    def times(self, factor: float) -> Entries:
        return self.mapped(lambda entries: factor * entries)

    def plus_entries(self, other: Entries) -> Entries:
        """Return the sum, dense if one of the two is."""
        if isinstance(self, Sparse) and isinstance(other, Sparse):
            return Sparse._canonical(self.A + other.A)
        return Dense(self.dense() + other.dense())

    @abstractmethod
    def block(self, rows: IntArray, columns: IntArray) -> Any:
        """Return some rows and columns of A, dense or sparse like A."""

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        between, among = self.block(free, fixed), self.block(fixed, fixed)
        push = 2.0 * (between @ value)
        constant = float(value @ (among @ value))
        lost = (2.0 * len(fixed) + 2.0) * UNIT_ROUNDOFF * float(2.0 * abs(between).sum() + abs(among).sum())
        return Conditioned(self.among(free), np.asarray(push), constant, lost)


@dataclass(frozen=True, eq=False)
class Dense(Entries):
    """All n^2 entries."""

    A: FloatArray

    word: ClassVar[str] = "dense"
    is_sparse: ClassVar[bool] = False

    @classmethod
    def checked(cls, values: Any) -> Dense:
        """Check a square matrix of numbers and keep a copy of it."""
        A = square_array(values, "coupling")
        if _is_symmetric(A):
            return cls(A)
        difference = np.abs(A / 2.0 - A.T / 2.0)
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(difference)), A.shape))
        _refuse_asymmetric(float(difference[i, j]), float(np.abs(A).max()), i, j, float(A[i, j]), float(A[j, i]))
        return cls(A / 2.0 + A.T / 2.0)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.A,)

    @property
    def stored(self) -> FloatArray:
        return self.A

    @property
    def longest_row(self) -> int:
        return self.n

    @cached_property
    def total(self) -> float:
        return float(sum(np.abs(rows).sum() for rows in self._some_rows()))

    @cached_property
    def largest(self) -> float:
        return float(max((np.abs(rows).max(initial=0.0) for rows in self._some_rows()), default=0.0))

    def _some_rows(self) -> Iterator[FloatArray]:
        """Yield some rows after the other: what is computed of all at once takes as much room as they do."""
        at_a_time = max(ENTRIES_IN_CACHE // max(self.n, 1), 1)
        return (self.A[begin : begin + at_a_time] for begin in range(0, self.n, at_a_time))

    def row_counts(self) -> IntArray:
        return np.asarray(np.count_nonzero(self.A, axis=1))

    def edges(self) -> tuple[IntArray, FloatArray]:
        i, j = np.nonzero(np.triu(self.A, k=1))
        return np.column_stack([i, j]).astype(np.int64), 2.0 * self.A[i, j]

    def component_labels(self) -> IntArray:
        # A search that reads every row once; a list of n^2 edges would take many times as long.
        label = np.full(self.n, -1, dtype=np.int64)
        count = 0
        for start in range(self.n):
            if label[start] >= 0:
                continue
            label[start], waiting = count, [start]
            while waiting:
                open_spins = np.flatnonzero(label < 0)
                reached = open_spins[self.A[waiting.pop(), open_spins] != 0.0]
                label[reached] = count
                waiting += reached.tolist()
                if len(reached) == len(open_spins):
                    return label
            count += 1
        return label

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.A[np.ix_(rows, columns)]

    def among(self, spins: IntArray) -> Dense:
        return Dense(self.block(spins, spins))

    def plus_diagonal(self, d: FloatArray) -> Dense:
        return Dense(self.A + np.diag(d))

    def bordered(self, column: FloatArray) -> Dense:
        return Dense(np.block([[self.A, column[:, None]], [column[None, :], np.zeros((1, 1))]]))

    def without_diagonal(self) -> Dense:
        C = np.array(self.A)
        np.fill_diagonal(C, 0.0)
        return Dense(C)

    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> Dense:
        return Dense(change(self.A))

    def doubled(self) -> Couplings:
        J = 2.0 * self.A  # only one copy: it may take most of the memory
        np.fill_diagonal(J, 0.0)
        return Couplings.of_dense(J)

    def row_sums(self, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        sizes, sums = np.empty(self.n), np.empty(self.n)
        at_a_time = max(ENTRIES_AT_A_TIME // max(self.n, 1), 1)
        for begin in range(0, self.n, at_a_time):
            rows = np.array(self.A[begin : begin + at_a_time])
            np.fill_diagonal(rows[:, begin:], 0.0)
            sums[begin : begin + at_a_time] = rows @ mean
            sizes[begin : begin + at_a_time] = np.abs(rows, out=rows).sum(axis=1)
        return sizes, sums

    def congruent(self, roots: FloatArray) -> Dense:
        return Dense(self.A * np.outer(roots, roots))

    def dense(self) -> FloatArray:
        return self.A

    def as_sparse(self) -> Sparse:
        return Sparse(sp.csr_array(self.A))


@dataclass(frozen=True, eq=False)
class Sparse(Entries):
    """The entries that are not zero, as a CSR matrix in canonical order."""

    A: sp.csr_array[Any]

    word: ClassVar[str] = "sparse"
    is_sparse: ClassVar[bool] = True

    @classmethod
    def checked(cls, values: Any) -> Sparse:
        """Check a square sparse matrix of numbers and keep a copy of it."""
        A = square_csr(values, "coupling")
        bad = np.flatnonzero(~np.isfinite(A.data))
        if len(bad):
            row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
            raise ModelError(
                f"coupling[{row}, {int(A.indices[bad[0]])}] is {A.data[bad[0]]}; every number of a model must be "
                "finite (write a hard constraint with model.with_constraints, not with an infinite weight)"
            )
        difference = (A / 2.0 - A.T / 2.0).tocoo()
        if len(difference.data) and np.any(difference.data):
            worst = int(np.argmax(np.abs(difference.data)))
            i, j = int(difference.row[worst]), int(difference.col[worst])
            size = float(np.abs(A.data).max())
            _refuse_asymmetric(abs(float(difference.data[worst])), size, i, j, float(A[i, j]), float(A[j, i]))
            A = sp.csr_array(A / 2.0 + A.T / 2.0)
        return cls._canonical(A)

    @classmethod
    def _canonical(cls, A: Any) -> Sparse:
        """Keep a matrix that is not shared, with its entries in order and without zeros."""
        matrix = sp.csr_array(A)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return cls(matrix)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.A.data, self.A.indices, self.A.indptr

    @property
    def stored(self) -> FloatArray:
        return np.asarray(self.A.data)

    @property
    def longest_row(self) -> int:
        return int(self.row_counts().max(initial=0))

    def row_counts(self) -> IntArray:
        return np.asarray(np.diff(self.A.indptr))

    def edges(self) -> tuple[IntArray, FloatArray]:
        upper = sp.triu(self.A, k=1, format="coo")
        order = np.lexsort((upper.col, upper.row))
        pairs = np.column_stack([upper.row[order], upper.col[order]]).astype(np.int64)
        return pairs, 2.0 * upper.data[order]

    def component_labels(self) -> IntArray:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.A, directed=False)[1], dtype=np.int64)

    def block(self, rows: IntArray, columns: IntArray) -> Any:
        return self.A[rows][:, columns]

    def among(self, spins: IntArray) -> Sparse:
        return Sparse._canonical(self.block(spins, spins))

    def plus_diagonal(self, d: FloatArray) -> Sparse:
        return Sparse._canonical(self.A + sp.diags_array(d, format="csr"))

    def bordered(self, column: FloatArray) -> Sparse:
        last = sp.csr_array(column[:, None])
        return Sparse._canonical(sp.block_array([[self.A, last], [last.T, None]], format="csr"))

    def without_diagonal(self) -> Sparse:
        return Sparse._canonical(self.A - sp.diags_array(self.A.diagonal(), format="csr"))

    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> Sparse:
        changed = self.A.copy()
        changed.data = change(self.A.data)
        return Sparse._canonical(changed)

    def congruent(self, roots: FloatArray) -> Sparse:
        return self.mapped(lambda data: data * (np.repeat(roots, self.row_counts()) * roots[self.A.indices]))

    def doubled(self) -> Couplings:
        return Couplings.of_csr(self.without_diagonal().mapped(lambda entries: 2.0 * entries).A)

    def dense(self) -> FloatArray:
        return np.asarray(self.A.toarray())

    def as_sparse(self) -> Sparse:
        return self


def coupling_of(values: Any) -> Coupling:
    """Return the coupling for a matrix, dense or sparse; an object that is a coupling already is returned as it is."""
    if isinstance(values, Coupling):
        return values
    return Sparse.checked(values) if sp.issparse(values) else Dense.checked(values)


def symmetric(n: int, pairs: IntArray, weights: FloatArray) -> sp.coo_array[Any]:
    """Return the n x n matrix with each pair's weight in both places; weights of a pair that is listed again add up."""
    i, j = pairs.T
    both = np.concatenate([i, j]), np.concatenate([j, i])
    return sp.coo_array((np.concatenate([weights, weights]), both), shape=(n, n))


def joined(storage: Coupling, pairs: IntArray) -> Coupling:
    """Return a coupling whose graph is connected like that of ``storage`` with more pairs of spins."""
    if not len(pairs):
        return storage
    every = np.unique(np.sort(np.concatenate([storage.edges()[0], pairs]), axis=1), axis=0)
    return coupling_of(symmetric(storage.n, every, np.ones(len(every))))


def with_kept_zeros(weights: FloatArray) -> FloatArray:
    """Return weights with a tiny number for each zero, which keeps its pair an edge and changes no digit."""
    return np.where(weights == 0.0, KEPT_ZERO, weights)


def square_array(values: Any, name: str) -> FloatArray:
    """Return a copy of a square matrix of finite numbers, or refuse it."""
    A = as_float_array(values, name)
    if A.shape == (0,):
        A = A.reshape(0, 0)
    _refuse_not_square(A.shape, name)
    refuse_non_finite(A, name)
    return A


def square_csr(values: Any, name: str) -> sp.csr_array[Any]:
    """Return a copy of a square sparse matrix of real numbers, or refuse it."""
    if values.dtype.kind not in "biuf":
        raise ModelError(f"{name} holds {values.dtype} values; it must hold real numbers")
    _refuse_not_square(values.shape, name)
    A = sp.csr_array(values, dtype=np.float64, copy=True)
    A.sum_duplicates()
    return A


def _refuse_not_square(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ModelError(f"{name} has shape {shape}; it must be a square matrix, n x n")


def _is_symmetric(A: FloatArray) -> bool:
    """Compare a matrix with its transpose, in blocks that stay in the cache."""
    places = range(0, len(A), BLOCK)
    return all(
        np.array_equal(A[i : i + BLOCK, j : j + BLOCK], A[j : j + BLOCK, i : i + BLOCK].T)
        for i in places
        for j in places
        if j <= i
    )


def _refuse_asymmetric(difference: float, size: float, i: int, j: int, a_ij: float, a_ji: float) -> None:
    if difference > SYMMETRY_TOLERANCE * size:
        raise ModelError(
            f"coupling is not symmetric: [{i}, {j}] is {a_ij:.6g} and [{j}, {i}] is {a_ji:.6g}; "
            "pass (A + A.T) / 2, which gives every state the same weight"
        )

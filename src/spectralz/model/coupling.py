"""How the coupling A of a model is kept: entry by entry, dense or sparse; as rank-1 terms; or as one block.

A :class:`Coupling` answers what a model asks of its coupling, each in the way that suits what is kept. Whoever needs
the entries themselves asks for ``written_out``, which is dense or sparse. Nothing here changes a coupling in place; a
model freezes the arrays of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError, TooLargeError
from spectralz.kernels.coupling import Couplings
from spectralz.model.checks import as_float_array, refuse_non_finite

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "Bipartite",
    "Coupling",
    "Dense",
    "Entries",
    "Factored",
    "Factors",
    "FloatArray",
    "IntArray",
    "Matrix",
    "Sparse",
    "coupling_of",
]

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.int64]"
# scipy's stubs make the sparse classes generic; the scalar type is always float64 here.
Matrix: TypeAlias = "FloatArray | sp.csr_array[Any]"

# Products of rounded numbers (a covariance, say) are symmetric to a few units in the last place of the
# largest entry; anything beyond that is a mistake that averaging would hide.
SYMMETRY_TOLERANCE = 1e-10
# A coupling kept as factors is written out as a matrix only up to this many spins (3 GiB).
MOST_DENSE_SPINS = 20_000


class Factors(NamedTuple):
    """A coupling kept as ``sum_j values_j v_j v_j' + Diag(diagonal)``; the v_j are the rows of ``vectors``."""

    values: FloatArray
    vectors: FloatArray
    diagonal: FloatArray


class Conditioned(NamedTuple):
    """What is left of a coupling once some spins are fixed: that of the others, their field, and a constant."""

    rest: Coupling
    field: FloatArray
    constant: float


class Coupling(ABC):
    """A symmetric coupling A of n spins, however it is kept.

    ``word`` names how that is; ``is_sparse`` says whether its matrix is a scipy CSR array.
    """

    word: ClassVar[str]
    is_sparse: ClassVar[bool]

    # What each way of keeping it answers for itself.

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of spins."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that are kept."""

    @property
    @abstractmethod
    def written_out(self) -> Entries:
        """The same coupling entry by entry, dense or sparse."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """A_ii."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The sum of all |A_ij|, or a bound on it."""

    @abstractmethod
    def quadratic(self, X: FloatArray) -> FloatArray:
        """Return x'Ax of states, the rows of X."""

    @abstractmethod
    def times(self, factor: float) -> Coupling:
        """Return the multiple of it."""

    @abstractmethod
    def plus_diagonal(self, d: FloatArray) -> Coupling:
        """Return A + Diag(d)."""

    @abstractmethod
    def among(self, spins: IntArray) -> Coupling:
        """Return the coupling of some spins, in that order."""

    @abstractmethod
    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        """Return what is left for the free spins, in order, where the fixed ones have values."""

    # What follows from the entries, unless there is a better way.

    @property
    def terms(self) -> Factors | None:
        """The rank-1 terms, where it is kept so."""
        return None

    @property
    def matrix(self) -> Matrix:
        """A, a numpy array or a scipy CSR array."""
        return self.written_out.matrix

    @property
    def edge_count(self) -> int:
        """Number of pairs that are coupled."""
        return self.written_out.edge_count

    @property
    def couples_nothing(self) -> bool:
        """Whether it is known, without writing anything out, that no pair is coupled."""
        return not self.edge_count

    @property
    def least_width(self) -> int:
        """A lower bound on the treewidth that takes no search: the least degree, or half of the mean one."""
        return self.written_out.least_width

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the coupled pairs (m x 2, i < j, in order) and J_ij = 2 A_ij of each."""
        return self.written_out.edges()

    def without_diagonal(self) -> Entries:
        """Return a copy of the entries whose diagonal is zero."""
        return self.written_out.without_diagonal()

    def bordered(self, column: FloatArray) -> Coupling:
        """Return the coupling with one more spin, the last, that ``column`` couples to the others."""
        return self.written_out.bordered(column)

    def dense(self) -> FloatArray:
        """Return A as a numpy array, not to be written to."""
        return self.written_out.dense()

    def for_kernels(self) -> Couplings:
        """Return J = 2 A without its diagonal, as the compiled kernels take it."""
        return self.without_diagonal().mapped(lambda entries: 2.0 * entries).kernel_arrays()

    def summary(self) -> str:
        """Say in a few words what it is, for the model's own text."""
        possible = self.n * (self.n - 1) // 2
        density = self.edge_count / possible if possible else 0.0
        entries = self.written_out
        mean = (entries.total - float(np.abs(self.diagonal).sum())) / max(2 * self.edge_count, 1)
        largest = entries.without_diagonal().largest
        return (
            f"edges={self.edge_count}, density={density:.3g}, |A| mean {mean if self.edge_count else 0.0:.3g} "
            f"max {largest:.3g}"
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # What was derived and kept for later does not travel.
        return type(self), tuple(getattr(self, each.name) for each in fields(cast("Any", self)))

    def freeze(self) -> None:
        """Make all arrays read-only."""
        for array in self.arrays:
            array.flags.writeable = False


class Entries(Coupling):
    """A coupling kept entry by entry."""

    @property
    def written_out(self) -> Entries:
        return self

    @property
    @abstractmethod
    def stored(self) -> FloatArray:
        """The entries that are kept, as one array."""

    @property
    @abstractmethod
    def longest_row(self) -> int:
        """Most entries that are kept in a row."""

    @abstractmethod
    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> Entries:
        """Return a coupling with every entry changed; 0 must stay 0."""

    @abstractmethod
    def congruent(self, roots: FloatArray) -> Entries:
        """Return Diag(roots) A Diag(roots)."""

    @abstractmethod
    def kernel_arrays(self) -> Couplings:
        """Return the entries themselves as the compiled kernels take them."""

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
        own: FloatArray = self.matrix.diagonal()
        return own

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

    @abstractmethod
    def block(self, rows: IntArray, columns: IntArray) -> Any:
        """Return some rows and columns of A, dense or sparse as it is."""

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        push = 2.0 * (self.block(free, fixed) @ value)
        constant = float(value @ (self.block(fixed, fixed) @ value))
        return Conditioned(self.among(free), np.asarray(push), constant)


@dataclass(frozen=True, eq=False)
class Dense(Entries):
    """All n^2 entries."""

    A: FloatArray

    word: ClassVar[str] = "dense"
    is_sparse: ClassVar[bool] = False

    @classmethod
    def checked(cls, values: Any) -> Dense:
        """Check a square matrix of numbers and keep a copy of it."""
        A = as_float_array(values, "coupling")
        if A.shape == (0,):
            A = A.reshape(0, 0)
        _refuse_not_square(A.shape)
        refuse_non_finite(A, "coupling")
        if np.array_equal(A, A.T):
            return cls(A)
        difference = np.abs(A / 2.0 - A.T / 2.0)
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(difference)), A.shape))
        _refuse_asymmetric(float(difference[i, j]), float(np.abs(A).max()), i, j, float(A[i, j]), float(A[j, i]))
        return cls(A / 2.0 + A.T / 2.0)

    @property
    def n(self) -> int:
        return len(self.A)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.A,)

    @property
    def matrix(self) -> FloatArray:
        return self.A

    @property
    def stored(self) -> FloatArray:
        return self.A

    @property
    def longest_row(self) -> int:
        return self.n

    def row_counts(self) -> IntArray:
        return np.asarray(np.count_nonzero(self.A, axis=1))

    def edges(self) -> tuple[IntArray, FloatArray]:
        i, j = np.nonzero(np.triu(self.A, k=1))
        return np.column_stack([i, j]).astype(np.int64), 2.0 * self.A[i, j]

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

    def congruent(self, roots: FloatArray) -> Dense:
        return Dense(self.A * np.outer(roots, roots))

    def dense(self) -> FloatArray:
        return self.A

    def as_sparse(self) -> Sparse:
        return Sparse(sp.csr_array(self.A))

    def kernel_arrays(self) -> Couplings:
        return Couplings.of_dense(self.A)


@dataclass(frozen=True, eq=False)
class Sparse(Entries):
    """The entries that are not zero, as a CSR matrix in canonical order."""

    A: sp.csr_array[Any]

    word: ClassVar[str] = "sparse"
    is_sparse: ClassVar[bool] = True

    @classmethod
    def checked(cls, values: Any) -> Sparse:
        """Check a square sparse matrix of numbers and keep a copy of it."""
        if values.dtype.kind not in "biuf":
            raise ModelError(f"coupling holds {values.dtype} values; it must hold real numbers")
        _refuse_not_square(values.shape)
        A = sp.csr_array(values, dtype=np.float64, copy=True)
        A.sum_duplicates()
        bad = np.flatnonzero(~np.isfinite(A.data))
        if len(bad):
            row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
            raise ModelError(
                f"coupling[{row}, {int(A.indices[bad[0]])}] is {A.data[bad[0]]}; every number of a model must be "
                "finite (write a hard constraint with Ising.condition, not with an infinite weight)"
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
        """Keep a matrix that nobody else has, its entries in order and no zero among them."""
        own = sp.csr_array(A)
        own.eliminate_zeros()
        own.sort_indices()
        return cls(own)

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.A.data, self.A.indices, self.A.indptr

    @property
    def matrix(self) -> sp.csr_array[Any]:
        return self.A

    @property
    def stored(self) -> FloatArray:
        own: FloatArray = self.A.data
        return own

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

    def dense(self) -> FloatArray:
        return np.asarray(self.A.toarray())

    def as_sparse(self) -> Sparse:
        return self

    def kernel_arrays(self) -> Couplings:
        return Couplings.of_csr(self.A)


@dataclass(frozen=True, eq=False)
class Factored(Coupling):
    """A few rank-1 terms and a diagonal, never written out unless somebody asks for the entries."""

    factors: Factors

    word: ClassVar[str] = "factors"
    is_sparse: ClassVar[bool] = False

    @classmethod
    def checked(cls, values: Any, vectors: Any, diagonal: Any) -> Factored:
        """Check the terms and keep a copy of them."""
        own = np.atleast_1d(as_float_array(values, "values"))
        rows = np.atleast_2d(as_float_array(vectors, "vectors"))
        if own.ndim != 1 or rows.ndim != 2 or len(own) != len(rows):
            raise ModelError(
                f"values has shape {own.shape} and vectors {rows.shape}; "
                "give one number and one row of n numbers for each rank-1 term"
            )
        n = rows.shape[1]
        spread = as_float_array(diagonal, "diagonal")
        if spread.shape not in ((), (n,)):
            raise ModelError(f"diagonal has shape {spread.shape}; a model of {n} spins wants ({n},) or one number")
        for array, name in ((own, "values"), (rows, "vectors"), (spread, "diagonal")):
            refuse_non_finite(array, name)
        return cls(Factors(own, rows, np.array(np.broadcast_to(spread, (n,)))))

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
        values, vectors, diagonal = self.factors
        A = (values[:, None] * vectors).T @ vectors
        A = (A + A.T) / 2.0
        A[np.diag_indices(self.n)] += diagonal
        A.flags.writeable = False
        return Dense(A)

    @property
    def diagonal(self) -> FloatArray:
        values, vectors, diagonal = self.factors
        return np.asarray(diagonal + np.einsum("j,ji,ji->i", values, vectors, vectors))

    @property
    def total(self) -> float:
        values, vectors, diagonal = self.factors
        with np.errstate(over="ignore"):
            norms = np.abs(vectors).sum(axis=1)
            return float((np.abs(values) * norms**2).sum() + np.abs(diagonal).sum())

    @property
    def couples_nothing(self) -> bool:
        return False  # not known without writing it out

    @property
    def least_width(self) -> int:
        used = (self.factors.vectors != 0.0) & (self.factors.values != 0.0)[:, None]
        if len(used) == 1:
            return max(int(used.sum()) - 1, 0)  # one rank-1 term joins all its spins
        return self.n - 1 if self.n > MOST_DENSE_SPINS else self.written_out.least_width

    def quadratic(self, X: FloatArray) -> FloatArray:
        values, vectors, diagonal = self.factors
        return np.asarray((X @ vectors.T) ** 2 @ values + diagonal.sum())

    def times(self, factor: float) -> Factored:
        values, vectors, diagonal = self.factors
        return Factored(Factors(factor * values, vectors, factor * diagonal))

    def plus_diagonal(self, d: FloatArray) -> Factored:
        return Factored(self.factors._replace(diagonal=self.factors.diagonal + d))

    def among(self, spins: IntArray) -> Factored:
        values, vectors, diagonal = self.factors
        return Factored(Factors(values, vectors[:, spins], diagonal[spins]))

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        values, vectors, diagonal = self.factors
        sums = vectors[:, fixed] @ value
        constant = float(values @ sums**2 + diagonal[fixed].sum())
        return Conditioned(self.among(free), 2.0 * (values * sums) @ vectors[:, free], constant)

    def summary(self) -> str:
        values, vectors, _ = self.factors
        most = float((np.abs(values) * (vectors**2).max(axis=1, initial=0.0)).sum())
        return f"rank {len(values)} plus diagonal, |A| at most {most:.3g}"


@dataclass(frozen=True, eq=False)
class Bipartite(Coupling):
    """One rectangular block between two layers of spins: the first have its rows, the others its columns."""

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
        i, j = pairs.T
        rows, columns, halves = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([J, J]) / 2.0
        made = Sparse.checked(sp.coo_array((halves, (rows, columns)), shape=(self.n, self.n)))
        made.freeze()
        return made

    @property
    def diagonal(self) -> FloatArray:
        return np.zeros(self.n)

    @property
    def total(self) -> float:
        return 2.0 * float(np.abs(self.B).sum())

    @cached_property
    def edge_count(self) -> int:
        return int(np.count_nonzero(self.B))

    def edges(self) -> tuple[IntArray, FloatArray]:
        i, j = np.nonzero(self.B)
        return np.column_stack([i, j + len(self.B)]).astype(np.int64), 2.0 * self.B[i, j]

    def quadratic(self, X: FloatArray) -> FloatArray:
        first, second = X[:, : len(self.B)], X[:, len(self.B) :]
        return np.asarray(2.0 * np.einsum("mj,mj->m", first @ self.B, second))

    def times(self, factor: float) -> Bipartite:
        return Bipartite(factor * self.B)

    def plus_diagonal(self, d: FloatArray) -> Sparse:
        return self.written_out.plus_diagonal(d)

    def among(self, spins: IntArray) -> Coupling:
        is_first = spins < len(self.B)
        if np.any(np.diff(is_first.astype(np.int8)) > 0):  # the layers are mixed up
            return self.written_out.among(spins)
        return Bipartite(self.B[np.ix_(spins[is_first], spins[~is_first] - len(self.B))])

    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        x = np.zeros(self.n)
        x[fixed] = value
        first, second = x[: len(self.B)], x[len(self.B) :]
        push = 2.0 * np.concatenate([self.B @ second, first @ self.B])
        return Conditioned(self.among(free), push[free], 2.0 * float(first @ self.B @ second))


def coupling_of(values: Any) -> Coupling:
    """Return the coupling that a matrix, dense or sparse, stands for; one that is a coupling already stays as it is."""
    if isinstance(values, Coupling):
        return values
    return Sparse.checked(values) if sp.issparse(values) else Dense.checked(values)


def _refuse_not_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ModelError(f"coupling has shape {shape}; it must be a square matrix, n x n")


def _refuse_asymmetric(difference: float, size: float, i: int, j: int, a_ij: float, a_ji: float) -> None:
    if difference > SYMMETRY_TOLERANCE * size:
        raise ModelError(
            f"coupling is not symmetric: [{i}, {j}] is {a_ij:.6g} and [{j}, {i}] is {a_ji:.6g}; "
            "pass (A + A.T) / 2, which gives every state the same weight"
        )

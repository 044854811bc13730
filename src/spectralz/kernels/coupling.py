"""The couplings of a model as one value for compiled functions: rows of a dense or a sparse matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.arrays import ColumnArray, FloatArray, IntArray

# Entries that are processed together.
PART = 1 << 20


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array.

    Kernels are compiled for each type of array they are called with, and read-only arrays are a type of their own.
    """
    view = array.view()
    view.flags.writeable = False
    return view


class Couplings(NamedTuple):
    """A symmetric matrix as the arrays of a CSR matrix; in most kernels J = 2 A without its diagonal.

    A named tuple, which compiled functions take as one argument.

    Attributes
    ----------
    data
        The entries, row by row.
    indices
        The column of each entry; empty where the matrix is dense.
    indptr
        Row i is ``data[indptr[i] : indptr[i + 1]]``; n + 1 numbers.
    is_dense
        Whether every row has all n entries: entry ``indptr[i] + j`` is then that of column j.
    """

    data: FloatArray
    indices: ColumnArray
    indptr: IntArray
    is_dense: bool

    @classmethod
    def of_dense(cls, J: FloatArray) -> Couplings:
        """Return the rows of a square array."""
        n = len(J)
        starts = n * np.arange(n + 1, dtype=np.int64)
        return cls(frozen(np.ascontiguousarray(J).ravel()), frozen(np.empty(0, np.int32)), frozen(starts), True)

    @classmethod
    def of_csr(cls, J: Any) -> Couplings:
        """Return the rows of a scipy CSR array."""
        indices, indptr = J.indices.astype(np.int32, copy=False), J.indptr.astype(np.int64, copy=False)
        return cls(frozen(J.data), frozen(indices), frozen(indptr), False)

    def times(self, v: FloatArray) -> FloatArray:
        """Return the product of the matrix and a vector."""
        n = len(v)
        if self.is_dense:
            return np.asarray(self.data.reshape(n, n) @ v)
        import scipy.sparse as sp

        return np.asarray(sp.csr_array((self.data, self.indices, self.indptr), shape=(n, n)) @ v)

    def row_sums_of_sizes(self) -> FloatArray:
        """Return sum_j |J_ij| for each row i."""
        n = len(self.indptr) - 1
        sums = np.zeros(n)
        if self.is_dense:
            rows, together = self.data.reshape(n, n), max(PART // max(n, 1), 1)
            for begin in range(0, n, together):  # in parts, so that a large model is not copied
                sums[begin : begin + together] = np.abs(rows[begin : begin + together]).sum(axis=1)
        elif len(self.data):
            # The sum of an empty row would be the next row's first entry.
            starts = np.add.reduceat(np.append(np.abs(self.data), 0.0), self.indptr[:-1])
            sums = np.where(np.diff(self.indptr) > 0, starts, 0.0)
        return sums

    @property
    def longest_row(self) -> int:
        """Most entries in a row."""
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def mean_strength(self) -> float:
        """The root of the mean over rows i of sum_j J_ij^2."""
        largest = max(float(self.data.max(initial=0.0)), -float(self.data.min(initial=0.0)))
        if largest == 0.0:
            return 0.0
        # The scale is taken out of the root so that the squares do not overflow; in parts, so that a large model is not
        # copied.
        parts = (self.data[begin : begin + PART] for begin in range(0, len(self.data), PART))
        total = math.fsum(float(((part / largest) ** 2).sum()) for part in parts)
        return largest * math.sqrt(total / (len(self.indptr) - 1))

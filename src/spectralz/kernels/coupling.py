"""The couplings of a model as one value that compiled functions take: rows of a dense or a sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Couplings"]


class Couplings(NamedTuple):
    """A symmetric matrix as the arrays of a CSR matrix: of most kernels J = 2 A without its diagonal.

    A named tuple, because that is what compiled functions take whole.

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

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    is_dense: bool

    @classmethod
    def of_dense(cls, J: NDArray[np.float64]) -> Couplings:
        """Return the rows of a square array."""
        n = len(J)
        return cls(np.ascontiguousarray(J).ravel(), np.empty(0, np.int32), n * np.arange(n + 1, dtype=np.int64), True)

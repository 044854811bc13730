"""The couplings of a model as kernels take them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Couplings"]


class Couplings(NamedTuple):
    """J = 2 A without its diagonal as the arrays of a CSR matrix; of a dense one every row has n entries."""

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    is_dense: bool

    @classmethod
    def of_dense(cls, J: NDArray[np.float64]) -> Couplings:
        """Return a numpy array as kernels take it."""
        n = len(J)
        return cls(J.ravel(), np.empty(0, np.int32), n * np.arange(n + 1, dtype=np.int64), True)

    @classmethod
    def of_csr(cls, J: Any) -> Couplings:
        """Return a scipy CSR array as kernels take it."""
        return cls(J.data, J.indices.astype(np.int32), J.indptr.astype(np.int64), False)

    @property
    def longest_row(self) -> int:
        """Most entries in a row."""
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def mean_strength(self) -> float:
        """The root of sum_j J_ij^2, averaged over the spins i."""
        largest = float(np.abs(self.data).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        # Taken out of the root, lest the squares overflow.
        return largest * math.sqrt(float(((self.data / largest) ** 2).sum()) / (len(self.indptr) - 1))

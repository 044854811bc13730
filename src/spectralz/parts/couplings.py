"""The couplings of a model as methods and kernels take them: without the diagonal, which only adds a constant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.kernels.coupling import Couplings

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Ising

__all__ = ["Couplings", "couplings_of", "dense_couplings", "mean_strength", "without_diagonal"]


def couplings_of(model: Ising) -> Couplings:
    """Return J of a model as the compiled kernels take it."""
    J = 2.0 * without_diagonal(model)
    if model.is_sparse:
        return Couplings(J.data, J.indices.astype(np.int32), J.indptr.astype(np.int64), False)
    return dense_couplings(J)


def dense_couplings(J: FloatArray) -> Couplings:
    """Return a matrix J as the compiled kernels take it."""
    return Couplings.of_dense(J)


def mean_strength(J: FloatArray, n: int) -> float:
    """Return the root of sum_j J_ij^2, averaged over the n spins i; J holds each coupling in both directions."""
    largest = float(np.abs(J).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    # Taken out of the root, lest the squares overflow.
    return largest * math.sqrt(float(((J / largest) ** 2).sum()) / n)


def without_diagonal(model: Ising) -> Any:
    """Return A without its diagonal, dense or sparse as it is."""
    A: Any = model.coupling
    if model.is_sparse:
        C = sp.csr_array(A - sp.diags_array(A.diagonal(), format="csr"))
        C.eliminate_zeros()
        return C
    C = np.array(A)
    np.fill_diagonal(C, 0.0)
    return C

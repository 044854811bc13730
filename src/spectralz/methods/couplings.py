"""The couplings of a model as methods and kernels take them: without the diagonal, which only adds a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising

__all__ = ["Couplings", "couplings_of", "without_diagonal"]


class Couplings(NamedTuple):
    """J = 2 A without its diagonal as the arrays of a CSR matrix; of a dense one every row has n entries."""

    data: FloatArray
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    is_dense: bool


def couplings_of(model: Ising) -> Couplings:
    """Return J of a model as the compiled kernels take it."""
    J = 2.0 * without_diagonal(model)
    if model.is_sparse:
        return Couplings(J.data, J.indices.astype(np.int32), J.indptr.astype(np.int64), False)
    rows = model.n * np.arange(model.n + 1, dtype=np.int64)
    return Couplings(J.ravel(), np.empty(0, np.int32), rows, True)


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

"""Storage of the coupling A of a model: entry by entry, dense or sparse; as rank-1 terms; or as one block."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from spectralz.model.coupling.base import Coupling, Factors, FloatArray, IntArray, Matrix
from spectralz.model.coupling.bipartite import Bipartite
from spectralz.model.coupling.entries import Dense, Entries, Sparse
from spectralz.model.coupling.factored import Factored

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


def coupling_of(values: Any) -> Coupling:
    """Return the coupling for a matrix, dense or sparse; an object that is a coupling already is returned as it is."""
    if isinstance(values, Coupling):
        return values
    return Sparse.checked(values) if sp.issparse(values) else Dense.checked(values)

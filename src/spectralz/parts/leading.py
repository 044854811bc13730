"""The leading directions of a coupling: where collective states lie, which cooling from random states may miss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from spectralz._support import clock

if TYPE_CHECKING:
    from spectralz.model import Coupling, FloatArray

__all__ = ["leading_directions"]

# Collective states are looked for along so many.
DIRECTIONS = 2
# Beyond this many spins or entries the search takes longer than it is worth.
MOST_SPINS, MOST_ENTRIES = 200_000, 50_000_000
# A direction is a place to start from: a few digits do.
TOLERANCE = 1e-3
# Operations of a step per spin, beside one per entry of the coupling.
OPERATIONS_PER_SPIN = 100.0
# So few spins are diagonalized whole.
FEW_SPINS = 50


def leading_directions(storage: Coupling, count: int = DIRECTIONS) -> list[FloatArray]:
    """Return the eigenvectors of the largest positive eigenvalues, each of length sqrt(n), without the diagonal.

    None where no pair is coupled, where finding them would take long, or where the time is up before
    (``_support/clock.py``).
    """
    if storage.couples_nothing or storage.n > MOST_SPINS or storage.edge_count > MOST_ENTRIES:
        return []
    entries = storage.without_diagonal()
    largest = entries.largest
    if largest == 0.0:
        return []
    # Divided by the largest, no power of huge or tiny couplings leaves the numbers there are.
    with np.errstate(over="ignore"):  # of tiny numbers older releases of numpy say so, wrongly
        scaled = entries.mapped(lambda entry: entry / largest)
    if storage.n <= FEW_SPINS:
        values, vectors = np.linalg.eigh(scaled.dense())
        values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    else:
        found = _by_lanczos(scaled.matrix, count)
        if found is None:
            return []
        values, vectors = found
    return [math.sqrt(storage.n) * vector for value, vector in zip(values, vectors.T, strict=True) if value > 0.0]


class _TimeIsUpError(Exception):
    """Ends the search from within."""


def _by_lanczos(matrix: Any, count: int) -> tuple[FloatArray, FloatArray] | None:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = matrix.shape[0]
    entries = matrix.nnz if issparse(matrix) else n * n

    def times(vector: FloatArray) -> FloatArray:
        if clock.is_up():
            raise _TimeIsUpError
        clock.charge(entries + OPERATIONS_PER_SPIN * n)
        return np.asarray(matrix @ vector)

    start = np.random.default_rng(0).standard_normal(n)  # the same in every run
    try:
        operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
        values, vectors = eigsh(operator, k=count, which="LA", v0=start, tol=TOLERANCE)
    except _TimeIsUpError:
        return None
    except ArpackNoConvergence as found:
        values, vectors = found.eigenvalues, found.eigenvectors
    order = np.argsort(-values)
    return values[order], vectors[:, order]

"""Matrices of weights that count each pair once: symmetric or upper triangular."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError
from spectralz.model.coupling.entries import SYMMETRY_TOLERANCE, square_array, square_csr

if TYPE_CHECKING:
    from spectralz.model.coupling.base import Matrix


def checked_pairs(values: Any, name: str, diagonal: str) -> Matrix:
    """Return a symmetric matrix with zero diagonal whose entry [i, j] is the weight of a pair, counted once.

    Parameters
    ----------
    values
        A symmetric matrix, or one that is zero below its diagonal; an array or any scipy.sparse matrix.
    name
        Its name in messages.
    diagonal
        Where a weight on the diagonal belongs instead, as a sentence.
    """
    matrix: Any = square_csr(values, name) if sp.issparse(values) else square_array(values, name)
    if sp.issparse(matrix) and not np.all(np.isfinite(matrix.data)):
        raise ModelError(f"{name} has an entry that is not finite; every number of a model must be finite")
    if matrix.diagonal().any():
        i = int(np.flatnonzero(matrix.diagonal())[0])
        raise ModelError(f"{name}[{i}, {i}] is {matrix.diagonal()[i]:g}; it pairs no two spins: {diagonal}")
    lower = sp.tril(matrix, k=-1) if sp.issparse(matrix) else np.tril(matrix, k=-1)
    if _size(lower) == 0.0:
        return matrix + matrix.T
    if np.all(_size(matrix / 2.0 - matrix.T / 2.0) <= SYMMETRY_TOLERANCE * _size(matrix)):
        return matrix / 2.0 + matrix.T / 2.0
    wrong = _largest_difference(matrix)
    raise ModelError(
        f"{name} is neither symmetric nor upper triangular: [{wrong[0]}, {wrong[1]}] is {matrix[wrong]:g} and "
        f"[{wrong[1]}, {wrong[0]}] is {matrix[wrong[::-1]]:g}; give each pair i < j once, in the upper triangle"
    )


def _size(matrix: Any) -> float:
    entries = matrix.data if sp.issparse(matrix) else matrix
    return float(np.abs(entries).max(initial=0.0))


def _largest_difference(matrix: Any) -> tuple[int, int]:
    """Return the pair i < j whose two entries differ most."""
    difference = sp.triu(sp.coo_array(matrix / 2.0 - matrix.T / 2.0), format="coo")
    worst = int(np.argmax(np.abs(difference.data)))
    return int(difference.row[worst]), int(difference.col[worst])

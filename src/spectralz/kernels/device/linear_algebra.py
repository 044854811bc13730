"""Eigenvalues and eigenvectors of large matrices by JAX: arrays of numpy in, arrays of numpy out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spectralz._support.devices import computing_on, refuse_too_large

if TYPE_CHECKING:
    from jax import Array

    from spectralz.kernels.arrays import FloatArray

# Matrices that are on the device together: what is given, what is found, and the workspaces of the library.
MATRICES = 6
ROWS_AT_A_TIME = 1024


def eigenpairs_in_place(matrix: FloatArray, device: Any) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns.

    The eigenvectors are written over the matrix, each of them in a row, so that no more room is taken here.
    """
    n = len(matrix)
    refuse_matrix(n, device)
    with computing_on(device):
        values, rows = _eigenpairs(jnp.array(matrix))
        ascending = np.array(values)
        size = min(n, ROWS_AT_A_TIME)
        for begin in (*range(0, n - size, size), n - size):
            matrix[begin : begin + size] = np.asarray(_some_rows(rows, begin, size))
    return ascending, matrix.T


def eigenvalues(matrix: FloatArray, device: Any) -> FloatArray:
    """Return the eigenvalues of a symmetric matrix in ascending order."""
    refuse_matrix(len(matrix), device)
    with computing_on(device):
        return np.array(jnp.linalg.eigvalsh(matrix, symmetrize_input=False))


@partial(jax.jit, static_argnames="size")
def _some_rows(rows: Array, begin: Array, size: int) -> Array:
    return lax.dynamic_slice_in_dim(rows, begin, size)


@jax.jit
def _eigenpairs(matrix: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors.T


def refuse_matrix(n: int, device: Any) -> None:
    """Complain if the device cannot work on matrices of n x n numbers."""
    refuse_too_large(device, 8.0 * MATRICES * n**2, f"a matrix of {n} x {n} numbers")

"""Factorizations, inverses and eigenvectors of large matrices by JAX: arrays of numpy in, arrays of numpy out.

On a GPU double precision is as fast as the transfer, so that all of it is in double precision; results have the
precision of what was given.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve

from spectralz._support.devices import computing_on, refuse_too_large
from spectralz.kernels.device import products

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array
    from numpy.typing import NDArray

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


def inverse(matrix: NDArray[Any], device: Any) -> tuple[NDArray[Any], float] | None:
    """Return the inverse and log det of a symmetric matrix, or None if it is not positive definite."""
    refuse_matrix(len(matrix), device)
    with computing_on(device):
        inverted, log_det = _inverse(jnp.asarray(matrix))
        log_det = float(log_det)
        return (np.array(inverted), log_det) if np.isfinite(log_det) else None


@jax.jit
def _inverse(matrix: Array) -> tuple[Array, Array]:
    factor, log_det = _factor(matrix)
    half = lax.linalg.triangular_solve(factor, jnp.eye(len(matrix), dtype=factor.dtype), left_side=True, lower=True)
    inverted = products.product(half.T, half)
    return (0.5 * (inverted + inverted.T)).astype(matrix.dtype), log_det


def factored(matrix: NDArray[Any], device: Any) -> tuple[Callable[[FloatArray], FloatArray], float] | None:
    """Return what solves with a symmetric matrix, and its log det; None if it is not positive definite."""
    refuse_matrix(len(matrix), device)
    with computing_on(device):
        factor, log_det = _factor(jnp.asarray(matrix))
        if not np.isfinite(float(log_det)):
            return None

    def solved(right: FloatArray) -> FloatArray:
        with computing_on(device):
            return np.array(_solved(factor, jnp.asarray(right)))

    return solved, float(log_det)


@jax.jit
def _factor(matrix: Array) -> tuple[Array, Array]:
    """Return the factor L of L L', and log det; all of it is NaN where the matrix is not positive definite."""
    factor = lax.linalg.cholesky(matrix.astype(jnp.float64), symmetrize_input=False)
    return factor, 2.0 * jnp.log(jnp.diagonal(factor)).sum()


@jax.jit
def _solved(factor: Array, right: Array) -> Array:
    return cho_solve((factor, True), right)


def product(a: NDArray[Any], b: NDArray[Any], device: Any) -> NDArray[Any]:
    """Return a b."""
    refuse_matrix(len(a), device)
    with computing_on(device):
        return np.array(_product(jnp.asarray(a), jnp.asarray(b)))


@jax.jit
def _product(a: Array, b: Array) -> Array:
    whole = products.product(a.astype(jnp.float64), b.astype(jnp.float64))
    return whole.astype(a.dtype)


def refuse_matrix(n: int, device: Any) -> None:
    """Complain if the device cannot work on matrices of n x n numbers."""
    refuse_too_large(device, 8.0 * MATRICES * n**2, f"a matrix of {n} x {n} numbers")

"""The large arrays of the proof that ``kernels/sdp/certificate.py`` makes, in JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from spectralz.kernels.device.products import product

if TYPE_CHECKING:
    from jax import Array
    from numpy.typing import NDArray

# Rows of L that are multiplied out together. JAX tries ways to do a product before it takes one: with all rows of
# 20,000 that took longer than the proof.
ROWS_AT_A_TIME = 2048


def sent(C: NDArray[Any]) -> Array:
    """Return a matrix as an array of the device."""
    return jnp.asarray(C)


def largest_row_sum(C: Array, roots: NDArray[Any]) -> float:
    """Return the largest sum of sizes in a row of C, scaled by ``roots`` from both sides."""
    return float(_largest_row_sum(C, roots))


def factor_and_residual(C: Array, roots: NDArray[Any], diagonal: float) -> tuple[float, float]:
    """Factorize M, which is -C scaled by ``roots`` from both sides with that diagonal, and multiply out.

    Returns |L|_F^2 and |M - L L'|_F, which are NaN where M is not positive definite. Rounding may leave M not quite
    symmetric; what is said of it holds of its symmetric part.
    """
    squares, residual = _factor_and_residual(C, roots, diagonal)
    return float(squares), float(residual)


def _scaled(C: Array, roots: Array) -> Array:
    return (C * -roots[:, None]) * roots[None, :]


@jax.jit
def _largest_row_sum(C: Array, roots: Array) -> Array:
    return jnp.abs(_scaled(C, roots)).sum(axis=1).max()


@jax.jit
def _factor_and_residual(C: Array, roots: Array, diagonal: Array) -> tuple[Array, Array]:
    spins = jnp.arange(len(C))
    M = jnp.where(spins[:, None] == spins[None, :], diagonal, _scaled(C, roots))
    L = lax.linalg.cholesky(M, symmetrize_input=False)
    n = len(C)
    size = min(ROWS_AT_A_TIME, n)

    def added(b: Array, squares: Array) -> Array:
        begin = jnp.minimum(b * size, n - size)  # the last block may overlap the one before
        rows = lax.dynamic_slice_in_dim(M, begin, size) - product(lax.dynamic_slice_in_dim(L, begin, size), L.T)
        is_new = begin + jnp.arange(size) >= b * size
        return squares + jnp.sum(jnp.where(is_new[:, None], rows * rows, 0.0))

    squares = lax.fori_loop(0, -(-n // size), added, jnp.zeros((), M.dtype))
    return jnp.sum(L * L), jnp.sqrt(squares)

"""Naive mean field from several starts at once, in JAX.

Spins are set to their best in blocks, those of a block at the same time, where the compiled code takes them one by one:
each of them would be a few kernels of its own. Blocks are so small beside the model that this ascends as well, in
practice; no bound rests on it, since all means give one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from spectralz.kernels.device.products import product

if TYPE_CHECKING:
    from jax import Array

# Spins in a block, and blocks in a model at least: in few of them, means would follow each other round in circles.
BLOCK, FEWEST_BLOCKS = 64, 32


@jax.jit
def doubled(A: Array) -> Array:
    """Return J = 2 A without its diagonal."""
    spins = jnp.arange(len(A))
    return jnp.where(spins[:, None] == spins[None, :], 0.0, 2.0 * A)


@partial(jax.jit, static_argnames="sweeps")
def swept(h: Array, theta: Array, J: Array, sweeps: int) -> tuple[Array, Array]:
    """Return the fields of all starts, one per column, after some sweeps, and the largest change of a mean in the last.

    The fields are those of the means before them, block by block.
    """
    n = len(h)
    size = max(min(BLOCK, n // FEWEST_BLOCKS), 1)

    def moved(b: Array, at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        h, mean, change = at
        begin = jnp.minimum(b * size, n - size)  # the last block may overlap the one before
        rows = lax.dynamic_slice_in_dim(J, begin, size)
        field = product(rows, mean)
        field = field + lax.dynamic_slice_in_dim(theta, begin, size)[:, None]
        new = jnp.tanh(field)
        change = jnp.maximum(change, jnp.abs(new - lax.dynamic_slice_in_dim(mean, begin, size)).max())
        return (
            lax.dynamic_update_slice_in_dim(h, field, begin, 0),
            lax.dynamic_update_slice_in_dim(mean, new, begin, 0),
            change,
        )

    def once(_: Array, at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        return lax.fori_loop(0, -(-n // size), moved, (at[0], at[1], jnp.zeros((), h.dtype)))

    h, _, change = lax.fori_loop(0, sweeps, once, (h, jnp.tanh(h), jnp.zeros((), h.dtype)))
    return h, change

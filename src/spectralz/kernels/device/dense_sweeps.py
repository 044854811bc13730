"""Heat-bath sweeps of a dense coupling over many states at once, in JAX.

States are columns of ±1 in single precision. Spins take turns in blocks. The fields of a block of 128 spins are one
product with all states. Within it, groups of spins hear of the turned spins of earlier groups by a small product, and
those of one group are written out one after the other, so that the compiler makes a single kernel of them: on a GPU it
is the start of kernels that takes the time, not arithmetic.

Products are in single precision in full. The shorter formats that GPUs multiply faster (TF32) have errors of 1e-3 in
fields, which shift the stationary law. Changes of the energy are added up in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from jax import Array

__all__ = [
    "BLOCK",
    "DensePath",
    "drawn_from",
    "energies",
    "logistic",
    "product",
    "random_key",
    "sweep",
    "sweep_at_random",
]

# Spins whose fields are one product.
BLOCK = 128


class DensePath(NamedTuple):
    """The models on a path: n spins, padded with spins without couplings to a multiple of ``BLOCK``.

    At beta a state weighs exp(<base, x> + beta E(x)), with E(x) = <change, x> + x' J x / 2.

    Attributes
    ----------
    base, change
        Fields of the base, and those of the model less them.
    coupling
        J, without diagonal.
    """

    base: Array
    change: Array
    coupling: Array


def product(a: Array, b: Array) -> Array:
    """Return a matrix product in the precision that its arguments have."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def random_key(seed: int) -> Any:
    """Return the key of a stream of random numbers, which are the same on every device."""
    return jax.random.key(seed, impl="threefry2x32")


def logistic(key: Any, shape: tuple[int, ...]) -> Array:
    """Return logistic numbers: a spin is up where its log-odds exceed one of them."""
    return jax.random.logistic(key, shape, jnp.float32)


@partial(jax.jit, static_argnames=("size",))
def drawn_from(key: Any, base: Array, size: int) -> Array:
    """Return states of independent spins in fields ``base``, one per column."""
    noise = logistic(key, (len(base), size))
    return jnp.where(2.0 * base[:, None] > noise, jnp.float32(1.0), jnp.float32(-1.0))


@jax.jit
def energies(x: Array, path: DensePath) -> Array:
    """Return E(x) of every state, summed up in double precision."""
    fields = product(path.coupling, x)
    terms = x.astype(jnp.float64) * (path.change[:, None] + 0.5 * fields.astype(jnp.float64))
    return terms.sum(axis=0)


@partial(jax.jit, static_argnames=("group",), donate_argnames=("x",))
def sweep_at_random(
    x: Array, energy: Array, key: Any, beta: Array, path: DensePath, group: int
) -> tuple[Array, Array, Any]:
    """Sweep once with random numbers of the key; return the states, E of each, and the next key."""
    key, own = jax.random.split(key)
    noise = logistic(own, x.shape)
    x, change = sweep(x, beta, path, noise, group)
    return x, energy + change, key


def sweep(x: Array, beta: Array, path: DensePath, noise: Array, group: int) -> tuple[Array, Array]:
    """Draw every spin once given the others: it is up where its log-odds exceed its noise, a logistic number.

    Returns the states, and what E has changed by, for each.
    """

    def turn_block(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, change = state
        begin = k * BLOCK
        coupling = lax.dynamic_slice_in_dim(path.coupling, begin, BLOCK)
        own = lax.dynamic_slice_in_dim(coupling, begin, BLOCK, axis=1)
        field = product(coupling, x) + lax.dynamic_slice_in_dim(path.change, begin, BLOCK)[:, None]
        before = lax.dynamic_slice_in_dim(x, begin, BLOCK)
        threshold = lax.dynamic_slice_in_dim(noise, begin, BLOCK) - (
            2.0 * lax.dynamic_slice_in_dim(path.base, begin, BLOCK)[:, None]
        )
        turned = _turned(before, field, own, threshold, 2.0 * beta, group)
        gained = turned * (field + 0.5 * product(own, turned))
        x = lax.dynamic_update_slice_in_dim(x, before + turned, begin, axis=0)
        return x, change + gained.sum(axis=0).astype(jnp.float64)

    start = x, jnp.zeros(x.shape[1], jnp.float64)
    found: tuple[Array, Array] = lax.fori_loop(0, x.shape[0] // BLOCK, turn_block, start)
    return found


def _turned(before: Array, field: Array, own: Array, threshold: Array, scale: Array, group: int) -> Array:
    """Return by how much the spins of a block change: 0, or ±2."""

    def turn_group(g: Any, turned: Array) -> Array:
        begin = g * group
        rows = lax.dynamic_slice_in_dim(own, begin, group)
        h = lax.dynamic_slice_in_dim(field, begin, group) + product(rows, turned)
        among = lax.dynamic_slice_in_dim(rows, begin, group, axis=1)
        x = lax.dynamic_slice_in_dim(before, begin, group)
        least = lax.dynamic_slice_in_dim(threshold, begin, group)
        changes: list[Array] = []
        for i in range(group):
            h_i = h[i]
            for j, change in enumerate(changes):
                h_i = h_i + among[i, j] * change
            changes.append(jnp.where(scale * h_i > least[i], jnp.float32(1.0), jnp.float32(-1.0)) - x[i])
        return lax.dynamic_update_slice_in_dim(turned, jnp.stack(changes), begin, axis=0)

    found: Array = lax.fori_loop(0, BLOCK // group, turn_group, jnp.zeros_like(before))
    return found

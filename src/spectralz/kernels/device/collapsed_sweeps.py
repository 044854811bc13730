"""Sweeps of bipartite models with one side summed out, in JAX: layer by layer, each a product over all states.

The path and its weights are those of ``kernels/sampling/collapsed.py``. States are columns. Products are in single
precision in full, log-weights in double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from spectralz.kernels.device.dense_sweeps import logistic
from spectralz.kernels.device.products import product

if TYPE_CHECKING:
    from jax import Array


class SidesPath(NamedTuple):
    """The models on a path, as of ``CollapsedPath``: fields in double precision, couplings in single."""

    weights: Array
    kept: Array
    kept_change: Array
    summed: Array
    summed_change: Array


def drawn_side(pushes: Array, beta: Array | float, base: Array, change: Array, noise: Array) -> Array:
    """Return the spins of a side, in the fields ``pushes`` that the other side has on them, as logistic noise says."""
    field = (base + beta * change).astype(jnp.float32)[:, None] + jnp.float32(beta) * pushes
    return jnp.where(2.0 * field > noise, jnp.float32(1.0), jnp.float32(-1.0))


def sweep_sides(v: Array, pushes: Array, beta: Array, path: SidesPath, noises: tuple[Array, Array]) -> Any:
    """Draw the summed side given the kept one, and the kept one given that; return it with its pushes."""
    h = drawn_side(pushes, beta, path.summed, path.summed_change, noises[0])
    v = drawn_side(product(path.weights, h), beta, path.kept, path.kept_change, noises[1])
    return v, product(path.weights.T, v)


def log_weights(v: Array, pushes: Array, beta: Array, path: SidesPath) -> Array:
    """Return the log-weights of states at a point of the path, the fields of the base on the kept side left out."""
    field = (path.summed + beta * path.summed_change)[:, None] + beta * pushes.astype(jnp.float64)
    linear = beta * (path.kept_change @ v.astype(jnp.float64))
    return linear + jnp.logaddexp(field, -field).sum(axis=0)


@jax.jit
def sweep_sides_at_random(v: Array, pushes: Array, key: Any, beta: Array, path: SidesPath) -> tuple[Array, Array, Any]:
    """Sweep once with random numbers of the key; return the kept side, its pushes and the next key."""
    key, first, second = jax.random.split(key, 3)
    noises = (logistic(first, pushes.shape), logistic(second, v.shape))
    return *sweep_sides(v, pushes, beta, path, noises), key


@jax.jit
def changes_of_weight(v: Array, pushes: Array, points: Array, path: SidesPath) -> Array:
    """Return how log-weights change from the second of three points to the first and to the third, as two rows."""
    before, at, after = (log_weights(v, pushes, point, path) for point in points)
    return jnp.stack([before - at, after - at])

"""Sweeps of bipartite models with one side summed out, in JAX: layer by layer, or by single flips.

The path and its weights are those of ``kernels/sampling/collapsed.py``. A layer is a product over all states, which are
columns. Products are in single
precision in full, log-weights in double.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from spectralz.kernels.device.dense_sweeps import logistic
from spectralz.kernels.device.products import product
from spectralz.kernels.device.side_flips import flip_side

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


@partial(jax.jit, static_argnames=("flips",))
def sweep_along(
    v: Array, pushes: Array, key: Any, points: Array, count: int, sweeps: int, path: SidesPath, *, flips: bool
) -> tuple[Array, Array, Any, Array]:
    """Sweep at the first ``count`` of some points of the path, with random numbers of the key.

    Each row of ``points`` has the point before, the point, and the point after. Returns the kept side, its pushes, the
    next key, and by how much log-weights change from each point to the ones before and after, as two rows per point.
    Numbers of points and sweeps are not compiled for.
    """

    def sweep_at(k: Any, state: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        v, pushes, key = state
        key, first, second = jax.random.split(key, 3)
        noise = logistic(second, v.shape)
        if flips:
            return *flip_side(v, pushes, points[k, 1], path, noise), key
        return *sweep_sides(v, pushes, points[k, 1], path, (logistic(first, pushes.shape), noise)), key

    def pass_point(k: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        v, pushes, key = lax.fori_loop(0, sweeps, lambda _, state: sweep_at(k, state), state[:3])
        return v, pushes, key, state[3].at[k].set(changes_of_weight(v, pushes, points[k], path))

    changes = jnp.zeros((len(points), 2, v.shape[1]), jnp.float64)
    ends: tuple[Array, Array, Any, Array] = lax.fori_loop(0, count, pass_point, (v, pushes, key, changes))
    return ends


def changes_of_weight(v: Array, pushes: Array, points: Array, path: SidesPath) -> Array:
    """Return how log-weights change from the second of three points to the first and to the third, as two rows."""
    before, at, after = (log_weights(v, pushes, point, path) for point in points)
    return jnp.stack([before - at, after - at])

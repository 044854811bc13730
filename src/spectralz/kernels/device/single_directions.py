"""The quadrature of ``kernels/low_rank/single_directions.py`` for negative directions, in JAX.

It has no early end: a GPU has multiplied all cosines of a node before it could be asked whether they are nothing.
Positive directions, which the SDP leaves none of, stay with the compiled code: their error bound rests on the order in
which it adds up.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spectralz.kernels.device.products import UNTUNED

if TYPE_CHECKING:
    from jax import Array

    from spectralz.kernels.arrays import FloatArray, IntArray

# Directions and nodes at a time. Of n = 20,000 spins their cosines take 0.6 GiB, if the compiler keeps them at all.
DIRECTIONS, NODES = 64, 64
# Taylor's series of the cosine in the square of the angle, the last term first; the next is below 2e-17 at pi / 2.
SERIES = [(-1.0) ** m / math.factorial(2 * m) for m in range(10, -1, -1)]


def cosine_lines(slopes: FloatArray, steps: FloatArray, lasts: IntArray) -> FloatArray:
    """Return the sums over |k| = 0 ... last_j of the normal density at k step_j times prod_i cos(pi k slope_ji)."""
    sums = []
    for begin in range(0, len(steps), DIRECTIONS):
        part = slice(begin, begin + DIRECTIONS)
        some = len(steps[part])
        # Directions that nobody asked for, without nodes: everything is compiled for one number of them.
        missing = DIRECTIONS - some
        padded = np.pad(slopes[part], ((0, missing), (0, 0)))
        ends = np.pad(lasts[part], (0, missing), constant_values=-1)
        sums.append(np.asarray(_lines(padded, np.pad(steps[part], (0, missing)), ends))[:some])
    return np.concatenate([np.zeros(0), *sums])


@partial(jax.jit, compiler_options=UNTUNED)
def _lines(slopes: Array, steps: Array, lasts: Array) -> Array:
    end = jnp.max(lasts)

    def has_more(at: tuple[Array, Array]) -> Array:
        return at[0] <= end

    def added(at: tuple[Array, Array]) -> tuple[Array, Array]:
        begin, total = at
        k = (begin + jnp.arange(NODES)).astype(slopes.dtype)
        product = jnp.prod(cosine_of_half_turns(k[None, :, None] * slopes[:, None, :]), axis=2)
        x = k[None, :] * steps[:, None]
        weight = jnp.where(k > 0.0, 2.0, 1.0) * jnp.exp(-0.5 * x * x)
        terms = jnp.where(k[None, :] <= lasts[:, None], weight * product, 0.0)
        return begin + NODES, total + terms.sum(axis=1)

    start: Any = (jnp.zeros((), lasts.dtype), jnp.zeros_like(steps))
    return lax.while_loop(has_more, added, start)[1] * steps / math.sqrt(2.0 * math.pi)


def cosine_of_half_turns(c: Array) -> Array:
    """Return cos(pi c) to a few units of 2^-53, as the compiled code does: JAX's own would round pi c first."""
    nearest = jnp.round(c)
    f = math.pi * (c - nearest)  # at most a quarter turn from the nearest multiple of pi
    sign = 1.0 - 2.0 * (nearest - 2.0 * jnp.floor(0.5 * nearest))
    y = f * f
    value = jnp.full_like(c, SERIES[0])
    for coefficient in SERIES[1:]:
        value = coefficient + value * y
    return sign * value

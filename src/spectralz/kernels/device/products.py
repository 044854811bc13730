"""Products of matrices in the precision that they have, and how programs of products are compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from jax import Array

# JAX tries many ways to do each part of a program on the GPU before it takes one. For a part that runs a few times on
# 20,000 spins this takes much longer than what it saves. GPUs alone look at this option.
UNTUNED = {"xla_gpu_autotune_level": 0}


def product(a: Array, b: Array) -> Array:
    """Return a b in the precision that both have: GPUs would otherwise shorten single precision to 10 bits."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)

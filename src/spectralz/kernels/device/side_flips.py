"""Heat-bath flips of one side of a bipartite model, spin by spin, with the other side summed out, in JAX.

The law is that of ``kernels/sampling/side_flips.py``. A GPU takes longer to read numbers than to compute them, so only
the fields of the summed spins are kept, and their probabilities are found anew for each flip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from spectralz.kernels.device.products import product

if TYPE_CHECKING:
    from jax import Array

    from spectralz.kernels.device.collapsed_sweeps import SidesPath


def flip_side(v: Array, pushes: Array, beta: Array, path: SidesPath, noise: Array) -> tuple[Array, Array]:
    """Flip the kept spins in turn, each where the log of the ratio of weights exceeds its noise, a logistic number.

    Returns the kept side and its pushes, which are summed up anew.
    """
    beta = jnp.asarray(beta)
    log_odds = 2.0 * (path.summed + beta * path.summed_change).astype(jnp.float32)[:, None]
    fields = (path.kept + beta * path.kept_change).astype(jnp.float32)
    strength = 2.0 * beta.astype(jnp.float32)

    def flip(j: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        v, pushes = state
        row, spin = path.weights[j], v[j]
        gained = log_ratio(log_odds + strength * pushes, strength * row, spin) - 2.0 * fields[j] * spin
        change = jnp.where(gained > noise[j], -2.0 * spin, 0.0)
        return v.at[j].add(change), pushes + row[:, None] * change[None, :]

    v, _ = lax.fori_loop(0, v.shape[0], flip, (v, pushes))
    return v, product(path.weights.T, v)


def log_ratio(log_odds: Array, strength: Array, spin: Array) -> Array:
    """Return the log of what a flip multiplies the sum over the other side by: one sum per column.

    ``log_odds`` are those of the summed spins, ``strength`` twice their couplings to the spin, and ``spin`` its state.
    A summed spin contributes cosh(s) (p (1 - spin T) + q (1 + spin T)) with T = tanh(s), s its strength. In logs, with
    the larger of both terms taken out, nothing cancels, overflows or underflows.
    """
    twice, odds = 2.0 * jnp.abs(strength)[:, None], jnp.abs(log_odds)
    # The flip lowers the weight of the likelier state of the summed spin, or that of the other state.
    lowers_likelier = (log_odds >= 0.0) == (strength[:, None] * spin[None, :] >= 0.0)
    lowered = jnp.where(lowers_likelier, jnp.minimum(twice, odds), 0.0)
    other = jnp.where(lowers_likelier, jnp.abs(twice - odds), twice + odds)
    logs = jnp.log((1.0 + jnp.exp(-other)) / (1.0 + jnp.exp(-odds)))
    return (0.5 * twice - lowered + logs).sum(axis=0)

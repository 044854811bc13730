"""Heat-bath sweeps of a dense coupling over many states at once, in JAX.

States are columns of ±1. Spins take turns in blocks of 128, whose fields are one product with all states. Within a
block spins must wait for each other, one after the other. On a GPU it is the start of kernels that takes the time, not
arithmetic: so a block is one kernel, written in Pallas, in which every program takes 32 states through all spins. For
other devices the spins of a group are written out one after the other instead.

Products are as precise as single precision is. The shorter formats that GPUs multiply faster (TF32) have errors of 1e-3
in fields, which shift the stationary law. But ±1 is exact in any format: on a GPU a coupling is the sum of three
matrices of eight digits each (bfloat16), whose products are exact and are added up in single precision, at several
times the speed. Changes of the energy are added up in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from spectralz.kernels.device.products import product

if TYPE_CHECKING:
    from jax import Array

# Spins whose fields are one product, and those among them that hear of each other's turns at once.
BLOCK, GROUP = 128, 32
# States that one program takes through a block.
TILE = 32
# Spins that are written out where there is no such kernel: compilers for the CPU take minutes for more.
WRITTEN_OUT = 4


class DensePath(NamedTuple):
    """The models on a path: n spins, padded with spins without couplings to a multiple of ``BLOCK``.

    At beta a state weighs exp(<base, x> + beta E(x)), with E(x) = <change, x> + x' J x / 2.

    Attributes
    ----------
    base, change
        Fields of the base, and those of the model less them.
    pieces
        Matrices whose sum is J, without diagonal.
    """

    base: Array
    change: Array
    pieces: tuple[Array, ...]


def pieces_of(coupling: Any, is_gpu: bool) -> tuple[Array, ...]:
    """Return matrices whose sum is a coupling in single precision; on a GPU they have eight binary digits each."""
    rest = jnp.asarray(coupling, jnp.float32)
    if not is_gpu:
        return (rest,)
    pieces = []
    for _ in range(3):
        pieces.append(rest.astype(jnp.bfloat16))
        rest = rest - pieces[-1].astype(jnp.float32)
    return tuple(pieces)


def _fields(pieces: tuple[Array, ...], x: Array) -> Array:
    """Return J x of states ±1, whose terms are exact in each piece; the small pieces are added up first."""
    parts = [
        jnp.matmul(piece, x, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32) for piece in pieces
    ]
    return sum(reversed(parts[:-1]), parts[-1])


def random_key(seed: int) -> Any:
    """Return the key of a stream of random numbers, which are the same on every device."""
    return jax.random.key(seed, impl="threefry2x32")


def logistic(key: Any, shape: tuple[int, ...]) -> Array:
    """Return logistic numbers: a spin is up where its log-odds exceed one of them."""
    return jax.random.logistic(key, shape, jnp.float32)


@partial(jax.jit, static_argnames=("size", "kind"))
def drawn_from(key: Any, base: Array, size: int, kind: Any = jnp.float32) -> Array:
    """Return states of independent spins in fields ``base``, one per column."""
    return jnp.where(2.0 * base[:, None] > logistic(key, (len(base), size)), 1.0, -1.0).astype(kind)


@jax.jit
def energies(x: Array, path: DensePath) -> Array:
    """Return E(x) of every state, summed up in double precision."""
    fields = _fields(path.pieces, x)
    terms = x.astype(jnp.float64) * (path.change[:, None] + 0.5 * fields.astype(jnp.float64))
    return terms.sum(axis=0)


@partial(jax.jit, static_argnames=("is_fused",), donate_argnames=("x",))
def sweep_at_random(
    x: Array, energy: Array, key: Any, beta: Array, path: DensePath, is_fused: bool
) -> tuple[Array, Array, Any]:
    """Sweep once with random numbers of the key; return the states, E of each, and the next key."""
    key, noise_key = jax.random.split(key)
    x, change = sweep(x, beta, path, logistic(noise_key, x.shape), is_fused)
    return x, energy + change, key


def sweep(x: Array, beta: Array, path: DensePath, noise: Array, is_fused: bool) -> tuple[Array, Array]:
    """Draw every spin once given the others: it is up where its log-odds exceed its noise, a logistic number.

    ``is_fused`` says that a block is one kernel in Pallas. Returns the states, and what E has changed by, for each.
    """
    turned_of = _turned_in_one if is_fused else _turned_in_groups

    def turn_block(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, change = state
        begin = k * BLOCK
        rows = tuple(lax.dynamic_slice_in_dim(piece, begin, BLOCK) for piece in path.pieces)
        among = [lax.dynamic_slice_in_dim(piece, begin, BLOCK, axis=1).astype(jnp.float32) for piece in rows]
        within = sum(among[1:], among[0])
        field = _fields(rows, x) + lax.dynamic_slice_in_dim(path.change, begin, BLOCK)[:, None]
        before = lax.dynamic_slice_in_dim(x, begin, BLOCK).astype(jnp.float32)
        # Up if 2 (base + beta field) exceeds the noise.
        base = lax.dynamic_slice_in_dim(path.base, begin, BLOCK)[:, None]
        least = 0.5 * lax.dynamic_slice_in_dim(noise, begin, BLOCK) - base
        turned = turned_of(before, field, within, least, beta)
        gained = turned * (field + 0.5 * product(within, turned))
        x = lax.dynamic_update_slice_in_dim(x, (before + turned).astype(x.dtype), begin, axis=0)
        return x, change + gained.sum(axis=0).astype(jnp.float64)

    start = x, jnp.zeros(x.shape[1], jnp.float64)
    ends: tuple[Array, Array] = lax.fori_loop(0, x.shape[0] // BLOCK, turn_block, start)
    return ends


def _turned_in_groups(before: Array, field: Array, within: Array, least: Array, beta: Array) -> Array:
    """Return by how much the spins of a block change: 0, or ±2."""

    def turn_group(g: Any, turned: Array) -> Array:
        begin = g * WRITTEN_OUT
        rows = lax.dynamic_slice_in_dim(within, begin, WRITTEN_OUT)
        h = lax.dynamic_slice_in_dim(field, begin, WRITTEN_OUT) + product(rows, turned)
        among = lax.dynamic_slice_in_dim(rows, begin, WRITTEN_OUT, axis=1)
        x = lax.dynamic_slice_in_dim(before, begin, WRITTEN_OUT)
        threshold = lax.dynamic_slice_in_dim(least, begin, WRITTEN_OUT)
        changes: list[Array] = []
        for i in range(WRITTEN_OUT):
            h_i = h[i]
            for j, change in enumerate(changes):
                h_i = h_i + among[i, j] * change
            changes.append(jnp.where(beta * h_i > threshold[i], jnp.float32(1.0), jnp.float32(-1.0)) - x[i])
        return lax.dynamic_update_slice_in_dim(turned, jnp.stack(changes), begin, axis=0)

    turns: Array = lax.fori_loop(0, BLOCK // WRITTEN_OUT, turn_group, jnp.zeros_like(before))
    return turns


def _turned_in_one(
    before: Array, field: Array, within: Array, least: Array, beta: Array, *, interpret: bool = False
) -> Array:
    """Return the same by one kernel; ``interpret`` runs it without a GPU, for tests."""
    from jax.experimental import pallas as pl

    states = before.shape[1]
    tile = pl.BlockSpec((BLOCK, TILE), lambda t: (0, t))
    turns: Array = pl.pallas_call(
        _block_kernel,
        out_shape=jax.eval_shape(lambda: before),
        grid=(states // TILE,),
        in_specs=[pl.BlockSpec((1,), lambda t: (0,)), tile, tile, pl.BlockSpec((BLOCK, BLOCK), lambda t: (0, 0)), tile],
        out_specs=tile,
        interpret=interpret,
    )(beta.reshape(1), before, field, within, least)
    return turns


def _block_kernel(
    beta_ref: Any, before_ref: Any, field_ref: Any, own_ref: Any, least_ref: Any, turned_ref: Any
) -> None:
    """Turn the spins of a block in some states, group by group; fields of a group stay in registers."""
    beta = beta_ref[0]
    place = lax.broadcasted_iota(jnp.int32, (GROUP, TILE), 0)
    for begin in range(0, BLOCK, GROUP):
        group = slice(begin, begin + GROUP)
        field = field_ref[group, :]
        for earlier in range(0, begin, GROUP):
            others = slice(earlier, earlier + GROUP)
            field = field + jnp.dot(own_ref[group, others], turned_ref[others, :], precision=lax.Precision.HIGHEST)
        before, least = before_ref[group, :], least_ref[group, :]

        def turn(
            i: Any, state: tuple[Array, Array], before: Array = before, least: Array = least, begin: int = begin
        ) -> tuple[Array, Array]:
            field, turned = state
            wanted = jnp.where(beta * field > least, 1.0, -1.0) - before
            change = jnp.sum(jnp.where(place == i, wanted, 0.0), axis=0)
            column = own_ref[begin : begin + GROUP, begin + i]
            return field + column[:, None] * change[None, :], jnp.where(place == i, change[None, :], turned)

        _, turned = lax.fori_loop(0, GROUP, turn, (field, jnp.zeros((GROUP, TILE), jnp.float32)))
        turned_ref[group, :] = turned

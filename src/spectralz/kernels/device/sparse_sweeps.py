"""Heat-bath sweeps on a sparse graph over many states at once, in JAX.

Spins are colored so that coupled spins differ (``kernels/coloring.py``); all of a color are drawn at once. States are
bytes, spins by rows and states by columns. A kernel, written in Pallas, draws the spins of a tile, a few rows, in some
columns: it adds up the rows of their neighbors, makes its own random words from its place and the number of the sweep,
and compares. So nothing but states is written, and a color is one start of a kernel.

A spin turns against its field h with probability q = 1 / (1 + exp(2 |h|)). Small numbers are the precise ones, both of
q and of the random numbers that are compared with it. Energies are added up in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from spectralz.kernels.coloring import TILE

if TYPE_CHECKING:
    from jax import Array

# Columns that a program draws with each of the two words that come at once; its threads are these warps.
COLUMNS, WARPS = 32, 4
# Programs that add up energies, beside each other.
PARTS = 2048
# The rotations of Threefry, four rounds each, and its constant (Salmon and others, 2011).
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


class ColoredPath(NamedTuple):
    """The models on a path: spins ordered by color, in tiles of equal color.

    At beta a state weighs exp(<base, x> + beta E(x)), with E(x) = <change, x> + x' J x / 2.

    Attributes
    ----------
    base, change
        Fields of the base, and those of the model less them, in double precision; 0 in rows without a spin.
    first
        The first tile of each color, and the number of tiles.
    begin
        Where the entries of each tile begin, and the number of all. They stand neighbor by neighbor, a row each.
    neighbor, coupling
        The row of a neighbor, and the coupling to it in double precision; 0 where a row has fewer neighbors.
    """

    base: Array
    change: Array
    first: Array
    begin: Array
    neighbor: Array
    coupling: Array


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return two random words of 32 bits for a key and a counter of two words each: Threefry of 20 rounds."""
    keys = (*key, key[0] ^ key[1] ^ jnp.uint32(PARITY))
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            a = a + b
            b = ((b << jnp.uint32(turn)) | (b >> jnp.uint32(32 - turn))) ^ a
        a, b = a + keys[(block + 1) % 3], b + keys[(block + 2) % 3] + jnp.uint32(block + 1)
    return a, b


def drawn(field: Any, word: Any) -> Any:
    """Return spins drawn in their fields by random words."""
    against = 1.0 / (1.0 + jnp.exp(2.0 * jnp.abs(field)))
    is_against = (word.astype(jnp.float32) + 0.5) * jnp.float32(2.0**-32) < against
    return jnp.where((field >= 0.0) != is_against, 1, -1).astype(jnp.int8)


def _columns(block: Any) -> tuple[Any, Any]:
    """Return the columns of a block of states in two halves."""
    first = block * (2 * COLUMNS) + lax.broadcasted_iota(jnp.int32, (TILE, COLUMNS), 1)
    return first, first + COLUMNS


def _entries(tile: Any, slot: Any, begin_ref: Any, neighbor_ref: Any, coupling_ref: Any, kind: Any) -> tuple[Any, Any]:
    """Return rows and couplings of the neighbors number ``slot`` of the spins of a tile."""
    there = pl.ds(begin_ref[tile] + slot * TILE, TILE)
    return neighbor_ref[there][:, None], coupling_ref[there].astype(kind)[:, None]


def _width(tile: Any, begin_ref: Any) -> Any:
    """Return the largest number of neighbors of the spins of a tile."""
    return (begin_ref[tile + 1] - begin_ref[tile]) // TILE


def _spins(x_ref: Any, rows: Any, columns: Any, kind: Any) -> Any:
    rows, columns = jnp.broadcast_arrays(rows, columns)
    return plgpu.load(x_ref.at[rows, columns]).astype(kind)


def _draw_kernel(
    color_ref: Any,
    key_ref: Any,
    beta_ref: Any,
    base_ref: Any,
    change_ref: Any,
    first_ref: Any,
    begin_ref: Any,
    neighbor_ref: Any,
    coupling_ref: Any,
    x_ref: Any,
    drawn_ref: Any,
    *,
    most: int,
) -> None:
    """Draw the spins of one tile of a color in some columns; ``drawn_ref`` is the same memory as ``x_ref``."""
    number, color = pl.program_id(0), color_ref[0]
    tile, block = first_ref[color] + number % most, number // most

    @pl.when(tile < first_ref[color + 1])
    def _() -> None:
        columns, row = _columns(block), tile * TILE

        def add(slot: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
            there, coupling = _entries(tile, slot, begin_ref, neighbor_ref, coupling_ref, jnp.float32)
            first, second = (
                total + coupling * _spins(x_ref, there, half, jnp.float32)
                for total, half in zip(sums, columns, strict=True)
            )
            return first, second

        none = jnp.zeros((TILE, COLUMNS), jnp.float32)
        sums = lax.fori_loop(0, _width(tile, begin_ref), add, (none, none))
        base, change = (ref[pl.ds(row, TILE)].astype(jnp.float32)[:, None] for ref in (base_ref, change_ref))
        rows = row + lax.broadcasted_iota(jnp.int32, (TILE, COLUMNS), 0)
        words = threefry((key_ref[0], key_ref[1]), (rows.astype(jnp.uint32), columns[0].astype(jnp.uint32)))
        beta = beta_ref[0]
        for total, half, word in zip(sums, columns, words, strict=True):
            plgpu.store(drawn_ref.at[rows, half], drawn(base + beta * (change + total), word))


def _energy_kernel(
    base_ref: Any,
    change_ref: Any,
    first_ref: Any,
    begin_ref: Any,
    neighbor_ref: Any,
    coupling_ref: Any,
    x_ref: Any,
    energy_ref: Any,
    *,
    parts: int,
    tiles: int,
) -> None:
    """Add up E over every ``parts``-th tile in some columns."""
    number = pl.program_id(0)
    part, block = number % parts, number // parts
    columns = _columns(block)
    sizes = (TILE, COLUMNS)

    def add_tile(k: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
        tile = part + k * parts
        row = tile * TILE
        change = jnp.broadcast_to(change_ref[pl.ds(row, TILE)][:, None], sizes)

        def add(slot: Any, fields: tuple[Any, Any]) -> tuple[Any, Any]:
            there, coupling = _entries(tile, slot, begin_ref, neighbor_ref, coupling_ref, jnp.float64)
            first, second = (
                field + 0.5 * coupling * _spins(x_ref, there, half, jnp.float64)
                for field, half in zip(fields, columns, strict=True)
            )
            return first, second

        fields = lax.fori_loop(0, _width(tile, begin_ref), add, (change, change))
        rows = row + lax.broadcasted_iota(jnp.int32, sizes, 0)
        first, second = (
            total + field * _spins(x_ref, rows, half, jnp.float64)
            for total, field, half in zip(sums, fields, columns, strict=True)
        )
        return first, second

    none = jnp.zeros(sizes, jnp.float64)
    sums = lax.fori_loop(0, (tiles - part + parts - 1) // parts, add_tile, (none, none))
    for total, begin in zip(sums, (0, COLUMNS), strict=True):
        energy_ref[part, pl.ds(block * 2 * COLUMNS + begin, COLUMNS)] = total.sum(axis=0)


def _started(kernel: Any, out: Any, programs: int, aliases: dict[int, int], *, interpret: bool) -> Any:
    return pl.pallas_call(
        kernel,
        out_shape=out,
        grid=(programs,),
        input_output_aliases=aliases,
        interpret=interpret,
        compiler_params=None if interpret else plgpu.CompilerParams(num_warps=WARPS),
    )


def draw_color(x: Array, color: Any, key: Array, beta: Any, path: ColoredPath, most: int, *, interpret: bool) -> Array:
    """Draw all spins of a color given the others, at beta; a color has up to ``most`` tiles."""
    programs = most * (x.shape[1] // (2 * COLUMNS))
    start = _started(partial(_draw_kernel, most=most), jax.eval_shape(lambda: x), programs, {9: 0}, interpret=interpret)
    swept: Array = start(jnp.reshape(color, 1), key, jnp.reshape(beta, 1).astype(jnp.float32), *path, x)
    return swept


def energies(x: Array, path: ColoredPath, *, interpret: bool) -> Array:
    """Return E(x) of every state, added up in double precision."""
    tiles, blocks = len(path.begin) - 1, x.shape[1] // (2 * COLUMNS)
    parts = max(min(tiles, PARTS // blocks), 1)
    out = jax.eval_shape(lambda: jnp.zeros((parts, x.shape[1]), jnp.float64))
    kernel = partial(_energy_kernel, parts=parts, tiles=tiles)
    partial_sums: Array = _started(kernel, out, parts * blocks, {}, interpret=interpret)(*path, x)
    return partial_sums.sum(axis=0)


@jax.jit
def states_of(x: Array, row: Array) -> Array:
    """Return the states, one per row, with each spin in its own column."""
    return x[row].T


@partial(jax.jit, static_argnames=("rows",))
def columns_of(states: Array, row: Array, rows: int) -> Array:
    """Return states as columns, each spin in its own row."""
    return jnp.ones((rows, len(states)), jnp.int8).at[row].set(states.T)


@partial(jax.jit, static_argnames=("most", "interpret"), donate_argnames=("x",))
def sweep_along(
    x: Array,
    key: Array,
    points: Array,
    count: int,
    sweeps: int,
    path: ColoredPath,
    *,
    most: int,
    interpret: bool,
) -> tuple[Array, Array, Array]:
    """Sweep at the first ``count`` of some points of the path; return the states, the next key, and E at each point.

    Numbers of points and sweeps are not compiled for. Every sweep adds one to the second word of the key.
    """
    colors = len(path.first) - 1
    one = jnp.array([0, 1], jnp.uint32)

    def sweep_at(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, key = state
        x = lax.fori_loop(0, colors, lambda c, x: draw_color(x, c, key, points[k], path, most, interpret=interpret), x)
        return x, key + one

    def pass_point(k: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, key = lax.fori_loop(0, sweeps, lambda _, state: sweep_at(k, state), state[:2])
        return x, key, state[2].at[k].set(energies(x, path, interpret=interpret))

    found = jnp.zeros((len(points), x.shape[1]), jnp.float64)
    ends: tuple[Array, Array, Array] = lax.fori_loop(0, count, pass_point, (x, key, found))
    return ends

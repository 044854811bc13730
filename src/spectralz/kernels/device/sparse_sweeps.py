"""Heat-bath sweeps on a sparse graph over many states at once, in JAX.

Spins are colored so that coupled spins differ (``kernels/coloring.py``); all of a color are drawn at once. States are
bytes, spins by rows and states by columns. A kernel, written in Pallas, draws the spins of a tile, a few rows, in some
columns: it adds up the rows of their neighbors, makes its own random words from its place and the number of the sweep,
and compares. So nothing but states is written, and a color is one start of a kernel. Starts take longer than small
graphs: several points of the path are one program, without a word from the host between them.

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

# Columns that a program draws with each of the two words that come at once, together a block; its threads are these
# warps.
COLUMNS, WARPS = 32, 4
# Programs that add up energies, beside each other.
PARTS = 2048
# Up to so many colors are written out one after the other.
MOST_WRITTEN_OUT = 8
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
    step_ref: Any,
    color_ref: Any,
    key_ref: Any,
    count_ref: Any,
    points_ref: Any,
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
    sweeps: int,
) -> None:
    """Draw the spins of one tile of a color in some columns; ``drawn_ref`` is the same memory as ``x_ref``."""
    number, step, color = pl.program_id(0), step_ref[0], color_ref[0]
    tile, block = first_ref[color] + number % most, number // most

    @pl.when((tile < first_ref[color + 1]) & (step < count_ref[0] * sweeps))
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
        key = key_ref[0], key_ref[1] + step.astype(jnp.uint32)
        words = threefry(key, (rows.astype(jnp.uint32), columns[0].astype(jnp.uint32)))
        beta = points_ref[step // sweeps, block]
        for total, half, word in zip(sums, columns, words, strict=True):
            plgpu.store(drawn_ref.at[rows, half], drawn(base + beta * (change + total), word))


def _energy_kernel(
    step_ref: Any,
    count_ref: Any,
    base_ref: Any,
    change_ref: Any,
    first_ref: Any,
    begin_ref: Any,
    neighbor_ref: Any,
    coupling_ref: Any,
    x_ref: Any,
    before_ref: Any,
    energy_ref: Any,
    *,
    parts: int,
    tiles: int,
) -> None:
    """Add up E over every ``parts``-th tile in some columns; ``energy_ref`` is the same memory as ``before_ref``."""
    number, step = pl.program_id(0), step_ref[0]
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

    @pl.when(step < count_ref[0])
    def _() -> None:
        none = jnp.zeros(sizes, jnp.float64)
        sums = lax.fori_loop(0, (tiles - part + parts - 1) // parts, add_tile, (none, none))
        for total, begin in zip(sums, (0, COLUMNS), strict=True):
            energy_ref[step, part, pl.ds(block * 2 * COLUMNS + begin, COLUMNS)] = total.sum(axis=0)


def _written_to(kernel: Any, written: Array, programs: int, place: int, *, interpret: bool) -> Any:
    """Return a call of a kernel that writes into its argument number ``place``."""
    return pl.pallas_call(
        kernel,
        out_shape=jax.eval_shape(lambda: written),
        grid=(programs,),
        input_output_aliases={place: 0},
        interpret=interpret,
        compiler_params=None if interpret else plgpu.CompilerParams(num_warps=WARPS),
    )


@jax.jit
def states_of(x: Array, row: Array) -> Array:
    """Return the states, one per row, with each spin in its own column."""
    return x[row].T


@partial(jax.jit, static_argnames=("rows",))
def columns_of(states: Array, row: Array, rows: int) -> Array:
    """Return states as columns, each spin in its own row."""
    return jnp.ones((rows, len(states)), jnp.int8).at[row].set(states.T)


@partial(jax.jit, static_argnames=("sweeps", "most", "interpret"), donate_argnames=("x",))
def sweep_along(
    x: Array, key: Array, points: Array, count: Array, path: ColoredPath, *, sweeps: int, most: int, interpret: bool
) -> tuple[Array, Array, Array]:
    """Sweep at the first ``count`` of some points of the path; return the states, the next key, and E at each point.

    ``points`` is (points, blocks of columns): states of different blocks may be at different points. Every sweep adds
    one to the second word of the key. A color has up to ``most`` tiles. The number of points that are passed is not
    compiled for: kernels of others end at once.
    """
    colors, tiles, blocks = len(path.first) - 1, len(path.begin) - 1, x.shape[1] // (2 * COLUMNS)
    parts = max(min(tiles, PARTS // blocks), 1)
    energy = jnp.zeros((len(points), parts, x.shape[1]), jnp.float64)
    points, count = points.astype(jnp.float32), jnp.reshape(count, 1)
    draw_color = _written_to(partial(_draw_kernel, most=most, sweeps=sweeps), x, most * blocks, 11, interpret=interpret)
    add_up = _written_to(
        partial(_energy_kernel, parts=parts, tiles=tiles), energy, parts * blocks, 9, interpret=interpret
    )

    def sweep(step: Any, x: Array) -> Array:
        step = jnp.reshape(step, 1)
        if colors > MOST_WRITTEN_OUT:
            return lax.fori_loop(
                0, colors, lambda c, x: draw_color(step, jnp.reshape(c, 1), key, count, points, *path, x), x
            )
        for color in range(colors):
            x = draw_color(step, jnp.array([color], jnp.int32), key, count, points, *path, x)
        return x

    def pass_point(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, energy = state
        x = sweep(k, x) if sweeps == 1 else lax.fori_loop(k * sweeps, (k + 1) * sweeps, sweep, x)
        return x, add_up(jnp.reshape(k, 1), count, *path, x, energy)

    x, energy = lax.fori_loop(0, len(points), pass_point, (x, energy))
    done = jnp.concatenate([jnp.zeros(1, jnp.uint32), (count * sweeps).astype(jnp.uint32)])
    return x, key + done, energy.sum(axis=1)

"""Models on lattices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spectralz.generators.checks import (
    Stream,
    Weights,
    checked_count,
    checked_flag,
    checked_number,
    checked_pairs,
    checked_scale,
    checked_spins,
)
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Steps: TypeAlias = tuple[tuple[int, ...], ...]

# The steps to the neighbors of a site, each pair once; the last axis comes first.
CHAIN: Steps = ((1,),)
SQUARE: Steps = ((0, 1), (1, 0))
TRIANGULAR: Steps = (*SQUARE, (1, 1))
KINGS: Steps = (*TRIANGULAR, (1, -1))
CUBIC: Steps = ((0, 0, 1), (0, 1, 0), (1, 0, 0))


def grid(side: int, strength: float, seed: int, periodic: bool = False, field_strength: float = 1.0) -> Ising:
    """Make a grid of side x side spins ``row * side + column``; weights as in :func:`complete` (paper, Sec. 4.4).

    Parameters
    ----------
    side
        Spins along a side of the square.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number, 0 or more.
    periodic
        Whether the last row and column are joined to the first (from side 3 on, where these are new edges).
    field_strength
        Largest |theta_i|.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> grid(side=10, strength=1.0, seed=0).edge_count
    180
    """
    side = checked_count(side, "side")
    strength, field_strength = checked_scale(strength, "strength"), checked_scale(field_strength, "field_strength")
    is_periodic, stream = checked_flag(periodic, "periodic"), Stream(seed)
    field = stream.uniform(checked_spins(side, side), field_strength)
    pairs = lattice_edges((side, side), SQUARE, is_periodic)
    A = stream.uniform(len(pairs), strength)
    return Ising.from_edges(side * side, pairs, 2.0 * A, field)


def square(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    couplings: str = "gaussian",
    periodic: bool = False,
    field: float = 0.0,
) -> Ising:
    """Make a square lattice, rows x columns, spin ``row * columns + column``, with random or equal couplings.

    Parameters
    ----------
    rows, columns
        Number of rows and columns.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal couplings do not use it.
    couplings
        J is ``strength`` times a standard normal number (``gaussian``), a random sign (``bimodal``), a number from
        U[-1, 1] (``uniform``), +1 (``ferromagnetic``) or -1 (``antiferromagnetic``).
    periodic
        Whether the last row and column are joined to the first (from 3 on, where these are new edges).
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> square(rows=10, columns=20, strength=1.0, seed=0, couplings="bimodal")
    Ising(n=200, edges=370, density=0.0186, |A| mean 0.5 max 0.5, |field| max 0, sparse)
    """
    return _lattice({"rows": rows, "columns": columns}, SQUARE, strength, seed, couplings, periodic, field)


def triangular(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    couplings: str = "gaussian",
    periodic: bool = False,
    field: float = 0.0,
) -> Ising:
    """Make a triangular lattice: the square one with the diagonal from each spin to the next row and column.

    Parameters
    ----------
    rows, columns
        Number of rows and columns.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal couplings do not use it.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    periodic
        Whether the last row and column are joined to the first (from 3 on, where these are new edges).
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> triangular(rows=6, columns=6, strength=1.0, seed=0, couplings="antiferromagnetic", periodic=True).edge_count
    108
    """
    return _lattice({"rows": rows, "columns": columns}, TRIANGULAR, strength, seed, couplings, periodic, field)


def kings(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    couplings: str = "gaussian",
    periodic: bool = False,
    field: float = 0.0,
) -> Ising:
    """Make a king's graph: the square lattice with both diagonals, like the moves of a king in chess.

    Parameters
    ----------
    rows, columns
        Number of rows and columns.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal couplings do not use it.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    periodic
        Whether the last row and column are joined to the first (from 3 on, where these are new edges).
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> kings(rows=8, columns=8, strength=1.0, seed=0).edge_count
    210
    """
    return _lattice({"rows": rows, "columns": columns}, KINGS, strength, seed, couplings, periodic, field)


def cubic(
    rows: int,
    columns: int,
    layers: int,
    strength: float,
    seed: int,
    couplings: str = "gaussian",
    periodic: bool = False,
    field: float = 0.0,
) -> Ising:
    """Make a cubic lattice, spin ``(row * columns + column) * layers + layer``, with random or equal couplings.

    Parameters
    ----------
    rows, columns, layers
        Number of rows, columns and layers.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal couplings do not use it.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    periodic
        Whether opposite faces are joined (from 3 on, where these are new edges).
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> cubic(rows=4, columns=4, layers=10, strength=1.0, seed=0, couplings="bimodal").edge_count
    384
    """
    shape = {"rows": rows, "columns": columns, "layers": layers}
    return _lattice(shape, CUBIC, strength, seed, couplings, periodic, field)


def spin_glass_3d(side: int, strength: float, seed: int, periodic: bool = True, couplings: str = "gaussian") -> Ising:
    """Make an Edwards-Anderson spin glass on a cubic lattice, side^3 spins, without field.

    Parameters
    ----------
    side
        Spins along an edge of the cube.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more.
    periodic
        Whether opposite faces are joined (from side 3 on, where these are new edges).
    couplings
        ``gaussian``, ``bimodal`` or another kind of :func:`square`.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> spin_glass_3d(side=4, strength=1.0, seed=0).edge_count
    192
    """
    side = checked_count(side, "side")
    return cubic(side, side, side, strength, seed, couplings, periodic)


def torus(rows: int, columns: int, strength: float, field: float = 0.0) -> Ising:
    """Make an Ising model on a torus: a square lattice with edges of weight ``strength`` and opposite sides joined.

    A side of 2 is joined once and a side of 1 not at all, as with ``periodic=True`` in :func:`square`: no edge is
    doubled, and no spin is joined to itself.

    Parameters
    ----------
    rows, columns
        Number of rows and columns.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    See Also
    --------
    spectralz.closed_forms.torus : its log Z without field.

    Examples
    --------
    >>> torus(rows=64, columns=64, strength=0.44)
    Ising(n=4096, edges=8192, density=0.000977, |A| mean 0.22 max 0.22, |field| max 0, sparse)
    """
    shape = checked_count(rows, "rows"), checked_count(columns, "columns")
    J, theta = checked_number(strength, "strength"), checked_number(field, "field")
    pairs = lattice_edges(shape, SQUARE, periodic=True)
    return Ising.from_edges(math.prod(shape), pairs, J, np.full(math.prod(shape), theta))


def chain(n: int, strength: float, field: float = 0.0, periodic: bool = False) -> Ising:
    """Make a chain of spins whose edges all weigh ``strength``.

    Parameters
    ----------
    n
        Number of spins.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.
    periodic
        Whether the last spin is joined to the first (from n = 3 on, where this is a new edge).

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    See Also
    --------
    spectralz.closed_forms.chain : its log Z.

    Examples
    --------
    >>> chain(n=1000, strength=1.0, periodic=True).edge_count
    1000
    """
    n, is_periodic = checked_count(n, "n"), checked_flag(periodic, "periodic")
    J, theta = checked_number(strength, "strength"), checked_number(field, "field")
    return Ising.from_edges(n, lattice_edges((n,), CHAIN, is_periodic), J, np.full(n, theta))


def dimers(n: int, strength: float, field: float = 0.0) -> Ising:
    """Make n / 2 independent pairs of spins: spin 2k is joined to spin 2k + 1.

    Parameters
    ----------
    n
        Number of spins, even.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    See Also
    --------
    spectralz.closed_forms.dimers : its log Z.

    Examples
    --------
    >>> dimers(n=6, strength=1.0).edges()[0].tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    n = checked_pairs(n)
    J, theta = checked_number(strength, "strength"), checked_number(field, "field")
    return Ising.from_edges(n, np.arange(n).reshape(-1, 2), J, np.full(n, theta))


def chimera(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    tile: int = 4,
    couplings: str = "gaussian",
    field: float = 0.0,
) -> Ising:
    """Make a Chimera graph, as in D-Wave annealers: cells in rows and columns, each a complete bipartite graph.

    A cell is two groups of ``tile`` spins; all spins of one are joined to all of the other. Spins of group 0 are also
    joined to the same spin in the next row, those of group 1 to the same spin in the next column. Spin k of group g of
    a cell is ``((row * columns + column) * 2 + g) * tile + k``.

    Parameters
    ----------
    rows, columns
        Number of rows and columns of cells.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal couplings do not use it.
    tile
        Spins of each of the two groups of a cell.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    Examples
    --------
    >>> chimera(rows=2, columns=2, strength=1.0, seed=0)
    Ising(n=32, edges=80, density=0.161, |A| mean 0.405 max 1.57, |field| max 0, sparse)
    """
    shape = checked_count(rows, "rows"), checked_count(columns, "columns"), checked_count(tile, "tile")
    weights, stream = Weights(strength, couplings, field), Stream(seed)
    return weights.on(2 * math.prod(shape), chimera_edges(*shape), stream)


def _lattice(
    sides: Mapping[str, int],
    steps: Steps,
    strength: float,
    seed: int,
    couplings: str,
    periodic: bool,
    field: float,
) -> Ising:
    shape = tuple(checked_count(length, name) for name, length in sides.items())
    is_periodic = checked_flag(periodic, "periodic")
    weights, stream = Weights(strength, couplings, field), Stream(seed)
    return weights.on(math.prod(shape), lattice_edges(shape, steps, is_periodic), stream)


def chimera_edges(rows: int, columns: int, tile: int) -> NDArray[np.int64]:
    """Return the edges (m x 2) of a Chimera graph: within cells, then to the next row, then to the next column."""
    spin = np.arange(checked_spins(2, rows, columns, tile)).reshape(rows, columns, 2, tile)
    within = np.broadcast_arrays(spin[:, :, 0, :, None], spin[:, :, 1, None, :])
    down = spin[:-1, :, 0], spin[1:, :, 0]
    across = spin[:, :-1, 1], spin[:, 1:, 1]
    return np.concatenate([np.column_stack([i.ravel(), j.ravel()]) for i, j in (within, down, across)])


def lattice_edges(shape: tuple[int, ...], steps: Steps, periodic: bool) -> NDArray[np.int64]:
    """Return the edges (m x 2) from each site by each step, site by site; sites are numbered row by row.

    An axis is closed to a ring only if it has 3 sites or more: with 1 or 2, closing it adds no new edge.
    """
    n = checked_spins(*shape)
    at = np.indices(shape).reshape(len(shape), n)
    edges, order = [], []
    for place, step in enumerate(steps):
        inside = np.ones(n, dtype=bool)
        end = np.zeros(n, dtype=np.int64)
        for axis, length in enumerate(shape):
            moved = at[axis] + step[axis]
            if periodic and length >= 3:
                moved %= length
            inside &= (moved >= 0) & (moved < length)
            end = end * length + moved
        starts = np.flatnonzero(inside)
        edges.append(np.column_stack([starts, end[inside]]))
        order.append(starts * len(steps) + place)
    return np.concatenate(edges)[np.argsort(np.concatenate(order))]

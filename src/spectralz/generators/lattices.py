"""Models on lattices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.generators.checks import checked_choice, checked_count, checked_flag, checked_scale
from spectralz.generators.streams import Stream
from spectralz.model import Ising

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["grid", "spin_glass_3d"]

# The neighbors of a site, each pair once; the last axis comes first.
SQUARE = ((0, 1), (1, 0))
CUBIC = ((0, 0, 1), (0, 1, 0), (1, 0, 0))


def grid(side: int, strength: float, seed: int, periodic: bool = False, field_strength: float = 1.0) -> Ising:
    """Square grid, side x side, spin ``row * side + column``; weights as in :func:`complete` (paper, Sec. 4.4).

    Parameters
    ----------
    side
        Spins along a side of the square.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number from 0 on.
    periodic
        Whether the last row and column are joined to the first (from side 3 on, where these are new edges).
    field_strength
        Largest |theta_i|.

    Examples
    --------
    >>> grid(side=10, strength=1.0, seed=0).edge_count
    180
    """
    side = checked_count(side, "side")
    stream = Stream(seed)
    field = stream.uniform(side * side, checked_scale(field_strength, "field_strength"))
    pairs = lattice_edges((side, side), SQUARE, checked_flag(periodic, "periodic"))
    A = stream.uniform(len(pairs), checked_scale(strength, "strength"))
    return Ising.from_edges(side * side, pairs, 2.0 * A, field)


def spin_glass_3d(side: int, strength: float, seed: int, periodic: bool = True, couplings: str = "gaussian") -> Ising:
    """Edwards-Anderson spin glass on a cubic lattice, side^3 spins, without field.

    Parameters
    ----------
    side
        Spins along an edge of the cube.
    strength
        J counted once is ``strength`` times a standard normal number (``couplings="gaussian"``) or times a random
        sign (``"bimodal"``).
    seed
        Any whole number from 0 on.
    periodic
        Whether opposite faces are joined (from side 3 on, where these are new edges).
    couplings
        ``"gaussian"`` or ``"bimodal"``.
    """
    side, strength = checked_count(side, "side"), checked_scale(strength, "strength")
    stream = Stream(seed)
    pairs = lattice_edges((side, side, side), CUBIC, checked_flag(periodic, "periodic"))
    couplings = checked_choice(couplings, "couplings", ("gaussian", "bimodal"))
    J = stream.normal(len(pairs)) if couplings == "gaussian" else stream.signs(len(pairs))
    return Ising.from_edges(side**3, pairs, strength * J)


def lattice_edges(shape: tuple[int, ...], steps: tuple[tuple[int, ...], ...], periodic: bool) -> NDArray[np.int64]:
    """Return the edges (m x 2) that lead from each site by each step, site by site, sites counted in rows.

    An axis is closed to a ring only if it has 3 sites or more: with 1 or 2, the way around leads to no new edge.
    """
    n = math.prod(shape)
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

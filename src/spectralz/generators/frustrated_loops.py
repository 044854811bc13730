"""Models with a known ground state: frustrated loops around a planted state."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import Stream, checked_choice, checked_count, checked_flag, checked_scale
from spectralz.generators.lattices import KINGS, SQUARE, TRIANGULAR, chimera_edges, lattice_edges
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

STEPS = {"square": SQUARE, "triangular": TRIANGULAR, "kings": KINGS}
CHIMERA_TILE = 4
# After this many walks in a row without a loop that is long enough, there are none or hardly any.
MOST_SHORT_LOOPS = 10_000


class Planted(NamedTuple):
    """Hold a state of largest log-weight, known without any search.

    Attributes
    ----------
    state
        The spins of the state, -1 or +1.
    log_weight
        Its log-weight; no other state has a larger one.

    Examples
    --------
    >>> import spectralz as sz
    >>> best = sz.generators.planted_state(rows=4, columns=4, strength=1.0, seed=0)
    >>> best.state.shape, sz.map_state(sz.generators.planted(4, 4, 1.0, seed=0)).log_weight == best.log_weight
    ((16,), True)
    """

    state: NDArray[np.int8]
    log_weight: float


def planted(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    loops_per_spin: float = 0.5,
    shortest: int = 4,
    graph: str = "square",
    periodic: bool = True,
) -> Ising:
    """Make frustrated loops on a lattice, around a hidden state that is known to be a ground state.

    Each loop is found where a random walk meets itself [1]_. All of its L edges but one, chosen at random, favor the
    hidden state. Every state leaves an odd number of the L weights unsatisfied, so that no state has a larger sum than
    the hidden one, ``strength`` times L - 2. Loops add up, and the hidden state is best for each of them. The hidden
    state is random; :func:`planted_state` returns it.

    Parameters
    ----------
    rows, columns
        Number of rows and columns of spins; for Chimera, of cells with 2 x 4 spins.
    strength
        Weight J, counted once, of an edge of one loop; loops that share an edge add up.
    seed
        Any whole number, 0 or more.
    loops_per_spin
        Number of loops divided by the number of spins.
    shortest
        Least number of edges in a loop; shorter loops are drawn again.
    graph
        ``square``, ``triangular``, ``kings`` or ``chimera``.
    periodic
        Whether the last row and column are joined to the first (from 3 on); Chimera is always open.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    References
    ----------
    .. [1] Hen et al., "Probing for quantum speedup in spin-glass problems with planted solutions", Physical Review A
       92, 042325 (2015).

    Examples
    --------
    >>> parameters = {"rows": 8, "columns": 8, "strength": 1.0, "seed": 0}
    >>> model, best = planted(**parameters), planted_state(**parameters)
    >>> float(model.log_weight(best.state)) == best.log_weight
    True
    """
    weight, state, loops = _loops_around(rows, columns, strength, seed, loops_per_spin, shortest, graph, periodic)
    pairs, sums = _edges_of(loops)
    return Ising.from_edges(len(state), pairs, weight * sums * state[pairs[:, 0]] * state[pairs[:, 1]])


def planted_state(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    loops_per_spin: float = 0.5,
    shortest: int = 4,
    graph: str = "square",
    periodic: bool = True,
) -> Planted:
    """Return the hidden state of :func:`planted` with the same parameters, and its log-weight.

    Parameters
    ----------
    rows, columns, strength, seed, loops_per_spin, shortest, graph, periodic
        As in :func:`planted`.

    Returns
    -------
    Planted
        The ``state`` and its ``log_weight``.

    Examples
    --------
    >>> planted_state(rows=3, columns=3, strength=0.5, seed=0).log_weight
    7.0
    """
    weight, state, loops = _loops_around(rows, columns, strength, seed, loops_per_spin, shortest, graph, periodic)
    return Planted(state.astype(np.int8), weight * sum(len(loop) - 2 for loop in loops))


def _loops_around(
    rows: int,
    columns: int,
    strength: float,
    seed: int,
    loops_per_spin: float,
    shortest: int,
    graph: str,
    periodic: bool,
) -> tuple[float, NDArray[np.float64], list[list[int]]]:
    """Check the parameters; return the weight of an edge, a random state, and the loops that all favor it."""
    shape = checked_count(rows, "rows"), checked_count(columns, "columns")
    weight = checked_scale(strength, "strength")
    density, shortest = checked_scale(loops_per_spin, "loops_per_spin"), checked_count(shortest, "shortest")
    graph, is_periodic = checked_choice(graph, "graph", (*STEPS, "chimera")), checked_flag(periodic, "periodic")
    stream = Stream(seed)
    is_chimera = graph == "chimera"
    n = math.prod(shape) * (2 * CHIMERA_TILE if is_chimera else 1)
    pairs = chimera_edges(*shape, CHIMERA_TILE) if is_chimera else lattice_edges(shape, STEPS[graph], is_periodic)
    state = stream.signs(n)
    count = math.floor(density * n + 0.5)
    neighbors = _neighbors(n, pairs)
    if count and min(map(len, neighbors)) < 2:
        raise OptionError(
            f"rows is {shape[0]} and columns is {shape[1]}; this lattice has no loops, so give it more of both"
        )
    return weight, state, list(_loops(neighbors, count, shortest, stream.units()))


def _edges_of(loops: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges (m x 2) whose loops do not cancel, and how many loops favor them, less those that oppose."""
    total = Counter[tuple[int, int]]()
    for loop in loops:
        for place, (i, j) in enumerate(zip(loop, loop[1:] + loop[:1], strict=True)):
            total[min(i, j), max(i, j)] += 1 if place < len(loop) - 1 else -1
    kept = sorted(edge for edge, weight in total.items() if weight)
    return np.array(kept, dtype=np.int64).reshape(-1, 2), np.array([total[edge] for edge in kept], dtype=np.float64)


def _neighbors(n: int, pairs: NDArray[np.int64]) -> list[list[int]]:
    neighbors: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs.tolist():
        neighbors[i].append(j)
        neighbors[j].append(i)
    return neighbors


def _loops(neighbors: list[list[int]], count: int, shortest: int, units: Iterator[float]) -> Iterator[list[int]]:
    """Yield loops as lists of spins; the edge from the last to the first, a random one, is to be the opposing one."""
    for _ in range(count):
        loop = _walk(neighbors, units)
        tries = 1
        while len(loop) < shortest:
            if tries == MOST_SHORT_LOOPS:
                raise OptionError(
                    f"shortest is {shortest}; none of {tries} random loops on this lattice was that long, so lower it"
                )
            loop = _walk(neighbors, units)
            tries += 1
        start = int(next(units) * len(loop))
        yield loop[start:] + loop[:start]


def _walk(neighbors: list[list[int]], units: Iterator[float]) -> list[int]:
    """Walk at random, never straight back, and return the part from the first spin that is visited again."""
    path = [int(next(units) * len(neighbors))]
    place = {path[0]: 0}
    before = -1
    while True:
        here = path[-1]
        onward = [spin for spin in neighbors[here] if spin != before]
        before, here = here, onward[int(next(units) * len(onward))]
        if here in place:
            return path[place[here] :]
        place[here] = len(path)
        path.append(here)

"""Sums over all states of a planar model, with the digits that cold models need."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from spectralz._support.progress import reporter_of
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from spectralz.kernels.planar.pfaffian import Sums
    from spectralz.model import FloatArray
    from spectralz.parts.planar.graph import PlanarGraph

# All is computed in numbers of 106 bits, and again less accurately: in numbers of 53 bits, which have some 2^50 times
# the error; with noise that is 2^21 times the rounding; and with noise of twice its size. Errors are at most these
# shares of the difference, where that is within ROUGH, since larger ones do not grow in proportion; or at the last.
LESS_ACCURATE: tuple[tuple[bool, float, float], ...] = (
    (False, 0.0, 2.0**-30),
    (True, 2.0**-80, 2.0**-14),
    (True, 2.0**-100, 8.0),
)
ROUGH = 1e-2
# Weights and means are rounded to doubles.
ROUNDINGS_OF_MEANS = 32.0
# The reference state is read off pair means where the root mean square of couplings is this, then twice
# it, and so on.
FIRST_STRENGTH, LAST_STRENGTH = 0.7, 20.0
# Weights exp(-2J) and products of some of them are double-precision numbers up to this J. Above, an edge must be so
# strong that states which break it have no weight: by this much more than what would be gained.
LARGEST_COUPLING, BOUND = 150.0, 50.0


@dataclass(frozen=True)
class Solved:
    """Log Z of the edges of a planar model, and their means, with the scales of their rounding errors.

    ``log_z`` is without the model's constant. The error is infinite if no digit is left.
    """

    log_z: float
    error: float
    pair_mean: FloatArray
    mean_error: float


NOTHING_LEFT = Solved(0.0, math.inf, np.zeros(0), math.inf)


def solve(graph: PlanarGraph, J: FloatArray, state: FloatArray | None = None, *, with_means: bool = False) -> Solved:
    """Sum over all states with the couplings ``J``, relative to a reference state."""
    return _checked(graph, J, heavy_state(graph, J) if state is None else state, with_means=with_means)


def log_sum(graph: PlanarGraph, J: FloatArray, state: FloatArray) -> float:
    """Return the logarithm of the sum over all states relative to ``state``, half of them, without an error."""
    return math.fsum(_sum(graph, J, state, with_means=False)[1].log_sum.tolist())


def bytes_of(graph: PlanarGraph, *, with_means: bool) -> int:
    """Return the memory of a sum."""
    return (32 if with_means else 16) * graph.merges.entries


def heavy_state(graph: PlanarGraph, J: FloatArray) -> FloatArray:
    """Return a heavy state: rounding is amplified by as much as some region would rather have another one.

    At first it satisfies the strongest couplings. Then it is found from the means of pairs at rising couplings, each
    time relative to the heaviest state so far.
    """
    state, strength = tied_along(graph, J), FIRST_STRENGTH
    typical = math.sqrt(float(np.mean(J**2))) if len(J) else 0.0
    with suppress(TooLargeError):
        while strength < min(typical, LAST_STRENGTH):
            means = _sum(graph, J * (strength / typical), state, with_means=True)[1].mean
            if not np.isfinite(means).all():
                break
            other = tied_along(graph, means * _products(graph, state))
            state = max(state, other, key=lambda s: float(J @ _products(graph, s)))
            strength *= 2.0
    return state


def tied_along(graph: PlanarGraph, size: FloatArray) -> FloatArray:
    """Return the state whose pairs have the signs of ``size`` along the spanning trees where it is largest."""
    root, pairs = graph.spins, graph.edges.T
    shape = (root + 1, root + 1)
    largest = float(np.abs(size).max(initial=0.0)) or 1.0
    tree = minimum_spanning_tree(sp.csr_array((2.0 - np.abs(size) / largest, pairs), shape=shape))
    _, firsts = np.unique(connected_components(tree, directed=False)[1][:-1], return_index=True)
    joined = tree + sp.csr_array((np.ones(len(firsts)), (np.full(len(firsts), root), firsts)), shape=shape)
    order, above = breadth_first_order(joined, root, directed=False)
    is_negative = {(i, j) for i, j in graph.edges[size < 0.0].tolist()}
    state = np.ones(root + 1)
    for spin, parent in zip(order[1:].tolist(), above[order[1:]].tolist(), strict=True):
        is_turned = (min(spin, parent), max(spin, parent)) in is_negative
        state[spin] = -state[parent] if is_turned else state[parent]
    return state[:-1]


def _sum(
    graph: PlanarGraph,
    J: FloatArray,
    state: FloatArray,
    *,
    with_means: bool,
    doubled: bool = True,
    noise: float = 0.0,
) -> tuple[FloatArray, Sums]:
    """Return the couplings relative to a state, and sums over all states relative to it."""
    from spectralz.kernels.planar.pfaffian import sums_of

    relative = J * _products(graph, state)
    tell = reporter_of("merging the faces")
    weighted = _with_bound(graph, relative)
    options: dict[str, Any] = {"doubled": doubled, "noise": noise, "with_means": with_means, "tell": tell}
    return relative, sums_of(graph.cities, graph.merges, weighted, **options)


def _checked(graph: PlanarGraph, J: FloatArray, state: FloatArray, *, with_means: bool) -> Solved:
    """Return sums in numbers of 106 bits, with errors from sums that are less accurate by a known factor."""
    relative, sums = _sum(graph, J, state, with_means=with_means)
    if not np.isfinite(sums.log_sum).all():
        return NOTHING_LEFT
    for doubled, noise, share in LESS_ACCURATE:  # noqa: B007
        _, others = _sum(graph, J, state, with_means=with_means, doubled=doubled, noise=noise)
        off = float(np.abs(sums.log_sum - others.log_sum).sum())
        mean_off = float(np.abs(sums.mean - others.mean).max(initial=0.0))
        if max(off, mean_off) <= ROUGH:
            break
    log_z = math.fsum([*relative.tolist(), *sums.log_sum.tolist(), math.log(2.0) * (graph.pieces - graph.has_fields)])
    # Each weight is rounded, and each of the numbers that are added up.
    sizes = math.sqrt(len(J)) + abs(log_z) + float(np.abs(sums.log_sum).sum())
    error = share * off + 2.0 * UNIT_ROUNDOFF * sizes
    if not math.isfinite(error + mean_off):
        return NOTHING_LEFT
    pair_mean = sums.mean * _products(graph, state) if with_means else sums.mean
    return Solved(log_z, error, pair_mean, share * mean_off + ROUNDINGS_OF_MEANS * UNIT_ROUNDOFF)


def _with_bound(graph: PlanarGraph, J: FloatArray) -> FloatArray:
    """Return the couplings relative to the reference state, infinite ones for edges that no state of weight breaks."""
    if np.abs(J).max(initial=0.0) <= LARGEST_COUPLING:
        return J
    at = np.zeros(graph.spins)
    np.add.at(at, graph.edges, np.abs(J)[:, None])
    # An edge is bound if it is stronger than all others of one of its spins, or than all that the state breaks.
    rivals = np.minimum(at[graph.edges].min(axis=1) - np.abs(J), -J[J < 0.0].sum())
    is_bound = J - rivals > BOUND
    loose = np.abs(J[~is_bound]).max(initial=0.0)
    if loose > LARGEST_COUPLING:
        raise TooLargeError(
            f"planar sums weights of competing couplings up to {LARGEST_COUPLING:g}, and this model has one of "
            f'{loose:.3g}; scale it down, or ask for method "auto"'
        )
    return np.where(is_bound, np.inf, J)


def _products(graph: PlanarGraph, state: FloatArray) -> FloatArray:
    return state[graph.edges[:, 0]] * state[graph.edges[:, 1]]

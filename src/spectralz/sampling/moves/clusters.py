"""Where clusters of spins are turned: in models whose spins would align, from where on clusters become large.

Single spins take long to move the walls between two phases, and longer than any budget at the critical point of a large
lattice. Clusters do so at once (Swendsen and Wang 1987), as long as couplings are not frustrated and fields do not hold
the clusters in place. A move takes about as long as ten sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs
from spectralz.model import Ising
from spectralz.parts.propagation.attractive import signs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.lanes import SparsePath
    from spectralz.model import FloatArray, Model

# Smaller models change from phase to phase by themselves, or by resampling.
FEWEST_SPINS = 256
# The mean size of fields up to which clusters turn.
WEAK_FIELD = 0.05
# States whose clusters are found by one thread, one after the other; their random numbers share no cache line with
# those of others. So many states together take about as long in sweeps as in clusters.
CLUSTERED_TOGETHER = 16
# Points of the path among which the first one with clusters is chosen.
POINTS = 64


def suit(model: Model, couplings: Couplings) -> bool:
    """Say whether to turn clusters in a model: it is sparse, its couplings are not frustrated, and clusters are large.

    Examples
    --------
    >>> import spectralz as sz
    >>> cold, hot = (sz.generators.torus(rows=20, columns=20, strength=K) for K in (0.4, 0.3))
    >>> suit(cold, cold.storage.for_kernels()), suit(hot, hot.storage.for_kernels())
    (True, False)
    """
    if not isinstance(model, Ising) or couplings.is_dense or model.n < FEWEST_SPINS:
        return False
    if float(np.abs(model.field).mean()) > WEAK_FIELD:
        return False
    return branching(couplings.data, couplings.indptr) > 1.0 and signs_of(model) is not None


def move_operations(n: int, entries: int) -> float:
    """Return what a move on one state counts, on a graph with so many entries in its coupling."""
    return costs.CLUSTER_SPIN * n + costs.CLUSTER_ENTRY * entries


def first_point(path: SparsePath) -> float:
    """Return the point of a path from which on clusters branch, or infinity if they do not."""
    at = np.linspace(0.0, 1.0, POINTS + 1)
    branching_points = (beta for beta in at if branching(path.data + beta * path.data_change, path.indptr) > 1.0)
    return float(next(branching_points, np.inf))


def turn_clusters(
    x: NDArray[np.int8],
    random: NDArray[np.uint32],
    count: int,
    beta: float,
    path: SparsePath,
    parallel: Callable[[Callable[[int], None], Sequence[int]], None],
) -> None:
    """Turn clusters of the first ``count`` states of ``x``, (n, 64), at a point of the path.

    ``parallel`` calls a function on each number of a sequence, in threads or not.
    """
    from spectralz.kernels.sampling.clusters import choose_clusters, join_pairs, turn_spins

    joined = join_pairs(x, random, beta, path)
    turned = np.empty((-(-count // CLUSTERED_TOGETHER), len(x)), np.uint64)

    def choose(part: int) -> None:
        begin = part * CLUSTERED_TOGETHER
        end = min(begin + CLUSTERED_TOGETHER, count)
        turned[part] = choose_clusters(x, random, begin, end, beta, path, joined)

    parallel(choose, range(len(turned)))
    turn_spins(x, turned)


def branching(data: FloatArray, indptr: np.ndarray) -> float:
    """Return by how much a cluster grows from neighbor to neighbor: beyond 1 it would not end, were there no loops.

    On a lattice of degree d this is (d - 1) tanh(K), which is 1 at Bethe's critical point; otherwise the sum over pairs
    of edges that meet, relative to that over edges.

    Examples
    --------
    >>> import math
    >>> import spectralz as sz
    >>> couplings = sz.generators.torus(rows=4, columns=5, strength=0.4).storage.for_kernels()
    >>> round(branching(couplings.data, couplings.indptr) / math.tanh(0.4), 12)
    3.0
    """
    sizes = np.tanh(np.abs(data))
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    sums = np.bincount(rows, weights=sizes, minlength=len(indptr) - 1)
    total = float(sums.sum())
    return float(sums @ sums - sizes @ sizes) / total if total > 0.0 else 0.0

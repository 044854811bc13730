"""Chains on a sparse graph, 64 states together, in single or in double precision.

Terms of three and more spins may be added. Then the sign of each stands beside the spins.

Clusters of spins may be turned in models whose spins would align, from where on clusters become large. Single spins
take long to move the walls between two phases, and longer than any budget at the critical point of a large lattice.
Clusters do so at once (Swendsen and Wang 1987), as long as couplings are not frustrated and fields do not hold the
clusters in place. A move takes about as long as ten sweeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.model import Ising
from spectralz.parts.propagation.attractive import signs_of
from spectralz.sampling.engines.lanes import Engine, SpinBySpin, cold_from, log_z_of_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.lanes import SparsePath
    from spectralz.kernels.terms import SpinTerms
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Subgraph


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


# ------------------------------------------------------------------------------------------------------------- clusters


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseEngine(Engine):
    """Chains on a sparse graph; :func:`sparse_engine` makes it.

    Attributes
    ----------
    base
        Fields of the base.
    path
        Fields and pairs of the model and of the base as the arrays of the kernels.
    terms
        Terms of three and more spins, or None.
    in_double
        Whether spins are drawn in double precision.
    subgraph
        The subgraph whose couplings are part of the base, if any.
    clusters_from
        The first point of the path at which clusters of spins are turned before each sweep; infinity for none.
    """

    base: FloatArray
    path: SparsePath
    terms: SpinTerms | None
    in_double: bool
    subgraph: Subgraph | None
    clusters_from: float


def sparse_engine(
    theta: FloatArray,
    couplings: Couplings,
    base: FloatArray,
    *,
    terms: SpinTerms | None = None,
    in_double: bool = False,
    subgraph: Subgraph | None = None,
    clusters: bool = False,
) -> SparseEngine:
    """Return an engine; with ``clusters`` it looks for the point of the path from which on clusters are large."""
    from spectralz.kernels.sampling.lanes import SparsePath

    n, entries, scopes = len(theta), len(couplings.data), 0 if terms is None else len(terms.spin)
    data = np.zeros(entries) if subgraph is None else np.where(subgraph.kept, couplings.data, 0.0)
    path = SparsePath(
        frozen(base),
        frozen(theta - base),
        frozen(data),
        frozen(couplings.data - data),
        couplings.indices,
        couplings.indptr,
        cold_from(couplings),
    )
    clusters_from = first_point(path) if clusters else math.inf
    slow_share = 1.0 - clusters_from if clusters_from < 1.0 else 0.0
    operations = sparse_operations(n, entries) + costs.TERM_ENTRY * scopes
    return SparseEngine(
        n=n,
        base=base,
        path=path,
        terms=terms,
        in_double=in_double,
        subgraph=subgraph,
        clusters_from=clusters_from,
        log_z_of_base=log_z_of_fields(base) if subgraph is None else subgraph.log_z,
        operations=(costs.DOUBLE_SPARSE_TIMES if in_double else 1.0) * operations
        + slow_share * move_operations(n, entries),
        bytes_per_state=2 * n + 64 + (0 if terms is None else len(terms.weight)),
        together=CLUSTERED_TOGETHER if slow_share else Engine.together,
        slow_share=slow_share,
    )


def sparse_operations(n: int, entries: int) -> float:
    """Return the cost of a sweep over one state, on a graph with so many entries in its coupling."""
    return costs.SPARSE_UPDATE * max(n, 1) + costs.SPARSE_ENTRY * entries


class SparseChains(SpinBySpin):
    """States on a sparse graph, spins and signs of terms as bytes."""

    def __init__(self, engine: SparseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel, np.int8)
        self._signs = None if engine.terms is None else self._room(len(engine.terms.weight), np.int8)
        # Whether the signs are those of the states.
        self._is_signed = False

    def draw(self) -> None:
        """Draw the states from the base."""
        subgraph = self._engine.subgraph
        if subgraph is None:
            super().draw()
        else:
            self._each(lambda chunk: subgraph.draw(self._x[chunk], self._random[chunk]))

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        super().fill(x)
        self._is_signed = False

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        super().take(places)
        self._is_signed = False

    def _refresh(self, points: int) -> None:
        signs, terms = self._signs, self._engine.terms
        if signs is not None and not self._is_signed:
            from spectralz.kernels.sampling.term_sweeps import fill_signs

            self._each(lambda chunk: fill_signs(self._x[chunk], signs[chunk], terms))
            self._is_signed = True

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling import double_lanes, lanes, term_sweeps

        x, random, path, in_double = self._x[chunk], self._random[chunk], self._path, self._engine.in_double
        if self._signs is not None:
            sweep_terms = term_sweeps.sweep_terms_in_double if in_double else term_sweeps.sweep_terms
            of_terms = term_sweeps.TermPath(path, self._engine.terms)
            energies[chunk] = sweep_terms(x, self._signs[chunk], random, at, sweeps, of_terms)
            return
        sweep = double_lanes.sweep_sparse_in_double if in_double else lanes.sweep_sparse
        is_slow = at >= self._engine.clusters_from
        edges = sorted({0, *(np.flatnonzero(is_slow[1:] | is_slow[:-1]) + 1).tolist(), len(at)})
        for begin, end in pairwise(edges):  # points with clusters one by one, those without together
            if is_slow[begin]:
                count = min(self.size - chunk * lanes.LANES, lanes.LANES)
                turn_clusters(x, random, count, float(at[begin]), path, self._parallel)
            energies[chunk, begin:end] = sweep(x, random, at[begin:end], sweeps, path)


SparseEngine.chains = SparseChains

"""Chains on a sparse graph in single precision, 64 states together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.lanes import CompiledEngine, SpinBySpin, cold_from, log_z_of_fields
from spectralz.sampling.moves.clusters import CLUSTERED_TOGETHER, first_point, move_operations, turn_clusters

if TYPE_CHECKING:
    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.lanes import SparsePath
    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.subgraph import Subgraph


@dataclass(frozen=True, eq=False)
class SparseEngine(CompiledEngine):
    """Chains on a sparse graph; :func:`sparse_engine` makes it.

    Attributes
    ----------
    theta, couplings
        The model's fields, and its couplings J = 2 A without the diagonal.
    base
        Fields of the base.
    path
        The same as the arrays of the kernels.
    subgraph
        The subgraph whose couplings are part of the base, if any.
    clusters_from
        The first point of the path at which clusters of spins are turned before each sweep; infinity for none.
    """

    theta: FloatArray
    couplings: Couplings
    base: FloatArray
    path: SparsePath
    subgraph: Subgraph | None
    clusters_from: float
    log_z_of_base: float
    operations: float
    together: int
    slow_share: float

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.base)

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state."""
        return 2 * self.n + 64


def sparse_engine(
    theta: FloatArray,
    couplings: Couplings,
    base: FloatArray,
    *,
    subgraph: Subgraph | None = None,
    clusters: bool = False,
    kind: type[SparseEngine] = SparseEngine,
    update_times: float = 1.0,
) -> SparseEngine:
    """Return an engine; with ``clusters`` it looks for the point of the path from which on clusters are large.

    ``kind`` is the class to make, and ``update_times`` how many times as long its sweeps take as those of this class.
    """
    from spectralz.kernels.sampling.lanes import SparsePath

    n, entries = len(theta), len(couplings.data)
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
    return kind(
        theta=theta,
        couplings=couplings,
        base=base,
        path=path,
        subgraph=subgraph,
        clusters_from=clusters_from,
        log_z_of_base=log_z_of_fields(base) if subgraph is None else subgraph.log_z,
        operations=update_times * sparse_operations(n, entries) + slow_share * move_operations(n, entries),
        together=CLUSTERED_TOGETHER if slow_share else CompiledEngine.together,
        slow_share=slow_share,
    )


def sparse_operations(n: int, entries: int) -> float:
    """Return the cost of a sweep over one state, on a graph with so many entries in its coupling."""
    return costs.SPARSE_UPDATE * max(n, 1) + costs.SPARSE_ENTRY * entries


class SparseChains(SpinBySpin):
    """States on a sparse graph, spins as bytes."""

    kind = np.int8

    def __init__(self, engine: SparseEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(engine, size, rng, parallel)
        self._path = engine.path
        self._subgraph = engine.subgraph
        self._clusters_from = engine.clusters_from

    def draw(self) -> None:
        """Draw the states from the base."""
        subgraph = self._subgraph
        if subgraph is None:
            super().draw()
        else:
            self._each(lambda chunk: subgraph.draw(self._x[chunk], self._random[chunk]))

    def _sweep(self, at: FloatArray, sweeps: int, energies: FloatArray, chunk: int) -> None:
        from spectralz.kernels.sampling.lanes import sweep_sparse

        x, random, path = self._x[chunk], self._random[chunk], self._path
        if self._clusters_from == math.inf:
            energies[chunk] = sweep_sparse(x, random, at, sweeps, path)
            return
        is_slow = at >= self._clusters_from
        edges = sorted({0, *(np.flatnonzero(is_slow[1:] | is_slow[:-1]) + 1).tolist(), len(at)})
        for begin, end in pairwise(edges):  # points with clusters one by one, those without together
            if is_slow[begin]:
                self._turn_clusters(chunk, float(at[begin]))
            energies[chunk, begin:end] = sweep_sparse(x, random, at[begin:end], sweeps, path)

    def _turn_clusters(self, chunk: int, beta: float) -> None:
        """Turn clusters of the states of a chunk."""
        from spectralz.kernels.sampling.lanes import LANES

        count = min(self.size - chunk * LANES, LANES)
        turn_clusters(self._x[chunk], self._random[chunk], count, beta, self._path, self._parallel)


SparseEngine.chains = SparseChains

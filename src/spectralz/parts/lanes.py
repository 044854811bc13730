"""Chains in lanes of 64 states that are swept together: of sparse and of dense couplings, in single precision.

Those of sparse ones may be in double precision, for who needs unbiased estimates and nothing else.

The base of the path has the model's own fields and no couplings, or those of a subgraph whose Z is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import log_2cosh
from spectralz.parts.clusters import CLUSTERED_TOGETHER, first_point, move_operations, turn_clusters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.block_heat_bath import Block
    from spectralz.model import FloatArray
    from spectralz.parts.blocks import BlockTurns
    from spectralz.parts.subgraph import Subgraph

__all__ = ["Compiled", "DenseEngine", "DoubleEngine", "SparseEngine", "dense_operations", "fits_single_precision"]

# Log-odds up to this size keep four digits after the point in single precision.
LARGEST_LOG_ODDS = 1000.0
# In operations: a spin update's random number and exponential, an entry of its row, and the same of a dense row.
UPDATE_OPERATIONS, ENTRY_OPERATIONS, DENSE_ENTRY_OPERATIONS = 1.5, 0.2, 0.03
# How much longer a sweep takes in double precision.
DOUBLE_TIMES = 4.0
# Fields of dense couplings are summed up anew after so many points of the path, before rounding can be seen in them.
POINTS_PER_REFRESH = 64

# Calls a function on each number of a sequence, in threads or not.
Map = Callable[[Callable[[int], None], Sequence[int]], None]


def fits_single_precision(theta: FloatArray, couplings: Couplings) -> bool:
    """Say whether the fields that spins can meet are small enough for their digits not to matter."""
    n = len(theta)
    if not n:
        return True
    return bool(2.0 * (np.abs(theta) + couplings.row_sums_of_sizes()).max() <= LARGEST_LOG_ODDS)


def one_after_the_other(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Call a function on each number."""
    for number in numbers:
        work(number)


class Compiled:
    """What engines of compiled code have in common: lanes of 64 states, in threads."""

    takes_threads = True
    together = 64
    slow_share = 0.0


class SparseEngine(Compiled):
    """Chains on a sparse graph.

    Parameters
    ----------
    theta, couplings
        The model's fields and couplings J = 2 A without its diagonal.
    spread
        How work on chunks of 64 states is spread over threads.
    blocks
        Blocks of spins that are drawn jointly where it is cold, if any.
    subgraph
        What the path begins from; independent spins if there is none.
    base
        Fields of those independent spins; by default the model's own.
    clusters
        Whether clusters of spins are turned before each sweep, from the point of the path on where they are large.
    """

    multiplies = False

    def __init__(
        self,
        theta: FloatArray,
        couplings: Couplings,
        spread: Map = one_after_the_other,
        blocks: BlockTurns | None = None,
        subgraph: Subgraph | None = None,
        base: FloatArray | None = None,
        clusters: bool = False,
    ) -> None:
        from spectralz.kernels.sampling.lanes import SparsePath

        self.n = len(theta)
        self.theta = theta
        self.base = theta if base is None else base
        self.couplings = couplings
        self.blocks = blocks
        self.subgraph = subgraph
        data = np.zeros(len(couplings.data)) if subgraph is None else np.where(subgraph.kept, couplings.data, 0.0)
        self.path = SparsePath(
            frozen(self.base),
            frozen(theta - self.base),
            frozen(data),
            frozen(couplings.data - data),
            couplings.indices,
            couplings.indptr,
        )
        self.log_z_of_base = log_z_of_fields(self.base) if subgraph is None else subgraph.log_z
        self.operations = sparse_operations(self.n, len(couplings.data))
        self.operations += blocks.operations if blocks is not None else 0.0
        self.clusters_from = first_point(self.path) if clusters else math.inf
        if self.clusters_from < 1.0:
            self.slow_share = 1.0 - self.clusters_from
            self.together = CLUSTERED_TOGETHER
            self.operations += self.slow_share * move_operations(self.n, len(couplings.data))
        self.bytes_per_state = 2 * self.n + 64
        self.spread = spread

    def start(self, size: int, rng: np.random.Generator) -> SparseChains:
        """Return states drawn from the base."""
        chains = self._chains(size, rng)
        chains.draw()
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> SparseChains:
        """Return chains that begin in given states."""
        chains = self._chains(len(x), rng)
        chains.fill(x)
        return chains

    def _chains(self, size: int, rng: np.random.Generator) -> SparseChains:
        return SparseChains(self, size, rng)

    def quenched(self, x: NDArray[np.int8], most_sweeps: int) -> NDArray[np.int8]:
        """Return the local maxima of the weight that states are quenched to, after so many sweeps at most."""
        if not len(x):
            return x.copy()
        chains = self.start_from(x, np.random.default_rng(0))
        chains.quench(most_sweeps)
        return chains.states()


class DoubleEngine(SparseEngine):
    """Chains on a sparse graph in double precision; the path begins from independent spins."""

    def __init__(
        self,
        theta: FloatArray,
        couplings: Couplings,
        spread: Map = one_after_the_other,
        blocks: BlockTurns | None = None,
    ) -> None:
        super().__init__(theta, couplings, spread, blocks)
        self.operations += (DOUBLE_TIMES - 1.0) * sparse_operations(self.n, len(couplings.data))

    def _chains(self, size: int, rng: np.random.Generator) -> DoubleChains:
        return DoubleChains(self, size, rng)


class DenseEngine(Compiled):
    """Chains of a dense coupling, which is kept in single precision; parameters as of :class:`SparseEngine`."""

    multiplies = True

    def __init__(
        self,
        theta: FloatArray,
        couplings: Couplings,
        spread: Map = one_after_the_other,
        base: FloatArray | None = None,
    ) -> None:
        from spectralz.kernels.sampling.lanes import DensePath

        self.n = len(theta)
        self.base = theta if base is None else base
        coupling = couplings.data.reshape(self.n, self.n).astype(np.float32)
        self.path = DensePath(frozen(self.base.astype(np.float32)), frozen(theta.astype(np.float32)), frozen(coupling))
        self.log_z_of_base = log_z_of_fields(self.base)
        self.operations = dense_operations(self.n)
        self.bytes_per_state = 13 * self.n + 64
        self.spread = spread

    def start(self, size: int, rng: np.random.Generator) -> DenseChains:
        """Return states drawn from the base."""
        chains = DenseChains(self, size, rng)
        chains.draw()
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> DenseChains:
        """Return chains that begin in given states."""
        chains = DenseChains(self, len(x), rng)
        chains.fill(x)
        return chains


def sparse_operations(n: int, entries: int) -> float:
    """Return what a sweep over one state counts, on a graph with so many entries in its coupling."""
    return UPDATE_OPERATIONS * max(n, 1) + ENTRY_OPERATIONS * entries


def dense_operations(n: int) -> float:
    """Return what a sweep over one state of a dense coupling counts."""
    return 2.0 * UPDATE_OPERATIONS * max(n, 1) + DENSE_ENTRY_OPERATIONS * n**2


def log_z_of_fields(theta: FloatArray) -> float:
    """Return log Z of independent spins."""
    return float(log_2cosh(theta).sum())


class Lanes:
    """States in chunks of 64 that are swept together; the lanes left over in the last chunk stand for nothing."""

    def __init__(self, size: int, spread: Map, rng: np.random.Generator) -> None:
        from spectralz.kernels.sampling.lanes import LANES

        self.size = size
        self._chunks = -(-size // LANES)
        self._lanes = self._chunks * LANES
        self._random = rng.integers(2**32, size=(self._chunks, 4, LANES), dtype=np.uint32)
        self._spread = spread

    def _room(self, spins: int, kind: Any) -> Any:
        """Return an array for so many spins of all states, (chunks, spins, 64)."""
        return np.empty((self._chunks, spins, self._lanes // self._chunks), dtype=kind)

    def _put(self, rows: NDArray[np.int8], x: Any) -> None:
        """Put states, one a row, into such an array, the last one into the lanes that are left over."""
        padded = np.concatenate([rows, np.repeat(rows[-1:], self._lanes - len(rows), axis=0)])
        x[:] = padded.reshape(self._chunks, self._lanes // self._chunks, rows.shape[1]).transpose(0, 2, 1)

    def _rows(self, x: Any) -> Any:
        """Return the states of such an array, one a row."""
        return x.transpose(0, 2, 1).reshape(self._lanes, -1)[: self.size]

    def _taken(self, x: Any, places: NDArray[np.int64]) -> Any:
        """Return such an array with the state at ``places[r]`` as the r-th."""
        from spectralz.kernels.sampling.lanes import take

        taken = np.empty_like(x)
        take(x, np.concatenate([places, np.arange(len(places), self._lanes)]), taken)
        return taken

    def _joined(self, found: FloatArray) -> FloatArray:
        """Return numbers of all states at some points, (chunks, points, 64), as (points, states)."""
        return found.transpose(1, 0, 2).reshape(found.shape[1], self._lanes)[:, : self.size]

    def _each(self, work: Callable[[int], None]) -> None:
        """Call a function on the number of each chunk."""
        self._spread(work, range(self._chunks))


class _SpinBySpin(Lanes):
    """States whose spins are drawn one after the other, on a path on which weights change by energies times steps."""

    def __init__(self, engine: SparseEngine | DenseEngine, size: int, kind: Any, rng: np.random.Generator) -> None:
        super().__init__(size, engine.spread, rng)
        self._x = self._room(engine.n, kind)
        self._base = engine.base

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.sampling.lanes import draw_spins

        base = frozen(self._base)
        self._each(lambda chunk: draw_spins(self._x[chunk], self._random[chunk], base))

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        self._put(x, self._x)

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        self._x = self._taken(self._x, places)

    def states(self) -> NDArray[np.int8]:
        """Return the states, one a row."""
        return np.array(self._rows(self._x), dtype=np.int8, order="C")  # a copy, also of a single spin's

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        energies = self._room(len(at), np.float64)
        self._each(lambda chunk: self._sweep(chunk, at, sweeps, energies[chunk]))
        joined = self._joined(energies)
        return (before - at)[:, None] * joined, (after - at)[:, None] * joined

    def _sweep(self, chunk: int, at: FloatArray, sweeps: int, energies: FloatArray) -> None:
        raise NotImplementedError


class SparseChains(_SpinBySpin):
    """States on a sparse graph, spins as bytes."""

    def __init__(self, engine: SparseEngine, size: int, rng: np.random.Generator) -> None:
        super().__init__(engine, size, np.int8, rng)
        self._path = engine.path
        self._theta = engine.theta
        self._couplings = engine.couplings
        self._blocks = engine.blocks
        self._subgraph = engine.subgraph
        self._clusters_from = engine.clusters_from
        self._counters = rng.integers(2**64, size=self._lanes, dtype=np.uint64)
        self._point = 0

    def draw(self) -> None:
        """Draw the states from the base."""
        subgraph = self._subgraph
        if subgraph is None:
            super().draw()
        else:
            self._each(lambda chunk: subgraph.draw(self._x[chunk], self._random[chunk]))

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other, and draw the blocks whose turn has come."""
        due = [] if self._blocks is None else self._blocks.due(at, self._point)
        self._point += len(at)
        edges = [0, *(k for k, _ in due), len(at)]
        parts = []
        for (begin, end), block in zip(pairwise(edges), [None, *(block for _, block in due)], strict=True):
            if block is not None:  # before the sweeps, so that what is recorded is the state that goes on
                beta = float(at[begin])
                self._each(lambda chunk, beta=beta, block=block: self._draw_block(chunk, beta, block))  # type: ignore[misc]
            parts.append(super().sweep(before[begin:end], at[begin:end], after[begin:end], sweeps))
        back, on = zip(*parts, strict=True)
        return np.concatenate(back), np.concatenate(on)

    def quench(self, most_sweeps: int) -> None:
        """Turn spins along their fields until none turns."""
        from spectralz.kernels.sampling.lanes import LANES, descend_sparse

        field, J = frozen(self._theta), self._couplings
        self._each(
            lambda chunk: descend_sparse(
                self._x[chunk], most_sweeps, field, J.data, J.indices, J.indptr, np.empty(LANES)
            )
        )

    def _draw_block(self, chunk: int, beta: float, block: Block) -> None:
        """Draw a block of every state of a chunk anew, as rows."""
        from spectralz.kernels.sampling.block_heat_bath import block_heat_bath
        from spectralz.kernels.sampling.heat_bath import refresh
        from spectralz.kernels.sampling.lanes import LANES

        rows = np.ascontiguousarray(self._x[chunk].T)
        h, energy = np.empty(rows.shape), np.empty(LANES)
        counters = self._counters[chunk * LANES : (chunk + 1) * LANES]
        scaled = self._couplings._replace(data=frozen(self._path.data + beta * self._path.data_change))
        field = frozen(self._path.field + beta * self._path.field_change)
        refresh(rows, h, field, scaled)
        block_heat_bath(rows, h, energy, counters, 1.0, block, field, scaled)
        self._x[chunk] = rows.T

    def _sweep(self, chunk: int, at: FloatArray, sweeps: int, energies: FloatArray) -> None:
        from spectralz.kernels.sampling.lanes import LANES, sweep_sparse

        x, random, path = self._x[chunk], self._random[chunk], self._path
        scaled, log_odds = np.empty(len(path.data), np.float32), np.empty(LANES, np.float32)
        is_slow = at >= self._clusters_from
        edges = sorted({0, *(np.flatnonzero(is_slow[1:] | is_slow[:-1]) + 1).tolist(), len(at)})
        for begin, end in pairwise(edges):  # points with clusters one by one, those without together
            if is_slow[begin]:
                self._turn_clusters(chunk, float(at[begin]))
            sweep_sparse(x, random, at[begin:end], sweeps, path, scaled, log_odds, energies[begin:end])

    def _turn_clusters(self, chunk: int, beta: float) -> None:
        """Turn clusters of the states of a chunk."""
        from spectralz.kernels.sampling.lanes import LANES

        count = min(self.size - chunk * LANES, LANES)
        turn_clusters(self._x[chunk], self._random[chunk], count, beta, self._path, self._spread)


class DoubleChains(SparseChains):
    """States on a sparse graph that are drawn in double precision."""

    def draw(self) -> None:
        """Draw the states from the base: without couplings a sweep does so, whatever they were."""
        self._x[:] = 0
        ignored = self._room(1, np.float64)
        self._each(lambda chunk: self._sweep(chunk, np.zeros(1), 1, ignored[chunk]))

    def _sweep(self, chunk: int, at: FloatArray, sweeps: int, energies: FloatArray) -> None:
        from spectralz.kernels.sampling.double_lanes import sweep_sparse_in_double
        from spectralz.kernels.sampling.lanes import LANES

        sweep_sparse_in_double(self._x[chunk], self._random[chunk], at, sweeps, self._path, np.empty(LANES), energies)


class DenseChains(_SpinBySpin):
    """States of a dense coupling with the fields of their spins, all in single precision."""

    def __init__(self, engine: DenseEngine, size: int, rng: np.random.Generator) -> None:
        super().__init__(engine, size, np.float32, rng)
        self._path = engine.path
        self._h = np.empty_like(self._x)
        self._points_left = 0

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other; fields are summed up anew now and then."""
        if self._points_left <= 0:
            self._each(self._sum_up)
            self._points_left = POINTS_PER_REFRESH
        self._points_left -= len(at)
        return super().sweep(before, at, after, sweeps)

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        super().fill(x)
        self._points_left = 0

    def _sum_up(self, chunk: int) -> None:
        np.matmul(self._path.coupling, self._x[chunk], out=self._h[chunk])
        self._h[chunk] += self._path.field[:, None]

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        super().take(places)
        self._h = self._taken(self._h, places)

    def _sweep(self, chunk: int, at: FloatArray, sweeps: int, energies: FloatArray) -> None:
        from spectralz.kernels.sampling.lanes import LANES, SPINS_TOLD_TOGETHER, sweep_dense

        x, h, n = self._x[chunk], self._h[chunk], self._x.shape[1]
        sweep_dense(
            x,
            h,
            self._random[chunk],
            at,
            sweeps,
            self._path,
            np.empty((n, LANES), np.float32),
            np.empty((SPINS_TOLD_TOGETHER, n), np.float32),
            np.empty((SPINS_TOLD_TOGETHER, LANES), np.float32),
            energies,
        )

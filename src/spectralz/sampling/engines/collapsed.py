"""Chains of bipartite models, such as restricted Boltzmann machines, with the larger side summed out analytically.

A chain keeps the spins of one side. Given these, the spins of the other side are independent, so that the sum over all
their states is a product of 2cosh. This leaves fewer spins whose weights can scatter. A sweep is two matrix products.
With ``flips`` the spins of the kept side are flipped one by one: a sweep takes several times as long, but strong
couplings, which freeze sides that alternate, do not stop it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import costs
from spectralz.kernels.coupling import frozen
from spectralz.sampling.engines.dense import dense_operations
from spectralz.sampling.engines.lanes import Engine, Lanes, log_z_of_fields
from spectralz.sampling.engines.sparse import sparse_operations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.sampling.collapsed import CollapsedPath
    from spectralz.model import FloatArray, IntArray, Model
    from spectralz.sampling.engines.lanes import Parallel

# A collapsed sweep may take this many times as long as one spin by spin. On random bipartite graphs the variance of the
# weights times the time is still smaller at 2, but cold grids have many phases, and no base suits them all.
MOST_TIMES = 1.0
# Rows of the tables of flips that a thread fills at a time.
ROWS_AT_ONCE = 32


@dataclass(frozen=True)
class Sides:
    """The two sides of a bipartite model: each spin is coupled only to spins of the other side.

    Attributes
    ----------
    kept, summed
        The spins that chains keep, and those that are summed out.
    """

    kept: IntArray
    summed: IntArray


def sides_of(model: Model) -> Sides | None:
    """Return the sides of a bipartite model, the larger one to be summed out; None if there are none."""
    if model.higher.number:  # the sum over a side is a product only if there are pairs alone
        return None
    sides = model.storage.sides
    return None if sides is None or not len(sides[0]) else Sides(*sides)


def sides_that_pay(model: Model) -> Sides | None:
    """Return the sides of a model if collapsed chains pay, otherwise None."""
    if not model.n:
        return None
    most = MOST_TIMES * min(sparse_operations(model.n, 2 * model.edge_count), dense_operations(model.n))
    # Every edge has an end in the side that is kept. To find out about many spins takes as long as a sweep.
    fewest_kept = model.edge_count / max(model.storage.for_kernels().longest_row, 1)
    if costs.SIDE_ENTRY * fewest_kept * 0.5 * model.n > most:
        return None
    sides = sides_of(model)
    return None if sides is None or operations_of(sides) > most else sides


def operations_of(sides: Sides) -> float:
    """Return the cost of a collapsed sweep over one state."""
    kept, summed = len(sides.kept), len(sides.summed)
    return costs.SIDE_DRAW * (kept + summed) + costs.SIDE_SUM * summed + costs.SIDE_ENTRY * kept * summed


@dataclass(frozen=True, eq=False, kw_only=True)
class CollapsedEngine(Engine):
    """Chains of a bipartite model with a side summed out; :func:`collapsed_engine` makes it.

    Attributes
    ----------
    sides
        Which spins are kept and which are summed out.
    path
        The model and the base as the arrays of the kernels.
    flips
        Whether the kept spins are flipped one by one.
    """

    sides: Sides
    path: CollapsedPath
    flips: bool

    multiplies: ClassVar[bool] = True


def collapsed_engine(model: Model, sides: Sides, base: FloatArray, *, flips: bool = False) -> CollapsedEngine:
    """Return an engine whose path begins from independent spins with the fields ``base``."""
    kept, summed = len(sides.kept), len(sides.summed)
    of_flips = kept * (costs.FLIP + costs.FLIP_ENTRY * summed) + costs.FLIP_SUM * summed
    return CollapsedEngine(
        n=model.n,
        sides=sides,
        path=collapsed_path(model, sides, base),
        flips=flips,
        log_z_of_base=log_z_of_fields(base),
        operations=of_flips if flips else operations_of(sides),
        bytes_per_state=4 * model.n + 64,
    )


def collapsed_path(model: Model, sides: Sides, base: FloatArray) -> CollapsedPath:
    """Return the models on the path, as the arrays of the kernels."""
    from spectralz.kernels.sampling.collapsed import CollapsedPath

    return CollapsedPath(
        frozen(weights_of(model, sides).astype(np.float32)),
        frozen(base[sides.kept]),
        frozen(model.field[sides.kept] - base[sides.kept]),
        frozen(base[sides.summed]),
        frozen(model.field[sides.summed] - base[sides.summed]),
    )


def weights_of(model: Model, sides: Sides) -> FloatArray:
    """Return the couplings J between the sides, kept x summed."""
    J = 2.0 * model.storage.written_out.block(sides.kept, sides.summed)
    return np.ascontiguousarray(J if isinstance(J, np.ndarray) else J.toarray())


class CollapsedChains(Lanes):
    """States of the kept side, with the fields that they have on the summed side."""

    def __init__(self, engine: CollapsedEngine, size: int, rng: np.random.Generator, parallel: Parallel) -> None:
        super().__init__(size, rng, parallel)
        self._engine = engine
        self._path: CollapsedPath = engine.path
        kept, summed = self._path.weights.shape
        self._v = self._room(kept, np.float32)
        self._pushes = self._room(summed, np.float32)
        # The point of the path at which the states are.
        self._beta = 0.0
        # The summed side of states that were given, until the first sweep.
        self._given: NDArray[np.int8] | None = None

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.sampling.lanes import draw_spins

        def work(chunk: int) -> None:
            draw_spins(self._v[chunk], self._random[chunk], self._path.kept)
            self._push(chunk)

        self._each(work)

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        sides = self._engine.sides
        self._put(x[:, sides.kept], self._v)
        self._given = x[:, sides.summed]
        self._each(self._push)

    def _push(self, chunk: int) -> None:
        np.matmul(self._path.weights.T, self._v[chunk], out=self._pushes[chunk])

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        points = np.stack([before, at, after], axis=1)
        back, on = self._room(len(at), np.float64), self._room(len(at), np.float64)
        (self._flip if self._engine.flips else self._alternate)(points, sweeps, back, on)
        if len(at):
            self._beta, self._given = float(at[-1]), None
        return self._joined(back), self._joined(on)

    def _alternate(self, points: FloatArray, sweeps: int, back: FloatArray, on: FloatArray) -> None:
        from spectralz.kernels.sampling.collapsed import sweep_collapsed

        def work(chunk: int) -> None:
            arrays = self._v[chunk], self._pushes[chunk], self._random[chunk]
            back[chunk], on[chunk] = sweep_collapsed(*arrays, points, sweeps, self._path)

        self._each(work)

    def _flip(self, points: FloatArray, sweeps: int, back: FloatArray, on: FloatArray) -> None:
        from spectralz.kernels.sampling.side_flips import Tables, fill_tables, sweep_flips

        path, shape = self._path, self._path.weights.shape
        tables = Tables(np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty((shape[0], 2)))
        for k, three in enumerate(points):

            def fill(block: int, beta: float = float(three[1])) -> None:
                begin = block * ROWS_AT_ONCE
                fill_tables(begin, min(begin + ROWS_AT_ONCE, shape[0]), beta, path, tables)

            def work(chunk: int, k: int = k, three: FloatArray = three) -> None:
                arrays = self._v[chunk], self._pushes[chunk], self._random[chunk]
                sweep_flips(*arrays, three, sweeps, path, tables, back[chunk, k], on[chunk, k])

            self._parallel(fill, range(-(-shape[0] // ROWS_AT_ONCE)))
            self._each(work)

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        self._v, self._pushes = self._taken(self._v, places), self._taken(self._pushes, places)
        if self._given is not None:
            self._given = self._given[places]

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row, the summed side drawn given the kept one at the last point of the path."""
        from spectralz.kernels.sampling.collapsed import draw_side
        from spectralz.kernels.sampling.lanes import LANES

        sides, path = self._engine.sides, self._path
        x = np.empty((self.size, self._engine.n), dtype=np.int8)
        x[:, sides.kept] = self._rows(self._v)
        if self._given is not None:
            x[:, sides.summed] = self._given
            return x

        def work(chunk: int) -> None:
            h = np.empty((len(sides.summed), LANES), np.float32)
            draw_side(h, self._pushes[chunk], self._random[chunk], self._beta, path.summed, path.summed_change)
            these = slice(chunk * LANES, min((chunk + 1) * LANES, self.size))
            x[these, sides.summed] = h.T[: these.stop - these.start]

        self._each(work)
        return x


CollapsedEngine.chains = CollapsedChains

"""Chains in double precision, one state per row, for couplings and fields beyond single precision.

The base of the path is n unbiased independent spins.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.parts.lanes import Compiled, Map, one_after_the_other

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.sampling.block_heat_bath import Block
    from spectralz.model import FloatArray
    from spectralz.parts.blocks import BlockTurns

__all__ = ["RowEngine"]

# Operations per update of a single spin, and per entry of the row of a flipped spin.
UPDATE_OPERATIONS, TURN_OPERATIONS = 25.0, 0.25
# Fields are recomputed after this many points of the path, before rounding errors matter.
POINTS_PER_REFRESH = 64
# Number of states swept by one call.
STATES_TOGETHER = 64


class RowEngine(Compiled):
    """Chains in double precision; parameters as of :class:`spectralz.parts.lanes.SparseEngine`."""

    multiplies = False

    def __init__(
        self,
        theta: FloatArray,
        couplings: Couplings,
        spread: Map = one_after_the_other,
        blocks: BlockTurns | None = None,
    ) -> None:
        self.n = len(theta)
        self.theta = np.ascontiguousarray(theta)
        self.couplings = couplings
        self.spread = spread
        self.blocks = blocks
        self.log_z_of_base = self.n * math.log(2.0)
        self.operations = UPDATE_OPERATIONS * max(self.n, 1) + TURN_OPERATIONS * len(couplings.data)
        self.operations += blocks.operations if blocks is not None else 0.0
        self.bytes_per_state = 9 * self.n + 40

    def start(self, size: int, rng: np.random.Generator) -> RowChains:
        """Return states of unbiased independent spins."""
        from spectralz.kernels.sampling.heat_bath import draw_states

        chains = RowChains(self, size, rng)
        draw_states(chains.x, chains.counters)
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> RowChains:
        """Return chains that begin in given states."""
        chains = RowChains(self, len(x), rng)
        chains.x[:] = x
        return chains


class RowChains:
    """States with the fields of their spins, one per row."""

    def __init__(self, engine: RowEngine, size: int, rng: np.random.Generator) -> None:
        self.size = size
        self.x = np.empty((size, engine.n), dtype=np.int8)
        self.counters = rng.integers(2**64, size=size, dtype=np.uint64)
        self._h = np.empty((size, engine.n))
        self._engine = engine
        self._point = 0

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at each point of the path in turn; weights change by energies times steps."""
        energies = np.empty((len(at), self.size))
        blocks = self._engine.blocks
        due = {} if blocks is None else dict(blocks.due(at, self._point))
        for k, beta in enumerate(at):
            self._sweep_at(float(beta), sweeps, energies[k], due.get(k))
            self._point += 1
        return (before - at)[:, None] * energies, (after - at)[:, None] * energies

    def _sweep_at(self, beta: float, sweeps: int, energy: FloatArray, block: Block | None) -> None:
        from spectralz.kernels.sampling.block_heat_bath import block_heat_bath

        is_refreshed = self._point % POINTS_PER_REFRESH == 0

        def work(part: int) -> None:
            self._sweep(part, beta, sweeps, energy, is_refreshed)

        engine = self._engine
        engine.spread(work, range(-(-self.size // STATES_TOGETHER)))
        if block is not None:
            block_heat_bath(self.x, self._h, energy, self.counters, beta, block, engine.theta, engine.couplings)

    def _sweep(self, part: int, beta: float, sweeps: int, energy: FloatArray, is_refreshed: bool) -> None:
        from spectralz.kernels.sampling.heat_bath import heat_bath, refresh

        these = slice(part * STATES_TOGETHER, (part + 1) * STATES_TOGETHER)
        x, h, counters = self.x[these], self._h[these], self.counters[these]
        theta, couplings = self._engine.theta, self._engine.couplings
        if is_refreshed:
            refresh(x, h, theta, couplings)
        heat_bath(x, h, energy[these], counters, beta, sweeps, theta, couplings)

    def take(self, places: NDArray[np.int64]) -> None:
        """Make the state at ``places[r]`` the r-th."""
        self.x, self._h = self.x[places], self._h[places]

    def states(self) -> NDArray[np.int8]:
        """Return the current states."""
        return self.x.copy()

"""Chains of bipartite models with the larger side summed out, whose other spins are flipped one by one.

A sweep takes several times as long as one that alternates the sides (``collapsed.py``), but strong couplings, which
freeze these, do not stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs
from spectralz.sampling.engines.collapsed import CollapsedChains, CollapsedEngine, collapsed_path
from spectralz.sampling.engines.lanes import log_z_of_fields

if TYPE_CHECKING:
    from spectralz.kernels.sampling.side_flips import Tables
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides

# Rows of the tables that a thread fills at a time.
ROWS_AT_ONCE = 32


class FlipEngine(CollapsedEngine):
    """Chains whose kept spins are flipped one by one; :func:`flip_engine` makes it."""


def flip_engine(model: Model, sides: Sides, base: FloatArray) -> FlipEngine:
    """Return an engine whose path begins from independent spins with the fields ``base``."""
    kept, summed = len(sides.kept), len(sides.summed)
    operations = kept * (costs.FLIP + costs.FLIP_ENTRY * summed) + costs.FLIP_SUM * summed
    return FlipEngine(sides, collapsed_path(model, sides, base), log_z_of_fields(base), operations)


class FlipChains(CollapsedChains):
    """States of the kept side, with the fields that they have on the summed side."""

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        from spectralz.kernels.sampling.side_flips import fill_tables, sweep_flips

        path, tables = self._path, self._tables()
        shape = path.weights.shape
        points = np.stack([before, at, after], axis=1)
        back, on = self._room(len(at), np.float64), self._room(len(at), np.float64)
        blocks = range(-(-shape[0] // ROWS_AT_ONCE))
        for k, three in enumerate(points):

            def fill(block: int, beta: float = float(three[1])) -> None:
                begin = block * ROWS_AT_ONCE
                fill_tables(begin, min(begin + ROWS_AT_ONCE, shape[0]), beta, path, tables)

            def work(chunk: int, k: int = k, three: FloatArray = three) -> None:
                arrays = self._v[chunk], self._pushes[chunk], self._random[chunk]
                sweep_flips(*arrays, three, sweeps, path, tables, back[chunk, k], on[chunk, k])

            self._parallel(fill, blocks)
            self._each(work)
        self._now_at(at)
        return self._joined(back), self._joined(on)

    def _tables(self) -> Tables:
        from spectralz.kernels.sampling.side_flips import Tables

        shape = self._path.weights.shape
        return Tables(np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty((shape[0], 2)))


FlipEngine.chains = FlipChains

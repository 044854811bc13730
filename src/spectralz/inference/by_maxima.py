"""Find the heaviest state of a model by elimination, with maxima instead of sums.

Mini-buckets with all weights 0 take maxima: the bound on log Z becomes a bound on the largest log-weight, and going
back through the tables finds a state. If no bucket had to be split, both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.progress import reporter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import Ising


@dataclass(frozen=True)
class Heaviest:
    """A state of -1 and +1, an upper bound on all log-weights, without constants, and its rounding error."""

    state: NDArray[np.int8]
    upper: float
    rounding: float


def table_entries(model: Ising, order: Sequence[int], ibound: int) -> int:
    """Return the total number of table entries of all mini-buckets."""
    from spectralz.kernels.mini_buckets.cover import cover_by_scope

    cover = cover_by_scope(np.asarray(order, dtype=np.int64), model.edges()[0], ibound)
    return int(cover.entries(keep=True))


def by_maxima(model: Ising, order: Sequence[int], ibound: int, rng: np.random.Generator) -> Heaviest:
    """Eliminate spins by maxima, in tables of up to ``ibound`` spins, and go back for the heaviest state.

    Ties on the way back are broken at random; of several such draws the heaviest is returned.
    """
    from spectralz.kernels.mini_buckets.cover import cover_by_scope
    from spectralz.kernels.mini_buckets.drawing import Drawing
    from spectralz.kernels.mini_buckets.passes import Forest

    edges, J = model.edges()
    cover = cover_by_scope(np.asarray(order, dtype=np.int64), edges, ibound)
    forest = Forest.of_cover(cover, edges)
    potentials = forest.potentials(model.field, J, lambda _: (0.0, 0.0))
    drawing = Drawing.of(forest, potentials, reporter_of("eliminating spins"))
    drawn = drawing.draw(rng)
    states = np.empty((drawn.x.shape[1], model.n), dtype=np.int8)
    states[:, np.asarray(cover.order)] = 2 * drawn.x.T - 1
    best = states[int(np.argmax(model.log_weight(states)))]
    return Heaviest(best, drawing.bound.value + drawing.bound.rounding, drawing.bound.rounding)


def rounding_of(model: Ising) -> float:
    """Return a bound on the rounding error of a log-weight."""
    from spectralz.kernels import UNIT_ROUNDOFF

    J = model.edges()[1]
    sizes = float(np.abs(model.field).sum() + np.abs(J).sum()) + abs(model.constant)
    return (len(J) + model.n + 16) * UNIT_ROUNDOFF * sizes + model.rounding

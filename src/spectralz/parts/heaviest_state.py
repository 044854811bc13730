"""Find the heaviest state of a model, by elimination with maxima instead of sums, or by search.

Mini-buckets with all weights 0 take maxima: the bound on log Z becomes a bound on the largest log-weight, and going
back through the tables finds a state. If no bucket had to be split, both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report, reporter_of
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.annealer import Annealer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Ising

__all__ = ["Heaviest", "by_maxima", "by_search", "rounding_of", "table_entries"]

# States that are cooled together, the initial number of points of their path, and its growth factor from one run to the
# next: few states cooled slowly find more than many cooled fast.
STATES, FIRST_POINTS, GROWTH = 64, 64, 2.0
# The first temperature is this many times the typical field of a spin; at the last one a typical coupling is this many
# times the temperature. In between, temperatures fall by equal factors.
HOTTEST, COLDNESS = 3.0, 2.5
# Couplings and fields below this share of the largest are ignored for that, and so are numbers that are practically
# zero.
LEAST_SHARE, LEAST_NUMBER = 1e-3, 1e-290
MOST_POINTS = 20_000


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
    J = model.edges()[1]
    sizes = float(np.abs(model.field).sum() + np.abs(J).sum()) + abs(model.constant)
    return (len(J) + model.n + 16) * UNIT_ROUNDOFF * sizes + model.rounding


def by_search(model: Ising, seconds: float, rng: np.random.Generator) -> Iterator[NDArray[np.int8]]:
    """Cool populations more and more slowly to a low temperature, quench them, and yield the heaviest state so far."""
    end = clock.now() + seconds
    cold = model.scaled(_coldness(model))
    best: NDArray[np.int8] | None = None
    weight = -np.inf
    with Annealer(cold, block_width=0, from_coins=True, resample_below=0.0) as annealer:
        one = max(annealer.seconds_per_point(STATES), 1e-9)
        hottest = _hottest(cold)
        points = float(FIRST_POINTS)
        while True:
            betas = np.concatenate([[0.0], np.geomspace(hottest, 1.0, int(points))])
            states = annealer.quench(annealer.anneal(betas, STATES, rng.spawn(1)[0]).x)
            weights = np.asarray(model.log_weight(states))
            k = int(np.argmax(weights))
            if weights[k] > weight:
                best, weight = states[k], float(weights[k])
            assert best is not None
            yield best
            left = end - clock.now()
            report("looking for the heaviest state", min(1.0 - left / max(seconds, 1e-9), 1.0))
            if left <= one * FIRST_POINTS:
                return
            points = min(GROWTH * points, left / one, MOST_POINTS)


def _hottest(model: Ising) -> float:
    """Return the first point of the path, where the fields of spins are small compared with the temperature."""
    (i, j), J = model.edges()[0].T, model.edges()[1]
    squares = model.field**2 + np.bincount(i, J**2, model.n) + np.bincount(j, J**2, model.n)
    typical = float(np.sqrt(squares.mean())) if model.n else 0.0
    return 1.0 / (HOTTEST * typical) if HOTTEST * typical > 1.0 else 0.5


def _coldness(model: Ising) -> float:
    """Return a factor for log-weights such that nearly all spins are certain at the end of the path."""
    J = np.abs(model.edges()[1])
    largest = float(max(J.max(initial=0.0), np.abs(model.field).max(initial=0.0)))
    # The mean over those that count at all: tiny ones beside huge ones would make it too cold for any number.
    seen = np.concatenate([J, np.abs(model.field)])
    seen = seen[seen > LEAST_SHARE * largest]
    return COLDNESS / float(seen.mean()) if len(seen) and seen.mean() > LEAST_NUMBER else 1.0

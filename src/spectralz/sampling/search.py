"""Search for the heaviest state of a model: cool populations more and more slowly, and quench them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.progress import report
from spectralz.sampling.path import from_coins
from spectralz.sampling.plan import seconds_per_point
from spectralz.sampling.quench import quench
from spectralz.sampling.run import anneal
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import Ising

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


def by_search(model: Ising, deadline: Deadline, rng: np.random.Generator) -> Iterator[NDArray[np.int8]]:
    """Cool populations more and more slowly to a low temperature, quench them, and yield the heaviest state so far."""
    cold = model.scaled(_coldness(model))
    best: NDArray[np.int8] | None = None
    weight = -np.inf
    path = from_coins(cold, block_width=0)
    with crew_for(path) as crew:
        one = max(seconds_per_point(path, STATES, parallel=crew.parallel), 1e-9)
        hottest = _hottest(cold)
        points = float(FIRST_POINTS)
        while True:
            at = np.concatenate([[0.0], np.geomspace(hottest, 1.0, int(points))])
            run = anneal(path, at, STATES, rng.spawn(1)[0], resample_below=0.0, parallel=crew.parallel)
            states = quench(path, run.x, crew.parallel)
            weights = np.asarray(model.log_weight(states))
            k = int(np.argmax(weights))
            if weights[k] > weight:
                best, weight = states[k], float(weights[k])
            assert best is not None
            yield best
            report("looking for the heaviest state", deadline.done)
            left = deadline.left
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

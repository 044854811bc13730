"""Check whether chains started in collective states merge with a population cooled from random states.

Cooling misses a state that appears far from all others, at a first-order transition. It lies along a leading
eigenvector of the couplings, where quenches find it at once. If chains that start there stay there and the population
has no similar state, something may be missing; the mean-field bound in that state tells how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels.coupling import frozen
from spectralz.parts.mean_field.ascents import ascend_in_time, bound_of_model
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.path import from_coins
from spectralz.sampling.populations import weights_of
from spectralz.sampling.quench import quench
from spectralz.sampling.run import relax
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Ising
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run

# Number of chains from each state along a leading eigenvector, and their sweeps.
CHAINS, SWEEPS = 8, 20
# The population has visited a state if this share of it is as close to it as the chains are, within this many
# deviations.
SHARE_MET, CHAIN_DEVIATIONS = 1e-3, 4.0
# States count as equally heavy if their log-weights differ by less than this share.
LEVEL = 1e-9
# Initial fields of mean field in a state: almost certain.
FIRST_FIELD = 3.0
MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE = 100, 1e-6


@dataclass(frozen=True)
class MissedState:
    """A state that chains stay in and that a population has not visited.

    Attributes
    ----------
    lower
        A proven bound on log Z from that state alone.
    overlap
        How close the chains stay to it, from 0 to 1.
    beyond
        How much log Z may exceed that bound: by other states not visited, and by correlated fluctuations of the spins
        (Onsager's term).
    """

    lower: float
    overlap: float
    beyond: float = 0.0


def seed_states(
    path: Path, directions: Sequence[FloatArray], parallel: Parallel = one_after_the_other
) -> NDArray[np.int8]:
    """Return the distinct states reached by quenching the signs of some directions and their mirror images."""
    if not directions:
        return np.empty((0, path.n), dtype=np.int8)
    starts = np.array([np.where(sign * v >= 0.0, 1, -1) for v in directions for sign in (1, -1)], dtype=np.int8)
    return np.unique(quench(path, starts, parallel), axis=0)


def heaviest_of(model: Ising, states: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the heaviest of some states, with all equally heavy ones such as its mirror image."""
    weights = model.log_weight(states)
    return np.asarray(states[weights >= weights.max() - LEVEL * max(abs(float(weights.max())), 1.0)])


def missed_state(
    path: Path,
    runs: Sequence[Run],
    rng: np.random.Generator,
    seeds: NDArray[np.int8],
    parallel: Parallel = one_after_the_other,
) -> MissedState | None:
    """Return the heaviest collective state that populations at the end of a path have not visited, or None.

    ``seeds`` are the :func:`seed_states` of the leading directions. Chains from them are shorter once the time is up
    (``_support/clock.py``).
    """
    if not len(seeds):
        return None
    chains = relax(path, np.repeat(seeds, CHAINS, axis=0), SWEEPS, rng, parallel).reshape(len(seeds), CHAINS, -1)
    overlaps = [_unmet_overlap(seed, ends, runs) for seed, ends in zip(seeds, chains, strict=True)]
    unmet = [(seed, overlap) for seed, overlap in zip(seeds, overlaps, strict=True) if overlap is not None]
    if not unmet:
        return None
    states = _states(path.model, unmet)
    heaviest = max(states, key=lambda state: state.lower)
    together = float(np.logaddexp.reduce([state.lower for state in states]))
    return replace(heaviest, beyond=heaviest.beyond + together - heaviest.lower)


def find_missed_state(
    model: Ising, runs: Sequence[Run], rng: np.random.Generator, directions: Sequence[FloatArray]
) -> MissedState | None:
    """Return the heaviest state along some directions of a model that its populations have not visited, or None."""
    path = from_coins(model, block_width=0)
    with crew_for(path) as crew:
        return missed_state(path, runs, rng, seed_states(path, directions, crew.parallel), crew.parallel)


def _unmet_overlap(seed: NDArray[np.int8], chains: NDArray[np.int8], runs: Sequence[Run]) -> float | None:
    """Return how close chains from a state stay to it, or None if the population has equally close states."""
    n = len(seed)
    overlaps = chains @ seed.astype(np.float64) / n
    least = float(overlaps.mean() - CHAIN_DEVIATIONS * max(overlaps.std(), 1.0 / n))
    met = sum(
        float(weight @ (run.x @ seed.astype(np.float64) / n >= least))
        for run, weight in zip(runs, weights_of(runs), strict=True)
    )
    return None if met >= SHARE_MET else float(overlaps.mean())


def _states(model: Ising, unmet: Sequence[tuple[NDArray[np.int8], float]]) -> list[MissedState]:
    couplings = model.storage.for_kernels()
    with np.errstate(over="ignore"):  # of huge couplings; see Onsager's term below
        squares = couplings._replace(data=frozen(couplings.data**2))
    bounds = [(_bound_in(model, couplings, squares, seed), overlap) for seed, overlap in unmet]
    return [MissedState(lower, overlap, onsager) for (lower, onsager), overlap in bounds]


def _bound_in(model: Ising, couplings: Couplings, squares: Couplings, seed: NDArray[np.int8]) -> tuple[float, float]:
    """Return the mean-field bound from a state, minus its rounding error, and Onsager's term."""
    h = np.array(FIRST_FIELD * seed, dtype=np.float64)
    ascend_in_time(h, model.field, couplings, MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE)
    variance = 1.0 / np.cosh(np.clip(h, -300.0, 300.0)) ** 2
    with np.errstate(over="ignore"):  # huge couplings between uncertain spins: nothing is known of this state
        onsager = 0.25 * float(variance @ squares.times(variance))
    return bound_of_model(model, couplings, h)[1], onsager if math.isfinite(onsager) else math.inf

"""Collective states: whether chains that start in them merge with a population that was cooled from random states.

Cooling misses a state that is born far from all others, at a transition of first order. It lies along a leading
eigenvector of the couplings, where quenches find it at once. Chains that start there and stay, where the population has
no state like theirs, show that something may be missing; mean field's bound in that state says how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels.coupling import frozen
from spectralz.parts.annealer import Annealer
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field import ascend_in_time, bound_of_model
from spectralz.parts.populations import weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.populations import Annealed

__all__ = ["Elsewhere", "along", "heaviest_of", "look_elsewhere", "missed_by"]

# Chains from each state along a leading eigenvector, and their sweeps.
CHAINS, SWEEPS = 8, 20
# The population has met a state if this share of it is as close to it as the chains are, up to so many deviations.
SHARE_MET, CHAIN_DEVIATIONS = 1e-3, 4.0
# States are as heavy as each other if their log-weights differ by less than this share.
LEVEL = 1e-9
# Fields from which mean field begins in a state: all but sure of it.
FIRST_FIELD = 3.0
MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE = 100, 1e-6


@dataclass(frozen=True)
class Elsewhere:
    """A state that chains stay in and a population has not met.

    Attributes
    ----------
    lower
        A proven bound on log Z from that state alone.
    overlap
        How close the chains stay to it, from 0 to 1.
    beyond
        What log Z may be beyond that bound: by other states that have not been met, and by what spins of the state
        fluctuate together (Onsager's term).
    """

    lower: float
    overlap: float
    beyond: float = 0.0

    def share(self, log_z: float) -> float:
        """Return the least share of it in Z, beside a population that says ``log_z`` without it."""
        return 1.0 / (1.0 + math.exp(min(max(log_z - self.lower, -700.0), 700.0)))

    def gain(self, log_z: float) -> float:
        """Return how much it may add to ``log_z``."""
        return float(np.logaddexp(log_z, self.lower + self.beyond)) - log_z


def along(annealer: Annealer, directions: Sequence[FloatArray]) -> NDArray[np.int8]:
    """Return the distinct states that the signs of some directions, and their mirror images, are quenched to."""
    if not directions:
        return np.empty((0, annealer.n), dtype=np.int8)
    starts = np.array([np.where(sign * v >= 0.0, 1, -1) for v in directions for sign in (1, -1)], dtype=np.int8)
    return np.unique(annealer.quench(starts), axis=0)


def heaviest_of(model: Ising, states: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the heaviest of some states, with those that are as heavy, such as its mirror image."""
    weights = model.log_weight(states)
    return np.asarray(states[weights >= weights.max() - LEVEL * max(abs(float(weights.max())), 1.0)])


def look_elsewhere(
    model: Ising,
    annealer: Annealer,
    found: Sequence[Annealed],
    rng: np.random.Generator,
    seeds: NDArray[np.int8],
) -> Elsewhere | None:
    """Return the heaviest of collective states that the populations have not met, or None.

    ``seeds`` are the states :func:`along` the leading directions. Chains from them are shorter once the time is up
    (``_support/clock.py``).
    """
    if not len(seeds):
        return None
    chains = annealer.relax(np.repeat(seeds, CHAINS, axis=0), SWEEPS, rng).reshape(len(seeds), CHAINS, -1)
    overlaps = [_unmet_overlap(seed, ends, found) for seed, ends in zip(seeds, chains, strict=True)]
    unmet = [(seed, each) for seed, each in zip(seeds, overlaps, strict=True) if each is not None]
    if not unmet:
        return None
    states = _states(model, unmet)
    heaviest = max(states, key=lambda state: state.lower)
    together = float(np.logaddexp.reduce([state.lower for state in states]))
    return replace(heaviest, beyond=heaviest.beyond + together - heaviest.lower)


def missed_by(model: Ising, found: Sequence[Annealed], rng: np.random.Generator) -> Elsewhere | None:
    """Return the heaviest collective state of a model that its populations have not met, or None."""
    with Annealer(model, block_width=0, from_coins=True) as annealer:
        return look_elsewhere(model, annealer, found, rng, along(annealer, leading_directions(model.storage)))


def _unmet_overlap(seed: NDArray[np.int8], chains: NDArray[np.int8], found: Sequence[Annealed]) -> float | None:
    """Return how close chains from a state stay to it, or None if the population has states as close."""
    n = len(seed)
    overlaps = chains @ seed.astype(np.float64) / n
    least = float(overlaps.mean() - CHAIN_DEVIATIONS * max(overlaps.std(), 1.0 / n))
    met = sum(
        float(weight @ (run.x @ seed.astype(np.float64) / n >= least))
        for run, weight in zip(found, weights_of(found), strict=True)
    )
    return None if met >= SHARE_MET else float(overlaps.mean())


def _states(model: Ising, unmet: Sequence[tuple[NDArray[np.int8], float]]) -> list[Elsewhere]:
    couplings = model.storage.for_kernels()
    with np.errstate(over="ignore"):  # of huge couplings; see Onsager's term below
        squares = couplings._replace(data=frozen(couplings.data**2))
    found = []
    for seed, overlap in unmet:
        lower, onsager = _bound_in(model, couplings, squares, seed)
        found.append(Elsewhere(lower, overlap, onsager))
    return found


def _bound_in(model: Ising, couplings: Couplings, squares: Couplings, seed: NDArray[np.int8]) -> tuple[float, float]:
    """Return the bound of mean field from a state, rounding taken off, and Onsager's term."""
    h = np.array(FIRST_FIELD * seed, dtype=np.float64)
    ascend_in_time(h, model.field, couplings, MEAN_FIELD_SWEEPS, MEAN_FIELD_TOLERANCE)
    variance = 1.0 / np.cosh(np.clip(h, -300.0, 300.0)) ** 2
    with np.errstate(over="ignore"):  # huge couplings between spins that are not sure: nothing is known of such a state
        onsager = 0.25 * float(variance @ squares.times(variance))
    return bound_of_model(model, couplings, h)[1], onsager if math.isfinite(onsager) else math.inf

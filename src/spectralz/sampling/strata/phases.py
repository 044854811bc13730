"""Phases: sets of states that chains do not leave, and that a population cooled from random states may have missed.

At a first-order transition states that look nothing like each other hold similar shares of Z, and no path of small
steps leads from one to the other. Chains that start in a candidate for a phase (``candidates.py``) and stay away from
the population show that it is one. What it weighs is found by annealing towards it (``strata.py``).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import deadline
from spectralz._support.deadline import Deadline, LateError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.heavy.quench import fields, quench
from spectralz.sampling.populations import systematic
from spectralz.sampling.run import log_mean_z, weights_of
from spectralz.sampling.strata.candidates import (
    cooled_candidates,
    heavy_candidates,
    random_candidates,
    satisfying_candidates,
    turned_candidates,
)
from spectralz.sampling.strata.met import (
    CHAINS_GOING_ON,
    SWEEPS_BETWEEN,
    TIMES_SEEN,
    Population,
    most_of,
    with_most_entropy,
)
from spectralz.sampling.sweeps import relax

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run

# Chains from each candidate. They are disturbed a few times: this share of their spins is drawn anew, and then all are
# swept. Spins that only hold each other, such as those of a pair, forget their state; what a phase holds does not.
CHAINS, DISTURBANCES, SHARE_DISTURBED, SWEEPS = 16, 8, 0.08, 2
# No more spins are swept together than this.
SPINS_AT_ONCE = 20_000_000
# A phase is what chains hold after so many disturbances, if they agree to within this deviation of their overlap, and
# still hold this share of it at the end. In a glass without phases slow spins forget their states one by one. Less is
# enough if few chains, this share, are about halfway: then each of them is either in the phase or has left it.
EARLY, LARGEST_DEVIATION, LEAST_LEFT, LEAST_LEFT_OF_TWO = 2, 0.35, 0.85, 0.6
BETWEEN, MOST_BETWEEN = 0.2, 0.15
SWEEPS_PER_CHAIN = DISTURBANCES * SWEEPS
SWEEPS_PER_CANDIDATE = CHAINS * SWEEPS_PER_CHAIN
# Leading eigenvectors that candidates lie along, by default.
DIRECTIONS = 4
# Most candidates at first, and most of those that are heavy states of the smaller side of a bipartite model.
MOST_CANDIDATES, MOST_HEAVY = 32, 8
# A phase holds spins whose means differ by at least this from those of the population; it holds at least so many.
HELD, FEWEST_HELD = 0.5, 3
# Chains in a stratum that is worth measuring. They leave it if less than this share is still there after they go on.
FEWEST_IN_STRATUM, LEAST_TO_STAY = 3, 0.9
# States are in a phase if they overlap with it by this much; chains stay in it if this share of them is there.
HALF, LEAST_STAYING = 0.5, 0.12
# States as close to a phase as the chains, within this many deviations, count as those of the population that met it.
CHAIN_DEVIATIONS = 2.0
# If there are too many phases, those with as many families as this may be left out.
FEW_FAMILIES = 3.0
# Most phases, most combinations of phases that hold different spins, and most strata. With more than the last number of
# strata there are likely others that no chain has met. Those of less than this log-share of Z are not counted.
MOST_PHASES, MOST_COMBINATIONS, MOST_STRATA, MOST_TO_BE_ALL = 20, 24, 16, 12
LOG_LIGHT = -8.0
# Rounds in which the states of a population are divided into those of a phase and others.
ROUNDS_TO_CENTER = 4
# The border of a phase lies at one of so many overlaps, from a half on.
BORDERS = 9
# Largest field of independent spins that a path to a phase begins from.
LARGEST_FIELD = 4.0
# States of the population in which parts are turned.
STATES_TO_TURN = 64


@dataclass(frozen=True, eq=False)
class Phase:
    """A set of states: those that overlap with a pattern.

    Attributes
    ----------
    pattern
        By how much the means of the spins that it holds differ from those of the population; 0 for the others.
    offset
        What is subtracted. Scales are such that its own states have the overlap 1 on average, those of the population
        that missed it 0.
    """

    pattern: FloatArray
    offset: float

    def overlaps(self, x: NDArray[np.int8]) -> FloatArray:
        """Return how close states are to the phase."""
        return np.asarray(x @ self.pattern) - self.offset

    def has(self, x: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return which states belong to the phase."""
        return np.asarray(self.overlaps(x) >= HALF)

    def stretched(self, times: float) -> Phase:
        """Return the phase with all overlaps so many times as far from 1, that of its own states."""
        return Phase(times * self.pattern, times * (self.offset + 1.0) - 1.0)

    def mirrored(self) -> Phase:
        """Return the phase of the same states with all spins turned."""
        return replace(self, pattern=-self.pattern)


@dataclass(frozen=True, eq=False)
class Stratum:
    """The states of one phase, or of several that hold different spins, and of no other.

    Attributes
    ----------
    number
        Its phases: bit k is set for phase k.
    base
        Fields in which independent spins have about the means of the stratum.
    most
        About the most that the log of its weight can be, without the constants of the model, as far as chains know it.
    is_left
        Whether chains leave it by themselves.
    """

    number: int
    base: FloatArray
    most: float
    is_left: bool = False


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases that a population has missed, and the strata of their states that may matter.

    Attributes
    ----------
    phases
        The phases; if they are mirrored, each one followed by its mirror image.
    strata
        The strata; if they are mirrored, one of each two that mirror each other.
    is_mirrored
        Whether states and their mirror images have the same weight: no field, and no term of an odd number of spins.
    is_complete
        Whether there are no more phases or strata than are kept, and there was time to look at all of them.
    """

    phases: tuple[Phase, ...] = ()
    strata: tuple[Stratum, ...] = ()
    is_mirrored: bool = False
    is_complete: bool = True

    def numbers(self, x: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return the phases of each state as bits; of phases that hold the same spins, the closest."""
        number = np.zeros(len(x), dtype=np.int64)
        if not self.phases:
            return number
        overlaps = np.stack([phase.overlaps(x) for phase in self.phases], axis=1)
        rows, excluded = np.arange(len(x)), self._excluded()
        for k in np.argsort(-overlaps, axis=1, kind="stable").T:
            is_of = (overlaps[rows, k] >= HALF) & (excluded[k] & number == 0)
            number |= np.where(is_of, 1 << k, 0)
        return number

    def are_in(self, number: int, x: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return which states are in the stratum of some phases."""
        return np.asarray(self.numbers(x) == number)

    def _excluded(self) -> NDArray[np.int64]:
        """Return for each phase, as bits, those that hold some of the same spins."""
        held = np.array([phase.pattern != 0.0 for phase in self.phases], dtype=np.float64)
        meets = (held @ held.T > 0.0) & ~np.eye(len(held), dtype=np.bool_)
        return np.asarray(meets @ (1 << np.arange(len(held))))

    def mirror(self, number: int) -> int:
        """Return the stratum that mirrors another."""
        return sum(1 << (k ^ 1) for k in range(len(self.phases)) if number >> k & 1)

    def have(self, strata: Iterable[Stratum], x: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return which states are in some strata or, if they are mirrored, in their mirror images."""
        numbers = {stratum.number for stratum in strata}
        if self.is_mirrored:
            numbers |= {self.mirror(number) for number in numbers}
        return np.isin(self.numbers(x), list(numbers))

    def combinations(self) -> list[tuple[int, ...]]:
        """Return the sets of two or more phases that hold different spins, up to a limit, the smallest first."""
        excluded, count = (self._excluded().tolist() if self.phases else []), len(self.phases)
        found: list[tuple[int, ...]] = []
        for size in range(2, count + 1):
            for chosen in combinations(range(count), size):
                if all(not excluded[i] >> j & 1 for i, j in combinations(chosen, 2)):
                    found.append(chosen)
                if len(found) == MOST_COMBINATIONS:
                    return found
        return found


def is_even(model: Model) -> bool:
    """Return whether all states weigh as much as their mirror images: every term has an even number of spins."""
    return not (model.field.any() or (model.higher.sizes % 2).any())


def find_phases(
    path: Path,
    runs: Sequence[Run],
    directions: Sequence[FloatArray],
    rng: np.random.Generator,
    known: Phases | None = None,
    most: float = MOST_CANDIDATES,
    limit: Deadline | None = None,
    parallel: Parallel = one_after_the_other,
) -> Phases:
    """Return the phases that populations of a model have missed and that may matter, beside known ones.

    Parameters
    ----------
    path
        The path whose sweeps chains make.
    runs
        The populations.
    directions
        Leading eigenvectors of the coupling.
    rng
        Random numbers.
    known
        Phases that were found before. The populations include their states.
    most
        Most candidates to try at first.
    limit
        If they find phases, more are tried until then. The search itself ends with the deadline in force, with phases
        that are not complete.
    parallel
        Spreads work over threads.
    """
    found = known if known is not None and known.phases else Phases(is_mirrored=is_even(path.model))
    if path.n < FEWEST_HELD:
        return found
    here, limit = Population(path, runs, _means_of(runs), rng, parallel), limit or Deadline()
    most = min(most, SPINS_AT_ONCE / (CHAINS * path.n))
    x, chains, before = _drawn_from(runs, STATES_TO_TURN, rng), np.empty((0, path.n), dtype=np.int8), -1
    starts = heavy_candidates(path, x, rng, parallel, min(most, MOST_HEAVY), limit.left)
    starts += turned_candidates(path, x, directions, rng, most - len(starts), parallel)
    tried = [*quench(path, x, parallel), *(state for state, _ in starts)]
    for candidates in (satisfying_candidates, cooled_candidates, random_candidates):
        new = candidates(path, tried, rng, parallel, most - len(starts))
        starts, tried = [*starts, *new], [*tried, *(state for state, _ in new)]
    with suppress(LateError):
        while len(found.phases) > before and (before < 0 or limit.left):
            before = len(found.phases)
            early, late = _chains_from(path, [state for state, _ in starts], rng, parallel)
            for k, (_, where) in enumerate(starts):
                part = slice(CHAINS * k, CHAINS * (k + 1))
                found = _with_phase_of(found, here, where, early[part], late[part])
            chains = np.concatenate([chains, late])
            starts = random_candidates(path, tried, rng, parallel)  # as long as there are new phases, there may be more
            tried += [state for state, _ in starts]
        if not found.phases:
            return found
        alone = [(k,) for k in range(len(found.phases))]
        combined = [_combined(found, chosen, x[0]) for chosen in (*alone, *found.combinations())]
        _, late = _chains_from(path, combined, rng, parallel)
        return _with_strata(found, here, np.concatenate([chains, late]))
    return replace(found, is_complete=False)


def _means_of(runs: Sequence[Run]) -> FloatArray:
    """Return the means of spins over populations."""
    return np.asarray(sum(weight @ run.x for run, weight in zip(runs, weights_of(runs), strict=True)))


def _drawn_from(runs: Sequence[Run], size: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw states from populations by their weights, in random order."""
    places = systematic(np.concatenate(weights_of(runs)), rng.random(), size)
    return np.asarray(rng.permutation(np.repeat(np.concatenate([run.x for run in runs]), places, axis=0)))


def _with_phase_of(
    found: Phases, here: Population, where: NDArray[np.bool_], early: NDArray[np.int8], x: NDArray[np.int8]
) -> Phases:
    """Add the phase that chains stay in, and its mirror image if that is one, unless the population has met it.

    Too many are left out, which matters for those that the population has hardly met.
    """
    phase = _phase_of(found, here, where, early, x)
    if phase is None:
        return found
    x = x[phase.has(x)]
    most = most_of(here, x, _going_on(here, x), phase.has)
    if not here.may_miss(most):
        return found
    if len(found.phases) >= MOST_PHASES:
        is_harmless = _is_light(here, most) or here.families_in(phase.has) >= FEW_FAMILIES
        return replace(found, is_complete=found.is_complete and is_harmless)
    apart = _apart_from_met(_apart_from_others(phase, here), here, x)
    added = (apart, apart.mirrored()) if found.is_mirrored else (apart,)
    return replace(found, phases=(*found.phases, *added))


def _chains_from(
    path: Path, states: Sequence[NDArray[np.int8]], rng: np.random.Generator, parallel: Parallel
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return chains from each of some states, disturbed and swept in turn: early on, and at the end."""
    x = early = np.repeat(np.array(states, dtype=np.int8).reshape(-1, path.n), CHAINS, axis=0)
    for k in range(DISTURBANCES if len(x) else 0):
        deadline.refuse_if_past("the search for phases")
        drawn = rng.choice(np.array([-1, 1], dtype=np.int8), size=x.shape)
        x = relax(path, np.where(rng.random(x.shape) < SHARE_DISTURBED, drawn, x), SWEEPS, rng, parallel)
        early = x if k < EARLY else early
    return early, x


def _going_on(here: Population, x: NDArray[np.int8]) -> list[NDArray[np.int8]]:
    """Return the states that chains from some states meet, one after the other."""
    deadline.refuse_if_past("the search for phases")
    chosen = np.sort(np.resize(here.rng.permutation(len(x)), CHAINS_GOING_ON))  # copies of one chain in the same half
    states = [x[chosen]]
    for _ in range(TIMES_SEEN):
        states.append(relax(here.path, states[-1], SWEEPS_BETWEEN, here.rng, here.parallel))
    return states[1:]


def _combined(found: Phases, chosen: Sequence[int], state: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return a state of several phases that hold different spins."""
    pattern = sum(found.phases[k].pattern for k in chosen)
    return np.where(pattern == 0.0, state, np.sign(pattern)).astype(np.int8)


def _phase_of(
    found: Phases, here: Population, where: NDArray[np.bool_], early: NDArray[np.int8], x: NDArray[np.int8]
) -> Phase | None:
    """Return the phase that chains stay in, or None if the population, or a phase found, has such states.

    ``where`` are the spins that may tell it from others, ``early`` and ``x`` the chains early on and at the end.
    """
    phase = _held(here, where, early)
    if phase is None:
        return None
    before, after = phase.overlaps(early), phase.overlaps(x)
    stays = (before >= HALF) & (after >= HALF)
    if np.mean(stays) < LEAST_STAYING or before[stays].std() > LARGEST_DEVIATION:
        return None
    left = after[stays].mean() / before[stays].mean()
    are_few_between = np.mean(np.abs(after - HALF * before.mean()) < BETWEEN) <= MOST_BETWEEN
    if left < (LEAST_LEFT_OF_TWO if are_few_between else LEAST_LEFT):
        return None
    x = x[stays]
    where, number = where.copy(), found.numbers(x)
    for k, other in enumerate(found.phases):  # what a known phase holds tells nothing new
        if np.mean(number >> k & 1) >= HALF:
            where &= other.pattern == 0.0
    phase = _held(here, where, x)
    if phase is None:
        return None
    near = _near(phase, x)
    return None if here.has_met(lambda y: phase.overlaps(y) >= near) else phase


def _near(phase: Phase, x: NDArray[np.int8]) -> float:
    """Return the overlap from which on states are as close to a phase as the chains in it."""
    deviation = max(float(phase.overlaps(x).std()), 1.0 / np.count_nonzero(phase.pattern))
    return max(1.0 - CHAIN_DEVIATIONS * deviation, HALF)


def _held(here: Population, where: NDArray[np.bool_], x: NDArray[np.int8]) -> Phase | None:
    """Return the phase of the spins that chains hold in another state than the population, None if these are few."""
    apart = np.tanh(fields(here.path, x)).mean(axis=0) - here.mean
    apart = np.where(where & here.is_kept & (np.abs(apart) >= HELD), apart, 0.0)
    length = float(apart @ (x.mean(axis=0) - here.mean))
    if np.count_nonzero(apart) < FEWEST_HELD or length <= 0.0:
        return None
    return Phase(apart / length, float(apart @ here.mean) / length)


def _apart_from_others(phase: Phase, here: Population) -> Phase:
    """Return the phase with scales at which the states of the population that are not in it have the overlap 0.

    The means of a population of which a part, by few families, is in the phase lie between the two. States midway from
    there would not be midway between the phase and the others.
    """
    overlaps = np.concatenate([phase.overlaps(run.x) for run in here.runs])
    weights = np.concatenate(weights_of(here.runs))
    others = 0.0
    for _ in range(ROUNDS_TO_CENTER):
        weight = weights * (overlaps < 0.5 * (1.0 + others))
        if not weight.any():
            break
        others = min(float(weight @ overlaps) / float(weight.sum()), 0.0)
    return phase.stretched(1.0 / (1.0 - others))


def _apart_from_met(phase: Phase, here: Population, x: NDArray[np.int8]) -> Phase:
    """Return the phase with scales at which states that the population has met are not in it, except for the closest.

    Runs to the phase may never meet these, although they are halfway to it: the population measures them. ``x`` are
    chains in the phase.
    """
    near = _near(phase, x)

    def are_between(border: float, y: NDArray[np.int8]) -> NDArray[np.bool_]:
        overlaps = phase.overlaps(y)
        return (overlaps >= border) & (overlaps < near)

    borders = np.linspace(HALF, near, BORDERS).tolist()
    border = next(border for border in borders if not here.has_met(partial(are_between, border)))
    return phase.stretched((1.0 - HALF) / (1.0 - border))


def _with_strata(found: Phases, here: Population, chains: NDArray[np.int8]) -> Phases:
    """Add the strata that chains are in, that the population has not met, and that may hold a share of Z."""
    numbers, known = found.numbers(chains), {stratum.number for stratum in found.strata}
    new: list[Stratum] = []
    for number, count in zip(*(part.tolist() for part in np.unique(numbers, return_counts=True)), strict=True):
        is_known = number in known or (found.is_mirrored and found.mirror(number) in known)
        if number == 0 or is_known or count < FEWEST_IN_STRATUM:
            continue
        stratum = _stratum(found, here, number, chains, np.flatnonzero(numbers == number))
        is_there = partial(found.are_in, number)
        may_lack = not stratum.is_left and here.may_lack(is_there, stratum.most)
        if here.may_miss(stratum.most) and (may_lack or not here.has_met(is_there)):
            new.append(stratum)
            known.add(number)
    strata = (*found.strata, *sorted(new, key=lambda stratum: -stratum.most))
    heavy = sum(not _is_light(here, stratum.most) for stratum in strata)
    left_out = np.logaddexp.reduce([stratum.most for stratum in strata[MOST_STRATA:]], initial=-np.inf)
    is_complete = found.is_complete and heavy <= MOST_TO_BE_ALL and _is_light(here, float(left_out))
    return replace(found, strata=strata[:MOST_STRATA], is_complete=is_complete)


def _is_light(here: Population, most: float) -> bool:
    """Return whether something of at most that log-weight is too light to tell whether there is more of its kind."""
    return most < log_mean_z(here.runs) + LOG_LIGHT


def _stratum(
    found: Phases, here: Population, number: int, chains: NDArray[np.int8], inside: NDArray[np.int64]
) -> Stratum:
    """Return a stratum as the chains inside know it.

    Its base has their means for the spins that its phases hold. The others have only their own fields: parts that may
    turn must be free to do so, or half of the stratum, and perhaps the heavier one, would be missed. Spins that are
    summed out are free in any field, and begin in that of the stratum.
    """
    x, is_there = chains[inside], partial(found.are_in, number)
    states = _going_on(here, x)
    held = np.any([phase.pattern for k, phase in enumerate(found.phases) if number >> k & 1], axis=0)
    certain = 1.0 - UNIT_ROUNDOFF
    mean = np.clip(np.tanh(fields(here.path, x)).mean(axis=0), -certain, certain)
    base = np.where(held, np.clip(np.arctanh(mean), -LARGEST_FIELD, LARGEST_FIELD), here.path.theta)
    if here.path.sides is not None:
        base = np.where(here.is_kept, base, fields(here.path, x).mean(axis=0))
    origin = inside // CHAINS  # chains of one candidate are in one valley, those of several perhaps in several
    valleys = [with_most_entropy(here, x[origin == k]) for k in np.unique(origin)]
    most = min(most_of(here, x, states, is_there), float(np.logaddexp.reduce(valleys)))
    return Stratum(number, base, most, is_left=bool(np.mean(is_there(states[-1])) < LEAST_TO_STAY))

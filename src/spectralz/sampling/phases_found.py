"""The search for phases: sets of states that chains do not leave, and where a population has hardly been.

At a first-order transition states that look nothing like each other hold similar shares of Z, and no path of small
steps leads from one to the other. Chains that begin in a proposal (``proposals.py``), are shaken and relaxed, and stay
away from all populations show a phase. From independent spins with its means another population reaches the model and
stays in the phase; a pilot of it says what the phase weighs.

Spins that strong couplings bind are turned together. Turning one spin of a pair bound by J is rarer than exp(-2 J), so
chains that differ in such pairs alone seem to be in different phases. Each part is turned as a whole by the rule of
Metropolis, so the model's distribution stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spectralz._support import clock, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.sampling.cells import row_of, stays
from spectralz.sampling.engines.lanes import fits_single_precision
from spectralz.sampling.population import Pilot, pilot
from spectralz.sampling.proposals import first_proposals, recombined
from spectralz.sampling.sweeps import ROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.arrays import SingleArray
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.cells import Cells
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Population
    from spectralz.sampling.proposals import Proposal


# Couplings that bind. Beyond this part of all spins a part is not turned, nor are there parts with more couplings.
STRONG, LARGEST_PART, MOST_COUPLINGS = 1.5, 0.25, 1_000_000


@dataclass(frozen=True, eq=False)
class BoundParts:
    """The parts of a model that are turned together, the couplings between spins of different parts, and the fields."""

    parts: tuple[NDArray[np.int64], ...]
    coupling: sp.csr_array
    field: SingleArray

    def turn(self, x: NDArray[np.int8], rng: np.random.Generator) -> None:
        """Turn parts of the states, in place."""
        if not self.parts:
            return
        from spectralz.kernels.sampling.bound_parts import turn_parts

        begin = np.cumsum([0, *map(len, self.parts)])
        spins, J = np.concatenate(self.parts), self.coupling
        clock.charge(float(np.diff(J.indptr)[spins].sum() * len(x)))
        columns, uniform = np.ascontiguousarray(x.T), rng.random((len(self.parts), len(x)), np.float32)
        room = np.empty((2, len(x)), np.float32)
        turn_parts(columns, begin, spins, J.indptr, J.indices, J.data, self.field, uniform, *room)
        x[:] = columns.T

    def relative(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return states whose spins of a part, but for the first, are relative to the first.

        The entropy of a part is at most that of these, which are nearly fixed, if they were independent.
        """
        x = x.copy()
        if self.parts:
            firsts = np.concatenate([np.repeat(part[0], len(part) - 1) for part in self.parts])
            x[:, np.concatenate([part[1:] for part in self.parts])] *= x[:, firsts]
        return x


def bound_parts(model: Model) -> BoundParts:
    """Return the parts that strong pairs hold together; none if there are larger terms, or numbers are huge."""
    edges, J = model.edges()
    shape = (model.n, model.n)
    fits = fits_single_precision(model.field, model.storage.for_kernels(), model.higher)
    if model.higher.number or len(J) > MOST_COUPLINGS or not fits:
        return BoundParts((), sp.csr_array(shape), np.zeros(model.n, np.float32))
    field = model.field.astype(np.float32)
    strong = edges[np.abs(J) >= STRONG]
    _, member = connected_components(sp.coo_array((np.ones(len(strong)), strong.T), shape=shape), directed=False)
    between = member[edges[:, 0]] != member[edges[:, 1]]
    upper = sp.coo_array((J[between].astype(np.float32), edges[between].T), shape=shape).tocsr()
    sizes = np.bincount(member)
    bound = np.flatnonzero((sizes > 1) & (sizes <= LARGEST_PART * model.n))
    return BoundParts(tuple(np.flatnonzero(member == k) for k in bound), (upper + upper.T).tocsr(), field)


# ---------------------------------------------------------------------------------------------------------- bound parts


# Chains from each proposal. They are looked at after a few sweeps, so many times, with a sweep before each. Then they
# are shaken a few times: this share of their spins is drawn anew, and all are swept. They are looked at again, with
# more sweeps before each look.
CHAINS, LOOKS, FIRST_SWEEPS, SHAKES, SHARE_SHAKEN, SWEEPS_PER_SHAKE, SWEEPS_PER_LOOK = 16, 16, 4, 4, 0.08, 16, 2
# Bound parts are turned before every so many looks.
LOOKS_PER_TURN = 4
SWEEPS_PER_PROPOSAL = CHAINS * (FIRST_SWEEPS + LOOKS + SHAKES * SWEEPS_PER_SHAKE + LOOKS * SWEEPS_PER_LOOK)
# Proposals that are tried together, most recombined ones of a round, and rounds: the first, and of what was found.
TOGETHER, MOST_RECOMBINED, ROUNDS = 16, 32, 3
# Means closer to 0 or 1 than this are not known from so few looks.
SUREST = 1e-3
# A phase holds at least so many spins.
FEWEST_HELD = 3
# Means are alike if they differ by this much for no more than this part of the spins, and by little on the whole: the
# mean square of differences is at most so much. Spins of a warm phase may be 0.6 in the mean, and 0 elsewhere.
APART, PART_APART, SQUARE_APART = 0.8, 0.05, 0.1
# States are where chains are if they are as close to the means as all chains but those beyond so many deviations. The
# surest mean counts as this.
DEVIATIONS, SUREST_CENTER = 2.0, 0.9
# Chains stay together if more than this share of them is in the cell around their means.
STAYING = 0.5
# A population misses a phase if it finds less there than the phase's pilot by so many of their joint errors.
MISSED = 3.0
# A population has met what holds this share of its weight. Once pilots of so many other valleys found no more than it
# did, those where it has a few families are known too, or enough if it has missed any.
MOST_OF_ALL, KNOWN_VALLEYS, FEW_THERE = 0.5, 4, 3.0
# Once pilots of so many valleys, those that may be heaviest first, have found nothing that the population had missed,
# the others are taken to be known too: a glass has any number of them. On 44 models with phases the first that was
# missed was among the first four.
MOST_CHECKED = 8
# States of the pilots of a phase, the relative variance of the weights of a step, and the shares of its fields that the
# two of them begin from. The first may be wrong by so many nats.
PILOT_STATES, VARIANCE_OF_PILOTS, SHARES_OF_FIELDS, UNSURE = 128, 0.1, (1.0, 0.3), 1.5
# A pilot with more families per state is good enough.
MANY = 0.25
# States of a phase's pilot in its own cell that may have gone to another image.
LEFT = 0.1
# The surest mean of a spin in the base of a phase.
SUREST_BASE = 0.95


@dataclass(frozen=True, eq=False)
class Phase:
    """A phase: the means of its spins, the pilot that reaches it, its log-weight by that, and what led to it."""

    mean: FloatArray
    pilot: Pilot
    log_weight: float
    families: float
    sources: frozenset[str]


@dataclass(frozen=True, eq=False)
class Search:
    """What a search for phases did and found.

    Attributes
    ----------
    phases
        The phases found.
    light
        Log-weights that others have at most, which are left out; chains say so.
    cut_short
        Why it is not complete; empty if all proposals were tried.
    was_made
        Whether there was one.
    tried
        Number of proposals tried.
    met, checked, missed
        Means of what populations know, how many valleys pilots have checked, and how many phases were missed.
    light_means
        Means of phases that were left out.
    """

    phases: tuple[Phase, ...] = ()
    light: tuple[float, ...] = ()
    cut_short: str = ""
    was_made: bool = True
    tried: int = 0
    met: tuple[FloatArray, ...] = field(default=(), repr=False)
    checked: int = 0
    missed: int = 0
    light_means: tuple[FloatArray, ...] = field(default=(), repr=False)


NO_TIME = Search(was_made=False, cut_short="there was no time to look for phases")


def cost_of_proposal(path: Path) -> float:
    """Return the operations of the chains of one proposal."""
    return SWEEPS_PER_PROPOSAL * path.engine.operations


@dataclass(frozen=True, eq=False)
class Missing:
    """What to look for: phases that an ordinary population has missed.

    Attributes
    ----------
    path
        The path of the ordinary population; chains are swept at its end.
    cells
        The cell of the ordinary population, and the model's images.
    ordinary, others
        The population that counts, and pilots from other bases, whose states are proposals.
    top
        The largest log Z found so far.
    enough
        A population has met a phase if it has so many families there; fewer, if it is only a part of what will be
        counted.
    light
        Phases lighter than Z by more nats than this are left out.
    rng, parallel
        Random numbers, and who sweeps the chains.
    most_phases, most_proposals
        Most phases, and most proposals of each round of a search that is no more than a hint; None for all of them.
    """

    path: Path
    cells: Cells
    ordinary: Population
    others: Sequence[Population]
    top: float
    enough: float
    light: float
    most_phases: int
    rng: np.random.Generator
    parallel: Parallel
    most_proposals: int | None = None

    @cached_property
    def parts(self) -> BoundParts:
        """Spins that chains turn together."""
        return bound_parts(self.path.model)


def search(missing: Missing) -> Search:
    """Look for phases; those that weigh little beside the heaviest are left out."""
    done = _all_found(missing)
    least = max([missing.top, *(phase.log_weight for phase in done.phases)]) - missing.light
    light = [phase for phase in done.phases if phase.log_weight < least]
    done = replace(done, phases=tuple(phase for phase in done.phases if phase.log_weight >= least))
    for phase in light:
        done = _without(done, phase.mean, phase.log_weight)
    return done


def _all_found(missing: Missing) -> Search:
    """Look for phases: first along directions and others, then among recombinations of what was found."""
    done = Search()
    for number in range(ROUNDS):
        centers = np.array([*(phase.mean for phase in done.phases), *done.met])
        if number == 0:
            populations = missing.ordinary, missing.others
            proposals = first_proposals(missing.path, *populations, missing.rng, missing.parallel)
        elif len(centers) > 1:
            proposals = recombined(missing.path.model, centers, missing.ordinary, missing.rng)
        else:
            break
        before = done.missed
        proposals = proposals[: missing.most_proposals or (MOST_RECOMBINED if number else None)]
        for begin in range(0, len(proposals), TOGETHER):
            if deadline.is_past() and number and begin and done.missed == before:
                return done  # any number of recombinations is only some of them
            if deadline.is_past():
                return replace(done, cut_short="the search for phases was cut short by the time")
            report("looking for phases", begin / len(proposals))
            done = _tried(done, missing, proposals[begin : begin + TOGETHER])
            if done.cut_short:
                return done
        if done.missed == before:
            break
    return done


def _tried(done: Search, missing: Missing, batch: Sequence[Proposal]) -> Search:
    """Run chains from some proposals, and see which of them are in phases of their own.

    They are looked at after a few sweeps, since chains leave a shallow phase once they are shaken. Those that do not
    stay together are shaken, and looked at again.
    """
    tried = done.tried + len(batch)
    sources = [names for names, _ in batch]
    x = np.repeat(np.array([state for _, state in batch]), CHAINS, axis=0)
    for times in (0, SHAKES):
        states, means, most = chains(missing, x, times)
        apart = []
        for k in np.argsort(-most, kind="stable").tolist():
            if not stay_together(states[k], means[k], missing.cells):
                apart.append(k)
                continue
            done = _seen(done, missing, sources[k], states[k], means[k], float(most[k]))
            if done.cut_short:
                return done
        if not apart:
            break
        apart.sort()
        sources, x = [sources[k] for k in apart], states[apart].reshape(-1, missing.path.n)
    return replace(done, tried=tried)


def _seen(
    done: Search, missing: Missing, sources: frozenset[str], states: NDArray[np.int8], mean: FloatArray, most: float
) -> Search:
    """Return what is known after chains have ended in some states, with their means and the most of log Z there."""
    cells = missing.cells
    if any(are_alike(mean, other, cells.images) for other in done.met):
        return done
    for k, phase in enumerate(done.phases):
        # Most chains are closer to it, and it is like them.
        if stay_together(states, phase.mean, cells) and are_alike(mean, phase.mean, cells.images):
            phase = replace(phase, sources=phase.sources | sources)
            return replace(done, phases=(*done.phases[:k], phase, *done.phases[k + 1 :]))
    region = Region.around(states, mean, cells)
    there = region.found_by(missing.ordinary)
    is_most = there.log_weight > missing.ordinary.mean_log_z + math.log(MOST_OF_ALL)
    few = missing.enough if is_most or done.missed else FEW_THERE
    if there.families >= few and (is_most or done.checked >= KNOWN_VALLEYS):
        return replace(done, met=(*done.met, mean))
    heaviest = max([missing.top, *(phase.log_weight for phase in done.phases)])
    if any(are_alike(mean, other, cells.images) for other in done.light_means):
        return done
    if most < heaviest - missing.light:
        return _without(done, mean, most)
    if done.checked >= MOST_CHECKED and not done.missed:
        return replace(done, met=(*done.met, mean))
    if len(done.phases) == missing.most_phases:
        return replace(done, cut_short=f"there are more phases than the {missing.most_phases} that are measured")
    phase = _measured(missing, mean, sources)
    if phase.log_weight < heaviest - missing.light:
        return replace(_without(done, mean, phase.log_weight), checked=done.checked + 1)
    is_missed = region.found_by(phase.pilot.population, len(cells.images)).is_missed_by(missing.ordinary, there)
    # Where nobody has been, but most states of a pilot stay, it is no valley of a glass: log Z hardly needs it, but
    # energies and ratios do.
    is_apart = there.families < 1.0 and phase.families > MANY * phase.pilot.population.size
    if is_missed or is_apart:
        return replace(done, phases=(*done.phases, phase), missed=done.missed + 1)
    return replace(done, met=(*done.met, mean), checked=done.checked + 1)


def _without(done: Search, mean: FloatArray, log_weight: float) -> Search:
    """Return the search in which a phase of at most this weight is left out."""
    return replace(done, light=(*done.light, log_weight), light_means=(*done.light_means, mean))


def chains(missing: Missing, x: NDArray[np.int8], times: int) -> tuple[NDArray[np.int8], FloatArray, FloatArray]:
    """Return for each start where its chains are, their means, and about the most that log Z of their phase can be.

    There are 16 rows of ``x`` for each start. They are shaken so many times before, or swept a few times.

    A phase's log Z is its mean log-weight plus its entropy, which is at most that of independent spins of these means.
    """
    path, rng, starts, x = missing.path, missing.rng, len(x) // CHAINS, x.copy()
    plain = replace(path, base=np.zeros(path.n), subgraph=None)
    for _ in range(max(times, 1)):
        if times:
            shaken = rng.random(x.shape) < SHARE_SHAKEN
            x[shaken] = rng.choice(np.array([-1, 1], dtype=np.int8), int(shaken.sum()))
        ((x, _),) = relaxed(missing, plain, x, SWEEPS_PER_SHAKE if times else FIRST_SWEEPS, 1)
    mean, relative, log_weight = np.zeros((starts, path.n)), np.zeros((starts, path.n)), np.zeros(starts)
    for states, weights in relaxed(missing, plain, x, SWEEPS_PER_LOOK if times else 1, LOOKS):
        x = states
        mean += _means(x, starts) / LOOKS
        relative += _means(missing.parts.relative(x), starts) / LOOKS
        log_weight += weights.reshape(starts, CHAINS).mean(axis=1) / LOOKS
    up = np.clip(0.5 * (1.0 + relative), SUREST, 1.0 - SUREST)
    entropy = -(up * np.log(up) + (1.0 - up) * np.log1p(-up))
    kept = slice(None) if path.sides is None else path.sides.kept
    return x.reshape(starts, CHAINS, -1), mean, log_weight + entropy[:, kept].sum(axis=1)


def _means(x: NDArray[np.int8], starts: int) -> FloatArray:
    return np.asarray(x.reshape(starts, CHAINS, -1).mean(axis=1, dtype=np.float64))


def relaxed(
    missing: Missing, path: Path, x: NDArray[np.int8], sweeps: int, looks: int
) -> Iterator[tuple[NDArray[np.int8], FloatArray]]:
    """Yield states after so many sweeps at the model, and their log-weights, and again, for so many looks.

    Before some of the looks bound parts are turned. The path begins from coins. If a side is summed out, so it is in
    the log-weights.
    """
    engine, zero, one = path.engine, np.zeros(1), np.ones(1)
    clock.charge(float(sweeps * looks * len(x)) * engine.operations)
    summed = 0 if path.sides is None else len(path.sides.summed)
    every = LOOKS_PER_TURN if missing.parts.parts else looks
    for begin in range(0, looks, every):
        missing.parts.turn(x, missing.rng)
        moving = engine.start_from(x, missing.rng, missing.parallel)
        for _ in range(min(every, looks - begin)):
            back, _ = moving.sweep(zero, one, one, sweeps)
            x = moving.states()
            yield x, summed * math.log(2.0) - back[0]


@dataclass(frozen=True)
class There:
    """What a population has found in a region: families, and the log of its estimate of the weight."""

    families: float
    log_weight: float

    def is_missed_by(self, population: Population, there: There) -> bool:
        """Return whether this is significantly more than what a population has found there.

        The error of what was found goes by the families that should be there: one in the place of many says enough.
        """
        share = math.exp(min(self.log_weight - population.mean_log_z, 0.0))
        due = share * population.families()
        if there.families < 1.0:
            return due >= FEW_THERE or share > MOST_OF_ALL
        error = math.sqrt(1.0 / max(there.families, due) + 1.0 / max(self.families, 1.0))
        error = math.hypot(error, ROUNDINGS * UNIT_ROUNDOFF * self.log_weight)
        return self.log_weight - there.log_weight > MISSED * error


@dataclass(frozen=True, eq=False)
class Region:
    """Where chains stay: states that their means explain as well as they explain the chains, and as no other center.

    Attributes
    ----------
    cells
        The cells with a center at the means of the chains.
    fields
        Fields of independent spins with these means, one row per image.
    least, most
        The least and the most log-probability, but for a constant: states that are held more firmly in the same
        direction are elsewhere.
    """

    cells: Cells
    fields: FloatArray
    least: float
    most: float

    @classmethod
    def around(cls, states: NDArray[np.int8], mean: FloatArray, cells: Cells) -> Region:
        """Return the region of some chains."""
        center = np.clip(mean, -SUREST_CENTER, SUREST_CENTER)
        fields = np.arctanh(center)
        own = states @ fields
        deviation = max(float(own.std()), math.sqrt(float((fields**2) @ (1.0 - center**2))))
        middle, wide, half = float(own.mean()), DEVIATIONS * deviation, 0.5 * abs(float(own.mean()))
        least, most = max(middle - wide, 0.5 * middle), middle + max(wide, half)
        return cls(cells.with_center(mean), np.asarray(cells.images * fields, dtype=np.float64), least, most)

    def found_by(self, population: Population, images: int = 1) -> There:
        """Return what a population has found here; one that stays at one of so many images stands for all."""
        scores = population.x.astype(np.float32) @ self.fields.T.astype(np.float32)
        inside = (scores >= self.least) & (scores <= self.most)
        cell, _ = self.cells.places(population.x)
        counted = inside.any(axis=1) & (cell == self.cells.count - 1)
        weight = float(population.weights() @ counted)
        if not weight > 0.0:
            return There(0.0, -math.inf)
        at_first = float(population.weights() @ (inside[:, 0] & counted))
        times = images if at_first > (1.0 - LEFT) * weight else 1
        return There(population.families(counted), population.mean_log_z + math.log(weight * times))


def stay_together(states: NDArray[np.int8], mean: FloatArray, cells: Cells) -> bool:
    """Return whether most chains are in a cell around their means; chains that went to many valleys are in none."""
    cell, _ = cells.with_center(mean).places(states)
    return bool((cell == cells.count).mean() > STAYING)


def are_alike(mean: FloatArray, other: FloatArray, images: NDArray[np.int8]) -> bool:
    """Return whether hardly any spins have means that differ by much, and all differ by little, for some image."""
    apart = np.abs(images * other - mean)
    few = (apart >= APART).sum(axis=1) < max(FEWEST_HELD, PART_APART * len(mean))
    return bool((few & ((apart**2).mean(axis=1) < SQUARE_APART)).any())


def _measured(missing: Missing, mean: FloatArray, sources: frozenset[str]) -> Phase:
    """Return a phase with the better of two pilots: the one that leaves more families in it.

    The second is left out if the first finds many, or so little that the population need not know the phase.
    """
    path, cells, ordinary = missing.path, missing.cells, missing.ordinary
    own = cells.with_center(mean)
    best: Phase | None = None
    for share in SHARES_OF_FIELDS:
        base = share * np.arctanh(np.clip(mean, -SUREST_BASE, SUREST_BASE))
        begun, size = replace(path, base=base, subgraph=None), max(PILOT_STATES, path.engine.together)
        reached = pilot(begun, size, missing.rng, missing.parallel, variance=VARIANCE_OF_PILOTS)
        number = cells.count if stays(reached.population, own, cells.count, LEFT) else None
        row = row_of(reached.population, own, number)
        phase = Phase(mean, reached, float(row.log_z[0, -1]), float(row.families[-1]), sources)
        if best is None or phase.families > best.families:
            best = phase
        due = ordinary.families() * math.exp(min(phase.log_weight + UNSURE - ordinary.mean_log_z, 0.0))
        if phase.families > MANY * reached.population.size or (phase.families and due < FEW_THERE):
            break
    assert best is not None
    return best

"""Curves over temperature by parallel tempering: every quantity is a mean over copies at the rungs next to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, is_past
from spectralz.parts.leading import collective_directions
from spectralz.sampling.curves import MOST_OF_SEARCH, phases_beside
from spectralz.sampling.engines.sparse import COPIES_PER_GROUP
from spectralz.sampling.path import from_coins
from spectralz.sampling.phases import DIRECTIONS
from spectralz.sampling.plan import LEAST_POINTS, SWEEPS, predicted_seconds, seconds_per_point, survey
from spectralz.sampling.populations import Run, systematic
from spectralz.sampling.run import operations
from spectralz.sampling.spread import crew_for
from spectralz.sampling.tempering import (
    COPIES,
    LAG_SHARE,
    STUDENT,
    at,
    can_temper,
    drift,
    energies,
    error_of,
    grouped,
    operations_of_round,
    respaced,
    rungs,
    temper,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew
    from spectralz.sampling.tempering import At, Sight, Tempered

# Copies need about this many times the square of the number of rungs in rounds, and at least the second number of them,
# to climb the ladder often enough.
ROUNDS_PER_SQUARE, FEWEST_ROUNDS = 1.0, 300.0
# How often the states are looked at for magnetization and overlap, and the most bytes of all these states.
LOOKS, FEWEST_LOOKS, MOST_BYTES = 50, 4, 400_000_000
# Of the time, so much goes into the search for phases that were missed; it begins from so many states.
SHARE_OF_SEARCH, STATES_TO_SEARCH = 0.1, 512
# If it takes longer than expected, it ends so much of the whole time after the end.
LATE_SHARE = 0.1
# A phase is known if copies of so many groups have met it.
FEWEST_GROUPS = 4
# The first rungs are those of a quick survey; after so much of the time they are placed anew.
SHARE_OF_FIRST = 0.15
# What is left to sum up everything.
SHARE_OF_SUMS = 0.06
Quantities = dict[str, tuple[float, "FloatArray"]]


@dataclass(frozen=True)
class TemperedCurves:
    """Values and errors at each of K temperatures by name, and what says whether to trust them.

    Attributes
    ----------
    quantities
        Pairs of values and errors, K numbers each, by name.
    visitors
        The copies that came to each temperature from the base.
    drift
        By how many of its errors the mean energy changed between the two halves of the rounds, at most up to there.
    missed
        Whether a phase was found that the copies lack, at each temperature or at a higher one.
    rounds, rungs
        Rounds made, and the rungs of the ladder.
    """

    quantities: dict[str, tuple[FloatArray, FloatArray]]
    visitors: NDArray[np.int64]
    drift: FloatArray
    missed: NDArray[np.bool_]
    rounds: int
    rungs: int
    interrupted: bool


class _Sights:
    """States of all copies that were looked at, (looks, rungs, copies, n), with their energies."""

    def __init__(self, ladder: FloatArray) -> None:
        self._ladder = ladder
        self._x: list[NDArray[np.int8]] = []
        self._energy: list[FloatArray] = []

    def add(self, sight: Sight) -> None:
        """Look at the states of all copies."""
        self._x.append(sight.x)
        self._energy.append(energies(sight.passed, self._ladder))

    def near(self, here: At) -> tuple[NDArray[np.int8], FloatArray]:
        """Return the states at the rungs next to a point, and their weights, 1 on average."""
        x = np.array([states[here.rungs] for states in self._x])
        weight = np.exp(here.log_weight(np.array([energy[here.rungs] for energy in self._energy])))
        return x, weight / weight.mean()


def tempered_curves(
    model: Model, betas: FloatArray, deadline: Deadline, rng: np.random.Generator, *, is_asked: bool = False
) -> TemperedCurves | None:
    """Return curves at temperatures that rise and are above 0, by a deadline.

    None if it cannot be done. Unless tempering was asked for, also if there is not enough time for it, or if the
    coupling is dense. Where many spins turn together, copies fall into a phase now and then and do not come back: no
    search tells whether their share is right. Such curves count as missing phases.
    """
    if model.storage.for_kernels().is_dense and not is_asked:
        return None
    path = from_coins(model.scaled(float(betas[-1])), block_width=0)
    is_late = predicted_seconds(path, LEAST_POINTS * SWEEPS, COPIES) > SHARE_OF_SEARCH * deadline.left
    # With a side summed out, log-weights are not linear along the path.
    is_possible = path.n > 0 and path.sides is None and can_temper(path)
    if not is_possible or (is_late and not is_asked):
        return None
    with crew_for(path) as crew:
        ladder = _ladder(crew, path, deadline, rng, is_asked=is_asked)
        if ladder is None:
            return None
        climbed = partial(temper, path, rng=rng, parallel=crew.parallel)
        sights = _Sights(ladder)
        tempered = climbed(ladder, deadline.share(SHARE_OF_FIRST), look=sights.add, looks=1)
        if not tempered.interrupted:
            ladder, start = respaced(tempered)
            sights, looks = _Sights(ladder), int(max(min(MOST_BYTES / (len(ladder) * COPIES * model.n), LOOKS), 1))
            share = deadline.share(1.0 - SHARE_OF_SEARCH - SHARE_OF_SUMS)
            tempered = climbed(ladder, share, start=start, look=sights.add, looks=looks)
        points = betas / betas[-1]
        places = [at(tempered, point) for point in points.tolist()]
        missed = np.ones(len(betas), dtype=bool)
        if not tempered.interrupted and not path.couplings.is_dense:
            search = deadline.share(SHARE_OF_SEARCH / (SHARE_OF_SEARCH + SHARE_OF_SUMS))
            end = Deadline.after(deadline.left + LATE_SHARE * deadline.seconds)
            missed = np.logical_or.accumulate(_missed(crew, model, betas, places, sights, search, end, rng))
    before = replace(tempered, passed=tempered.early)
    found = [
        _with_errors(model, beta, point, tempered, before, here, sights)
        for beta, point, here in zip(betas.tolist(), points.tolist(), places, strict=True)
    ]
    curves = {
        name: (np.array([one[name][0] for one in found]), np.array([one[name][1] for one in found]))
        for name in found[0]
    }
    above = np.minimum(np.searchsorted(ladder, points), len(ladder) - 1)
    drifts = np.maximum.accumulate(drift(tempered))[above]
    visitors = tempered.visitors[above]
    return TemperedCurves(curves, visitors, drifts, missed, tempered.rounds, len(ladder), tempered.interrupted)


def _ladder(
    crew: Crew, path: Path, deadline: Deadline, rng: np.random.Generator, *, is_asked: bool
) -> FloatArray | None:
    """Return the rungs, if there is time for as many rounds as they need, and memory for their states."""
    with deadline.share(SHARE_OF_SEARCH).in_force():
        ladder = rungs(survey(path, rng, crew.parallel))
    if FEWEST_LOOKS * path.n * COPIES * len(ladder) > MOST_BYTES:
        return None
    sweeps = seconds_per_point(path, COPIES * crew.threads, parallel=crew.parallel) / crew.threads * len(ladder)
    beside = operations_of_round(path, len(ladder)) - operations(path.engine, len(ladder), COPIES)
    one = sweeps + beside / clock.OPERATIONS_PER_SECOND
    needed = max(ROUNDS_PER_SQUARE * len(ladder) ** 2, FEWEST_ROUNDS)
    return ladder if is_asked or needed * one < deadline.left else None


def _thermal(model: Model, beta: float, point: float, tempered: Tempered, here: At) -> Quantities:
    """Return log Z and what follows from the energies at a temperature by name, and how far each group is off."""
    energy = tempered.energy[:, here.rungs] * (-point / beta)
    mean, off = _mean(energy, here.weight)
    variance, off_variance = _mean((energy - mean) ** 2, here.weight)
    log_z, mean = here.log_z + beta * model.constant, mean - model.constant
    return {
        "log_z": (log_z, here.apart),
        "energy": (mean, off),
        "entropy": (log_z + beta * mean, here.apart + beta * off),
        "heat_capacity": (beta**2 * variance, beta**2 * off_variance),
    }


def _of_states(x: NDArray[np.int8], weight: FloatArray) -> Quantities:
    """Return what follows from the states at a temperature by name, and how far each group is off."""
    magnetization = x.mean(axis=-1, dtype=np.float64)
    return {
        "magnetization": _mean(magnetization, weight),
        "abs_magnetization": _mean(np.abs(magnetization), weight),
        "overlap": _overlap(x, weight),
    }


def _mean(values: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the mean of numbers of copies, (rounds, rungs, copies), and how far each group is off."""
    mean = float((weight * values).mean())
    return mean, grouped(weight * (values - mean)).mean(axis=0)


def _overlap(x: NDArray[np.int8], weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the mean overlap of the states of two groups, and how far that of each with the others is off."""
    looks, rungs, copies, n = x.shape
    groups = copies // COPIES_PER_GROUP
    states = np.moveaxis(x.reshape(looks, rungs, groups, -1, n), 2, 0).reshape(groups, -1, n)
    weights = np.moveaxis(weight.reshape(looks, rungs, groups, -1), 2, 0).reshape(groups, 1, -1).astype(np.float32)
    means = np.array(
        [(row @ part.astype(np.float32))[0] / part.shape[0] for row, part in zip(weights, states, strict=True)]
    )
    with_others = (means * (means.sum(axis=0) - means)).mean(axis=1, dtype=np.float64) / (groups - 1)
    return float(with_others.mean()), 2.0 * (with_others - with_others.mean())


def _with_errors(
    model: Model, beta: float, point: float, tempered: Tempered, before: Tempered, here: At, sights: _Sights
) -> dict[str, tuple[float, float]]:
    """Return values at a temperature by name, with errors; ``before`` has the rounds before those that count.

    These are what the groups show; a share of the difference from earlier rounds beyond its noise; and what states too
    rare to be met could change: about one in all visitors may be in a state that is seen only at the next, warmer rung.
    """
    quantities = _thermal(model, beta, point, tempered, here)
    rare = 1.0 / max(int(tempered.visitors[here.rungs].min()), 1)
    spread = float(tempered.energy[:, here.rungs.start].std()) * point / beta
    unseen = {
        "energy": rare * spread,
        "entropy": rare * (1.0 + beta * spread),
        "heat_capacity": rare * (beta * spread) ** 2,
    }
    lags = dict.fromkeys(quantities, 0.0)
    if len(before.passed.on):
        for name, (early, off_early) in _thermal(model, beta, point, before, at(before, point)).items():
            value, off = quantities[name]
            noise = float(error_of(off_early) ** 2 + error_of(off) ** 2)
            lags[name] = LAG_SHARE * math.sqrt(max((value - early) ** 2 - noise, 0.0))
    quantities |= _of_states(*sights.near(here))
    found = {}
    for name, (value, off) in quantities.items():
        error = math.hypot(float(error_of(off)), lags.get(name, 0.0), unseen.get(name, rare))
        found[name] = value, STUDENT * error
    return found


def _missed(
    crew: Crew,
    model: Model,
    betas: FloatArray,
    places: Sequence[At],
    sights: _Sights,
    deadline: Deadline,
    end: Deadline,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return at which temperatures there are phases that the copies lack; after the ``end`` there may be some."""
    missed = np.ones(len(betas), dtype=bool)
    directions = collective_directions(model, DIRECTIONS)  # the same at all temperatures
    for k, (beta, here) in enumerate(zip(betas.tolist(), places, strict=True)):
        left = len(betas) - k
        with end.share(max(MOST_OF_SEARCH, 1.0 / left)).in_force():
            missed[k] = _misses_phase(crew, model.scaled(beta), directions, here, sights, deadline.left / left, rng)
    return missed


def _misses_phase(
    crew: Crew,
    model: Model,
    directions: Sequence[FloatArray],
    here: At,
    sights: _Sights,
    seconds: float,
    rng: np.random.Generator,
) -> bool:
    """Return whether there is a phase that the copies next to a temperature lack, and that holds its states.

    Valleys of a sparse graph are many, and none has a large share. It is enough that copies of several groups, which
    know nothing of each other, have found it.
    """
    x, weight = sights.near(here)
    share = weight.reshape(-1) / weight.sum()
    states = x.reshape(len(share), -1)
    places = np.repeat(np.arange(len(share)), systematic(share, rng.random(), STATES_TO_SEARCH))
    run = Run(here.log_z, states[places], np.full(len(places), 1.0 / len(places)), np.arange(len(places)), 0.0)
    found = phases_beside(crew, model, [run], directions, seconds, rng)
    if is_past():
        return True  # not all phases were looked at
    doubtful = [stratum for stratum in found.strata if not stratum.is_left]
    if not doubtful:
        return False
    by_groups = (-1, COPIES // COPIES_PER_GROUP, COPIES_PER_GROUP)  # by looks and rungs, groups, copies
    for stratum in doubtful:
        is_in = found.have([stratum], states).reshape(by_groups)
        if np.count_nonzero(is_in.any(axis=(0, 2))) < FEWEST_GROUPS:
            return True
    return False

"""Curves over temperature, from populations that pass through given temperatures.

The points of a path from fair coins are temperatures, so one run passes through all of them. Errors come from leaving
out one of several independent runs after the other (the jackknife). States lag behind equilibrium at low temperature,
twice as far with half as many points. So a second set of runs has half as many points, and its difference, beyond part
of its noise, is added to the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, is_past
from spectralz._support.progress import report
from spectralz.errors import catching_interrupt
from spectralz.model import Ising
from spectralz.parts.leading import collective_directions
from spectralz.sampling.path import from_coins
from spectralz.sampling.plan import LEAST_POINTS, seconds_per_point, survey
from spectralz.sampling.populations import log_means, mean_and_shares
from spectralz.sampling.run import anneal
from spectralz.sampling.spread import crew_for
from spectralz.sampling.strata.phases import DIRECTIONS, MOST_CANDIDATES, SWEEPS_PER_CANDIDATE, Phases, find_phases
from spectralz.sampling.strata.runs import counted, path_to_stratum, run_by_run
from spectralz.sampling.sweeps import operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run
    from spectralz.sampling.spread import Crew

# Independent runs, and the states of each: the most where points are so many that more are of no use.
RUNS, STATES, MOST_STATES = 12, 128, 8192
# After an interrupt, so many runs are something to return.
FEWEST_RUNS = 2
# The survey of the path gets this share of the time.
SHARE_OF_SURVEY = 0.1
# If there is no time for all runs, the states of one are divided into so many groups. Not all of them are looked at if
# they have more couplings than this together. Runs predicted to take so many times too long are not even timed.
ROUGH_GROUPS, MOST_ROUGH_ENTRIES, HOPELESS_TIMES = 4, 1.2e7, 4.0
# Points that are of use: this many times the square of the path's length, within these limits.
POINTS_PER_SQUARE, FEWEST_POINTS, MOST_POINTS = 4.0, 200.0, 20_000.0
# Of the time, so much is planned with: half the schedule is run first, then the whole of it.
SHARE_PLANNED = 0.7
# Of the time that is left, so much goes into the search for phases that were missed; if there are any, the whole
# schedule is this much shorter, and what is left goes into runs to them.
SHARE_OF_SEARCH, SHARE_BESIDE_PHASES = 0.1, 0.5
# A search that takes longer ends after this share of what there is for all of them.
MOST_OF_SEARCH = 0.5
# Small models that show how fast this machine is.
SPINS_OF_RING, SPINS_OF_DENSE, LEAST_SLOWNESS = 32_768, 1024, 0.01
# Means of spins are kept for the overlap up to so many numbers.
MOST_MEANS = 50_000_000
# States are kept to look for collective ones beside them up to so many spins, one byte each.
MOST_KEPT = 1_000_000_000


@dataclass(frozen=True)
class Curves:
    """Values and errors at each of K temperatures, K numbers each.

    ``energy`` is minus the log-weight of the model itself. ``magnetization``, its size ``abs_magnetization`` and
    ``overlap``, that of two independent states (None for many spins), are per spin. ``strata`` are the phases that cold
    states have missed at each temperature, and the runs that count for each stratum. ``is_rough``: there was time for a
    few short runs only, which nothing checks.
    """

    log_z: tuple[FloatArray, FloatArray]
    energy: tuple[FloatArray, FloatArray]
    entropy: tuple[FloatArray, FloatArray]
    heat_capacity: tuple[FloatArray, FloatArray]
    magnetization: tuple[FloatArray, FloatArray]
    abs_magnetization: tuple[FloatArray, FloatArray]
    overlap: tuple[FloatArray, FloatArray] | None
    strata: list[tuple[Phases, list[list[Run]]]]
    points: int
    states: int
    runs: int = RUNS
    interrupted: bool = False
    is_rough: bool = False


class _Sums:
    """Weighted sums over the states of each run at each temperature."""

    def __init__(self, model: Model, betas: FloatArray, runs: int) -> None:
        shape = runs, len(betas)
        self.model, self.betas = model, betas
        self.log_z = np.zeros(shape)
        self.energy, self.square = np.zeros(shape), np.zeros(shape)
        self.magnetization, self.size = np.zeros(shape), np.zeros(shape)
        # Energies are summed up from their middle, so that no square of a large number hides how they vary.
        self.middle = np.zeros(len(betas))
        keeps = runs * len(betas) * model.n <= MOST_MEANS
        self.means = np.zeros((*shape, model.n)) if keeps else None
        self.populations: list[list[Run]] = [[] for _ in betas]
        self.completed = 0

    def keep(self, run: int, k: int, population: Run, log_weight: FloatArray | None = None) -> None:
        """Add the states of a run at a temperature, and keep them if there is room."""
        has_room = RUNS * len(self.betas) * population.x.size <= MOST_KEPT
        self.populations[k].append(population if has_room else replace(population, x=population.x[:, :0]))
        self.add(run, k, population, log_weight)

    def add(self, run: int, k: int, population: Run, log_weight: FloatArray | None = None) -> None:
        """Let the states of a run at a temperature count, in place of those that it had before."""
        share, x = population.weight, population.x
        energy = -np.asarray(self.model.log_weight(x) if log_weight is None else log_weight)
        if run == 0:
            self.middle[k] = float(energy.mean())
        energy -= self.middle[k]
        magnetization = x.mean(axis=1, dtype=np.float64) if self.model.n else np.zeros(len(x))
        self.log_z[run, k] = population.log_z + self.betas[k] * self.model.constant
        self.energy[run, k], self.square[run, k] = share @ energy, share @ energy**2
        self.magnetization[run, k], self.size[run, k] = share @ magnetization, share @ np.abs(magnetization)
        if self.means is not None:
            self.means[run, k] = share @ x

    def quantities(self, runs: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Return what some of the runs say together, each weighed by its estimate of Z."""
        log_z = log_means(self.log_z[runs].T)
        weight = np.exp(self.log_z[runs] - log_z) / len(runs)
        energy = (weight * self.energy[runs]).sum(axis=0)
        variance = np.maximum((weight * self.square[runs]).sum(axis=0) - energy**2, 0.0)
        quantities = {
            "log_z": log_z,
            "energy": self.middle + energy,
            "entropy": log_z + self.betas * (self.middle + energy),
            "heat_capacity": self.betas**2 * variance,
            "magnetization": (weight * self.magnetization[runs]).sum(axis=0),
            "abs_magnetization": (weight * self.size[runs]).sum(axis=0),
        }
        if self.means is not None:
            quantities["overlap"] = self._overlap(self.means[runs], weight)
        return quantities

    def _overlap(self, means: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the mean overlap of states of two different runs, which are independent."""
        weighted = weight[:, :, None] * means
        both = (weighted.sum(axis=0) ** 2).sum(axis=1) - (weighted**2).sum(axis=(0, 2))
        pairs = weight.sum(axis=0) ** 2 - (weight**2).sum(axis=0)
        return np.asarray(both / np.maximum(pairs, 1e-300) / max(self.model.n, 1))

    def with_errors(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return what all runs say, and the error of it by the jackknife."""
        count = self.completed
        everyone = np.arange(count)
        without = [self.quantities(np.delete(everyone, run)) for run in range(count)]
        unseen = self._unseen()
        with_errors = {}
        for name, value in self.quantities(everyone).items():
            apart = np.array([quantities[name] for quantities in without])
            apart -= apart.mean(axis=0)
            with_errors[name] = value, np.sqrt((count - 1) / count * (apart**2).sum(axis=0) + unseen[name] ** 2)
        return with_errors

    def _unseen(self) -> dict[str, FloatArray]:
        """Return what states too rare to be met could change, where all that were met are alike.

        Their share is about one over the number of states, and their energies lie apart as they do where it is warmer.
        """
        rare = np.array([1.0 / max(sum(run.families for run in populations), 1.0) for populations in self.populations])
        apart = math.sqrt(max(float((self.square - self.energy**2).max(initial=0.0)), 0.0))
        return {
            "log_z": rare,
            "energy": rare * apart,
            "entropy": rare * (1.0 + self.betas * apart),
            "heat_capacity": rare * (self.betas * apart) ** 2,
            "magnetization": rare,
            "abs_magnetization": rare,
            "overlap": rare,
        }


def curves(model: Model, betas: FloatArray, deadline: Deadline, rng: np.random.Generator) -> Curves:
    """Take populations through the temperatures ``betas``, which rise and are above 0, by a deadline."""
    path = from_coins(model.scaled(float(betas[-1])))
    with crew_for(path) as crew:
        one = predicted_seconds(path, RUNS, STATES) / crew.threads
        if one * LEAST_POINTS < HOPELESS_TIMES * deadline.left:
            one = max(seconds_per_point(path, STATES, parallel=crew.parallel) * RUNS, 1e-9)
        if SHARE_PLANNED * deadline.left < 2.0 * LEAST_POINTS * one:
            return _rough(crew, path, model, betas, SHARE_PLANNED * deadline.left * RUNS / one, rng)
        with deadline.share(SHARE_OF_SURVEY).in_force():
            measured = survey(path, rng, crew.parallel)
        affordable = SHARE_PLANNED * deadline.left / one / 1.5
        wanted = min(max(POINTS_PER_SQUARE * float(measured.length[-1]) ** 2, FEWEST_POINTS), MOST_POINTS)
        count = max(min(affordable, wanted), float(LEAST_POINTS))
        size = int(min(STATES * max(affordable / count, 1.0), MOST_STATES))
        stops = betas / betas[-1]
        spaced = partial(_through, crew, path, model, betas, size=size, rng=rng)
        began = clock.now()
        half = spaced(np.union1d(measured.spaced(count / 2.0), stops), done=(0.0, 0.3))
        strata = [(Phases(), [runs]) for runs in half.populations]
        whole = half
        with catching_interrupt() as interrupt:
            if half.completed < RUNS:
                raise KeyboardInterrupt
            # The whole schedule takes twice as long as half of it.
            ahead = 2.0 * (clock.now() - began)
            targets = _searched(crew, model, half, deadline, max(deadline.left - ahead, 0.0), rng)
            if any(phases.strata for phases in targets):
                count *= SHARE_BESIDE_PHASES
            count *= min(max(deadline.left, SHARE_BESIDE_PHASES * ahead) / max(ahead, 1e-9), 1.0)
            whole = spaced(np.union1d(measured.spaced(count), stops), done=(0.3, 0.9))
            strata = [(Phases(), [runs]) for runs in whole.populations]
            if whole.completed < RUNS:
                raise KeyboardInterrupt
            strata = _with_strata(crew, model, (half, whole), targets, deadline, rng)
    values: dict[str, Any] = {"overlap": None}
    coarse = half.with_errors()
    for name, (value, error) in whole.with_errors().items():
        other, its_error = coarse[name]
        # Only part of the noise in that difference is subtracted: missing a lag hidden in it would be worse.
        lag = np.maximum((value - other) ** 2 - 0.5 * its_error**2, 0.0)
        values[name] = value, np.sqrt(error**2 + lag)
    return Curves(**values, strata=strata, points=math.ceil(count), states=RUNS * size, interrupted=interrupt.happened)


def predicted_seconds(path: Path, points: int, size: int) -> float:
    """Predict the time of so many states at so many points in one thread, if even a few sweeps would take long."""
    slowness = 1.0 if clock.counts_operations() else _slowness(is_dense=path.couplings.is_dense)
    return slowness * operations(path.engine, points, size) / clock.OPERATIONS_PER_SECOND


@cache
def _slowness(*, is_dense: bool) -> float:
    """Return how many times as long as in the table of costs sweeps take on this machine, measured on a small model."""
    n = SPINS_OF_DENSE if is_dense else SPINS_OF_RING
    order = np.random.default_rng(0).permutation(n)  # neighbors are apart in memory
    ring = np.column_stack([order, np.roll(order, 1)])
    model = Ising(np.zeros(n), np.full((n, n), 0.5 / n)) if is_dense else Ising.from_edges(n, ring, np.full(n, 0.5))
    path = from_coins(model)
    with clock.using_clock(clock.seconds):  # whatever the clock of the caller
        seconds = seconds_per_point(path, path.engine.together)
    return max(seconds * clock.OPERATIONS_PER_SECOND / operations(path.engine, 1, path.engine.together), LEAST_SLOWNESS)


def _rough(
    crew: Crew, path: Path, model: Model, betas: FloatArray, affordable: float, rng: np.random.Generator
) -> Curves:
    """Return curves from the fewest states, through about so many points; nothing checks them.

    States of one run that are never resampled are independent: groups of them are as good as runs.
    """
    stops = betas / betas[-1]
    points = np.union1d(np.linspace(0.0, 1.0, int(np.clip(affordable - len(stops), 2, FEWEST_POINTS))), stops)
    sums, size = _Sums(model, betas, ROUGH_GROUPS), path.engine.together
    step = int(np.clip(size * path.entries / MOST_ROUGH_ENTRIES, 1, size // ROUGH_GROUPS))

    def keep(k: int, run: Run) -> None:
        run = run.thinned(step)
        log_weight = np.asarray(model.log_weight(run.x))  # of all together it takes less time
        for group, part in enumerate(_groups_of(run)):
            sums.keep(group, k, part, log_weight[group::ROUGH_GROUPS])

    places = np.searchsorted(points, stops).tolist()
    kept = {place: partial(keep, k) for k, place in enumerate(places)}
    anneal(path, points, size, rng, resample_below=0.0, stops=kept, parallel=crew.parallel)
    sums.completed = ROUGH_GROUPS
    strata = [(Phases(), [runs]) for runs in sums.populations]
    values: dict[str, Any] = {"overlap": None, **sums.with_errors()}
    return Curves(**values, strata=strata, points=len(points), states=size, runs=1, is_rough=True)


def _groups_of(run: Run) -> list[Run]:
    """Return groups of the states of a run as runs of their own."""
    log_weights = np.log(np.maximum(run.size * run.weight, np.finfo(float).tiny))
    groups = []
    for k in range(ROUGH_GROUPS):
        mean, share = mean_and_shares(log_weights[k::ROUGH_GROUPS])
        x, family = run.x[k::ROUGH_GROUPS], np.arange(len(share))
        groups.append(replace(run, log_z=run.log_z + mean, x=x, weight=share, family=family))
    return groups


def _searched(
    crew: Crew, model: Model, sums: _Sums, deadline: Deadline, most: float, rng: np.random.Generator
) -> list[Phases]:
    """Return the phases that populations at each temperature have missed, in so many seconds at most."""
    directions = collective_directions(model, DIRECTIONS)  # the same at all temperatures
    end, wanted, found = Deadline.after(most), SHARE_OF_SEARCH * deadline.left / len(sums.betas), []
    for k, (beta, runs) in enumerate(zip(sums.betas.tolist(), sums.populations, strict=True)):
        if runs[0].x.shape[1] < model.n:  # there was no room for them
            found.append(Phases())
            continue
        with end.share(MOST_OF_SEARCH if k + 1 < len(sums.betas) else 1.0).in_force():
            found.append(phases_beside(crew, model.scaled(beta), runs, directions, wanted, rng))
    return found


def phases_beside(
    crew: Crew,
    model: Model,
    runs: Sequence[Run],
    directions: Sequence[FloatArray],
    seconds: float,
    rng: np.random.Generator,
) -> Phases:
    """Return the phases that populations of a model have missed, looked for in about so many seconds."""
    if is_past():
        return Phases(is_complete=False)
    path = from_coins(model)
    one = seconds_per_point(path, STATES, parallel=crew.parallel) / STATES
    most = min(seconds / max(one * SWEEPS_PER_CANDIDATE, 1e-12), MOST_CANDIDATES)
    return find_phases(path, runs, directions, rng, None, most, Deadline.after(2.0 * seconds), crew.parallel)


def _with_strata(
    crew: Crew,
    model: Model,
    sums: Sequence[_Sums],
    targets: Sequence[Phases],
    deadline: Deadline,
    rng: np.random.Generator,
) -> list[tuple[Phases, list[list[Run]]]]:
    """Make runs to the strata at each temperature and let them count; return the runs that count in the last sums."""
    total = sum(len(phases.strata) for phases in targets)
    seconds = deadline.left / max(total, 1)
    strata = []
    for k, (beta, phases) in enumerate(zip(sums[-1].betas.tolist(), targets, strict=True)):
        path = from_coins(model.scaled(beta))
        made = [
            _runs_to(crew, path_to_stratum(path, stratum), seconds, rng) for stratum in phases.strata if deadline.left
        ]
        for one in sums:
            groups = counted(phases, one.populations[k], made)
            for run, population in enumerate(run_by_run(groups) if made else ()):
                one.add(run, k, population)
        strata.append((phases, groups))
    return strata


def _runs_to(crew: Crew, path: Path, seconds: float, rng: np.random.Generator) -> list[Run]:
    """Make as many runs along a path as are made through all temperatures, in about so many seconds."""
    measured = survey(path, rng, crew.parallel)
    one = max(seconds_per_point(path, STATES, parallel=crew.parallel), 1e-12)
    affordable = seconds / (one * RUNS)
    wanted = max(POINTS_PER_SQUARE * float(measured.length[-1]) ** 2, LEAST_POINTS)
    points = measured.spaced(max(min(affordable, wanted), LEAST_POINTS))
    size = int(min(STATES * max(affordable / len(points), 1.0), MOST_STATES))
    return [anneal(path, points, size, stream, parallel=crew.parallel) for stream in rng.spawn(RUNS)]


def _through(
    crew: Crew,
    path: Path,
    model: Model,
    betas: FloatArray,
    points: FloatArray,
    size: int,
    rng: np.random.Generator,
    done: tuple[float, float],
) -> _Sums:
    """Return sums over the states of several runs at each temperature; after an interrupt, of the runs completed."""
    sums = _Sums(model, betas, RUNS)
    places = np.searchsorted(points, betas / betas[-1])
    begin, end = done
    with catching_interrupt():
        for run, stream in enumerate(rng.spawn(RUNS)):
            stops = {int(place): partial(sums.keep, run, k) for k, place in enumerate(places)}
            anneal(path, points, size, stream, stops=stops, parallel=crew.parallel)
            sums.completed = run + 1
            report("cooling", begin + (end - begin) * sums.completed / RUNS)
    if sums.completed < FEWEST_RUNS:
        raise KeyboardInterrupt
    for populations in sums.populations:
        del populations[sums.completed :]
    return sums

"""Cooling: populations that pass through given temperatures, and what they say of the model at each.

Along the path from fair coins to ``beta`` times the model its points are temperatures, so that one run passes through
all of them. Several runs are independent: what they say together has the error that leaving out one after the other
shows (the jackknife). States lag behind where it is cold. Half as many points lag twice as far: what half the
schedule says otherwise, beyond part of its noise, is part of the error. Whether the populations are to be trusted is
asked as of any others: how many families they have, whether the way back agrees, whether a collective state was missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz.parts.annealer import Annealer
from spectralz.parts.collective import missed_by
from spectralz.parts.leading import leading_directions
from spectralz.parts.populations import combine, log_means
from spectralz.parts.survey import LEAST_POINTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising
    from spectralz.parts.collective import Elsewhere
    from spectralz.parts.populations import Annealed, Mean

__all__ = ["Cooled", "cool"]

# Independent runs, and the states of each: the most where points are so many that more are of no use.
RUNS, STATES, MOST_STATES = 12, 128, 8192
# Points that are of use: this many times the square of the path's length, within these limits.
POINTS_PER_SQUARE, FEWEST_POINTS, MOST_POINTS = 4.0, 200.0, 20_000.0
# Of the time, so much is planned with: half the schedule is run first, then the whole of it.
SHARE_PLANNED = 0.8
# Means of spins are kept for the overlap up to so many numbers.
MOST_MEANS = 50_000_000
# States are kept to look for collective ones beside them up to so many spins, one byte each.
MOST_KEPT = 1_000_000_000


@dataclass(frozen=True)
class Cooled:
    """What populations say at each of K temperatures: values and errors, K numbers each.

    ``energy`` is that of physicists, minus the log-weight of the model itself; ``magnetization`` and its size
    ``abs_magnetization`` are per spin, and so is ``overlap``, that of two independent states (None for many spins).
    ``means`` are what populations say of log Z together, with their own doubts, and ``elsewhere`` a collective state
    that they have not met, or None.
    """

    log_z: tuple[FloatArray, FloatArray]
    energy: tuple[FloatArray, FloatArray]
    entropy: tuple[FloatArray, FloatArray]
    heat_capacity: tuple[FloatArray, FloatArray]
    magnetization: tuple[FloatArray, FloatArray]
    abs_magnetization: tuple[FloatArray, FloatArray]
    overlap: tuple[FloatArray, FloatArray] | None
    means: list[Mean]
    elsewhere: list[Elsewhere | None]
    points: int
    runs: int
    states: int


class _Sums:
    """Weighted sums over the states of each run at each temperature."""

    def __init__(self, model: Ising, betas: FloatArray) -> None:
        shape = RUNS, len(betas)
        self.model, self.betas = model, betas
        self.log_z = np.zeros(shape)
        self.energy, self.square = np.zeros(shape), np.zeros(shape)
        self.magnetization, self.size = np.zeros(shape), np.zeros(shape)
        # Energies are summed up from their middle, so that no square of a large number hides how they vary.
        self.middle = np.zeros(len(betas))
        keeps = RUNS * len(betas) * model.n <= MOST_MEANS
        self.means = np.zeros((*shape, model.n)) if keeps else None
        self.populations: list[list[Annealed]] = [[] for _ in betas]

    def add(self, run: int, k: int, found: Annealed) -> None:
        """Take in the states of a run at a temperature."""
        share, x = found.weight, found.x
        has_room = RUNS * len(self.betas) * x.size <= MOST_KEPT
        self.populations[k].append(found if has_room else replace(found, x=x[:, :0]))
        energy = -np.asarray(self.model.log_weight(x))
        if run == 0:
            self.middle[k] = float(energy.mean())
        energy -= self.middle[k]
        each = x.mean(axis=1, dtype=np.float64) if self.model.n else np.zeros(len(x))
        self.log_z[run, k] = found.log_z + self.betas[k] * self.model.constant
        self.energy[run, k], self.square[run, k] = share @ energy, share @ energy**2
        self.magnetization[run, k], self.size[run, k] = share @ each, share @ np.abs(each)
        if self.means is not None:
            self.means[run, k] = share @ x

    def quantities(self, runs: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Return what some of the runs say together, each weighed by its estimate of Z."""
        log_z = log_means(self.log_z[runs].T)
        weight = np.exp(self.log_z[runs] - log_z) / len(runs)
        energy = (weight * self.energy[runs]).sum(axis=0)
        variance = np.maximum((weight * self.square[runs]).sum(axis=0) - energy**2, 0.0)
        found = {
            "log_z": log_z,
            "energy": self.middle + energy,
            "entropy": log_z + self.betas * (self.middle + energy),
            "heat_capacity": self.betas**2 * variance,
            "magnetization": (weight * self.magnetization[runs]).sum(axis=0),
            "abs_magnetization": (weight * self.size[runs]).sum(axis=0),
        }
        if self.means is not None:
            found["overlap"] = self._overlap(self.means[runs], weight)
        return found

    def _overlap(self, means: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the mean overlap of states of two different runs, which are independent."""
        weighted = weight[:, :, None] * means
        both = (weighted.sum(axis=0) ** 2).sum(axis=1) - (weighted**2).sum(axis=(0, 2))
        pairs = weight.sum(axis=0) ** 2 - (weight**2).sum(axis=0)
        return np.asarray(both / np.maximum(pairs, 1e-300) / max(self.model.n, 1))

    def with_errors(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return what all runs say, and the error of it by the jackknife."""
        everyone = np.arange(RUNS)
        without = [self.quantities(np.delete(everyone, run)) for run in range(RUNS)]
        unseen = self._unseen()
        found = {}
        for name, value in self.quantities(everyone).items():
            apart = np.array([each[name] for each in without])
            apart -= apart.mean(axis=0)
            found[name] = value, np.sqrt((RUNS - 1) / RUNS * (apart**2).sum(axis=0) + unseen[name] ** 2)
        return found

    def _unseen(self) -> dict[str, FloatArray]:
        """Return what states too rare to be met could change, where all that were met are alike.

        Their share is about one over the number of states, and their energies lie apart as they do where it is warmer.
        """
        rare = np.array([1.0 / max(sum(run.families for run in found), 1.0) for found in self.populations])
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


def cool(model: Ising, betas: FloatArray, seconds: float, rng: np.random.Generator) -> Cooled:
    """Take populations through the temperatures ``betas``, which rise and are above 0, in about so many seconds."""
    coldest = model.scaled(float(betas[-1]))
    with Annealer(coldest, from_coins=True) as annealer:
        end = clock.now() + seconds
        survey = annealer.survey(rng)
        one = max(annealer.seconds_per_point(STATES) * RUNS, 1e-9)
        affordable = SHARE_PLANNED * max(end - clock.now(), 0.0) / one / 1.5
        wanted = min(max(POINTS_PER_SQUARE * float(survey.length[-1]) ** 2, FEWEST_POINTS), MOST_POINTS)
        points = max(min(affordable, wanted), float(LEAST_POINTS))
        size = int(min(STATES * max(affordable / points, 1.0), MOST_STATES))
        half, whole = (
            _through(annealer, model, betas, _path(survey.spaced(count), betas / betas[-1]), size, rng, done)
            for count, done in ((points / 2.0, (0.0, 1.0 / 3.0)), (points, (1.0 / 3.0, 1.0)))
        )
    found: dict[str, Any] = {}
    for name, (value, error) in whole.with_errors().items():
        other, its_error = half.with_errors()[name]
        # Of the noise in that difference only part is taken off: a lag that hides in it is the worse mistake.
        lag = np.maximum((value - other) ** 2 - 0.5 * its_error**2, 0.0)
        found[name] = value, np.sqrt(error**2 + lag)
    means = [combine(each) for each in whole.populations]
    log_z, error = found["log_z"]
    found["log_z"] = log_z, np.maximum(error, [mean.std_error for mean in means])
    directions = leading_directions(model.storage)  # the same at all temperatures
    return Cooled(
        **{"overlap": None, **found},
        means=means,
        elsewhere=[
            missed_by(model.scaled(float(beta)), each, rng, directions) if each[0].x.shape[1] == model.n else None
            for beta, each in zip(betas, whole.populations, strict=True)
        ],
        points=math.ceil(points),
        runs=RUNS,
        states=RUNS * size,
    )


def _path(points: FloatArray, stops: FloatArray) -> FloatArray:
    """Return points of a path that has the stops among them."""
    return np.unique(np.concatenate([points, stops]))


def _through(
    annealer: Annealer,
    model: Ising,
    betas: FloatArray,
    path: FloatArray,
    size: int,
    rng: np.random.Generator,
    done: tuple[float, float],
) -> _Sums:
    sums = _Sums(model, betas)
    places = np.searchsorted(path, betas / betas[-1])
    begin, end = done
    for run, stream in enumerate(rng.spawn(RUNS)):
        stops = {int(place): lambda found, run=run, k=k: sums.add(run, k, found) for k, place in enumerate(places)}
        annealer.anneal(path, size, stream, stops=stops)
        report("cooling", begin + (end - begin) * (run + 1) / RUNS)
    return sums

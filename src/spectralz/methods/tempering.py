"""Parallel tempering as a method: copies at several temperatures that change places."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.deadline import current, is_past
from spectralz._support.devices import device_option, using_device
from spectralz._support.options import bytes_in_words, count, option, or_none, repetitions, threads_option
from spectralz.errors import OptionError, TooLargeError, catching_interrupt, warn_inaccurate
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.leading import leading_directions
from spectralz.sampling.path import from_coins
from spectralz.sampling.phases import DIRECTIONS, Phases, find_phases
from spectralz.sampling.plan import bytes_per_state, survey
from spectralz.sampling.populations import marginals_of, sample_of
from spectralz.sampling.spread import crew_for
from spectralz.sampling.tempering import (
    COPIES,
    Sights,
    can_temper,
    in_phases,
    integrated,
    respaced,
    rungs,
    temper,
    unmet,
)
from spectralz.trust.strata import beside_unmeasured
from spectralz.trust.tempering import has_mixed, judge_tempered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import Ising
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run
    from spectralz.sampling.spread import Crew
    from spectralz.sampling.tempering import Tempered

# Sweeps of every copy: at least so many, and as many as copies need to climb a ladder of K rungs, K^2.
FEWEST_SWEEPS = 1000
# The first rungs are those of a quick survey; after so much of the sweeps they are placed anew.
SHARE_OF_FIRST = 0.15
# If there is a deadline, a climb takes at most this share of what is left: phases are searched for after it.
SHARE_OF_CLIMB = 0.75
# How often states are kept, and the most bytes of all copies that are looked at for that.
LOOKS, MOST_BYTES_SEEN = 100, 4e9
# The largest error whose square is a number: that of a model with a huge offset is rounding, and larger.
LARGEST_ERROR = 1e150
# The most bytes of all copies.
MOST_MEMORY = 8 * 2**30


@dataclass(frozen=True, kw_only=True)
class Tempering(Method):
    """Estimate Z by parallel tempering, with an error bar; gives marginals and samples too.

    Copies of the model are at several temperatures at once, from fair coins to the model, and change places with their
    neighbors after every sweep. A copy that is stuck in a valley climbs to high temperature, forgets it, and
    comes back to another. Log Z grows from temperature to temperature by Bennett's acceptance ratio. This is for cold
    glasses, in which annealed states freeze.

    An answer is trusted if enough copies have come from the base to the model, means do not drift, the integral of mean
    energies agrees, and no phase is known that these copies have not met.

    Parameters
    ----------
    temperatures
        Number of temperatures; None chooses as many as let a quarter of neighbors change places.
    population
        Independent copies at each temperature, rounded up to a multiple of 64, which are swept together. None for 64.
    sweeps
        Sweeps of each copy; those of the first half do not count. None for the square of the number of temperatures,
        and at least 1,000.
    seed
        The same seed gives the same answer.
    threads
        Most threads to use; by default all cores that the process may use. The answer does not depend on it.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model is a sparse graph of at least 1,000 spins. Dense models stay on the CPU.

    References
    ----------
    .. [1] Hukushima, Nemoto, "Exchange Monte Carlo method and application to spin glass simulations", J. Phys. Soc.
       Jpn. 65, 1996.
    .. [2] Bennett, "Efficient estimation of free energy differences from Monte Carlo data", J. Comput. Phys. 22, 1976.
    .. [3] Houdayer, "A cluster Monte Carlo algorithm for 2-dimensional spin glasses", Eur. Phys. J. B 22, 2001.

    Examples
    --------
    >>> import spectralz as sz
    >>> glass = sz.generators.grid(side=6, strength=2.0, seed=0)
    >>> result = sz.log_z(glass, "tempering")
    >>> bool(abs(result.log_z - sz.log_z(glass, "exact").log_z) < 5 * result.std_error)
    True
    >>> sz.sample(glass, 3, "tempering").shape
    (3, 36)
    """

    temperatures: int | None = option(None, or_none(count(least=2)))
    population: int | None = option(None, or_none(repetitions(least=2)))
    sweeps: int | None = option(None, or_none(repetitions(least=8)))
    seed: int = option(0, count(least=0))
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "tempering"
    gives_all_pairs: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        outcome, _ = self.climb(model)
        return outcome

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        outcome, run = self.climb(model)
        return marginals_of(model, [run], outcome)

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        needed = replace(self, population=max(self.copies, -(-2 * size // LOOKS)), seed=int(rng.integers(2**32)))
        outcome, run = needed.climb(model)
        if not outcome.status.converged:
            warn_inaccurate(f"the states drawn by tempering may not follow P(x): {outcome.status}")
        return sample_of([run], size, rng)

    @property
    def copies(self) -> int:
        """Copies at each temperature."""
        return COPIES * -(-(self.population or COPIES) // COPIES)

    def climb(self, model: Ising) -> tuple[Outcome, Run]:
        """Return the outcome, and states at the model: copies climb once more from phases that they have missed."""
        path = _path_to(model)
        rng = np.random.default_rng(self.seed)
        with crew_for(path) as crew:
            tempered, sights = self._climbed(crew, path, rng)
            missed = Phases(is_complete=False)
            with catching_interrupt() as interrupt:
                if not tempered.interrupted:
                    phases = _phases_beside(crew, path, sights.run(float(tempered.log_z[0][-1])), rng)
                    missed = unmet(phases, sights)
                if missed.strata:
                    start = in_phases(path, missed, tempered.x, rng, crew.parallel)
                    again, sights_again = self._climbed(crew, path, rng, tempered.points, start)
                    if has_mixed(again):  # copies that stay where they began would be wrong by any amount
                        tempered, sights, missed = again, sights_again, unmet(phases, sights_again)
        is_interrupted = tempered.interrupted or interrupt.happened
        judged = beside_unmeasured(judge_tempered(tempered, model.constant), missed, [], model.constant)
        words = (
            f"{tempered.rounds} sweeps of {self.copies} copies at {len(tempered.points)} temperatures; "
            f"{tempered.visitors[-1]} of them came from the base to the model"
        )
        details = {
            "temperatures": len(tempered.points),
            "points": tempered.points,
            "accepted": tempered.accepted,
            "visitors": int(tempered.visitors[-1]),
            "by_integration": integrated(tempered)[0] + model.constant,
        }
        outcome = estimated(judged, words, interrupted=is_interrupted, iterations=tempered.rounds, details=details)
        variance = min(judged.std_error, LARGEST_ERROR) ** 2
        return outcome, replace(sights.run(judged.log_z - model.constant), variance=variance)

    def _climbed(
        self,
        crew: Crew,
        path: Path,
        rng: np.random.Generator,
        points: NDArray[np.float64] | None = None,
        start: NDArray[np.int8] | None = None,
    ) -> tuple[Tempered, Sights]:
        """Climb a ladder, whose rungs are found first unless they are given; return also states at the model."""
        deadline = current().share(SHARE_OF_CLIMB)
        climbed = partial(temper, path, deadline=deadline, rng=rng, copies=self.copies, parallel=crew.parallel)
        done = 0
        if points is None:
            points = rungs(survey(path, rng, crew.parallel), self.temperatures)
            self._refuse_too_large(path, len(points))
            sights = Sights()
            few = math.ceil(SHARE_OF_FIRST * self._sweeps(len(points)))
            first = climbed(points, most_rounds=few, look=sights.add, looks=1)
            if first.interrupted:
                return first, sights
            points, start = respaced(first, self.temperatures)
            done = first.rounds
        sights = Sights()
        looks = int(max(min(MOST_BYTES_SEEN / (len(points) * self.copies * max(path.n, 1)), LOOKS), 1))
        rounds = max(self._sweeps(len(points)) - done, 2)
        return climbed(points, most_rounds=rounds, start=start, look=sights.add, looks=looks), sights

    def _refuse_too_large(self, path: Path, rungs: int) -> None:
        memory = rungs * self.copies * bytes_per_state(path)
        if memory > MOST_MEMORY:
            raise TooLargeError(
                f"{self.copies} copies of {path.n} spins at {rungs} temperatures take {bytes_in_words(memory)}, more "
                f"than {bytes_in_words(MOST_MEMORY)}; use fewer, or annealing, which needs no ladder"
            )

    def _sweeps(self, rungs: int) -> int:
        return max(FEWEST_SWEEPS, rungs**2) if self.sweeps is None else self.sweeps


def _path_to(model: Ising) -> Path:
    """Return the path from fair coins, on the CPU if the engine of a device has no ladders.

    A base in the fields of the model is nearer, but strong fields would leave its copies in one of several phases.
    """
    path = from_coins(model, block_width=0)
    if not can_temper(path):
        with using_device("cpu"):
            path = from_coins(model, block_width=0)
            can_be_done = can_temper(path)  # makes the engine
        if not can_be_done:
            raise OptionError(
                "tempering takes models whose log-odds are at most 1,000, and this one has larger fields or couplings; "
                "use annealing, or scaled() for a higher temperature"
            )
    return path


def _phases_beside(crew: Crew, path: Path, run: Run, rng: np.random.Generator) -> Phases:
    """Return the phases that the copies have missed, if there is time to look for them."""
    if is_past():
        return Phases(is_complete=False)
    return find_phases(path, [run], leading_directions(path.model.storage, DIRECTIONS), rng, parallel=crew.parallel)

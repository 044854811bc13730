"""Population annealing as a method: several runs along a path whose points a survey chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.deadline import current
from spectralz._support.devices import device_option
from spectralz._support.options import (
    bytes_in_words,
    checked_bytes,
    checked_fraction,
    checked_level,
    count,
    flag,
    option,
    or_none,
    positive,
    repetitions,
    threads_option,
)
from spectralz._support.progress import reporter_of
from spectralz.errors import OptionError, TooLargeError, catching_interrupt, warn_inaccurate
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.outcome import saying
from spectralz.sampling.moves.blocks import MOST_BLOCK_WIDTH
from spectralz.sampling.path import Path, path_to
from spectralz.sampling.phases import STATES_OF_SEARCH, Phases
from spectralz.sampling.plan import STEP, bytes_of_blocks, bytes_per_state, seconds_per_sweep, spaced_by
from spectralz.sampling.populations import Run, marginals_of, sample_of
from spectralz.sampling.run import RESAMPLE_BELOW
from spectralz.sampling.spread import Crew, anneal_many, crew_for
from spectralz.sampling.strata import annealed_to_phases, together
from spectralz.trust.strata import in_words, judge_strata, summary_of_strata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Model
    from spectralz.trust.judgment import Judgment
    from spectralz.trust.runs import Summary


@dataclass(frozen=True, kw_only=True)
class Annealing(Method):
    r"""Estimate Z without bias by population annealing, with an error bar; gives marginals and samples too.

    States follow a path from independent spins in the model's own fields to the model. On the way the log-weight w_k
    changes step by step, from w_0 to that of the model, and each step multiplies Z by a mean over the states,

    .. math::

       Z \approx Z_0 \prod_{k \ge 1} \sum_r p_r e^{w_k(x_r) - w_{k-1}(x_r)},

    where p_r is the share of the state x_r in the population. 64 states are swept together. Phases that they miss, such
    as those beyond a first-order transition, are searched for, measured by runs of their own, and added. Models with
    terms of three and more spins are swept spin by spin, on the CPU.

    Parameters
    ----------
    population
        States in each run.
    runs
        Independent runs; their mean is the answer, and their scatter checks the error bar of each.
    sweeps
        Heat-bath sweeps at every point of the path.
    step
        Relative variance of the weights that a step of the path aims at; smaller means more points.
    resample_below
        Resample once the effective share of the population falls below this: 1 at every step (population
        annealing as it is written), 0 never (annealed importance sampling).
    block_width
        Treewidth of the blocks of spins that each sweep also draws anew, jointly and exactly. Blocks are used where the
        model is so cold that single spins hold each other in place. Wider blocks hold more spins and take longer: their
        tables have up to ``2**block_width`` entries per spin, and each entry takes the time of about six single spins.
        0 draws single spins only. None chooses 6 if a spin has up to 4.5 neighbors on average (as on a grid), 4 up to
        6.5 (as on a lattice of three dimensions), and 0 beyond that or with more than 2,000 spins; blocks are then
        drawn as often as pays.
    clusters
        Whether whole clusters of spins are turned before each sweep (Swendsen and Wang's move), from the point of the
        path on where clusters become large. This is what ferromagnets need near and below their critical point; where
        couplings are frustrated it is right, but of no use. None turns them on sparse graphs of at least 256 spins with
        weak fields whose couplings are not frustrated.
    seed
        The same seed gives the same answer.
    max_memory
        Most memory for a population, in bytes or like ``"512 MiB"``.
    threads
        Most threads to use; by default all cores that the process may use. The answer does not depend on it.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model has at least 2,000 spins (1,000 on a sparse graph).
    level
        A probability such as 0.999, to get the lower end of an ``interval`` that contains log Z with that probability,
        whether the runs are in equilibrium or not. Half as many states follow the path once more, in double precision
        and in 64 runs; this takes about twice as long again. None for no interval.

    References
    ----------
    .. [1] Hukushima, Iba, "Population annealing and its application to a spin glass", 2003.
    .. [2] Wang, Machta, Katzgraber, "Population annealing: Theory and application in spin glasses", Phys. Rev. E 92,
       2015.
    .. [3] Neal, "Annealed importance sampling", Statistics and Computing 11, 2001.
    .. [4] Hamze, de Freitas, "From fields to trees", UAI 2004.
    .. [5] Swendsen, Wang, "Nonuniversal critical dynamics in Monte Carlo simulations", Phys. Rev. Lett. 58, 1987.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=15, strength=0.3, seed=0)
    >>> result = sz.log_z(model, "annealing", population=1000)
    >>> bool(abs(result.log_z - sz.log_z(model, "exact").log_z) < 5 * result.std_error)
    True
    >>> low, high, level = sz.log_z(model, "annealing", population=1000, level=0.999).interval
    >>> result.log_z - 0.2 < low < sz.log_z(model, "exact").log_z, high
    (True, None)
    """

    population: int = option(2000, repetitions(least=2))
    runs: int = option(4, repetitions(least=1))
    sweeps: int = option(1, repetitions(least=1))
    step: float = option(STEP, positive())
    resample_below: float = option(RESAMPLE_BELOW, checked_fraction)
    block_width: int | None = option(
        None, or_none(count(least=0, most=MOST_BLOCK_WIDTH, why="for tables of 2^block_width entries per spin"))
    )
    clusters: bool | None = option(None, or_none(flag))
    seed: int = option(0, count(least=0))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    threads: int | None = threads_option()
    device: str = device_option()
    level: float | None = option(None, or_none(checked_level))

    name: ClassVar[str] = "annealing"
    gives_all_pairs: ClassVar[bool] = True
    takes_terms: ClassVar[bool] = True
    spreads_runs: ClassVar[bool] = True

    def _solve(self, model: Model) -> Outcome:
        outcome, _ = self._run(model)
        return outcome if self.level is None or outcome.interrupted else self._with_interval(model, outcome)

    def _with_interval(self, model: Model, outcome: Outcome) -> Outcome:
        """Make separate runs for the interval, along a path chosen by a separate survey."""
        from spectralz.sampling.intervals import RUNS, annealed_end

        assert self.level is not None
        # Random streams other than those of the runs before.
        beforehand, rng = np.random.default_rng([self.seed, 1]).spawn(2)
        size = max(self.population * self.runs // (2 * RUNS), 2)
        path = path_to(model, block_width=self.block_width, clusters=self.clusters, in_double=True)
        options = {"sweeps": self.sweeps, "resample_below": self.resample_below}
        with crew_for(path) as crew:
            points = spaced_by(path, self.step, beforehand, crew.parallel)
            ends = annealed_end(crew, path, points, size, RUNS, 1.0 - self.level, rng, **options)
        changes = {"interval": ends.interval(model, self.level), "interrupted": ends.is_interrupted}
        return saying(outcome, f"; interval by {ends.words}", **changes)

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        outcome, groups = self._run(model)
        return marginals_of(model, together(groups), outcome)

    def _sample(self, model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        # Draw twice as many states as requested, so that few are returned twice.
        needed = replace(
            self, population=max(self.population, -(-2 * size // self.runs)), seed=int(rng.integers(2**32))
        )
        outcome, groups = needed._run(model)
        if not outcome.status.converged:
            warn_inaccurate(f"the states drawn by annealing may not follow P(x): {outcome.status}")
        return sample_of(together(groups), size, rng)

    def _run(self, model: Model) -> tuple[Outcome, list[list[Run]]]:
        """Choose temperatures and make the runs, and runs to the phases that these miss.

        Returned with the outcome are the runs that count for each stratum. After an interrupt the runs that are done
        are used, if there are any.
        """
        rng = np.random.default_rng(self.seed)
        runs: list[Run] = []
        phases, groups = Phases(), [runs]
        is_searched = True
        path = path_to(model, block_width=self.block_width, clusters=self.clusters)
        with crew_for(path) as crew:
            self._refuse_unsuitable(path, crew)
            with catching_interrupt() as interrupt:
                for run in self._made(crew, path, rng, "annealing"):
                    runs.append(run)
                is_searched = _has_time_to_search(path, crew)
                if is_searched:
                    make = partial(self._made, crew, rng=rng, task="annealing towards phases")
                    phases, groups = annealed_to_phases(crew, path, runs, rng, make)
        if interrupt.happened and not runs:
            raise KeyboardInterrupt
        words = f"{len(runs)} runs of {self.population} states through {len(runs[-1].points)} temperatures"
        words = f"{'interrupted; ' if interrupt.happened else ''}{words}{crew.workers.complaint}"
        summary = summary_of_strata(groups)
        judged = judge_strata(summary, phases, groups, model.constant)
        if not is_searched:
            why = f"{judged.why}; there was no time to look for phases that they missed: do not trust"
            judged = replace(judged, trusted=False, why=why)
        words += in_words(groups, summary)
        return outcome_of_runs(model, runs, summary, judged, words, interrupted=interrupt.happened), groups

    def _made(self, crew: Crew, path: Path, rng: np.random.Generator, task: str) -> Iterator[Run]:
        points = spaced_by(path, self.step, rng, crew.parallel)
        return anneal_many(
            crew,
            path,
            points,
            self.population,
            self.runs,
            rng,
            sweeps=self.sweeps,
            resample_below=self.resample_below,
            tell=reporter_of(task),
        )

    def _refuse_unsuitable(self, path: Path, crew: Crew) -> None:
        most = int(self.max_memory)
        memory = self.population * self.runs * bytes_per_state(path) + bytes_of_blocks(path, crew.threads)
        if memory > most:
            raise TooLargeError(
                f"{self.runs} populations of {self.population} states of {path.n} spins take "
                f"{bytes_in_words(memory)}, more than max_memory ({bytes_in_words(most)}); "
                "choose a smaller population or block_width"
            )
        if self.clusters and not path.can_turn_clusters:
            raise OptionError(
                "clusters is True, which needs a sparse graph with log-odds up to 1,000; this model is dense, or "
                "colder, or bipartite with a side that is summed out, or has terms of three and more spins; "
                "use clusters=None"
            )
        if self.block_width and path.has_terms:
            raise OptionError(
                f"block_width is {self.block_width}, which needs a model of pairs, and this one has terms of up to "
                f"{path.model.higher.largest} spins; use block_width=None"
            )


def _has_time_to_search(path: Path, crew: Crew) -> bool:
    """Return whether the search for phases would end in time, if a deadline is in force."""
    left = current().left
    if left == math.inf:
        return True
    return left > 0.0 and STATES_OF_SEARCH * seconds_per_sweep(path, parallel=crew.parallel) < left


def outcome_of_runs(
    model: Model,
    runs: Sequence[Run],
    summary: Summary,
    judged: Judgment,
    words: str,
    *,
    interrupted: bool = False,
) -> Outcome:
    """Return the estimate of log Z from runs, their summary and the judgment on them; ``words`` describe the runs."""
    temperatures = len(runs[-1].points)
    details = {
        "families": summary.families,
        "family_error": summary.family_error,
        "run_error": summary.run_error,
        "gap": summary.gap,
        "log_z_of_runs": [run.log_z + model.constant for run in runs],
        "temperatures": temperatures,
        "interrupted": interrupted,
    }
    return estimated(judged, words, interrupted=interrupted, iterations=temperatures - 1, details=details)

"""Population annealing as a method: populations from several bases, cells around their phases, one rule of trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import current
from spectralz._support.devices import device_option
from spectralz._support.options import (
    bytes_in_words,
    checked_bytes,
    checked_level,
    count,
    option,
    or_none,
    repetitions,
    threads_option,
)
from spectralz._support.progress import note
from spectralz.errors import NotConvergedError, TooLargeError, catching_interrupt, warn_inaccurate
from spectralz.methods.base import MarginalOutcome, Method, Outcome, estimated
from spectralz.parts.outcome import saying
from spectralz.sampling.core import ACTIONS, Limits, Work, begun, evidence, run_of, sizes_of, split
from spectralz.sampling.long_runs import long_run, populations_of, resumed
from spectralz.sampling.path import from_coins, path_to
from spectralz.sampling.penalties import penalized
from spectralz.sampling.population import layout_of, marginals_of, sample_of
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import STEP, bytes_per_state, spaced_by
from spectralz.trust.judgment import RULES
from spectralz.trust.populations import contradicted, judge, without_losers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import Model
    from spectralz.sampling.cells import SamplingEvidence
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Population, Run
    from spectralz.sampling.spread import Crew
    from spectralz.trust.judgment import Judgment

# Seconds between two answers that are noted while a population is counted; and at least so many times as long as noting
# one takes.
BETWEEN_NOTES, SHARE_OF_NOTES = 2.0, 50.0
# What replaces the options of version 0.2.
REMOVED = {
    "step": "pilots choose the points",
    "resample_below": "groups are resampled once half of their states would do",
    "block_width": "spins are drawn one by one",
    "clusters": "spins are drawn one by one",
}


@dataclass(frozen=True, kw_only=True)
class Annealing(Method):
    r"""Estimate Z without bias by population annealing, with an error bar; gives marginals and samples too.

    States follow a path from independent spins to the model. On the way the log-weight w_k changes step by step, from
    w_0 to that of the model, and each step multiplies Z by a mean over the states of a group,

    .. math::

       Z \approx Z_0 \prod_{k \ge 1} \sum_r p_r e^{w_k(x_r) - w_{k-1}(x_r)},

    where p_r is the share of the state x_r in its group. Pilots choose the base, fair coins or the model's own fields,
    and the points of the path. Phases that the population misses, such as those beyond a first-order transition, are
    searched for. Populations that begin in the means of a phase measure it, and every population counts where its
    independent families say that it knows the model best.

    Parameters
    ----------
    population
        States in each group.
    runs
        Independent groups; their mean is the answer, and their scatter shows its error.
    sweeps
        Sweeps at every point of the path; None to let pilots choose.
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
        whether the states are in equilibrium or not. Half as many states follow the path once more, in double precision
        and in 64 runs; this takes about twice as long again. None for no interval.

    References
    ----------
    .. [1] Hukushima, Iba, "Population annealing and its application to a spin glass", 2003.
    .. [2] Wang, Machta, Katzgraber, "Population annealing: Theory and application in spin glasses", Phys. Rev. E 92,
       2015.
    .. [3] Neal, "Annealed importance sampling", Statistics and Computing 11, 2001.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=15, strength=0.3, seed=0)
    >>> result = sz.log_z(model, "annealing", population=100)
    >>> bool(abs(result.log_z - sz.log_z(model, "exact").log_z) < 5 * result.std_error)
    True
    >>> low, high, level = sz.log_z(model, "annealing", population=100, level=0.999).interval
    >>> result.log_z - 0.2 < low < sz.log_z(model, "exact").log_z, high
    (True, None)
    """

    population: int = option(256, repetitions(least=2))
    runs: int = option(32, repetitions(least=1))
    sweeps: int | None = option(None, or_none(repetitions(least=1)))
    seed: int = option(0, count(least=0))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    threads: int | None = threads_option()
    device: str = device_option()
    level: float | None = option(None, or_none(checked_level))

    name: ClassVar[str] = "annealing"
    gives_all_pairs: ClassVar[bool] = True
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    spreads_runs: ClassVar[bool] = True
    removed: ClassVar[Mapping[str, str]] = REMOVED

    def _solve(self, model: Model) -> Outcome:
        outcome, _ = self._run(model)
        return outcome if self.level is None or outcome.interrupted else self._with_interval(model, outcome)

    def _with_interval(self, model: Model, outcome: Outcome) -> Outcome:
        """Make separate runs for the interval, along a path chosen by a separate survey."""
        from spectralz.sampling.intervals import RUNS, annealed_end

        assert self.level is not None
        # Random streams other than those of the populations before.
        beforehand, rng = np.random.default_rng([self.seed, 1]).spawn(2)
        size = max(self.population * self.runs // (2 * RUNS), 2)
        path = path_to(penalized(model), in_double=True)
        with crew_for(path) as crew:
            points = spaced_by(path, STEP, beforehand, crew.parallel)
            ends = annealed_end(crew, path, points, size, RUNS, 1.0 - self.level, rng, sweeps=self.sweeps or 1)
        changes = {"interval": ends.interval(model, self.level), "interrupted": ends.is_interrupted}
        return saying(outcome, f"; interval by {ends.words}", **changes)

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        outcome, work = self._run(model)
        return marginals_of(model, states_of(work), outcome)

    def _sample(self, model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        # Draw twice as many states as requested, so that few are returned twice.
        needed = max(self.population, -(-2 * size // self.runs))
        outcome, work = replace(self, population=needed, seed=int(rng.integers(2**32)))._run(model)
        if outcome.log_z == -np.inf:
            raise NotConvergedError(f"annealing has no state to return: {outcome.status}")
        if not outcome.status.converged:
            warn_inaccurate(f"the states drawn by annealing may not follow P(x): {outcome.status}")
        return sample_of(states_of(work), size, rng)

    def _run(self, model: Model) -> tuple[Outcome, Work]:
        """Count populations, and judge them."""
        model = penalized(model)
        path = from_coins(model)
        with crew_for(path) as crew:
            self._refuse_unsuitable(path)
            layout = layout_of(path.engine, self.population * self.runs, self.runs)
            limits = limits_of(current(), layout=layout, sweeps=self.sweeps, keep=keeper())
            work = counted(begin(model, crew, self.seed, limits), actions_left(limits))
            return outcome_of(work), work

    def _refuse_unsuitable(self, path: Path) -> None:
        memory = self.population * self.runs * bytes_per_state(path)
        if memory > int(self.max_memory):
            raise TooLargeError(
                f"{self.runs} groups of {self.population} states of {path.n} spins take {bytes_in_words(memory)}, "
                f"more than max_memory ({bytes_in_words(int(self.max_memory))}); choose a smaller population"
            )


def limits_of(deadline: Deadline, **others: Any) -> Limits:
    """Return the limits of some work, with the numbers of trust by which phases are looked for."""
    return Limits(deadline, enough=RULES.families, light=RULES.light, most_phases=RULES.most_phases, **others)


def begin(model: Model, crew: Crew, seed: int, limits: Limits) -> Work:
    """Return the work to begin with: none, or that of earlier calls."""
    earlier = long_run().earlier
    if earlier is None:
        return Work(model, crew, np.random.default_rng(seed), limits)
    return resumed(model, earlier, crew, seed, limits)


def actions_left(limits: Limits) -> tuple[Callable[[Work], Work], ...]:
    """Return the actions to take: after earlier calls counting, and a search for phases if they did not complete it."""
    run, (first, search, rest) = long_run(), ACTIONS[1:]
    if run.earlier is None:
        return ACTIONS
    if run.is_spent:
        return ()
    if not run.earlier.searched and len(run.earlier.bases) == 1:
        return first, search, rest
    return (first, rest) if limits.layout else (rest,)


def keeper(lower: float | None = None, upper: float | None = None) -> Callable[[Callable[[], Work]], None]:
    """Return what is told after groups how to get the work so far: it notes the answer, and keeps the populations."""
    run, began = long_run(), clock.seconds()
    noted = saved = began

    def keep(make: Callable[[], Work]) -> None:
        nonlocal noted, saved
        now = clock.seconds()
        is_due = run.save is not None and now - saved >= run.every
        if not is_due and now - noted < BETWEEN_NOTES:
            return
        work = make()
        enough = replace(work, counted=tuple(tuple(filter(_shows_its_scatter, ps)) for ps in work.counted))
        if is_due and run.save is not None and begun(enough):
            run.save(populations_of(enough, evidence(enough)), lower, upper)
            saved = clock.seconds()
        note_answer(work, lower, upper)
        noted = max(clock.seconds(), now + SHARE_OF_NOTES * (clock.seconds() - now))

    return keep


def _shows_its_scatter(population: Population) -> bool:
    return population.groups >= RULES.fewest_groups


def note_answer(work: Work, lower: float | None, upper: float | None) -> None:
    """Note the answer of the populations so far."""
    seen = evidence(work)
    judgment = judge(seen, RULES)
    note(judgment.log_z + work.model.constant, judgment.std_error, float(seen.families.sum()), lower, upper)


def counted(work: Work, actions: Sequence[Callable[[Work], Work]] = ACTIONS) -> Work:
    """Take the actions of the core; after an interrupt the populations that were counted are used."""
    with catching_interrupt() as interrupt:
        for action in actions:
            work = action(work)
            if work.is_interrupted:
                break
    if not begun(work):
        raise KeyboardInterrupt
    return replace(work, is_interrupted=work.is_interrupted or interrupt.happened)


def judged(work: Work) -> tuple[Work, SamplingEvidence, Judgment]:
    """Return the evidence and the judgment of log Z; a cell where populations contradict each other is split once."""
    seen = evidence(work)
    lost = contradicted(seen, RULES)
    if lost and not work.splits and not work.earlier:
        work = split(work, *max(lost, key=lambda place: seen.totals[:, place[1]].max()))
        seen = evidence(work)
    judgment = judge(seen, RULES)
    return work, seen, replace(judgment, log_z=judgment.log_z + work.model.constant)


def states_of(work: Work) -> Run:
    """Return all states that count, as one weighted population."""
    work, seen, _ = judged(work)
    return run_of(work, without_losers(seen, RULES).coefficients)


def outcome_of(work: Work) -> Outcome:
    """Return the estimate of log Z from the populations that were counted."""
    work, seen, judgment = judged(work)
    ordinary = work.bases[0]
    base, size = np.array(sizes_of(work)).T
    groups = sum(len(log_z) for log_z, k in zip(seen.log_z, base, strict=True) if not k)
    totals = np.logaddexp.reduce(without_losers(seen, RULES).totals, axis=1)
    families = float((seen.families * (seen.coefficients > 0.0)).sum())
    words = (
        f"{size[base == 0].sum()} states in {groups} groups from {ordinary.name} "
        f"through {len(ordinary.pilot.points)} temperatures"
    )
    phases = len(work.bases) - 1
    if phases:
        words += f", {size[base > 0].sum()} from {phases} {'phase' if phases == 1 else 'phases'} that they missed"
    words = f"{'interrupted; ' if work.is_interrupted else ''}{words}; {families:.0f} independent families"
    details = {
        "families": families,
        "phases": phases,
        "log_z_of_populations": (totals + work.model.constant).tolist(),
        "base": ordinary.name,
        "states": int(size.sum()),
        "temperatures": len(ordinary.pilot.points),
        "sweeps": ordinary.pilot.sweeps,
        "proposals": work.found.tried,
        "left_out": min(judgment.left_out, 1.0),
        "interrupted": work.is_interrupted,
    }
    words += work.crew.workers.complaint
    iterations = len(ordinary.pilot.points) - 1
    return estimated(
        judgment,
        words,
        interrupted=work.is_interrupted,
        iterations=iterations,
        details=details,
        populations=populations_of(work, seen),
    )

"""Several estimates of one log Z within a budget of time, held against each other and against proven bounds.

Expectation propagation is good where couplings are weak, sums over states where they are strong, annealing in between
and as a check of both; none of them knows of itself all the ways in which it can be wrong. So each is one trial, and
what they say together decides which to believe and how far.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import SpectralzError, is_interrupt
from spectralz.methods.annealing import PILOT, Annealed, Annealer, combine, marginals_of, with_rounding
from spectralz.methods.base import MarginalOutcome, Outcome
from spectralz.methods.bracket import BOUNDERS, NAMES, bracket, load_bounders, small_models
from spectralz.methods.couplings import couplings_of, mean_strength
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.methods.mean_field import MeanField
from spectralz.methods.states import (
    MOST_STATES,
    Share,
    StatePool,
    States,
    fill,
    pool_marginals,
    pool_outcome,
    search,
    share_held,
)
from spectralz.options import bytes_in_words
from spectralz.progress import report
from spectralz.result import Bounds, Kind, Status
from spectralz.threads import one_thread_if_small

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import FloatArray, Ising

__all__ = ["METHODS_TRIED", "Portfolio"]

# What may be left out; the bounders go by their own names.
METHODS_TRIED = tuple(dict.fromkeys(["exact", "quadrature", "ep", "annealing", "states", *BOUNDERS]))

# Shares of the budget: for bounds, and for the first round of annealing, from which the next is planned.
BOUNDS_SHARE = 0.15
SECONDS_FOR_BOUNDS = 1.0
FIRST_ROUND_SHARE = 0.05
# A later round takes this share of what is left, as long as that is no less than the other share of the whole.
NEXT_ROUND_SHARE = 0.7
LEAST_LEFT = 0.2
LEAST_FOR_ANNEALING = 0.3
MOST_GROWTH = 1e6
PILOT_SHARE = 0.1
GOOD_PILOT, SMALLEST_PILOT = 100, 20
# Steps of temperature, by the relative variance of the weights: the first that the budget permits.
STEPS = (0.05, 0.2, 1.0)
EP_SHARE = 0.3
SEARCH_SHARE = 0.5
RUNS_PER_ROUND = 4
SMALLEST_POPULATION = 20
LARGEST_POPULATION = 200_000
QUENCHES = 1000
RESTARTS = 20
# Seconds of expectation propagation at 100 spins, as measured.
WEAK_EP_SECONDS, STRONG_EP_SECONDS = 0.01, 0.2
# Two answers agree if they are this many of their joint standard errors apart.
AGREEMENT = 3.0
# An error bar that its own method does not trust is widened so many times.
DOUBT = 5.0


@dataclass(frozen=True)
class Trial:
    """One answer among several.

    Attributes
    ----------
    method
        The name of the method.
    outcome
        What it says.
    is_trusted
        Whether by its own account it is to be believed.
    seconds
        How long it took.
    marginals
        Computes the marginals that belong to it.
    """

    method: str
    outcome: Outcome
    is_trusted: bool
    seconds: float
    marginals: Callable[[], MarginalOutcome]

    @property
    def log_z(self) -> float:
        """Its answer."""
        return self.outcome.log_z

    @property
    def std_error(self) -> float:
        """Its error: that of rounding where it is exact, infinite if it gives none."""
        outcome = self.outcome
        if outcome.kind is Kind.EXACT and outcome.lower is not None and outcome.upper is not None:
            return 0.5 * (outcome.upper - outcome.lower)
        return math.inf if outcome.std_error is None else outcome.std_error


class Portfolio:
    """Runs the methods on one model; :meth:`run` does all, and an interrupt ends it with what there is.

    Parameters
    ----------
    model
        The model, of one spin at least.
    budget
        Seconds to spend.
    tol
        Standard error at which to stop earlier.
    exclude
        Names of methods to leave out.
    seed
        For all that is random.
    max_memory
        Most memory for populations, in bytes.
    """

    def __init__(
        self, model: Ising, *, budget: float, tol: float, exclude: tuple[str, ...], seed: int, max_memory: int
    ) -> None:
        self.model = model
        self.budget = budget
        self.tol = tol
        self.exclude = exclude
        self.max_memory = max_memory
        self.bounds: Bounds | None = None
        self.trials: dict[str, Trial] = {}
        self.failures: dict[str, str] = {}
        self.is_interrupted = False
        self._rng = np.random.default_rng(seed)
        self._started = time.perf_counter()

    @property
    def _left(self) -> float:
        return self.budget - (time.perf_counter() - self._started)

    def run(self) -> None:
        """Run what fits into the budget, which counts from here once everything is compiled."""
        load_methods()
        self._started = time.perf_counter()
        with one_thread_if_small(self.model.n):
            self._run()

    def _run(self) -> None:
        try:
            # The sum over states comes later, from the same populations as the rest.
            left_out = {*self.exclude, "states"} & set(NAMES)
            seconds = max(BOUNDS_SHARE * self.budget, min(SECONDS_FOR_BOUNDS, 0.5 * self.budget))
            self.bounds = bracket(self.model, seconds, left_out)
            self.is_interrupted = self.bounds.interrupted
            if not self.is_interrupted:
                self._propagate()
                self._anneal()
        except (KeyboardInterrupt, SystemError) as error:
            if self.bounds is None or not is_interrupt(error):
                raise
            self.is_interrupted = True

    # ------------------------------------------------------------------------------------------- the methods

    def _propagate(self) -> None:
        if "ep" in self.exclude:
            return
        seconds = _ep_seconds(self.model)
        if seconds > EP_SHARE * self._left:
            self.failures["ep"] = f"would take up to {seconds:.2g} s, and there are {max(self._left, 0.0):.2g} s left"
            return
        began = time.perf_counter()
        try:
            found = ExpectationPropagation()._solve_marginals(self.model)
        except SpectralzError as error:
            self.failures["ep"] = str(error)
            return
        trusted = bool(found.outcome.details.get("trusted", False)) and found.outcome.std_error is not None
        self._keep("ep", found.outcome, trusted, time.perf_counter() - began, lambda: found)

    def _anneal(self) -> None:
        """Anneal in rounds: a short one, then as many states as the error wants and the budget permits."""
        if {"annealing", "states"} <= set(self.exclude):
            return
        with Annealer(self.model) as annealer:
            pilot = self._plan_annealing(annealer)
            if pilot == 0:
                return
            began = time.perf_counter()
            betas = annealer.temperatures(pilot, self._rng)
            seconds_per_state = (time.perf_counter() - began) / pilot
            allowed = FIRST_ROUND_SHARE * self.budget
            # The first is made even where expectation propagation needs no help: it checks it.
            found = self._round(annealer, betas, [], allowed / seconds_per_state)
            before = 0
            while found and self._wanted_growth() > 1.0 and self._left > LEAST_LEFT * self.budget:
                states = sum(run.size for run in found)
                # The time for collecting states is part of a state's price.
                seconds_per_state = (time.perf_counter() - began) / (states - before)
                before, began = states, time.perf_counter()
                wanted = min(states * self._wanted_growth(), NEXT_ROUND_SHARE * self._left / seconds_per_state)
                more = self._round(annealer, betas, found, wanted)
                if len(more) == len(found):
                    return
                found = more

    def _plan_annealing(self, annealer: Annealer) -> int:
        """Set the step of temperature that the budget permits, and return the size of the pilot, 0 if there is none."""
        # Where the others took too long, this much of the budget is spent once more: an answer is worth it.
        left = max(self._left, LEAST_FOR_ANNEALING * self.budget)
        for step in STEPS:
            annealer.step = step
            seconds = annealer.seconds_per_state()
            affordable = PILOT_SHARE * left / seconds
            if affordable >= GOOD_PILOT:
                return int(min(affordable, PILOT))
        needed = (1 + RUNS_PER_ROUND) * SMALLEST_PILOT * seconds
        if needed <= left:
            return SMALLEST_PILOT
        why = f"the fewest states worth while would take about {needed:.2g} s, {left:.2g} s are left"
        self.failures.update({name: why for name in ("annealing", "states") if name not in self.exclude})
        return 0

    def _round(self, annealer: Annealer, betas: FloatArray, earlier: list[Annealed], total: float) -> list[Annealed]:
        """Make the runs of a round with about ``total`` states together, and judge by all runs so far."""
        began = time.perf_counter()
        room = self.max_memory // annealer.bytes_per_state() - sum(run.size for run in earlier)
        size = int(min(max(total / RUNS_PER_ROUND, SMALLEST_POPULATION), LARGEST_POPULATION, room // RUNS_PER_ROUND))
        found: list[Annealed] = []
        if size < 2:
            self.failures["annealing"] = f"max_memory ({bytes_in_words(self.max_memory)}) holds no population"
            return earlier
        try:
            for run in range(RUNS_PER_ROUND):
                found.append(annealer.anneal(betas, size, self._rng, self._tell))
                if self._left < 0.0 and run:
                    break
        finally:  # what an interrupt leaves counts too
            if earlier or found:
                self._judge_annealing([*earlier, *found], betas, time.perf_counter() - began)
        self._collect(annealer, earlier, found)
        return [*earlier, *found]

    def _tell(self, _: float) -> None:
        report("annealing", min(1.0 - self._left / self.budget, 1.0))

    def _judge_annealing(self, found: list[Annealed], betas: FloatArray, seconds: float) -> None:
        if "annealing" in self.exclude:
            return
        mean = combine(found)
        states = sum(run.size for run in found)
        words = (
            f"{len(found)} runs with {states} states in all through {len(betas)} temperatures; "
            f"{mean.families:.0f} independent families"
        )
        log_z = mean.log_z + self.model.constant
        outcome = Outcome(
            log_z=log_z,
            kind=Kind.ESTIMATE,
            status=Status(words, converged=mean.is_trusted),
            std_error=with_rounding(mean.std_error, log_z),
            iterations=len(betas) - 1,
        )
        self._keep("annealing", outcome, mean.is_trusted, seconds, lambda: marginals_of(self.model, found, outcome))

    def _collect(self, annealer: Annealer, earlier: list[Annealed], found: list[Annealed]) -> None:
        """Sum over states; those of one part of the runs are found again in the other, or not."""
        if "states" in self.exclude or not found or (not earlier and len(found) < 2):
            return
        began = time.perf_counter()
        half = len(found) // 2
        finding, testing = (earlier, found) if earlier else (found[:half], found[half:])
        pool = StatePool(self.model, MOST_STATES, self.max_memory // 4)
        fill(pool, annealer, finding, QUENCHES, self._rng)
        share = share_held(pool, testing)
        if share.share > 0.0 and self._wanted_growth() > 1.0:
            search(pool, annealer, SEARCH_SHARE * self._left)
            share = share_held(pool, testing)
        self._judge_states(pool, share, time.perf_counter() - began)

    def _judge_states(self, pool: StatePool, share: Share, seconds: float) -> None:
        outcome = pool_outcome(pool, share)
        trusted = outcome.status.converged
        self._keep("states", outcome, trusted, seconds, lambda: pool_marginals(pool, outcome))
        assert self.bounds is not None
        if pool.lower > self.bounds.lower:
            self.bounds = replace(self.bounds, lower=pool.lower, lower_method="states")

    def _keep(
        self, name: str, outcome: Outcome, trusted: bool, seconds: float, marginals: Callable[[], MarginalOutcome]
    ) -> None:
        """Keep what a method says now in the place of what it said before, the time of both together."""
        spent = self.trials[name].seconds if name in self.trials else 0.0
        self.trials[name] = Trial(name, outcome, trusted, spent + seconds, marginals)

    def _wanted_growth(self) -> float:
        """Return how many times more states would bring the best error down to what is wanted."""
        trusted = [trial.std_error for trial in self.trials.values() if trial.is_trusted]
        return min(min(trusted) / self.tol, MOST_GROWTH) ** 2 if trusted else math.inf

    # ------------------------------------------------------------------------------------------ the conclusion

    def conclude(self) -> tuple[Outcome, Trial | None]:
        """Choose among the answers and say why, with an error that covers what they disagree about."""
        assert self.bounds is not None
        believed = [trial for trial in self.trials.values() if trial.is_trusted and self._is_possible(trial)]
        if not believed:
            return self._conclude_in_doubt(self.bounds)
        chosen = min(believed, key=lambda trial: trial.std_error)
        others = [trial for trial in believed if trial is not chosen]
        rivals = [trial for trial in others if not _agree(chosen, trial)]
        # Two standard errors reach as far as the farthest of them.
        gap = max((abs(trial.log_z - chosen.log_z) for trial in rivals), default=0.0)
        why = f"{chosen.method} has the smallest error bar"
        if rivals:
            why += f"; it was widened to cover {_named(rivals)}, beyond the error bars of both"
        elif others:
            why += f"; {_named(others)} agree{'' if len(others) > 1 else 's'}"
        else:
            why += "; there was no second method to check it"
        verdicts = {trial.method: "disagrees" if trial in rivals else "agrees" for trial in others}
        verdicts[chosen.method] = "chosen"
        converged = not rivals and not self.is_interrupted
        return self._outcome(chosen.log_z, max(chosen.std_error, gap / 2.0), why, verdicts, converged), chosen

    def _conclude_in_doubt(self, bounds: Bounds) -> tuple[Outcome, Trial | None]:
        """Choose where no method trusts itself: the answer with the smallest error, and an error that is no promise."""
        deviation = bounds.width / math.sqrt(12.0)  # of a number that may be anywhere between the bounds
        guesses = [trial for trial in self.trials.values() if self._is_possible(trial) and trial.std_error < math.inf]
        if not guesses:
            why = "no method gave an answer to be used: this is the middle of the proven bounds"
            return self._outcome(0.5 * (bounds.lower + bounds.upper), deviation, why, {}, False), None
        chosen = min(guesses, key=lambda trial: trial.std_error)
        spread = max(abs(trial.log_z - chosen.log_z) for trial in guesses)
        std_error = max(chosen.std_error, min(max(DOUBT * chosen.std_error, spread), deviation))
        why = f"no method trusts its own answer here; {chosen.method} has the smallest error, widened {DOUBT:g} times"
        return self._outcome(chosen.log_z, std_error, why, {chosen.method: "chosen"}, False), chosen

    def conclude_marginals(self) -> MarginalOutcome:
        """Return the marginals of the method chosen, with the answer of all."""
        outcome, chosen = self.conclude()
        if chosen is None:
            # All that is known of the spins is what mean field says of them.
            return replace(MeanField(restarts=RESTARTS)._solve_marginals(self.model), outcome=outcome)
        return replace(chosen.marginals(), kind=Kind.ESTIMATE, outcome=outcome)

    def _is_possible(self, trial: Trial) -> bool:
        """Say whether the proven bounds permit the answer, its error considered."""
        assert self.bounds is not None
        slack = 2.0 * trial.std_error
        return self.bounds.lower - slack <= trial.log_z <= self.bounds.upper + slack

    def _outcome(self, log_z: float, std_error: float, why: str, verdicts: dict[str, str], converged: bool) -> Outcome:
        assert self.bounds is not None
        agreement = "disagrees" not in verdicts.values()
        words = f"interrupted: {why}" if self.is_interrupted else why
        lower, upper = self.bounds.lower, self.bounds.upper
        return Outcome(
            # Rounding and errors within their bars may leave the bracket a little.
            log_z=min(max(log_z, lower), upper),
            kind=Kind.ESTIMATE,
            status=Status(words, converged=converged),
            lower=lower,
            upper=upper,
            std_error=std_error,
            details={
                "tried": [*self._trials_in_words(verdicts), *self._bounds_in_words()],
                "why": why,
                "agreement": agreement,
                "budget": self.budget,
                "interrupted": self.is_interrupted,
            },
        )

    def _trials_in_words(self, verdicts: dict[str, str]) -> list[dict[str, Any]]:
        rows = [
            {
                "method": trial.method,
                "log_z": trial.log_z,
                "std_error": trial.outcome.std_error,
                "lower": trial.outcome.lower,
                "upper": trial.outcome.upper,
                "seconds": trial.seconds,
                "verdict": verdicts.get(trial.method, "not trusted"),
                "why": str(trial.outcome.status) if self._is_possible(trial) else "outside the proven bounds",
            }
            for trial in self.trials.values()
        ]
        nothing = dict.fromkeys(("log_z", "std_error", "lower", "upper"))
        rows += [
            {"method": name, **nothing, "seconds": 0.0, "verdict": "not run", "why": why}
            for name, why in self.failures.items()
        ]
        return rows

    def _bounds_in_words(self) -> list[dict[str, Any]]:
        assert self.bounds is not None
        return [
            {
                "method": row.method,
                "log_z": None,
                "std_error": None,
                "lower": row.lower,
                "upper": row.upper,
                "seconds": row.seconds,
                "verdict": "not run" if row.lower is None and row.upper is None else "bound",
                "why": row.status,
            }
            for row in self.bounds.rows
        ]


@cache
def load_methods() -> None:
    """Run every method once on small models: compiling, or loading what is compiled, is not the budget's business."""
    load_bounders()
    for model in small_models():
        report("loading ep", 0.0)
        ExpectationPropagation()._solve_marginals(model)
        report("loading annealing", 0.0)
        States(population=20, quenches=20)._solve(model)


def _ep_seconds(model: Ising) -> float:
    """Predict the longest time of expectation propagation, which takes many steps where couplings are strong."""
    is_weak = mean_strength(couplings_of(model).data, model.n) < 1.0
    return float((WEAK_EP_SECONDS if is_weak else STRONG_EP_SECONDS) * (model.n / 100.0) ** 3)


def _agree(a: Trial, b: Trial) -> bool:
    return abs(a.log_z - b.log_z) <= AGREEMENT * math.hypot(a.std_error, b.std_error)


def _named(trials: list[Trial]) -> str:
    return " and ".join(f"{trial.method} ({trial.log_z:.6f} ± {trial.std_error:.2g})" for trial in trials)

"""Several estimates of one log Z within a budget of time, compared with each other and with proven bounds.

Expectation propagation is good for weak couplings, sums over states for strong ones, and annealing in between and as a
check of both. This schedule spends the budget on them; ``verdict.py`` draws the conclusion.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import device_for
from spectralz._support.options import bytes_in_words
from spectralz._support.progress import report
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import SpectralzError, is_interrupt
from spectralz.methods.annealing import outcome_of_runs
from spectralz.methods.base import estimated
from spectralz.methods.belief_propagation import BYTES_PER_MESSAGE, BeliefPropagation, operations_of_bp
from spectralz.methods.expectation_propagation import MANY_SPINS, ExpectationPropagation, step_operations
from spectralz.methods.mean_field import MeanField
from spectralz.methods.states import pool_outcome
from spectralz.parts.leading import leading_directions
from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.portfolio import policy
from spectralz.portfolio.bounders import BOUNDERS, NAMES
from spectralz.portfolio.bracket import better_of, bracket
from spectralz.portfolio.rounds import Round, plan_round
from spectralz.portfolio.verdict import Answer, Conclusion, conclude
from spectralz.result import Bounds, Kind, Status, Trial, Verdict
from spectralz.sampling.engines.dense import dense_operations
from spectralz.sampling.moves.clusters import CLUSTERED_TOGETHER, move_operations
from spectralz.sampling.path import from_coins, from_subgraph, path_to
from spectralz.sampling.phases import heaviest_of, missed_state, seed_states
from spectralz.sampling.plan import (
    LEAST_POINTS,
    Survey,
    bytes_per_state,
    seconds_per_point,
    seconds_per_sweep,
    survey,
)
from spectralz.sampling.plan import SWEEPS as SURVEY_SWEEPS
from spectralz.sampling.pool import MOST_STATES, Share, collect, pool_marginals, state_pool
from spectralz.sampling.populations import marginals_of
from spectralz.sampling.quench import SWEEPS_OF_A_QUENCH
from spectralz.sampling.run import RESAMPLE_BELOW, anneal, prolonged
from spectralz.sampling.spread import Workers, anneal_many, crew_for, there_and_back_many
from spectralz.sampling.subgraph import width_of
from spectralz.trust.judgment import with_rounding
from spectralz.trust.missed import add_missed
from spectralz.trust.round_trips import inconsistency_of, judge_round_trip
from spectralz.trust.runs import centered, judge_runs, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Ising
    from spectralz.parts.loops import Loops
    from spectralz.sampling.path import Path
    from spectralz.sampling.phases import MissedState
    from spectralz.sampling.populations import Run
    from spectralz.sampling.run import RoundTrip
    from spectralz.sampling.spread import Crew

__all__ = ["METHODS_TRIED", "Portfolio", "tried_in_details"]

# Names that may be excluded; bounders have their own names.
METHODS_TRIED = tuple(dict.fromkeys(["exact", "quadrature", "ep", "bp", "mps", "annealing", "states", *BOUNDERS]))


class Portfolio:
    """Run the methods on one model; :meth:`run` does everything, and an interrupt keeps the results so far.

    Parameters
    ----------
    model
        The model, with at least one spin.
    budget
        Seconds to spend.
    tol
        Standard error at which to stop early.
    exclude
        Names of methods to leave out.
    seed
        Seed of all random choices.
    max_memory
        Most memory for populations, in bytes.
    started
        When the budget started, by the clock of budgets; by default when :meth:`run` is called.
    """

    def __init__(
        self,
        model: Ising,
        *,
        budget: float,
        tol: float,
        exclude: tuple[str, ...],
        seed: int,
        max_memory: int,
        started: float | None = None,
    ) -> None:
        self.model = model
        self.budget = budget
        self.tol = tol
        self.exclude = exclude
        self.max_memory = max_memory
        self.bounds: Bounds | None = None
        self.answers: dict[str, Answer] = {}
        self.not_run: dict[str, str] = {}
        self.is_interrupted = False
        self._missed: MissedState | None = None
        self._seeds: NDArray[np.int8] | None = None
        self._workers = Workers()
        self._marginals: dict[str, Callable[[], MarginalOutcome]] = {}
        self._seconds_per_sweep = 0.0
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._started = started

    @property
    def _left(self) -> float:
        return self.budget if self._started is None else self.budget - (clock.now() - self._started)

    def run(self) -> None:
        """Run what fits into the budget."""
        self._started = clock.now() if self._started is None else self._started
        with using_threads(None, self.model.n):
            self._run()

    def _run(self) -> None:
        try:
            # The sum over states comes later, from the same populations as the rest.
            left_out = {*self.exclude, "states"} & set(NAMES)
            seconds = max(policy.BOUNDS_SHARE * self.budget, min(policy.SECONDS_FOR_BOUNDS, 0.5 * self.budget))
            self.bounds = bracket(self.model, seconds, left_out, tells_of_exact=False)
            self.is_interrupted = self.bounds.interrupted
            if not self.is_interrupted:
                self._compress()
                self._propagate()
                self._believe()
                self._anneal()
                self._bound_again(left_out)
        except (KeyboardInterrupt, SystemError) as error:
            if self.bounds is None or not is_interrupt(error):
                raise
            self.is_interrupted = True

    # ------------------------------------------------------------------------------------------- the methods

    def _bound_again(self, left_out: set[str]) -> None:
        """Spend the rest on bounds if no method gave an answer, since bounds are then the only result."""
        assert self.bounds is not None
        if self.answers or self._left <= policy.LEAST_LEFT * self.budget:
            return
        more = bracket(self.model, policy.NEXT_ROUND_SHARE * self._left, left_out, tells_of_exact=False)
        rows = {row.method: row for row in self.bounds.rows}
        for row in more.rows:
            rows[row.method] = better_of(rows[row.method], row)
        self.bounds = Bounds.best_of(
            tuple(rows.values()), self.bounds.seconds + more.seconds, interrupted=more.interrupted
        )
        self.is_interrupted = more.interrupted

    def _propagate(self) -> None:
        if "ep" in self.exclude:
            return
        if self._is_compressed:
            self.not_run["ep"] = "not needed: mps has answered, and has samples of its own"
            return
        is_weak = self.model.storage.for_kernels().mean_strength < 1.0
        share = (policy.EP_SHARE if is_weak else policy.STRONG_EP_SHARE) * self._left
        needed = policy.FEWEST_EP_STEPS * step_operations(self.model.n) / clock.OPERATIONS_PER_SECOND
        if needed <= policy.HOPELESS_EP_TIMES * share:  # otherwise not even worth timing
            needed = policy.FEWEST_EP_STEPS * _seconds_of_ep_step(self.model.n)
        if needed > share:
            words = clock.in_words(needed), clock.in_words(max(share, 0.0))
            self.not_run["ep"] = f"a few steps would take about {words[0]}, and its share has {words[1]} left"
            return
        began = clock.seconds()
        try:
            with clock.until(clock.now() + share):
                found = ExpectationPropagation()._solve_marginals(self.model)
        except SpectralzError as error:
            self.not_run["ep"] = str(error)
            return
        self._keep("ep", found.outcome, clock.seconds() - began, lambda: found)

    def _believe(self) -> None:
        """Run belief propagation if ep has no trusted answer; it is never trusted alone, but gives an error scale."""
        ep = self.answers.get("ep")
        if (
            "bp" in self.exclude
            or self._is_compressed
            or (ep is not None and (ep.outcome.is_trusted or self.model.n < policy.FEWEST_BP_SPINS))
        ):
            return
        if self.model.n < policy.FEWEST_BP_SPINS and "ep" not in self.not_run:
            return
        edges = self.model.edge_count
        share = policy.BP_SHARE * max(self._left, 0.0)
        needed = operations_of_bp(self.model.n, edges, policy.FEWEST_BP_ITERATIONS) / clock.OPERATIONS_PER_SECOND
        if needed > share:
            words = clock.in_words(needed), clock.in_words(share)
            self.not_run["bp"] = f"a few iterations would take about {words[0]}, and its share has {words[1]} left"
            return
        if 2 * edges * BYTES_PER_MESSAGE > self.max_memory:
            needs = bytes_in_words(2 * edges * BYTES_PER_MESSAGE)
            self.not_run["bp"] = f"its messages need {needs}; max_memory is {bytes_in_words(self.max_memory)}"
            return
        began = clock.seconds()
        method = BeliefPropagation(max_iter=policy.MOST_BP_ITERATIONS, damping=policy.BP_DAMPING, tol=policy.BP_TOL)
        with clock.until(clock.now() + share):
            found, loops = method.solve_with_loops(self.model)
        if found.outcome.kind is Kind.EXACT and "exact" in self.exclude:
            loops = "left out: it is exact here, and exact was excluded"
        if isinstance(loops, str):
            self.not_run["bp"] = loops
            return
        outcome = _with_scale_of(loops, found.outcome)
        self._keep("bp", outcome, clock.seconds() - began, lambda: replace(found, outcome=outcome))

    def _compress(self) -> None:
        """Eliminate with compressed tables, if the frontier is small."""
        if "mps" in self.exclude:
            return
        from spectralz.portfolio.compressing import compress

        began = clock.seconds()
        seconds = policy.MPS_SHARE * max(self._left, 0.0)
        found = compress(self.model, seconds=seconds, tol=self.tol, seed=self._seed, max_memory=self.max_memory)
        if isinstance(found, str):
            self.not_run["mps"] = found
            return
        self._keep("mps", found.outcome, clock.seconds() - began, found.marginals)
        self._narrow("mps", found.outcome.lower, found.outcome.upper)

    @property
    def _is_compressed(self) -> bool:
        """Whether compressed elimination has given an answer as accurate as wanted."""
        answer = self.answers.get("mps")
        return answer is not None and answer.outcome.is_trusted and answer.error <= self.tol

    def _narrow(self, method: str, lower: float | None, upper: float | None = None) -> None:
        """Combine bounds proven by a method with the others."""
        assert self.bounds is not None
        if lower is not None and lower > self.bounds.lower:
            self.bounds = replace(self.bounds, lower=lower, lower_method=method)
        if upper is not None and upper < self.bounds.upper:
            self.bounds = replace(self.bounds, upper=upper, upper_method=method)

    def _anneal(self) -> None:
        """Anneal in rounds: a short one, then as many points and states as the error needs and the budget allows."""
        if {"annealing", "states"} <= set(self.exclude):
            return
        is_large = self.model.n > policy.LARGE_DENSE and self.model.storage.for_kernels().is_dense
        if is_large and device_for(self.model.n) is None:
            # Even copying the coupling and timing a sweep would take as long as everything else.
            needed = (
                policy.STATES_TOGETHER * LEAST_POINTS * dense_operations(self.model.n) / clock.OPERATIONS_PER_SECOND
            )
            if needed > policy.HOPELESS_TIMES * self._left_for_annealing:
                self._refuse_annealing(needed)
                return
        left = self._left_for_annealing
        path = path_to(self.model, clusters=None if self._has_time_for_clusters(left) else False)
        with crew_for(path) as crew:
            self._workers = crew.workers
            end = clock.now() + left
            one = seconds_per_sweep(path, parallel=crew.parallel)
            self._seconds_per_sweep = crew.seconds_of_many(path, one)
            whole = self._plan(path, policy.NEXT_ROUND_SHARE * left, math.inf)
            if whole is None:
                needed = path.engine.together * LEAST_POINTS * one
                self._refuse_annealing(needed / policy.NEXT_ROUND_SHARE)
                return
            path, spacing = self._begin(crew, path, one, left)
            length = float(spacing.length[-1])
            first = self._plan(path, policy.FIRST_ROUND_SHARE * left, length**2)
            is_hopeless = length**2 / whole.points > self._hopeless_spread(path)
            if first is None or is_hopeless:
                self._go_both_ways(crew, path, spacing, whole, one, end)
                return
            # Without resampling log-weights add up along the whole path; their variance is what later rounds plan by.
            runs = self._round(crew, path, spacing, first, [], one, resample_below=0.0)
            while runs and self._wanted_growth() > 1.0 and end - clock.now() > policy.LEAST_LEFT * left:
                seconds = policy.NEXT_ROUND_SHARE * (end - clock.now())
                last = runs[-1]
                spacing = Survey.of_variance(last.points, last.spread) if last.spread[-1] > 0.0 else spacing
                plan = self._plan(path, seconds, last.dissipation)
                if plan is None:
                    return
                spread = last.spread[-1] * (len(last.points) / plan.points) ** policy.SPREAD_POWER
                is_stuck = len(runs) > plan.runs and not self._trusts_annealing
                if not self._has_pool and (spread > self._hopeless_spread(path) or is_stuck):
                    self._go_both_ways(crew, path, spacing, plan, one, end)
                    return
                wanted = sum(run.effort for run in runs) * self._wanted_growth()
                if wanted < plan.updates:
                    plan = self._plan_of(path, wanted, last.dissipation, runs) or plan
                runs = self._round(crew, path, spacing, plan, runs, one)

    def _has_time_for_clusters(self, left: float) -> bool:
        """Say whether clusters could be turned at enough points; otherwise more points without them do better."""
        entries = 2 * self.model.edge_count
        one = policy.FEWEST_RUNS * CLUSTERED_TOGETHER * move_operations(self.model.n, entries)
        return policy.NEXT_ROUND_SHARE * left * clock.OPERATIONS_PER_SECOND >= policy.FEWEST_CLUSTER_POINTS * one

    def _hopeless_spread(self, path: Path) -> float:
        if path.engine.together < policy.STATES_TOGETHER:  # each takes long, and so there are few of them
            return policy.HOPELESS_SPREAD_OF_FEW
        most = min(policy.HOPELESS_SPREAD_SPINS / self.model.n, policy.MOST_HOPELESS_SPREAD)
        return max(most, policy.LEAST_HOPELESS_SPREAD)

    @property
    def _left_for_annealing(self) -> float:
        """Return the time left; if others took too long, a part of the budget is spent again to get an answer."""
        if self._is_compressed:
            return policy.CHECK_SHARE * max(self._left, 0.0)
        return max(self._left, policy.LEAST_FOR_ANNEALING * self.budget)

    def _refuse_annealing(self, needed: float) -> None:
        words = clock.in_words(needed), clock.in_words(self._left_for_annealing)
        why = f"the fewest useful states would take about {words[0]}, {words[1]} are left"
        self.not_run.update({name: why for name in ("annealing", "states") if name not in self.exclude})

    def _plan(self, path: Path, seconds: float, dissipation: float) -> Round | None:
        """Divide the time that a round may take."""
        return self._plan_of(path, seconds / max(self._seconds_per_sweep, policy.TICK), dissipation, [])

    def _plan_of(self, path: Path, sweeps: float, dissipation: float, runs: Sequence[Run]) -> Round | None:
        """Divide so many sweeps, beside runs that are kept."""
        room = self.max_memory / bytes_per_state(path) - sum(run.size for run in runs)
        return plan_round(sweeps, dissipation, room, self._worker_count, self.model.n, path.engine.together)

    def _begin(self, crew: Crew, path: Path, one: float, left: float) -> tuple[Path, Survey]:
        """Choose the base of the path, and survey it; ``one`` is the time of a sweep.

        The path from a subgraph is shorter. But it is as cold as the model all along, and states may freeze on it. So
        it is tried, and taken if log-weights vary less than on the other path, and vary less with more points.
        """
        if not path.can_begin_from_subgraph:
            return path, self._survey(crew, path, one, left)
        point = seconds_per_point(path, policy.STATES_TOGETHER, parallel=crew.parallel)
        points = policy.TRIAL_SHARE * left / max(point, policy.TICK)
        can_be_tried = points >= policy.TRIAL_TIMES * LEAST_POINTS
        if not can_be_tried and path.couplings.mean_strength > policy.WARM:
            return path, self._survey(crew, path, one, left)
        shorter = from_subgraph(path, width_of(self.model.n))
        spacing = self._survey(crew, shorter, one, left)
        if not can_be_tried:
            return shorter, spacing
        many = min(points, policy.MOST_POINTS_OF_TRIAL)
        spread = self._spread_of_trial(crew, shorter, spacing, many)
        is_frozen = (
            spread > policy.HARMLESS_SPREAD
            and self._spread_of_trial(crew, shorter, spacing, many / policy.TRIAL_TIMES) < policy.LEAST_FALL * spread
        )
        other = self._survey(crew, path, one, left)
        if is_frozen or policy.TRIAL_MARGIN * spread > self._spread_of_trial(crew, path, other, many):
            return path, other
        return shorter, spacing

    def _spread_of_trial(self, crew: Crew, path: Path, spacing: Survey, points: float) -> float:
        """Return the variance of the log-weights of a few states at the end of a path."""
        at = spacing.spaced(points)
        run = anneal(path, at, policy.STATES_TOGETHER, self._rng, resample_below=0.0, parallel=crew.parallel)
        return float(run.spread[-1])

    def _survey(self, crew: Crew, path: Path, one: float, left: float) -> Survey:
        """Measure the length of the path; without time for it, assume that it is straight."""
        states = path.engine.together  # as many take as long
        needed = states * SURVEY_SWEEPS * (LEAST_POINTS + 1) * one
        if needed > policy.SURVEY_SHARE * left:
            return Survey(np.array([0.0, 1.0]), np.array([0.0, math.sqrt(self.model.n)]))
        began = clock.now()
        with clock.until(began + policy.SURVEY_TIMES * needed):
            measured = survey(path, self._rng, crew.parallel)
        # On shared cores this tells more than a few sweeps did.
        seen = (clock.now() - began) / (states * SURVEY_SWEEPS * len(measured.points))
        self._seconds_per_sweep = crew.seconds_of_many(path, max(seen, one))
        return measured

    def _round(
        self,
        crew: Crew,
        path: Path,
        spacing: Survey,
        plan: Round,
        earlier: list[Run],
        one: float,
        resample_below: float = RESAMPLE_BELOW,
    ) -> list[Run]:
        """Make the runs of a round, and judge by all runs so far."""
        began, started = clock.seconds(), clock.now()
        points = spacing.spaced(plan.points)
        runs: list[Run] = []
        making = anneal_many(
            crew, path, points, plan.size, plan.runs, self._rng, resample_below=resample_below, tell=self._tell
        )
        try:
            for run in making:
                runs.append(run)
        finally:  # the runs that were done before an interrupt count too
            if earlier or runs:
                self._judge_annealing([*earlier, *runs], clock.seconds() - began)
        self._seconds_per_sweep = (clock.now() - started) / (len(points) * plan.size * plan.runs)
        self._find_missed(crew, path, [*earlier, *runs])
        if self._missed is not None:
            self._judge_annealing([*earlier, *runs], 0.0)
        self._collect(crew, path, earlier, runs, one)
        return [*earlier, *runs]

    def _go_both_ways(self, crew: Crew, path: Path, spacing: Survey, plan: Round, one: float, end: float) -> None:
        """Go to the model and back until ``end``, if the weights on the way there alone are not informative."""
        if "annealing" in self.exclude:
            return
        began = clock.seconds()
        seeds = self._seed_states(crew, path)
        ordered = heaviest_of(self.model, seeds) if len(seeds) else None
        runs, size, seconds = 1, plan.size * plan.runs, 0.0
        if self._worker_count > 1:  # each makes its runs one after the other, in one thread
            runs, size = plan.runs, plan.size
            seconds = one * size * math.ceil(runs / self._worker_count)
        seconds = max(seconds or seconds_per_point(path, size, parallel=crew.parallel), policy.TICK)
        affordable = policy.NEXT_ROUND_SHARE * (end - clock.now()) / (seconds * policy.BOTH_WAYS_TIMES)
        count = int(max(min(affordable, policy.MOST_POINTS), policy.FEWEST_POINTS_BOTH_WAYS))
        points = spacing.spaced(count, policy.FEWEST_POINTS_BOTH_WAYS)
        trip = there_and_back_many(crew, path, points, size, runs, self._rng, ordered=ordered, tell=self._tell)
        states = [trip.as_run()]
        if self._missed is None:
            self._find_missed(crew, path, states)
        outcome = self._outcome_of_trip(trip, len(points))
        before = self.answers.get("annealing")
        if before is not None and before.log_z - policy.UNLIKELY_NATS > outcome.log_z:
            return  # an unbiased estimate is rarely that much too large, so both ways are too small
        error = judge_round_trip(trip).std_error
        if before is not None and self._has_weights and not (outcome.is_trusted and error < before.error):
            return
        self._keep("annealing", outcome, clock.seconds() - began, lambda: self._marginals_of(states, outcome))

    def _outcome_of_trip(self, trip: RoundTrip, points: int) -> Outcome:
        inconsistency = inconsistency_of(trip)
        judged = add_missed(judge_round_trip(trip, self.model.constant), self._missed)
        words = (
            f"{len(trip.there)} states to the model and back through {points} points; the two estimates differ by "
            f"{trip.gap:.3g}, which their variances miss by {inconsistency:.2g}"
        )
        details = {"gap": trip.gap, "scatter": trip.scatter, "inconsistency": inconsistency}
        return estimated(judged, words, details=details)

    def _find_missed(self, crew: Crew, path: Path, runs: list[Run]) -> None:
        """Search for a collective state that the populations have not visited."""
        with clock.until(clock.now() + policy.MISSED_SHARE * max(self._left, 0.0)):
            seeds = self._seed_states(crew, path)
            self._missed = missed_state(path, runs, self._rng, seeds, crew.parallel)

    @cached_property
    def _worker_count(self) -> int:
        """Number of runs made at once; if operations are counted, the plan must not depend on it."""
        return 1 if clock.counts_operations() else self._workers.count

    @property
    def _has_weights(self) -> bool:
        """Whether the runs so far have enough families left for the weights of the states to be informative."""
        if "annealing" not in self.answers:
            return False
        return bool(self.answers["annealing"].outcome.details["families"] >= policy.FEWEST_FAMILIES_LEFT)

    @property
    def _has_pool(self) -> bool:
        """Whether there are states that hold a share of Z."""
        return "states" in self.answers and self.answers["states"].outcome.is_trusted

    @property
    def _trusts_annealing(self) -> bool:
        """Whether annealing trusts itself, or has no part in this."""
        answer = self.answers.get("annealing")
        return answer is None or answer.outcome.is_trusted

    def _seed_states(self, crew: Crew, path: Path) -> NDArray[np.int8]:
        """States along the leading eigenvectors of the coupling."""
        if self._seeds is None:
            self._seeds = seed_states(path, leading_directions(self.model.storage), crew.parallel)
        return self._seeds

    def _tell(self, _: float) -> None:
        report("annealing", min(1.0 - self._left / self.budget, 1.0))

    def _judge_annealing(self, runs: list[Run], seconds: float) -> None:
        if "annealing" in self.exclude:
            return
        summary = summary_of(runs)
        judged = add_missed(judge_runs(centered(summary), self.model.constant), self._missed)
        words = (
            f"{len(runs)} runs with {sum(run.size for run in runs)} states in all through up to "
            f"{len(runs[-1].points)} temperatures; {summary.families:.0f} independent families"
        )
        outcome = outcome_of_runs(self.model, runs, summary, judged, words)
        self._keep("annealing", outcome, seconds, lambda: self._marginals_of(runs, outcome))

    def _marginals_of(self, runs: list[Run], outcome: Outcome) -> MarginalOutcome:
        """Return marginals from states that continue at the model: few are enough for log Z, but not for means."""
        states = sum(run.size for run in runs)
        affordable = policy.SPINS_FOR_MARGINALS / (states * max(self.model.n, 1))
        sweeps = int(min(policy.STATES_FOR_MARGINALS / states, affordable))
        if sweeps > 1:
            path = from_coins(self.model, block_width=0)
            with crew_for(path) as crew:
                runs = [prolonged(path, run, sweeps, self._rng, crew.parallel) for run in runs]
        return marginals_of(self.model, runs, outcome)

    def _collect(self, crew: Crew, path: Path, earlier: list[Run], runs: list[Run], one: float) -> None:
        """Sum over the states of one part of the runs, and measure their share with the other part."""
        if "states" in self.exclude or not runs or (not earlier and len(runs) < 2):
            return
        if self.model.n > policy.MOST_SPINS_TO_COLLECT and not any(_has_repeats(run.x) for run in runs):
            if "states" not in self.answers:
                self.not_run["states"] = "no two of the states drawn are the same: none holds a useful share of Z"
            return
        began = clock.seconds()
        half = len(runs) // 2
        finding, testing = (earlier, runs) if earlier else (runs[:half], runs[half:])
        pool = state_pool(self.model, MOST_STATES, self.max_memory // 4)
        affordable = policy.QUENCHES_SHARE * max(self._left, 0.0) / (SWEEPS_OF_A_QUENCH * one)
        quenches = int(min(policy.QUENCHES, affordable))
        *_, share = collect(pool, path, finding, testing, quenches, self._rng, self._seconds_to_search, crew.parallel)
        outcome = pool_outcome(pool, share)
        self._keep("states", outcome, clock.seconds() - began, lambda: pool_marginals(pool, outcome))
        self._narrow("states", pool.lower)

    def _seconds_to_search(self, share: Share) -> float:
        return policy.SEARCH_SHARE * self._left if share.share > 0.0 and self._wanted_growth() > 1.0 else 0.0

    def _keep(self, name: str, outcome: Outcome, seconds: float, marginals: Callable[[], MarginalOutcome]) -> None:
        """Replace the earlier answer of a method by a new one, and add up their times."""
        spent = self.answers[name].seconds if name in self.answers else 0.0
        self.answers[name] = Answer(name, outcome, spent + seconds)
        self._marginals[name] = marginals

    def _wanted_growth(self) -> float:
        """Return by which factor the states must grow to reach the wanted error."""
        trusted = [answer.error for answer in self.answers.values() if answer.outcome.is_trusted]
        return min(min(trusted) / self.tol, policy.MOST_GROWTH) ** 2 if trusted else math.inf

    # ------------------------------------------------------------------------------------------ the conclusion

    def conclude(self) -> Outcome:
        """Return the verdict on what was found, as the outcome of all methods together."""
        return self._outcome(self._verdict())

    def conclude_marginals(self) -> MarginalOutcome:
        """Return the marginals of the method chosen, with the answer of all."""
        verdict = self._verdict()
        outcome = self._outcome(verdict)
        if verdict.chosen is None:
            # Only mean field gives any information on the spins.
            return replace(MeanField(restarts=policy.RESTARTS)._solve_marginals(self.model), outcome=outcome)
        chosen = verdict.chosen
        if chosen == "states" and "annealing" in self.answers and self.answers["annealing"].outcome.is_trusted:
            # A pool that holds 80% of P(x) can give log Z, since the share is measured, but not the means.
            share = self.answers["states"].outcome.details["share"]
            chosen = "annealing" if share < policy.SHARE_FOR_MARGINALS else chosen
        return replace(self._marginals[chosen](), kind=Kind.ESTIMATE, outcome=outcome)

    def _verdict(self) -> Conclusion:
        assert self.bounds is not None
        return conclude(list(self.answers.values()), self.bounds, self.not_run)

    def _outcome(self, verdict: Conclusion) -> Outcome:
        assert self.bounds is not None
        return Outcome(
            log_z=verdict.log_z,
            kind=Kind.ESTIMATE,
            status=Status(
                ("interrupted: " if self.is_interrupted else "") + verdict.why + self._workers.complaint,
                converged=verdict.trusted and not self.is_interrupted,
            ),
            lower=self.bounds.lower,
            upper=self.bounds.upper,
            std_error=verdict.std_error,
            trusted=verdict.trusted,
            interrupted=self.is_interrupted,
            tried=verdict.tried,
            details={**tried_in_details(verdict.tried, self.is_interrupted), "why": verdict.why, "budget": self.budget},
        )


def _has_repeats(x: NDArray[np.int8]) -> bool:
    """Return whether a state occurs twice."""
    return len({row.tobytes() for row in x}) < len(x)


def _with_scale_of(loops: Loops, outcome: Outcome) -> Outcome:
    """Return Bethe's log Z with the scale of the loops that it leaves out; not trusted alone."""
    words = (
        f"{outcome.status}; the loops left out are about {loops.signed:+.2g}, {math.sqrt(loops.variance):.2g} if random"
    )
    return replace(
        outcome,
        kind=Kind.ESTIMATE,
        lower=None,
        upper=None,
        std_error=with_rounding(math.hypot(loops.scale, policy.LEAST_BP_ERROR), outcome.log_z),
        trusted=False,
        status=Status(words, converged=outcome.status.converged),
        details={**outcome.details, "loops": loops.signed, "loops_variance": loops.variance},
    )


def _seconds_of_ep_step(n: int) -> float:
    """Predict the time of one step of expectation propagation from a measured step with fewer spins."""
    from spectralz.kernels.expectation_consistency import inverse_in_place, point_at

    has_many = n > MANY_SPINS
    few = min(n, policy.TIMED_EP_SPINS_OF_MANY if has_many else policy.TIMED_EP_SPINS)
    zero, coupling = np.zeros(few), np.full((few, few), 0.1 / max(few, 1))
    times = []
    with using_threads(None, NO_MATRICES):  # small matrices are slower with several threads
        for _ in range(4 if has_many else 2):  # the first one may have to load libraries
            began = clock.now()
            if has_many:  # a step has one factorization
                inverse_in_place(np.eye(few) + coupling)
            else:
                point_at(zero, coupling, zero)
            clock.charge(step_operations(few))
            times.append(clock.now() - began)
    return min(times) * step_operations(n) / step_operations(few)


def tried_in_details(tried: Sequence[Trial], is_interrupted: bool) -> dict[str, Any]:
    """Return a copy of the trials for ``details``, where they were before results had their own field for them."""
    return {
        "tried": [trial.to_dict() for trial in tried],
        "agreement": all(trial.verdict is not Verdict.DISAGREES for trial in tried),
        "interrupted": is_interrupted,
    }

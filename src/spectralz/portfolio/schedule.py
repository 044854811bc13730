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
from spectralz.methods.belief_propagation import BYTES_PER_MESSAGE, BeliefPropagation, operations_of_bp
from spectralz.methods.expectation_propagation import MANY_SPINS, ExpectationPropagation, step_operations
from spectralz.methods.mean_field import MeanField
from spectralz.parts.annealer import Annealer
from spectralz.parts.both_ways import both_ways_in_runs
from spectralz.parts.clusters import CLUSTERED_TOGETHER, move_operations
from spectralz.parts.collective import Elsewhere, along, heaviest_of, look_elsewhere
from spectralz.parts.lanes import dense_operations
from spectralz.parts.leading import leading_directions
from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.parts.populations import Annealed, Mean, combine, marginals_of, outcome_of_runs, with_rounding
from spectralz.parts.state_pool import MOST_STATES, Share, StatePool, collect, pool_marginals, pool_outcome
from spectralz.parts.subgraph import Subgraph, width_of
from spectralz.parts.survey import LEAST_POINTS, Survey
from spectralz.parts.survey import SWEEPS as SURVEY_SWEEPS
from spectralz.parts.workers import Workers
from spectralz.portfolio import policy
from spectralz.portfolio.bounders import BOUNDERS, NAMES
from spectralz.portfolio.bracket import better_of, bracket
from spectralz.portfolio.rounds import Round, plan_round
from spectralz.portfolio.verdict import Answer, Conclusion, conclude
from spectralz.result import Bounds, Kind, Status, Trial, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import Ising
    from spectralz.parts.loops import Loops

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
        self._elsewhere: Elsewhere | None = None
        self._along: NDArray[np.int8] | None = None
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
        with Annealer(self.model, clusters=None if self._has_time_for_clusters(left) else False) as annealer:
            self._workers = annealer.workers
            end = clock.now() + left
            whole = self._plan(annealer, policy.NEXT_ROUND_SHARE * left, math.inf)
            if whole is None:
                needed = annealer.engine.together * LEAST_POINTS * annealer.seconds_per_sweep
                self._refuse_annealing(needed / policy.NEXT_ROUND_SHARE)
                return
            path = self._begin(annealer, left)
            length = float(path.length[-1])
            first = self._plan(annealer, policy.FIRST_ROUND_SHARE * left, length**2)
            is_hopeless = length**2 / whole.points > self._hopeless_spread(annealer)
            if first is None or is_hopeless:
                self._go_both_ways(annealer, path, whole, end)
                return
            with annealer.without_resampling():
                found = self._round(annealer, path, first, [])
            while found and self._wanted_growth() > 1.0 and end - clock.now() > policy.LEAST_LEFT * left:
                seconds = policy.NEXT_ROUND_SHARE * (end - clock.now())
                last = found[-1]
                path = Survey.of_variance(last.points, last.spread) if last.spread[-1] > 0.0 else path
                plan = self._plan(annealer, seconds, last.dissipation)
                if plan is None:
                    return
                spread = last.spread[-1] * (len(last.points) / plan.points) ** policy.SPREAD_POWER
                is_stuck = len(found) > plan.runs and not self._trusts_annealing
                if not self._has_pool and (spread > self._hopeless_spread(annealer) or is_stuck):
                    self._go_both_ways(annealer, path, plan, end)
                    return
                wanted = sum(run.effort for run in found) * self._wanted_growth()
                if wanted < plan.updates:
                    plan = self._plan_of(annealer, wanted, last.dissipation, found) or plan
                found = self._round(annealer, path, plan, found)

    def _has_time_for_clusters(self, left: float) -> bool:
        """Say whether clusters could be turned at enough points; otherwise more points without them do better."""
        entries = 2 * self.model.edge_count
        one = policy.FEWEST_RUNS * CLUSTERED_TOGETHER * move_operations(self.model.n, entries)
        return policy.NEXT_ROUND_SHARE * left * clock.OPERATIONS_PER_SECOND >= policy.FEWEST_CLUSTER_POINTS * one

    def _hopeless_spread(self, annealer: Annealer) -> float:
        if annealer.engine.together < policy.STATES_TOGETHER:  # each takes long, and so there are few of them
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

    def _plan(self, annealer: Annealer, seconds: float, dissipation: float) -> Round | None:
        """Divide the time that a round may take."""
        one = self._seconds_per_sweep or annealer.seconds_of_many(annealer.seconds_per_sweep)
        return self._plan_of(annealer, seconds / max(one, policy.TICK), dissipation, [])

    def _plan_of(
        self, annealer: Annealer, sweeps: float, dissipation: float, found: Sequence[Annealed]
    ) -> Round | None:
        """Divide so many sweeps, beside runs that are kept."""
        room = self.max_memory / annealer.bytes_per_state() - sum(run.size for run in found)
        together = annealer.engine.together
        return plan_round(sweeps, dissipation, room, self._worker_count, self.model.n, together)

    def _begin(self, annealer: Annealer, left: float) -> Survey:
        """Choose the base of the path, and survey it.

        The path from a subgraph is shorter. But it is as cold as the model all along, and states may freeze on it. So
        it is tried, and taken if log-weights vary less than on the other path, and vary less with more points.
        """
        if not annealer.can_begin_from_subgraph:
            return self._survey(annealer, left)
        points = policy.TRIAL_SHARE * left / max(annealer.seconds_per_point(policy.STATES_TOGETHER), policy.TICK)
        can_be_tried = points >= policy.TRIAL_TIMES * LEAST_POINTS
        if not can_be_tried and annealer.couplings.mean_strength > policy.WARM:
            return self._survey(annealer, left)
        subgraph = Subgraph.of(annealer.theta, annealer.couplings, width_of(self.model.n))
        annealer.begin_from(subgraph)
        path = self._survey(annealer, left)
        if not can_be_tried:
            return path
        many = min(points, policy.MOST_POINTS_OF_TRIAL)
        spread = self._spread_of_trial(annealer, path, many)
        is_frozen = (
            spread > policy.HARMLESS_SPREAD
            and self._spread_of_trial(annealer, path, many / policy.TRIAL_TIMES) < policy.LEAST_FALL * spread
        )
        annealer.begin_from(None)
        other = self._survey(annealer, left)
        if is_frozen or policy.TRIAL_MARGIN * spread > self._spread_of_trial(annealer, other, many):
            return other
        annealer.begin_from(subgraph)
        return path

    def _spread_of_trial(self, annealer: Annealer, path: Survey, points: float) -> float:
        """Return the variance of the log-weights of a few states at the end of a path."""
        with annealer.without_resampling():
            return float(annealer.anneal(path.spaced(points), policy.STATES_TOGETHER, self._rng).spread[-1])

    def _survey(self, annealer: Annealer, left: float) -> Survey:
        """Measure the length of the path; where there is no time for it, take it for straight."""
        states = annealer.engine.together  # as many take as long
        needed = states * SURVEY_SWEEPS * (LEAST_POINTS + 1) * annealer.seconds_per_sweep
        if needed > policy.SURVEY_SHARE * left:
            return Survey(np.array([0.0, 1.0]), np.array([0.0, math.sqrt(self.model.n)]))
        began = clock.now()
        with clock.until(began + policy.SURVEY_TIMES * needed):
            found = annealer.survey(self._rng)
        # Where cores are shared this tells more than a few sweeps did.
        one = (clock.now() - began) / (states * SURVEY_SWEEPS * len(found.points))
        self._seconds_per_sweep = annealer.seconds_of_many(max(one, annealer.seconds_per_sweep))
        return found

    def _round(self, annealer: Annealer, path: Survey, plan: Round, earlier: list[Annealed]) -> list[Annealed]:
        """Make the runs of a round, and judge by all runs so far."""
        began, started = clock.seconds(), clock.now()
        betas = path.spaced(plan.points)
        found: list[Annealed] = []
        try:
            for run in annealer.runs(betas, plan.size, plan.runs, self._rng, self._tell):
                found.append(run)
        finally:  # what an interrupt leaves counts too
            if earlier or found:
                self._judge_annealing([*earlier, *found], clock.seconds() - began)
        self._seconds_per_sweep = (clock.now() - started) / (len(betas) * plan.size * plan.runs)
        self._look_elsewhere(annealer, [*earlier, *found])
        self._collect(annealer, earlier, found)
        return [*earlier, *found]

    def _go_both_ways(self, annealer: Annealer, path: Survey, plan: Round, end: float) -> None:
        """Go to the model and back until ``end``, if the weights on the way there alone are not informative."""
        if "annealing" in self.exclude:
            return
        began = clock.seconds()
        seeds = self._seeds(annealer)
        ordered = heaviest_of(self.model, seeds) if len(seeds) else None
        runs, size, one = 1, plan.size * plan.runs, 0.0
        if self._worker_count > 1:  # each makes its runs one after the other, in one thread
            runs, size = plan.runs, plan.size
            one = annealer.seconds_per_sweep * size * math.ceil(runs / self._worker_count)
        one = max(one or annealer.seconds_per_point(size), policy.TICK)
        affordable = policy.NEXT_ROUND_SHARE * (end - clock.now()) / (one * policy.BOTH_WAYS_TIMES)
        points = int(max(min(affordable, policy.MOST_POINTS), policy.FEWEST_POINTS_BOTH_WAYS))
        betas = path.spaced(points, policy.FEWEST_POINTS_BOTH_WAYS)
        found = both_ways_in_runs(annealer, betas, size, runs, self._rng, ordered, self._tell)
        words = f"{len(found.there)} states to the model and back through {len(betas)} points"
        outcome = found.outcome(self.model, words)
        states = [found.as_annealed()]
        if self._elsewhere is None:
            self._seek(annealer, states)
        if self._elsewhere is not None:
            outcome = _doubted_for(outcome, self._elsewhere)
        before = self.answers.get("annealing")
        if before is not None and before.log_z - policy.UNLIKELY_NATS > outcome.log_z:
            return  # an unbiased estimate is rarely that much too large, so both ways are too small
        if before is not None and self._has_weights and not (outcome.is_trusted and found.std_error < before.error):
            return
        self._keep("annealing", outcome, clock.seconds() - began, lambda: self._marginals_of(states, outcome))

    def _look_elsewhere(self, annealer: Annealer, found: list[Annealed]) -> None:
        """Search for a collective state that the populations have not visited, and judge them again if there is one."""
        self._seek(annealer, found)
        if self._elsewhere is not None:
            self._judge_annealing(found, 0.0)

    def _seek(self, annealer: Annealer, found: list[Annealed]) -> None:
        with clock.until(clock.now() + policy.ELSEWHERE_SHARE * max(self._left, 0.0)):
            self._elsewhere = look_elsewhere(self.model, annealer, found, self._rng, self._seeds(annealer))

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

    def _seeds(self, annealer: Annealer) -> NDArray[np.int8]:
        """States along the leading eigenvectors of the coupling."""
        if self._along is None:
            self._along = along(annealer, leading_directions(self.model.storage))
        return self._along

    def _tell(self, _: float) -> None:
        report("annealing", min(1.0 - self._left / self.budget, 1.0))

    def _judge_annealing(self, found: list[Annealed], seconds: float) -> None:
        if "annealing" in self.exclude:
            return
        mean = combine(found)
        states = sum(run.size for run in found)
        temperatures = len(found[-1].points)
        words = (
            f"{len(found)} runs with {states} states in all through up to {temperatures} temperatures; "
            f"{mean.families:.0f} independent families"
        )
        outcome = outcome_of_runs(self.model, found, _centered(mean), temperatures, words + mean.complaint)
        if self._elsewhere is not None:
            outcome = _doubted_for(outcome, self._elsewhere)
        self._keep("annealing", outcome, seconds, lambda: self._marginals_of(found, outcome))

    def _marginals_of(self, found: list[Annealed], outcome: Outcome) -> MarginalOutcome:
        """Return marginals from states that continue at the model: few are enough for log Z, but not for means."""
        states = sum(run.size for run in found)
        affordable = policy.SPINS_FOR_MARGINALS / (states * max(self.model.n, 1))
        sweeps = int(min(policy.STATES_FOR_MARGINALS / states, affordable))
        if sweeps > 1:
            with Annealer(self.model, block_width=0) as annealer:
                found = [annealer.prolonged(run, sweeps, self._rng) for run in found]
        return marginals_of(self.model, found, outcome)

    def _collect(self, annealer: Annealer, earlier: list[Annealed], found: list[Annealed]) -> None:
        """Sum over the states of one part of the runs, and measure their share with the other part."""
        if "states" in self.exclude or not found or (not earlier and len(found) < 2):
            return
        if self.model.n > policy.MOST_SPINS_TO_COLLECT and not any(_has_repeats(run.x) for run in found):
            if "states" not in self.answers:
                self.not_run["states"] = "no two of the states drawn are the same: none holds a useful share of Z"
            return
        began = clock.seconds()
        half = len(found) // 2
        finding, testing = (earlier, found) if earlier else (found[:half], found[half:])
        pool = StatePool(self.model, MOST_STATES, self.max_memory // 4)
        affordable = policy.QUENCHES_SHARE * max(self._left, 0.0) / annealer.seconds_per_quench()
        quenches = int(min(policy.QUENCHES, affordable))
        *_, share = collect(pool, annealer, finding, testing, quenches, self._rng, self._seconds_to_search)
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


def _centered(mean: Mean) -> Mean:
    """Return the mean of runs out of equilibrium, as the middle of the estimates on the ways down and back.

    On long steps the heaviest state dominates a population, and the two estimates are lower and upper sums of the
    integral of the energy over the temperature. Half of their gap is then the error.
    """
    if mean.is_closed:
        return mean
    half = mean.gap / 2.0
    return replace(mean, log_z=mean.log_z + half, std_error=max(mean.std_error, abs(half)))


def _doubted_for(outcome: Outcome, elsewhere: Elsewhere) -> Outcome:
    """Return an outcome of samples that is not trusted if a state they have not visited holds a share of Z.

    The proven weight of that state is added to the answer, with half of what it may hold beyond that. The error is the
    largest of the samples' error times their share, of what the state may hold beyond its proven weight, and of a part
    of what was added, since the samples may miss other states too; all of it if the samples give no information.
    """
    share = elsewhere.share(outcome.log_z)
    if share < policy.SHARE_ELSEWHERE:
        return replace(outcome, std_error=max(outcome.std_error or 0.0, policy.WIDTH_OF_SHARE * share))
    gain = max(float(np.logaddexp(outcome.log_z, elsewhere.lower + 0.5 * elsewhere.beyond)) - outcome.log_z, 0.0)
    error = outcome.std_error or 0.0
    words = f"; chains from a state along a leading eigenvector, at least {share:.0%} of Z, do not merge with it"
    return replace(
        outcome,
        log_z=outcome.log_z + gain,
        std_error=max((1.0 - share) * error, elsewhere.beyond, min(gain, max(error, policy.LEAST_ERROR_ELSEWHERE))),
        trusted=False,
        status=Status(f"{outcome.status}{words}", converged=False),
    )


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

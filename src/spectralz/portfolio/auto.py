"""The method that chooses the method."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.deadline import BUDGET, Deadline, budgeted, checked_budget
from spectralz._support.devices import device_option
from spectralz._support.options import checked_bytes, count, names, option, or_none, positive, threads_option
from spectralz._support.progress import without_history
from spectralz._support.threads import using_threads
from spectralz.errors import ModelError, OptionError, TooLargeError, warn_inaccurate
from spectralz.methods.annealing import Annealing
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.exact import Exact
from spectralz.methods.planar import Planar
from spectralz.methods.quadrature import Quadrature
from spectralz.model import Ising, Polynomial
from spectralz.parts.mean_field.ascents import states_by_mean_field
from spectralz.portfolio import policy, schedule
from spectralz.portfolio.answers import Problem
from spectralz.portfolio.components import added, joined, parts_of
from spectralz.portfolio.exact_costs import (
    drawn_if_quicker,
    exact_deadline,
    is_affordable,
    operations_of_plan,
    operations_of_planar,
    quadrature_in_time,
    refusal_of,
)
from spectralz.result import Kind, Status
from spectralz.sampling.core import SWEEPS
from spectralz.sampling.long_runs import long_run, refuse_parts
from spectralz.sampling.path import from_coins
from spectralz.sampling.population import VARIANCE
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import LEAST_POINTS, seconds_of_sweeps, seconds_per_state, seconds_per_sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from spectralz.methods.exact import ExactPlan
    from spectralz.model import IntArray, Model


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Give the best answer within a budget: exact if it is tractable, otherwise estimates that are compared.

    If no exact method is feasible, ``ep`` or ``bp``, ``annealing`` and ``states`` run as far as the budget allows,
    together with the methods that prove bounds. Among the methods that trust themselves and are consistent with the
    bounds, the one with the smallest error gives the answer; ``std_error`` covers the answers of the others. The answer
    is ``trusted`` if the method's own checks hold and nothing contradicts it; ``checked_by`` names the methods of
    another kind that agreed. ``tried`` lists all methods, and ``status`` explains the choice. An interrupt (Ctrl-C)
    returns the best answer so far. A model of several components is solved component by component.

    Parameters
    ----------
    budget
        Seconds to spend at most, with a tolerance of 20% plus one second. More seconds give a better answer. Exact
        answers may take ten times as long. The default is 10 if neither this nor ``work`` is given.
    work
        Instead of ``budget``: operations to do, such as 1e10, which one core does in about ten seconds. Counting, not
        the clock, then decides what is done. The same seed gives the same answer, whatever the number of threads and
        whatever else runs on the machine.
    tol
        Stop earlier once the standard error is this small. By default 0.001 at a budget of ten seconds, scaled by one
        over the root of the budget.
    exclude
        Names of methods to leave out, such as ``["exact"]``.
    seed
        Seed of all random choices. With a ``budget`` the clock decides how much is done, and answers of the same seed
        agree only within their errors; with ``work`` they are the same.
    max_memory
        Most memory for tables and populations, in bytes or like ``"512 MiB"``.
    threads
        Most threads to use; by default all cores that the process may use.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model has at least 2,000 spins (1,000 on a sparse graph).

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.Auto().choose(sz.generators.grid(side=4, strength=1.0, seed=0))
    Exact(algorithm='auto', order='best', search=None, max_memory=4294967296, max_terms=68719476736, ...)
    >>> sz.Auto().choose(sz.generators.curie_weiss(n=1000))
    Quadrature(max_rank=3, max_nodes=20000000, tol=1e-06)
    >>> model = sz.generators.complete(n=18, strength=0.2, seed=0)
    >>> result = sz.log_z(model, exclude=["exact"], budget=2)
    >>> bool(abs(result.log_z - sz.log_z(model).log_z) < 3 * result.std_error)
    True
    >>> again = [sz.log_z(model, exclude=["exact"], work=1e8, seed=7).log_z for _ in range(2)]
    >>> again[0] == again[1]
    True
    """

    budget: float | None = option(None, or_none(positive()))
    work: float | None = option(None, or_none(positive()))
    tol: float | None = option(None, or_none(positive()))
    exclude: Sequence[str] | str = option((), names(schedule.METHODS_TRIED))
    seed: int = option(0, count(least=0))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "auto"
    gives_marginals: ClassVar[bool] = True
    gives_samples: ClassVar[bool] = True
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    spreads_runs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        budget, work = checked_budget(self.budget, self.work)
        object.__setattr__(self, "budget", BUDGET if budget is work is None else budget)

    def _in_threads(self, model: Model) -> AbstractContextManager[None]:
        # Linear algebra is limited where it is used, so that an exact answer need not load its libraries first.
        return using_threads(self.threads)

    def choose(self, model: Model) -> Method:
        """Return the method, with its options, that would run on ``model``: an exact one, or this one itself."""
        with budgeted(self.budget, self.work) as deadline:
            limits = self._limits(deadline, with_means=False)
            exact = self._planar(model, limits) or self._exact(model, self._plan(model, limits)[0], limits)
        return self if exact is None else exact[0]

    def _solve(self, model: Model) -> Outcome:
        with budgeted(self.budget, self.work) as deadline:
            outcome = self._answer(model, self._limits(deadline, with_means=False))
            assert isinstance(outcome, Outcome)
            return self._with_work(outcome)

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        with budgeted(self.budget, self.work) as deadline:
            marginals = self._answer(model, self._limits(deadline, with_means=True))
            assert isinstance(marginals, MarginalOutcome)
            return replace(marginals, outcome=self._with_work(marginals.outcome))

    def _sample(self, model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        with budgeted(self.budget, self.work) as deadline:
            return self._drawn(model, size, rng, self._limits(deadline, with_means=True))

    def _limits(self, deadline: Deadline, *, with_means: bool) -> _Limits:
        return _Limits(deadline, exact_deadline(deadline.seconds), with_means, self.seed)

    def _with_work(self, outcome: Outcome) -> Outcome:
        """Add the requested and the counted operations to an outcome."""
        if self.work is None:
            return outcome
        return replace(outcome, details={**outcome.details, "work": self.work, "operations": clock.operations()})

    def _answer(self, model: Model, limits: _Limits) -> Outcome | MarginalOutcome:
        """Answer exactly if there is time, otherwise by the schedule; a model of several components part by part."""
        if long_run().earlier is not None:
            return self._estimate(model, "", limits)
        planar = self._planar(model, limits)
        if planar is not None:
            with suppress(ModelError, TooLargeError):  # distant pairs are wanted, or couplings are too large
                answer = planar[1]()
                clock.charge(operations_of_planar(model.n, with_means=limits.with_means))
                if _outcome_of(answer).is_trusted:
                    return _with_outcome(answer, replace(_outcome_of(answer), method=planar[0]))
        plan, refusal = self._plan(model, limits)
        parts = parts_of(model) if plan is None else []
        if parts:
            refuse_parts(len(parts))
            with without_history():
                return self._put_together(model, parts, limits)
        exact = self._exact(model, plan, limits)
        if exact is not None:
            method, solve = exact
            try:
                answer = solve()
                clock.charge(_operations_of(model, plan, _outcome_of(answer), with_means=limits.with_means))
                return _with_outcome(answer, replace(_outcome_of(answer), method=method))
            except TooLargeError as error:  # quadrature, whose grid may be too large although the rank is low
                refusal = str(error) if limits.with_means else refusal
        return self._estimate(model, refusal, limits)

    def _planar(self, model: Model, limits: _Limits) -> tuple[Method, Callable[[], Outcome | MarginalOutcome]] | None:
        """Return planar, and how to run it, if that is possible and predicted to be quicker than exact."""
        if "planar" in self.exclude or not isinstance(model, Ising):
            return None
        against_exact = "exact" not in self.exclude
        graph = drawn_if_quicker(model, limits.of_exact, with_means=limits.with_means, against_exact=against_exact)
        if graph is None:
            return None
        planar = Planar(max_memory=self.max_memory)
        solve = planar.solve_marginals_of_graph if limits.with_means else planar.solve_graph
        return planar, lambda: solve(model, graph)

    def _plan(self, model: Model, limits: _Limits) -> tuple[ExactPlan | None, str]:
        """Return the plan of exact, or None; and the reason if it could run but would take too long."""
        if "exact" in self.exclude:
            return None, ""
        most_seconds = policy.EXACT_SEARCH_SHARE * limits.deadline.seconds
        plan = Exact(max_memory=self.max_memory).plan(model, most_search_seconds=most_seconds)
        if plan.refusal is not None:
            return None, ""
        if is_affordable(plan, limits.of_exact, with_means=limits.with_means):
            return plan, ""
        return None, refusal_of(plan, with_means=limits.with_means)

    def _exact(
        self, model: Model, plan: ExactPlan | None, limits: _Limits
    ) -> tuple[Method, Callable[[], Outcome | MarginalOutcome]] | None:
        """Return an exact method for the model, and how to run it without planning again; None if there is none."""
        if plan is not None:
            exact = Exact(max_memory=self.max_memory)
            solve = exact.solve_marginals_of_plan if limits.with_means else exact.solve_plan
            return exact, lambda: solve(model, plan)
        if "quadrature" in self.exclude or isinstance(model, Polynomial) or model.constraints:
            return None
        found = quadrature_in_time(model, limits.of_exact, with_means=limits.with_means)
        if found is None:
            return None
        in_time, form = found
        solve_form = in_time.solve_marginals_decomposed if limits.with_means else in_time.solve_decomposed
        return Quadrature(), lambda: solve_form(model, form)

    def _estimate(self, model: Model, refusal: str, limits: _Limits) -> Outcome | MarginalOutcome:
        """Answer by the schedule; ``refusal`` says why there is no exact answer, if one was possible."""
        assert isinstance(self.max_memory, int)
        deadline = limits.deadline
        problem = Problem(
            model=model,
            tol=policy.TOL_AT_TEN_SECONDS * math.sqrt(10.0 / deadline.seconds) if self.tol is None else self.tol,
            exclude=tuple(self.exclude),
            seed=limits.seed,
            max_memory=self.max_memory,
            with_means=limits.with_means,
        )
        answers = schedule.answer(problem, deadline)
        if refusal:
            answers = replace(answers, not_run={"exact": refusal, **answers.not_run})
        if limits.with_means:
            marginals = schedule.marginals_of(problem, answers, deadline)
            return replace(marginals, outcome=_with_words(marginals.outcome, refusal))
        return _with_words(schedule.outcome_of(answers, deadline), refusal)

    def _put_together(self, model: Model, parts: list[IntArray], limits: _Limits) -> Outcome | MarginalOutcome:
        """Solve the components, small ones first, since they leave part of their share of the budget to the others.

        The rest of the budget is divided in proportion to spins; after an interrupt almost nothing is left. The time of
        exact answers has a limit of its own, and is given back.
        """
        end, spins = limits.deadline.end, model.n
        answers: dict[int, Outcome | MarginalOutcome] = {}
        is_interrupted = False
        for k in sorted(range(len(parts)), key=lambda k: len(parts[k])):
            began = clock.now()
            left = policy.SECONDS_AFTER_INTERRUPT if is_interrupted else max(end - began, policy.SECONDS_AT_LEAST)
            share = Deadline.after(left * len(parts[k]) / spins)
            spins -= len(parts[k])
            # Errors of equal components would be equal if these had the same random numbers.
            seed = int(np.random.SeedSequence([limits.seed, k]).generate_state(1)[0])
            answers[k] = self._answer(model.submodel(parts[k]), replace(limits, deadline=share, seed=seed))
            outcome = _outcome_of(answers[k])
            is_interrupted |= outcome.interrupted
            if outcome.kind is Kind.EXACT:
                end += clock.now() - began
        in_order = [answers[k] for k in range(len(parts))]
        if limits.with_means:
            return joined(model, parts, [answer for answer in in_order if isinstance(answer, MarginalOutcome)])
        return added(model, [_outcome_of(answer) for answer in in_order])

    def _drawn(self, model: Model, size: int, rng: np.random.Generator, limits: _Limits) -> NDArray[np.int8]:
        """Draw states, exactly if there is time."""
        plan, _ = self._plan(model, limits)
        parts = parts_of(model) if plan is None else []
        if parts:
            x, end, left = np.empty((size, model.n), dtype=np.int8), limits.deadline.end, model.n
            for spins in sorted(parts, key=len):
                share = Deadline.after(max(end - clock.now(), policy.SECONDS_AT_LEAST) * len(spins) / left)
                x[:, spins] = self._drawn(model.submodel(spins), size, rng, replace(limits, deadline=share))
                left -= len(spins)
            return x
        exact = Exact(max_memory=self.max_memory)
        if plan is not None and exact.refuses_samples(plan) is None:
            return exact.sample_plan(model, plan, size, rng)
        if "quadrature" not in self.exclude and isinstance(model, Ising) and not model.constraints:
            quadrature = quadrature_in_time(model, limits.of_exact, with_means=False)
            if quadrature is not None:
                with suppress(TooLargeError):
                    return quadrature[0]._sample(model, size, rng)
        if "annealing" in self.exclude:
            raise OptionError("no method is left to draw states by; exclude less of exact, quadrature and annealing")
        with limits.deadline.in_force():
            if seconds_of_sweeps(model, SWEEPS * LEAST_POINTS) > limits.deadline.left:
                warn_inaccurate("the states come from mean field: there is no time to sweep them; give a larger budget")
                return states_by_mean_field(model, size, rng)
            return _annealing(model, self.max_memory, limits.deadline)._sample(model, size, rng)


@dataclass(frozen=True)
class _Limits:
    """When to end, with estimates and with exact answers; whether marginals are wanted, which take longer; the seed."""

    deadline: Deadline
    of_exact: Deadline
    with_means: bool
    seed: int


def _outcome_of(answer: Outcome | MarginalOutcome) -> Outcome:
    return answer.outcome if isinstance(answer, MarginalOutcome) else answer


def _with_outcome(answer: Outcome | MarginalOutcome, outcome: Outcome) -> Outcome | MarginalOutcome:
    return replace(answer, outcome=outcome) if isinstance(answer, MarginalOutcome) else outcome


def _annealing(model: Model, max_memory: int | str, deadline: Deadline) -> Annealing:
    """Return annealing with a population that suits the budget."""
    default = Annealing(max_memory=max_memory)
    path = from_coins(model)
    with crew_for(path) as crew:
        one = seconds_per_state(path, VARIANCE, SWEEPS * seconds_per_sweep(path, parallel=crew.parallel))
    affordable = policy.SHARE_TO_DRAW * deadline.seconds / (one * default.runs)
    return replace(default, population=int(np.clip(affordable, policy.FEWEST_TO_DRAW_FROM, default.population)))


def _operations_of(model: Model, plan: ExactPlan | None, outcome: Outcome, *, with_means: bool) -> float:
    """Return the operations of an exact answer: terms of the sum, or factors at the nodes of the quadrature."""
    if plan is not None:
        return operations_of_plan(plan, with_means=with_means)
    return costs.EXACT_TERM * float(model.n * outcome.details.get("nodes", 1))


def _with_words(outcome: Outcome, words: str) -> Outcome:
    """Add to the status why there is no exact answer, if one was possible."""
    if not words:
        return outcome
    return replace(outcome, status=Status(f"{outcome.status}; {words}", converged=outcome.status.converged))

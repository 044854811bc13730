"""The method that chooses the method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import device_option
from spectralz._support.options import checked_bytes, count, names, option, or_none, positive, threads_option
from spectralz._support.threads import using_threads
from spectralz.errors import ModelError, OptionError, TooLargeError
from spectralz.methods.annealing import Annealing
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.exact import Exact
from spectralz.methods.quadrature import Quadrature
from spectralz.parts.decomposition import decompose
from spectralz.parts.pairs import are_pairs_wanted, pairs_of
from spectralz.portfolio import policy
from spectralz.portfolio.budget import Budget
from spectralz.portfolio.purse import Purse, operations_of_plan
from spectralz.portfolio.schedule import METHODS_TRIED, Portfolio, tried_in_details
from spectralz.result import Kind, Status
from spectralz.sampling.path import path_to
from spectralz.sampling.plan import seconds_per_state, seconds_per_sweep
from spectralz.sampling.spread import crew_for
from spectralz.trust.agreement import WIDTHS_PER_DEVIATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from spectralz.methods.exact import ExactPlan
    from spectralz.model import IntArray, Ising

__all__ = ["Auto"]

T = TypeVar("T", Outcome, MarginalOutcome)


@dataclass(frozen=True)
class _Choice:
    """A method, and how to run it without repeating what the choice already computed."""

    method: Method
    solve: Callable[[], Outcome]
    solve_marginals: Callable[[], MarginalOutcome]


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Give the best answer within a budget: exact if tractable or of low rank, otherwise estimates that are compared.

    If no exact method is feasible, ``ep`` or ``bp``, ``annealing`` and ``states`` run as far as the budget allows,
    together with the methods that prove bounds. Among the methods that trust themselves and are consistent with the
    bounds, the one with the smallest error gives the answer; ``std_error`` covers the answers of the others. ``tried``
    lists them all, and ``status`` explains the choice. An interrupt (Ctrl-C) returns the best answer so far. A model of
    several components is solved component by component.

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
        and the model is dense or bipartite with at least 2,000 spins.

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
    exclude: Sequence[str] | str = option((), names(METHODS_TRIED))
    seed: int = option(0, count(least=0))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "auto"
    gives_marginals: ClassVar[bool] = True
    gives_samples: ClassVar[bool] = True
    spreads_runs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "budget", self._budget.budget)

    @property
    def _budget(self) -> Budget:
        return Budget(self.budget, self.work)

    def _in_threads(self, model: Ising) -> AbstractContextManager[None]:
        # Linear algebra is limited where it is used, so that an exact answer need not load its libraries first.
        return using_threads(self.threads)

    def choose(self, model: Ising) -> Method:
        """Return the method, with its options, that would run on ``model``: an exact one, or this one itself."""
        with self._budget.planning():
            purse = self._purse(with_means=False)
            choice = self._choose(model, self._plan(model, purse)[0], purse)
        return self if choice is None else choice.method

    @property
    def _exact(self) -> Exact:
        return Exact(max_memory=self.max_memory)

    def _purse(self, *, with_means: bool) -> Purse:
        return Purse(self._budget.seconds, with_means=with_means)

    def _plan(self, model: Ising, purse: Purse) -> tuple[ExactPlan | None, str]:
        """Return the plan of exact, or None; and the reason if it could run but would take too long."""
        if "exact" in self.exclude:
            return None, ""
        plan = self._exact.plan(model, most_search_seconds=policy.EXACT_SEARCH_SHARE * self._budget.seconds)
        if plan.refusal is not None:
            return None, ""
        return (plan, "") if purse.pays(plan) else (None, purse.refusal(plan))

    def _choose(self, model: Ising, plan: ExactPlan | None, purse: Purse) -> _Choice | None:
        """Return an exact method for the model, or None."""
        if plan is not None:
            exact = self._exact
            return _Choice(
                exact, lambda: exact.solve_plan(model, plan), lambda: exact.solve_marginals_of_plan(model, plan)
            )
        if "quadrature" in self.exclude:
            return None
        quadrature = Quadrature()
        in_time = replace(quadrature, max_nodes=purse.most_nodes(model.n, quadrature.max_nodes))
        try:
            form = decompose(model, quadrature.max_rank, quadrature.tol)
        except ModelError:
            return None
        return _Choice(
            quadrature,
            lambda: in_time.solve_decomposed(model, form),
            lambda: in_time.solve_marginals_decomposed(model, form),
        )

    def _portfolio(self, model: Ising, began: float, unaffordable: str) -> Portfolio:
        assert isinstance(self.max_memory, int)
        seconds = self._budget.seconds
        tol = policy.TOL_AT_TEN_SECONDS * math.sqrt(10.0 / seconds) if self.tol is None else self.tol
        portfolio = Portfolio(
            model,
            budget=seconds,
            tol=tol,
            exclude=tuple(self.exclude),
            seed=self.seed,
            max_memory=self.max_memory,
            started=began,
        )
        if unaffordable:
            portfolio.not_run["exact"] = unaffordable
        portfolio.run()
        return portfolio

    def _solve(self, model: Ising) -> Outcome:
        with self._budget.planning() as counted:
            auto = self._in_time
            return self._with_work(auto._solve_planned(model, auto._purse(with_means=False)), counted)

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        with self._budget.planning() as counted:
            auto = self._in_time
            found = auto._solve_marginals_planned(model, auto._purse(with_means=True))
            return replace(found, outcome=self._with_work(found.outcome, counted))

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        with self._budget.planning():
            auto = self._in_time
            return auto._sample_planned(model, size, rng, auto._purse(with_means=True))

    @property
    def _in_time(self) -> Auto:
        """Return the same with a budget in seconds by the current clock; inside ``planning`` it is the right one."""
        return replace(self, budget=self._budget.seconds, work=None)

    def _with_work(self, outcome: Outcome, counted: clock.Operations | None) -> Outcome:
        """Add the requested and the counted operations to an outcome."""
        if counted is None:
            return outcome
        return replace(outcome, details={**outcome.details, "work": self.work, "operations": counted.count})

    def _solve_planned(self, model: Ising, purse: Purse) -> Outcome:
        began = clock.now()
        plan, unaffordable = self._plan(model, purse)
        parts = _parts(model, plan)
        if parts:
            return _added(model, self._each(model, parts, purse, Auto._solve_planned, lambda outcome: outcome))
        choice = self._choose(model, plan, purse)
        if choice is not None:
            try:
                outcome = choice.solve()
                clock.charge(_operations_of(model, plan, outcome, with_means=False))
                return replace(outcome, method=choice.method)
            except TooLargeError:
                pass  # quadrature, whose grid may be too large although the rank is low
        return _with_words(self._portfolio(model, began, unaffordable).conclude(), unaffordable)

    def _solve_marginals_planned(self, model: Ising, purse: Purse) -> MarginalOutcome:
        began = clock.now()
        plan, unaffordable = self._plan(model, purse)
        parts = _parts(model, plan)
        if parts:
            found_parts = self._each(model, parts, purse, Auto._solve_marginals_planned, lambda found: found.outcome)
            return _joined(model, parts, found_parts)
        choice = self._choose(model, plan, purse)
        if choice is not None:
            try:
                found = choice.solve_marginals()
                clock.charge(_operations_of(model, plan, found.outcome, with_means=True))
                return replace(found, outcome=replace(found.outcome, method=choice.method))
            except TooLargeError as refusal:
                unaffordable = str(refusal)
        found = self._portfolio(model, began, unaffordable).conclude_marginals()
        return replace(found, outcome=_with_words(found.outcome, unaffordable))

    def _each(
        self,
        model: Ising,
        parts: list[IntArray],
        purse: Purse,
        solve: Callable[[Auto, Ising, Purse], T],
        outcome_of: Callable[[T], Outcome],
    ) -> list[T]:
        """Solve the components, small ones first, since they leave part of their share of the budget to the others.

        The rest of the budget is divided in proportion to spins; after an interrupt almost nothing is left. The time of
        exact answers comes out of the purse, not out of the budget.
        """
        end = clock.now() + self._budget.seconds
        spins = model.n
        found: dict[int, T] = {}
        is_interrupted = False
        for k in sorted(range(len(parts)), key=lambda k: len(parts[k])):
            left = policy.SECONDS_AFTER_INTERRUPT if is_interrupted else max(end - clock.now(), policy.SECONDS_AT_LEAST)
            share = left * len(parts[k]) / spins
            spins -= len(parts[k])
            began = clock.now()
            found[k] = solve(replace(self, budget=share), model.submodel(parts[k]), purse)
            is_interrupted |= outcome_of(found[k]).interrupted
            if outcome_of(found[k]).kind is Kind.EXACT:
                end += clock.now() - began
        return [found[k] for k in range(len(parts))]

    def _sample_planned(self, model: Ising, size: int, rng: np.random.Generator, purse: Purse) -> NDArray[np.int8]:
        plan, _ = self._plan(model, purse)
        parts = _parts(model, plan)
        if parts:
            x = np.empty((size, model.n), dtype=np.int8)
            for spins in parts:
                x[:, spins] = self._sample_planned(model.submodel(spins), size, rng, purse)
            return x
        if plan is not None and self._exact.refuses_samples(plan) is None:
            return self._exact.sample_plan(model, plan, size, rng)
        if "quadrature" not in self.exclude:
            try:
                return Quadrature()._sample(model, size, rng)
            except (ModelError, TooLargeError):
                pass
        if "annealing" in self.exclude:
            raise OptionError("no method is left to draw states by; exclude less of exact, quadrature and annealing")
        return self._annealing(model)._sample(model, size, rng)

    def _annealing(self, model: Ising) -> Annealing:
        """Return annealing with a population that suits the budget."""
        default = Annealing(max_memory=self.max_memory)
        path = path_to(model, clusters=default.clusters)
        with crew_for(path) as crew:
            one = seconds_per_state(path, default.step, seconds_per_sweep(path, parallel=crew.parallel))
        affordable = self._budget.seconds / one / default.runs
        return replace(default, population=int(max(min(default.population, affordable), policy.FEWEST_TO_DRAW_FROM)))


def _operations_of(model: Ising, plan: ExactPlan | None, outcome: Outcome, *, with_means: bool) -> float:
    """Return the operations of an exact answer: terms of the sum, or factors at the nodes of the quadrature."""
    if plan is not None:
        return operations_of_plan(plan, with_means=with_means)
    return policy.EXACT_OPERATIONS * float(model.n * outcome.details.get("nodes", 1))


def _with_words(outcome: Outcome, words: str) -> Outcome:
    """Add to the status why there is no exact answer, if one was possible."""
    if not words:
        return outcome
    return replace(outcome, status=Status(f"{outcome.status}; {words}", converged=outcome.status.converged))


def _parts(model: Ising, plan: ExactPlan | None) -> list[IntArray]:
    """Return the components to solve separately: none if exact solves the whole, or there is only one."""
    if plan is not None or model.storage.terms is not None:
        return []
    components = model.components()
    lone = [spins for spins in components if len(spins) == 1]
    parts = [spins for spins in components if len(spins) > 1] + ([np.concatenate(lone)] if lone else [])
    return parts if len(parts) > 1 else []


def _added(model: Ising, outcomes: list[Outcome]) -> Outcome:
    """Add up the log Z of components; there are bounds if all have them, and the sum is exact if all are."""
    lowers = [outcome.lower for outcome in outcomes if outcome.lower is not None]
    uppers = [outcome.upper for outcome in outcomes if outcome.upper is not None]
    names = [outcome.method.name if outcome.method else Auto.name for outcome in outcomes]
    words = ", ".join(f"{names.count(name)} by {name}" for name in dict.fromkeys(names))
    doubts = [str(outcome.status) for outcome in outcomes if not outcome.status.converged]
    tried = tuple(
        replace(trial, why=f"component {k}: {trial.why}")
        for k, outcome in enumerate(outcomes)
        for trial in outcome.tried
    )
    is_interrupted = any(outcome.interrupted for outcome in outcomes)
    # Sums of rounded numbers: one unit in the last place per component is more than fsum needs.
    slack = 2.0**-52 * (abs(model.offset) + math.fsum(abs(outcome.log_z) for outcome in outcomes))
    return Outcome(
        log_z=math.fsum([model.offset, *(outcome.log_z for outcome in outcomes)]),
        kind=Kind.EXACT if {outcome.kind for outcome in outcomes} == {Kind.EXACT} else Kind.ESTIMATE,
        status=Status("; ".join([f"components solved apart: {words}", *doubts[:3]]), converged=not doubts),
        lower=math.fsum([model.offset, *lowers]) - slack if len(lowers) == len(outcomes) else None,
        upper=math.fsum([model.offset, *uppers]) + slack if len(uppers) == len(outcomes) else None,
        std_error=_error_of_sum(outcomes),
        trusted=all(
            outcome.is_trusted and (outcome.kind is Kind.EXACT or outcome.std_error is not None) for outcome in outcomes
        ),
        interrupted=is_interrupted,
        tried=tried,
        details={
            "components": [dict(outcome.details) for outcome in outcomes],
            **(tried_in_details(tried, is_interrupted) if tried else {}),
        },
    )


def _error_of_sum(outcomes: list[Outcome]) -> float | None:
    """Return the error of a sum, None if all are exact.

    Errors of independent answers are added in quadrature, those of doubtful ones linearly, because doubtful answers are
    likely to be wrong in the same direction. An estimate without an error gets that of a number anywhere between its
    bounds.
    """
    errors = [(_error_of(outcome), outcome.status.converged) for outcome in outcomes if outcome.kind is not Kind.EXACT]
    if not errors:
        return None
    independent = math.hypot(*(error for error, converged in errors if converged))
    return independent + math.fsum(error for error, converged in errors if not converged)


def _error_of(outcome: Outcome) -> float:
    """Return the error of an estimate: its own, or that of its bounds."""
    if outcome.std_error is not None:
        return outcome.std_error
    if outcome.lower is None or outcome.upper is None:
        return abs(outcome.log_z)  # nothing is known
    return (outcome.upper - outcome.lower) / WIDTHS_PER_DEVIATION


def _joined(model: Ising, parts: list[IntArray], found: list[MarginalOutcome]) -> MarginalOutcome:
    """Put the marginals of components together."""
    edges = pairs_of(model)
    places = edges[:, 0] * model.n + edges[:, 1]  # in order, as edges are
    mean, probability, pair_mean = np.empty(model.n), np.empty((model.n, 2)), np.empty(len(edges))
    for spins, part in zip(parts, found, strict=True):
        mean[spins], probability[spins] = part.mean, part.probability
        if are_pairs_wanted():
            pairs = spins[model.submodel(spins).edges()[0]]
            pair_mean[np.searchsorted(places, pairs[:, 0] * model.n + pairs[:, 1])] = part.pair_mean
    kinds = {part.kind for part in found}
    return MarginalOutcome(
        probability=probability,
        mean=mean,
        pair_mean=pair_mean,
        kind=Kind.EXACT if kinds == {Kind.EXACT} else Kind.ESTIMATE,
        outcome=_added(model, [part.outcome for part in found]),
    )

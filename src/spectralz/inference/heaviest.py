"""The heaviest state of a model."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted, checked_budget
from spectralz._support.options import bytes_in_words, checked_bytes, checked_count, checked_threads
from spectralz._support.threads import using_threads
from spectralz.errors import ModelError, OptionError, TooLargeError, is_interrupt, showing_interrupts
from spectralz.inference.by_maxima import by_maxima, rounding_of, table_entries
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.methods import Exact
from spectralz.portfolio.bracket import bracket
from spectralz.portfolio.exact_costs import exact_deadline, is_affordable
from spectralz.result import MapState, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz.model import RBM, Ising, SpinArray

METHODS = ("auto", "exact", "search")
ENTRY_BYTES = 8
# Of the time so much goes into the search, and the rest into bounds.
SEARCH_SHARE = 0.6
# log Z of a model that is k times as cold, divided by k, is no less than its largest log-weight, and close to it if k
# is large.
COLDER = (8.0, 64.0)


def map_state(
    model: Ising | RBM,
    method: str = "auto",
    *,
    given: Mapping[Any, int] | None = None,
    budget: float | None = None,
    work: float | None = None,
    seed: int = 0,
    max_memory: int | str = 4 * 2**30,
    threads: int | None = None,
) -> MapState:
    """Return the heaviest state of ``model`` found, with a bound on the weight of any state.

    If the treewidth is small, spins are eliminated by maxima and the state is proven to be the heaviest. Otherwise
    populations are cooled, slower each time, and quenched until the budget ends; Ctrl-C keeps the best state so far.

    Parameters
    ----------
    model
        The model, an Ising or an RBM.
    method
        ``"exact"`` (elimination), ``"search"``, or ``"auto"``: exact if that is possible in time.
    given
        Evidence, as in :func:`log_z`.
    budget
        Seconds to spend if no exact answer is possible, ten by default.
    work
        Instead of ``budget``: operations to do; the answer is then the same in every run.
    seed
        Seed of all random numbers.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``.
    threads
        Most threads to use; by default all cores that the process may use.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.map_state(sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0], field=[0.5, 0.0, 0.0]))
    >>> found.state.tolist(), found.log_weight, found.proven
    ([1, 1, -1], 3.5, True)
    """
    if method not in METHODS:
        raise OptionError(f"method is {method!r}; the heaviest state is found by one of {', '.join(METHODS)}")
    memory = int(checked_bytes(max_memory, "max_memory"))
    limits = checked_budget(budget, work)
    limit = checked_threads(threads)
    rng = np.random.default_rng(checked_count(seed, "seed", least=0))
    conditioned = ModelWithEvidence.checked(model, given)
    began = clock.seconds()
    free = conditioned.free
    with showing_interrupts(), using_threads(limit), budgeted(*limits) as deadline:
        order = None if method == "search" else _order(free, memory, deadline, method == "exact")
        answer = _searched(free, deadline, rng) if order is None else _eliminated(free, order, rng)
    weight = float(free.log_weight(answer.state))
    return MapState(
        state=conditioned.states(answer.state[None])[0],
        log_weight=weight,
        upper=max(answer.upper, weight),
        proven=answer.upper <= weight + answer.slack,
        method=answer.method,
        status=answer.status,
        seconds=clock.seconds() - began,
        names=conditioned.whole.names,
    )


class _Answer(NamedTuple):
    """A state, a bound on all log-weights, what of that bound may be rounding, and how they were found."""

    state: SpinArray
    upper: float
    slack: float
    method: str
    status: Status


def _order(model: Ising, memory: int, deadline: Deadline, is_asked: bool) -> list[int] | None:
    """Return an order of elimination whose tables fit, or None if there is none; say why if it is asked for."""
    exact = Exact(algorithm="elimination", max_memory=memory, max_sliced=0)
    plan = exact.plan(model)
    refusal = plan.refusal
    if refusal is None:
        need = ENTRY_BYTES * table_entries(model, plan.tree.order, plan.width + 1)
        if need > memory:
            refusal = (
                f"all tables together take {bytes_in_words(need)}; max_memory is {bytes_in_words(memory)}: raise it"
            )
    if refusal is not None and is_asked:
        raise TooLargeError(refusal)
    if refusal is not None or not (is_asked or is_affordable(plan, exact_deadline(deadline.seconds), with_means=True)):
        return None
    return [int(spin) for spin in plan.tree.order]


def _eliminated(model: Ising, order: list[int], rng: np.random.Generator) -> _Answer:
    maxima = by_maxima(model, order, model.n + 1, rng)
    rounding = rounding_of(model)
    upper, slack = maxima.upper + model.constant + rounding, 2.0 * (maxima.rounding + 2.0 * rounding)
    return _Answer(maxima.state, upper, slack, "exact", Status(f"eliminated {model.n} spins by maxima"))


def _searched(model: Ising, deadline: Deadline, rng: np.random.Generator) -> _Answer:
    from spectralz.sampling.search import by_search

    state = np.where(model.field >= 0.0, 1, -1).astype(np.int8)
    upper, times, words = np.inf, 0, "the search ended"
    try:
        for best in by_search(model, deadline.share(SEARCH_SHARE), rng):
            state, times = best, times + 1
        for colder in COLDER:
            share = Deadline.after((1.0 - SEARCH_SHARE) * deadline.seconds / len(COLDER))
            with suppress(ModelError):  # of numbers that would become too large
                upper = min(upper, bracket(model.scaled(colder), share, ("mf", "states")).upper / colder)
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error) or not times:
            raise
        words = "interrupted: the search ended early"
    if not np.isfinite(upper):
        upper = float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum()) + model.constant
    rounding = rounding_of(model)
    return _Answer(state, upper + 2.0 * rounding, 4.0 * rounding, "search", Status(f"{words} after {times} coolings"))

"""Bracket log Z with all methods that prove bounds, by a deadline.

Cheap bounds come first. A more expensive bound is computed only if its predicted cost fits into the time left. Bounds
that have been found are kept, whatever happens later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectralz._support import clock, costs
from spectralz._support.deadline import Deadline, NotAffordableError
from spectralz._support.options import checked_names
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import SpectralzError, is_interrupt
from spectralz.methods.exact import Exact
from spectralz.portfolio import bounders, policy
from spectralz.portfolio.exact_costs import operations_of_plan
from spectralz.result import Bounds, BoundsRow

if TYPE_CHECKING:
    from spectralz.model import Model
    from spectralz.portfolio.bounders import Bounder


def trivial_bounds(model: Model) -> Bounds:
    """Return the bounds that every model has at once."""
    row = _row("trivial", bounders.trivial, model, Deadline(), 0.0)
    return Bounds.best_of((row,), row.seconds)


def bracket(
    model: Model, deadline: Deadline, exclude: Any = (), *, known: Bounds | None = None, tells_of_exact: bool = True
) -> Bounds:
    """Return the best proven bounds on log Z found in time, with one row per bounder.

    Bounds that are ``known`` are improved. If the bounds leave a gap that ``exact`` could close, one more row says so,
    unless ``tells_of_exact`` is False.

    An interrupt (Ctrl-C) ends the search but not the call: the bounds found so far are returned, with ``interrupted``
    set.
    """
    left_out = checked_names(exclude, "exclude", bounders.NAMES)
    known = trivial_bounds(model) if known is None else known
    began = clock.seconds()
    rows = {row.method: row for row in known.rows}
    names = [name for name in bounders.in_order(model) if name not in left_out]
    is_interrupted = False
    for k, name in enumerate(names):
        with using_threads(None, model.n):
            row = _row(name, bounders.BOUNDERS[name], model, deadline, k / len(names), "exact" not in left_out)
        rows[name] = better_of(rows[name], row) if name in rows else row
        is_interrupted = row.interrupted
        if is_interrupted:
            break
    best = Bounds.best_of(tuple(rows.values()), 0.0)
    if tells_of_exact and "exact" not in left_out and not is_interrupted and best.width > policy.CLOSED_BRACKET:
        rows |= {row.method: row for row in _row_of_exact(model, deadline)}
    seconds = known.seconds + clock.seconds() - began
    return Bounds.best_of(tuple(rows.values()), seconds, interrupted=is_interrupted)


def _row_of_exact(model: Model, deadline: Deadline) -> list[BoundsRow]:
    """Return a row without bounds with the predicted time of ``exact``; none if it cannot run or planning is slow."""
    most_seconds = policy.EXACT_HINT_SHARE * deadline.seconds
    if 1e-9 * costs.ORDER_SEARCH_NANOSECONDS * (model.n + model.pair_count) ** 2 > most_seconds:
        return []
    started = clock.seconds()
    plan = Exact().plan(model, most_search_seconds=most_seconds)
    if plan.refusal is not None:
        return []
    seconds = clock.in_words(operations_of_plan(plan, with_means=False) / clock.OPERATIONS_PER_SECOND)
    status = f'not run: exact would solve this model in about {seconds}: log_z(model, "exact")'
    return [BoundsRow("exact", None, None, clock.seconds() - started, status)]


def better_of(first: BoundsRow, second: BoundsRow) -> BoundsRow:
    """Combine two rows of one bounder: the tighter bound on each side, and the total time."""
    lower = max((row.lower for row in (first, second) if row.lower is not None), default=None)
    upper = min((row.upper for row in (first, second) if row.upper is not None), default=None)
    is_better = (second.lower, second.upper) != (None, None) and (second.lower == lower or second.upper == upper)
    status = second.status if is_better or (lower, upper) == (None, None) else first.status
    return BoundsRow(first.method, lower, upper, first.seconds + second.seconds, status, second.interrupted)


def _row(
    name: str, bounder: Bounder, model: Model, deadline: Deadline, done: float, takes_exact: bool = True
) -> BoundsRow:
    """Run one bounder as far as it goes, and keep its best bound on each side.

    A result with both sides at once is exact.
    """
    started = clock.seconds()
    lower, upper, status, is_interrupted = None, None, "found nothing", False
    report(f"bounding by {name}", done)
    try:
        for bound in bounder(model, deadline):
            if not takes_exact and bound.lower is not None and bound.upper is not None:
                if (lower, upper) == (None, None):
                    status = "left out: it is exact here, and exact was excluded"
                break
            if bound.lower is not None and (lower is None or bound.lower > lower):
                lower, status = bound.lower, bound.status
            if bound.upper is not None and (upper is None or bound.upper < upper):
                upper, status = bound.upper, bound.status
    except NotAffordableError as refusal:
        status = status if (lower, upper) != (None, None) else str(refusal)
    except SpectralzError as error:
        if name == "trivial":  # no bounder can do without the coupling's entries
            raise
        status = f"refused: {error}"
    except (KeyboardInterrupt, SystemError) as error:
        if name == "trivial" or not is_interrupt(error):  # nothing to return yet
            raise
        status = "interrupted" if (lower, upper) == (None, None) else f"{status}; then interrupted"
        is_interrupted = True
    return BoundsRow(name, lower, upper, clock.seconds() - started, status, is_interrupted)

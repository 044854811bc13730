"""Bracket log Z with all methods that prove bounds, within a time allowance.

Cheap bounds come first. A more expensive bound is computed only if its predicted cost fits into the rest of the
allowance. Bounds that have been found are kept, whatever happens later.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz._support.options import checked_names, checked_positive
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import SpectralzError, is_interrupt
from spectralz.methods.exact import Exact
from spectralz.portfolio import bounders, policy
from spectralz.portfolio.allowance import Allowance, NotAffordableError
from spectralz.portfolio.purse import operations_of_plan
from spectralz.result import Bounds, BoundsRow

if TYPE_CHECKING:
    from spectralz.model import Ising
    from spectralz.portfolio.bounders import Bounder

__all__ = ["better_of", "bracket"]


def bracket(model: Ising, budget: float, exclude: Any = (), *, tells_of_exact: bool = True) -> Bounds:
    """Return the best proven bounds on log Z found in ``budget`` seconds, with one row per bounder.

    The seconds are those of the clock of budgets (``_support/clock.py``). If the bounds leave a gap that ``exact``
    could close, one more row says so, unless ``tells_of_exact`` is False.

    An interrupt (Ctrl-C) ends the search but not the call: the bounds found so far are returned, with ``interrupted``
    set.
    """
    seconds = checked_positive(budget, "budget")
    left_out = checked_names(exclude, "exclude", bounders.NAMES)
    began = clock.seconds()
    rows = [_row("trivial", bounders.trivial, model, Allowance(math.inf), 0.0)]
    allowance = Allowance(seconds)
    names = [name for name in bounders.in_order(model) if name not in left_out]
    for k, name in enumerate(names):
        with using_threads(None, model.n):
            row = _row(
                name, bounders.BOUNDERS[name], model, allowance, k / len(names), takes_exact="exact" not in left_out
            )
        rows.append(row)
        if row.interrupted:
            break
    found = Bounds.best_of(tuple(rows), 0.0)
    if tells_of_exact and "exact" not in left_out and not rows[-1].interrupted and found.width > policy.CLOSED_BRACKET:
        rows += _row_of_exact(model, seconds)
    return Bounds.best_of(tuple(rows), clock.seconds() - began, interrupted=rows[-1].interrupted)


def _row_of_exact(model: Ising, budget: float) -> list[BoundsRow]:
    """Return a row without bounds with the predicted time of ``exact``; none if it cannot run or planning is slow."""
    from spectralz.kernels.elimination.best_order import SEARCH_TIME

    if 1e-9 * SEARCH_TIME * (model.n + model.edge_count) ** 2 > policy.EXACT_HINT_SHARE * budget:
        return []
    started = clock.seconds()
    plan = Exact().plan(model, most_search_seconds=policy.EXACT_HINT_SHARE * budget)
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
    name: str, bounder: Bounder, model: Ising, allowance: Allowance, done: float, *, takes_exact: bool = True
) -> BoundsRow:
    """Run one bounder as far as it goes, and keep its best bound on each side.

    A result with both sides at once is exact.
    """
    started = clock.seconds()
    lower, upper, status, is_interrupted = None, None, "found nothing", False
    report(f"bounding by {name}", done)
    try:
        for found in bounder(model, allowance):
            if not takes_exact and found.lower is not None and found.upper is not None:
                if (lower, upper) == (None, None):
                    status = "left out: it is exact here, and exact was excluded"
                break
            if found.lower is not None and (lower is None or found.lower > lower):
                lower, status = found.lower, found.status
            if found.upper is not None and (upper is None or found.upper < upper):
                upper, status = found.upper, found.status
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

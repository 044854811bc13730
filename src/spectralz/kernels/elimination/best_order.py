"""Choose an elimination order: the cheapest of several heuristics, improved by annealing where that pays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from spectralz._support import costs
from spectralz.kernels.elimination.annealed_order import MOST_SPINS_TO_ANNEAL, annealed_order, steps_in
from spectralz.kernels.elimination.min_fill import MOST_SPINS_FOR_MIN_FILL, min_fill, most_time_of_min_fill
from spectralz.kernels.elimination.order import ORDERS, degeneracy
from spectralz.kernels.elimination.sweep_order import swept
from spectralz.kernels.elimination.tree import EliminationTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spectralz.kernels.elimination.tree import Adjacency, Order

RULES = {**ORDERS, "swept": swept}
# Min-fill has many ties, and breaking them differently is sometimes ten times cheaper.
MOST_TRIES = 100
PATIENCE = 10  # tries in vain before giving up
# Annealing may take this share of the time of the elimination, and at most this many nanoseconds.
ANNEALING_SHARE = 0.25
MOST_ANNEALING_TIME = 2e9
# Fewer turns per spin than this are of no use.
FEWEST_TURNS = 200
ANNEALED_STARTS = 3


class Search(NamedTuple):
    """How much to spend on improving the orders of the heuristics.

    Attributes
    ----------
    steps
        How many turns of the elimination tree to try; None for as many as are worthwhile.
    most_time
        With None, at most this many nanoseconds, predicted and not measured.
    reach
        Wider orders than this are of no interest, even if none fits into memory.
    most_fill_time
        Where no other rule finds an order, min-fill is tried if it takes at most this many nanoseconds, predicted.
    report
        Called with the share that is done.
    """

    steps: int | None = None
    most_time: float = MOST_ANNEALING_TIME
    reach: int = 0
    most_fill_time: float = math.inf
    report: Callable[[float], None] = lambda _: None

    def for_each_of(self, count: int) -> Search:
        """Return this search with its effort divided by a number of parts."""
        steps = self.steps if self.steps is None else self.steps // count
        return self._replace(steps=steps, most_time=self.most_time / count)

    def steps_for(self, terms: float, n: int) -> int:
        """Return how many turns to try, given the table entries of the best order so far."""
        if n > MOST_SPINS_TO_ANNEAL:
            return 0
        if self.steps is not None:
            return self.steps
        steps = steps_in(min(ANNEALING_SHARE * costs.TABLE_ENTRY_NANOSECONDS * terms, self.most_time), n)
        return steps if steps >= FEWEST_TURNS * n else 0


NO_SEARCH = Search(steps=0)


def best_order(
    spins: Sequence[int], adjacency: Adjacency, max_entries: int, names: Iterable[str] = tuple(RULES)
) -> tuple[str, EliminationTree] | None:
    """Return the name and tree of the cheapest order for one connected component.

    None if every order found would keep more than ``max_entries`` table entries alive at once.
    """
    named = cheapest_order(spins, adjacency, max_entries, names, NO_SEARCH)
    return None if named is None or named[1].peak > max_entries else named


def cheapest_order(
    spins: Sequence[int], adjacency: Adjacency, max_entries: int, names: Iterable[str], search: Search
) -> tuple[str, EliminationTree] | None:
    """Return the name and tree of the cheapest order with at most ``max_entries`` alive, otherwise of the cheapest.

    None if all are wider than both ``max_entries`` and the reach of the search allow.
    """
    max_width = max_entries.bit_length() - 1
    widest = max(max_width, search.reach)
    cheap = costs.ORDER_SEARCH_NANOSECONDS * len(spins) ** 2
    orders: list[tuple[int, str, list[int]]] = []
    for name in names:
        if name == "min-fill" and not orders and most_time_of_min_fill(len(spins), widest) > search.most_fill_time:
            continue
        order = RULES[name](spins, adjacency, widest)
        if order is not None:
            orders.append((order[1], name, order[0]))
            if costs.TABLE_ENTRY_NANOSECONDS * order[1] <= cheap:  # looking for a better one would take longer
                break
    if not orders:
        return None
    if "min-fill" in names:
        order = _random_min_fill(spins, adjacency, widest, min(orders)[0])
        if order is not None:
            orders.append((order[1], "min-fill", order[0]))
    orders.sort()
    starts = [order for _, _, order in orders[:ANNEALED_STARTS]]
    annealed = improved(starts, adjacency, orders[0][0], max_width, search)
    candidates = [] if annealed is None else [("annealed", annealed)]
    for _, name, steps in orders:
        if candidates and candidates[-1][1].peak <= max_entries:
            return candidates[-1]
        candidates.append((name, EliminationTree.of_order(steps, adjacency)))
    fitting = [named for named in candidates if named[1].peak <= max_entries]
    return fitting[0] if fitting else min(candidates, key=lambda named: named[1].terms)


def order_from(
    name: str, order: list[int], adjacency: Adjacency, max_entries: int, search: Search
) -> tuple[str, EliminationTree] | None:
    """Return the name and tree of a given order, improved if the search asks for it; None if it is out of reach."""
    max_width = max_entries.bit_length() - 1
    tree = EliminationTree.of_order(order, adjacency)
    better = improved([order], adjacency, tree.terms, max_width, search)
    if better is not None:
        return "annealed", better
    return (name, tree) if tree.width <= max(max_width, search.reach) else None


def improved(
    starts: Sequence[Sequence[int]], adjacency: Adjacency, terms: int, max_width: int, search: Search
) -> EliminationTree | None:
    """Return the tree of an order better than the starts, of which the first takes ``terms``; None if none is found.

    An order is better if it takes less work, or about as much work and less memory.
    """
    spins = starts[0]
    if not search.steps_for(terms, len(spins)) or len(spins) < 3 or terms < 2 << degeneracy(spins, adjacency):
        return None  # not worth it, or as narrow as any order can be
    steps = search.steps_for(EliminationTree.of_order(spins, adjacency).effort, len(spins))
    if not steps:
        return None
    # More than one table is alive: the widest must be smaller than the memory.
    order = annealed_order(starts, adjacency, steps, max_width - 1, search.report)
    return None if order == list(spins) else EliminationTree.of_order(order, adjacency)


def _random_min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, terms: int) -> Order | None:
    """Try min-fill with random ties for up to a quarter of the time that the ``terms`` of the best order would take.

    That time is predicted and not measured, so that the choice is always the same.
    """
    tries = min(
        MOST_TRIES, costs.TABLE_ENTRY_NANOSECONDS * terms // (4 * costs.ORDER_SEARCH_NANOSECONDS * len(spins) ** 2)
    )
    if not tries or len(spins) > MOST_SPINS_FOR_MIN_FILL or terms < 2 << degeneracy(spins, adjacency):
        return None  # not worth it, too large, or as narrow as any order can be
    best: Order | None = None
    vain = 0
    for seed in range(tries):
        order = min_fill(spins, adjacency, max_width, seed)
        if order is not None and order[1] < terms:
            best, terms, vain = order, order[1], 0
        else:
            vain += 1
        if vain == PATIENCE:
            break
    return best

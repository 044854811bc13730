"""Choose which spins to fix so that the tables of the others fit into memory; uses the graph only.

With k spins fixed to each of their 2^k states in turn, every table that contained them is narrower. Everything is done
2^k times, even the parts that do not depend on these spins. So the spins chosen are those in many of the widest tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralz.kernels.elimination.best_order import NO_SEARCH, Search, improved
from spectralz.kernels.elimination.tree import EliminationTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.elimination.tree import Adjacency

# The search after each fixed spin takes one over this of the search for the whole, and begins from its order.
SEARCHES = 8


@dataclass(frozen=True)
class SlicedTree:
    """Spins that are fixed, and how the others are eliminated for each of their states."""

    fixed: tuple[int, ...]
    tree: EliminationTree

    @property
    def slices(self) -> int:
        """How many states the fixed spins have."""
        return 1 << len(self.fixed)

    @property
    def terms(self) -> int:
        """Table entries to be filled in all slices."""
        return self.slices * self.tree.terms


def sliced(
    start: SlicedTree,
    adjacency: Adjacency,
    fits: Callable[[EliminationTree], bool],
    max_terms: int,
    most: int,
    search: Search = NO_SEARCH,
) -> SlicedTree | None:
    """Fix one spin after the other, each time the one that leaves the fewest entries, until the tables fit.

    The order of the others is improved by ``search`` each time. None if more than ``most`` spins would have to be
    fixed, or more than ``max_terms`` entries be filled.
    """
    search = search.for_each_of(SEARCHES)
    slices = start
    graph = _without(adjacency, start.fixed)
    while not fits(slices.tree):
        if len(slices.fixed) >= most or slices.terms > max_terms or not slices.tree.order:
            return None
        spin = _most_wanted(slices.tree)
        graph = _without(graph, (spin,))
        order = [v for v in slices.tree.order if v != spin]
        tree = EliminationTree.of_order(order, graph)
        better = improved([order], graph, tree.terms, max(tree.width - 1, 1), search) if order else None
        if better is not None and (better.terms < tree.terms or better.peak < tree.peak):
            tree = better
        slices = SlicedTree((*slices.fixed, spin), tree)
    return slices if slices.terms <= max_terms else None


def _most_wanted(tree: EliminationTree) -> int:
    """Return the spin whose tables have the most entries in total, which halve if it is fixed; the first in a tie."""
    entries: dict[int, int] = {}
    for separator in tree.separators:
        for v in separator:
            entries[v] = entries.get(v, 0) + (1 << len(separator))
    return min(entries, key=lambda v: (-entries[v], v), default=tree.order[0])


def _without(adjacency: Adjacency, spins: tuple[int, ...]) -> Adjacency:
    """Return the graph without some spins."""
    left = list(adjacency)
    for spin in spins:
        for u in adjacency[spin]:
            left[u] = left[u] - {spin}
        left[spin] = set()
    return left

"""The exact answer: by bucket elimination if its tables fit into memory, or by enumeration if there are few states."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.options import (
    bytes_in_words,
    checked_bytes,
    choice,
    count,
    option,
    or_none,
    spin_order,
    threads_option,
)
from spectralz._support.progress import report, reporter_of
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, TooLargeError, refuse_impossible
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.outcome import exact_outcome, impossible_outcome, with_kind_of_means

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from spectralz.kernels.elimination.best_order import Search
    from spectralz.kernels.elimination.marginals import ProgramMarginals
    from spectralz.kernels.elimination.segments import Segments
    from spectralz.kernels.elimination.slicing import SlicedTree
    from spectralz.kernels.elimination.tree import Adjacency, EliminationTree
    from spectralz.model import Coupling, FloatArray, Model

ALGORITHMS = ("auto", "elimination", "enumeration")
ORDER_NAMES = ("best", "min-degree", "min-fill", "banded", "swept", "cotengra")
ENTRY_BYTES = 8
# Enumeration reports its progress after this many blocks of 2^10 states, a tenth of a second.
BLOCKS_PER_REPORT = 1 << 14
# In larger components compiled code first checks whether any order is narrow enough.
MOST_SPINS_UNSCREENED = 20_000
SPINS_NEAR = 20_000
# Orders whose tables do not fit are considered too, since they may be improved or sliced: up to this many spins wider
# than what max_terms allows, since annealing seldom gains more, and never wider than the second number.
WIDTH_TO_GAIN = 8
WIDEST_TO_IMPROVE = 48
# Fixed spins, by default and at most: there are 2^k slices to keep track of.
MOST_SLICED = 20
# Listing states takes about half as long per state as elimination per table entry.
TERMS_PER_STATE = 0.5
# Means of slices need more memory, hence more slices; these may take this many times the work.
TERMS_FOR_MEANS = 16
# Largest change of the log-probabilities of samples by rounding.
LARGEST_SAMPLING_ERROR = 1e-6


@dataclass(frozen=True)
class ExactPlan:
    """Describe how the exact answer would be computed and what it would cost, before anything is allocated.

    Attributes
    ----------
    tree
        The elimination tree of the spins to eliminate.
    enumerated
        The components whose states are listed instead, as lists of spins.
    orders
        The elimination orders chosen, one name for each kind that occurs.
    refusal
        Why the options do not allow it, or None.
    sliced
        The components in which some spins are fixed to all their states in turn and the others are eliminated.
    least
        Where it is refused: spins that the widest table of any order would have at least.
    """

    tree: EliminationTree
    enumerated: tuple[list[int], ...]
    orders: tuple[str, ...]
    refusal: str | None = None
    sliced: tuple[SlicedTree, ...] = ()
    least: int = 0

    @property
    def width(self) -> int:
        """Spins in the widest table; if it is refused, so many at least."""
        return max([self.tree.width, self.least, *(slices.tree.width for slices in self.sliced)])

    @property
    def terms(self) -> int:
        """Table entries to fill, in all slices, and states to list; if it is refused, so many at least."""
        listed = sum(1 << len(spins) for spins in self.enumerated)
        refused = 2 << self.least if self.least else 0
        return self.tree.terms + sum(slices.terms for slices in self.sliced) + listed + refused

    @property
    def effort(self) -> float:
        """The same, but spins that are summed out together count as one."""
        return self.terms - self.tree.terms + self.tree.effort

    @property
    def memory(self) -> int:
        """Bytes that log Z needs, in one thread; if it is refused, so many at least."""
        refused = 1 << self.least if self.least else 0
        return ENTRY_BYTES * max([self.tree.peak, refused, *(slices.tree.peak for slices in self.sliced)])

    @cached_property
    def segments(self) -> Segments:
        """Plan of the reverse pass that computes the marginals."""
        from spectralz.kernels.elimination.segments import plan_segments

        return plan_segments(self.tree)

    def describe(self) -> str:
        """Say in a few words what will be done."""
        parts = []
        if self.tree.order:
            by = f" by {' and '.join(self.orders)} order" if self.orders else ""
            parts.append(f"eliminated {len(self.tree.order)} spins{by}, widest table 2^{self.tree.width} entries")
        for tree, fixed in ((slices.tree, len(slices.fixed)) for slices in self.sliced):
            parts.append(
                f"eliminated {len(tree.order)} spins for each of the 2^{fixed} states of {fixed} others, "
                f"widest table 2^{tree.width} entries"
            )
        if self.enumerated:
            apart = f" of {len(self.enumerated)} components apart" if len(self.enumerated) > 1 else ""
            parts.append(f"enumerated 2^{max(map(len, self.enumerated))} states{apart}")
        return "; ".join(parts) or "no spins"


@dataclass(frozen=True, kw_only=True)
class Exact(Method):
    r"""Compute the exact log Z, marginals and samples, where they are tractable.

    With the log-weight w, and with spins numbered in the order of elimination,

    .. math::

       \log Z = \log \sum_{x_n = \pm 1} \cdots \sum_{x_2 = \pm 1} \sum_{x_1 = \pm 1} e^{w(x)}.

    Bucket elimination sums out one spin after the other, in logs, along the cheapest of several orders. Its cost is
    exponential only in the widest table on the way: about the side of a grid, the smaller layer of an RBM, all
    spins but one of a complete graph. If the tables do not fit into memory, some spins are fixed to all their states
    in turn, slice by slice. Enumeration lists the states and needs no memory. Connected components are solved
    separately. ``lower`` and ``upper`` enclose log Z with all rounding errors.

    Parameters
    ----------
    algorithm
        ``"elimination"``, ``"enumeration"``, or ``"auto"``: elimination wherever its tables fit.
    order
        ``"min-fill"``, ``"min-degree"``, ``"banded"`` (a front swept through the graph, the best on grids),
        ``"swept"`` (row by row or along other directions), or ``"best"``, the cheapest of these, improved by a
        search where that pays; ``"cotengra"``, the order of a contraction found by that package (extra ``orders``); or
        a list of all spins, in the order of elimination.
    search
        How many changes to the first order to try in order to improve it; ten million take one to two seconds.
        None tries as many as pay with ``"best"``, and none with other orders.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``; refused before anything is allocated.
    max_terms
        Most table entries and states to sum over; 2^36 take minutes.
    max_sliced
        Most spins to fix if tables do not fit into ``max_memory``: k spins take more than 2^k times the work of the
        tables that fit, but no more memory. By default as many as ``max_terms`` allows; 0 for none.
    threads
        Most threads for slices; by default all cores. Each has its own tables within ``max_memory``.

    Raises
    ------
    TooLargeError
        If the model needs more than ``max_memory`` or ``max_terms``.

    Examples
    --------
    >>> import spectralz as sz
    >>> result = sz.log_z(sz.generators.grid(side=15, strength=1.0, seed=0), "exact")
    >>> result.kind, result.details["width"]
    (<Kind.EXACT: 'exact'>, 15)
    >>> result.lower <= result.log_z <= result.upper
    True
    >>> sliced = sz.log_z(sz.generators.grid(side=15, strength=1.0, seed=0), "exact", max_memory="256 KiB")
    >>> sliced.details["sliced"] > 0, abs(sliced.log_z - result.log_z) < 1e-9
    (True, True)
    """

    algorithm: str = option("auto", choice(ALGORITHMS))
    order: str | Sequence[int] = option("best", spin_order(ORDER_NAMES))
    search: int | None = option(None, or_none(count(least=0)))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    max_terms: int = option(2**36, count(least=1))
    max_sliced: int | None = option(None, or_none(count(least=0)))
    threads: int | None = threads_option()

    name: ClassVar[str] = "exact"
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True

    def _in_threads(self, model: Model) -> AbstractContextManager[None]:
        # There is no linear algebra here, so its libraries need not be looked up and limited.
        return using_threads(self.threads)

    def plan(self, model: Model, *, most_search_seconds: float = math.inf) -> ExactPlan:
        """Decide how to solve ``model`` and predict what it costs, without solving it.

        The search for a better order takes at most ``most_search_seconds``, by a count of operations and not by the
        clock, unless the option ``search`` sets its length.
        """
        from spectralz.kernels.elimination.order import adjacency_of
        from spectralz.kernels.elimination.tree import forest_of, lone_spins

        if not isinstance(self.order, str) and len(self.order) != model.n:
            raise OptionError(f"order names {len(self.order)} spins; the model has {model.n}, name each once")
        model = self._with_tables(model)
        entries = self._max_entries
        widest = max([model.higher.largest - 1, 0, *(len(table.scope) - 1 for table in model.constraints)])
        least = widest if 1 << widest > max(entries, self.max_terms) else model.connections.least_width
        if 1 << least > max(entries, self.max_terms):
            return ExactPlan(forest_of([]), (), (), self._refusal(least + 1, least, entries, "at least "), least=least)
        wide = self._too_wide(model, entries)
        if wide:
            return ExactPlan(forest_of([]), (), (), self._refusal(wide, 0, entries), least=least)
        adjacency = adjacency_of(model.n, model.graph)
        components = [component.tolist() for component in model.components()]
        trees = [lone_spins([spins[0] for spins in components if len(spins) == 1])]
        search = self._search(most_search_seconds)
        enumerated, chosen, sliced = [], [], []
        refusal, wanting = None, 0
        for spins in (spins for spins in components if len(spins) > 1):
            order, least = self._find_order(spins, adjacency, entries, search)
            if order is not None and order[1].peak <= entries:
                chosen.append(order[0])
                trees.append(order[1])
                continue
            slices = None if order is None else self._slice(order[1], adjacency, entries, search)
            states = 1 << len(spins) if self.algorithm != "elimination" and not model.constraints else math.inf
            if slices is not None and slices.terms < TERMS_PER_STATE * states:
                sliced.append(slices)
            elif states <= self.max_terms:
                enumerated.append(spins)
            else:
                refusal, wanting = self._refusal(len(spins), least, entries), least
                break
        orders = tuple(dict.fromkeys(chosen))
        plan = ExactPlan(forest_of(trees), tuple(enumerated), orders, refusal, tuple(sliced), wanting)
        if refusal is not None or plan.terms <= self.max_terms:
            return plan
        refusal = f"exact needs {plan.terms:.3g} terms and max_terms is {self.max_terms:.3g}; raise max_terms"
        return replace(plan, refusal=refusal)

    def _with_tables(self, model: Model) -> Model:
        """Return the model with its constraints as tables, if the options suit it."""
        from spectralz.parts.elimination.constrained import with_tables

        if not model.constraints:
            return model
        if self.algorithm == "enumeration":
            raise OptionError("enumeration lists all states, and this model has constraints; ask for elimination")
        wide = with_tables(model)
        if not isinstance(self.order, str) and wide.n > model.n:
            raise OptionError("order is for models whose constraints have at most four spins, or are tables")
        return wide

    @property
    def _max_entries(self) -> int:
        """Most table entries that may be alive at once."""
        return min(int(self.max_memory) // ENTRY_BYTES, self.max_terms)

    def _search(self, most_seconds: float) -> Search:
        """Return how long to search for a better order, and up to which width orders are considered."""
        from spectralz.kernels.elimination.best_order import MOST_ANNEALING_TIME, Search

        steps = 0 if self.search is None and self.order != "best" else self.search
        reach = min(self.max_terms.bit_length() - 1 + WIDTH_TO_GAIN, WIDEST_TO_IMPROVE)
        return Search(
            steps=steps,
            most_time=min(1e9 * most_seconds, MOST_ANNEALING_TIME),
            reach=reach if steps != 0 or self.max_sliced != 0 else 0,
            most_fill_time=1e9 * most_seconds,
            report=reporter_of("looking for an order"),
        )

    def _find_order(
        self, spins: list[int], adjacency: Adjacency, entries: int, search: Search
    ) -> tuple[tuple[str, EliminationTree] | None, int]:
        """Return the name and tree of the order for one component, or None; and the least width of any order."""
        from spectralz.kernels.elimination.best_order import RULES, cheapest_order, order_from
        from spectralz.kernels.elimination.order import degeneracy

        if self.algorithm == "enumeration":
            return None, 0
        # No order is narrower than the degeneracy, which is at most the largest degree.
        widest = max(entries.bit_length() - 1, search.reach)
        least = max(len(adjacency[spin]) for spin in spins)
        if 1 << least > entries:
            least = degeneracy(spins, adjacency)
        if least > widest:
            return None, least
        if self.order == "cotengra":
            from spectralz.kernels.elimination.contraction import contraction_order

            named = "cotengra", contraction_order(spins, adjacency)
        elif not isinstance(self.order, str):
            inside = set(spins)
            named = "given", [v for v in self.order if v in inside]
        else:
            names = tuple(RULES) if self.order == "best" else (self.order,)
            return cheapest_order(spins, adjacency, entries, names, search), least
        return order_from(*named, adjacency, entries, search), least

    def _slice(self, tree: EliminationTree, adjacency: Adjacency, entries: int, search: Search) -> SlicedTree | None:
        """Return which spins of a component to fix so that its tables fit, or None if they are too many."""
        from spectralz.kernels.elimination.slicing import SlicedTree, sliced

        most = MOST_SLICED if self.max_sliced is None else min(self.max_sliced, MOST_SLICED)
        return sliced(SlicedTree((), tree), adjacency, lambda tree: tree.peak <= entries, self.max_terms, most, search)

    def _too_wide(self, model: Model, entries: int) -> int:
        """Return the size of a large component for which no order is narrow enough, or 0 if none is known to be.

        There, the search for an order alone would take minutes and gigabytes.
        """
        from scipy.sparse.csgraph import breadth_first_order

        from spectralz.kernels.elimination.screening import count_min_degree, has_narrow_front

        if self.algorithm == "enumeration" or model.n <= MOST_SPINS_UNSCREENED:
            return 0
        max_width = entries.bit_length() - 1
        for spins in model.components():
            if len(spins) > MOST_SPINS_UNSCREENED:
                graph = model.connections
                storage = graph if len(spins) == model.n else graph.among(spins)
                if not storage.is_sparse or has_narrow_front(*_rows(storage), max_width):
                    continue
                # What is wide in a part of the graph is wide in the whole.
                near = np.sort(breadth_first_order(storage.matrix, 0, return_predecessors=False)[:SPINS_NEAR])
                for part in (storage.among(near), storage):
                    width = count_min_degree(*_rows(part), max_width)
                    if width.is_known and not width.is_narrow:
                        return len(spins)
        return 0

    def _refusal(self, n: int, least: int, entries: int, at_least: str = "") -> str:
        parts = []
        if self.algorithm != "enumeration":
            if 1 << least > entries:
                size = bytes_in_words(ENTRY_BYTES << least)
                need = f"a table over at least {least} spins, 2^{least} entries or {size}, whatever the order"
            else:
                need = f"more than {bytes_in_words(ENTRY_BYTES * entries)} of tables with every order tried"
                if self.max_sliced != 0:
                    need += f", and slices of that size more than 2^{math.log2(self.max_terms):.3g} terms"
            parts.append(f"elimination needs {need} (max_memory is {bytes_in_words(int(self.max_memory))})")
        if self.algorithm != "elimination":
            limit = math.log2(self.max_terms)
            parts.append(f"enumeration needs {at_least}2^{n} terms (max_terms is 2^{limit:.3g})")
        return (
            f"exact is out of reach for a component of {at_least}{n} spins: {'; '.join(parts)}. "
            "Raise max_memory or max_terms, or ask for an approximate method"
        )

    def _checked_plan(self, model: Model) -> ExactPlan:
        plan = self.plan(model)
        if plan.refusal is not None:
            raise TooLargeError(plan.refusal)
        return plan

    def _solve(self, model: Model) -> Outcome:
        return self.solve_plan(model, self._checked_plan(model))

    def solve_plan(self, model: Model, plan: ExactPlan) -> Outcome:
        """Carry out a plan that has no refusal."""
        from spectralz.kernels.elimination.forward import log_z_of_program
        from spectralz.parts.elimination.constrained import program_of
        from spectralz.parts.elimination.slices import log_z_of_slices

        model = self._with_tables(model)
        plan = self._listed_if_quicker(model, plan)
        program = program_of(plan.tree, model)
        spread = np.zeros(program.steps if model.constraints else 0)
        values = [log_z_of_program(program, reporter_of("eliminating spins"), spread)] if program.steps else []
        rounding = program.rounding_bound(spread if len(spread) else None)
        sums = [log_z_of_slices(model, slices, int(self.max_memory)) for slices in plan.sliced]
        sums += [_enumerated(model.submodel(spins), moments=False)[:2] for spins in plan.enumerated]
        for value, lost in sums:
            values.append(value)
            rounding += lost
        return self._outcome(model, plan, values, rounding)

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        return self.solve_marginals_of_plan(model, self._checked_plan(model))

    def solve_marginals_of_plan(self, model: Model, plan: ExactPlan) -> MarginalOutcome:
        """Carry out a plan that has no refusal forwards and back, if there is enough memory for both."""
        from spectralz.kernels.elimination.marginals import marginals_of_program
        from spectralz.parts.elimination.constrained import program_of

        n = model.n
        model = self._with_tables(model)
        plan = self._listed_if_quicker(model, plan)
        if plan.segments.memory > int(self.max_memory):
            raise TooLargeError(
                f"exact marginals need {bytes_in_words(plan.segments.memory)} of tables and max_memory is "
                f"{bytes_in_words(int(self.max_memory))}; log Z alone needs {bytes_in_words(plan.memory)}. "
                "Raise max_memory"
            )
        edges = model.edges()[0]
        program = program_of(plan.tree, model)
        spread = np.zeros(program.steps if model.constraints else 0)
        tell = reporter_of("eliminating spins, forwards and back")
        sums = marginals_of_program(program, plan.segments, model.n, len(edges), tell, model.higher.number, spread)
        values, rounding = [sums.log_z], program.rounding_bound(spread if len(spread) else None)
        up, down, pair_mean = sums.up, sums.down, sums.pair_mean
        for slices in plan.sliced:
            means, lost = self._means_of_slices(model, slices)
            values.append(means.log_z)
            rounding += lost
            up, down, pair_mean = up + means.up, down + means.down, pair_mean + means.pair_mean
        for spins in plan.enumerated:
            log_z, lost, mean, pairs, products = _enumerated(model.submodel(spins), moments=True)
            values.append(log_z)
            rounding += lost
            up[spins], down[spins] = (1.0 + mean) / 2.0, (1.0 - mean) / 2.0
            local = np.full(model.n, -1)
            local[spins] = np.arange(len(spins))
            i, j = local[edges].T
            inside = np.flatnonzero(i >= 0)
            pair_mean[inside] = pairs[j[inside], i[inside]]
            first = model.higher.spin[model.higher.start[:-1]]
            pair_mean[len(edges) + np.flatnonzero(local[first] >= 0)] = products
        refuse_impossible(min(values))
        outcome = self._outcome(model, plan, values, rounding)
        # Log-weights with an error of at most r change a mean by at most 2 r, and every digit if they are huge.
        outcome, kind = with_kind_of_means(outcome, 2.0 * (rounding + model.rounding_of_terms))
        mean, probability = up[:n] - down[:n], np.column_stack([down, up])[:n]
        return MarginalOutcome(probability, mean, pair_mean, kind, outcome).within_limits()

    def _listed_if_quicker(self, model: Model, plan: ExactPlan) -> ExactPlan:
        """Return a plan that lists the states of a model with higher terms, if its tables are hardly fewer.

        Each term is added to a table, but from one state to the next few terms change.
        """
        from spectralz.kernels.elimination.tree import forest_of

        is_free = self.algorithm == "auto" and self.order == "best" and model.higher.number and not model.constraints
        if not is_free or plan.tree.terms < TERMS_PER_STATE * 2.0**model.n:
            return plan
        return ExactPlan(forest_of([]), (list(range(model.n)),), ())

    def _means_of_slices(self, model: Model, slices: SlicedTree) -> tuple[ProgramMarginals, float]:
        """Return the means of a sliced component, with more spins fixed if the reverse pass needs more memory."""
        from spectralz.kernels.elimination.order import adjacency_of
        from spectralz.kernels.elimination.segments import plan_segments
        from spectralz.kernels.elimination.slicing import sliced
        from spectralz.parts.elimination.slices import means_of_slices

        limit, adjacency = int(self.max_memory), adjacency_of(model.n, model.graph)
        terms, search = max(self.max_terms, TERMS_FOR_MEANS * slices.terms), self._search(math.inf)
        further = sliced(
            slices, adjacency, lambda tree: plan_segments(tree).memory <= limit, terms, MOST_SLICED, search
        )
        if further is None:
            raise TooLargeError(
                f"exact marginals need more than {bytes_in_words(limit)} of tables, max_memory; log Z alone needs "
                f"{bytes_in_words(ENTRY_BYTES * slices.tree.peak)} with {len(slices.fixed)} spins fixed. "
                "Raise max_memory"
            )
        return means_of_slices(model, further, plan_segments(further.tree), limit)

    def refuses_samples(self, plan: ExactPlan) -> str | None:
        """Say why a plan cannot be used to draw states, or None if it can."""
        from spectralz.kernels.elimination.forward import sampling_entries

        if plan.refusal is not None:
            return plan.refusal
        memory = ENTRY_BYTES * sampling_entries(plan.tree)
        if plan.enumerated or plan.sliced or memory > int(self.max_memory):
            need = "tables that do not fit" if plan.enumerated or plan.sliced else bytes_in_words(memory)
            return f"exact samples need {need}; max_memory is {bytes_in_words(int(self.max_memory))}: raise it"
        return None

    def _sample(self, model: Model, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        plan = self.plan(model)
        refusal = self.refuses_samples(plan)
        if refusal is not None:
            raise TooLargeError(refusal)
        return self.sample_plan(model, plan, size, rng)

    def sample_plan(self, model: Model, plan: ExactPlan, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw states by a plan that `refuses_samples` does not refuse."""
        from spectralz.kernels.elimination.forward import sample_program
        from spectralz.parts.elimination.constrained import program_of

        n = model.n
        model = self._with_tables(model)
        program = program_of(plan.tree, model)
        if program.rounding_bound() + model.rounding_of_terms > LARGEST_SAMPLING_ERROR:
            raise TooLargeError("the weights are so large that rounding would decide the states; scale the model down")
        return sample_program(program, model.n, size, rng, reporter_of("eliminating spins"))[:, :n]

    def heaviest_of_plan(self, model: Model, plan: ExactPlan, count: int) -> tuple[NDArray[np.int8], float, float]:
        """Return the heaviest states, by a plan that `refuses_samples` does not refuse.

        Beside them: the largest log-weight, without constants, and a bound on its rounding error. Without any state
        that is allowed, it is minus infinity.
        """
        from spectralz.kernels.elimination.maxima import heaviest_states
        from spectralz.parts.elimination.constrained import program_of

        n = model.n
        model = self._with_tables(model)
        program = program_of(plan.tree, model)
        states, largest = heaviest_states(program, model.n, count, reporter_of("eliminating spins"))
        return states[:, :n], largest, program.rounding_bound()

    def _outcome(self, model: Model, plan: ExactPlan, values: Sequence[float], rounding: float) -> Outcome:
        if -math.inf in values:
            return impossible_outcome(f"exact: {plan.describe()}")
        log_z = math.fsum([*values, model.constant])
        # Each part is a rounded number, and so is their sum.
        rounding += 2.0 * UNIT_ROUNDOFF * (abs(log_z) + math.fsum(map(abs, values))) + model.rounding
        details = {
            "algorithm": "enumeration" if plan.enumerated and not (plan.tree.order or plan.sliced) else "elimination",
            "orders": plan.orders,
            "width": plan.width,
            "terms": plan.terms,
            "memory": plan.memory,
            "sliced": sum(len(slices.fixed) for slices in plan.sliced),
            "rounding": rounding,
        }
        return exact_outcome(log_z, rounding, f"exact: {plan.describe()}", details=details)


def _rows(storage: Coupling) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    rows = storage.for_kernels()
    return rows.indptr, rows.indices


def _enumerated(model: Model, *, moments: bool) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
    """Sum over all states of one component.

    Returns log Z, its rounding error, the means, those of pairs below the diagonal, and those of terms of more spins.
    """
    from spectralz.kernels.enumeration import BLOCK_SPINS, combine, enumerate_blocks, rounding_bound

    n = model.n
    (i, j), J = model.edges()[0].T, model.edges()[1]
    coupling = np.zeros((n, n))
    coupling[j, i] = J
    blocks = 1 << max(n - BLOCK_SPINS, 0)
    terms = model.higher
    sums = (-math.inf, np.zeros(n + 1), np.zeros((n, n)), np.zeros(terms.number))
    for begin in range(0, blocks, BLOCKS_PER_REPORT):
        end = min(begin + BLOCKS_PER_REPORT, blocks)
        sums = combine(sums, enumerate_blocks(model.field, coupling, begin, end, moments, terms))
        report("listing states", end / blocks)
    largest, first, second, third = sums
    total = float(np.abs(model.field).sum() + np.abs(J).sum()) + terms.total
    rounding, whole = rounding_bound(n, total, terms.number), first[n]
    return largest + math.log(whole), rounding, first[:n] / whole, second / whole, third / whole

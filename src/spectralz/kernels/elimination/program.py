"""Bucket elimination in logs, laid out as arrays for compiled passes.

A :class:`Program` is an elimination tree with its numbers. Step t sums out spin v: for every state s of its separator

    table_t(s) = log sum over x_v of exp( x_v (field_v + sum_j J_vj s_j) + sum over children c of table_c(x_v, s) ),

plus x_v times the terms of more spins that v is the first of, each a number times the product of its other spins. Bit k
of the index s is the k-th spin of the separator in elimination order (0 for -1, 1 for +1). In a child's table v is then
always bit 0. Every table is shifted to have table(0) = 0, and the shifts add up to log Z. So tables, and their rounding
errors, stay as large as the local couplings, however large the model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.elimination.tables import EXCLUDED
from spectralz.kernels.forest import runs
from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray
    from spectralz.kernels.elimination.tree import EliminationTree

# Progress is reported, and an interrupt noticed, after about this many table entries (a tenth of a second).
ENTRIES_PER_REPORT = 1 << 24

Report = Callable[[float], None]
# The spins of a constraint, and which of their states it allows: one axis per spin, index 1 for +1.
Allowed: TypeAlias = "tuple[tuple[int, ...], BoolArray]"


class Steps(NamedTuple):
    """The arrays of a :class:`Program` that all passes read, as a named tuple for compiled functions."""

    field: FloatArray
    width: IntArray
    slot: IntArray
    pair_start: IntArray
    pair_bit: IntArray
    pair_weight: FloatArray
    child_start: IntArray
    child_slot: IntArray
    child_mask: IntArray
    term_start: IntArray
    term_mask: IntArray
    term_weight: FloatArray
    table_start: IntArray
    table_mask: IntArray
    table_at: IntArray
    table_entry: FloatArray


@dataclass(frozen=True)
class Program:
    """The steps of an elimination as arrays; those of step t are at ``start[t]:start[t + 1]`` of the ragged ones."""

    spin: IntArray
    field: FloatArray
    width: IntArray
    slot: IntArray
    pair_start: IntArray
    pair_bit: IntArray  # where the other spin stands in the separator
    pair_weight: FloatArray
    pair_edge: IntArray  # which edge of the model it is
    pair_end: IntArray  # which step eliminates the other spin
    child_start: IntArray
    child_slot: IntArray
    child_mask: IntArray  # which spins of the separator are also in the child's table
    term_start: IntArray  # terms of three and more spins
    term_mask: IntArray  # where the other spins stand in the separator
    term_weight: FloatArray
    term_index: IntArray  # which of these terms of the model it is
    term_end: IntArray  # which step eliminates the last of its spins
    table_start: IntArray  # tables of constraints
    table_mask: IntArray  # where the other spins stand in the separator
    table_at: IntArray  # where its entries begin
    table_entry: FloatArray  # 0 for an allowed state, EXCLUDED for others
    table_outside: tuple[tuple[int, ...], ...]  # its spins that are not eliminated, the highest bits of its states
    separator_start: IntArray
    separator_spin: IntArray  # the spins of each step's separator, bit 0 first
    heights: IntArray  # of the stack, before each step and after the last
    peak: int

    @classmethod
    def of_tree(
        cls,
        tree: EliminationTree,
        edges: IntArray,
        weights: FloatArray,
        field: FloatArray,
        higher: Terms = NO_TERMS,
        allowed: Sequence[Allowed] = (),
    ) -> Program:
        """Lay out a tree's steps with the weights ``J`` of the edges, the fields, and the terms of more spins.

        Of a term that has spins outside of the tree, the others are left. ``allowed`` are the tables of constraints,
        each with its spins; those without a spin of the tree are left out.
        """
        steps = len(tree.order)
        rank = np.full(len(field), -1, dtype=np.int64)
        rank[tree.order] = np.arange(steps)
        pairs_of: list[list[int]] = [[] for _ in range(steps)]
        first, second = rank[edges[:, 0]], rank[edges[:, 1]]
        inside = np.flatnonzero((first >= 0) & (second >= 0))
        for edge, step in zip(inside.tolist(), np.minimum(first, second)[inside].tolist(), strict=True):
            pairs_of[step].append(edge)
        pair_start, pair_bit, pair_edge, pair_end = [0], [], [], []
        child_start, child_slot, child_mask = [0], [], []
        for step, separator in enumerate(tree.separators):
            bit_of = {v: bit for bit, v in enumerate(separator)}
            for edge in pairs_of[step]:
                other = int(edges[edge, 1] if first[edge] == step else edges[edge, 0])
                pair_bit.append(bit_of[other])
                pair_edge.append(edge)
                pair_end.append(rank[other])
            for child in tree.children[step]:
                child_slot.append(child)
                child_mask.append(sum(1 << bit_of[v] for v in tree.separators[child][1:]))
            pair_start.append(len(pair_bit))
            child_start.append(len(child_slot))
        edge_index = np.array(pair_edge, dtype=np.int64)
        terms = _TermSteps.of(tree, rank, higher)
        tables = _TableSteps.of(tree, rank, allowed)
        return cls(
            spin=np.array(tree.order, dtype=np.int64),
            field=field[tree.order].astype(np.float64),
            width=np.array([len(s) for s in tree.separators], dtype=np.int64),
            slot=np.array(tree.slots, dtype=np.int64),
            pair_start=np.array(pair_start, dtype=np.int64),
            pair_bit=np.array(pair_bit, dtype=np.int64),
            pair_weight=weights[edge_index],
            pair_edge=edge_index,
            pair_end=np.array(pair_end, dtype=np.int64),
            child_start=np.array(child_start, dtype=np.int64),
            child_slot=np.array(child_slot, dtype=np.int64),
            child_mask=np.array(child_mask, dtype=np.int64),
            term_start=terms.start,
            term_mask=terms.mask,
            term_weight=higher.weight[terms.which],
            term_index=terms.which,
            term_end=terms.end,
            **{f"table_{name}": value for name, value in tables._asdict().items()},
            separator_start=np.cumsum([0, *(len(separator) for separator in tree.separators)]),
            separator_spin=np.array([v for separator in tree.separators for v in separator], dtype=np.int64),
            heights=np.array(tree.stack_heights(), dtype=np.int64),
            peak=tree.peak,
        )

    @property
    def steps(self) -> int:
        """How many spins are eliminated."""
        return len(self.spin)

    def for_kernels(self) -> Steps:
        """Return the arrays that the compiled passes read."""
        return Steps(*(getattr(self, name) for name in Steps._fields))

    def runs(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Divide steps begin to end into runs that take about a tenth of a second each."""
        sizes = np.left_shift(np.int64(1), self.width[begin:end])
        return [(begin + a, begin + b) for a, b in runs(sizes, ENTRIES_PER_REPORT)]

    def entries(self, begin: int, end: int) -> int:
        """Return the entries written by steps begin to end if all tables are kept, with room for one that is not."""
        sizes = np.left_shift(np.int64(1), self.width[begin:end])
        has_place = self.slot[begin:end] == np.arange(begin, end)
        return int(sizes[has_place].sum() + sizes.max(initial=0))

    def rounding_bound(self, spread: FloatArray | None = None) -> float:
        """Bound the rounding error of log Z.

        Log-sum-exp is non-expansive, so errors only add up. A step with d pairs and c children makes d + c + 4
        roundings of numbers no larger than its own weights, log 2 and its children's tables; one without children makes
        up to 24 more, if its spin is summed out together with 15 others (``leaves.py``). A table's entries differ from
        the first one by at most twice the weights |J| that join its separator to the eliminated spins; they are rounded
        once more where a table is added to another. With constraints, states of the separator may allow different
        states of all that was eliminated: then entries differ by all of its weights, and by the log of the number of
        its states; or by what ``spread``, the largest entry of each table, says.
        """
        return 1.01 * UNIT_ROUNDOFF * _rounding_units(self, spread)


class _TermSteps(NamedTuple):
    """At which step each term is taken in, with which other spins; ``start`` to ``end`` as in :class:`Program`."""

    start: IntArray
    mask: IntArray
    which: IntArray
    end: IntArray

    @classmethod
    def of(cls, tree: EliminationTree, rank: IntArray, higher: Terms) -> _TermSteps:
        taken: list[tuple[int, int, int, int]] = []
        bits: dict[int, dict[int, int]] = {}
        for k, scope in enumerate(higher.scopes()):
            steps = sorted((int(rank[v]), v) for v in scope if rank[v] >= 0)
            if steps:
                first = steps[0][0]
                bit_of = bits.setdefault(first, {v: bit for bit, v in enumerate(tree.separators[first])})
                taken.append((first, sum(1 << bit_of[v] for _, v in steps[1:]), k, steps[-1][0]))
        step, mask, which, end = np.array(sorted(taken), dtype=np.int64).reshape(-1, 4).T
        start = np.concatenate([[0], np.cumsum(np.bincount(step, minlength=len(tree.order)))]).astype(np.int64)
        return cls(start, *(np.ascontiguousarray(array) for array in (mask, which, end)))


class _TableSteps(NamedTuple):
    """At which step the table of each constraint is taken in; as in :class:`Program`, where ``table_`` is before it."""

    start: IntArray
    mask: IntArray
    at: IntArray
    entry: FloatArray
    outside: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, tree: EliminationTree, rank: IntArray, allowed: Sequence[Allowed]) -> _TableSteps:
        taken = []
        for scope, table in allowed:
            inside = sorted((v for v in scope if rank[v] >= 0), key=rank.__getitem__)
            if inside:
                outside = [v for v in scope if rank[v] < 0]
                separator = tree.separators[int(rank[inside[0]])]
                mask = sum(1 << separator.index(v) for v in inside[1:])
                # The first axis is the highest bit of a state.
                states = table.transpose([list(scope).index(v) for v in (inside + outside)[::-1]])
                taken.append((int(rank[inside[0]]), mask, np.where(states, 0.0, EXCLUDED).ravel(), tuple(outside)))
        taken.sort(key=lambda one: one[0])
        counts = np.bincount(np.array([step for step, *_ in taken], dtype=np.int64), minlength=len(tree.order))
        entries = [entries for _, _, entries, _ in taken]
        return cls(
            start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            mask=np.array([mask for _, mask, _, _ in taken], dtype=np.int64),
            at=np.cumsum([0, *map(len, entries)])[:-1].astype(np.int64),
            entry=np.concatenate([np.empty(0), *entries]),
            outside=tuple(outside for *_, outside in taken),
        )


def _rounding_units(program: Program, spread: FloatArray | None) -> float:
    """Add up, over the steps, the roundings times the size of the numbers that are rounded."""
    counts, children = np.diff(program.pair_start), np.diff(program.child_start)
    of_terms = np.diff(program.term_start)
    pairs = counts + of_terms
    step = np.arange(program.steps)
    step_of_pair = np.concatenate([np.repeat(step, counts), np.repeat(step, of_terms)])
    size = np.abs(np.concatenate([program.pair_weight, program.term_weight]))
    pair_sizes = np.bincount(step_of_pair, weights=size, minlength=program.steps)
    # to spins eliminated before
    ending = np.bincount(np.concatenate([program.pair_end, program.term_end]), weights=size, minlength=program.steps)
    # The weights that join a slot's separator to what has been eliminated below it come from step to step.
    joined, below, added = [0.0] * program.steps, [0.0] * program.steps, 0.0
    starts, slots, child_slot = program.child_start.tolist(), program.slot.tolist(), program.child_slot.tolist()
    for t, (slot, pair_size, ending_of_t) in enumerate(zip(slots, pair_sizes.tolist(), ending.tolist(), strict=True)):
        for k in range(starts[t], starts[t + 1]):
            below[t] += joined[child_slot[k]]
        if not len(program.table_entry):
            joined[slot] += max(below[t] - ending_of_t, 0.0) + pair_size
        elif spread is None:
            joined[slot] += below[t] + abs(program.field[t]) + pair_size + 0.35
        else:
            joined[slot] += spread[t] / 2.0
        added += 2.0 * joined[slot] if slot != t else 0.0
    sizes = np.abs(program.field) + pair_sizes + 2.0 * np.array(below) + 0.7
    together = np.where(children == 0, 24, 0)
    return float(((pairs + children + 4 + together) * sizes + 8.0).sum()) + added

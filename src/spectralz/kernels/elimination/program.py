"""Bucket elimination in logs, and its reverse for the marginals.

A :class:`Program` is an elimination tree with its numbers. Step t sums out spin v: for every state s of its separator

    table_t(s) = log sum over x_v of exp( x_v (field_v + sum_j J_vj s_j) + sum over children c of table_c(x_v, s) ),

bit k of the index s being the k-th spin of the separator in elimination order (0 for -1, 1 for +1). In a child's table
v is then always bit 0. Every table is shifted to have table(0) = 0, and the shifts add up to log Z: tables keep the
size of the local couplings, however large the model, and so do their rounding errors.

The reverse pass is the derivative of log Z: that by an entry of a table is the probability of that state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.forest import runs
from spectralz.kernels.logsum import COMPILE, exp_minus, log_add_exp
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.elimination.order import EliminationTree

__all__ = [
    "Program",
    "compressed",
    "log_z_of_program",
    "marginals_of_program",
    "plan_segments",
    "sample_program",
    "sampling_entries",
]

BYTES_PER_ENTRY = 8
# Tables are filled in blocks of this many bits, whose scratch space stays in the first-level cache.
BLOCK_BITS = 9
# Progress is reported, and an interrupt noticed, after about this many table entries (a tenth of a second).
ENTRIES_PER_REPORT = 1 << 24
# The reverse pass keeps all tables up to this many entries (64 MiB); beyond, it trades a second run for memory.
KEEP_ALL_ENTRIES = 1 << 23
SAMPLES_AT_A_TIME = 1024

Report = Callable[[float], None]


class Program(NamedTuple):
    """The steps of an elimination as arrays; those of step t are at ``start[t]:start[t + 1]`` of the ragged ones.

    A named tuple, because that is what compiled functions take whole.
    """

    spin: NDArray[np.int64]
    field: NDArray[np.float64]
    width: NDArray[np.int64]
    slot: NDArray[np.int64]
    pair_start: NDArray[np.int64]
    pair_bit: NDArray[np.int64]  # where the other spin stands in the separator
    pair_weight: NDArray[np.float64]
    pair_edge: NDArray[np.int64]  # which edge of the model it is
    pair_end: NDArray[np.int64]  # which step eliminates the other spin
    child_start: NDArray[np.int64]
    child_slot: NDArray[np.int64]
    child_mask: NDArray[np.int64]  # which spins of the separator are also in the child's table
    separator_start: NDArray[np.int64]
    separator_spin: NDArray[np.int64]  # the spins of each step's separator, bit 0 first
    heights: NDArray[np.int64]  # of the stack, before each step and after the last
    peak: int

    @classmethod
    def of_tree(
        cls,
        tree: EliminationTree,
        edges: NDArray[np.int64],
        weights: NDArray[np.float64],
        field: NDArray[np.float64],
    ) -> Program:
        """Lay out a tree's steps with the weights ``J`` of the edges and the fields."""
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
            separator_start=np.cumsum([0, *(len(separator) for separator in tree.separators)]),
            separator_spin=np.array([v for separator in tree.separators for v in separator], dtype=np.int64),
            heights=np.array(tree.stack_heights(), dtype=np.int64),
            peak=tree.peak,
        )

    @property
    def steps(self) -> int:
        """How many spins are eliminated."""
        return len(self.spin)

    def rounding_bound(self) -> float:
        """Bound the error that rounding can make in log Z.

        Log-sum-exp is non-expansive, so that errors only add up. A step with d pairs and c children makes d + c + 4
        roundings of numbers no larger than its own weights, log 2 and its children's tables; and a table's entries
        differ from its first by at most twice the weights |J| that join its separator to what has been eliminated.
        """
        return 1.01 * UNIT_ROUNDOFF * float(_rounding_units(self))


def log_z_of_program(program: Program, report: Report) -> float:
    """Run all steps and return log Z, with memory for ``program.peak`` table entries."""
    arena = np.empty(program.peak)
    where = np.zeros(program.steps, dtype=np.int64)
    total = np.zeros(2)
    for begin, end in _chunks(program, 0, program.steps):
        _forward(program, begin, end, arena, where, int(program.heights[begin]), False, total)
        report(end / program.steps)
    return float(total[0] + total[1])


@dataclass(frozen=True)
class Segments:
    """How the reverse pass divides the steps: it remembers the stack at each bound and runs each segment again."""

    bounds: list[int]
    entries: int  # of memory, at most, at eight bytes

    @property
    def memory(self) -> int:
        """Bytes that the reverse pass will allocate."""
        return BYTES_PER_ENTRY * self.entries


def plan_segments(tree: EliminationTree) -> Segments:
    """Choose the segments of the reverse pass: one if all tables may be kept, else those that need the least memory."""
    heights = tree.stack_heights()
    kept = [
        1 << len(separator) if slot == step and separator else 0
        for step, (separator, slot) in enumerate(zip(tree.separators, tree.slots, strict=True))
    ]
    widest = 1 << tree.width
    total = sum(kept)
    best: Segments | None = None
    count = 1
    while best is None or (best.entries > KEEP_ALL_ENTRIES and count <= min(len(kept), 1024)):
        bounds = _even_bounds(kept, total / count)
        remembered = sum(heights[bound] for bound in bounds)
        busiest = max(
            (heights[begin] + sum(kept[begin:end]) for begin, end in itertools.pairwise(bounds)),
            default=0,
        )
        entries = max(remembered + 2 * (busiest + widest) + max(heights), remembered + tree.peak)
        if best is None or entries < best.entries:
            best = Segments(bounds, entries)
        count *= 2
    return best


def _even_bounds(kept: list[int], share: float) -> list[int]:
    """Cut the steps where their tables add up to another share."""
    bounds, filled = [0], 0
    for step, entries in enumerate(kept):
        if filled and filled + entries > share:
            bounds.append(step)
            filled = 0
        filled += entries
    return [*bounds, len(kept)] if kept else [0]


@dataclass(frozen=True)
class ProgramMarginals:
    """log Z, and for each step's spin and each edge of the program its probabilities."""

    log_z: float
    up: NDArray[np.float64]  # P(x = +1), by spin of the model
    down: NDArray[np.float64]
    pair_mean: NDArray[np.float64]  # E[x_i x_j], by edge of the model


def marginals_of_program(
    program: Program, segments: Segments, n: int, edge_count: int, report: Report
) -> ProgramMarginals:
    """Run all steps, then backwards, and return log Z and the marginals of the program's spins and edges."""
    spans = list(zip(segments.bounds, segments.bounds[1:], strict=False))
    # Where each table stands on the stack: once written there it never moves.
    on_stack = np.zeros(program.steps, dtype=np.int64)
    total = np.zeros(2)
    arena = np.empty(program.peak)
    remembered = []
    for begin, end in spans:
        remembered.append(arena[: program.heights[begin]].copy())
        for a, b in _chunks(program, begin, end):
            _forward(program, a, b, arena, on_stack, int(program.heights[a]), False, total)
            report(b / program.steps / 3)
    del arena

    up, down, pair_mean = np.zeros(n), np.zeros(n), np.zeros(edge_count)
    derivative = np.empty(0)  # of log Z by the entries of the stack, which is empty at the end
    for begin, end in reversed(spans):
        done = (program.steps - end) / program.steps
        stack = remembered.pop()
        top = len(stack)
        arena = np.empty(top + _entries_in(program, begin, end))
        arena[:top] = stack
        where = on_stack.copy()
        for a, b in _chunks(program, begin, end):
            top = _forward(program, a, b, arena, where, top, True, np.zeros(2))
        report((1 + 2 * done) / 3)
        bar = np.zeros(len(arena))
        for slot in _live_slots(program, end).tolist():
            size = 1 << int(program.width[slot])
            bar[where[slot] : where[slot] + size] = derivative[on_stack[slot] : on_stack[slot] + size]
        for a, b in reversed(_chunks(program, begin, end)):
            _backward(program, a, b, arena, where, bar, up, down, pair_mean)
            report((1 + 2 * (program.steps - a) / program.steps) / 3)
        derivative = bar[: len(stack)].copy()
        del arena, bar
    whole = up[program.spin] + down[program.spin]
    up[program.spin] /= whole
    down[program.spin] /= whole
    return ProgramMarginals(float(total[0] + total[1]), up, down, pair_mean)


def sampling_entries(tree: EliminationTree) -> int:
    """Return the table entries that sampling keeps: all of them, and room for one that is not kept."""
    return tree.terms + (1 << tree.width)


def sample_program(program: Program, n: int, size: int, rng: np.random.Generator, report: Report) -> NDArray[np.int8]:
    """Draw independent states: run all steps, then backwards draw each spin given its separator.

    Spins that the program does not eliminate are left 0.
    """
    arena = np.empty(_entries_in(program, 0, program.steps))
    where = np.zeros(program.steps, dtype=np.int64)
    top = 0
    for begin, end in _chunks(program, 0, program.steps):
        top = _forward(program, begin, end, arena, where, top, True, np.zeros(2))
        report(end / program.steps)
    x = np.zeros((size, n), dtype=np.int8)
    for begin in range(0, size, SAMPLES_AT_A_TIME):
        rows = x[begin : begin + SAMPLES_AT_A_TIME]
        uniform = rng.random((len(rows), program.steps))
        _draw(program, arena, where, uniform, rows)
    return x


def _chunks(program: Program, begin: int, end: int) -> list[tuple[int, int]]:
    """Divide steps into runs that take about a tenth of a second each."""
    sizes = np.left_shift(np.int64(1), program.width[begin:end])
    return [(begin + a, begin + b) for a, b in runs(sizes, ENTRIES_PER_REPORT)]


def _entries_in(program: Program, begin: int, end: int) -> int:
    """Return the entries that steps begin to end write when all tables are kept, with room for one that is not."""
    sizes = np.left_shift(np.int64(1), program.width[begin:end])
    own = program.slot[begin:end] == np.arange(begin, end)
    return int(sizes[own].sum() + sizes.max(initial=0))


def _live_slots(program: Program, end: int) -> NDArray[np.int64]:
    """Return the slots that stand on the stack when the first ``end`` steps have run."""
    used_by = np.full(program.steps, -1, dtype=np.int64)
    used_by[program.child_slot] = np.repeat(np.arange(program.steps), np.diff(program.child_start))
    return np.flatnonzero(used_by[:end] >= end)


@njit(cache=True)
def _rounding_units(program: Program) -> float:
    """Add up, over the steps, the roundings times the size of the numbers that are rounded."""
    steps = len(program.field)
    joined = np.zeros(steps)  # the weights that join a slot's separator to what has been eliminated below it
    ending = np.zeros(steps)  # the weights of a step's spin to spins eliminated before it
    total = 0.0
    for t in range(steps):
        own = below = 0.0
        for k in range(program.pair_start[t], program.pair_start[t + 1]):
            own += abs(program.pair_weight[k])
            ending[program.pair_end[k]] += abs(program.pair_weight[k])
        for k in range(program.child_start[t], program.child_start[t + 1]):
            below += joined[program.child_slot[k]]
        roundings = (
            program.pair_start[t + 1] - program.pair_start[t] + program.child_start[t + 1] - program.child_start[t] + 4
        )
        total += roundings * (abs(program.field[t]) + own + 2.0 * below + 0.7) + 8.0
        joined[program.slot[t]] += max(below - ending[t], 0.0) + own
    return total


@njit(cache=True)
def compressed(index: int, mask: int) -> int:
    """Gather the bits of ``index`` that stand under the ones of ``mask``."""
    out = 0
    place = 0
    while mask:
        if mask & 1:
            out |= (index & 1) << place
            place += 1
        mask >>= 1
        index >>= 1
    return out


@njit(cache=True)
def _block_tables(
    program: Program,
    low: int,
    pairs: tuple[int, int],
    children: tuple[int, int],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Tabulate what is the same in all blocks.

    That is the low pairs' part of the field, the places of a block's entries in each child's table, and how many of
    the block's bits that table has: if all, the entries lie one after the other.
    """
    size = 1 << low
    field_low = np.zeros(size)
    for k in range(pairs[0], pairs[1]):
        if program.pair_bit[k] < low:
            for i in range(size):
                field_low[i] += program.pair_weight[k] if (i >> program.pair_bit[k]) & 1 else -program.pair_weight[k]
    count = children[1] - children[0]
    places = np.empty((count, size), np.int64)
    bits = np.zeros(count, np.int64)
    for c in range(count):
        mask = program.child_mask[children[0] + c] & (size - 1)
        for i in range(size):
            places[c, i] = 2 * compressed(i, mask)
        for b in range(low):
            bits[c] += (mask >> b) & 1
    return field_low, places, bits


@njit(**COMPILE)
def _fill_block(
    program: Program,
    t: int,
    block: int,
    low: int,
    pairs: tuple[int, int],
    children: tuple[int, int],
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    field_low: NDArray[np.float64],
    places: NDArray[np.int64],
    bits: NDArray[np.int64],
    minus: NDArray[np.float64],
    plus: NDArray[np.float64],
) -> None:
    """Write the log-weights of x_v = -1 and +1 for all separator states of one block."""
    size = 1 << low
    local = program.field[t]
    for k in range(pairs[0], pairs[1]):
        if program.pair_bit[k] >= low:
            local += program.pair_weight[k] if (block >> (program.pair_bit[k] - low)) & 1 else -program.pair_weight[k]
    for i in range(size):
        plus[i] = field_low[i] + local
        minus[i] = -plus[i]
    for c in range(children[1] - children[0]):
        k = children[0] + c
        base = where[program.child_slot[k]] + ((2 * compressed(block, program.child_mask[k] >> low)) << bits[c])
        if bits[c] == low:
            table = arena[base : base + 2 * size]
            for i in range(size):
                minus[i] += table[2 * i]
                plus[i] += table[2 * i + 1]
        else:
            for i in range(size):
                minus[i] += arena[base + places[c, i]]
                plus[i] += arena[base + places[c, i] + 1]


@njit(**COMPILE)
def _forward(
    program: Program,
    begin: int,
    end: int,
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    top: int,
    keep: bool,
    total: NDArray[np.float64],
) -> int:
    """Run steps begin to end on the stack ``arena[:top]``, add their shifts to ``total``, return the new top.

    With ``keep``, used tables stay where they are and new ones go above them.
    """
    minus, plus = np.empty(1 << BLOCK_BITS), np.empty(1 << BLOCK_BITS)
    for t in range(begin, end):
        low = min(program.width[t], BLOCK_BITS)
        size = 1 << low
        pairs = (program.pair_start[t], program.pair_start[t + 1])
        children = (program.child_start[t], program.child_start[t + 1])
        field_low, places, bits = _block_tables(program, low, pairs, children)
        shift = 0.0
        for block in range(1 << (program.width[t] - low)):
            _fill_block(program, t, block, low, pairs, children, arena, where, field_low, places, bits, minus, plus)
            out = arena[top + block * size : top + (block + 1) * size]
            for i in range(size):
                out[i] = log_add_exp(plus[i], minus[i])
            if block == 0:
                shift = out[0]
            for i in range(size):
                out[i] -= shift
        total[0], total[1] = add(total[0], total[1], shift)
        top = _put_away(program, t, children, arena, where, top, keep)
    return top


@njit(cache=True)
def _put_away(
    program: Program,
    t: int,
    children: tuple[int, int],
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    top: int,
    keep: bool,
) -> int:
    """Give the table just written above the stack its place: its own, its sister's, or none; return the new top."""
    size = 1 << program.width[t]
    base = top if keep or children[0] == children[1] else where[program.child_slot[children[0]]]
    if program.width[t] == 0:
        return base
    if program.slot[t] != t:
        sister = where[program.slot[t]]
        for i in range(size):
            arena[sister + i] += arena[top + i]
        return base
    if base != top:
        for i in range(size):
            arena[base + i] = arena[top + i]
    where[t] = base
    return base + size


@njit(cache=True)
def _draw(
    program: Program,
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    uniform: NDArray[np.float64],
    x: NDArray[np.int8],
) -> None:
    """Draw every spin, the last eliminated first, from its distribution given the spins of its separator."""
    for row in range(len(x)):
        for t in range(len(program.spin) - 1, -1, -1):
            around = program.separator_spin[program.separator_start[t] : program.separator_start[t + 1]]
            state = 0
            for k in range(len(around)):
                if x[row, around[k]] > 0:
                    state |= 1 << k
            difference = 2.0 * program.field[t]  # of the log-weights of +1 and -1
            for k in range(program.pair_start[t], program.pair_start[t + 1]):
                difference += 2.0 * program.pair_weight[k] * x[row, around[program.pair_bit[k]]]
            for k in range(program.child_start[t], program.child_start[t + 1]):
                at = where[program.child_slot[k]] + 2 * compressed(state, program.child_mask[k])
                difference += arena[at + 1] - arena[at]
            up = uniform[row, t] * (1.0 + np.exp(min(-difference, 700.0))) < 1.0
            x[row, program.spin[t]] = 1 if up else -1


@njit(**COMPILE)
def _backward(
    program: Program,
    begin: int,
    end: int,
    arena: NDArray[np.float64],
    where: NDArray[np.int64],
    bar: NDArray[np.float64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    pair_mean: NDArray[np.float64],
) -> None:
    """Run steps end to begin in reverse, collecting the marginals of spins and edges on the way.

    Each step takes the probabilities of its separator's states to those of its children's; ``bar`` holds them, laid
    out like ``arena``.
    """
    minus, plus = np.empty(1 << BLOCK_BITS), np.empty(1 << BLOCK_BITS)
    for t in range(end - 1, begin - 1, -1):
        low = min(program.width[t], BLOCK_BITS)
        size = 1 << low
        pairs = (program.pair_start[t], program.pair_start[t + 1])
        children = (program.child_start[t], program.child_start[t + 1])
        field_low, places, bits = _block_tables(program, low, pairs, children)
        difference = np.zeros(size)  # P(+, s) - P(-, s), summed over the blocks
        v = program.spin[t]
        for block in range(1 << (program.width[t] - low)):
            _fill_block(program, t, block, low, pairs, children, arena, where, field_low, places, bits, minus, plus)
            at = where[program.slot[t]] + block * size
            for i in range(size):
                probability = bar[at + i] if program.width[t] else 1.0
                e = exp_minus(abs(plus[i] - minus[i]))
                likely = probability / (1.0 + e)
                unlikely = e * likely
                is_up = plus[i] > minus[i]
                plus[i] = likely if is_up else unlikely
                minus[i] = unlikely if is_up else likely
            sum_up = sum_down = 0.0
            for i in range(size):
                sum_up += plus[i]
                sum_down += minus[i]
                difference[i] += plus[i] - minus[i]
            up[v] += sum_up
            down[v] += sum_down
            for k in range(pairs[0], pairs[1]):
                if program.pair_bit[k] >= low:
                    sign = 1.0 if (block >> (program.pair_bit[k] - low)) & 1 else -1.0
                    pair_mean[program.pair_edge[k]] += sign * (sum_up - sum_down)
            for c in range(children[1] - children[0]):
                k = children[0] + c
                base = where[program.child_slot[k]] + ((2 * compressed(block, program.child_mask[k] >> low)) << bits[c])
                for i in range(size):
                    bar[base + places[c, i]] += minus[i]
                    bar[base + places[c, i] + 1] += plus[i]
        for k in range(pairs[0], pairs[1]):
            if program.pair_bit[k] < low:
                for i in range(size):
                    pair_mean[program.pair_edge[k]] += (
                        difference[i] if (i >> program.pair_bit[k]) & 1 else -difference[i]
                    )

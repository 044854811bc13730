"""The forward pass of an elimination: log Z, the tables that a reverse pass needs, and states drawn from them.

Tables are kept on a stack. A step writes its table above those that it uses up and then moves it down into their place.
If a reverse pass will need all tables, everything stays where it is.

The tables give the distribution of the last spin and, going backwards, that of every other spin given its separator,
which has already been drawn. The log-weights of its two states differ by

    2 (field_v + sum_j J_vj s_j) + sum over children c of table_c(+1, s) - table_c(-1, s).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.errors import refuse_impossible
from spectralz.kernels.elimination.leaves import Leaves, count_alike, fill_together
from spectralz.kernels.elimination.tables import (
    BLOCK_BITS,
    EXCLUDED,
    LEAST,
    Block,
    Tables,
    compressed,
    fill_block,
    sign_of,
)
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.kernels.arrays import FloatArray, IntArray, SpinArray
    from spectralz.kernels.elimination.program import Program, Report, Steps
    from spectralz.kernels.elimination.tree import EliminationTree

SAMPLES_AT_A_TIME = 1024
NO_SPREAD = np.empty(0)


def log_z_of_program(program: Program, report: Report, spread: FloatArray = NO_SPREAD) -> float:
    """Run all steps and return log Z, with memory for ``program.peak`` table entries.

    ``spread`` is filled with the largest entry of each step's table if it has a place for each.
    """
    tables = Tables(np.empty(program.peak), np.zeros(program.steps, dtype=np.int64), spread)
    total = np.zeros(2)
    steps, block, run = program.for_kernels(), Block.of(program), forward_of(program)
    for begin, end in program.runs(0, program.steps):
        run(steps, begin, end, tables, int(program.heights[begin]), False, total, block)
        report(end / program.steps)
    return log_or_zero(total)


def log_or_zero(total: FloatArray) -> float:
    """Return a sum of shifts, minus infinity if it is that of excluded states."""
    log_z = float(total[0] + total[1])
    return log_z if log_z > LEAST else -np.inf


def forward_of(program: Program) -> Callable[..., int]:
    """Return what runs the steps of a program: with leaves only where there are any, since that takes long to compile.

    Its parameters are those of :func:`forward`.
    """
    leaves = Leaves.of(program)
    return forward if leaves is None else lambda *given: forward_with_leaves(*given, leaves)


@compiled
def forward(
    steps: Steps, begin: int, end: int, tables: Tables, top: int, keep: bool, total: FloatArray, block: Block
) -> int:
    """Run steps begin to end on the stack ``arena[:top]``, add their shifts to ``total``, return the new top.

    With ``keep``, used tables stay where they are and new ones go above them.
    """
    for t in range(begin, end):
        out = tables.arena[top : top + (1 << steps.width[t])]
        shift = fill(steps, t, out, tables, block, False)
        total[0], total[1] = add(total[0], total[1], shift)
        top = _placed(steps, t, tables, top, keep)
    return top


@compiled
def forward_with_leaves(
    steps: Steps,
    begin: int,
    end: int,
    tables: Tables,
    top: int,
    keep: bool,
    total: FloatArray,
    block: Block,
    leaves: Leaves,
) -> int:
    """Run steps like :func:`forward`, but sum out spins with the same neighbors together."""
    t = begin
    while t < end:
        count = count_alike(steps, t, end)
        out = tables.arena[top : top + (1 << steps.width[t])]
        shift = fill_together(steps, t, count, out, leaves) if count > 1 else fill(steps, t, out, tables, block, False)
        total[0], total[1] = add(total[0], total[1], shift)
        top = _placed(steps, t, tables, top, keep)
        t += count
    return top


@inner
def _placed(steps: Steps, t: int, tables: Tables, top: int, keep: bool) -> int:
    """Give the table just written above the stack its place: its own, its sister's, or none; return the new top."""
    arena, where, spread = tables
    size = 1 << steps.width[t]
    first = steps.child_start[t]
    if len(spread):
        spread[t] = _largest(arena[top : top + size])
    base = top if keep or first == steps.child_start[t + 1] else where[steps.child_slot[first]]
    if size == 1:
        return base
    if steps.slot[t] != t:
        sister = where[steps.slot[t]]
        for i in range(size):
            arena[sister + i] += arena[top + i]
        return base
    if base != top:
        for i in range(size):
            arena[base + i] = arena[top + i]
    where[t] = base
    return base + size


@inner
def _largest(table: FloatArray) -> float:
    """Return the largest absolute entry of a table, without those of excluded states."""
    largest = 0.0
    for i in range(len(table)):
        if table[i] > LEAST:
            largest = max(largest, abs(table[i]))
    return largest


@inner
def fill(steps: Steps, t: int, out: FloatArray, tables: Tables, block: Block, by_maxima: bool) -> float:
    """Write the table of one step, of sums or of maxima, shifted to begin with 0; return the shift.

    Excluded states stay so, and the first entry that is not excluded is 0. Without any, the shift is theirs.
    """
    width = steps.width[t]
    low = width if width < BLOCK_BITS else BLOCK_BITS
    size = 1 << low
    shift = EXCLUDED
    for number in range(1 << (width - low)):
        fill_block(steps, t, number, low, tables, block)
        # In place: here the compiler sees that no index is negative, and vectorizes the loops.
        if by_maxima:
            for i in range(size):
                block.plus[i] = max(block.plus[i], block.minus[i])
        else:
            for i in range(size):
                block.plus[i] = log_add_exp(block.plus[i], block.minus[i])
        k = 0
        while shift <= LEAST and k < size:
            shift = block.plus[k] if block.plus[k] > LEAST else EXCLUDED
            k += 1
        part = out[number * size : (number + 1) * size]
        for i in range(size):
            part[i] = block.plus[i] - shift if block.plus[i] > LEAST else EXCLUDED
    return shift


def sampling_entries(tree: EliminationTree) -> int:
    """Return the table entries that sampling keeps: all tables, and room for one that is not kept."""
    return tree.terms + (1 << tree.width)


def sample_program(program: Program, n: int, size: int, rng: np.random.Generator, report: Report) -> SpinArray:
    """Draw independent states: run all steps, then backwards draw each spin given its separator.

    Spins that the program does not eliminate are left 0.
    """
    tables = Tables(np.empty(program.entries(0, program.steps)), np.zeros(program.steps, dtype=np.int64), NO_SPREAD)
    top, total = 0, np.zeros(2)
    steps, block, run = program.for_kernels(), Block.of(program), forward_of(program)
    for begin, end in program.runs(0, program.steps):
        top = run(steps, begin, end, tables, top, True, total, block)
        report(end / program.steps)
    refuse_impossible(log_or_zero(total))
    x = np.zeros((size, n), dtype=np.int8)
    for begin in range(0, size, SAMPLES_AT_A_TIME):
        rows = x[begin : begin + SAMPLES_AT_A_TIME]
        uniform = rng.random((len(rows), program.steps))
        _draw(steps, program.spin, program.separator_start, program.separator_spin, tables, uniform, rows)
    return x


@compiled
def _draw(
    steps: Steps, spin: IntArray, start: IntArray, separator: IntArray, tables: Tables, random: FloatArray, x: SpinArray
) -> None:
    """Draw every spin, the last eliminated first, from its distribution given the spins of its separator."""
    for row in range(len(x)):
        for t in range(len(spin) - 1, -1, -1):
            difference = difference_of(steps, t, separator[start[t] : start[t + 1]], tables, x[row])
            up = random[row, t] * (1.0 + np.exp(-difference if difference > -700.0 else 700.0)) < 1.0
            up = up and difference > LEAST
            x[row, spin[t]] = 1 if up else -1


@inner
def difference_of(steps: Steps, t: int, separator: IntArray, tables: Tables, x: SpinArray) -> float:
    """Return by how much the log-weights of the two states of a step's spin differ, given those of its separator."""
    arena, where, _ = tables
    state = 0
    for k in range(len(separator)):
        if x[separator[k]] > 0:
            state |= 1 << k
    difference = 2.0 * steps.field[t]
    for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
        difference += 2.0 * steps.pair_weight[k] * x[separator[steps.pair_bit[k]]]
    for k in range(steps.term_start[t], steps.term_start[t + 1]):
        difference += 2.0 * steps.term_weight[k] * sign_of(state, steps.term_mask[k])
    for k in range(steps.child_start[t], steps.child_start[t + 1]):
        at = where[steps.child_slot[k]] + 2 * compressed(state, steps.child_mask[k])
        difference += arena[at + 1] - arena[at]
    for k in range(steps.table_start[t], steps.table_start[t + 1]):
        at = steps.table_at[k] + 2 * compressed(state, steps.table_mask[k])
        difference += steps.table_entry[at + 1] - steps.table_entry[at]
    return difference

"""The reverse pass of an elimination, which computes the marginals as derivatives of log Z.

The derivative with respect to a table entry is the probability of that state. Each step takes the probabilities of its
separator's states, splits them between the two states of its spin, and sums them into the probabilities of its
children's separators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.elimination.forward import NO_SPREAD, forward_of, log_or_zero
from spectralz.kernels.elimination.tables import BLOCK_BITS, LEAST, Block, Tables, compressed, fill_block, sign_of
from spectralz.kernels.logsum import exp_minus

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.elimination.program import Program, Report, Steps
    from spectralz.kernels.elimination.segments import Segments


@dataclass(frozen=True)
class ProgramMarginals:
    """log Z, and the probabilities of each step's spin and each edge and term of the program."""

    log_z: float
    up: FloatArray  # P(x = +1), by spin of the model
    down: FloatArray
    pair_mean: FloatArray  # E[x_i x_j], by edge of the model; then the means of its terms of more spins


class Marginals(NamedTuple):
    """Where the reverse pass adds up probabilities, and which spin, edge and term of the model each of its own is."""

    spin: IntArray
    pair_edge: IntArray
    term_place: IntArray
    up: FloatArray
    down: FloatArray
    pair_mean: FloatArray


def marginals_of_program(
    program: Program,
    segments: Segments,
    n: int,
    edge_count: int,
    report: Report,
    term_count: int = 0,
    spread: FloatArray = NO_SPREAD,
) -> ProgramMarginals:
    """Run all steps forwards, then backwards; return log Z and the marginals of the program's spins and edges.

    ``spread`` as in :func:`log_z_of_program`. If no state is allowed, log Z is minus infinity and there are no means.
    """
    spans = list(zip(segments.bounds, segments.bounds[1:], strict=False))
    # The position of each table on the stack; once written it never moves.
    on_stack = np.zeros(program.steps, dtype=np.int64)
    total = np.zeros(2)
    steps, block, run = program.for_kernels(), Block.of(program), forward_of(program)
    arena = np.empty(program.peak)
    remembered = []
    for begin, end in spans:
        remembered.append(arena[: program.heights[begin]].copy())
        for a, b in program.runs(begin, end):
            run(steps, a, b, Tables(arena, on_stack, spread), int(program.heights[a]), False, total, block)
            report(b / program.steps / 3)
    del arena

    log_z = log_or_zero(total)
    up, down, pair_mean = np.zeros(n), np.zeros(n), np.zeros(edge_count + term_count)
    if log_z == -np.inf:
        return ProgramMarginals(log_z, up, down, pair_mean)
    marginals = Marginals(program.spin, program.pair_edge, edge_count + program.term_index, up, down, pair_mean)
    derivative = np.empty(0)  # of log Z by the entries of the stack, which is empty at the end
    for begin, end in reversed(spans):
        done = (program.steps - end) / program.steps
        stack = remembered.pop()
        top = len(stack)
        arena = np.empty(top + program.entries(begin, end))
        arena[:top] = stack
        where = on_stack.copy()
        tables = Tables(arena, where, NO_SPREAD)
        for a, b in program.runs(begin, end):
            top = run(steps, a, b, tables, top, True, np.zeros(2), block)
        report((1 + 2 * done) / 3)
        bar = np.zeros(len(arena))
        for slot in _live_slots(program, end).tolist():
            size = 1 << int(program.width[slot])
            bar[where[slot] : where[slot] + size] = derivative[on_stack[slot] : on_stack[slot] + size]
        for a, b in reversed(program.runs(begin, end)):
            backward(steps, a, b, tables, block, bar, marginals)
            report((1 + 2 * (program.steps - a) / program.steps) / 3)
        derivative = bar[: len(stack)].copy()
        del arena, tables, bar
    whole = up[program.spin] + down[program.spin]
    up[program.spin] /= whole
    down[program.spin] /= whole
    return ProgramMarginals(log_z, up, down, pair_mean)


def _live_slots(program: Program, end: int) -> IntArray:
    """Return the slots on the stack after the first ``end`` steps."""
    used_by = np.full(program.steps, -1, dtype=np.int64)
    used_by[program.child_slot] = np.repeat(np.arange(program.steps), np.diff(program.child_start))
    return np.flatnonzero(used_by[:end] >= end)


@compiled
def backward(
    steps: Steps, begin: int, end: int, tables: Tables, block: Block, bar: FloatArray, marginals: Marginals
) -> None:
    """Run steps end to begin in reverse, collecting the marginals of spins and edges on the way.

    Each step turns the probabilities of its separator's states into those of its children's. ``bar`` holds them, laid
    out like the tables.
    """
    spin, pair_edge, term_place, up, down, pair_mean = marginals
    minus, plus, difference = block.minus, block.plus, np.empty(1 << BLOCK_BITS)
    for t in range(end - 1, begin - 1, -1):
        width = steps.width[t]
        low = width if width < BLOCK_BITS else BLOCK_BITS
        size = 1 << low
        v = spin[t]
        for i in range(size):
            difference[i] = 0.0  # P(+, s) - P(-, s), summed over the blocks
        for number in range(1 << (width - low)):
            fill_block(steps, t, number, low, tables, block)
            at = tables.where[steps.slot[t]] + number * size
            for i in range(size):
                probability = bar[at + i] if width else 1.0
                gap = abs(plus[i] - minus[i])
                e = exp_minus(gap) if gap < -LEAST else 0.0
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
            for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
                bit = steps.pair_bit[k] - low
                if bit >= 0:
                    pair_mean[pair_edge[k]] += sum_up - sum_down if (number >> bit) & 1 else sum_down - sum_up
            for k in range(steps.term_start[t], steps.term_start[t + 1]):
                mask = steps.term_mask[k]
                if mask >= size:
                    total = 0.0
                    for i in range(size):
                        total += (plus[i] - minus[i]) * sign_of(i, mask & (size - 1))
                    pair_mean[term_place[k]] += total * sign_of(number, mask >> low)
            first = steps.child_start[t]
            for k in range(first, steps.child_start[t + 1]):
                base = tables.where[steps.child_slot[k]] + 2 * compressed(number << low, steps.child_mask[k])
                for i in range(size):
                    place = base + block.places[(k - first) * size + i]
                    bar[place] += minus[i]
                    bar[place + 1] += plus[i]
        for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
            bit = steps.pair_bit[k]
            if bit < low:
                for i in range(size):
                    pair_mean[pair_edge[k]] += difference[i] if (i >> bit) & 1 else -difference[i]
        for k in range(steps.term_start[t], steps.term_start[t + 1]):
            mask = steps.term_mask[k]
            if mask < size:
                for i in range(size):
                    pair_mean[term_place[k]] += difference[i] * sign_of(i, mask)

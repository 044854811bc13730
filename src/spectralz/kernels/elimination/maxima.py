"""The heaviest states by elimination, with maxima instead of sums.

A table then has, for each state of its separator, the largest log-weight of all that was eliminated. Going backwards,
every spin takes the state that this maximum came from: that is the heaviest state. Any other choice loses

    loss_v = max over x_v of w(x_v, s) - w(x_v, s) >= 0,    w as in ``program.py``, s the state of the separator,

and the log-weight of a state is the largest of all minus the sum of its losses. So the next heaviest states are found
without another elimination: each one leaves a heavier one at some spin, and makes no choice after it that loses
anything.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.elimination.forward import NO_SPREAD, difference_of, fill, log_or_zero
from spectralz.kernels.elimination.tables import LEAST, Block, Tables
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, SpinArray
    from spectralz.kernels.elimination.program import Program, Report, Steps


def heaviest_states(program: Program, n: int, count: int, report: Report) -> tuple[SpinArray, float]:
    """Return the ``count`` heaviest states, or all if there are fewer, the heaviest first, and its log-weight.

    Spins that the program does not eliminate are left 0. Without any state, the log-weight is minus infinity.
    """
    tables = Tables(np.empty(program.entries(0, program.steps)), np.zeros(program.steps, dtype=np.int64), NO_SPREAD)
    steps, block, top = program.for_kernels(), Block.of(program), 0
    largest = np.zeros(2)
    for begin, end in program.runs(0, program.steps):
        top = _forward(steps, begin, end, tables, top, largest, block)
        report(end / program.steps)
    if log_or_zero(largest) == -np.inf:
        return np.zeros((0, n), dtype=np.int8), -np.inf
    backwards = steps, program.spin, program.separator_start, program.separator_spin, tables
    x, losses = np.zeros((count, n), dtype=np.int8), np.empty(program.steps)
    # Other choices that were seen: what they lose, which state they leave, and at which step.
    seen: list[tuple[float, int, int]] = [(0.0, -1, program.steps)]
    found = 0
    while seen and found < count:
        loss, parent, step = heapq.heappop(seen)
        if parent >= 0:
            x[found] = x[parent]
            x[found, program.spin[step]] *= -1
        _complete(*backwards, step, x[found], losses)
        wanted = count - found - 1
        for t in np.argsort(losses[:step], kind="stable")[:wanted].tolist():
            if losses[t] > -LEAST:  # an excluded state, like all that follow
                break
            heapq.heappush(seen, (loss + float(losses[t]), found, t))
        found += 1
    return x[:found], float(largest[0] + largest[1])


@compiled
def _forward(steps: Steps, begin: int, end: int, tables: Tables, top: int, largest: FloatArray, block: Block) -> int:
    """Run steps begin to end above the tables so far, all of which are kept; return the new top."""
    arena, where, _ = tables
    for t in range(begin, end):
        size = 1 << steps.width[t]
        shift = fill(steps, t, arena[top : top + size], tables, block, True)
        largest[0], largest[1] = add(largest[0], largest[1], shift)
        if steps.slot[t] != t:
            sister = where[steps.slot[t]]
            for i in range(size):
                arena[sister + i] += arena[top + i]
        elif size > 1:
            where[t] = top
            top += size
    return top


@compiled
def _complete(
    steps: Steps,
    spin: IntArray,
    start: IntArray,
    separator: IntArray,
    tables: Tables,
    end: int,
    x: SpinArray,
    losses: FloatArray,
) -> None:
    """Choose the spins of the steps before ``end``, backwards, so that nothing is lost; write what others lose."""
    for t in range(end - 1, -1, -1):
        difference = difference_of(steps, t, separator[start[t] : start[t + 1]], tables, x)
        x[spin[t]] = 1 if difference >= 0.0 else -1
        losses[t] = abs(difference)

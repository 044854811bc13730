"""The forward pass of an elimination: log Z, and the tables that a reverse pass needs.

Tables are kept on a stack. A step writes its table above those that it uses up and then moves it down into their place.
If a reverse pass will need all tables, everything stays where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.elimination.tables import BLOCK_BITS, Block, Tables, fill_block
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray
    from spectralz.kernels.elimination.program import Program, Report, Steps


def log_z_of_program(program: Program, report: Report) -> float:
    """Run all steps and return log Z, with memory for ``program.peak`` table entries."""
    tables = Tables(np.empty(program.peak), np.zeros(program.steps, dtype=np.int64))
    total = np.zeros(2)
    steps, block = program.for_kernels(), Block.of(program)
    for begin, end in program.runs(0, program.steps):
        forward(steps, begin, end, tables, int(program.heights[begin]), False, total, block)
        report(end / program.steps)
    return float(total[0] + total[1])


@compiled
def forward(
    steps: Steps, begin: int, end: int, tables: Tables, top: int, keep: bool, total: FloatArray, block: Block
) -> int:
    """Run steps begin to end on the stack ``arena[:top]``, add their shifts to ``total``, return the new top.

    With ``keep``, used tables stay where they are and new ones go above them.
    """
    arena, where = tables
    for t in range(begin, end):
        width = steps.width[t]
        low = width if width < BLOCK_BITS else BLOCK_BITS
        size = 1 << low
        shift = 0.0
        for number in range(1 << (width - low)):
            fill_block(steps, t, number, low, tables, block)
            # In place: here the compiler sees that no index is negative, and vectorizes the loop.
            for i in range(size):
                block.plus[i] = log_add_exp(block.plus[i], block.minus[i])
            if number == 0:
                shift = block.plus[0]
            out = arena[top + number * size : top + (number + 1) * size]
            for i in range(size):
                out[i] = block.plus[i] - shift
        total[0], total[1] = add(total[0], total[1], shift)

        # The table just written above the stack is given its place: its own, its sister's, or none.
        size = 1 << width
        first = steps.child_start[t]
        base = top if keep or first == steps.child_start[t + 1] else where[steps.child_slot[first]]
        if width == 0:
            top = base
        elif steps.slot[t] != t:
            sister = where[steps.slot[t]]
            for i in range(size):
                arena[sister + i] += arena[top + i]
            top = base
        else:
            if base != top:
                for i in range(size):
                    arena[base + i] = arena[top + i]
            where[t] = base
            top = base + size
    return top

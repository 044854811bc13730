"""The forward pass of an elimination: log Z, and the tables that a pass in reverse needs.

Tables live on a stack. A step writes its table above those that it uses up and then moves it down into their place; or,
where a pass in reverse will need them all, leaves everything where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.elimination.tables import BLOCK_BITS, block_tables, fill_block
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.elimination.program import Program, Report

__all__ = ["forward", "log_z_of_program"]


def log_z_of_program(program: Program, report: Report) -> float:
    """Run all steps and return log Z, with memory for ``program.peak`` table entries."""
    arena = np.empty(program.peak)
    where = np.zeros(program.steps, dtype=np.int64)
    total = np.zeros(2)
    for begin, end in program.runs(0, program.steps):
        forward(program, begin, end, arena, where, int(program.heights[begin]), False, total)
        report(end / program.steps)
    return float(total[0] + total[1])


@compiled
def forward(
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
        field_low, places, bits = block_tables(program, low, pairs, children)
        shift = 0.0
        for block in range(1 << (program.width[t] - low)):
            fill_block(program, t, block, low, pairs, children, arena, where, field_low, places, bits, minus, plus)
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


@inner
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

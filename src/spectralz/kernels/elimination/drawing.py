"""Draw independent states exactly from an elimination.

The tables of the forward pass give the distribution of the last spin and, going backwards, that of every other spin
given its separator, which has already been drawn. The log-weights of its two states differ by

    2 (field_v + sum_j J_vj s_j) + sum over children c of table_c(+1, s) - table_c(-1, s).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.elimination.forward import forward
from spectralz.kernels.elimination.tables import Block, Tables, compressed

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, SpinArray
    from spectralz.kernels.elimination.program import Program, Report, Steps
    from spectralz.kernels.elimination.tree import EliminationTree

SAMPLES_AT_A_TIME = 1024


def sampling_entries(tree: EliminationTree) -> int:
    """Return the table entries that sampling keeps: all tables, and room for one that is not kept."""
    return tree.terms + (1 << tree.width)


def sample_program(program: Program, n: int, size: int, rng: np.random.Generator, report: Report) -> SpinArray:
    """Draw independent states: run all steps, then backwards draw each spin given its separator.

    Spins that the program does not eliminate are left 0.
    """
    tables = Tables(np.empty(program.entries(0, program.steps)), np.zeros(program.steps, dtype=np.int64))
    top = 0
    steps, block = program.for_kernels(), Block.of(program)
    for begin, end in program.runs(0, program.steps):
        top = forward(steps, begin, end, tables, top, True, np.zeros(2), block)
        report(end / program.steps)
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
    arena, where = tables
    for row in range(len(x)):
        for t in range(len(spin) - 1, -1, -1):
            around = start[t]
            state = 0
            for k in range(start[t + 1] - around):
                if x[row, separator[around + k]] > 0:
                    state |= 1 << k
            difference = 2.0 * steps.field[t]  # of the log-weights of +1 and -1
            for k in range(steps.pair_start[t], steps.pair_start[t + 1]):
                difference += 2.0 * steps.pair_weight[k] * x[row, separator[around + steps.pair_bit[k]]]
            for k in range(steps.child_start[t], steps.child_start[t + 1]):
                at = where[steps.child_slot[k]] + 2 * compressed(state, steps.child_mask[k])
                difference += arena[at + 1] - arena[at]
            up = random[row, t] * (1.0 + np.exp(-difference if difference > -700.0 else 700.0)) < 1.0
            x[row, spin[t]] = 1 if up else -1

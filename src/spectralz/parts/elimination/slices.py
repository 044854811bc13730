"""Sum exactly over slices: some spins are fixed to each of their states in turn, and the others eliminated.

A fixed spin adds to the fields of its neighbors, and turns the signs of terms of more spins, so that all slices are one
program with different fields and signs. Slices are
summed in threads and combined in order, so the answer does not depend on the number of threads.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from spectralz._support.progress import report
from spectralz._support.threads import thread_count
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.elimination.forward import log_z_of_program
from spectralz.kernels.elimination.marginals import ProgramMarginals, marginals_of_program
from spectralz.kernels.sums import log_sum
from spectralz.parts.elimination.constrained import program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.elimination.program import Program, Report
    from spectralz.kernels.elimination.segments import Segments
    from spectralz.kernels.elimination.slicing import SlicedTree
    from spectralz.model import FloatArray, IntArray, Model
    from spectralz.model.constraints import Constraints

T = TypeVar("T")
# Slices are given to threads in batches, so that few answers wait to be combined.
SLICES_PER_THREAD = 4
# Rounding error of exponentials, logarithms and their sum, in units of rounding.
ROUNDINGS_OF_SUM = 8.0


class _StoppedError(Exception):
    """Raised to end the threads after an interrupt."""


@dataclass(frozen=True)
class _Slices:
    """The slices of one component: their program and how their fields and weights depend on the fixed spins.

    Edges that cross lead from a fixed spin to one that is eliminated; those inside join two fixed spins. Terms of more
    spins are outside unless all their spins are fixed.
    """

    J: FloatArray
    slices: int
    program: Program
    fixed: IntArray
    field: FloatArray  # of the fixed spins
    crossing: IntArray
    crossing_fixed: IntArray
    crossing_step: IntArray
    inside: IntArray
    inside_pairs: tuple[IntArray, IntArray]
    fixed_parts: sp.csr_array[Any]  # of terms x fixed spins: 1 if a spin is in a term
    term_weight: FloatArray
    is_inside: NDArray[np.bool_]
    table_parts: sp.csr_array[Any]  # of tables of constraints x fixed spins: by how much +1 moves their entries
    constraints_inside: Constraints  # those of fixed spins alone

    @classmethod
    def of(cls, model: Model, plan: SlicedTree) -> _Slices:
        edges, J = model.edges()
        program = program_of(plan.tree, model)
        fixed = np.array(plan.fixed, dtype=np.int64)
        place, rank = np.full((2, model.n), -1, dtype=np.int64)
        place[fixed], rank[program.spin] = np.arange(len(fixed)), np.arange(program.steps)
        first, second = place[edges].T
        other = np.where(first >= 0, edges[:, 1], edges[:, 0])
        crossing = np.flatnonzero(((first >= 0) ^ (second >= 0)) & (rank[other] >= 0))
        inside = np.flatnonzero((first >= 0) & (second >= 0))
        crossing_fixed, crossing_step = np.maximum(first, second)[crossing], rank[other[crossing]]
        field, pairs = np.asarray(model.field)[fixed], (first[inside], second[inside])
        terms = model.higher
        where = place[terms.spin]
        is_fixed = where >= 0
        in_fixed = (np.ones(int(is_fixed.sum())), (terms.term_of_spin()[is_fixed], where[is_fixed]))
        parts = sp.csr_array(in_fixed, shape=(terms.number, len(fixed)))
        of_terms = parts, terms.weight, np.asarray(parts.sum(axis=1)).ravel() == terms.sizes
        crossed = crossing, crossing_fixed, crossing_step
        moves = [
            (k, int(place[i]), 1 << (int(mask).bit_count() + 1 + bit))
            for k, (mask, outside) in enumerate(zip(program.table_mask, program.table_outside, strict=True))
            for bit, i in enumerate(outside)
        ]
        row, column, stride = np.array(moves, dtype=np.int64).reshape(-1, 3).T
        tables = sp.csr_array((stride, (row, column)), shape=(len(program.table_at), len(fixed)))
        of_constraints = tables, model.constraints.among(fixed)
        return cls(J, plan.slices, program, fixed, field, *crossed, inside, pairs, *of_terms, *of_constraints)

    def state(self, number: int) -> NDArray[np.int64]:
        """Return the state of the fixed spins in slice ``number``."""
        return 2 * ((number >> np.arange(len(self.fixed))) & 1) - 1

    def signs(self, x: NDArray[np.int64]) -> FloatArray:
        """Return the product of the fixed spins of each term of more spins."""
        return np.asarray(1.0 - 2.0 * ((self.fixed_parts @ (x < 0)) % 2.0))

    def weight_of_fixed(self, x: NDArray[np.int64]) -> float:
        """Return the log-weight of the fixed spins among themselves."""
        if not self.constraints_inside.hold(x[None])[0]:
            return -math.inf
        i, j = self.inside_pairs
        of_terms = (self.term_weight * self.signs(x))[self.is_inside]
        return math.fsum(
            [*(self.field * x).tolist(), *(self.J[self.inside] * x[i] * x[j]).tolist(), *of_terms.tolist()]
        )

    def in_slice(self, x: NDArray[np.int64]) -> Program:
        """Return the program with the fields and signs that it has with the fixed spins in state ``x``."""
        field, program = self.program.field.copy(), self.program
        np.add.at(field, self.crossing_step, self.J[self.crossing] * x[self.crossing_fixed])
        term_weight = program.term_weight * self.signs(x)[program.term_index]
        table_at = program.table_at + self.table_parts @ (x > 0).astype(np.int64)
        return replace(program, field=field, term_weight=term_weight, table_at=table_at)

    def rounding_bound(self, largest: float) -> float:
        """Bound the rounding error of log Z, if no slice's log Z is larger than ``largest`` in size.

        In any slice the program's bound with the largest fields holds, and the fields themselves are rounded sums. The
        sum over slices is convex: errors of the slices are not amplified. The rounded differences from the largest
        slice enter by their mean over slices, which is at most the log of their number.
        """
        size = np.abs(self.program.field)
        count = np.bincount(self.crossing_step, minlength=len(size))
        np.add.at(size, self.crossing_step, np.abs(self.J[self.crossing]))
        inside = float(np.abs(self.field).sum() + np.abs(self.J[self.inside]).sum())
        inside += float(np.abs(self.term_weight[self.is_inside]).sum())
        units = float((count * size).sum()) + 3.0 * inside + 4.0 * largest
        units += ROUNDINGS_OF_SUM + 2.0 * len(self.fixed)
        return replace(self.program, field=size).rounding_bound() + 1.01 * UNIT_ROUNDOFF * units

    def summed(
        self, work: Callable[[Program, Report], T], memory: int, max_memory: int
    ) -> Iterator[tuple[int, float, T]]:
        """Yield, for all slices in order, their number, the weight of the fixed spins and the result of ``work``.

        The number processed at once is limited by the threads, and by memory of ``memory`` bytes each.
        """
        stop = threading.Event()

        def heed_stop(_: float) -> None:
            if stop.is_set():
                raise _StoppedError

        def one(number: int) -> tuple[int, float, T]:
            x = self.state(number)
            return number, self.weight_of_fixed(x), work(self.in_slice(x), heed_stop)

        threads = min(thread_count(), self.slices, max(max_memory // max(memory, 1), 1))
        lot = SLICES_PER_THREAD * threads
        with ThreadPoolExecutor(threads) as executor:
            try:
                for begin in range(0, self.slices, lot):
                    for result in executor.map(one, range(begin, min(begin + lot, self.slices))):
                        report("eliminating spins, slice by slice", (result[0] + 1) / self.slices)
                        yield result
            except BaseException:
                stop.set()
                raise


def log_z_of_slices(model: Model, plan: SlicedTree, max_memory: int) -> tuple[float, float]:
    """Return log Z of a sliced component, and a bound on its rounding error."""
    slices = _Slices.of(model, plan)
    _, weights, logs = np.array(list(slices.summed(log_z_of_program, 8 * plan.tree.peak, max_memory))).T
    is_possible = weights + logs > -math.inf
    if not is_possible.any():
        return -math.inf, 0.0
    weights, logs = weights[is_possible], logs[is_possible]
    return log_sum(weights + logs), slices.rounding_bound(float((np.abs(weights) + np.abs(logs)).max()))


def means_of_slices(
    model: Model, plan: SlicedTree, segments: Segments, max_memory: int
) -> tuple[ProgramMarginals, float]:
    """Return log Z and means of a sliced component, the slices averaged by weight, and the rounding error of log Z."""
    slices = _Slices.of(model, plan)
    edge_count = len(slices.J)
    i, j = slices.inside_pairs

    def work(program: Program, heed_stop: Report) -> ProgramMarginals:
        return marginals_of_program(program, segments, model.n, edge_count, heed_stop, model.higher.number)

    top, total, largest = -math.inf, 0.0, 0.0
    values = []
    up, down, pair_mean = np.zeros(model.n), np.zeros(model.n), np.zeros(edge_count + model.higher.number)
    spins = slices.program.spin
    for number, weight, means in slices.summed(work, segments.memory, max_memory):
        x = slices.state(number)
        value = weight + means.log_z
        if value == -math.inf:
            continue
        values.append(value)
        largest = max(largest, abs(weight) + abs(means.log_z))
        if value > top:  # everything added so far is rescaled to the new largest
            scale = math.exp(top - value)
            for sums in (up, down, pair_mean):
                sums *= scale
            top, total = value, total * scale
        share = math.exp(value - top)
        total += share
        up[spins] += share * means.up[spins]
        down[spins] += share * means.down[spins]
        up[slices.fixed] += share * (x > 0)
        down[slices.fixed] += share * (x < 0)
        pair_mean[:edge_count] += share * means.pair_mean[:edge_count]
        products = np.where(slices.is_inside, 1.0, means.pair_mean[edge_count:])
        pair_mean[edge_count:] += share * slices.signs(x) * products
        other = spins[slices.crossing_step]
        pair_mean[slices.crossing] += share * x[slices.crossing_fixed] * (means.up[other] - means.down[other])
        pair_mean[slices.inside] += share * x[i] * x[j]
    if not values:
        return ProgramMarginals(-math.inf, up, down, pair_mean), 0.0
    for sums in (up, down, pair_mean):
        sums /= total
    return ProgramMarginals(log_sum(np.array(values)), up, down, pair_mean), slices.rounding_bound(largest)

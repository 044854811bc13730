"""Draw states from a weighted mini-bucket bound, with weights that never exceed it.

In reverse order of elimination each spin is drawn from a mixture of its mini-buckets' own distributions, given the
spins of their separators, which have already been drawn:

    q(x_v | later spins) = sum over m of w_m b_m(x_v | s_m),
    b_m(x_v | s) = exp( (f_m(x_v, s) - table_m(s)) / w_m ),

with w, f and the tables of ``passes.py``. The mean of the weight exp(E(x)) / q(x) is Z. An arithmetic mean is at least
the geometric one, so q(x) is at least the product of all b_m^(w_m), which is exp(E(x) - bound). Hence no weight exceeds
exp(bound) (Liu, Fisher, Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.logsum import exp_minus
from spectralz.kernels.mini_buckets.passes import tables_of

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, SpinArray
    from spectralz.kernels.mini_buckets.cover import Report
    from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials, Steps

# States that are drawn side by side.
LANES = 64
# A weight of exactly 0 in a bucket: its mini-bucket has no part in the mixture.
NEGLIGIBLE = 1e-300


class Drawn(NamedTuple):
    """States, (n, 64) by rank with 0 for -1 and 1 for +1, and logarithms of their weights and probabilities."""

    x: SpinArray
    log_f: FloatArray
    log_q: FloatArray


class _Order(NamedTuple):
    """The mini-buckets spin by spin, and where their contents are."""

    start: IntArray  # of the mini-buckets of each rank in ``step``
    step: IntArray
    pair_rank: IntArray
    where: IntArray


@dataclass(frozen=True)
class Drawing:
    """A bound prepared for drawing: all its tables, and its mini-buckets spin by spin."""

    potentials: Potentials
    steps: Steps
    order: _Order
    tables: FloatArray
    bound: Bound

    @classmethod
    def of(cls, forest: Forest, potentials: Potentials, report: Report) -> Drawing:
        """Run a pass that keeps all tables."""
        bound, tables = tables_of(forest, potentials, report)
        spins = int(forest.rank.max(initial=-1)) + 1
        start = np.concatenate([[0], np.cumsum(np.bincount(forest.rank, minlength=spins))]).astype(np.int64)
        order = _Order(start, np.argsort(forest.rank, kind="stable"), forest.pair_rank, forest.kept)
        return cls(potentials, forest.steps, order, tables, bound)

    @property
    def spins(self) -> int:
        """How many spins a state has."""
        return len(self.order.start) - 1

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Draw as many states as there are lanes."""
        drawn = Drawn(np.empty((self.spins, LANES), dtype=np.int8), np.zeros(LANES), np.zeros(LANES))
        _draw(self.steps, self.order, self.potentials, self.tables, rng.random((self.spins, LANES)), drawn)
        return drawn


@compiled
def _draw(
    steps: Steps, order: _Order, potentials: Potentials, tables: FloatArray, uniform: FloatArray, drawn: Drawn
) -> None:
    """Draw the spins of all lanes, the last eliminated first."""
    h, J, power = potentials
    x, log_f, log_q = drawn
    total, apart, up, down = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    zero_up, zero_down = np.empty(LANES), np.empty(LANES)
    index, product = np.empty(LANES, np.int64), np.empty(LANES)
    for r in range(len(order.start) - 2, -1, -1):
        for lane in range(LANES):
            total[lane] = up[lane] = down[lane] = zero_up[lane] = zero_down[lane] = 0.0
        for place in range(order.start[r], order.start[r + 1]):
            t = order.step[place]
            for lane in range(LANES):
                apart[lane] = h[t]
            for bit in range(steps.bit_start[t], steps.bit_start[t] + steps.width[t]):
                weight, other = J[bit], order.pair_rank[bit]
                if weight != 0.0:
                    for lane in range(LANES):
                        apart[lane] += weight * np.float64(np.int32(2 * x[other, lane] - 1))
            for k in range(steps.term_start[t], steps.term_start[t + 1]):
                for lane in range(LANES):
                    product[lane] = steps.term_weight[k]
                for bit in range(steps.width[t]):
                    if (steps.term_mask[k] >> bit) & 1:
                        other = order.pair_rank[steps.bit_start[t] + bit]
                        for lane in range(LANES):
                            product[lane] = product[lane] if x[other, lane] else -product[lane]
                for lane in range(LANES):
                    apart[lane] += product[lane]
            for lane in range(LANES):
                total[lane] += apart[lane]
                apart[lane] *= 2.0
            for k in range(steps.child_start[t], steps.child_start[t + 1]):
                child = steps.child[k]
                for lane in range(LANES):
                    index[lane] = 0
                # The spin itself is bit 0 of a child's table.
                for bit in range(1, steps.width[child]):
                    other = order.pair_rank[steps.bit_start[child] + bit]
                    for lane in range(LANES):
                        index[lane] += np.int64(x[other, lane]) << bit
                at = order.where[child]
                for lane in range(LANES):
                    apart[lane] += tables[at + index[lane] + 1] - tables[at + index[lane]]
            for k in range(steps.given_start[t], steps.given_start[t + 1]):
                for lane in range(LANES):
                    index[lane] = steps.given_first[k]
                place_of_bit = 2
                for bit in range(steps.width[t]):
                    if (steps.given_mask[k] >> bit) & 1:
                        other = order.pair_rank[steps.bit_start[t] + bit]
                        for lane in range(LANES):
                            index[lane] += place_of_bit * np.int64(x[other, lane])
                        place_of_bit *= 2
                for lane in range(LANES):
                    if_down, if_up = steps.given_entry[index[lane]], steps.given_entry[index[lane] + 1]
                    apart[lane] += if_up - if_down
                    zero_up[lane] += if_up
                    zero_down[lane] += if_down
            share = power[t] if power[t] > NEGLIGIBLE else NEGLIGIBLE
            for lane in range(LANES):
                rare = exp_minus(abs(apart[lane]) / share)
                common = 1.0 / (1.0 + rare)
                rare *= common
                up[lane] += share * (common if apart[lane] >= 0.0 else rare)
                down[lane] += share * (rare if apart[lane] >= 0.0 else common)
        for lane in range(LANES):
            whole = up[lane] + down[lane]
            is_up = uniform[r, lane] * whole < up[lane]
            x[r, lane] = is_up
            log_f[lane] += zero_up[lane] + total[lane] if is_up else zero_down[lane] - total[lane]
            log_q[lane] += np.log((up[lane] if is_up else down[lane]) / whole)

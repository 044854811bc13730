"""Mini-bucket elimination in logs: bucket elimination whose tables are kept small by splitting buckets.

The *bucket* of a spin v holds all functions of v that are left when v's turn comes: edges to later spins, and tables
that earlier spins left. Where they have more than ``ibound`` spins between them the bucket is divided into
*mini-buckets*, and v is taken out of each by itself. Mini-bucket m leaves, for every state s of its separator,

    table_m(s) = w_m log sum over x_v of exp( f_m(x_v, s) / w_m ),
    f_m(x_v, s) = x_v (h_m + sum_j J_mj s_j) + sum over children c of table_c(x_v, s),

the power sum of weight w_m: the sum at 1, the maximum in the limit 0; a negative w_m stands for the minimum. The h_m of
one bucket add up to the spin's field, and so do the J_mj to the edge's weight. By Hoelder's inequality weights that add
up to 1 give an upper bound on log Z, and one sum beside minima a lower one.

A table is taken in by one mini-bucket, so that the mini-buckets make a forest. Bit k of an index s is the k-th spin of
the separator in elimination order (0 for -1, 1 for +1); in a child's table v is then always bit 0. Every table is
shifted to have table(0) = 0, and the shifts add up to the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.elimination.tables import compressed
from spectralz.kernels.forest import runs
from spectralz.kernels.logsum import exp_minus, log1p_exp_minus
from spectralz.kernels.mini_buckets.cover import take_out
from spectralz.kernels.sums import add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.mini_buckets.cover import Cover, Powers

__all__ = [
    "BLOCK_BITS",
    "MINIMUM",
    "Beliefs",
    "Bound",
    "Forest",
    "Potentials",
    "Steps",
    "beliefs_of",
    "bound_of",
    "fill",
    "tables_of",
]

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.int64]"
Report = Callable[[float], None]

# The weight that stands for the minimum.
MINIMUM = -1.0
# Places in a child's table are tabulated for this many bits, and the rest is the same for a whole block.
BLOCK_BITS = 6
# Progress is reported, and an interrupt noticed, after about this many table entries (a tenth of a second).
ENTRIES_PER_REPORT = 1 << 23
# exp(-700) is as good as nothing, and r exp(-r) must not become inf * 0.
LARGEST_RATIO = 700.0


class Steps(NamedTuple):
    """The mini-buckets as arrays, children before parents; what is ragged is at ``start[t]:start[t + 1]``.

    A named tuple, because that is what compiled functions take whole.
    """

    width: IntArray
    bit_start: IntArray  # each step has one weight J for each bit of its separator, mostly zero in a sparse model
    child_start: IntArray
    child: IntArray
    child_mask: IntArray  # which bits of the separator are also in the child's table


class Potentials(NamedTuple):
    """The numbers of the steps: fields, weights of the pairs (spin, bit of the separator), and powers."""

    h: FloatArray
    J: FloatArray
    power: FloatArray


@dataclass(frozen=True)
class Forest:
    """A cover made ready for passes.

    Attributes
    ----------
    steps
        What the compiled passes need.
    rank
        The rank of each step's spin.
    field_step
        For each spin of the model, the step that holds its field.
    edge_bit
        For each edge of the model, where its weight is among the ``J`` of the steps.
    pair_rank
        For each of the ``J``, the rank of the other spin.
    stacked, kept
        Where each table is put, if tables are dropped after use and if they are kept.
    """

    steps: Steps
    rank: IntArray
    field_step: IntArray
    edge_bit: IntArray
    pair_rank: IntArray
    stacked: IntArray
    kept: IntArray

    @classmethod
    def of_cover(cls, cover: Cover, edges: IntArray) -> Forest:
        """Put the mini-buckets into post-order and number their bits."""
        sequence = cover.sequence
        chosen = [cover.mini_buckets[m] for m in sequence]
        step_of = np.empty(len(sequence), dtype=np.int64)
        step_of[sequence] = np.arange(len(sequence))
        bit_start = np.cumsum([0, *(len(m.separator) for m in chosen)])
        spin_rank = np.empty(len(cover.order), dtype=np.int64)
        spin_rank[cover.order] = np.arange(len(cover.order))
        edge_bit = np.zeros(len(edges), dtype=np.int64)
        later = spin_rank[edges].max(axis=1, initial=0)
        masks = []
        for t, m in enumerate(chosen):
            bit_of = {r: bit for bit, r in enumerate(m.separator)}
            for e in m.edges:
                edge_bit[e] = bit_start[t] + bit_of[int(later[e])]
            masks += [sum(1 << bit_of[r] for r in cover.mini_buckets[c].separator[1:]) for c in m.children]
        first = np.cumsum(cover.counts) - cover.counts
        steps = Steps(
            width=np.diff(bit_start),
            bit_start=bit_start,
            child_start=np.cumsum([0, *(len(m.children) for m in chosen)]),
            child=step_of[[c for m in chosen for c in m.children]].astype(np.int64),
            child_mask=np.array(masks, dtype=np.int64),
        )
        sizes = np.left_shift(np.int64(1), steps.width)
        return cls(
            steps=steps,
            rank=cover.ranks[sequence],
            field_step=step_of[first[spin_rank]],
            edge_bit=edge_bit,
            pair_rank=np.array([r for m in chosen for r in m.separator], dtype=np.int64),
            stacked=_stack_places(steps, sizes),
            kept=np.cumsum(sizes) - sizes,
        )

    @property
    def count(self) -> int:
        """How many mini-buckets there are."""
        return len(self.rank)

    def potentials(self, fields: FloatArray, weights: FloatArray, powers: Powers) -> Potentials:
        """Give each field and edge to the one mini-bucket that holds it, and each bucket its weights."""
        h = np.zeros(self.count)
        h[self.field_step] = fields
        J = np.zeros(len(self.pair_rank))
        J[self.edge_bit] = weights
        counts = np.bincount(self.rank)[self.rank]
        first, other = np.array([powers(count) for count in range(1, counts.max(initial=0) + 1)]).reshape(-1, 2).T
        power = other[counts - 1]
        power[self.field_step] = first[counts - 1][self.field_step]
        return Potentials(h, J, power)


def _stack_places(steps: Steps, sizes: IntArray) -> IntArray:
    """Return where each table is put: in the place of those that its step uses up, which are the top of the stack."""
    below = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(below, np.repeat(np.arange(len(sizes)), np.diff(steps.child_start)), sizes[steps.child])
    heights = np.cumsum(sizes - below)
    return np.asarray(heights - sizes)


@dataclass(frozen=True)
class Bound:
    """What a pass gives: the bound, and by how much rounding may have changed it."""

    value: float
    rounding: float


def bound_of(forest: Forest, potentials: Potentials, report: Report) -> Bound:
    """Run all steps, dropping tables as soon as they are used, and return the bound on log Z."""
    return _run_forwards(forest, potentials, forest.stacked, report)[0]


def tables_of(forest: Forest, potentials: Potentials, report: Report) -> tuple[Bound, FloatArray]:
    """Run all steps and return the bound with all tables, each at its place of ``forest.kept``."""
    return _run_forwards(forest, potentials, forest.kept, report)[:2]


def _run_forwards(
    forest: Forest, potentials: Potentials, places: IntArray, report: Report
) -> tuple[Bound, FloatArray, tuple[FloatArray, FloatArray, IntArray]]:
    steps = forest.steps
    sizes = np.left_shift(np.int64(1), steps.width)
    tables = np.empty(int((places + sizes).max(initial=0)))
    most = int(sizes.max(initial=1))
    scratch = np.empty(most), np.empty(most), np.empty(1 << BLOCK_BITS, dtype=np.int64)
    total, span = np.zeros(2), np.zeros(forest.count)
    for begin, end in runs(sizes, ENTRIES_PER_REPORT):
        _forwards(steps, *potentials, begin, end, tables, places, *scratch, total, span)
        report(end / forest.count)
    value = float(total[0] + total[1])
    return Bound(value, _rounding(steps, potentials, span, value)), tables, scratch


def _rounding(steps: Steps, potentials: Potentials, span: FloatArray, value: float) -> float:
    """Bound the error that rounding can make in a pass.

    Sums, power sums, maxima and minima are non-expansive, so that errors only add up. A step with d bits and c children
    makes d + c + 8 roundings of numbers no larger than its own weights, log 2 and its children's tables, whose greatest
    entries, ``span``, the pass has recorded; 8 more units are for the logarithm and for powers that add up to 1 but for
    rounding.
    """
    count = len(span)
    size = np.abs(potentials.h) + 0.7
    np.add.at(size, np.repeat(np.arange(count), np.diff(steps.bit_start)), np.abs(potentials.J))
    np.add.at(size, np.repeat(np.arange(count), np.diff(steps.child_start)), span[steps.child])
    roundings = steps.width + np.diff(steps.child_start) + 8
    return 1.01 * UNIT_ROUNDOFF * float(2.0 * roundings @ size + 8.0 * count + 2.0 * abs(value))


@dataclass(frozen=True)
class Beliefs:
    """The derivatives of the bound.

    Attributes
    ----------
    bound
        The bound itself.
    up, down
        For each step the belief that its spin is +1, and that it is -1: their difference is the derivative by ``h``.
    pair_mean
        The derivative by each of the ``J``: the belief's mean of the product of the two spins.
    entropy
        The derivative by each power: the entropy of the step's spin given its separator.
    """

    bound: Bound
    up: FloatArray
    down: FloatArray
    pair_mean: FloatArray
    entropy: FloatArray


def beliefs_of(forest: Forest, potentials: Potentials, report: Report) -> Beliefs:
    """Run all steps, keeping the tables, then backwards."""
    bound, tables, scratch = _run_forwards(forest, potentials, forest.kept, lambda done: report(done / 2))
    up, down, entropy = np.zeros(forest.count), np.zeros(forest.count), np.zeros(forest.count)
    pair_mean = np.zeros(len(forest.pair_rank))
    for begin, end in reversed(runs(np.left_shift(np.int64(1), forest.steps.width), ENTRIES_PER_REPORT)):
        _backwards(forest.steps, *potentials, begin, end, tables, forest.kept, *scratch, up, down, pair_mean, entropy)
        report(1 - begin / forest.count / 2)
    return Beliefs(bound, up, down, pair_mean, entropy)


@inner
def fill(
    steps: Steps,
    t: int,
    h: FloatArray,
    J: FloatArray,
    tables: FloatArray,
    where: IntArray,
    minus: FloatArray,
    plus: FloatArray,
    places: IntArray,
) -> None:
    """Write f_t of the two states of its spin, for all states of the separator."""
    width = steps.width[t]
    plus[0] = h[t]
    for bit in range(width):
        weight = J[steps.bit_start[t] + bit]
        half = 1 << bit
        for i in range(half):
            plus[half + i] = plus[i] + weight
            plus[i] -= weight
    for i in range(1 << width):
        minus[i] = -plus[i]
    low = width if width < BLOCK_BITS else BLOCK_BITS
    for k in range(steps.child_start[t], steps.child_start[t + 1]):
        mask = steps.child_mask[k]
        for i in range(1 << low):
            places[i] = where[steps.child[k]] + 2 * compressed(i, mask)
        for block in range(1 << (width - low)):
            begin = block << low
            base = 2 * compressed(begin, mask)
            for i in range(1 << low):
                minus[begin + i] += tables[base + places[i]]
                plus[begin + i] += tables[base + places[i] + 1]


@compiled
def _forwards(
    steps: Steps,
    h: FloatArray,
    J: FloatArray,
    power: FloatArray,
    begin: int,
    end: int,
    tables: FloatArray,
    where: IntArray,
    minus: FloatArray,
    plus: FloatArray,
    places: IntArray,
    total: FloatArray,
    span: FloatArray,
) -> None:
    """Run steps begin to end; their shifts are added to ``total``, a sum and what it lost by rounding."""
    for t in range(begin, end):
        size = 1 << steps.width[t]
        fill(steps, t, h, J, tables, where, minus, plus, places)
        at = where[t]
        take_out(minus, plus, size, power[t], tables, at)
        shift = tables[at]
        largest = 0.0
        for i in range(at, at + size):
            tables[i] -= shift
            largest = abs(tables[i]) if abs(tables[i]) > largest else largest
        span[t] = largest
        total[0], total[1] = add(total[0], total[1], shift)


@compiled
def _backwards(
    steps: Steps,
    h: FloatArray,
    J: FloatArray,
    power: FloatArray,
    begin: int,
    end: int,
    tables: FloatArray,
    where: IntArray,
    minus: FloatArray,
    plus: FloatArray,
    places: IntArray,
    up: FloatArray,
    down: FloatArray,
    pair_mean: FloatArray,
    entropy: FloatArray,
) -> None:
    """Undo steps end to begin: each finds its belief in the place of its table, and leaves those of its children.

    A step without separator is the end of a tree, whose table is a number that the bound contains once: belief 1.
    """
    for t in range(end - 1, begin - 1, -1):
        width = steps.width[t]
        fill(steps, t, h, J, tables, where, minus, plus, places)

        # f is replaced by the belief of both states of the spin.
        sum_up = sum_down = conditional = 0.0
        for i in range(1 << width):
            belief = tables[where[t] + i] if width else 1.0
            apart = plus[i] - minus[i]
            # At power 0 the larger one has all the belief, and equal ones share it.
            ratio = abs(apart) / power[t] if power[t] > 0.0 else (0.0 if apart == 0.0 else np.inf)
            rare = exp_minus(ratio)
            common = 1.0 / (1.0 + rare)
            rare *= common
            if ratio < LARGEST_RATIO:
                conditional += belief * (log1p_exp_minus(ratio) + ratio * rare)
            else:
                rare = 0.0
            plus[i] = belief * (common if apart >= 0.0 else rare)
            minus[i] = belief * (rare if apart >= 0.0 else common)
            sum_up += plus[i]
            sum_down += minus[i]
        up[t], down[t], entropy[t] = sum_up, sum_down, conditional

        # In the place of each child's table goes its belief: this one, summed over the spins that it does not have.
        low = width if width < BLOCK_BITS else BLOCK_BITS
        for k in range(steps.child_start[t], steps.child_start[t + 1]):
            child, mask = steps.child[k], steps.child_mask[k]
            for i in range(1 << steps.width[child]):
                tables[where[child] + i] = 0.0
            for i in range(1 << low):
                places[i] = where[child] + 2 * compressed(i, mask)
            for block in range(1 << (width - low)):
                first = block << low
                base = 2 * compressed(first, mask)
                for i in range(1 << low):
                    tables[base + places[i]] += minus[first + i]
                    tables[base + places[i] + 1] += plus[first + i]

        # The mean of the product of the spin with each spin of the separator, for which ``plus`` is used up.
        for i in range(1 << width):
            plus[i] -= minus[i]
        for bit in range(width - 1, -1, -1):
            half = 1 << bit
            total = 0.0
            for i in range(half):
                total += plus[half + i] - plus[i]
                plus[i] += plus[half + i]
            pair_mean[steps.bit_start[t] + bit] = total

"""Mini-bucket elimination in logs: bucket elimination whose tables are kept small by splitting buckets.

The *bucket* of a spin v holds all remaining functions of v when v is eliminated: edges to later spins, and tables left
by earlier spins. If they involve more than ``ibound`` spins in total, the bucket is divided into *mini-buckets*, and v
is eliminated from each one separately. For every state s of its separator, mini-bucket m leaves

    table_m(s) = w_m log sum over x_v of exp( f_m(x_v, s) / w_m ),
    f_m(x_v, s) = x_v (h_m + sum_j J_mj s_j + terms) + sum over children c of table_c(x_v, s),

the power sum of weight w_m: the sum at 1, the maximum in the limit 0 from above, the minimum in the limit 0 from below.
The h_m of one bucket add up to the spin's field, and the J_mj to the edge's weight. Terms of more than two spins, each
its weight times the product of its other spins, belong to one mini-bucket as a whole. By Hoelder's inequality weights
that add up to 1 give an upper bound on log Z if all are positive, and a lower bound if exactly one of them is.

Each table is used by one mini-bucket, so the mini-buckets form a forest. Bit k of an index s is the k-th spin of the
separator in elimination order (0 for -1, 1 for +1); in a child's table v is then always bit 0. Every table is shifted
to have table(0) = 0, and the shifts add up to the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_in_any_order, inlined, inner
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.elimination.tables import compressed
from spectralz.kernels.forest import runs
from spectralz.kernels.logsum import as_bits, as_float, exp_minus, log1p_exp_minus
from spectralz.kernels.mini_buckets.branches import Branches
from spectralz.kernels.mini_buckets.cover import LEAST_POWER, inverse_of, take_out
from spectralz.kernels.mini_buckets.scopes import number_bits, ragged, ranked, term_masks
from spectralz.kernels.mini_buckets.zeros import NO_ZEROS, NOTHING
from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.mini_buckets.cover import Cover, Powers, Report
    from spectralz.kernels.mini_buckets.zeros import Zeros


# The weight of the minimum: negative weights approach it, as positive weights approach the maximum.
MINIMUM = -LEAST_POWER
# Used where log-ratios are not needed.
NO_RATIOS = np.empty(0)
# Places in a child's table are tabulated for this many bits; the rest is constant in a block.
BLOCK_BITS = 6
# Progress is reported, and interrupts are noticed, after about this many table entries (a tenth of a second).
ENTRIES_PER_REPORT = 1 << 23
# exp(-700) is negligible, and r exp(-r) must not become inf * 0.
LARGEST_RATIO = 700.0


class Steps(NamedTuple):
    """The mini-buckets as arrays, children before parents; ragged arrays are indexed by ``start[t]:start[t + 1]``.

    A named tuple, which compiled functions take as one argument.
    """

    width: IntArray
    bit_start: IntArray  # each step has one weight J for each bit of its separator, mostly zero in a sparse model
    child_start: IntArray
    child: IntArray
    child_mask: IntArray  # which bits of the separator are also in the child's table
    term_start: IntArray  # most steps have no terms of three and more spins
    term_mask: IntArray  # which bits of the separator are spins of the term
    term_weight: FloatArray
    given_start: IntArray  # tables of allowed states, used like those of children
    given_first: IntArray  # the place of each table in ``given_entry``
    given_mask: IntArray
    given_entry: FloatArray


class Potentials(NamedTuple):
    """The numbers of the steps: fields, weights of the pairs (spin, bit of the separator), and powers."""

    h: FloatArray
    J: FloatArray
    power: FloatArray


@dataclass(frozen=True)
class Forest:
    """A cover prepared for passes.

    Attributes
    ----------
    steps
        The arrays that the compiled passes need.
    rank
        The rank of each step's spin.
    field_step
        For each spin of the model, the step that holds its field.
    edge_bit
        For each edge of the model, the place of its weight among the ``J`` of the steps.
    term_place
        For each term of the model with three and more spins, its place among the terms of the steps.
    pair_rank
        For each of the ``J``, the rank of the other spin.
    stacked, kept
        The place of each table, if tables are dropped after use and if they are kept.
    branches
        The branches that threads can run at the same time.
    """

    steps: Steps
    rank: IntArray
    field_step: IntArray
    edge_bit: IntArray
    term_place: IntArray
    pair_rank: IntArray
    stacked: IntArray
    kept: IntArray
    branches: Branches

    @classmethod
    def of_cover(cls, cover: Cover, edges: IntArray, terms: Terms = NO_TERMS, zeros: Zeros = NO_ZEROS) -> Forest:
        """Put the mini-buckets into post-order and number their bits; the cover has ``zeros`` after the terms."""
        sequence, count = cover.sequence, len(cover.ranks)
        step_of = np.empty(count, dtype=np.int64)
        step_of[sequence] = np.arange(count)
        spin_rank = np.empty(len(cover.order), dtype=np.int64)
        spin_rank[cover.order] = np.arange(len(cover.order))
        later = spin_rank[edges].max(axis=1, initial=0)
        bit, mask = number_bits(cover.separator_start, cover.separators, later, cover.edge_part, cover.parent)
        bit_start = np.concatenate([[0], np.cumsum(cover.widths[sequence])]).astype(np.int64)
        child_start, children = cover.children
        child_counts = np.diff(child_start)[sequence]
        children = children[ragged(child_start[:-1][sequence], child_counts)]
        scopes = ranked(zeros.with_terms(terms), spin_rank)
        masks = term_masks(cover.separator_start, cover.separators, scopes, cover.term_part)
        term_step, given_step = np.split(step_of[cover.term_part], [terms.number])
        masks, given_masks = np.split(masks, [terms.number])
        by_step, given_by_step = np.argsort(term_step, kind="stable"), np.argsort(given_step, kind="stable")
        given = zeros.tables(spin_rank)
        entries = np.concatenate([np.empty(0), *(given[k] for k in given_by_step.tolist())])
        given_sizes = np.array([len(table) for table in given], dtype=np.int64)[given_by_step]
        first = np.cumsum(cover.counts) - cover.counts
        steps = Steps(
            width=np.diff(bit_start),
            bit_start=bit_start,
            child_start=np.concatenate([[0], np.cumsum(child_counts)]).astype(np.int64),
            child=step_of[children],
            child_mask=mask[children],
            term_start=np.concatenate([[0], np.cumsum(np.bincount(term_step, minlength=count))]).astype(np.int64),
            term_mask=masks[by_step],
            term_weight=terms.weight[by_step],
            given_start=np.concatenate([[0], np.cumsum(np.bincount(given_step, minlength=count))]).astype(np.int64),
            given_first=np.cumsum(given_sizes) - given_sizes,
            given_mask=given_masks[given_by_step],
            given_entry=entries,
        )
        sizes = np.left_shift(np.int64(1), steps.width)
        stacked = _stack_places(steps, sizes)
        return cls(
            steps=steps,
            rank=cover.ranks[sequence],
            field_step=step_of[first[spin_rank]],
            edge_bit=bit_start[step_of[cover.edge_part]] + bit,
            term_place=np.argsort(by_step),
            pair_rank=cover.separators[ragged(cover.separator_start[:-1][sequence], steps.width)],
            stacked=stacked,
            kept=np.cumsum(sizes) - sizes,
            branches=Branches.of_steps(steps, sizes, stacked),
        )

    @property
    def count(self) -> int:
        """Number of mini-buckets."""
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


class Tables(NamedTuple):
    """The tables of a pass: their entries, the place of each, and the log-ratios of the spins' two states.

    The log-ratios, if any are kept, are at the places ``kept``.
    """

    entries: FloatArray
    where: IntArray
    kept: IntArray
    ratios: FloatArray


class _Scratch(NamedTuple):
    """Work arrays of a step: f of the two states of its spin, and places in a child's table."""

    minus: FloatArray
    plus: FloatArray
    places: IntArray

    @classmethod
    def for_tables(cls, sizes: IntArray) -> _Scratch:
        most = int(sizes.max(initial=1))
        return cls(np.empty(most), np.empty(most), np.empty(1 << BLOCK_BITS, dtype=np.int64))


def _stack_places(steps: Steps, sizes: IntArray) -> IntArray:
    """Return the place of each table: that of the tables that its step uses up, at the top of the stack."""
    used = np.concatenate([[0], np.cumsum(sizes[steps.child])])
    heights = np.cumsum(sizes - np.diff(used[steps.child_start]))
    return np.asarray(heights - sizes)


@dataclass(frozen=True)
class Bound:
    """The result of a pass: the bound, and how much rounding may have changed it; below ``NOTHING`` it is -inf."""

    value: float
    rounding: float


def bound_of(forest: Forest, potentials: Potentials, report: Report) -> Bound:
    """Run all steps, dropping tables as soon as they are used, and return the bound on log Z."""
    return _run_forwards(forest, potentials, forest.stacked, NO_RATIOS, report)[0]


def tables_of(forest: Forest, potentials: Potentials, report: Report) -> tuple[Bound, FloatArray]:
    """Run all steps and return the bound with all tables, each at its place of ``forest.kept``."""
    bound, tables = _run_forwards(forest, potentials, forest.kept, NO_RATIOS, report)
    return bound, tables.entries


def _run_forwards(
    forest: Forest, potentials: Potentials, places: IntArray, ratios: FloatArray, report: Report
) -> tuple[Bound, Tables]:
    """Run all steps; in threads only if ratios are kept, since then there is room for the stacks of all branches."""
    steps = forest.steps
    sizes = np.left_shift(np.int64(1), steps.width)
    tables = Tables(np.empty(int((places + sizes).max(initial=0))), places, forest.kept, ratios)
    out = np.empty((3, forest.count))

    def run(begin: int, end: int, said: Report = lambda _: None) -> None:
        scratch = _Scratch.for_tables(sizes)
        for a, b in runs(sizes[begin:end], ENTRIES_PER_REPORT):
            _forwards(steps, potentials, begin + a, begin + b, tables, scratch, out)
            said((begin + b) / forest.count)

    if len(ratios):
        forest.branches.run_forwards(run, report)
    else:
        run(0, forest.count, report)
    shift, _, units = out
    value = math.fsum(shift.tolist())
    return Bound(value, 1.01 * UNIT_ROUNDOFF * (float(units.sum()) + 2.0 * abs(value))), tables


@dataclass(frozen=True)
class Beliefs:
    """The derivatives of the bound.

    Attributes
    ----------
    bound
        The bound itself.
    up, down
        For each step the beliefs that its spin is +1 and -1; their difference is the derivative with respect to ``h``.
    pair_mean
        The derivative with respect to each ``J``: the belief's mean of the product of the two spins.
    term_mean
        The derivative with respect to the weight of each term of three and more spins.
    entropy
        The derivative with respect to each power: the entropy of the step's spin given its separator.
    """

    bound: Bound
    up: FloatArray
    down: FloatArray
    pair_mean: FloatArray
    term_mean: FloatArray
    entropy: FloatArray


def beliefs_of(forest: Forest, potentials: Potentials, report: Report) -> Beliefs:
    """Run all steps forwards, keeping the log-ratio of the spin's two states, then backwards."""
    steps = forest.steps
    sizes = np.left_shift(np.int64(1), steps.width)
    ratios = np.empty(int(sizes.sum()))
    bound, tables = _run_forwards(forest, potentials, forest.branches.places, ratios, lambda done: report(done / 2))
    out, pair_mean = np.empty((3, forest.count)), np.empty(len(forest.pair_rank))
    term_mean = np.empty(len(steps.term_weight))

    def run(begin: int, end: int) -> None:
        scratch = _Scratch.for_tables(sizes)
        for a, b in reversed(runs(sizes[begin:end], ENTRIES_PER_REPORT)):
            _backwards(steps, begin + a, begin + b, tables, scratch, out, pair_mean, term_mean)

    forest.branches.run_backwards(run, lambda done: report((1 + done) / 2))
    up, down, entropy = out
    return Beliefs(bound, up, down, pair_mean, term_mean, entropy)


def contrasts_of(forest: Forest, potentials: Potentials) -> FloatArray:
    """Return the average log-weight difference between the two states of each step's spin."""
    sizes = np.left_shift(np.int64(1), forest.steps.width)
    ratios = np.empty(int(sizes.sum()))
    _run_forwards(forest, potentials, forest.branches.places, ratios, lambda _: None)
    np.abs(ratios, out=ratios)
    return np.asarray(np.add.reduceat(ratios, forest.kept) / sizes * np.abs(potentials.power)) if len(sizes) else ratios


@inlined
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
    if steps.term_start[t] == steps.term_start[t + 1]:
        for bit in range(width):
            weight = J[steps.bit_start[t] + bit]
            half = 1 << bit
            for i in range(half):
                plus[half + i] = plus[i] + weight
                plus[i] -= weight
    else:
        write_coefficients(steps, t, J, plus)
        sum_products(plus, width)
    for i in range(1 << width):
        minus[i] = -plus[i]
    low = width if width < BLOCK_BITS else BLOCK_BITS
    for k in range(steps.child_start[t], steps.child_start[t + 1]):
        tabulate(where[steps.child[k]], steps.child_mask[k], low, places)
        add_table(tables, steps.child_mask[k], width, minus, plus, places)
    for k in range(steps.given_start[t], steps.given_start[t + 1]):
        tabulate(steps.given_first[k], steps.given_mask[k], low, places)
        add_table(steps.given_entry, steps.given_mask[k], width, minus, plus, places)


@inlined
def add_table(table: FloatArray, mask: int, width: int, minus: FloatArray, plus: FloatArray, places: IntArray) -> None:
    """Add a table of some bits of the separator to the two states of the spin; ``places`` are those of the low bits."""
    low = width if width < BLOCK_BITS else BLOCK_BITS
    for block in range(1 << (width - low)):
        begin = block << low
        base = 2 * compressed(begin, mask)
        for i in range(1 << low):
            minus[begin + i] += table[base + places[i]]
            plus[begin + i] += table[base + places[i] + 1]


@inner
def write_coefficients(steps: Steps, t: int, J: FloatArray, out: FloatArray) -> None:
    """Write the weights of a step's pairs and terms to the places of their bits; that of the field is there."""
    for i in range(1, 1 << steps.width[t]):
        out[i] = 0.0
    for bit in range(steps.width[t]):
        out[1 << bit] = J[steps.bit_start[t] + bit]
    for k in range(steps.term_start[t], steps.term_start[t + 1]):
        out[steps.term_mask[k]] = steps.term_weight[k]


@inner
def sum_products(values: FloatArray, width: int) -> None:
    """Replace the coefficients of all products of spins by the sums, state by state (a Walsh transform)."""
    for bit in range(width):
        half = 1 << bit
        for first in range(0, 1 << width, 2 * half):
            for i in range(first, first + half):
                a, b = values[i], values[half + i]
                values[i] = a - b
                values[half + i] = a + b


@inner
def sum_states(values: FloatArray, width: int) -> None:
    """Replace numbers of all states by their sums times each product of spins; the transpose of sum_products."""
    for bit in range(width):
        half = 1 << bit
        for first in range(0, 1 << width, 2 * half):
            for i in range(first, first + half):
                a, b = values[i], values[half + i]
                values[i] = a + b
                values[half + i] = b - a


@inner
def tabulate(first: int, mask: int, bits: int, places: IntArray) -> None:
    """Write the places of the low bits' states in a child's table: pairs from ``first`` on, by the bits of ``mask``."""
    places[0] = first
    stride = 2
    for bit in range(bits):
        half = 1 << bit
        step = stride if (mask >> bit) & 1 else 0
        for i in range(half):
            places[half + i] = places[i] + step
        stride = 2 * stride if step else stride


@inlined
def _units(steps: Steps, t: int, h: FloatArray, J: FloatArray, power: FloatArray, span: FloatArray) -> float:
    """Bound the rounding error of a step, in units of rounding.

    The derivatives of a power sum with respect to its terms are probabilities, also at a negative power; maxima and
    minima are its limits. So it is non-expansive, and the errors of all steps only add up. A step with d bits and c
    children makes d + c + 8 roundings of numbers no larger than its own weights, |w| log 2 and its children's tables,
    whose greatest entries are in ``span``; terms are added together with the pairs, bit by bit. Another 8 units account
    for the logarithm, which is multiplied by w, and for powers that add up to 1 only up to rounding: the derivative of
    a table with respect to its power is an entropy, at most log 2.
    """
    scale = max(abs(power[t]), 1.0)
    size = abs(h[t]) + 0.7 * scale
    for k in range(steps.bit_start[t], steps.bit_start[t + 1]):
        size += abs(J[k])
    for k in range(steps.term_start[t], steps.term_start[t + 1]):
        size += abs(steps.term_weight[k])
    for k in range(steps.child_start[t], steps.child_start[t + 1]):
        size += span[steps.child[k]]
    roundings = steps.width[t] + steps.child_start[t + 1] - steps.child_start[t] + 8.0
    return 2.0 * roundings * size + 8.0 * scale


@compiled
def _forwards(
    steps: Steps, potentials: Potentials, begin: int, end: int, tables: Tables, scratch: _Scratch, out: FloatArray
) -> None:
    """Run steps begin to end; write the shift of each table, its greatest entry after the shift, and roundings.

    These are the rows of ``out``. The log-ratios of the spins' two states are kept if there is room for them.
    """
    h, J, power = potentials
    entries, where, kept, ratios = tables
    minus, plus, places = scratch
    shift, span, units = out[0], out[1], out[2]
    for t in range(begin, end):
        size = 1 << steps.width[t]
        fill(steps, t, h, J, entries, where, minus, plus, places)
        at = where[t]
        take_out(minus, plus, size, power[t], entries, at)
        if len(ratios):
            first_ratio = kept[t]
            inverse = inverse_of(power[t])
            for i in range(size):
                ratio = (plus[i] - minus[i]) * inverse
                ratio = ratio if ratio < LARGEST_RATIO else LARGEST_RATIO
                ratios[first_ratio + i] = ratio if ratio > -LARGEST_RATIO else -LARGEST_RATIO
        first = entries[at]
        if steps.given_first.size and first < NOTHING:
            for i in range(at, at + size):
                first = max(first, entries[i])
        largest = 0
        for i in range(at, at + size):
            entries[i] -= first
            # The bits of positive numbers have the same order as the numbers, and can be compared in vectors.
            bits = as_bits(abs(entries[i]))
            largest = bits if bits > largest else largest
        if steps.given_first.size:  # zeros have no rounding
            largest = as_bits(0.0)
            for i in range(at, at + size):
                if entries[i] > NOTHING:
                    bits = as_bits(abs(entries[i]))
                    largest = bits if bits > largest else largest
        shift[t] = first
        span[t] = as_float(largest)
        units[t] = _units(steps, t, h, J, power, span)


@compiled_in_any_order
def _backwards(
    steps: Steps,
    begin: int,
    end: int,
    tables: Tables,
    scratch: _Scratch,
    out: FloatArray,
    pair_mean: FloatArray,
    term_mean: FloatArray,
) -> None:
    """Undo steps end to begin: each finds its belief in place of its table, and leaves those of its children.

    A step without a separator is the root of a tree. Its table is a number that the bound contains once: belief 1. The
    rows of ``out`` are those of :class:`Beliefs`: up, down and entropy.
    """
    entries, where, kept, ratios = tables
    minus, plus, places = scratch
    up, down, entropy = out[0], out[1], out[2]
    for t in range(end - 1, begin - 1, -1):
        width = steps.width[t]
        size = 1 << width
        at, first_ratio = where[t], kept[t]
        if not width:
            entries[at] = 1.0

        # The belief is divided between both states of the spin.
        for i in range(size):
            belief, ratio = entries[at + i], ratios[first_ratio + i]
            far = abs(ratio)
            rare = exp_minus(far)
            common = 1.0 / (1.0 + rare)
            rare = rare * common if far < LARGEST_RATIO else 0.0
            plus[i] = belief * (common if ratio >= 0.0 else rare)
            minus[i] = belief * (rare if ratio >= 0.0 else common)
        # Loops that write look at addresses before they choose an order of adding; these only read.
        sum_up = sum_down = conditional = 0.0
        for i in range(size):
            sum_up += plus[i]
            sum_down += minus[i]
        for i in range(size):
            far = abs(ratios[first_ratio + i])
            conditional += entries[at + i] * log1p_exp_minus(far) + far * min(plus[i], minus[i])
        up[t], down[t], entropy[t] = sum_up, sum_down, conditional

        # Each child's table is replaced by its belief: this one, summed over the spins that the child does not have.
        low = width if width < BLOCK_BITS else BLOCK_BITS
        for k in range(steps.child_start[t], steps.child_start[t + 1]):
            child, mask = steps.child[k], steps.child_mask[k]
            for i in range(where[child], where[child] + (1 << steps.width[child])):
                entries[i] = 0.0
            tabulate(where[child], mask, low, places)
            for block in range(1 << (width - low)):
                first = block << low
                base = 2 * compressed(first, mask)
                for i in range(1 << low):
                    entries[base + places[i]] += minus[first + i]
                    entries[base + places[i] + 1] += plus[first + i]

        # The mean of the product of the spin with each spin of the separator; this overwrites ``plus``.
        for i in range(size):
            plus[i] -= minus[i]
        if steps.term_start[t] < steps.term_start[t + 1]:
            sum_states(plus, width)
            for bit in range(width):
                pair_mean[steps.bit_start[t] + bit] = plus[1 << bit]
            for k in range(steps.term_start[t], steps.term_start[t + 1]):
                term_mean[k] = plus[steps.term_mask[k]]
            continue
        for bit in range(width - 1, -1, -1):
            half = 1 << bit
            total = 0.0
            for i in range(half):
                total += plus[half + i] - plus[i]
                plus[i] += plus[half + i]
            pair_mean[steps.bit_start[t] + bit] = total

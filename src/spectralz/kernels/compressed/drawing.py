"""Draw states from a compressed elimination, going back through its steps, with their density.

Each step summed out some spins. Given all spins that were still there, they are drawn from the table before the step
times the gates of the spin that arrived. The tables are approximate, so this is not the model's distribution. It is a
distribution q that is sampled exactly and whose density is known: where truncation has made a number negative its
absolute value is used, and no probability is closer to 0 or 1 than ``CLIP``. Many states are drawn together.

The product of the matrices that a state selects is kept from either end of the chain, up to the last site that changed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_for_kernels, inlined
from spectralz.kernels.compressed.chain import product, product_with_transposed, tall

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray, SpinArray
    from spectralz.kernels.compressed.chain import Kept, Weights
    from spectralz.kernels.compressed.placing import Steps

CLIP = 1e-10
# Places in ``Walk.counts``: sites, and how many products are valid from the left and from the right.
LENGTH, LEFT, RIGHT = 0, 1, 2


class Walk(NamedTuple):
    """States on their way back.

    Attributes
    ----------
    offset, left, right, spin
        For each position in the chain: where its tensor is, its shape, and its spin.
    counts
        The number of sites; how many sites the valid products cover, from the left and from the right.
    from_left, from_right
        The products over these sites, one row per state, scaled.
    log_q
        The log of the density of what has been drawn so far.
    negative
        Sum over the draws of the smaller share that had a wrong sign.
    """

    offset: IntArray
    left: IntArray
    right: IntArray
    spin: IntArray
    counts: IntArray
    from_left: FloatArray
    from_right: FloatArray
    log_q: FloatArray
    negative: FloatArray


def new_walk(width: int, bond: int, states: int) -> Walk:
    """Return states with nothing drawn yet, with room for a chain of the given number of sites."""
    offset, left, right, spin = np.zeros((4, width + 2), np.int64)
    from_left, from_right = np.ones((2, width + 2, states * bond))
    counts, log_q, negative = np.zeros(3, np.int64), np.zeros(states), np.zeros(states)
    return Walk(offset, left, right, spin, counts, from_left, from_right, log_q, negative)


@compiled_for_kernels
def _scale(rows: FloatArray) -> None:
    """Divide each row by the largest of its sizes."""
    for b in range(rows.shape[0]):
        largest = 0.0
        for i in range(rows.shape[1]):
            largest = max(largest, abs(rows[b, i]))
        if largest > 0.0:
            for i in range(rows.shape[1]):
                rows[b, i] /= largest


@compiled_for_kernels
def tensor_at(walk: Walk, kept: Kept, p: int) -> FloatArray:
    """Return the tensor of a position, as a wide matrix."""
    left, r = walk.left[p], walk.right[p]
    return kept.numbers[walk.offset[p] : walk.offset[p] + 2 * left * r].reshape(left, 2 * r)


@compiled_for_kernels
def rows_of(products: FloatArray, k: int, states: int, d: int) -> FloatArray:
    """Return the matrix at the beginning of a row."""
    return products[k, : states * d].reshape(states, d)


@compiled_for_kernels
def _extend_left(walk: Walk, kept: Kept, x: SpinArray, wanted: int) -> None:
    """Make the products of the first sites valid, up to ``wanted`` of them."""
    states = len(walk.log_q)
    while walk.counts[LEFT] < wanted:
        p = walk.counts[LEFT]
        left, r = walk.left[p], walk.right[p]
        both = product(rows_of(walk.from_left, p, states, left), tensor_at(walk, kept, p))
        rows = rows_of(walk.from_left, p + 1, states, r)
        spin = walk.spin[p]
        for b in range(states):
            shift = r if x[spin, b] > 0 else 0
            for i in range(r):
                rows[b, i] = both[b, shift + i]
        _scale(rows)
        walk.counts[LEFT] = p + 1


@compiled_for_kernels
def _times_right(tensor: FloatArray, rows: FloatArray) -> FloatArray:
    """Return tensor times vector for both spins: (states, left, 2)."""
    return product_with_transposed(rows, tall(tensor)).reshape(len(rows), len(tensor), 2)


@compiled_for_kernels
def _extend_right(walk: Walk, kept: Kept, x: SpinArray, wanted: int) -> None:
    """Make the products of the last sites valid, up to ``wanted`` of them."""
    states = len(walk.log_q)
    while walk.counts[RIGHT] < wanted:
        k = walk.counts[RIGHT]
        p = walk.counts[LENGTH] - 1 - k
        left, r = walk.left[p], walk.right[p]
        both = _times_right(tensor_at(walk, kept, p), rows_of(walk.from_right, k, states, r))
        rows = rows_of(walk.from_right, k + 1, states, left)
        spin = walk.spin[p]
        for b in range(states):
            s = 1 if x[spin, b] > 0 else 0
            for i in range(left):
                rows[b, i] = both[b, i, s]
        _scale(rows)
        walk.counts[RIGHT] = k + 1


@compiled_for_kernels
def _choose(walk: Walk, b: int, plus: float, minus: float, x: SpinArray, spin: int, u: float, draws: bool) -> None:
    """Draw a spin of one state from two weights, or keep its value, and record its density."""
    size = abs(plus) + abs(minus)
    p = 0.5
    if size > 0.0 and size < np.inf:
        p = abs(plus) / size
        if plus * minus < 0.0:
            walk.negative[b] += min(p, 1.0 - p)
    p = min(max(p, CLIP), 1.0 - CLIP)
    if draws:
        x[spin, b] = 1 if u < p else -1
    walk.log_q[b] += math.log(p) if x[spin, b] > 0 else math.log1p(-p)


@compiled_for_kernels
def gate(J: float, is_same: bool) -> float:
    """Return exp(J x y - |J|)."""
    return 1.0 if is_same == (J >= 0.0) else math.exp(-2.0 * abs(J))


@compiled_for_kernels
def undo(walk: Walk, kept: Kept, steps: Steps, t: int) -> None:
    """Restore the chain as it was before a step."""
    k = t - kept.begin
    first, begin, end = kept.first[k], kept.start[k], kept.start[k + 1]
    gone = 1 if steps.is_gone[t] else 0
    for near in range(steps.start[t], steps.start[t + 1]):
        gone += 1 if steps.near_gone[near] else 0
    new = end - begin
    old = new + (1 if steps.is_new[t] else 0) - gone
    length = walk.counts[LENGTH]
    walk.counts[LEFT] = min(walk.counts[LEFT], first)
    walk.counts[RIGHT] = min(walk.counts[RIGHT], length - first - old)
    moved = length - first - old if new != old else 0
    for i in range(moved):
        p = length - 1 - i if new > old else first + old + i
        for numbers in (walk.offset, walk.left, walk.right, walk.spin):
            numbers[p + new - old] = numbers[p]
    walk.counts[LENGTH] = length + new - old
    for i in range(new):
        walk.offset[first + i] = kept.site_offset[begin + i]
        walk.left[first + i] = kept.site_left[begin + i]
        walk.right[first + i] = kept.site_right[begin + i]
        walk.spin[first + i] = kept.site_spin[begin + i]


@inlined
def _draw_single(
    walk: Walk, kept: Kept, x: SpinArray, place: int, J: float, v: int, u: FloatArray, draws: bool
) -> None:
    """Draw the one spin that a step summed out, whose neighbor v is known."""
    states = len(walk.log_q)
    after = walk.counts[LENGTH] - 1 - place
    _extend_left(walk, kept, x, place)
    _extend_right(walk, kept, x, after)
    left, r = walk.left[place], walk.right[place]
    both = product(rows_of(walk.from_left, place, states, left), tensor_at(walk, kept, place))
    right = rows_of(walk.from_right, after, states, r)
    spin = walk.spin[place]
    for b in range(states):
        minus, plus = 0.0, 0.0
        for i in range(r):
            minus += both[b, i] * right[b, i]
            plus += both[b, r + i] * right[b, i]
        is_up = x[v, b] > 0
        _choose(walk, b, plus * gate(J, is_up), minus * gate(J, not is_up), x, spin, u[b], draws)


@inlined
def _draw_several(
    walk: Walk,
    kept: Kept,
    x: SpinArray,
    low: int,
    high: int,
    coupling: FloatArray,
    is_drawn: BoolArray,
    v: int,
    field: FloatArray,
    is_v_drawn: bool,
    u: FloatArray,
    draws: bool,
) -> None:
    """Draw what a step summed out: the positions ``is_drawn`` from ``low`` to ``high``, and v if it was summed out.

    ``field`` is the field on v without them, one number per state.
    """
    states = len(walk.log_q)
    after = walk.counts[LENGTH] - 1 - high
    _extend_left(walk, kept, x, low)
    _extend_right(walk, kept, x, after)
    count = high - low + 1
    widest = 1
    for p in range(low, high + 1):
        widest = max(widest, max(walk.left[p], walk.right[p]))
    # Sums over the spins that are drawn, from the right, for either value of v; logs of what was taken out.
    sums = np.zeros((2, count + 1, states * widest))
    scale = np.zeros((2, states))
    for s in range(2):
        r = walk.right[high]
        for b in range(states * r):
            sums[s, count, b] = walk.from_right[after, b]
        for i in range(count - 1, -1, -1):
            p = low + i
            left, r = walk.left[p], walk.right[p]
            both = _times_right(tensor_at(walk, kept, p), rows_of(sums[s], i + 1, states, r))
            rows = rows_of(sums[s], i, states, left)
            spin = walk.spin[p]
            for b in range(states):
                plus, minus = 1.0, 1.0
                if is_drawn[i]:
                    plus, minus = gate(coupling[i], s == 1), gate(coupling[i], s == 0)
                elif x[spin, b] > 0:
                    minus = 0.0
                else:
                    plus = 0.0
                largest = 0.0
                for j in range(left):
                    rows[b, j] = minus * both[b, j, 0] + plus * both[b, j, 1]
                    largest = max(largest, abs(rows[b, j]))
                if largest > 0.0:
                    for j in range(left):
                        rows[b, j] /= largest
                    scale[s, b] += math.log(largest)
    drawn = 0
    if is_v_drawn:
        left = walk.left[low]
        rows = rows_of(walk.from_left, low, states, left)
        for b in range(states):
            minus, plus = 0.0, 0.0
            for j in range(left):
                minus += rows[b, j] * sums[0, 0, b * left + j]
                plus += rows[b, j] * sums[1, 0, b * left + j]
            # In logs until the larger one is known.
            log_plus, log_minus = scale[1, b] + field[b], scale[0, b] - field[b]
            top = max(log_plus, log_minus)
            _choose(walk, b, plus * math.exp(log_plus - top), minus * math.exp(log_minus - top), x, v, u[0, b], draws)
        drawn = 1
    for i in range(count):
        p = low + i
        if is_drawn[i]:
            _extend_left(walk, kept, x, p)
            left, r = walk.left[p], walk.right[p]
            both = product(rows_of(walk.from_left, p, states, left), tensor_at(walk, kept, p))
            spin = walk.spin[p]
            for b in range(states):
                s = 1 if x[v, b] > 0 else 0
                minus, plus = 0.0, 0.0
                for j in range(r):
                    minus += both[b, j] * sums[s, i + 1, b * r + j]
                    plus += both[b, r + j] * sums[s, i + 1, b * r + j]
                J = coupling[i]
                _choose(walk, b, plus * gate(J, s == 1), minus * gate(J, s == 0), x, spin, u[drawn, b], draws)
            drawn += 1


@inlined
def _draw_free(walk: Walk, x: SpinArray, v: int, field: FloatArray, u: FloatArray, draws: bool) -> None:
    """Draw a spin all of whose neighbors are known, exactly."""
    for b in range(len(walk.log_q)):
        h = field[b]
        rest = math.log1p(math.exp(-2.0 * abs(h)))
        if draws:
            # u < 1 / (1 + exp(-2 h))
            e = math.exp(-2.0 * abs(h))
            p = 1.0 / (1.0 + e) if h >= 0.0 else e / (1.0 + e)
            x[v, b] = 1 if u[b] < p else -1
        walk.log_q[b] -= rest + (0.0 if (x[v, b] > 0) == (h >= 0.0) else 2.0 * abs(h))


@compiled
def go_back(
    steps: Steps, weights: Weights, begin: int, end: int, kept: Kept, walk: Walk, x: SpinArray, random: FloatArray
) -> None:
    """Go back from step ``end`` to ``begin`` and draw what they summed out into x (spins x states).

    ``random`` has one row of uniform numbers per spin that is drawn. Without rows, x is unchanged and only its density
    is computed.
    """
    draws = len(random) > 0
    states = len(walk.log_q)
    used = 0
    for t in range(end - 1, begin - 1, -1):
        v = steps.spin[t]
        undo(walk, kept, steps, t)
        low, high = 1 << 60, -1
        drawn = 1 if steps.is_gone[t] else 0
        if steps.taken[t] >= 0:
            low = high = steps.place[t]
            drawn += 1
        for k in range(steps.start[t], steps.start[t + 1]):
            if steps.near_gone[k]:
                p = steps.near_place[k]
                if steps.is_new[t] and p > steps.place[t]:
                    p -= 1
                low, high = min(low, p), max(high, p)
                drawn += 1
        if drawn == 0:
            continue
        u = random[used : used + drawn] if draws else np.zeros((drawn, states))
        used += drawn
        if drawn == 1 and not steps.is_gone[t]:
            J = 0.0
            if steps.taken[t] >= 0:
                J = weights.coupling[steps.taken[t]]
            for k in range(steps.start[t], steps.start[t + 1]):
                if steps.near_gone[k]:
                    J = weights.coupling[steps.near[k]]
            _draw_single(walk, kept, x, low, J, v, u[0], draws)
            continue
        count = max(high - low + 1, 0)
        coupling, is_drawn = np.zeros(count), np.zeros(count, np.bool_)
        field = np.full(states, weights.field[v])
        if steps.taken[t] >= 0:
            coupling[steps.place[t] - low] = weights.coupling[steps.taken[t]]
            is_drawn[steps.place[t] - low] = True
        for k in range(steps.start[t], steps.start[t + 1]):
            J = weights.coupling[steps.near[k]]
            p = steps.near_place[k]
            if steps.is_new[t] and p > steps.place[t]:
                p -= 1
            if steps.near_gone[k]:
                coupling[p - low] = J
                is_drawn[p - low] = True
            elif steps.is_gone[t]:
                for b in range(states):
                    field[b] += J * x[walk.spin[p], b]
        if count == 0:
            _draw_free(walk, x, v, field, u[0], draws)
        else:
            _draw_several(walk, kept, x, low, high, coupling, is_drawn, v, field, steps.is_gone[t], u, draws)

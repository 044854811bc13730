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

from spectralz._support.compiling import compiled_for_kernels, compiled_in_place, inlined
from spectralz.kernels.compressed.chain import GATE, KEPT_SITE
from spectralz.kernels.compressed.matrices import multiply, row_of

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RecordArray, SpinArray
    from spectralz.kernels.compressed.chain import Kept, Weights
    from spectralz.kernels.compressed.placing import Steps

CLIP = 1e-10
# Rows of ``Draws.per_state``, and the first row of the sums in ``Draws.matrices``.
LOG_Q, NEGATIVE, MINUS, PLUS, FIELD, LOGS_MINUS, LOGS_PLUS, ROWS = range(8)
SUMS = 1
STATE = np.dtype([(name, np.int64) for name in ("length", "left", "right")], align=True)


class Walk(NamedTuple):
    """A chain on its way back, and products of its tensors from either end.

    Attributes
    ----------
    sites
        For each position in the chain: the ``offset`` of its tensor, its shape ``left``, ``right``, and its ``spin``.
    state
        One record. ``length``: the number of sites. ``left``, ``right``: how many sites the valid products cover, from
        the left and from the right.
    products
        Row 2 k has the product over the first k sites, and row 2 k + 1 that over the last k, for each state, scaled.
    """

    sites: RecordArray
    state: RecordArray
    products: FloatArray


class Draws(NamedTuple):
    """The density of states that are drawn, and room for a step.

    Attributes
    ----------
    per_state
        Rows by the names above, one number per state: the log of the density of what has been drawn so far; the sum
        over the draws of the smaller share that had a wrong sign; the weights of the two values of the spin that is
        drawn; the field on the spin of a step; and the logs of what was taken out of the sums for either value of it.
    matrices
        Row 0 has the product for both values of a spin, for each state. Row ``SUMS`` + 2 i + s has the product from the
        right over a span up to site i where the step's spin has the value s, other spins summed.
    gates
        The sites of a span: the ``coupling`` to the step's spin, and whether the site ``is_gone`` after it.
    """

    per_state: FloatArray
    matrices: FloatArray
    gates: RecordArray


def new_walk(width: int, bond: int, states: int) -> Walk:
    """Return a chain without sites, with room for the given number."""
    return Walk(np.zeros(width + 2, KEPT_SITE), np.zeros(1, STATE), np.ones((2 * width + 4, states * bond)))


def new_draws(span: int, bond: int, states: int) -> Draws:
    """Return states with nothing drawn yet, with room for spans of the given number of sites."""
    return Draws(np.zeros((ROWS, states)), np.empty((SUMS + 2 * span + 2, 2 * states * bond)), np.zeros(span, GATE))


@compiled_for_kernels
def scale(rows: FloatArray, states: int, d: int) -> None:
    """Divide each row by the largest of its sizes."""
    for b in range(states):
        largest = 0.0
        for i in range(b * d, b * d + d):
            largest = max(largest, abs(rows[i]))
        if largest > 0.0:
            for i in range(b * d, b * d + d):
                rows[i] /= largest


@compiled_for_kernels
def tensor_at(walk: Walk, kept: Kept, p: int) -> FloatArray:
    """Return the tensor of a position."""
    return row_of(kept.numbers, walk.sites[p].offset)


@compiled_for_kernels
def _extend_left(walk: Walk, kept: Kept, both: FloatArray, x: SpinArray, wanted: int) -> None:
    """Make the products of the first sites valid, up to ``wanted`` of them."""
    state, states = walk.state[0], x.shape[1]
    while state.left < wanted:
        p = state.left
        site = walk.sites[p]
        r, rows, tensor = site.right, row_of(walk.products, 2 * p + 2), tensor_at(walk, kept, p)
        multiply(both, row_of(walk.products, 2 * p), tensor, states, site.left, 2 * r, False, False)
        for b in range(states):
            chosen = 2 * b + (1 if x[site.spin, b] > 0 else 0)
            for i in range(r):
                rows[b * r + i] = both[chosen * r + i]
        scale(rows, states, r)
        state.left = p + 1


@compiled_for_kernels
def _extend_right(walk: Walk, kept: Kept, both: FloatArray, x: SpinArray, wanted: int) -> None:
    """Make the products of the last sites valid, up to ``wanted`` of them."""
    state, states = walk.state[0], x.shape[1]
    while state.right < wanted:
        k = state.right
        p = state.length - 1 - k
        site = walk.sites[p]
        left, rows, tensor = site.left, row_of(walk.products, 2 * k + 3), tensor_at(walk, kept, p)
        multiply(both, row_of(walk.products, 2 * k + 1), tensor, states, site.right, 2 * left, False, True)
        for b in range(states):
            s = 1 if x[site.spin, b] > 0 else 0
            for i in range(left):
                rows[b * left + i] = both[2 * (b * left + i) + s]
        scale(rows, states, left)
        state.right = k + 1


@compiled_for_kernels
def _choose(draws: Draws, x: SpinArray, spin: int, random: FloatArray, row: int) -> None:
    """Draw a spin of each state from two weights, or keep its value, and record its density."""
    log_q, negative = row_of(draws.per_state, LOG_Q), row_of(draws.per_state, NEGATIVE)
    minuses, pluses = row_of(draws.per_state, MINUS), row_of(draws.per_state, PLUS)
    for b in range(x.shape[1]):
        minus, plus = minuses[b], pluses[b]
        size = abs(plus) + abs(minus)
        p = 0.5
        if size > 0.0 and size < np.inf:
            p = abs(plus) / size
            if plus * minus < 0.0:
                negative[b] += min(p, 1.0 - p)
        p = min(max(p, CLIP), 1.0 - CLIP)
        if len(random):
            x[spin, b] = 1 if random[row, b] < p else -1
        log_q[b] += math.log(p) if x[spin, b] > 0 else math.log1p(-p)


@compiled_for_kernels
def gate(J: float, is_same: bool) -> float:
    """Return exp(J x y - |J|)."""
    return 1.0 if is_same == (J >= 0.0) else math.exp(-2.0 * abs(J))


@compiled_for_kernels
def undo(walk: Walk, kept: Kept, steps: Steps, t: int) -> None:
    """Restore the chain as it was before a step."""
    sites, state, step = walk.sites, walk.state[0], steps.step[t]
    k = t - kept.begin
    first, begin = kept.steps[k].first, kept.steps[k].start
    new = kept.steps[k + 1].start - begin
    old = new + step.is_new - step.is_gone
    for near in range(step.start, step.end):
        old -= steps.near[near].is_gone
    after = state.length - first - old  # sites beyond those that change
    state.left = min(state.left, first)
    state.right = min(state.right, after)
    for i in range(after if new != old else 0):
        p = first + old + (after - 1 - i if new > old else i)
        sites[p + new - old] = sites[p]
    for i in range(new):
        sites[first + i] = kept.sites[begin + i]
    state.length = first + new + after


@compiled_for_kernels
def _sum_from_right(walk: Walk, kept: Kept, draws: Draws, x: SpinArray, low: int, count: int, until: int) -> None:
    """Sum over the spins that are drawn, from the right end of a span to a site of it, for either value of v."""
    states, matrices, both = x.shape[1], draws.matrices, row_of(draws.matrices, 0)
    after = walk.state[0].length - low - count
    for s in range(2):
        logs, right = row_of(draws.per_state, LOGS_MINUS + s), row_of(walk.products, 2 * after + 1)
        rows = row_of(matrices, SUMS + 2 * count + s)
        for i in range(states * walk.sites[low + count - 1].right):
            rows[i] = right[i]
        for b in range(states):
            logs[b] = 0.0
        for i in range(count - 1, until - 1, -1):
            site, known = walk.sites[low + i], draws.gates[i].is_gone == 0
            left = site.left
            tensor = tensor_at(walk, kept, low + i)
            multiply(both, rows, tensor, states, site.right, 2 * left, False, True)
            rows = row_of(matrices, SUMS + 2 * i + s)
            plus, minus = gate(draws.gates[i].coupling, s == 1), gate(draws.gates[i].coupling, s == 0)
            for b in range(states):
                if known:
                    plus = 1.0 if x[site.spin, b] > 0 else 0.0
                    minus = 1.0 - plus
                largest = 0.0
                for j in range(b * left, b * left + left):
                    rows[j] = minus * both[2 * j] + plus * both[2 * j + 1]
                    largest = max(largest, abs(rows[j]))
                if largest > 0.0:
                    for j in range(b * left, b * left + left):
                        rows[j] /= largest
                    logs[b] += math.log(largest)


@inlined
def _weigh_own(walk: Walk, draws: Draws, low: int, states: int) -> None:
    """Write the weights of the two values of the step's own spin."""
    left, rows, per_state = walk.sites[low].left, row_of(walk.products, 2 * low), draws.per_state
    minus_sums, plus_sums = row_of(draws.matrices, SUMS), row_of(draws.matrices, SUMS + 1)
    for b in range(states):
        minus, plus = 0.0, 0.0
        for j in range(b * left, b * left + left):
            minus += rows[j] * minus_sums[j]
            plus += rows[j] * plus_sums[j]
        # In logs until the larger one is known.
        log_plus = per_state[LOGS_PLUS, b] + per_state[FIELD, b]
        log_minus = per_state[LOGS_MINUS, b] - per_state[FIELD, b]
        top = max(log_plus, log_minus)
        per_state[MINUS, b] = minus * math.exp(log_minus - top)
        per_state[PLUS, b] = plus * math.exp(log_plus - top)


@inlined
def _weigh_site(walk: Walk, kept: Kept, draws: Draws, x: SpinArray, low: int, i: int, v: int) -> None:
    """Write the weights of the two values of the spin of a site, where v is known."""
    site, both, J, states = walk.sites[low + i], row_of(draws.matrices, 0), draws.gates[i].coupling, x.shape[1]
    r, same, other = site.right, gate(J, True), gate(J, False)
    tensor = tensor_at(walk, kept, low + i)
    multiply(both, row_of(walk.products, 2 * (low + i)), tensor, states, site.left, 2 * r, False, False)
    for b in range(states):
        s = 1 if x[v, b] > 0 else 0
        right = row_of(draws.matrices, SUMS + 2 * (i + 1) + s)
        minus, plus = 0.0, 0.0
        for j in range(r):
            minus += both[2 * b * r + j] * right[b * r + j]
            plus += both[2 * b * r + r + j] * right[b * r + j]
        draws.per_state[MINUS, b] = minus * (other if s else same)
        draws.per_state[PLUS, b] = plus * (same if s else other)


@inlined
def _draw_at_sites(
    walk: Walk,
    kept: Kept,
    draws: Draws,
    x: SpinArray,
    low: int,
    count: int,
    v: int,
    is_v_drawn: bool,
    random: FloatArray,
    row: int,
) -> None:
    """Draw what a step summed out: sites of the span from ``low`` on, and v if it was summed out."""
    both = row_of(draws.matrices, 0)
    _extend_right(walk, kept, both, x, walk.state[0].length - low - count)
    # The first sum is over all of the span, which only v needs.
    _sum_from_right(walk, kept, draws, x, low, count, 0 if is_v_drawn else 1)
    for i in range(-1, count):
        if i < 0 and is_v_drawn:
            _extend_left(walk, kept, both, x, low)
            _weigh_own(walk, draws, low, x.shape[1])
            spin = v
        elif i >= 0 and draws.gates[i].is_gone:
            _extend_left(walk, kept, both, x, low + i)
            _weigh_site(walk, kept, draws, x, low, i, v)
            spin = walk.sites[low + i].spin
        else:
            continue
        _choose(draws, x, spin, random, row)
        row += 1


@inlined
def _draw_free(draws: Draws, x: SpinArray, v: int, random: FloatArray, row: int) -> None:
    """Draw a spin all of whose neighbors are known, exactly."""
    field, log_q = row_of(draws.per_state, FIELD), row_of(draws.per_state, LOG_Q)
    for b in range(x.shape[1]):
        h = field[b]
        e = math.exp(-2.0 * abs(h))
        if len(random):
            # u < 1 / (1 + exp(-2 h))
            x[v, b] = 1 if random[row, b] < (1.0 if h >= 0.0 else e) / (1.0 + e) else -1
        log_q[b] -= math.log1p(e) + (0.0 if (x[v, b] > 0) == (h >= 0.0) else 2.0 * abs(h))


@compiled_in_place
def go_back(
    steps: Steps,
    weights: Weights,
    begin: int,
    end: int,
    kept: Kept,
    walk: Walk,
    draws: Draws,
    x: SpinArray,
    random: FloatArray,
) -> None:
    """Go back from step ``end`` to ``begin`` and draw what they summed out into x (spins x states).

    ``random`` has one row of uniform numbers per spin that is drawn. Without rows, x is unchanged and only its density
    is computed.
    """
    near, gates, field = steps.near, draws.gates, row_of(draws.per_state, FIELD)
    row = 0
    for t in range(end - 1, begin - 1, -1):
        step = steps.step[t]
        undo(walk, kept, steps, t)
        # The sites that are drawn, in the chain as it was before the step.
        low, high = step.high + 1, -1
        if step.taken >= 0:
            low = high = step.place
        for k in range(step.start, step.end):
            if near[k].is_gone:
                p = near[k].place - (1 if step.is_new and near[k].place > step.place else 0)
                low, high = min(low, p), max(high, p)
        count = max(high - low + 1, 0)
        for i in range(count):
            gates[i].coupling = 0.0
            gates[i].is_gone = 0
        if step.taken >= 0:
            gates[step.place - low].coupling = weights.coupling[step.taken]
            gates[step.place - low].is_gone = 1
        drawn = step.is_gone + (1 if step.taken >= 0 else 0)
        if step.is_gone:
            for b in range(x.shape[1]):
                field[b] = weights.field[step.spin]
        for k in range(step.start, step.end):
            J = weights.coupling[near[k].slot]
            p = near[k].place - (1 if step.is_new and near[k].place > step.place else 0)
            if near[k].is_gone:
                gates[p - low].coupling = J
                gates[p - low].is_gone = 1
                drawn += 1
            elif step.is_gone:
                spin = walk.sites[p].spin
                for b in range(x.shape[1]):
                    field[b] += J * x[spin, b]
        if count > 0:
            _draw_at_sites(walk, kept, draws, x, low, count, step.spin, step.is_gone > 0, random, row)
        elif step.is_gone:
            _draw_free(draws, x, step.spin, random, row)
        row += drawn

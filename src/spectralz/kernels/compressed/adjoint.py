"""Means of spins and of pairs, from a table of the past and a table of the future.

On the way back through the steps, a second chain holds the *future* of the frontier: the sum over all spins still to
come, as a table over the sites. The transposed steps change it, and it is compressed like the first one. When spin v
arrives, the product of the table of the past, the gates of v and the table of the future sums to Z. With v and one of
its neighbors held fixed, the sum gives their joint probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spectralz._support.compiling import compiled_for_kernels, compiled_in_place
from spectralz.kernels.compressed.chain import (
    AFTER,
    BEFORE,
    BLOCK,
    CARRY,
    CARRY_PLUS,
    FACTOR,
    LOADED,
    OF_SITES,
    change_span,
    insert,
    move_center,
    set_gates,
)
from spectralz.kernels.compressed.drawing import gate, scale, tensor_at, undo
from spectralz.kernels.compressed.matrices import multiply, row_of

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray
    from spectralz.kernels.compressed.chain import Chain, Kept, Room, Weights
    from spectralz.kernels.compressed.drawing import Walk
    from spectralz.kernels.compressed.placing import Steps


class Joint(NamedTuple):
    """Weights of x = -1 and x = 1 for each spin, and of x y = -1 and x y = 1 in the slot of each edge."""

    spins: FloatArray
    edges: FloatArray


@compiled_for_kernels
def _inner_product(a: FloatArray, b: FloatArray, count: int) -> float:
    total = 0.0
    for i in range(count):
        total += a[i] * b[i]
    return total


@compiled_for_kernels
def _extend(walk: Walk, kept: Kept, chain: Chain, room: Room, from_left: int, from_right: int) -> None:
    """Make the products of past and future valid over the given sites from the left and from the right."""
    sites, state, half = chain.sites, walk.state[0], row_of(room.matrices, BEFORE)
    while state.left < from_left:
        p = state.left
        past, future = walk.sites[p], sites[sites[p].slot]
        out, tensor = row_of(walk.products, 2 * p + 2), row_of(chain.tensors, sites[p].slot)
        multiply(half, row_of(walk.products, 2 * p), tensor, past.left, future.left, 2 * future.right, False, False)
        multiply(out, tensor_at(walk, kept, p), half, past.right, 2 * past.left, future.right, True, False)
        scale(out, 1, past.right * future.right)
        state.left = p + 1
    while state.right < from_right:
        k = state.right
        p, q = state.length - 1 - k, chain.state[0].length - 1 - k
        past, future = walk.sites[p], sites[sites[q].slot]
        out, tensor = row_of(walk.products, 2 * k + 3), row_of(chain.tensors, sites[q].slot)
        after = row_of(walk.products, 2 * k + 1)
        multiply(half, tensor_at(walk, kept, p), after, 2 * past.left, past.right, future.right, False, False)
        multiply(out, half, tensor, past.left, 2 * future.right, future.left, False, True)
        scale(out, 1, past.left * future.left)
        state.right = k + 1


@compiled_for_kernels
def _choose(out: FloatArray, tensor: FloatArray, left: int, right: int, x: int) -> None:
    """Copy the matrix that a spin chooses."""
    for i in range(left):
        for j in range(right):
            out[i * right + j] = tensor[(2 * i + x) * right + j]


@compiled_for_kernels
def _sandwich(
    out: FloatArray,
    matrix: FloatArray,
    walk: Walk,
    kept: Kept,
    chain: Chain,
    room: Room,
    i: int,
    x: int,
    y: int,
    is_from_left: bool,
) -> None:
    """Multiply a product by the matrices of one site: of x in the past and of y in the future, where present."""
    here, there, chosen = room.gates[i], room.gates[i + 1], row_of(room.matrices, LOADED)
    source, target = there, here
    if is_from_left:
        source, target = here, there
    if here.past >= 0:
        _choose(chosen, tensor_at(walk, kept, here.past), here.rows, there.rows, x)
        half = row_of(room.matrices, BEFORE)
        multiply(half, chosen, matrix, target.rows, source.rows, source.columns, is_from_left, False)
        matrix = half
    if here.future >= 0:
        _choose(chosen, row_of(chain.tensors, chain.sites[here.future].slot), here.columns, there.columns, y)
        multiply(out, matrix, chosen, target.rows, source.columns, target.columns, False, not is_from_left)
    else:
        for k in range(target.rows * target.columns):
            out[k] = matrix[k]


@compiled_for_kernels
def _summed(
    out: FloatArray,
    matrix: FloatArray,
    walk: Walk,
    kept: Kept,
    chain: Chain,
    room: Room,
    i: int,
    is_own: bool,
    s: int,
    is_from_left: bool,
) -> None:
    """Multiply a product by a site of the span, its spin summed out and that of the step held fixed."""
    site, plus = room.gates[i], row_of(room.matrices, AFTER)
    target = room.gates[i + 1 if is_from_left else i]
    if is_own and site.past < 0:
        _sandwich(out, matrix, walk, kept, chain, room, i, s, s, is_from_left)
        return
    _sandwich(out, matrix, walk, kept, chain, room, i, 0, s if is_own else 0, is_from_left)
    _sandwich(plus, matrix, walk, kept, chain, room, i, 1, s if is_own else 1, is_from_left)
    low_weight, high_weight = gate(site.coupling, s == 0), gate(site.coupling, s == 1)
    for k in range(target.rows * target.columns):
        out[k] = low_weight * out[k] + high_weight * plus[k]


@compiled_for_kernels
def _lay_out(steps: Steps, weights: Weights, t: int, walk: Walk, chain: Chain, room: Room) -> int:
    """Write the sites of a step's span, with its bonds in past and future; return the position where its past ends."""
    step, gates, near, sites = steps.step[t], room.gates, steps.near, chain.sites
    low, count = step.low, step.high - step.low + 1
    set_gates(steps, weights, t, room, low, count)
    for i in range(count):
        gates[i].edge = -1
    own = gates[step.place - low]
    own.edge, own.is_gone = step.taken, step.is_gone
    if step.taken >= 0:
        own.coupling = weights.coupling[step.taken]
    for k in range(step.start, step.end):
        gates[near[k].place - low].edge = near[k].slot
        gates[near[k].place - low].is_gone = near[k].is_gone
    rows, columns, here, there = 1, 1, low, low
    if low > 0:
        rows, columns = walk.sites[low - 1].right, sites[sites[low - 1].slot].right
    for i in range(count):
        site = gates[i]
        site.past = site.future = -1
        site.rows, site.columns = rows, columns
        if low + i != step.place or not step.is_new:
            site.past = here
            rows = walk.sites[here].right
            here += 1
        if not site.is_gone:
            site.future = there
            columns = sites[sites[there].slot].right
            there += 1
    gates[count].rows, gates[count].columns = rows, columns
    return here


@compiled_for_kernels
def _joint(
    steps: Steps, weights: Weights, t: int, kept: Kept, walk: Walk, chain: Chain, room: Room, joint: Joint
) -> None:
    """Write the weights of the two values of the spin of a step, and of its edges being satisfied or not."""
    step, gates, matrices = steps.step[t], room.gates, room.matrices
    low, count = step.low, step.high - step.low + 1
    sites_after = walk.state[0].length - _lay_out(steps, weights, t, walk, chain, room)
    _extend(walk, kept, chain, room, low, sites_after)
    for s in range(2):
        weight_of_v = gate(weights.field[step.spin], s == 1)
        # Products from the right up to each site, the spins in between summed.
        last = right = row_of(walk.products, 2 * sites_after + 1)
        for i in range(count - 1, -1, -1):
            _summed(row_of(matrices, OF_SITES + i), right, walk, kept, chain, room, i, low + i == step.place, s, False)
            right = row_of(matrices, OF_SITES + i)
        left = row_of(walk.products, 2 * low)
        joint.spins[step.spin, s] = weight_of_v * _inner_product(left, right, gates[0].rows * gates[0].columns)
        for i in range(count):
            site, is_own = gates[i], low + i == step.place
            if site.edge >= 0:
                right = row_of(matrices, OF_SITES + i + 1) if i < count - 1 else last
                for x in range(2):
                    _sandwich(row_of(matrices, BLOCK), right, walk, kept, chain, room, i, x, s if is_own else x, False)
                    total = _inner_product(left, row_of(matrices, BLOCK), site.rows * site.columns)
                    joint.edges[site.edge, 1 if x == s else 0] += weight_of_v * gate(site.coupling, x == s) * total
            if i < count - 1:
                following = row_of(matrices, CARRY if i % 2 == 0 else CARRY_PLUS)
                _summed(following, left, walk, kept, chain, room, i, is_own, s, True)
                left = following


@compiled_for_kernels
def _transposed_step(steps: Steps, weights: Weights, t: int, chain: Chain, room: Room, walk: Walk) -> None:
    """Take the table of the future back over one step, whose span is laid out."""
    step, gates, state, valid = steps.step[t], room.gates, chain.state[0], walk.state[0]
    low, high, place, length = step.low, step.high, step.place, state.length
    missing = 0
    for i in range(high - low + 1):
        missing += gates[i].is_gone
    first, last = low, high - missing  # of the sites that are there
    begin, end = low, high
    if last < first and length > 0:
        if low < length:
            last, end = low, high + 1
        else:
            first = last = begin = low - 1
    valid.left = min(valid.left, first)
    valid.right = min(valid.right, length - 1 - last)
    if length > 0:
        valid.left = min(valid.left, state.center)
        valid.right = min(valid.right, length - 1 - state.center)
        move_center(chain, room, min(max(state.center, first), last))
    for p in range(low, high + 1):
        if gates[p - low].is_gone:
            insert(chain, p)
    size = end - begin + 1
    set_gates(steps, weights, t, room, begin, size)
    gates[place - begin].is_gone = step.is_new
    factor = row_of(room.matrices, FACTOR)
    factor[1], factor[2] = factor[2], factor[1]
    goes_up = t > 0 and steps.step[t - 1].place >= place
    change_span(chain, room, begin, size, place, step.start < step.end, True, goes_up)


@compiled_in_place
def means_back(
    steps: Steps,
    weights: Weights,
    begin: int,
    end: int,
    kept: Kept,
    walk: Walk,
    chain: Chain,
    room: Room,
    joint: Joint,
) -> None:
    """Go back from step ``end`` to ``begin`` with the table of the future in ``chain``.

    Writes the joint weights, which are to be divided by their sum.
    """
    for t in range(end - 1, begin - 1, -1):
        undo(walk, kept, steps, t)
        _joint(steps, weights, t, kept, walk, chain, room, joint)
        _transposed_step(steps, weights, t, chain, room, walk)
        if chain.state[0].sign == 0.0:
            return

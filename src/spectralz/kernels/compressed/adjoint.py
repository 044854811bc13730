"""Means of spins and of pairs, from a table of the past and a table of the future.

On the way back through the steps, a second chain holds the *future* of the frontier: the sum over all spins still to
come, as a table over the sites. The transposed steps change it, and it is compressed like the first one. When spin v
arrives, the product of the table of the past, the gates of v and the table of the future sums to Z. With v and one of
its neighbors held fixed, the sum gives their joint probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_for_kernels, inlined
from spectralz.kernels.compressed.chain import (
    CENTER,
    SIGN,
    Gates,
    change_span,
    columns_of,
    insert,
    move_center,
    own_matrix,
    product,
    product_with_transposed,
    tall,
    wide,
)
from spectralz.kernels.compressed.chain import LENGTH as SITES
from spectralz.kernels.compressed.drawing import LEFT, LENGTH, RIGHT, gate, rows_of, tensor_at, undo

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.compressed.chain import Chain, Kept, Weights
    from spectralz.kernels.compressed.drawing import Walk
    from spectralz.kernels.compressed.placing import Steps


class Joint(NamedTuple):
    """Weights of x = 1 and x = -1 for each spin, and of x y = 1 and x y = -1 in the slot of each edge."""

    up: FloatArray
    down: FloatArray
    same: FloatArray
    other: FloatArray


class _Span(NamedTuple):
    """The sites of a step's span.

    Attributes
    ----------
    site
        Which of them is that of the step's own spin.
    past, future
        The position of each site in the chains of the past and of the future, or -1.
    gates
        The gate between each site's spin x and the step's own spin s, by site, s and x; 1 where there is none.
    """

    site: int
    past: IntArray
    future: IntArray
    gates: FloatArray


@compiled_for_kernels
def _site(chain: Chain, p: int) -> FloatArray:
    slot = chain.slot[p]
    left, right = chain.left[slot], chain.right[slot]
    return rows_of(chain.tensors, slot, left, 2 * right)


@compiled_for_kernels
def _transposed_product(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.dot(a.T, b)


@compiled_for_kernels
def _inner_product(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@compiled_for_kernels
def _scaled_into(values: FloatArray, row: FloatArray) -> None:
    """Write a matrix into a row, divided by its largest size."""
    rows, columns = values.shape
    largest = 0.0
    for i in range(rows):
        for j in range(columns):
            largest = max(largest, abs(values[i, j]))
    if largest == 0.0:
        largest = 1.0
    for i in range(rows):
        for j in range(columns):
            row[i * columns + j] = values[i, j] / largest


@inlined
def _extend(walk: Walk, kept: Kept, chain: Chain, from_left: int, from_right: int) -> None:
    """Make the products of past and future valid over the given sites from the left and from the right."""
    while walk.counts[LEFT] < from_left:
        p = walk.counts[LEFT]
        past, future = tensor_at(walk, kept, p), _site(chain, p)
        before = rows_of(walk.from_left, p, past.shape[0], future.shape[0])
        _scaled_into(_transposed_product(tall(past), tall(product(before, future))), walk.from_left[p + 1])
        walk.counts[LEFT] = p + 1
    while walk.counts[RIGHT] < from_right:
        k = walk.counts[RIGHT]
        past, future = tensor_at(walk, kept, walk.counts[LENGTH] - 1 - k), _site(chain, chain.counts[SITES] - 1 - k)
        after = rows_of(walk.from_right, k, past.shape[1] // 2, future.shape[1] // 2)
        _scaled_into(product_with_transposed(wide(product(tall(past), after)), future), walk.from_right[k + 1])
        walk.counts[RIGHT] = k + 1


@compiled_for_kernels
def _chosen(tensor: FloatArray, x: int) -> FloatArray:
    """Return the matrix that a spin chooses."""
    columns = tensor.shape[1] // 2
    return columns_of(tensor, x * columns, columns)


@compiled_for_kernels
def _sandwich(
    matrix: FloatArray, walk: Walk, kept: Kept, chain: Chain, past: int, future: int, x: int, y: int, is_from_left: bool
) -> FloatArray:
    """Multiply a product by the matrices of one site: of x in the past and of y in the future, where present."""
    if past >= 0:
        chosen = _chosen(tensor_at(walk, kept, past), x)
        matrix = _transposed_product(chosen, matrix) if is_from_left else product(chosen, matrix)
    if future >= 0:
        chosen = _chosen(_site(chain, future), y)
        matrix = product(matrix, chosen) if is_from_left else product_with_transposed(matrix, chosen)
    return matrix


@inlined
def _joint(steps: Steps, weights: Weights, t: int, kept: Kept, walk: Walk, chain: Chain, joint: Joint) -> None:
    """Write the weights of the two values of the spin of a step, and of its edges being satisfied or not."""
    low, high, place, v = steps.low[t], steps.high[t], steps.place[t], steps.spin[t]
    count = high - low + 1
    slots = np.full(count, -1, np.int64)
    past, future = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    is_gone = np.zeros(count, np.bool_)
    is_gone[place - low] = steps.is_gone[t]
    slots[place - low] = steps.taken[t]
    for k in range(steps.start[t], steps.start[t + 1]):
        slots[steps.near_place[k] - low] = steps.near[k]
        is_gone[steps.near_place[k] - low] = steps.near_gone[k]
    here, there = low, low
    for i in range(count):
        if low + i != place or not steps.is_new[t]:
            past[i] = here
            here += 1
        if not is_gone[i]:
            future[i] = there
            there += 1
    sites_after = walk.counts[LENGTH] - here
    _extend(walk, kept, chain, low, sites_after)
    f = walk.left[low] if low < walk.counts[LENGTH] else 1
    if low == walk.counts[LENGTH] and low > 0:
        f = walk.right[low - 1]
    b = 1
    if chain.counts[SITES] > 0:
        b = chain.left[chain.slot[low]] if low < chain.counts[SITES] else chain.right[chain.slot[low - 1]]
    g, c = f, b
    if here > low:
        g = walk.right[here - 1]
    if there > low:
        c = chain.right[chain.slot[there - 1]]
    gates = np.ones((count, 2, 2))
    for i in range(count):
        if slots[i] >= 0:
            for s in range(2):
                for x in range(2):
                    gates[i, s, x] = gate(weights.coupling[slots[i]], x == s)
    span = _Span(place - low, past, future, gates)
    for s in range(2):
        weight_of_v = gate(weights.field[v], s == 1)
        # Products from the right up to each site, the spins in between summed.
        sums = [rows_of(walk.from_right, sites_after, g, c)]
        for i in range(count - 1, -1, -1):
            sums.append(_summed(sums[-1], walk, kept, chain, span, i, s, False))
        left = rows_of(walk.from_left, low, f, b)
        total = weight_of_v * _inner_product(left, sums[count])
        if s == 1:
            joint.up[v] = total
        else:
            joint.down[v] = total
        for i in range(count):
            if slots[i] >= 0:
                for x in range(2):
                    y = s if i == span.site else x
                    right = _sandwich(sums[count - 1 - i], walk, kept, chain, past[i], future[i], x, y, False)
                    weight = weight_of_v * gates[i, s, x] * _inner_product(left, right)
                    if x == s:
                        joint.same[slots[i]] += weight
                    else:
                        joint.other[slots[i]] += weight
            if i < count - 1:
                left = _summed(left, walk, kept, chain, span, i, s, True)


@compiled_for_kernels
def _summed(
    matrix: FloatArray, walk: Walk, kept: Kept, chain: Chain, span: _Span, i: int, s: int, is_from_left: bool
) -> FloatArray:
    """Multiply a product by a site of the span, its spin summed out and that of the step held fixed."""
    is_own, past, future = i == span.site, span.past[i], span.future[i]
    if is_own and past < 0:
        return _sandwich(matrix, walk, kept, chain, -1, future, s, s, is_from_left)
    minus = _sandwich(matrix, walk, kept, chain, past, future, 0, s if is_own else 0, is_from_left)
    plus = _sandwich(matrix, walk, kept, chain, past, future, 1, s if is_own else 1, is_from_left)
    low_weight, high_weight = span.gates[i, s, 0], span.gates[i, s, 1]
    for row in range(minus.shape[0]):
        for column in range(minus.shape[1]):
            minus[row, column] = low_weight * minus[row, column] + high_weight * plus[row, column]
    return minus


@inlined
def _transposed_step(steps: Steps, weights: Weights, t: int, chain: Chain, walk: Walk) -> None:
    """Take the table of the future back over one step."""
    low, high, place = steps.low[t], steps.high[t], steps.place[t]
    count = high - low + 1
    is_missing = np.zeros(count + 2, np.bool_)  # from position low - 1 on: room for one more site on either side
    is_missing[place - low + 1] = steps.is_gone[t]
    for k in range(steps.start[t], steps.start[t + 1]):
        is_missing[steps.near_place[k] - low + 1] = steps.near_gone[k]
    missing = 0
    for i in range(count + 2):
        missing += 1 if is_missing[i] else 0
    length = chain.counts[SITES]
    first, last = low, high - missing  # of the sites that are there
    begin, end = low, high
    if last < first and length > 0:
        if low < length:
            last, end = low, high + 1
        else:
            first, begin = low - 1, low - 1
            last = first
    walk.counts[LEFT] = min(walk.counts[LEFT], first)
    walk.counts[RIGHT] = min(walk.counts[RIGHT], length - 1 - last)
    if length > 0:
        center = chain.counts[CENTER]
        walk.counts[LEFT] = min(walk.counts[LEFT], center)
        walk.counts[RIGHT] = min(walk.counts[RIGHT], length - 1 - center)
        move_center(chain, min(max(center, first), last))
    for p in range(begin, end + 1):
        if is_missing[p - low + 1]:
            insert(chain, p)
    size = end - begin + 1
    gates = Gates(np.zeros(size), np.zeros(size, np.bool_), np.zeros(size, np.bool_))
    gates.is_gone[place - begin] = steps.is_new[t]
    for k in range(steps.start[t], steps.start[t + 1]):
        gates.coupling[steps.near_place[k] - begin] = weights.coupling[steps.near[k]]
        gates.is_coupled[steps.near_place[k] - begin] = True
    factor = own_matrix(steps, weights, t).T.copy()
    goes_up = t > 0 and steps.place[t - 1] >= place
    change_span(chain, begin, place, factor, True, gates, goes_up)


@compiled
def means_back(
    steps: Steps, weights: Weights, begin: int, end: int, kept: Kept, walk: Walk, chain: Chain, joint: Joint
) -> None:
    """Go back from step ``end`` to ``begin`` with the table of the future in ``chain``.

    Writes the joint weights, which are to be divided by their sum.
    """
    for t in range(end - 1, begin - 1, -1):
        undo(walk, kept, steps, t)
        _joint(steps, weights, t, kept, walk, chain, joint)
        _transposed_step(steps, weights, t, chain, walk)
        if chain.total[SIGN] == 0.0:
            return

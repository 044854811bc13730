"""A table over the sites of a chain, as a product of small tensors, and the step that changes a span of it.

Site p has a tensor of shape (left, 2, right); a table entry is the product of the matrices that the spins choose. All
sites before the *center* are left-orthonormal and all sites after it right-orthonormal, so that the singular values at
the center are those of the whole table. Every step works on a span that contains the center: QR factorizations from one
end to the other, then singular value decompositions on the way back, which drop the smallest singular values.

Both directions share the code: on the way down, a tensor is read and written with left and right exchanged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_for_kernels, inlined

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray
    from spectralz.kernels.compressed.placing import Steps

# Places in ``Chain.counts`` and ``Chain.total``.
LENGTH, FREE, CENTER, TRUNCATIONS = 0, 1, 2, 3
LOG, LOG_REST, DISCARDED, LARGEST_DISCARDED, SIGN = 0, 1, 2, 3, 4


class Weights(NamedTuple):
    """The weights of a model: its fields, and the coupling of each slot of the graph."""

    field: FloatArray
    coupling: FloatArray


class Chain(NamedTuple):
    """A chain of tensors, and the factors taken out of it.

    Attributes
    ----------
    tensors
        One row per slot; a tensor is the beginning of a row.
    left, right
        Dimensions of the bonds of each slot.
    spin
        The spin of each slot.
    slot
        The slot of each position.
    free
        Unused slots, ``free[:counts[FREE]]``.
    counts
        Sites, free slots, the center, and how many bonds were cut at the largest dimension.
    total
        The log of what was taken out, in two parts; the sum and the largest of the relative squares of singular values
        dropped at the largest dimension; and the sign of the table, 0 once it has vanished.
    bond, cutoff
        The largest dimension; singular values below this share of the largest are dropped.
    """

    tensors: FloatArray
    left: IntArray
    right: IntArray
    spin: IntArray
    slot: IntArray
    free: IntArray
    counts: IntArray
    total: FloatArray
    bond: int
    cutoff: float


class Gates(NamedTuple):
    """The gates of a step, site by site of its span: couplings, where there are any, and which sites are summed out."""

    coupling: FloatArray
    is_coupled: BoolArray
    is_gone: BoolArray


class Kept(NamedTuple):
    """Tensors as they were before the steps that changed them, needed for the way back.

    Attributes
    ----------
    begin
        The first step that is kept; -1 if none is.
    numbers
        The tensors, one after the other.
    site_offset, site_left, site_right, site_spin
        For each site that was kept: where its tensor begins, its shape, and its spin.
    start, first
        Step t (counted from the first that is kept) changed the sites ``start[t]`` to ``start[t + 1]``, at the
        positions from ``first[t]`` on.
    """

    begin: int
    numbers: FloatArray
    site_offset: IntArray
    site_left: IntArray
    site_right: IntArray
    site_spin: IntArray
    start: IntArray
    first: IntArray

    @classmethod
    def with_room(cls, begin: int, steps: int, sites: int, numbers: int) -> Kept:
        """Return room for the given numbers of steps, sites and numbers."""
        offset, left, right, spin = np.zeros((4, sites), np.int64)
        start, first = np.zeros(steps + 1, np.int64), np.zeros(steps, np.int64)
        return cls(begin, np.empty(numbers), offset, left, right, spin, start, first)

    def enlarged(self) -> Kept:
        """Return the same with room for twice as many sites and numbers."""
        arrays = {name: array for name, array in self._asdict().items() if name.startswith(("numbers", "site"))}
        twice: dict[str, Any] = {name: np.concatenate([array, array]) for name, array in arrays.items()}
        return self._replace(**twice)


def empty_chain(width: int, bond: int, cutoff: float) -> Chain:
    """Return a chain without sites, with room for the given number."""
    slots = width + 1
    left, right = np.ones((2, slots), np.int64)
    spin, slot = np.zeros((2, slots), np.int64)
    free, counts = np.arange(slots, dtype=np.int64)[::-1].copy(), np.array([0, slots, 0, 0], np.int64)
    tensors, total = np.zeros((slots, 2 * bond * bond)), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    return Chain(tensors, left, right, spin, slot, free, counts, total, bond, float(cutoff))


@compiled_for_kernels
def load(chain: Chain, slot: int, is_flipped: bool) -> FloatArray:
    """Return a copy of a tensor as a wide matrix, with left and right exchanged if asked."""
    left, right = chain.left[slot], chain.right[slot]
    numbers = chain.tensors[slot]
    a, b = (right, left) if is_flipped else (left, right)
    tensor = np.empty((a, 2 * b))
    if is_flipped:
        for i in range(left):
            for x in range(2):
                for j in range(right):
                    tensor[j, x * left + i] = numbers[(2 * i + x) * right + j]
    else:
        for i in range(left):
            for j in range(2 * right):
                tensor[i, j] = numbers[2 * i * right + j]
    return tensor


@compiled_for_kernels
def store(chain: Chain, slot: int, tensor: FloatArray, is_flipped: bool) -> None:
    """Write a tensor, a wide matrix, into its slot."""
    a, b = tensor.shape[0], tensor.shape[1] // 2
    chain.left[slot], chain.right[slot] = (b, a) if is_flipped else (a, b)
    numbers = chain.tensors[slot]
    if is_flipped:
        for i in range(a):
            for x in range(2):
                for j in range(b):
                    numbers[(2 * j + x) * a + i] = tensor[i, x * b + j]
    else:
        for i in range(a):
            for j in range(2 * b):
                numbers[2 * i * b + j] = tensor[i, j]


@compiled_for_kernels
def tall(tensor: FloatArray) -> FloatArray:
    """Return a tensor as a matrix with its spin in the row; a wide one has it in the column."""
    return tensor.reshape(2 * tensor.shape[0], tensor.shape[1] // 2)


@compiled_for_kernels
def wide(tensor: FloatArray) -> FloatArray:
    """Return a tall matrix as a wide one."""
    return tensor.reshape(tensor.shape[0] // 2, 2 * tensor.shape[1])


@compiled_for_kernels
def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product of two matrices."""
    return np.dot(a, b)


@compiled_for_kernels
def product_with_transposed(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product of a matrix and the transposed of another."""
    return np.dot(a, b.T)


@compiled_for_kernels
def columns_of(matrix: FloatArray, first: int, count: int) -> FloatArray:
    """Return a copy of some columns, one row after the other."""
    chosen = np.empty((len(matrix), count))
    for i in range(len(matrix)):
        for j in range(count):
            chosen[i, j] = matrix[i, first + j]
    return chosen


@compiled_for_kernels
def _qr(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    q, r = np.linalg.qr(matrix)
    return columns_of(q, 0, q.shape[1]), columns_of(r, 0, r.shape[1])


@compiled_for_kernels
def _svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    u, values, v = np.linalg.svd(matrix, False)
    return columns_of(u, 0, u.shape[1]), values, columns_of(v, 0, v.shape[1])


@compiled_for_kernels
def _take_out(log: FloatArray, values: FloatArray) -> None:
    """Divide numbers by their largest size and add its log to the total; mark a table that has vanished."""
    rows, columns = values.shape
    largest = 0.0
    for i in range(rows):
        for j in range(columns):
            largest = max(largest, abs(values[i, j]))
    has_vanished = not largest > 0.0 or largest == np.inf
    for i in range(rows):
        for j in range(columns):
            values[i, j] = 1.0 if has_vanished else values[i, j] / largest
    if has_vanished:
        log[SIGN] = 0.0
        return
    term = math.log(largest)
    total = log[LOG] + term
    # Neumaier: what the sum of two numbers rounds off.
    if abs(log[LOG]) >= abs(term):
        log[LOG_REST] += (log[LOG] - total) + term
    else:
        log[LOG_REST] += (term - total) + log[LOG]
    log[LOG] = total


@inlined
def move_center(chain: Chain, wanted: int) -> None:
    """Move the center to a position, by QR factorizations on the way."""
    while chain.counts[CENTER] != wanted:
        p = chain.counts[CENTER]
        is_down = wanted < p
        following = p - 1 if is_down else p + 1
        here, there = chain.slot[p], chain.slot[following]
        q, r = _qr(tall(load(chain, here, is_down)))
        store(chain, here, wide(q), is_down)
        store(chain, there, product(r, load(chain, there, is_down)), is_down)
        chain.counts[CENTER] = following


@inlined
def insert(chain: Chain, place: int) -> None:
    """Insert a new site into the chain; the table does not depend on it yet."""
    length = chain.counts[LENGTH]
    d = 1
    if length:
        d = chain.right[chain.slot[place - 1]] if place > 0 else chain.left[chain.slot[0]]
    chain.counts[FREE] -= 1
    slot = chain.free[chain.counts[FREE]]
    for p in range(length, place, -1):
        chain.slot[p] = chain.slot[p - 1]
    chain.slot[place] = slot
    chain.left[slot] = chain.right[slot] = d
    numbers = chain.tensors[slot]
    for i in range(2 * d * d):
        numbers[i] = 0.0
    for i in range(d):
        numbers[2 * i * d + i] = numbers[(2 * i + 1) * d + i] = 1.0
    chain.counts[LENGTH] = length + 1
    if chain.counts[CENTER] >= place and length:
        chain.counts[CENTER] += 1


@inlined
def _remove(chain: Chain, low: int, high: int, is_gone: BoolArray) -> None:
    """Take sites out of a span of the chain."""
    length = chain.counts[LENGTH]
    kept = low
    for p in range(low, high + 1):
        if is_gone[p - low]:
            chain.free[chain.counts[FREE]] = chain.slot[p]
            chain.counts[FREE] += 1
        else:
            chain.slot[kept] = chain.slot[p]
            kept += 1
    for p in range(high + 1, length):
        chain.slot[kept] = chain.slot[p]
        kept += 1
    chain.counts[LENGTH] = kept


@inlined
def _kept_rank(chain: Chain, values: FloatArray) -> int:
    """Return how many singular values are kept, and record the weight of those dropped."""
    rank = 1
    while rank < len(values) and values[rank] > chain.cutoff * values[0]:
        rank += 1
    if rank > chain.bond:
        lost, all_of_them = 0.0, 0.0
        for i in range(len(values)):
            square = (values[i] / values[0]) ** 2
            all_of_them += square
            if i >= chain.bond:
                lost += square
        lost /= all_of_them
        chain.total[DISCARDED] += lost
        chain.total[LARGEST_DISCARDED] = max(chain.total[LARGEST_DISCARDED], lost)
        chain.counts[TRUNCATIONS] += 1
        rank = chain.bond
    return rank


@compiled_for_kernels
def _from_left(tensor: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return a tensor times a matrix on its right; a matrix without rows stands for the identity."""
    return wide(matrix if len(tensor) == 0 else product(tall(tensor), matrix))


@compiled_for_kernels
def _add_columns(block: FloatArray, to: int, weight: float, part: FloatArray, first: int, count: int) -> None:
    """Add some columns of a matrix, times a weight, to those of another."""
    for i in range(len(block)):
        for j in range(count):
            block[i, to + j] += weight * part[i, first + j]


@compiled_for_kernels
def change_span(
    chain: Chain, low: int, place: int, factor: FloatArray, copies_old: bool, gates: Gates, goes_up: bool
) -> None:
    """Multiply gates between one site and others into the chain, sum sites out, and compress.

    The site at ``place`` is multiplied by the matrix ``factor`` (new spin x old spin). A copy of its spin, made before
    this step if ``copies_old`` and after it otherwise, is carried along the bonds to the coupled sites, which are
    multiplied by exp(J x y - |J|). The span begins at the position ``low``. The center must be in it.
    """
    coupling, is_coupled, is_gone = gates
    count = len(coupling)
    high = low + count - 1
    carries = False
    for i in range(count):
        carries = carries or is_coupled[i]
    tensors = [np.empty((0, 0))]  # and those that are kept, from place 1 on
    kept_slots = np.empty(count, np.int64)
    kept = 0
    first = chain.slot[high if goes_up else low]
    # What has been carried so far, one matrix per value of the copy. Both are the same until there is a copy.
    bond_before = chain.right[first] if goes_up else chain.left[first]
    carry = np.zeros((bond_before, bond_before))
    for i in range(bond_before):
        carry[i, i] = 1.0
    carry_plus = carry
    is_last_kept_open = False
    for i in range(count):
        p = high - i if goes_up else low + i
        k = p - low
        slot = chain.slot[p]
        tensor = load(chain, slot, goes_up)
        a, b = carry.shape[0], tensor.shape[1] // 2
        copies = 2 if carries and i < count - 1 else 1  # on the bond after this site
        width = copies * b
        block = np.zeros((a, 2 * width))
        before = product(carry, tensor)
        after = before
        if carries and i > 0:
            after = product(carry_plus, tensor)
        # exp(J x s - |J|) is 1 where x s has the sign of J.
        other = math.exp(-2.0 * abs(coupling[k])) if is_coupled[k] else 1.0
        is_positive = coupling[k] >= 0.0
        for x in range(2):  # the new spin
            for o in range(2):  # the old one; at another site, the copy
                old = x
                if p == place:
                    old = o
                    s = o if copies_old else x
                    weight = factor[x, o]
                elif o == 1 and not carries:
                    continue
                else:
                    s = o
                    weight = 1.0 if (x == s) == is_positive else other
                column = s * b if copies == 2 else 0
                _add_columns(block, x * width + column, weight, after if s == 1 else before, old * b, b)
        is_last_kept_open = False
        if is_gone[k]:
            matrix = columns_of(block, 0, width)
            _add_columns(matrix, 0, 1.0, block, width, width)
        elif i == count - 1:
            tensors.append(block)
            kept_slots[kept] = slot
            kept += 1
            is_last_kept_open = True
            break
        else:
            kept_slots[kept] = slot
            kept += 1
            if 2 * a <= width:
                # Q would be square: any orthonormal matrix works, and the identity costs nothing.
                matrix = tall(block)
                tensors.append(np.empty((0, 2 * a)))
            else:
                q, matrix = _qr(tall(block))
                tensors.append(wide(q))
        carry = carry_plus = columns_of(matrix, 0, b)
        if copies == 2:
            carry_plus = columns_of(matrix, b, b)
    _remove(chain, low, high, is_gone)
    if kept == 0:
        _absorb(chain, low, carry, goes_up)
        return
    center = tensors[kept]
    if not is_last_kept_open:
        center = _from_left(center, carry)
    for j in range(kept - 1, 0, -1):
        _take_out(chain.total, center)
        u, values, v = _svd(center)
        rank = _kept_rank(chain, values)
        store(chain, kept_slots[j], v[:rank], goes_up)
        scaled = columns_of(u, 0, rank)
        for row in range(len(scaled)):
            for r in range(rank):
                scaled[row, r] *= values[r]
        center = _from_left(tensors[j], scaled)
    _take_out(chain.total, center)
    store(chain, kept_slots[0], center, goes_up)
    chain.counts[CENTER] = low + kept - 1 if goes_up else low


@inlined
def _absorb(chain: Chain, place: int, matrix: FloatArray, is_flipped: bool) -> None:
    """Multiply what is left of a span without sites into a neighboring site, or into the total if there is none."""
    length = chain.counts[LENGTH]
    if length == 0:
        if matrix[0, 0] < 0.0:
            chain.total[SIGN] = -chain.total[SIGN]
        _take_out(chain.total, matrix)
        chain.counts[CENTER] = 0
        return
    neighbor = min(place, length - 1)
    slot = chain.slot[neighbor]
    tensor = load(chain, slot, is_flipped)
    # The neighbor comes after or before the matrix, in the direction in which both are read.
    changed = product(matrix, tensor) if (place < length) != is_flipped else _from_left(tensor, matrix)
    _take_out(chain.total, changed)
    store(chain, slot, changed, is_flipped)
    chain.counts[CENTER] = neighbor


@inlined
def own_matrix(steps: Steps, weights: Weights, t: int) -> FloatArray:
    """Return the factor of a spin's site: its field, and the coupling to the neighbor whose site it takes."""
    h = weights.field[steps.spin[t]]
    matrix = np.zeros((2, 2))
    for x in range(2):
        weight = 1.0 if (x == 1) == (h >= 0.0) else math.exp(-2.0 * abs(h))
        for o in range(2):
            if steps.taken[t] >= 0:
                J = weights.coupling[steps.taken[t]]
                matrix[x, o] = weight * (1.0 if (x == o) == (J >= 0.0) else math.exp(-2.0 * abs(J)))
            elif x == o:
                matrix[x, o] = weight
    return matrix


@inlined
def _keep(chain: Chain, kept: Kept, step: int, low: int, last: int, is_emptied: bool) -> bool:
    """Keep the sites that a step on the positions ``low`` to ``last`` is going to change; False if there is no room."""
    length = chain.counts[LENGTH]
    first, end = low, last + 1
    if length:
        first, end = min(first, chain.counts[CENTER]), max(end, chain.counts[CENTER] + 1)
        if is_emptied:  # what is left of it goes into a site beside it
            first, end = (first, max(end, last + 2)) if last + 1 < length else (min(first, max(low - 1, 0)), end)
    end = min(end, length)
    sites = kept.start[step]
    offset = 0
    if sites:
        offset = kept.site_offset[sites - 1] + 2 * kept.site_left[sites - 1] * kept.site_right[sites - 1]
    kept.first[step] = first
    for p in range(first, end):
        slot = chain.slot[p]
        size = 2 * chain.left[slot] * chain.right[slot]
        if sites >= len(kept.site_offset) or offset + size > len(kept.numbers):
            return False
        kept.site_offset[sites] = offset
        kept.site_left[sites] = chain.left[slot]
        kept.site_right[sites] = chain.right[slot]
        kept.site_spin[sites] = chain.spin[slot]
        for i in range(size):
            kept.numbers[offset + i] = chain.tensors[slot, i]
        offset += size
        sites += 1
    kept.start[step + 1] = sites
    return True


@compiled
def advance(steps: Steps, weights: Weights, begin: int, end: int, chain: Chain, kept: Kept) -> int:
    """Add the spins of steps ``begin`` to ``end``; return the step that was reached.

    The changed tensors are kept if there is a first step for that. The loop ends when there is no more room for them,
    or once the table has vanished.
    """
    for t in range(begin, end):
        low, high, place = steps.low[t], steps.high[t], steps.place[t]
        count = high - low + 1
        gates = Gates(np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_))
        gates.is_gone[place - low] = steps.is_gone[t]
        left = count - 1 if steps.is_gone[t] else count
        for k in range(steps.start[t], steps.start[t + 1]):
            p = steps.near_place[k] - low
            gates.coupling[p] = weights.coupling[steps.near[k]]
            gates.is_coupled[p] = True
            gates.is_gone[p] = steps.near_gone[k]
            left -= 1 if gates.is_gone[p] else 0
        last = high - 1 if steps.is_new[t] else high
        if kept.begin >= 0 and not _keep(chain, kept, t - kept.begin, low, last, left == 0):
            return t
        if chain.counts[LENGTH] > 0:
            move_center(chain, min(max(chain.counts[CENTER], low), last))
        if steps.is_new[t]:
            insert(chain, place)
        chain.spin[chain.slot[place]] = steps.spin[t]
        factor = own_matrix(steps, weights, t)
        change_span(chain, low, place, factor, False, gates, steps.goes_up[t])
        if chain.total[SIGN] == 0.0:
            return t + 1
    return end

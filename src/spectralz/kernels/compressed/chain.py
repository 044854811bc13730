"""A table over the sites of a chain, as a product of small tensors, and the step that changes a span of it.

Site p has a tensor of shape (left, 2, right); a table entry is the product of the matrices that the spins choose. All
sites before the *center* are left-orthonormal and all sites after it right-orthonormal, so that the singular values at
the center are those of the whole table. Every step works on a span that contains the center: QR factorizations from one
end to the other, then singular value decompositions on the way back, which drop the smallest singular values.

Both directions share the code: on the way down, a tensor is read and written with left and right exchanged. A tensor is
at the same time a (left, 2 right) and a (2 left, right) matrix.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled_for_kernels, compiled_in_place, inlined
from spectralz.kernels.compressed.matrices import decompose, factorize, multiply, row_of, transpose

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, RecordArray
    from spectralz.kernels.compressed.placing import Steps

SITE = np.dtype([(name, np.int64) for name in ("left", "right", "spin", "slot", "free")], align=True)
STATE = np.dtype(
    [(name, np.int64) for name in ("length", "free", "center", "truncations", "bond")]
    + [(name, np.float64) for name in ("log", "log_rest", "discarded", "sign", "cutoff")],
    align=True,
)
GATE = np.dtype(
    [(name, np.float64) for name in ("coupling", "tilt")]
    + [(name, np.int64) for name in ("zeros", "is_gone", "slot", "rows", "columns", "edge", "past", "future")],
    align=True,
)
KEPT_SITE = np.dtype([(name, np.int64) for name in ("offset", "left", "right", "spin")], align=True)
KEPT_STEP = np.dtype([(name, np.int64) for name in ("start", "first")], align=True)

# Rows of ``Room.matrices``: the last ones are for the sites of a span, and ``FACTOR`` has the matrix of the step's own
# site, new spin x old spin.
LOADED, CARRY, CARRY_PLUS, BEFORE, AFTER, BLOCK, MATRIX, SPARE, TAU, FACTOR, OF_SITES = range(11)


class Weights(NamedTuple):
    """The weights of a model: its fields, the coupling of each slot of the graph, and which states it excludes.

    Bit 2 x + y of ``zeros`` says whether the spin of the slot may not be x while its neighbor is y, 1 for +1. ``tilt``
    is a part of the neighbor's field that comes with the coupling, if the spin of the slot arrives after it.
    """

    field: FloatArray
    coupling: FloatArray
    zeros: IntArray
    tilt: FloatArray


class Chain(NamedTuple):
    """A chain of tensors, and the factors taken out of it.

    Attributes
    ----------
    tensors
        One row per slot; a tensor is the beginning of a row.
    sites
        ``left``, ``right`` and ``spin`` are the dimensions of the bonds and the spin of each slot, ``slot`` is the slot
        of each position. The first ``free`` are unused slots.
    state
        One record. ``length``, ``free``, ``center``: sites, unused slots, and the position of the center.
        ``truncations``, ``discarded``: how many bonds were cut at the largest dimension, and the sum of the relative
        squares of singular values dropped there. ``log``, ``log_rest``: the log of what was taken out, in two parts.
        ``sign``: that of the table, 0 once it has vanished. ``bond``, ``cutoff``: the largest dimension; singular
        values below this share of the largest are dropped.
    """

    tensors: FloatArray
    sites: RecordArray
    state: RecordArray


class Room(NamedTuple):
    """Room for a step.

    Attributes
    ----------
    matrices
        One matrix per row.
    gates
        The sites of a span. ``coupling``: that of the gate between this site and the step's own, 0 if there is none;
        ``zeros``: which states it excludes, as those of the step's own spin; ``tilt``: a field on this site.
        ``is_gone``: whether the site is summed out. ``slot``, ``rows``, ``columns``: the slot of each site that stays,
        counted in the order in which they are passed, and the shape of its matrix Q. For means: ``edge``, the slot (of
        the graph) of the edge, or -1; ``past``, ``future``, the position of the site in the chains of the past and of
        the future, or -1; ``rows``, ``columns``, the dimensions of their bonds before the site.
    """

    matrices: FloatArray
    gates: RecordArray


class Kept(NamedTuple):
    """Tensors as they were before the steps that changed them, needed for the way back.

    Attributes
    ----------
    begin
        The first step that is kept; -1 if none is.
    numbers
        The tensors, one after the other.
    sites
        For each site that was kept: the ``offset`` at which its tensor begins, its shape ``left``, ``right``, and its
        ``spin``.
    steps
        Step t (counted from the first that is kept) changed the sites from ``start`` up to that of step t + 1, at the
        positions from ``first`` on.
    """

    begin: int
    numbers: FloatArray
    sites: RecordArray
    steps: RecordArray

    @classmethod
    def with_room(cls, begin: int, steps: int, sites: int, numbers: int) -> Kept:
        """Return room for the given numbers of steps, sites and numbers."""
        return cls(begin, np.empty(numbers), np.zeros(sites, KEPT_SITE), np.zeros(steps + 1, KEPT_STEP))

    def enlarged(self) -> Kept:
        """Return the same with room for twice as many sites and numbers."""
        numbers, sites = (np.concatenate([array, array]) for array in (self.numbers, self.sites))
        return self._replace(numbers=numbers, sites=sites)


def empty_chain(width: int, bond: int, cutoff: float) -> Chain:
    """Return a chain without sites, with room for the given number."""
    slots = width + 1
    sites, state = np.ones(slots, SITE), np.zeros(1, STATE)
    sites["free"] = np.arange(slots)[::-1]
    state["free"], state["bond"], state["cutoff"], state["sign"] = slots, bond, cutoff, 1.0
    return Chain(np.zeros((slots, 2 * bond * bond)), sites, state)


def room_for(span: int, bond: int) -> Room:
    """Return room for steps whose spans have at most the given number of sites."""
    sites = span + 2  # the transposed step may take one more on either side
    return Room(np.empty((OF_SITES + sites, 8 * bond * bond)), np.zeros(sites, GATE))


@compiled_for_kernels
def copy_tensor(out: FloatArray, tensor: FloatArray, left: int, right: int, is_flipped: bool) -> None:
    """Copy a tensor, with left and right exchanged if asked."""
    if is_flipped:
        for i in range(left):
            for x in range(2):
                for j in range(right):
                    out[(2 * j + x) * left + i] = tensor[(2 * i + x) * right + j]
    else:
        for i in range(2 * left * right):
            out[i] = tensor[i]


@compiled_for_kernels
def store(chain: Chain, slot: int, tensor: FloatArray, left: int, right: int, is_flipped: bool) -> None:
    """Write a tensor into its slot."""
    site = chain.sites[slot]
    site.left, site.right = (right, left) if is_flipped else (left, right)
    copy_tensor(row_of(chain.tensors, slot), tensor, left, right, is_flipped)


@compiled_for_kernels
def _take_out(chain: Chain, values: FloatArray, count: int) -> None:
    """Divide numbers by their largest size and add its log to the total; mark a table that has vanished."""
    state = chain.state[0]
    largest = 0.0
    for i in range(count):
        largest = max(largest, abs(values[i]))
    has_vanished = not largest > 0.0 or largest == np.inf
    for i in range(count):
        values[i] = 1.0 if has_vanished else values[i] / largest
    if has_vanished:
        state.sign = 0.0
        return
    term, before = math.log(largest), state.log
    total = before + term
    # Neumaier: what the sum of two numbers rounds off.
    state.log_rest += (before - total) + term if abs(before) >= abs(term) else (term - total) + before
    state.log = total


@compiled_for_kernels
def move_center(chain: Chain, room: Room, wanted: int) -> None:
    """Move the center to a position, by QR factorizations on the way."""
    tensors, sites, matrices, state = chain.tensors, chain.sites, room.matrices, chain.state[0]
    tensor, q, r = row_of(matrices, LOADED), row_of(matrices, BEFORE), row_of(matrices, MATRIX)
    while state.center != wanted:
        is_down = wanted < state.center
        following = state.center + (-1 if is_down else 1)
        here, there = sites[state.center].slot, sites[following].slot
        site, beyond = sites[here], sites[there]
        a, b = (site.right, site.left) if is_down else (site.left, site.right)
        c = beyond.left if is_down else beyond.right
        rank = min(2 * a, b)
        copy_tensor(tensor, row_of(tensors, here), site.left, site.right, is_down)
        factorize(q, r, tensor, row_of(matrices, SPARE), row_of(matrices, TAU), 2 * a, b)
        store(chain, here, q, a, rank, is_down)
        copy_tensor(tensor, row_of(tensors, there), beyond.left, beyond.right, is_down)
        multiply(q, r, tensor, rank, b, 2 * c, False, False)
        store(chain, there, q, rank, c, is_down)
        state.center = following


@compiled_for_kernels
def insert(chain: Chain, place: int) -> None:
    """Insert a new site into the chain; the table does not depend on it yet."""
    tensors, sites, state = chain.tensors, chain.sites, chain.state[0]
    length = state.length
    d = 1
    if length:
        d = sites[sites[place - 1].slot].right if place > 0 else sites[sites[0].slot].left
    state.free -= 1
    slot = sites[state.free].free
    for p in range(length, place, -1):
        sites[p].slot = sites[p - 1].slot
    sites[place].slot = slot
    site = sites[slot]
    site.left = site.right = d
    numbers = row_of(tensors, slot)
    for i in range(2 * d * d):
        numbers[i] = 1.0 if i // (2 * d) == i % d else 0.0
    state.length = length + 1
    if state.center >= place and length:
        state.center += 1


@inlined
def _remove(chain: Chain, room: Room, low: int, count: int) -> None:
    """Take the sites that are gone out of a span of the chain."""
    sites, state, gates = chain.sites, chain.state[0], room.gates
    kept = low
    for p in range(low, state.length):
        slot = sites[p].slot
        if p < low + count and gates[p - low].is_gone:
            sites[state.free].free = slot
            state.free += 1
        else:
            sites[kept].slot = slot
            kept += 1
    state.length = kept


@inlined
def _kept_rank(chain: Chain, values: FloatArray, count: int) -> int:
    """Return how many singular values are kept, and record the weight of those dropped."""
    state = chain.state[0]
    rank = 1
    while rank < count and values[rank] > state.cutoff * values[0]:
        rank += 1
    if rank > state.bond:
        rank = state.bond
        lost, all_of_them = 0.0, 0.0
        for i in range(count):
            ratio = values[i] / values[0]
            all_of_them += ratio * ratio
            if i >= rank:
                lost += ratio * ratio
        state.discarded += lost / all_of_them
        state.truncations += 1
    return rank


@compiled_for_kernels
def _add_columns(
    block: FloatArray, width: int, to: int, weight: float, part: FloatArray, first: int, b: int, rows: int
) -> None:
    """Add b columns of a matrix that has 2 b of them, times a weight, to those of another."""
    for i in range(rows):
        for j in range(b):
            block[i * width + to + j] += weight * part[i * 2 * b + first + j]


@inlined
def _of_field(h: float, x: int) -> float:
    """Return exp(h s - |h|) for a spin s, which is 1 if x is 1 and -1 otherwise."""
    return 1.0 if (x == 1) == (h >= 0.0) else math.exp(-2.0 * abs(h))


@compiled_for_kernels
def change_span(
    chain: Chain, room: Room, low: int, count: int, place: int, carries: bool, copies_old: bool, goes_up: bool
) -> None:
    """Multiply the gates between one site and others into the chain, sum sites out, and compress.

    The span begins at the position ``low``; the center must be in it. The site at ``place`` is multiplied by the matrix
    ``FACTOR``. If there are gates, a copy of its spin, made before this if ``copies_old`` and after it otherwise, is
    carried along the bonds to the other sites, which are multiplied by exp(J x y - |J|) and by their tilt.
    """
    tensors, sites, state = chain.tensors, chain.sites, chain.state[0]
    matrices, gates = room.matrices, room.gates
    loaded, block, spare = row_of(matrices, LOADED), row_of(matrices, BLOCK), row_of(matrices, SPARE)
    factor = row_of(matrices, FACTOR)
    # What has been carried so far, one matrix per value of the copy.
    carry, carry_plus = row_of(matrices, CARRY), row_of(matrices, CARRY_PLUS)
    matrix = block
    kept, a, b = 0, 0, 0
    for i in range(count):
        k = count - 1 - i if goes_up else i
        gate, slot = gates[k], sites[low + k].slot
        site = sites[slot]
        copy_tensor(loaded, row_of(tensors, slot), site.left, site.right, goes_up)
        before = after = loaded
        if i == 0:
            a = site.right if goes_up else site.left
        b_before, b = b, site.left if goes_up else site.right
        if i > 0:
            before = after = row_of(matrices, BEFORE)
            multiply(before, carry, loaded, a, b_before, 2 * b, False, False)
            if carries:
                after = row_of(matrices, AFTER)
                multiply(after, carry_plus, loaded, a, b_before, 2 * b, False, False)
        copies = 2 if carries and i < count - 1 else 1  # on the bond after this site
        width = copies * b
        for j in range(2 * a * width):
            block[j] = 0.0
        # exp(J x s - |J|) is 1 where x s has the sign of J.
        other, is_positive = math.exp(-2.0 * abs(gate.coupling)), gate.coupling >= 0.0
        for x in range(2):  # the new spin
            for o in range(2):  # the old one; at another site, the copy
                old, s = x, o
                weight = 0.0 if gate.zeros >> (2 * o + x) & 1 else 1.0 if (x == o) == is_positive else other
                if low + k == place:
                    old, s = o, o if copies_old else x
                    weight = factor[2 * x + o]
                elif o == 1 and not carries:
                    continue
                else:
                    weight *= _of_field(gate.tilt, x)
                column = x * width + (s * b if copies == 2 else 0)
                _add_columns(block, 2 * width, column, weight, after if s == 1 else before, old * b, b, a)
        matrix = block
        if gate.is_gone:
            matrix = row_of(matrices, MATRIX)
            for row in range(a):
                for j in range(width):
                    matrix[row * width + j] = block[2 * row * width + j] + block[(2 * row + 1) * width + j]
        else:
            entry = gates[kept]
            entry.slot, entry.rows, entry.columns = slot, a, 2 * a
            # If Q is square, any orthonormal matrix works, and the identity costs nothing.
            if i < count - 1 and 2 * a > width:
                matrix = row_of(matrices, MATRIX)
                factorize(row_of(matrices, OF_SITES + kept), matrix, block, spare, row_of(matrices, TAU), 2 * a, width)
                entry.columns = width
            a = entry.columns
            kept += 1
        for row in range(a):
            for j in range(b):
                carry[row * b + j] = matrix[row * width + j]
                if copies == 2:
                    carry_plus[row * b + j] = matrix[row * width + b + j]
    _remove(chain, room, low, count)
    if kept == 0:
        _absorb(chain, room, low, a, b, goes_up)
        return
    for j in range(kept - 1, -1, -1):
        entry, center = gates[j], carry
        a = entry.rows
        if entry.columns < 2 * a:
            center = block
            multiply(center, row_of(matrices, OF_SITES + j), carry, 2 * a, entry.columns, b, False, False)
        _take_out(chain, center, 2 * a * b)
        if j == 0:
            store(chain, entry.slot, center, a, b, goes_up)
            break
        u, values, v = row_of(matrices, BEFORE), row_of(matrices, TAU), row_of(matrices, AFTER)
        if not decompose(u, values, v, center, spare, a, 2 * b):
            state.sign = 0.0
            return
        rank = _kept_rank(chain, values, min(a, 2 * b))
        transpose(loaded, v, 2 * b, min(a, 2 * b))
        store(chain, entry.slot, loaded, rank, b, goes_up)
        for row in range(a):
            for r in range(rank):
                carry[row * rank + r] = u[r * a + row] * values[r]
        b = rank
    state.center = low + kept - 1 if goes_up else low


@inlined
def _absorb(chain: Chain, room: Room, place: int, a: int, b: int, is_flipped: bool) -> None:
    """Multiply what is left of a span without sites into a neighboring site, or into the total if there is none."""
    state, carry = chain.state[0], row_of(room.matrices, CARRY)
    state.center = max(min(place, state.length - 1), 0)
    if state.length == 0:
        if carry[0] < 0.0:
            state.sign = -state.sign
        _take_out(chain, carry, 1)
        return
    slot = chain.sites[state.center].slot
    site = chain.sites[slot]
    tensor, changed = row_of(room.matrices, LOADED), row_of(room.matrices, BEFORE)
    left, right = (site.right, site.left) if is_flipped else (site.left, site.right)
    copy_tensor(tensor, row_of(chain.tensors, slot), site.left, site.right, is_flipped)
    # The neighbor comes after or before the matrix, in the direction in which both are read.
    if (place < state.length) != is_flipped:
        multiply(changed, carry, tensor, a, b, 2 * right, False, False)
        left = a
    else:
        multiply(changed, tensor, carry, 2 * left, a, b, False, False)
        right = b
    _take_out(chain, changed, 2 * left * right)
    store(chain, slot, changed, left, right, is_flipped)


@compiled_for_kernels
def set_gates(steps: Steps, weights: Weights, t: int, room: Room, low: int, count: int) -> None:
    """Write the gates of a step, with no site summed out, and the factor of its own site.

    The factor has the field of the spin, and the coupling to the neighbor whose site it takes.
    """
    step, gates, factor = steps.step[t], room.gates, row_of(room.matrices, FACTOR)
    for i in range(count):
        gates[i].coupling = gates[i].tilt = 0.0
        gates[i].zeros = 0
        gates[i].is_gone = 0
    for k in range(step.start, step.end):
        gates[steps.near[k].place - low].coupling = weights.coupling[steps.near[k].slot]
        gates[steps.near[k].place - low].zeros = weights.zeros[steps.near[k].slot]
        gates[steps.near[k].place - low].tilt = weights.tilt[steps.near[k].slot]
    h = weights.field[step.spin]
    J = weights.coupling[step.taken] if step.taken >= 0 else 0.0
    zeros = weights.zeros[step.taken] if step.taken >= 0 else 0
    tilt = weights.tilt[step.taken] if step.taken >= 0 else 0.0
    for x in range(2):
        for o in range(2):
            weight = _of_field(h, x) * _of_field(tilt, o)
            if (step.taken < 0 and x != o) or zeros >> (2 * x + o) & 1:
                weight = 0.0
            factor[2 * x + o] = weight * (1.0 if (x == o) == (J >= 0.0) else math.exp(-2.0 * abs(J)))


@inlined
def _keep(chain: Chain, kept: Kept, step: int, low: int, last: int, is_emptied: bool) -> bool:
    """Keep the sites that a step on the positions ``low`` to ``last`` is going to change; False if there is no room."""
    tensors, sites, state = chain.tensors, chain.sites, chain.state[0]
    length, center = state.length, state.center
    first, end = low, last + 1
    if length:
        first, end = min(first, center), max(end, center + 1)
        if is_emptied:  # what is left of it goes into a site beside it
            first, end = (first, max(end, last + 2)) if last + 1 < length else (min(first, max(low - 1, 0)), end)
    end = min(end, length)
    count = kept.steps[step].start
    offset = 0
    if count:
        before = kept.sites[count - 1]
        offset = before.offset + 2 * before.left * before.right
    kept.steps[step].first = first
    for p in range(first, end):
        slot = sites[p].slot
        site = sites[slot]
        size = 2 * site.left * site.right
        if count >= len(kept.sites) or offset + size > len(kept.numbers):
            return False
        entry = kept.sites[count]
        entry.offset, entry.left, entry.right, entry.spin = offset, site.left, site.right, site.spin
        for i in range(size):
            kept.numbers[offset + i] = tensors[slot, i]
        offset += size
        count += 1
    kept.steps[step + 1].start = count
    return True


@compiled_in_place
def advance(steps: Steps, weights: Weights, begin: int, end: int, chain: Chain, room: Room, kept: Kept) -> int:
    """Add the spins of steps ``begin`` to ``end``; return the step that was reached.

    The changed tensors are kept if there is a first step for that. The loop ends when there is no more room for them,
    or once the table has vanished.
    """
    state, gates = chain.state[0], room.gates
    for t in range(begin, end):
        step = steps.step[t]
        low, place = step.low, step.place
        count = step.high - low + 1
        set_gates(steps, weights, t, room, low, count)
        gates[place - low].is_gone = step.is_gone
        left = count - step.is_gone
        for k in range(step.start, step.end):
            gates[steps.near[k].place - low].is_gone = steps.near[k].is_gone
            left -= steps.near[k].is_gone
        last = step.high - step.is_new
        if kept.begin >= 0 and not _keep(chain, kept, t - kept.begin, low, last, left == 0):
            return t
        if state.length > 0:
            move_center(chain, room, min(max(state.center, low), last))
        if step.is_new:
            insert(chain, place)
        chain.sites[chain.sites[place].slot].spin = step.spin
        change_span(chain, room, low, count, place, step.start < step.end, False, step.goes_up > 0)
        if state.sign == 0.0:
            return t + 1
    return end

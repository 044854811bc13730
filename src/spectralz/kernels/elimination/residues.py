"""Exact sums over states: elimination modulo several numbers, whose remainders give a whole number of any size.

A step sums out spin v: for every state s of its separator

    table(s) = sum over x_v of w_v(x_v) times the factors of v and the tables of its children, at (x_v, s),

where the factors, of constraints, are 0 or 1. A program without terms (``program.py``) says what a step takes in.
Everything is a whole number, so it can be computed modulo any m. The moduli are below 2^50 and have no common divisors.
A product of two residues is a double and its rounding error, both exact with fused multiply-adds, and so is what is
left after taking off a multiple of m: 0.8 ns per product of 50 bits, as much as Montgomery's method takes for 31.

How many moduli are needed is found by the same pass with rounded numbers, none of which is too small: every table is
divided by a power of two, so that its largest entry is about 1, and ``FLOOR`` is added to all entries.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner, intrinsic, types
from spectralz.kernels.elimination.tables import BLOCK_BITS, Tables, compressed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.elimination.program import Program, Report, Steps

MODULUS_BITS = 50
# Added to entries of at most about 1: more than all that underflow can take from one, divided by SMALLEST.
FLOOR, SMALLEST = 2.0**-900, 2.0**-100
# As long as so few tables, of entries up to 2, are multiplied at once.
MOST_CHILDREN = 64


class Ring(NamedTuple):
    """What sums and products are computed modulo: a whole number and its inverse, or nothing."""

    modulus: float
    inverse: float


ROUNDED = Ring(1e308, 0.0)


class Work(NamedTuple):
    """Room for one block: products for the lower and the upper value, also of low bits alone, and places of entries."""

    minus: FloatArray
    plus: FloatArray
    low_minus: FloatArray
    low_plus: FloatArray
    places: IntArray  # in the table of the first child, of the second, ..., of each constraint


@intrinsic
def _fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@inner
def product(a: float, b: float, ring: Ring) -> float:
    """Return the product of two residues, from 0 to the modulus - 1; for ``ROUNDED`` it is an ordinary product."""
    high = a * b
    low = _fma(a, b, -high)
    rest = _fma(-np.floor(high * ring.inverse), ring.modulus, high) + low
    rest = rest + ring.modulus if rest < 0.0 else rest
    return rest - ring.modulus if rest >= ring.modulus else rest


@inner
def _multiply(
    numbers: FloatArray, entries: FloatArray, base: int, places: IntArray, size: int, ring: Ring, are_bits: bool
) -> None:
    """Multiply numbers by entries of a table; ``are_bits`` if one or the other are 0 and 1."""
    if are_bits:
        for i in range(size):
            numbers[i] *= entries[base + places[i]]
    else:
        for i in range(size):
            numbers[i] = product(numbers[i], entries[base + places[i]], ring)


@inner
def _allows_all(factor: FloatArray, begin: int, end: int) -> bool:
    while begin < end and factor[begin] != 0.0:
        begin += 1
    return begin == end


@inner
def _fill(
    program: Steps,
    factor: FloatArray,
    t: int,
    tables: Tables,
    out: FloatArray,
    ring: Ring,
    weight: FloatArray,
    work: Work,
) -> None:
    """Write the table of one step, block by block of the states of its low bits.

    Factors of low bits alone are multiplied once. In a block, a factor is left out if it allows all states.
    """
    minus, plus, places = work.minus, work.plus, work.places
    low = min(program.width[t], BLOCK_BITS)
    size = 1 << low
    child, child_end = program.child_start[t], program.child_start[t + 1]
    first, last = program.table_start[t], program.table_start[t + 1]
    children = child_end - child
    for i in range(size):
        work.low_minus[i] = 1.0
        work.low_plus[i] = 1.0
    for k in range(children + last - first):
        mask = program.child_mask[child + k] if k < children else program.table_mask[first + k - children]
        for i in range(size):
            places[k, i] = 2 * compressed(i, mask)
        if k >= children and mask < size:
            at = program.table_at[first + k - children]
            _multiply(work.low_minus, factor, at, places[k], size, ring, True)
            _multiply(work.low_plus, factor, at + 1, places[k], size, ring, True)
    for number in range(1 << (program.width[t] - low)):
        for i in range(size):
            minus[i] = work.low_minus[i]
            plus[i] = work.low_plus[i]
        for k in range(children, children + last - first):
            mask = program.table_mask[first + k - children]
            if mask >= size:
                at = program.table_at[first + k - children] + 2 * compressed(number << low, mask)
                if not _allows_all(factor, at, at + places[k, size - 1] + 2):
                    _multiply(minus, factor, at, places[k], size, ring, True)
                    _multiply(plus, factor, at + 1, places[k], size, ring, True)
        for k in range(children):
            at = tables.where[program.child_slot[child + k]]
            at += 2 * compressed(number << low, program.child_mask[child + k])
            _multiply(minus, tables.arena, at, places[k], size, ring, k == 0)
            _multiply(plus, tables.arena, at + 1, places[k], size, ring, k == 0)
        down, up = weight[t]
        if down != 1.0 or up != 1.0:
            for i in range(size):
                minus[i] = product(minus[i], down, ring)
                plus[i] = product(plus[i], up, ring)
        part = out[number * size : (number + 1) * size]
        for i in range(size):
            total = minus[i] + plus[i]
            part[i] = total - ring.modulus if total >= ring.modulus else total


@inner
def _scale(table: FloatArray) -> float:
    """Divide a table by a power of two, add ``FLOOR`` to its entries, and return the exponent."""
    largest = SMALLEST
    for i in range(len(table)):
        largest = max(largest, table[i])
    exponent = np.floor(np.log2(largest))
    scale = 2.0**-exponent
    for i in range(len(table)):
        table[i] = table[i] * scale + FLOOR
    return exponent


@compiled
def _run(
    program: Steps,
    factor: FloatArray,
    begin: int,
    end: int,
    tables: Tables,
    top: int,
    ring: Ring,
    weight: FloatArray,
    total: FloatArray,
    work: Work,
) -> None:
    """Run steps begin to end on the stack ``arena[:top]``; multiply ``total[0]`` by the sums of whole components.

    Rounded numbers are divided by powers of two, and ``total[1]`` is the logarithm to base 2 of the product instead.
    """
    arena, where = tables.arena, tables.where
    for t in range(begin, end):
        size = 1 << program.width[t]
        out = arena[top : top + size]
        _fill(program, factor, t, tables, out, ring, weight, work)
        is_rounded = ring.inverse == 0.0
        if is_rounded:
            total[1] += _scale(out)
            total[1] += np.log2(out[0]) if size == 1 else 0.0
        first = program.child_start[t]
        base = top if first == program.child_start[t + 1] else where[program.child_slot[first]]
        top = base
        if size == 1:
            total[0] = product(total[0], out[0], ring)
        elif program.slot[t] != t:
            sister = where[program.slot[t]]
            for i in range(size):
                arena[sister + i] = product(arena[sister + i], out[i], ring)
            if is_rounded:
                total[1] += _scale(arena[sister : sister + size])
        else:
            for i in range(size):
                arena[base + i] = out[i]
            where[t] = base
            top = base + size


class Sum(NamedTuple):
    """A sum over states as the steps of an elimination without terms, and weights of spins, by their steps."""

    program: Program
    weights: Mapping[int, tuple[int, int]]

    @property
    def products(self) -> float:
        """Numbers that one pass multiplies and adds."""
        inputs = np.diff(self.program.child_start) + 1
        return float((inputs * 2.0**self.program.width).sum())

    @property
    def most_bits(self) -> int:
        """The bits of the sum over all states, whether constraints allow them or not."""
        weighted = sum(sum(pair).bit_length() for pair in self.weights.values())
        return weighted + self.program.steps - len(self.weights) + 1

    def bits(self, report: Report) -> int:
        """Return a number of bits that the sum does not need more of, by a pass with rounded numbers.

        Rounding changes it by less than one bit as long as there are less than 2^50 operations on the way to a number.
        """
        if np.diff(self.program.child_start).max(initial=0) > MOST_CHILDREN:
            return self.most_bits
        scaled, exponents = np.ones((self.program.steps, 2)), 0
        for step, pair in self.weights.items():
            shift = max(max(pair).bit_length() - 53, 0)
            exponents += shift
            scaled[step] = [float((weight >> shift) + (shift > 0)) for weight in pair]
        return min(max(math.ceil(self._pass(ROUNDED, scaled, report)[1]) + exponents + 1, 1), self.most_bits)

    def residue(self, modulus: int, report: Report) -> int:
        """Return the remainder of the sum after division by a modulus below 2^50."""
        weights = np.ones((self.program.steps, 2))
        for step, pair in self.weights.items():
            weights[step] = [float(weight % modulus) for weight in pair]
        return int(self._pass(Ring(float(modulus), 1.0 / modulus), weights, report)[0])

    def _pass(self, ring: Ring, weights: FloatArray, report: Report) -> FloatArray:
        program = self.program
        tables = Tables(np.empty(program.peak), np.zeros(program.steps, dtype=np.int64), np.zeros(0))
        factor = np.where(program.table_entry == 0.0, 1.0, 0.0)
        size = 1 << BLOCK_BITS
        inputs = int((np.diff(program.child_start) + np.diff(program.table_start)).max(initial=0))
        minus, plus, low_minus, low_plus = np.empty((4, size))
        work = Work(minus, plus, low_minus, low_plus, np.empty((inputs, size), dtype=np.int64))
        total, steps = np.array([1.0, 0.0]), program.for_kernels()
        for begin, end in program.runs(0, program.steps):
            _run(steps, factor, begin, end, tables, int(program.heights[begin]), ring, weights, total, work)
            report(end / program.steps)
        return total


def moduli(bits: int) -> list[int]:
    """Return numbers below 2^50 without common divisors, whose product has more than so many bits.

    Examples
    --------
    >>> [2**50 - m for m in moduli(130)]
    [1, 2, 3]
    """
    found, whole = list[int](), 1
    for candidate in range(2**MODULUS_BITS - 1, 0, -1):
        if whole.bit_length() > bits + 1:
            break
        if math.gcd(candidate, whole) == 1:
            found.append(candidate)
            whole *= candidate
    return found


def from_residues(residues: Iterable[int], moduli: Iterable[int]) -> int:
    """Return the smallest whole number, 0 or more, with these remainders.

    Examples
    --------
    >>> from_residues([2, 3], [5, 7])
    17
    """
    value, whole = 0, 1
    for residue, modulus in zip(residues, moduli, strict=True):
        value += whole * ((residue - value) * pow(whole, -1, modulus) % modulus)
        whole *= modulus
    return value

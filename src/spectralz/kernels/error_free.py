"""Sums and products without rounding errors, for the constants of a model and the sizes of its rank-1 terms.

Nothing here is compiled, because models are created before numba is imported.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spectralz.kernels.arrays import FloatArray

SPLITTER = 2.0**27 + 1.0  # times a double, this cuts it into halves of 26 bits
SMALLEST = 2.0**-1074  # the error of a number that is too small for a double
# An upper bound on the sum of all numbers too small for a double, if they are not multiplied by large ones.
NOTHING = 1e-300


class Parts(NamedTuple):
    """Numbers that add up to the wanted sum, up to an error of at most ``left_out``."""

    numbers: list[float]
    left_out: float


class Lost(NamedTuple):
    """What rounding may have changed in a log-weight: in its terms with spins, and in its constant."""

    in_terms: float = 0.0
    in_constant: float = 0.0

    @property
    def total(self) -> float:
        """What it may have changed in all."""
        return self.in_terms + self.in_constant

    def and_more(self, in_terms: float, in_constant: float = 0.0) -> Lost:
        """Return what it may have changed if this is added."""
        return Lost(self.in_terms + in_terms, self.in_constant + in_constant)


def exact_sum(parts: Parts) -> tuple[float, float]:
    """Return the sum, rounded once, and a bound on its error.

    Examples
    --------
    >>> exact_sum(Parts([1e16, 0.5, -1e16], 0.0))
    (0.5, 0.0)
    """
    total = math.fsum(parts.numbers)
    return total, abs(math.fsum([*parts.numbers, -total])) * (1.0 + 2.0 * UNIT_ROUNDOFF) + parts.left_out


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of each pair of numbers, rounded, and what rounding took from it, exactly (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


class RowSums(NamedTuple):
    """Sums over the rows of a matrix: ``high + low``, up to an error of at most ``left_out``."""

    high: FloatArray
    low: FloatArray
    left_out: FloatArray

    @classmethod
    def of_columns(cls, columns: Iterable[FloatArray], rows: int) -> RowSums:
        """Add up the columns one after the other; the errors of these sums are added up too."""
        high, low, sizes, count = np.zeros(rows), np.zeros(rows), np.zeros(rows), 0
        for column in columns:
            high, lost = two_sum(high, column)
            low = low + lost
            sizes = sizes + np.abs(lost)
            count += 1
        return cls(high, low, 1.1 * count * UNIT_ROUNDOFF * sizes)


def row_sums(matrix: Any) -> RowSums:
    """Return the sums over the rows of a matrix, an array or a scipy.sparse one, in twice the precision."""
    rows, columns = matrix.shape
    if not sp.issparse(matrix):
        return RowSums.of_columns((matrix[:, j] for j in range(columns)), rows)
    matrix = matrix.tocsr()
    degree = np.diff(matrix.indptr)

    def entries() -> Iterator[FloatArray]:
        for k in range(int(degree.max(initial=0))):  # the k-th entry of every row
            column = np.zeros(rows)
            has_one = degree > k
            column[has_one] = matrix.data[matrix.indptr[:-1][has_one] + k]
            yield column

    return RowSums.of_columns(entries(), rows)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the product of each pair of numbers, rounded, and what rounding took from it, exactly (Dekker).

    The numbers must not be so large that their products with 2^27 overflow, nor so small that the rounding error is not
    a normal number.
    """
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    large = SPLITTER * a
    high = large - (large - a)
    return high, a - high


def balanced(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nonzero terms values_j v_j v_j', scaled so that the largest |v_ji| of each is between 1/2 and 1.

    Powers of two are moved between a value and its vector, without rounding.
    """
    used = np.flatnonzero((values != 0.0) & np.any(vectors != 0.0, axis=1))
    _, power = np.frexp(np.abs(vectors[used]).max(axis=1, initial=0.0))
    return np.ldexp(values[used], 2 * power), np.ldexp(vectors[used], -power[:, None])


def trace_of_terms(values: FloatArray, vectors: FloatArray) -> Parts:
    """Return the trace of sum_j values_j v_j v_j', the v_j being the rows of ``vectors``, in twice the precision."""
    numbers: list[float] = []
    sizes = 0.0
    for value, vector in zip(*balanced(values, vectors), strict=True):
        square, lost = two_product(vector, vector)
        terms = [*square.tolist(), *lost.tolist()]
        norm = math.fsum(terms)
        rest = math.fsum([*terms, -norm])
        share, power = math.frexp(value)  # so that the value does not overflow when it is split
        high, low = two_product(np.array(share), np.array(norm))
        numbers += [math.ldexp(part, power) for part in (float(high), float(low), share * rest)]
        sizes += abs(float(value)) * norm
    return Parts(numbers, 8.0 * UNIT_ROUNDOFF**2 * sizes + NOTHING)


def pair_rounding(values: FloatArray, vectors: FloatArray, roundings: float) -> float:
    """Bound the error of the given number of roundings in sum_j values_j v_ji v_jk, added up over all i != k.

    Entries that are lost when terms are :func:`balanced` are included.
    """
    n = vectors.shape[1]
    sizes, lost = [], []
    for value, vector in zip(*balanced(values, vectors), strict=True):
        sizes.append(abs(float(value)) * _pair_sum(vector))
        lost.append(abs(float(value)) * (4.0 * n * n * SMALLEST) + NOTHING)
    return 1.01 * (roundings * UNIT_ROUNDOFF * math.fsum(sizes) + math.fsum(lost))


def _pair_sum(vector: FloatArray) -> float:
    """Return the sum of |v_i v_k| over all i != k, without losing digits if one v_i is huge."""
    sizes = np.sort(np.abs(vector))
    return 2.0 * float(sizes[1:] @ np.cumsum(sizes[:-1]))

"""Products of tables of positive numbers as polynomials of spins: the Walsh transform of the logs of each table."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.error_free import Parts, exact_sum, two_sum
from spectralz.model.polynomial import Polynomial, Scope, model_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spectralz.model.coupling.base import FloatArray


class Table(NamedTuple):
    """Positive numbers for all states of some variables, which are 0 and 1; the last variable changes fastest."""

    scope: Sequence[int]
    numbers: Sequence[float]


class Coefficients(NamedTuple):
    """The terms of tables with equally many variables, one table per row, and bounds on their errors.

    Bit i of a column, counted from the highest, says whether variable i of the scope is in the term. A coefficient is
    ``high + low``.
    """

    high: FloatArray
    low: FloatArray
    known: FloatArray  # how far a coefficient of each table can be told from 0
    lost: float  # by how much all these tables together may change a log-weight


def polynomial_of_tables(n: int, tables: Iterable[Table]) -> Polynomial:
    """Return the model of n spins whose weight is the product of the tables; 1 is the spin +1.

    Its rounding includes that of the numbers themselves, which stand in a file as decimals, of their logs and of the
    transform.
    """
    groups = defaultdict[int, list[Table]](list)
    for table in tables:
        groups[len(table.scope)].append(table)
    numbers, known, lost = defaultdict[Scope, list[float]](list), defaultdict[Scope, float](float), 0.0
    for size, group in sorted(groups.items()):
        found = _coefficients(np.array([[math.log(t) for t in table.numbers] for table in group]), _relative(group))
        whole = found.high + found.low
        # A coefficient that consists of roundings only is no term: what is left out is counted as lost. So the terms of
        # a file that was written from a few terms are these.
        is_noise = np.abs(whole) <= found.known[:, None]
        lost += found.lost + 1.01 * float(np.abs(whole[is_noise]).sum())
        for row, column in np.argwhere(~is_noise).tolist():
            scope = _chosen(group[row].scope, column, size)
            numbers[scope] += [float(found.high[row, column]), float(found.low[row, column])]
            known[scope] += float(found.known[row])
    terms = {}
    for scope, parts in numbers.items():
        weight, error = exact_sum(Parts(parts, 0.0))
        if len(scope) > 1 and abs(weight) <= known[scope]:  # terms of several tables that cancel would couple spins
            lost += abs(weight) + error
        else:
            terms[scope] = Parts(parts, 0.0)
    return Polynomial._of(*model_parts(terms, n, None, "pm1", 1.01 * lost))


def _relative(group: list[Table]) -> FloatArray:
    """Return a bound on the relative error of each number: half a unit of its last place, by reading it."""
    return np.array([[math.ulp(t) / t / 2.0 for t in table.numbers] for table in group])


def _coefficients(logs: FloatArray, relative: FloatArray) -> Coefficients:
    """Return the terms of tables, one per row, from the logs of their numbers, which have a relative error."""
    rows, entries = logs.shape
    size = entries.bit_length() - 1
    high, low = logs, np.zeros_like(logs)
    for k in range(size):
        # The two halves along variable k: their sum belongs to terms without it, their difference to those with it.
        a, b = (np.moveaxis(part.reshape(rows, 1 << k, 2, -1), 2, 0) for part in (high, low))
        (plus, more), (minus, less) = two_sum(a[1], a[0]), two_sum(a[1], -a[0])
        high = np.stack([plus, minus], axis=2).reshape(rows, entries)
        low = np.stack([b[1] + b[0] + more, b[1] - b[0] + less], axis=2).reshape(rows, entries)
    # Every log is known to a unit of its last place, besides the error of its number. What the transform loses is of
    # second order: the low parts are rounded twice in each of its steps.
    error = -1.01 * np.log1p(-relative) + np.spacing(np.abs(logs))
    second = 4.0 * (size + 1) ** 2 * UNIT_ROUNDOFF**2 * np.abs(logs).sum(axis=1)
    # exp gives a number to a unit of its last place: a relative error of 2^-52.
    known = (np.maximum(2.0**-52, relative) + np.spacing(np.abs(logs))).mean(axis=1)
    return Coefficients(high / entries, low / entries, known, float((error.max(axis=1) + second).sum()))


def _chosen(scope: Sequence[int], column: int, size: int) -> Scope:
    """Return the spins of a term, ascending."""
    return tuple(sorted(spin for k, spin in enumerate(scope) if column >> (size - 1 - k) & 1))

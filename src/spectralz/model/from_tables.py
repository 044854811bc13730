"""Models as products of tables of weights, some of which may be zero.

Positive tables are polynomials of spins: the Walsh transform of the logs of each table. The zeros of a table become a
constraint. The weights that are left become terms; what these say about states that are not allowed does not matter, so
the fewest are taken that fit.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.errors import ModelError, shown
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.error_free import Parts, exact_sum, two_sum
from spectralz.model.checks import as_float_array, checked_count, refuse_non_finite
from spectralz.model.constraints import MOST_TABLE_SPINS, Constraints
from spectralz.model.constraints import Table as Allowed
from spectralz.model.names import checked_names, index_of, places_of
from spectralz.model.polynomial import Polynomial, Scope, added_up, model_parts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from spectralz.model.coupling.base import FloatArray
    from spectralz.model.ising import Ising


class Table(NamedTuple):
    """Positive numbers for all states of some variables, which are 0 and 1; the last variable changes fastest."""

    scope: Sequence[int]
    numbers: Sequence[float]


class _Coefficients(NamedTuple):
    """The terms of tables with equally many variables, one table per row, and bounds on their errors.

    Bit i of a column, counted from the highest, says whether variable i of the scope is in the term. A coefficient is
    ``high + low``.
    """

    high: FloatArray
    low: FloatArray
    known: FloatArray  # how far a coefficient of each table can be told from 0
    lost: float  # by how much all these tables together may change a log-weight


def _polynomial_of_tables(n: int, tables: Iterable[Table]) -> Polynomial:
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


def _coefficients(logs: FloatArray, relative: FloatArray) -> _Coefficients:
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
    return _Coefficients(high / entries, low / entries, known, float((error.max(axis=1) + second).sum()))


def _chosen(scope: Sequence[int], column: int, size: int) -> Scope:
    """Return the spins of a term, ascending."""
    return tuple(sorted(spin for k, spin in enumerate(scope) if column >> (size - 1 - k) & 1))


# Terms of at most so many spins are tried before a table with zeros is filled up and all of its terms are taken.
MOST_FITTED_SPINS = 2
# A fit may miss the log of a weight by so many units in the last place of the largest.
FITTED_UNITS = 64.0


def from_tables(
    n: int,
    tables: Iterable[tuple[Iterable[Hashable], ArrayLike]],
    names: Iterable[Hashable] | None = None,
) -> Ising | Polynomial:
    """Make the model of n spins whose weight is the product of tables, which may have zeros.

    Parameters
    ----------
    n
        Number of spins.
    tables
        Pairs of a scope, up to 16 spins by index or by name, and its table of weights, not of their logs: of shape
        (2,)*k for k spins, axis i for ``scope[i]``, index 0 for the lower value. States in which a table is zero are
        excluded by a constraint.
    names
        One name per spin; None for 0 to n - 1.

    Returns
    -------
    Ising or Polynomial
        The model; a Polynomial if it has terms of three and more spins.

    Raises
    ------
    ModelError
        If a weight is negative or not finite, or if a table does not fit its scope.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.from_tables(2, [((0, 1), [[1.0, 2.0], [3.0, 0.0]])])
    >>> print(f"{sz.log_z(model).log_z:.6f}")  # log 6
    1.791759
    >>> float(model.log_weight([+1, +1]))
    -inf
    """
    count = checked_count(n)
    spin_names = checked_names(names, count)
    places = places_of(spin_names)
    checked = []
    for number, (scope, weights) in enumerate(tables):
        spins = [index_of(spin, count, *places) for spin in scope]
        array = as_float_array(weights, f"table {number}")
        if len(spins) > MOST_TABLE_SPINS:
            raise ModelError(f"table {number} has {len(spins)} spins; tables are for up to {MOST_TABLE_SPINS}")
        if len(set(spins)) < len(spins):
            raise ModelError(f"table {number} names a spin twice, in {shown(tuple(spins))}; name each spin once")
        if array.shape != (2,) * len(spins):
            raise ModelError(
                f"table {number} has shape {array.shape}; with {len(spins)} spins it has {(2,) * len(spins)}"
            )
        refuse_non_finite(array, f"table {number}")
        if np.any(array < 0.0):
            raise ModelError(f"table {number} has the negative weight {array.min():g}; weights are at least 0")
        checked.append(Table(spins, array.ravel().tolist()))
    return product_of_tables(count, checked).named(spin_names).simplest()


def product_of_tables(n: int, tables: Iterable[Table]) -> Polynomial:
    """Return the model of n spins whose weight is the product of tables, which may have zeros; 1 is the spin +1."""
    filled, fitted, constraints = list[Table](), list[tuple[Scope, float]](), list[Allowed]()
    constants, lost = [0.0], 0.0
    for table in tables:
        weights = np.array(table.numbers, dtype=np.float64)
        allowed = weights > 0.0
        if allowed.all():
            filled.append(table)
            continue
        order = np.argsort(table.scope)
        scope = tuple(table.scope[k] for k in order)
        shape = (2,) * len(scope)
        constraints.append(Allowed(scope, allowed.reshape(shape).transpose(order)))
        if not allowed.any():
            continue
        weights = weights.reshape(shape).transpose(order).ravel()
        fit = _fitted(scope, weights)
        if fit is None:
            mean = math.exp(float(np.log(weights[weights > 0.0]).mean()))
            filled.append(Table(scope, np.where(weights > 0.0, weights, mean).tolist()))
        else:
            terms, missed = fit
            constants += [c for spins, c in terms if not spins]
            fitted += [(spins, c) for spins, c in terms if spins]
            lost += missed
    more = Polynomial._of(*model_parts(added_up(fitted, constants), n, None, "pm1", lost))
    model = _polynomial_of_tables(n, filled) + more if filled else more
    return Polynomial._of(model.pairwise._changed(constraints=Constraints.of(constraints)), model.higher)


def _fitted(scope: Scope, weights: FloatArray) -> tuple[list[tuple[Scope, float]], float] | None:
    """Return few terms whose sum is the log of every weight that is not zero, and by how much it may miss it."""
    where = np.flatnonzero(weights > 0.0)
    logs = np.log(weights[where])
    if logs.min() == logs.max():
        constant = float(logs[0])
        return [((), constant)] if constant else [], 4.0 * UNIT_ROUNDOFF * abs(constant) + UNIT_ROUNDOFF
    states = 2.0 * ((where[:, None] >> np.arange(len(scope))[::-1]) & 1) - 1.0
    chosen: list[tuple[int, ...]] = []
    for size in range(min(MOST_FITTED_SPINS, len(scope)) + 1):
        chosen += itertools.combinations(range(len(scope)), size)
        design = np.stack([states[:, list(spins)].prod(axis=1) for spins in chosen], axis=1)
        terms = np.linalg.lstsq(design, logs, rcond=None)[0]
        terms = np.where(np.abs(terms) > 8.0 * UNIT_ROUNDOFF * np.abs(logs).max(), terms, 0.0)
        largest = float(np.abs(logs).max() + np.abs(terms).sum())
        missed = float(np.abs(design @ terms - logs).max())
        if missed <= FITTED_UNITS * UNIT_ROUNDOFF * largest:
            found = [(tuple(scope[k] for k in spins), float(c)) for spins, c in zip(chosen, terms, strict=True) if c]
            # The weights were read, their logs taken, and the terms added up, each with a rounding.
            return found, missed + (len(chosen) + 4) * UNIT_ROUNDOFF * (largest + 1.0)
    return None

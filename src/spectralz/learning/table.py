"""Input data: rows of two-valued variables, or only their moments; checked once and then trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.options import check_choice
from spectralz.errors import ModelError, OptionError
from spectralz.model.columns import labels_of, names_from, places_of_labels
from spectralz.model.names import Names, checked_names
from spectralz.model.values import LOW, Values, checked_weights, read_cells
from spectralz.parts.missing_cells import distinct_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, IntArray, SpinArray

VALUES = ("auto", "pm1", "01")
# More rows than this nobody has counted: such weights are in units of their own.
MOST_COUNTED = 1e15
MOMENT_KEYS = ("mean", "pair_mean", "rows")


@dataclass(frozen=True)
class Table:
    """Rows of spins with their weights, or only means and mean products.

    Attributes
    ----------
    states
        One state per row, -1 and +1, 0 where a value is missing; or None if only moments are known.
    weight
        How often each row was seen; empty if only moments are known.
    mean, pair_mean
        E[x_i] and E[x_i x_j] (n x n) of the data; if cells are missing, of the rows that have these values.
    rows
        The sum of the weights.
    names
        One name per column, or None.
    values
        The values in the data: ``"pm1"`` or ``"01"``.
    known
        The share of rows that have both values of each pair (n x n), or None if no cell is missing.
    """

    states: SpinArray | None
    weight: FloatArray
    mean: FloatArray
    pair_mean: FloatArray
    rows: float
    names: Names
    values: Values
    known: FloatArray | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.known is None

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.mean)

    @property
    def row_count(self) -> str:
        """The number of rows in messages: the sum of the weights, if they can be counts of rows."""
        if self.states is None or len(self.states) <= self.rows < MOST_COUNTED:
            return f"{self.rows:g}"
        return str(len(self.states))

    def label(self, i: int) -> str:
        """Return the name of a column in messages."""
        return f"column {i if self.names is None else repr(self.names[i])}"

    def value_of(self, spin: int) -> str:
        """Return the value in the data that stands for a spin, as text."""
        return f"{spin:+d}" if self.values == "pm1" else f"{(spin + 1) // 2}"

    def known_states(self, what: str) -> SpinArray:
        """Return the rows, or say that ``what`` needs them."""
        if self.states is None:
            raise OptionError(f"{what} needs the rows of the data, and only their moments were given; give X")
        return self.states

    def moments(self, edges: IntArray) -> FloatArray:
        """Return the means, and the mean products of some pairs."""
        return np.concatenate([self.mean, self.pair_mean[edges[:, 0], edges[:, 1]]])

    def part(self, index: IntArray) -> Table:
        """Return some of the rows."""
        states = self.known_states("a part of the data")[index]
        return of_states(states, self.weight[index], self.names, self.values)

    def distinct(self) -> Table:
        """Return the table with equal rows merged: the same moments, but fewer rows."""
        if self.states is None:
            return self
        states, place = distinct_rows(self.states)
        weight = np.bincount(place, weights=self.weight, minlength=len(states)).astype(np.float64)
        return replace(self, states=states, weight=weight)


def table_of(X: Any, weights: Any = None, values: str = "auto", names: Any = None, *, complete: bool = False) -> Table:
    """Check rows of data and return them as spins.

    Parameters
    ----------
    X
        Rows x variables, of -1 and +1 or of 0 and 1: an array, a list of lists, a DataFrame (its columns are names).
    weights
        How often each row was seen, or None for once.
    values
        ``"pm1"``, ``"01"``, or ``"auto"`` to detect it from the data.
    names
        One name per variable; by default those of the DataFrame.
    complete
        Whether to refuse missing cells.
    """
    check_choice(values, "values", VALUES)
    states, kind = spins_of(X, values, complete=complete)
    if states.ndim != 2:
        raise ModelError(f"X has shape {states.shape}; it must be rows x variables, one state per row")
    weight = checked_weights(weights, len(states))
    spin_names = names_from(labels_of(X)) if names is None else names
    table = of_states(states, weight, checked_names(spin_names, states.shape[1]), kind)
    if table.known is not None:
        for i in np.flatnonzero(np.diag(table.known) == 0.0)[:1].tolist():
            raise ModelError(f"{table.label(i)} has no value in any row; leave the column out")
    return table


def of_states(states: SpinArray, weight: FloatArray, names: Any, values: Values) -> Table:
    """Return the table of rows of spins; rows without a weight or without any value are left out."""
    known = states != 0
    kept = (weight > 0.0) & (known.any(axis=1) if states.shape[1] else True)
    if not kept.all():
        states, weight, known = states[kept], weight[kept], known[kept]
    rows = float(weight.sum())
    if not len(states):
        raise ModelError("X has no rows with a weight above zero and a value; there is nothing to learn from")
    x, share = states.astype(np.float64), (weight / rows)[:, None]
    mean, pair = (x * share).sum(axis=0), (x * share).T @ x
    if known.all():
        return Table(states, weight, mean, pair, rows, names, values)
    # Of the rows that have both values of a pair; 0 if there are none.
    both = (known * share).T @ known.astype(np.float64)
    divisor = np.where(both > 0.0, both, 1.0)
    return Table(states, weight, mean / np.diag(divisor), pair / divisor, rows, names, values, both)


def spins_of(X: Any, values: str = "auto", *, complete: bool = False) -> tuple[SpinArray, Values]:
    """Return data of two values as spins, 0 where one is missing, and which two values they have.

    Parameters
    ----------
    X
        The data.
    values
        ``"pm1"``, ``"01"``, or ``"auto"`` to detect it.
    complete
        Whether to refuse missing cells.
    """
    array, missing = read_cells(X)
    if array.dtype.kind not in "biuf":
        raise ModelError(f"X holds {array.dtype} values; it must hold -1 and +1, or 0 and 1")
    for place in np.argwhere(missing)[: 1 if complete else 0].tolist():
        others = int(missing.sum()) - 1
        more = "" if not others else ", and so is 1 other" if others == 1 else f", and so are {others} others"
        raise ModelError(f"X{place} is missing{more}; every value is needed here: leave such rows out, or fill them in")
    kind = _kind_of(array) if values == "auto" else values
    low = LOW[kind]
    for place in np.argwhere((array != low) & (array != 1))[:1].tolist():
        raise ModelError(
            f"X{place} is {array[tuple(place)]}; it must hold only -1 and +1, or only 0 and 1 "
            "(make other numbers binary first, for example by X > np.median(X, axis=0))"
        )
    spins = np.where(array == 1, 1, -1).astype(np.int8)
    spins[missing] = 0
    return np.ascontiguousarray(spins), "pm1" if low == -1 else "01"


def _kind_of(array: NDArray[Any]) -> Values:
    """Return which two values an array has: any -1 means -1 and +1."""
    return "pm1" if array.dtype.kind != "b" and np.any(array == -1) else "01"


def moments_table(moments: Any, values: str = "auto", names: Any = None) -> Table:
    """Check moments and return them as a table without rows."""
    if not isinstance(moments, Mapping) or set(moments) != set(MOMENT_KEYS):
        raise OptionError("moments is a mapping with the keys 'mean' (n numbers), 'pair_mean' (n x n) and 'rows'")
    check_choice(values, "values", VALUES)
    labels, pairs = labeled_alike(moments["mean"], moments["pair_mean"])
    names = names_from(labels) if names is None else names
    mean, pair = (np.array(moment, dtype=np.float64) for moment in (moments["mean"], pairs))
    rows = float(moments["rows"])
    if mean.ndim != 1 or pair.shape != (len(mean), len(mean)):
        raise ModelError(f"mean has shape {mean.shape} and pair_mean {pair.shape}; they must be (n,) and (n, n)")
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(pair)) and np.isfinite(rows) and rows > 0.0):
        raise ModelError("moments must be finite numbers, and rows above zero")
    if not np.allclose(pair, pair.T, atol=1e-9):
        raise ModelError("pair_mean is not symmetric; E[x_i x_j] is E[x_j x_i]")
    if values == "01":
        mean, pair = 2.0 * mean - 1.0, 4.0 * pair - 2.0 * mean[:, None] - 2.0 * mean[None, :] + 1.0
    np.fill_diagonal(pair, 1.0)
    _refuse_impossible(mean, pair)
    kind: Values = "01" if values == "01" else "pm1"
    return Table(None, np.empty(0), mean, pair, rows, checked_names(names, len(mean)), kind)


def labeled_alike(mean: Any, pair: Any) -> tuple[Any, Any]:
    """Return the labels of moments, and those of pairs with rows and columns in the order of the means."""
    labels = labels_of(mean)
    columns = labels_of(pair)
    if columns is None:
        return labels, pair
    labels = columns if labels is None else labels
    numbers = np.asarray(pair)
    for axis, side in enumerate((list(getattr(pair, "index", columns)), columns)):
        if len(side) != len(labels):
            raise ModelError(
                f"pair_mean has {len(side)} labels along axis {axis} and mean {len(labels)}; they must agree"
            )
        numbers = numbers.take(np.argsort(places_of_labels(side, labels, "moments as arrays")), axis)
    return labels, numbers


def _refuse_impossible(mean: FloatArray, pair: FloatArray) -> None:
    """Refuse moments that are impossible for two-valued variables: every cell of a pair's table is a probability."""
    slack = 1e-9
    for a, b in product((-1, 1), repeat=2):
        cell = (1.0 + a * mean[:, None] + b * mean[None, :] + a * b * pair) / 4.0
        np.fill_diagonal(cell, 1.0)
        for i, j in np.argwhere(cell < -slack)[:1].tolist():
            raise ModelError(
                f"no data have these moments: P(x_{i} = {a:+d}, x_{j} = {b:+d}) would be {cell[i, j]:.3g}; "
                "mean is E[x] and pair_mean E[x x'] of -1 and +1 (for 0 and 1, give values='01')"
            )

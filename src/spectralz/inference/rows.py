"""Rows of data under a model: cells may be missing, and are summed over or predicted.

Groups of missing cells that are few are summed over exactly. Rows with larger groups are models of their own, those
of the missing cells given the known ones, and go to the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import report
from spectralz.errors import ModelError, catching_interrupt
from spectralz.methods import Exact, MeanField
from spectralz.methods.base import has_few_pairs
from spectralz.model import RBM
from spectralz.model.columns import checked_labels, column_names, places_of_labels
from spectralz.model.coupling.entries import symmetric
from spectralz.model.values import LOW, read_cells, spins_of
from spectralz.parts.missing_cells import distinct_rows, missing_cells, neighbors_of
from spectralz.parts.presolve import presolve
from spectralz.portfolio.auto import Auto
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from spectralz.methods import Method
    from spectralz.model import FloatArray, IntArray, Model, SpinArray
    from spectralz.model.columns import Columns
    from spectralz.model.values import Values
    from spectralz.parts.missing_cells import MissingCells

# Rows are summed over exactly, by methods that may do that, while a row has at most so many states.
MOST_STATES_OF_ROW = 2**18
# The least budget of one row, in seconds; all rows together take no longer than so many times the budget.
LEAST_SHARE, LONGER = 0.05, 1.1


def columns_of(X: Any, model: Any, by: Columns = "labels") -> IntArray | None:
    """Return which spin each column is, by its label, or None if columns go by position."""
    labels = checked_labels(X, by)
    return None if labels is None else places_of_labels(labels, names_of_columns(model, labels))


def names_of_columns(model: Any, labels: Sequence[Hashable]) -> Sequence[Hashable]:
    """Return the names that columns with some labels go by, for a model of any kind."""
    return model._column_names(labels) if isinstance(model, RBM) else column_names(model)


def read_rows(X: Any, model: Any, values: Values | None, whole: Model, by: Columns = "labels") -> SpinArray:
    """Return data as rows of -1, 0 (missing) and +1.

    Rows of an RBM may have its visible units alone. The columns of a DataFrame may be some of the spins, in any order;
    the others are missing.
    """
    columns = columns_of(X, model, by)
    n = whole.n
    kind = model.values if values is None else values
    if kind not in LOW:
        raise ModelError(f"values is {values!r}; states are 'pm1' (-1 and +1) or '01' (0 and 1)")
    try:
        array, missing = read_cells(X)
    except ModelError as error:
        if "rectangular" not in str(error):
            raise
        raise ModelError("the states have rows of different lengths; give one row of all spins per state") from None
    rows, missing = np.atleast_2d(array), np.atleast_2d(missing)
    if rows.size == 0 and rows.shape[-1] != n:
        rows, missing = rows.reshape(0, n), missing.reshape(0, n)
    visible = len(model.visible) if isinstance(model, RBM) else n
    if rows.ndim != 2 or (rows.shape[1] not in (n, visible) and columns is None):
        only = "" if visible == n else f", or of its {visible} visible units"
        raise ModelError(f"states have shape {np.shape(X)}; the model has {n} spins: give rows of {n} values{only}")
    try:
        spins = spins_of(rows, kind, strictly=isinstance(model, RBM) or values is not None)
    except ModelError as error:
        raise ModelError(f"{error}; or give values={'01' if kind == 'pm1' else 'pm1'!r}") from None
    states = np.zeros((len(rows), n), dtype=np.int8)
    if len(rows):
        states[:, np.arange(rows.shape[1]) if columns is None else columns] = np.where(missing, 0, spins)
    return states


@dataclass(frozen=True)
class Rows:
    """What a model says about rows.

    Attributes
    ----------
    log_weight
        The log of the sum over the missing cells, or 0 if probabilities are wanted.
    up
        P(+1) of all cells, given the row where one is missing and probabilities are wanted.
    error
        The errors of what is wanted, 0 where it is exact; None if a method gave none.
    trusted, is_exact, interrupted
        Whether all of it can be trusted, whether all is exact, and whether an interrupt ended it early.
    """

    log_weight: FloatArray
    up: FloatArray
    error: FloatArray | None
    trusted: bool = True
    is_exact: bool = True
    interrupted: bool = False


def rows_under(model: Model, states: SpinArray, method: Method, *, cells: bool) -> Rows:
    """Return what a model says about rows: the weight of what is known, or (``cells``) the probability of each cell.

    Parameters
    ----------
    model
        The model.
    states
        Rows of -1, 0 (missing) and +1; equal ones are treated once.
    method
        What answers where sums over all states would be long; ``auto`` and ``exact`` leave the rest to such sums. The
        rows share its budget.
    cells
        Whether probabilities of cells are wanted; otherwise log-weights of rows.
    """
    different, place = distinct_rows(states)
    log_weight, up = np.zeros(len(different)), (different + 1) / 2.0
    rows = Rows(log_weight, up, np.zeros(up.shape if cells else len(different)))
    lacks = (different == 0).any(axis=1)
    if not cells and not lacks.all():
        log_weight[~lacks] = model.log_weight(different[~lacks])
    lacking = np.flatnonzero(lacks)
    easy, hard = lacking[:0], lacking
    is_plain = not model.higher.number and not model.constraints
    if len(lacking) and isinstance(method, Auto | Exact) and is_plain and has_few_pairs(model):
        groups = missing_cells(different[lacking], neighbors_of(model.n, model.edges()[0]))
        is_easy = _states_of_rows(groups) <= MOST_STATES_OF_ROW
        easy, hard = lacking[is_easy], lacking[~is_easy]
        log_weight[easy], up[easy] = _summed(model, groups if is_easy.all() else groups.of_rows(is_easy))
    if len(hard):
        rows = _with_hard(rows, model, different, hard, method, cells)
    return replace(
        rows, log_weight=log_weight[place], up=up[place], error=None if rows.error is None else rows.error[place]
    )


def _states_of_rows(groups: MissingCells) -> FloatArray:
    """Return how many states the sums over the missing cells of each row have."""
    states = np.exp2(np.minimum(groups.sizes, 60))
    return np.bincount(groups.row, weights=states, minlength=len(groups.x)).astype(np.float64)


def _summed(model: Model, groups: MissingCells) -> tuple[FloatArray, FloatArray]:
    """Return the log-weights of rows, and the probabilities of their cells, by sums over the missing ones."""
    edges, J = model.edges()
    log_sum, up = groups.sums(model.field, J)
    x = groups.x.astype(np.float64)
    local = np.asarray(x @ symmetric(model.n, edges, J / 2.0).tocsr()) + model.field
    return model.constant + np.einsum("ri,ri->r", x, local) + log_sum, up


def _with_hard(rows: Rows, model: Model, states: SpinArray, hard: IntArray, method: Method, cells: bool) -> Rows:
    """Fill in the rows that need a method; once time is up the rest comes from mean field, and is not trusted."""
    shared = with_part(method, len(hard))
    quick = shared if model.constraints else MeanField()
    budget = method.budget if isinstance(method, Auto) and method.work is None else None
    end = math.inf if budget is None else clock.now() + LONGER * budget
    has_errors, trusted, is_exact, interrupted = True, True, True, False
    for k, r in enumerate(hard.tolist()):
        report("rows with missing cells", k / len(hard))
        known = np.flatnonzero(states[r])
        free = model._given(known, states[r, known].astype(np.float64)).simplest()
        found: Any = None
        is_late = clock.now() > end
        with catching_interrupt() as interrupt:
            found = _asked(free, quick if interrupted or is_late else shared, cells)
        if found is None:
            found = _asked(free, quick, cells)
        estimate = found.estimate if cells else found
        exact = estimate.kind is Kind.EXACT
        rows.log_weight[r] = estimate.log_z
        if cells:
            rows.up[r, states[r] == 0] = found.probability[:, 1]
        if not exact and found.std_error is not None and rows.error is not None:
            if cells:
                rows.error[r, states[r] == 0] = found.std_error / 2.0
            else:
                rows.error[r] = found.std_error
        has_errors &= exact or found.std_error is not None
        trusted &= estimate.trusted and not interrupted and not is_late
        is_exact &= exact
        interrupted |= interrupt.happened or estimate.interrupted
    error = rows.error if has_errors else None
    return replace(rows, error=error, trusted=trusted and not interrupted, is_exact=is_exact, interrupted=interrupted)


def _asked(model: Model, method: Method, cells: bool) -> Any:
    presolved = presolve(model)
    if not cells:
        return method.run(presolved.model)
    return presolved.marginals(method.run_marginals(presolved.model, pairs=False), np.empty((0, 2), dtype=np.int64))


def with_part(method: Method, parts: int) -> Method:
    """Return the method with one of equal parts of its budget."""
    if not isinstance(method, Auto):
        return method
    if method.work is not None:
        return replace(method, work=method.work / parts)
    return replace(method, budget=max(float(method.budget or 0.0) / parts, LEAST_SHARE))

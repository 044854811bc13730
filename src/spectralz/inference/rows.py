"""Rows of data under a model: cells may be missing, and are summed over or predicted.

Groups of missing cells that are few are summed over exactly. Rows with larger groups are models of their own, those
of the missing cells given the known ones, and go to the method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.deadline import BUDGET, Deadline
from spectralz._support.progress import report
from spectralz.errors import ModelError, catching_interrupt
from spectralz.methods import Exact, MeanField
from spectralz.methods.base import has_few_pairs
from spectralz.model import RBM
from spectralz.model.columns import checked_labels, column_names, places_of_labels
from spectralz.model.coupling.entries import symmetric
from spectralz.model.values import LOW, read_cells, spins_of
from spectralz.parts.mean_field.ascents import ascend_in_time, ascend_together_in_time, bound_of_model, bounds_at
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
# The least budget of one row, in seconds; once the budget is spent, mean field of all other rows gets so much of it.
LEAST_SHARE, LATE_SHARE = 0.05, 0.1
# A field that no couplings overcome.
HOLDING = 1e300


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
    """Fill in the rows that need a method; once time is up the rest comes from mean field, and is not trusted.

    Mean field takes no constraints; rows of models that have any go to the method, whatever the time.
    """
    shared = with_part(method, len(hard))
    budget = method.budget if isinstance(method, Auto) and method.work is None else None
    deadline, done = Deadline() if budget is None else Deadline.after(budget), 0
    with catching_interrupt() as interrupt:
        for k, r in enumerate(hard.tolist()):
            report("rows with missing cells", k / len(hard))
            if rows.interrupted or not deadline.left:
                break
            rows, done = _filled(rows, model, states, r, shared, cells), k + 1
    late = hard[done:]
    if model.constraints:
        for r in late.tolist():
            rows = _filled(rows, model, states, r, shared, cells)
    elif len(late):
        _by_mean_field(rows, model, states, late, Deadline.after(LATE_SHARE * (BUDGET if budget is None else budget)))
        rows = replace(rows, error=None, is_exact=False)
    interrupted = rows.interrupted or interrupt.happened
    return replace(rows, trusted=rows.trusted and not interrupted and not len(late), interrupted=interrupted)


def _filled(rows: Rows, model: Model, states: SpinArray, r: int, method: Method, cells: bool) -> Rows:
    """Return the rows with one more, by a method."""
    known = np.flatnonzero(states[r])
    found = _asked(model._given(known, states[r, known].astype(np.float64)).simplest(), method, cells)
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
    return replace(
        rows,
        error=rows.error if exact or found.std_error is not None else None,
        trusted=rows.trusted and estimate.trusted,
        is_exact=rows.is_exact and exact,
        interrupted=rows.interrupted or estimate.interrupted,
    )


def _by_mean_field(rows: Rows, model: Model, states: SpinArray, late: IntArray, deadline: Deadline) -> None:
    """Fill in rows by mean field, one sweep each at least; huge fields hold the spins that are known."""
    couplings, limits = model.storage.for_kernels(), MeanField()
    h = np.ascontiguousarray(HOLDING * states[late].T)
    theta = np.where(h == 0.0, model.field[:, None], h)
    with deadline.in_force():
        if couplings.is_dense and not model.higher.number:
            J = couplings.data.reshape(model.n, model.n)
            ascend_together_in_time(h, theta, J, limits.max_iter, limits.tol, lambda _: None)
            rows.log_weight[late] = bounds_at(h, model.field, couplings)[0] + model.constant
        else:
            for k, r in enumerate(late.tolist()):
                of_row = np.ascontiguousarray(h[:, k])
                ascend_in_time(
                    of_row,
                    np.ascontiguousarray(theta[:, k]),
                    couplings,
                    limits.max_iter if deadline.left else 1,
                    limits.tol,
                    higher=model.higher,
                )
                rows.log_weight[r], h[:, k] = bound_of_model(model, couplings, of_row)[0], of_row
    rows.up[late] = np.where(states[late] == 0, (np.tanh(h.T) + 1.0) / 2.0, rows.up[late])


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

"""Data whose likelihood has no maximum, since some parameter would be infinite; found beforehand if possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import ModelError
from spectralz.learning.table import Table, label_of

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem

__all__ = ["WAY_OUT", "refuse_unbounded"]

WAY_OUT = 'penalize couplings (penalty="l2", strength=0.01, say), or fix that coupling (fixed=)'
# A cell of a pair's table with fewer rows than this counts as empty, since given moments are rounded.
EMPTY = 1e-6


def refuse_unbounded(problem: Problem, table: Table) -> None:
    """Refuse columns that never change, and pairs without penalty whose coupling would be infinite."""
    _refuse_constant(problem, table)
    if problem.penalty.is_none:
        _refuse_separated(problem, table)


def _refuse_constant(problem: Problem, table: Table) -> None:
    constant = np.flatnonzero((1.0 - np.abs(table.mean)) * table.rows < EMPTY)
    free = [i for i in constant.tolist() if problem.free[i]]
    if free:
        i = free[0]
        value = ("+1" if table.mean[i] > 0 else "-1") if table.values == "pm1" else f"{int(table.mean[i] > 0)}"
        more = _more(len(free) - 1, "column")
        raise ModelError(
            f"{label_of(table.names, i)} is {value} in all {table.rows:g} rows{more}, so its field would be infinite; "
            "leave it out, or fix its field (fixed=)"
        )


def _refuse_separated(problem: Problem, table: Table) -> None:
    free = problem.free
    edges = problem.edges
    i, j = edges.T
    is_free = free[problem.n :] & free[i] & free[j]
    pair = problem.moments[problem.n :]
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    cells = np.array([(1 + a * table.mean[i] + b * table.mean[j] + a * b * pair) / 4 for a, b in signs])
    empty = (cells * table.rows < EMPTY) & is_free
    if not empty.any():
        return
    bad = np.flatnonzero(empty.any(axis=0))
    twins = np.flatnonzero(empty.sum(axis=0) == 2)
    k = int((twins if len(twins) else bad)[0])
    first, second = label_of(table.names, int(i[k])), label_of(table.names, int(j[k]))
    more = _more(len(bad) - 1, "pair")
    if len(twins):
        how = "equal" if pair[k] > 0 else "opposite"
        raise ModelError(
            f"{first} and {second} are {how} in all {table.rows:g} rows{more}, so their coupling would be infinite; "
            f"leave one out, or {WAY_OUT}"
        )
    a, b = signs[int(np.flatnonzero(empty[:, k])[0])]
    shown = (f"{a:+d}", f"{b:+d}") if table.values == "pm1" else (f"{(a + 1) // 2}", f"{(b + 1) // 2}")
    raise ModelError(
        f"no row has {shown[0]} in {first} together with {shown[1]} in {second}{more}, so their coupling would be "
        f"infinite; {WAY_OUT}"
    )


def _more(count: int, what: str) -> str:
    return "" if count == 0 else f" (and {count} more such {what}{'' if count == 1 else 's'})"

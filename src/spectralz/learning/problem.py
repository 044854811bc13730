"""The estimation problem: fields and couplings of a graph, some of them given, with a penalty on couplings.

Parameters are in one vector: the n fields theta, then the weights J of the edges, each counted once. Their
sufficient statistics are x_i and x_i x_j, so that the mean log-likelihood per row is ``<parameters, moments> - log Z``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.learning.graphs import fixed_values
from spectralz.model import FloatArray, IntArray, Ising
from spectralz.model.coupling.entries import symmetric, with_kept_zeros

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from spectralz.learning.table import Table
    from spectralz.model.names import Names
    from spectralz.model.values import Values


WAY_OUT = 'penalize couplings (penalty="l2", strength=0.01, say), or fix that coupling (fixed=)'
# A cell of a pair's table with fewer rows than this counts as empty, since given moments are rounded; and so does a
# smaller share of all rows than rounding leaves.
EMPTY, EMPTY_SHARE = 1e-6, 1e-13


@dataclass(frozen=True)
class Penalty:
    """A term added to the mean negative log-likelihood per row: ``l1 sum |J| + l2 / 2 sum J^2``, couplings only."""

    l1: float = 0.0
    l2: float = 0.0

    @property
    def is_none(self) -> bool:
        """Whether nothing is penalized."""
        return self.l1 == 0.0 and self.l2 == 0.0


@dataclass(frozen=True)
class Problem:
    """A graph and the moments to be matched.

    Attributes
    ----------
    n, edges
        Number of variables, and the pairs that may be coupled (m x 2, i < j, in order).
    moments
        E[x_i], then E[x_i x_j] of the edges, of the data; with missing cells, of the rows that have them.
    free
        Whether each of the n + m parameters is to be estimated.
    given
        The values of the given parameters; zero elsewhere.
    penalty
        The penalty on the couplings.
    names, values
        The names of the variables, and the values that they have in the data.
    """

    n: int
    edges: IntArray
    moments: FloatArray
    free: NDArray[np.bool_]
    given: FloatArray
    penalty: Penalty
    names: Names = None
    values: Values = "pm1"

    @property
    def size(self) -> int:
        """Number of parameters, including the given ones."""
        return self.n + len(self.edges)

    @property
    def is_complete(self) -> bool:
        """Whether all pairs are edges."""
        return len(self.edges) == self.n * (self.n - 1) // 2

    @property
    def ridge(self) -> FloatArray:
        """What the penalty adds to the diagonal of the Hessian."""
        return np.where(np.arange(self.size) < self.n, 0.0, self.penalty.l2)

    def start(self) -> FloatArray:
        """Return first parameters: independent variables with the means of the data, and the given parameters."""
        fields = np.arctanh(np.clip(self.moments[: self.n], -1.0 + 1e-9, 1.0 - 1e-9))
        start = self.given.copy()
        start[: self.n] = np.where(self.free[: self.n], fields, start[: self.n])
        return start

    def keys(self) -> tuple[tuple[Hashable, ...], ...]:
        """Return the names of every parameter: one for a field, two for a coupling."""
        names = range(self.n) if self.names is None else self.names
        return (*((name,) for name in names), *((names[i], names[j]) for i, j in self.edges.tolist()))

    def label(self, k: int) -> str:
        """Return what parameter k is, in words."""
        names = range(self.n) if self.names is None else self.names
        if k < self.n:
            return f"the field of {names[k]!r}"
        i, j = self.edges[k - self.n].tolist()
        return f"the coupling of {names[i]!r} and {names[j]!r}"

    def model(self, parameters: FloatArray, *, keep_zeros: bool = True) -> Ising:
        """Return the model with these parameters."""
        J = parameters[self.n :]
        if keep_zeros:
            J = with_kept_zeros(J)
        A = symmetric(self.n, self.edges, J / 2.0)
        coupling = A.toarray() if self.is_complete and self.n >= 3 else A
        return Ising(parameters[: self.n], coupling, names=self.names)._changed(values=self.values)


def problem_of(table: Table, edges: IntArray, fixed: Any, penalty: Penalty) -> Problem:
    """Return the estimation problem of a table on a graph."""
    places, given = fixed_values(fixed, table.n, edges, table.names)
    free, value = np.ones(table.n + len(edges), dtype=bool), np.zeros(table.n + len(edges))
    free[places], value[places] = False, given
    # A coupling that is fixed at zero is not an edge.
    kept = np.flatnonzero(free[table.n :] | (value[table.n :] != 0.0))
    all_kept = np.concatenate([np.arange(table.n), table.n + kept])
    edges = edges[kept]
    moments = table.moments(edges)
    return Problem(table.n, edges, moments, free[all_kept], value[all_kept], penalty, table.names, table.values)


def refuse_unbounded(problem: Problem, table: Table) -> None:
    """Refuse columns that never change, and pairs without penalty whose coupling would be infinite."""
    _refuse_constant(problem, table)
    if problem.penalty.is_none and table.known is None:
        _refuse_separated(problem, table)
    elif problem.penalty.is_none:
        _refuse_never_together(problem, table)


def _refuse_constant(problem: Problem, table: Table) -> None:
    is_constant = _is_empty(1.0 - np.abs(table.mean), table) & problem.free[: table.n]
    for i in np.flatnonzero(is_constant)[:1].tolist():
        value = table.value_of(1 if table.mean[i] > 0 else -1)
        more = _more(int(is_constant.sum()) - 1, "column")
        rows = f"{table.row_count} rows" if table.is_complete else "rows that have it"
        raise ModelError(
            f"{table.label(i)} is {value} in all {rows}{more}, so its field would be infinite; "
            "leave it out, or fix its field (fixed=)"
        )


def _refuse_separated(problem: Problem, table: Table) -> None:
    free = problem.free
    i, j = problem.edges.T
    is_free = free[problem.n :] & free[i] & free[j]
    pair = problem.moments[problem.n :]
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    cells = np.array([(1 + a * table.mean[i] + b * table.mean[j] + a * b * pair) / 4 for a, b in signs])
    empty = _is_empty(cells, table) & is_free
    if not empty.any():
        return
    bad = np.flatnonzero(empty.any(axis=0))
    twins = np.flatnonzero(empty.sum(axis=0) == 2)
    k = int((twins if len(twins) else bad)[0])
    first, second = table.label(int(i[k])), table.label(int(j[k]))
    more = _more(len(bad) - 1, "pair")
    if len(twins):
        how = "equal" if pair[k] > 0 else "opposite"
        raise ModelError(
            f"{first} and {second} are {how} in all {table.row_count} rows{more}, so their coupling would be infinite; "
            f"leave one out, or {WAY_OUT}"
        )
    a, b = signs[int(np.flatnonzero(empty[:, k])[0])]
    raise ModelError(
        f"no row has {table.value_of(a)} in {first} together with {table.value_of(b)} in {second}{more}, so their "
        f"coupling would be infinite; {WAY_OUT}"
    )


def _refuse_never_together(problem: Problem, table: Table) -> None:
    """Refuse pairs of which no row has both values; an empty cell of a pair may be filled by rows that lack one."""
    i, j = problem.edges.T
    bad = np.flatnonzero((table.known[i, j] == 0.0) & problem.free[problem.n :])  # type: ignore[index]
    for k in bad[:1].tolist():
        first, second = table.label(int(i[k])), table.label(int(j[k]))
        raise ModelError(
            f"no row has values of both {first} and {second}{_more(len(bad) - 1, 'pair')}, so the data do not "
            f"determine their coupling; {WAY_OUT}"
        )


def _is_empty(share: FloatArray, table: Table) -> NDArray[np.bool_]:
    """Say which shares of all rows are none; weights may be in any unit, so that rows count once at least."""
    return np.asarray(share < max(EMPTY / max(table.rows, len(table.weight)), EMPTY_SHARE))


def _more(count: int, what: str) -> str:
    return "" if count == 0 else f" (and {count} more such {what}{'' if count == 1 else 's'})"

"""What is fitted: the graph, values that are given, the penalty, and parameters that would be infinite."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.options import is_number
from spectralz.errors import ModelError, OptionError, shown
from spectralz.model import FloatArray, IntArray, Ising
from spectralz.model.checks import checked_edges
from spectralz.model.columns import column_names, places_of_labels
from spectralz.model.coupling.entries import symmetric, with_kept_zeros
from spectralz.model.names import Names, index_of, places_of
from spectralz.parts.pairs import all_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.learning.table import Table
    from spectralz.model.values import Values


# The largest size of a given parameter: squares of larger ones would overflow.
LARGEST_FIXED = 1e100


def edges_of(graph: Any, n: int, names: Names) -> IntArray:
    """Return pairs of variables, i < j and in order, from any description of a graph.

    Parameters
    ----------
    graph
        None for all pairs; a list of pairs, by names or by numbers; a networkx graph; or an Ising model, for its
        coupled pairs.
    n, names
        Number and names of the variables.
    """
    if graph is None:
        return all_pairs(n)
    index = _finder(n, names)
    if isinstance(graph, Ising):
        if graph.n != n:
            raise ModelError(f"graph is a model of {graph.n} spins and the data have {n} columns; they must agree")
        pairs: Any = graph.edges()[0]
    elif hasattr(graph, "edges") and hasattr(graph, "nodes"):
        pairs = [(index(u), index(v)) for u, v in graph.edges() if u != v]
    elif isinstance(graph, np.ndarray):
        pairs = graph
    else:
        pairs = _listed(graph, index)
    edges = np.sort(checked_edges(pairs, n), axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def pairs_by_labels(graph: Ising, labels: Sequence[Hashable]) -> IntArray:
    """Return the coupled pairs of a model as pairs of columns, which are its spins of the same names."""
    if graph.n != len(labels):
        raise ModelError(
            f"graph is a model of {graph.n} spins and the data have {len(labels)} columns; they must agree"
        )
    places = places_of_labels(labels, column_names(graph), "graph=model.edges()[0]")
    return np.asarray(np.argsort(places)[graph.edges()[0]])


def _listed(graph: Any, index: Callable[[Any], int]) -> list[tuple[int, int]]:
    forms = "it must be None, 'chosen', a list of pairs, a networkx graph or a model"
    if isinstance(graph, str):
        raise OptionError(f"graph is {graph!r}; {forms}")
    try:
        pairs = [tuple(pair) for pair in graph]
    except TypeError:
        raise OptionError(f"graph is {shown(graph)}; {forms}") from None
    if any(len(pair) != 2 for pair in pairs):
        raise OptionError("graph is a list of pairs (i, j), by names or numbers of columns; one entry is not a pair")
    return [(index(i), index(j)) for i, j in pairs]


def fixed_values(fixed: Any, n: int, edges: IntArray, names: Names) -> tuple[IntArray, FloatArray]:
    """Return the positions of given parameters (fields first, then edges) and their values.

    Fixed pairs that are not edges are refused, unless their value is zero: they are not coupled anyway.
    """
    if fixed is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    if not isinstance(fixed, Mapping):
        raise OptionError(f"fixed is {shown(fixed)}; give a mapping like {{('a', 'b'): 0.5, 'c': 0.0}}")
    index = _finder(n, names)
    place = {tuple(edge): n + k for k, edge in enumerate(edges.tolist())}
    given: dict[int, float] = {}
    for key, value in fixed.items():
        if not (is_number(value) or isinstance(value, bool | np.bool_)) or value != value or abs(value) == np.inf:
            raise OptionError(f"fixed sets {key!r} to {shown(value)}; it must be a finite number")
        if abs(value) > LARGEST_FIXED:
            raise OptionError(
                f"fixed sets {key!r} to {shown(value)}; its size may be at most {LARGEST_FIXED:g}, and from 40 on a "
                "parameter is as good as infinite: give a smaller number, or leave the column out"
            )
        if isinstance(key, tuple) and len(key) == 2 and (names is None or key not in names):
            i, j = sorted((index(key[0]), index(key[1])))
            if (i, j) in place:
                given[place[i, j]] = float(value)
            elif value != 0.0:
                raise OptionError(f"fixed sets the coupling of {key!r}, which is not an edge of the graph; add it")
        else:
            given[index(key)] = float(value)
    return np.array(list(given), dtype=np.int64), np.array(list(given.values()))


def _finder(n: int, names: Names) -> Callable[[Any], int]:
    """Return a function that finds a column by its name or number."""
    places = places_of(names)
    return lambda name: index_of(name, n, *places)


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

"""Which pairs are coupled, and which parameters are given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from spectralz._support.options import is_number
from spectralz.errors import ModelError, OptionError, shown
from spectralz.model import FloatArray, IntArray, Ising
from spectralz.model.checks import checked_edges
from spectralz.model.columns import column_names, places_of_labels
from spectralz.model.names import Names, index_of, places_of
from spectralz.parts.pairs import all_pairs

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

"""Graphs of networkx: couplings on edges, fields on nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import ModelError
from spectralz.io.labels import refuse_constraints, symmetric
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Hashable

DEFAULT_FIELD = "field"


def from_networkx(
    G: Any, weight: Hashable | None = "weight", field: Hashable | None = DEFAULT_FIELD, beta: float = 1.0
) -> Ising:
    """Return the model of a ``networkx.Graph``, whose nodes are spins, at inverse temperature ``beta``.

    ``log-weight(x) = beta (offset + sum_edges J_ij x_i x_j + sum_nodes h_i x_i)``: an edge counts once, and a positive
    weight favors equal spins. J is the edge's attribute ``weight``, h the node's attribute ``field``, and offset the
    graph's own attribute of that name, 0 if there is none. Names are the nodes.

    Parameters
    ----------
    G
        A Graph or a MultiGraph; parallel edges add up. A loop adds its weight to the offset, since x_i x_i = 1.
        Directed graphs are refused.
    weight
        The attribute that every edge must have; None for J = 1 on all edges.
    field
        The attribute with the field; nodes without it have no field. None for no field at all.
    beta
        Inverse temperature.

    Returns
    -------
    Ising
        The model, with the nodes as names.

    Raises
    ------
    ModelError
        If the graph is directed, if an edge has no attribute ``weight``, or if a number is not finite.

    See Also
    --------
    Ising.to_networkx : the reverse.

    Examples
    --------
    >>> import networkx as nx, spectralz as sz
    >>> G = nx.Graph()
    >>> G.add_edge("a", "b", weight=2.0)
    >>> G.add_node("a", field=0.5)
    >>> float(sz.from_networkx(G, beta=0.1).log_weight([+1, -1]))
    -0.15...
    """
    if not hasattr(G, "is_directed") or not hasattr(G, "nodes"):
        raise ModelError(f"G is a {type(G).__name__}; it must be a networkx Graph")
    if G.is_directed():
        raise ModelError("G is directed, and a coupling has no direction; give G.to_undirected()")
    names = list(G.nodes)
    place = {name: k for k, name in enumerate(names)}
    edges = [(place[u], place[v], _weight(u, v, data, weight)) for u, v, data in G.edges(data=True)]
    loops = [J for i, j, J in edges if i == j]
    others = np.array([edge for edge in edges if edge[0] != edge[1]], dtype=np.float64).reshape(-1, 3)
    offset = math.fsum([_number(G.graph.get("offset", 0.0), "G.graph['offset']"), *loops])
    coupling = symmetric(len(names), others[:, :2].astype(np.int64), others[:, 2]) / 2.0
    return Ising(_fields(G, names, field), coupling, offset, names).scaled(beta)


def to_networkx(model: Ising) -> Any:
    """Return a ``networkx.Graph`` with J on its edges and the field on its nodes; see Ising.to_networkx."""
    networkx = from_extra("networkx", "networkx", "to_networkx")
    refuse_constraints(model, "a graph")
    names = list(range(model.n)) if model.names is None else list(model.names)
    G = networkx.Graph(offset=model.constant)
    for name, theta in zip(names, model.field.tolist(), strict=True):
        G.add_node(name, field=theta)
    pairs, J = model.edges()
    G.add_weighted_edges_from(
        (names[i], names[j], value) for (i, j), value in zip(pairs.tolist(), J.tolist(), strict=True)
    )
    return G


def _weight(u: Any, v: Any, data: Any, weight: Hashable | None) -> float:
    if weight is None:
        return 1.0
    if weight not in data:
        raise ModelError(
            f"edge {(u, v)} has no attribute {weight!r}; name the attribute that holds J with weight=, "
            "or give weight=None for J = 1 on all edges"
        )
    return _number(data[weight], f"{weight!r} of edge {(u, v)}")


def _fields(G: Any, names: list[Any], field: Hashable | None) -> Any:
    if field is None:
        return np.zeros(len(names))
    given = dict(G.nodes(data=field))
    if names and field != DEFAULT_FIELD and all(value is None for value in given.values()):
        raise ModelError(f"no node has the attribute {field!r}; name the one that holds the field, or give field=None")
    values = [0.0 if given[name] is None else _number(given[name], f"{field!r} of node {name!r}") for name in names]
    return np.array(values, dtype=np.float64)


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise ModelError(f"{what} is {value!r}; it must be a finite number")
    return number

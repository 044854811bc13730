"""Convert models from and to objects of other libraries: dimod, networkx, pandas; and from QUBOs and polynomials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from spectralz._support.extras import from_extra
from spectralz.errors import ModelError, shown
from spectralz.io.labels import energy_of_entries, energy_pairs, in_order, refuse_constraints, symmetric
from spectralz.model import Ising, Polynomial
from spectralz.model.checks import as_float_array, checked_edges, refuse_non_finite
from spectralz.model.polynomial import checked_weights
from spectralz.model.values import LOW

if TYPE_CHECKING:
    from collections.abc import Hashable

    from spectralz.model import Model


def from_dimod(bqm: Any, beta: float = 1.0) -> Model:
    """Return the model of a ``dimod.BinaryQuadraticModel`` or ``BinaryPolynomial`` at inverse temperature ``beta``.

    ``E(v) = offset + sum_i linear_i v_i + sum_{i<j} quadratic_ij v_i v_j`` and P(v) = exp(-beta E(v)) / Z, with v in
    {-1, +1} (SPIN) or {0, 1} (BINARY; then spin +1 is 1: ``v = (1 + x) / 2``). Offset and names are kept, so that
    log-weights are ``-beta E`` for either kind of variables. Of a BinaryPolynomial, E has terms of any number of
    variables, and the model is a :class:`Polynomial`; otherwise it is an :class:`Ising`.

    Parameters
    ----------
    bqm
        A ``dimod.BinaryQuadraticModel`` or ``dimod.BinaryPolynomial``, of SPIN or BINARY variables.
    beta
        Inverse temperature.

    Returns
    -------
    Ising or Polynomial
        The model, with the names of the variables.

    Raises
    ------
    ModelError
        If ``bqm`` is something else, or if a number is not finite.

    See Also
    --------
    Ising.to_dimod : the reverse.

    Examples
    --------
    >>> import dimod, spectralz as sz
    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -2.0}, 0.5, "BINARY")
    >>> model = sz.from_dimod(bqm, beta=2.0)
    >>> model.names
    ('a', 'b')
    >>> float(model.log_weight([+1, +1])), -2.0 * float(bqm.energy({"a": 1, "b": 1}))
    (1.0, 1.0)
    """
    vartype = getattr(getattr(bqm, "vartype", None), "name", None)
    if vartype in ("SPIN", "BINARY") and isinstance(bqm, Mapping):
        terms = {tuple(sorted(labels, key=_place)): bias for labels, bias in bqm.items()}
        return from_polynomial(terms, "01" if vartype == "BINARY" else "pm1", beta)
    if vartype not in ("SPIN", "BINARY") or not hasattr(bqm, "to_numpy_vectors"):
        raise ModelError(
            f"bqm is a {type(bqm).__name__}; it must be a dimod.BinaryQuadraticModel, with variables SPIN or BINARY"
        )
    names = list(bqm.variables)
    linear, (i, j, biases), offset = bqm.to_numpy_vectors(variable_order=names)
    pairs = symmetric(len(names), np.column_stack([i, j]), np.asarray(biases, dtype=np.float64))
    fields = np.asarray(linear, dtype=np.float64)
    return energy_pairs(vartype == "BINARY", fields, pairs, float(offset), names).scaled(beta)


def _place(label: Hashable) -> tuple[str, str]:
    """Order the labels of a term: dimod keeps them as a set, whose order differs from run to run."""
    return type(label).__name__, str(label)


def to_dimod(model: Ising) -> Any:
    """Return the ``dimod.BinaryQuadraticModel`` whose energy is minus the model's log-weight; see Ising.to_dimod."""
    dimod = from_extra("dimod", "dimod", "to_dimod")
    refuse_constraints(model, "a binary quadratic model")
    pairs, J = model.edges()
    names = list(range(model.n)) if model.names is None else list(model.names)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        -model.field, (pairs[:, 0], pairs[:, 1], -J), -model.constant, "SPIN", variable_order=names
    )


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
    return Ising(_fields_of_nodes(G, names, field), coupling, offset, names).scaled(beta)


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


def _fields_of_nodes(G: Any, names: list[Any], field: Hashable | None) -> Any:
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


def from_pandas(
    frame: Any,
    source: Hashable = "source",
    target: Hashable = "target",
    weight: Hashable = "weight",
    field: Mapping[Any, float] | Any = None,
    beta: float = 1.0,
) -> Ising:
    """Return the model of an edge list, a ``pandas.DataFrame`` with one row per edge, at inverse temperature ``beta``.

    ``log-weight(x) = beta (sum_edges J_ij x_i x_j + sum_spins h_i x_i)``: an edge counts once, and a positive weight
    favors equal spins. Names are the values in the columns: whole numbers in their order, others as they come.

    Parameters
    ----------
    frame
        Each pair once, in either order. A pair that is listed twice is refused, since a symmetric list would count
        every pair twice. A row without a target gives the field of its source.
    source, target, weight
        The columns with the two spins and with J.
    field
        h: a Series or a mapping from names to numbers. Spins without edges are added to the model.
    beta
        Inverse temperature.

    Returns
    -------
    Ising
        The model, with the labels in the columns as names.

    Raises
    ------
    ModelError
        If a column is missing, if a pair is listed twice, or if a number is not finite.

    See Also
    --------
    read : edge lists in files.

    Examples
    --------
    >>> import pandas as pd, spectralz as sz
    >>> frame = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, -2.0]})
    >>> model = sz.from_pandas(frame, field={"a": 0.5})
    >>> model.names, model.field.tolist(), model.edges()[1].tolist()
    (('a', 'b', 'c'), [0.5, 0.0, 0.0], [1.0, -2.0])
    """
    if not hasattr(frame, "columns") or not hasattr(frame, "itertuples"):
        raise ModelError(f"frame is a {type(frame).__name__}; it must be a pandas DataFrame")
    for column in (source, target, weight):
        if column not in frame.columns:
            known = ", ".join(repr(name) for name in frame.columns)
            raise ModelError(f"the frame has no column {column!r}; it has {known}: choose with source, target, weight")
    if frame[source].isna().any():
        raise ModelError(f"row {int(np.argmax(frame[source].isna()))} has no {source!r}; every edge needs one")
    values = as_float_array(frame[weight].tolist(), f"column {weight!r}")
    refuse_non_finite(values, f"column {weight!r}")
    alone = frame[target].isna().to_numpy()
    fields = _fields_of_spins(field, frame[source][alone].tolist(), values[alone])
    first, second = _labels(frame[source][~alone]), _labels(frame[target][~alone])
    names = in_order([label for pair in zip(first, second, strict=True) for label in pair] + list(fields))
    place = {name: k for k, name in enumerate(names)}
    pairs = np.array([[place[u] for u in first], [place[v] for v in second]], dtype=np.int64).T
    checked_edges(pairs, len(names))
    theta = np.array([fields.get(name, 0.0) for name in names], dtype=np.float64)
    return Ising(theta, symmetric(len(names), pairs, values[~alone]) / 2.0, names=names).scaled(beta)


def _labels(column: Any) -> list[Any]:
    """Return a column's values; whole numbers that a missing target turned into floats become whole again."""
    values = column.tolist()
    if any(isinstance(value, float) for value in values) and all(float(value).is_integer() for value in values):
        return [int(value) for value in values]
    return list(values)


def _fields_of_spins(field: Any, alone: list[Any], values: Any) -> dict[Any, float]:
    """Return the field of every spin that has one, from the rows without target and from the argument."""
    fields: dict[Any, float] = {}
    if field is not None and not hasattr(field, "items"):
        raise ModelError(f"field is {field!r}; give a Series or a mapping from names to numbers")
    for name, value in [*zip(alone, values.tolist(), strict=True), *(() if field is None else field.items())]:
        if name in fields:
            raise ModelError(f"spin {name!r} has two fields; give one")
        fields[name] = float(value)
    refuse_non_finite(as_float_array(list(fields.values()), "field"), "field")
    return fields


def from_polynomial(terms: Mapping[Any, float], values: Literal["01", "pm1"] = "01", beta: float = 1.0) -> Polynomial:
    """Return the model of an energy that is a polynomial, at inverse temperature ``beta``.

    ``E(v) = sum over terms of c times the product of its variables``, and P(v) = exp(-beta E(v)) / Z. Variables are 0
    and 1, or -1 and +1. Of 0 and 1, spin +1 is 1: ``v = (1 + x) / 2``, and evidence may be written as 0 and 1.

    Parameters
    ----------
    terms
        A dictionary as ``{("a", "b", "c"): 2.0, ("a",): -1.0, (): 0.5}``; the empty tuple is a constant. Labels become
        names: whole numbers in their order, others as they come. Equal products are added up; since v v = v, a label
        counts once in a term of 0 and 1, and twice the same spin cancels.
    values
        ``"01"`` or ``"pm1"``.
    beta
        Inverse temperature.

    Returns
    -------
    Polynomial
        The model, with the labels as names.

    Raises
    ------
    ModelError
        If ``terms`` is not such a dictionary, or if a number is not finite.

    See Also
    --------
    Polynomial : from log-weights instead of an energy.
    from_qubo : energies of pairs.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.from_polynomial({("a", "b", "c"): 8.0, ("a",): -1.0})
    >>> model.names
    ('a', 'b', 'c')
    >>> model.log_weight([[0, 0, 0], [1, 0, 1], [1, 1, 1]]).tolist()
    [0.0, 1.0, -7.0]
    >>> sz.from_polynomial({("a", "b", "c"): 8.0}, values="pm1", beta=0.25).terms
    {(0, 1, 2): -2.0}
    """
    if not isinstance(values, str) or values not in LOW:
        raise ModelError(f"values is {shown(values)}; variables are '01', 0 and 1, or 'pm1', -1 and +1")
    if not isinstance(terms, Mapping):
        raise ModelError(f"terms is a {type(terms).__name__}; give a dictionary like {{('a', 'b', 'c'): 2.0}}")
    for key in terms:
        if not isinstance(key, tuple):
            raise ModelError(f"terms has the key {shown(key)}; keys are tuples of labels, such as ('a', 'b', 'c')")
    names = in_order(label for key in terms for label in key)
    minus = dict(zip(terms, (0.0 - checked_weights(terms)).tolist(), strict=True))
    model = Polynomial._from_binary(minus, names) if values == "01" else Polynomial(minus, names=names)
    return model.scaled(beta)


def from_qubo(Q: Any, beta: float = 1.0) -> Ising:
    """Return the model of a QUBO at inverse temperature ``beta``.

    ``E(v) = v' Q v = sum_ij Q_ij v_i v_j`` with v in {0, 1}^n, and P(v) = exp(-beta E(v)) / Z. Every entry counts:
    the diagonal is linear, since v_i v_i = v_i, and Q_ij and Q_ji add up. So an upper triangular matrix and the
    symmetric one with half of its entries off the diagonal are the same QUBO. Spin +1 is 1: ``v = (1 + x) / 2``.

    Parameters
    ----------
    Q
        A dictionary from pairs of labels to numbers, as ``{("a", "a"): -1.0, ("a", "b"): 2.0}``; a matrix; or any
        scipy.sparse matrix. Labels of a dictionary become names: whole numbers in their order, others as they come.
    beta
        Inverse temperature.

    Returns
    -------
    Ising
        The model, with the labels of a dictionary as names.

    Raises
    ------
    ModelError
        If ``Q`` is not such a dictionary or a square matrix, or if a number is not finite.

    See Also
    --------
    from_polynomial : energies with products of three and more variables.
    read : QUBOs in files.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.from_qubo({("a", "a"): -1.0, ("a", "b"): 2.0})
    >>> [float(w) for w in model.log_weight([[-1, -1], [+1, -1], [+1, +1]])]  # of v = 00, 10, 11
    [0.0, 1.0, -1.0]
    >>> model == sz.from_qubo([[-1.0, 2.0], [0.0, 0.0]]).named(["a", "b"])
    True
    """
    return (_of_dict(Q) if isinstance(Q, Mapping) else _of_matrix(Q)).scaled(beta)


def _of_dict(Q: Mapping[Any, Any]) -> Ising:
    for key in Q:
        if not isinstance(key, tuple) or len(key) != 2:
            raise ModelError(f"Q has the key {key!r}; keys are pairs of labels, such as ('a', 'b')")
    names = in_order(label for pair in Q for label in pair)
    place = {name: k for k, name in enumerate(names)}
    pairs = np.array([(place[u], place[v]) for u, v in Q], dtype=np.int64).reshape(-1, 2)
    values = as_float_array(list(Q.values()), "Q's values")
    refuse_non_finite(values, "Q's values")
    return energy_of_entries(True, len(names), pairs, values, names)


def _of_matrix(Q: Any) -> Ising:
    matrix: Any = sp.csr_array(Q, dtype=np.float64) if sp.issparse(Q) else as_float_array(Q, "Q")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"Q has shape {matrix.shape}; it must be a square matrix, or a dictionary of pairs")
    refuse_non_finite(*((matrix.data, "Q's entries") if sp.issparse(matrix) else (matrix, "Q")))
    linear = np.array(matrix.diagonal())
    both = matrix + matrix.T
    # What rounding took from a sum, if the larger number is subtracted first; each pair is there in both ways.
    lost = float(abs((both - matrix) - matrix.T).sum())
    if sp.issparse(both):
        both = sp.csr_array(both - sp.diags_array(both.diagonal()))
    else:
        np.fill_diagonal(both, 0.0)
    return energy_pairs(True, linear, both, 0.0, None)._having_lost(1.01 * lost)

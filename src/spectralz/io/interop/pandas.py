"""Edge lists in a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.io.labels import in_order, symmetric
from spectralz.model import Ising
from spectralz.model.checks import as_float_array, checked_edges, refuse_non_finite

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


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
    fields = _fields(field, frame[source][alone].tolist(), values[alone])
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


def _fields(field: Any, alone: list[Any], values: Any) -> dict[Any, float]:
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

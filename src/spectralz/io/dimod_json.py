"""The JSON of dimod's binary quadratic models: ``json.dumps(bqm.to_serializable())``, read without dimod.

Versions 3 and 2 of its schema are read, without bytes; dimod itself still reads both. With v the spin (``SPIN``) or
0 or 1 (``BINARY``), the log-weight of a state is -beta E,

    E(v) = offset + sum_u linear_u v_u + sum_uw quadratic_uw v_u v_w,          each pair counted once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.io import json_values
from spectralz.io.files import PathName, PathOrSource, Source, opened, save
from spectralz.io.labels import energy_pairs, symmetric, to_plain
from spectralz.io.polynomial_json import is_polynomial, polynomial_of, write_polynomial
from spectralz.model import Model, Polynomial

if TYPE_CHECKING:
    from spectralz.model import IntArray, Ising

SCHEMA = "3.0.0"


def read_json(path: PathOrSource) -> Model:
    """Read a binary quadratic model of dimod, or a polynomial."""
    source = opened(path)
    document = json_values.parsed(source)
    if is_polynomial(document):
        return polynomial_of(source, document)
    return _quadratic(source, _checked(source, document))


def _quadratic(source: Source, document: dict[str, Any]) -> Ising:
    labels = json_values.names(source, document, "variable_labels")
    linear = json_values.numbers(source, document, "linear_biases")
    quadratic = json_values.numbers(source, document, "quadratic_biases")
    if len(linear) != len(labels):
        source.fail(f"there are {len(labels)} variable_labels and {len(linear)} linear_biases; the numbers must agree")
    head, tail = (_indices(source, document, f"quadratic_{end}", len(labels)) for end in ("head", "tail"))
    if not len(head) == len(tail) == len(quadratic):
        source.fail(
            f"there are {len(head)} quadratic_head, {len(tail)} quadratic_tail and {len(quadratic)} quadratic_biases; "
            "the numbers must agree"
        )
    for u in head[head == tail][:1].tolist():
        source.fail(f"the variable {labels[u]!r} has a quadratic bias with itself; make it a linear bias")
    constant = json_values.number(source, document, "offset")
    kind = document.get("variable_type")
    if kind not in ("SPIN", "BINARY"):
        source.fail(f"variable_type is {kind!r}; it must be 'SPIN' or 'BINARY'")
    with source.making_a_model():
        names = None if labels == list(range(len(labels))) else labels
        pairs = symmetric(len(labels), np.column_stack([head, tail]), quadratic)
        return energy_pairs(kind == "BINARY", linear, pairs, constant, names)


def _checked(source: Source, document: Any) -> dict[str, Any]:
    version = document.get("version") if isinstance(document, dict) else None
    schema = version.get("bqm_schema") if isinstance(version, dict) else None
    if not isinstance(schema, str):
        source.fail(
            "this JSON is not a binary quadratic model of dimod; "
            "write one with json.dump(bqm.to_serializable(), file) or sz.write(model, path)"
        )
    if schema.split(".")[0] not in ("2", "3") or document.get("use_bytes"):
        source.fail(
            f"the model has version {schema} of dimod's schema"
            + (", with bytes" if document.get("use_bytes") else "")
            + "; versions 2 and 3 without bytes can be read: write it again with bqm.to_serializable()"
        )
    return dict(document)


def _indices(source: Source, document: dict[str, Any], key: str, n: int) -> IntArray:
    values = document.get(key)
    if not isinstance(values, list) or not set(map(type, values)) <= {int}:
        source.fail(f"{key} must hold whole numbers, the places of variables in variable_labels")
    if values and not 0 <= min(values) <= max(values) < n:
        source.fail(f"{key} holds a place outside 0 to {n - 1}, the places of variables in variable_labels")
    return np.array(values, dtype=np.int64)


def write_json(model: Model, path: PathName) -> None:
    """Write the energy of ``model``, minus its log-weight, so that dimod can read it; whole or not at all.

    A Polynomial, or a model with constraints, is written in its own way, see :mod:`spectralz.io.polynomial_json`.
    ``dimod.BinaryQuadraticModel.from_serializable(json.load(file))`` is then the model, with its names.

    Raises
    ------
    ModelError
        If a name is neither text nor a number nor a tuple of these.
    """
    if isinstance(model, Polynomial) or model.constraints:
        write_polynomial(model, path)
        return
    pairs, J = model.edges()
    document = {
        "type": "BinaryQuadraticModel",
        "version": {"bqm_schema": SCHEMA},
        "use_bytes": False,
        "index_type": "int64",
        "bias_type": "float64",
        "num_variables": model.n,
        "num_interactions": len(pairs),
        "variable_labels": list(range(model.n)) if model.names is None else [to_plain(name) for name in model.names],
        "variable_type": "SPIN",
        "offset": 0.0 - model.constant,
        "info": {},
        "linear_biases": (0.0 - model.field).tolist(),
        "quadratic_biases": (0.0 - J).tolist(),
        "quadratic_head": pairs[:, 0].tolist(),
        "quadratic_tail": pairs[:, 1].tolist(),
    }
    save(path, (json.dumps(document, allow_nan=False) + "\n").encode("ascii"))


def looks_like_json(source: Source) -> bool:
    """Say whether the text begins like a JSON object."""
    return source.text[:1000].lstrip().startswith("{")

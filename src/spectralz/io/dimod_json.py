"""The JSON of dimod's binary quadratic models: ``json.dumps(bqm.to_serializable())``, read without dimod.

Versions 3 and 2 of its schema are read, without bytes; dimod itself still reads both. With v the spin (``SPIN``) or
0 or 1 (``BINARY``), the log-weight of a state is -beta E,

    E(v) = offset + sum_u linear_u v_u + sum_uw quadratic_uw v_u v_w,          each pair counted once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.io.files import PathName, PathOrSource, Source, opened, save
from spectralz.io.labels import energy_pairs, from_plain, symmetric, to_plain

if TYPE_CHECKING:
    from collections.abc import Hashable

    from spectralz.model import FloatArray, IntArray, Ising

SCHEMA = "3.0.0"


def read_json(path: PathOrSource) -> Ising:
    """Read a binary quadratic model of dimod."""
    source = opened(path)
    document = _document(source)
    labels = _labels(source, document)
    linear = _numbers(source, document, "linear_biases")
    quadratic = _numbers(source, document, "quadratic_biases")
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
    constant = _numbers(source, {"offset": [document.get("offset", 0.0)]}, "offset")[0]
    kind = document.get("variable_type")
    if kind not in ("SPIN", "BINARY"):
        source.fail(f"variable_type is {kind!r}; it must be 'SPIN' or 'BINARY'")
    with source.making_a_model():
        names = None if labels == list(range(len(labels))) else labels
        pairs = symmetric(len(labels), np.column_stack([head, tail]), quadratic)
        return energy_pairs(kind == "BINARY", linear, pairs, float(constant), names)


def _document(source: Source) -> dict[str, Any]:
    try:
        document: Any = json.loads(source.text)
    except json.JSONDecodeError as error:
        source.fail(f"this is not JSON: {error.msg}; is it truncated?", error.lineno)
    except (ValueError, RecursionError):
        source.fail("this is not JSON that can be read: it is nested too deeply or has a number of too many digits")
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


def _labels(source: Source, document: dict[str, Any]) -> list[Hashable]:
    labels = document.get("variable_labels")
    if not isinstance(labels, list):
        source.fail("variable_labels is missing, or not a list")
    try:
        names = [from_plain(label) for label in labels]
    except ValueError as error:
        source.fail(f"in variable_labels, {error}")
    if len(set(names)) < len(names):
        source.fail("variable_labels names a variable twice; every variable needs a name of its own")
    return names


def _numbers(source: Source, document: dict[str, Any], key: str) -> FloatArray:
    values = document.get(key)
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        source.fail(f"{key} must hold numbers")
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        source.fail(f"{key} holds a number that is too large")
    if not np.all(np.isfinite(numbers)):
        source.fail(f"{key} holds {numbers[~np.isfinite(numbers)][0]}; numbers must be finite")
    return numbers


def _indices(source: Source, document: dict[str, Any], key: str, n: int) -> IntArray:
    values = document.get(key)
    if not isinstance(values, list) or not set(map(type, values)) <= {int}:
        source.fail(f"{key} must hold whole numbers, the places of variables in variable_labels")
    if values and not 0 <= min(values) <= max(values) < n:
        source.fail(f"{key} holds a place outside 0 to {n - 1}, the places of variables in variable_labels")
    return np.array(values, dtype=np.int64)


def write_json(model: Ising, path: PathName) -> None:
    """Write the energy of ``model``, minus its log-weight, so that dimod can read it; whole or not at all.

    ``dimod.BinaryQuadraticModel.from_serializable(json.load(file))`` is then the model, with its names.

    Raises
    ------
    ModelError
        If a name is neither text nor a number nor a tuple of these.
    """
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

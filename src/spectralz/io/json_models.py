"""The JSON of models: dimod's binary quadratic models, and polynomials and models with constraints.

dimod writes ``json.dumps(bqm.to_serializable())``, which is read without dimod: versions 3 and 2 of its schema, without
bytes; dimod itself still reads both. With v the spin (``SPIN``) or 0 or 1 (``BINARY``), the log-weight of a state is
-beta E,

    E(v) = offset + sum_u linear_u v_u + sum_uw quadratic_uw v_u v_w,          each pair counted once.

A polynomial, or a model with constraints, is ``Polynomial.to_dict()``, with a type. The log-weight is ``offset + sum
over terms of weight times the product of its spins``, by their positions; ``values`` and ``lost`` are those of the
model. Numbers are kept to the last bit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.io.files import PathName, PathOrSource, Source, opened, save
from spectralz.io.labels import energy_pairs, from_plain, symmetric, to_plain
from spectralz.model import Model, Polynomial
from spectralz.model.constraints import Constraints
from spectralz.model.values import LOW

if TYPE_CHECKING:
    from collections.abc import Hashable

    from spectralz.model import FloatArray, IntArray, Ising

SCHEMA = "3.0.0"


def read_json(path: PathOrSource) -> Model:
    """Read a binary quadratic model of dimod, or a polynomial."""
    source = opened(path)
    document = _parsed(source)
    if _is_polynomial(document):
        return _polynomial_of(source, document)
    return _quadratic(source, _checked(source, document))


def _quadratic(source: Source, document: dict[str, Any]) -> Ising:
    labels = _names(source, document, "variable_labels")
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
    constant = _number(source, document, "offset")
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

    A Polynomial, or a model with constraints, is written in its own way, see :mod:`spectralz.io.json_models`.
    ``dimod.BinaryQuadraticModel.from_serializable(json.load(file))`` is then the model, with its names.

    Raises
    ------
    ModelError
        If a name is neither text nor a number nor a tuple of these.
    """
    if isinstance(model, Polynomial) or model.constraints:
        _write_polynomial(model, path)
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


# An Ising with constraints is written like its polynomial.
TYPES = ("Polynomial", "Ising")
# A few bytes may announce any number of spins.
MOST_SPINS_WITHOUT_TERMS = 10**7


def _is_polynomial(document: Any) -> bool:
    """Say whether a JSON document is a polynomial."""
    return isinstance(document, dict) and document.get("type") in TYPES


def _polynomial_of(source: Source, document: dict[str, Any]) -> Model:
    """Return the model of a document."""
    n = _count(source, document)
    weights = _numbers(source, document, "weights").tolist()
    scopes = _scopes(source, document, n)
    if len(scopes) != len(weights):
        source.fail(f"there are {len(scopes)} terms and {len(weights)} weights; the numbers must agree")
    if len(set(scopes)) < len(scopes):
        source.fail("a term is listed more than once; list each once, with the sum of its weights")
    values = document.get("values", "pm1")
    if not isinstance(values, str) or values not in LOW:
        source.fail(f"values is {values!r}; it must be '01' or 'pm1'")
    lost = _numbers(source, {"lost": document.get("lost", [0.0, 0.0])}, "lost").tolist()
    if len(lost) != 2 or min(lost) < 0.0:
        source.fail("lost, what rounding may have changed, must be two numbers from 0 on")
    names = None if document.get("names") is None else _names(source, document, "names")
    with source.making_a_model():
        model = Polynomial(dict(zip(scopes, weights, strict=True)), n, _number(source, document, "offset"))
        constraints = Constraints.from_dict(document.get("constraints", []), n)
        pairwise = model.pairwise.named(names)._changed(values=values, constraints=constraints)._having_lost(*lost)
        whole = Polynomial._of(pairwise, model.higher)
        return whole if document["type"] == "Polynomial" else whole.to_ising()


def _count(source: Source, document: dict[str, Any]) -> int:
    n = document.get("n")
    if type(n) is not int or n < 0:
        source.fail(f"n is {n!r}; it must be the number of spins")
    if n > max(MOST_SPINS_WITHOUT_TERMS, len(source.text)):
        source.fail(f"n is {n:.3g}; up to {MOST_SPINS_WITHOUT_TERMS:.0e} can be read: leave out spins without terms")
    return n


def _scopes(source: Source, document: dict[str, Any], n: int) -> list[tuple[int, ...]]:
    terms = document.get("terms")
    if not isinstance(terms, list) or not all(isinstance(term, list) for term in terms):
        source.fail("terms must be a list of lists, the spins of each term")
    if not all(type(i) is int for term in terms for i in term):
        source.fail("terms must hold whole numbers, the positions of spins")
    if not all(0 <= i < n for term in terms for i in term):
        source.fail(f"terms names a spin outside 0 to {n - 1}")
    return [tuple(term) for term in terms]


def _write_polynomial(model: Model, path: PathName) -> None:
    """Write a polynomial, or a model with constraints, to the last bit, whole or not at all."""
    names: list[Hashable] | None = None if model.names is None else [to_plain(name) for name in model.names]
    whole = model if isinstance(model, Polynomial) else model.to_polynomial()
    more = {"names": names, "values": whole.values, "lost": list(whole.lost)}
    document = {"type": type(model).__name__, **whole.to_dict(), **more}
    save(path, (json.dumps(document, allow_nan=False) + "\n").encode("ascii"))


def _parsed(source: Source) -> Any:
    """Return what a JSON text holds."""
    try:
        return json.loads(source.text)
    except json.JSONDecodeError as error:
        source.fail(f"this is not JSON: {error.msg}; is it truncated?", error.lineno)
    except (ValueError, RecursionError):
        source.fail("this is not JSON that can be read: it is nested too deeply or has a number of too many digits")


def _names(source: Source, document: dict[str, Any], key: str) -> list[Hashable]:
    """Return a list of names, all different."""
    labels = document.get(key)
    if not isinstance(labels, list):
        source.fail(f"{key} is missing, or not a list")
    try:
        found = [from_plain(label) for label in labels]
    except ValueError as error:
        source.fail(f"in {key}, {error}")
    if len(set(found)) < len(found):
        source.fail(f"{key} names a variable twice; every variable needs a name of its own")
    return found


def _numbers(source: Source, document: dict[str, Any], key: str) -> FloatArray:
    """Return a list of finite numbers as an array."""
    values = document.get(key)
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        source.fail(f"{key} must hold numbers")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        source.fail(f"{key} holds a number that is too large")
    if not np.all(np.isfinite(array)):
        source.fail(f"{key} holds {array[~np.isfinite(array)][0]}; numbers must be finite")
    return array


def _number(source: Source, document: dict[str, Any], key: str) -> float:
    """Return a single finite number, 0 if it is not there."""
    return float(_numbers(source, {key: [document.get(key, 0.0)]}, key)[0])

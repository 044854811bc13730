"""The JSON of a polynomial, or of a model with constraints: ``Polynomial.to_dict()``, with a type.

The log-weight is ``offset + sum over terms of weight times the product of its spins``, by their positions; ``values``
and ``lost`` are those of the model. Numbers are kept to the last bit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from spectralz.io import json_values
from spectralz.io.files import PathName, Source, save
from spectralz.io.labels import to_plain
from spectralz.model import Model, Polynomial
from spectralz.model.constraints import Constraints
from spectralz.model.values import LOW

if TYPE_CHECKING:
    from collections.abc import Hashable

# An Ising with constraints is written like its polynomial.
TYPES = ("Polynomial", "Ising")
# A few bytes may announce any number of spins.
MOST_SPINS_WITHOUT_TERMS = 10**7


def is_polynomial(document: Any) -> bool:
    """Say whether a JSON document is a polynomial."""
    return isinstance(document, dict) and document.get("type") in TYPES


def polynomial_of(source: Source, document: dict[str, Any]) -> Model:
    """Return the model of a document."""
    n = _count(source, document)
    weights = json_values.numbers(source, document, "weights").tolist()
    scopes = _scopes(source, document, n)
    if len(scopes) != len(weights):
        source.fail(f"there are {len(scopes)} terms and {len(weights)} weights; the numbers must agree")
    if len(set(scopes)) < len(scopes):
        source.fail("a term is listed more than once; list each once, with the sum of its weights")
    values = document.get("values", "pm1")
    if not isinstance(values, str) or values not in LOW:
        source.fail(f"values is {values!r}; it must be '01' or 'pm1'")
    lost = json_values.numbers(source, {"lost": document.get("lost", [0.0, 0.0])}, "lost").tolist()
    if len(lost) != 2 or min(lost) < 0.0:
        source.fail("lost, what rounding may have changed, must be two numbers from 0 on")
    names = None if document.get("names") is None else json_values.names(source, document, "names")
    with source.making_a_model():
        model = Polynomial(dict(zip(scopes, weights, strict=True)), n, json_values.number(source, document, "offset"))
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


def write_polynomial(model: Model, path: PathName) -> None:
    """Write a polynomial, or a model with constraints, to the last bit, whole or not at all."""
    names: list[Hashable] | None = None if model.names is None else [to_plain(name) for name in model.names]
    whole = model if isinstance(model, Polynomial) else model.to_polynomial()
    more = {"names": names, "values": whole.values, "lost": list(whole.lost)}
    document = {"type": type(model).__name__, **whole.to_dict(), **more}
    save(path, (json.dumps(document, allow_nan=False) + "\n").encode("ascii"))

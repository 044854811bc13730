"""Values in JSON documents, checked: the document itself, names of spins, numbers and whole numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.io.labels import from_plain

if TYPE_CHECKING:
    from collections.abc import Hashable

    from spectralz.io.files import Source
    from spectralz.model import FloatArray


def parsed(source: Source) -> Any:
    """Return what a JSON text holds."""
    try:
        return json.loads(source.text)
    except json.JSONDecodeError as error:
        source.fail(f"this is not JSON: {error.msg}; is it truncated?", error.lineno)
    except (ValueError, RecursionError):
        source.fail("this is not JSON that can be read: it is nested too deeply or has a number of too many digits")


def names(source: Source, document: dict[str, Any], key: str) -> list[Hashable]:
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


def numbers(source: Source, document: dict[str, Any], key: str) -> FloatArray:
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


def number(source: Source, document: dict[str, Any], key: str) -> float:
    """Return a single finite number, 0 if it is not there."""
    return float(numbers(source, {key: [document.get(key, 0.0)]}, key)[0])

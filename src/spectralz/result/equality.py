"""When two results are equal: if all their values are, except the seconds that they took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

# How long something took is no part of the answer, neither in a result nor in its rows and details; nor is what was
# known at which time, or how more would be computed.
LEFT_OUT = ("seconds", "compile_seconds", "history", "between")


class Compared:
    """Compare results by all their values except ``seconds``; a result that holds an array or a dict has no hash."""

    def __eq__(self, other: object) -> bool:
        return same(self, other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashed, _values(self).values())))


def same(a: Any, b: Any) -> bool:
    """Say whether two values are equal, arrays entry by entry; NaN equals NaN, and seconds do not count.

    Examples
    --------
    >>> nan = float("nan")
    >>> same({"means": np.array([0.5, nan]), "seconds": 1.0}, {"means": np.array([0.5, nan]), "seconds": 2.0})
    True
    >>> same([1, (2, nan)], [1, (2, 3.0)])
    False
    """
    if a is b:
        return True
    if isinstance(a, np.ndarray | np.generic) or isinstance(b, np.ndarray | np.generic):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if isinstance(a, BaseException) or _is_record(a):
        return type(a) is type(b) and same(_values(a), _values(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        names = a.keys() | b.keys()
        return all(name in a and name in b and same(a[name], b[name]) for name in names if name not in LEFT_OUT)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        alike = isinstance(a, tuple) == isinstance(b, tuple) and len(a) == len(b)
        return alike and all(map(same, a, b))
    if hasattr(a, "converged") and hasattr(b, "converged") and a.converged != b.converged:  # statuses
        return False
    return bool(a == b) or bool(a != a and b != b)


def _is_record(value: Any) -> bool:
    """Say whether a value is compared field by field: a result or another dataclass, unless it has its own ``==``."""
    made = None if isinstance(value, type) else getattr(value, "__dataclass_params__", None)
    return isinstance(value, Compared) or (made is not None and bool(made.eq))


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return same(a.tolist(), b.tolist())
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def _hashed(value: Any) -> Any:
    """Return what stands for a value in a hash: NaNs, and errors that say the same, are equal but not the same."""
    if isinstance(value, BaseException):
        return type(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _values(result: Any) -> dict[str, Any]:
    """Return what is compared of a result, of the options of a method, or of an error."""
    if isinstance(result, BaseException):
        return {"args": result.args}
    return {entry.name: getattr(result, entry.name) for entry in fields(result) if entry.name not in LEFT_OUT}

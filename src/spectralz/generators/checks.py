"""What is checked of a model's parameters before any work is done: a value is returned as it should be, or refused."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["checked_choice", "checked_count", "checked_flag", "checked_number", "checked_pairs", "checked_scale"]


def checked_count(value: Any, name: str) -> int:
    """Return a whole number, 0 or more."""
    try:
        count = operator.index(value)
    except TypeError:
        raise OptionError(f"{name} is {value!r}; it must be a whole number") from None
    if count < 0:
        raise OptionError(f"{name} is {count}; it cannot be negative")
    return count


def checked_pairs(n: Any) -> int:
    """Return the number of spins of dimers, which is even."""
    count = checked_count(n, "n")
    if count % 2:
        raise OptionError(f"n is {count}; dimers are pairs, so n must be even")
    return count


def checked_number(value: Any, name: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise OptionError(f"{name} is {value!r}; it must be a number")
    if not math.isfinite(value):
        raise OptionError(f"{name} is {value}; it must be finite")
    return float(value)


def checked_scale(value: Any, name: str) -> float:
    """Return a finite number, 0 or more."""
    number = checked_number(value, name)
    if number < 0.0:
        raise OptionError(f"{name} is {number}; it cannot be negative")
    return number


def checked_flag(value: Any, name: str) -> bool:
    """Return True or False, which may be given as 1 or 0."""
    if not isinstance(value, int | np.bool_ | np.integer) or value not in (0, 1):
        raise OptionError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def checked_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(each) for each in choices)
        raise OptionError(f"{name} is {value!r}; it must be one of {known}")
    return value

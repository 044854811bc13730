"""Checks of a model's parameters before any work is done: a value is returned in the right type, or refused."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError, shown

if TYPE_CHECKING:
    from collections.abc import Collection

# More spins than this fill the memory of any machine, and their pairs overflow.
MOST_SPINS = 10**8


def checked_count(value: Any, name: str) -> int:
    """Return a number of spins, or of something that is no more than the spins: a whole number, 0 or more."""
    count = checked_whole(value, name)
    if count > MOST_SPINS:
        raise OptionError(f"{name} is {shown(count)}; a model has at most {MOST_SPINS:.0e} spins")
    return count


def checked_spins(*sides: int) -> int:
    """Return the number of spins of a lattice with these sides."""
    n = math.prod(sides)
    if n > MOST_SPINS:
        raise OptionError(
            f"a lattice of {' x '.join(map(str, sides))} has {n:.3g} spins; a model has at most {MOST_SPINS:.0e}"
        )
    return n


def checked_whole(value: Any, name: str) -> int:
    """Return a whole number, 0 or more."""
    try:
        count = operator.index(value)
    except TypeError:
        raise OptionError(f"{name} is {shown(value)}; it must be a whole number") from None
    if count < 0:
        raise OptionError(f"{name} is {shown(count)}; it cannot be negative")
    return count


def checked_pairs(n: Any) -> int:
    """Return the number of spins of dimers, which must be even."""
    count = checked_count(n, "n")
    if count % 2:
        raise OptionError(f"n is {count}; dimers are pairs, so n must be even")
    return count


def checked_number(value: Any, name: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise OptionError(f"{name} is {shown(value)}; it must be a number")
    if not -sys.float_info.max <= value <= sys.float_info.max:  # refuses NaN too
        raise OptionError(f"{name} is {shown(value)}; it must be finite")
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
    """Return a word that must be one of several."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"{name} is {value!r}; it must be one of {known}")
    return value

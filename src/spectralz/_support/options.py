"""Shared checks of options: return a value in its proper type, or raise an error that names the option.

A method declares each option with its check, ``population: int = option(2000, count(least=2))``; `Method` applies them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spectralz.errors import OptionError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_COUNT = 10**300
MOST_REPETITIONS = 10**12
# Beyond this, rounding of random draws would matter.
LARGEST_LEVEL = 1.0 - 1e-9

# Takes a value and the name of its option; returns the value in its proper type, or raises OptionError.
Check = Callable[[Any, str], Any]
T = TypeVar("T")


def option(default: T, check: Check) -> T:
    """Declare an option of a method: a field of a dataclass with its default and its check."""
    declared: T = field(default=default, metadata={"check": check})
    return declared


def apply_checks(options: Any) -> None:
    """Check every option of a frozen dataclass and store the value that its check returns."""
    for declared in fields(options):
        if "check" in declared.metadata:
            value = declared.metadata["check"](getattr(options, declared.name), declared.name)
            object.__setattr__(options, declared.name, value)


def threads_option() -> int | None:
    """Declare the option of a method that may use several threads: how many, None for all cores."""
    return option(None, or_none(count(least=1)))


def checked_threads(threads: Any) -> int | None:
    """Return the most threads to use, None for all cores."""
    return None if threads is None else checked_count(threads, "threads", least=1)


def count(least: int, most: int | None = None, why: str = "") -> Check:
    """Return the check of a whole number from ``least`` to ``most``; the upper limit needs a reason."""

    def check(value: Any, name: str) -> int:
        number = checked_count(value, name, least)
        if most is not None and number > most:
            raise OptionError(f"{name} is {number}; it must be {most} or less, {why}")
        return number

    return check


def repetitions(least: int) -> Check:
    """Return the check of a number of repetitions or of items to keep."""
    return count(least, MOST_REPETITIONS, "as more is beyond any memory or lifetime")


def positive(below: float = math.inf) -> Check:
    """Return the check of a number above zero and below ``below``."""
    return lambda value, name: checked_positive(value, name, below)


def choice(choices: Collection[str]) -> Check:
    """Return the check of one of several words."""
    return lambda value, name: check_choice(value, name, choices)


def names(known: Collection[str]) -> Check:
    """Return the check of a list of known names."""
    return lambda value, name: checked_names(value, name, known)


def or_none(check: Check) -> Check:
    """Return a check that lets None pass."""
    return lambda value, name: None if value is None else check(value, name)


def below_one(value: Any, name: str) -> float:
    """Check a number from 0 to below 1."""
    return _number(value, name, is_number(value) and 0.0 <= value < 1.0, "a number from 0 to below 1")


def not_negative(value: Any, name: str) -> float:
    """Check a finite number that is 0 or more."""
    return _number(value, name, is_number(value) and 0.0 <= value <= sys.float_info.max, "a number, 0 or more")


def flag(value: Any, name: str) -> bool:
    """Check a True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} is {shown(value)}; it must be True or False")
    return value


def spin_order(choices: Collection[str]) -> Check:
    """Return the check of an elimination order: one of several names, or a list that has each spin once."""

    def check(value: Any, name: str) -> str | tuple[int, ...]:
        if isinstance(value, str):
            return str(check_choice(value, name, choices))
        array = array_of(value)
        if array is not None and array.size == 0:
            return ()
        order = None if array is None or array.ndim != 1 or array.dtype.kind not in "iu" else array.tolist()
        if order is None or sorted(order) != list(range(len(order))):
            known = ", ".join(map(repr, choices))
            raise OptionError(f"{name} must be one of {known}, or a list that names each spin from 0 once")
        return tuple(order)

    return check


def array_of(value: Any) -> NDArray[Any] | None:
    """Return a value as an array, or None if it is not one, such as rows of unequal length."""
    try:
        return np.asarray(value)
    except (ValueError, OverflowError, RecursionError):
        return None


def check_choice(value: Any, name: str, choices: Collection[str]) -> Any:
    """Return a value that is one of ``choices``; raise an error for any other."""
    if value not in choices:
        raise OptionError(f"{name} is {shown(value)}; it must be one of " + ", ".join(map(repr, choices)))
    return value


def is_number(value: object) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def checked_count(value: Any, name: str, least: int) -> int:
    """Return a whole number that is at least ``least``, given as an int or a float such as 1e9."""
    if not is_number(value) or not -LARGEST_COUNT <= value <= LARGEST_COUNT or value != int(value) or value < least:
        raise OptionError(f"{name} is {shown(value)}; it must be a whole number, {least} or more")
    return int(value)


def checked_positive(value: Any, name: str, below: float = math.inf) -> float:
    """Return a number that is above zero and below ``below``."""
    limit = f" and below {below:g}" if below < math.inf else ""
    is_valid = is_number(value) and 0.0 < value < below and value <= sys.float_info.max
    return _number(value, name, is_valid, f"a number above 0{limit}")


def _number(value: Any, name: str, is_valid: bool, wanted: str) -> float:
    if not is_valid:
        raise OptionError(f"{name} is {shown(value)}; it must be {wanted}")
    return float(value)


def checked_level(value: Any, name: str) -> float:
    """Return a valid probability for an interval."""
    hint = "such as 0.999 (what is certain is in lower and upper, and needs no level)"
    level = _number(value, name, is_number(value) and 0.0 < value < 1.0, f"a number above 0 and below 1, {hint}")
    if level > LARGEST_LEVEL:
        raise OptionError(f"{name} is {shown(value)}; give 1 - 1e-9 at most: what is certain is in lower and upper")
    return level


def checked_names(value: Any, name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return names that are all known, given as a list or as text separated by commas.

    Examples
    --------
    >>> checked_names("exact, ep", "exclude", ("exact", "ep"))
    ('exact', 'ep')
    """
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple | set | frozenset) or not all(isinstance(word, str) for word in given):
        raise OptionError(f"{name} is {shown(value)}; give a list of names, out of {', '.join(known)}")
    names = tuple(word.strip() for word in given if word.strip())
    for word in names:
        if word not in known:
            raise OptionError(f"{name} has {shown(word)}; known are {', '.join(known)}")
    return names


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def checked_bytes(value: Any, name: str) -> int:
    """Return a number of bytes, given as a number or like ``"512 MiB"``.

    Examples
    --------
    >>> checked_bytes("4 GiB", "max_memory") == 4 * 2**30
    True
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", value)
        if match is None or match[2].upper() not in _UNITS:
            raise OptionError(f"{name} is {shown(value)}; write a number of bytes, or one like '512 MiB' or '4 GiB'")
        number = float(match[1]) * _UNITS[match[2].upper()]
        value = int(number) if math.isfinite(number) else number
    return checked_count(value, name, least=1)


def bytes_in_words(count: int) -> str:
    """Return a number of bytes in words, with a suitable unit.

    Examples
    --------
    >>> bytes_in_words(2**32), bytes_in_words(1500), bytes_in_words(2**200)
    ('4 GiB', '1.46 KiB', '2^200 B')
    """
    for thousands, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")):
        power = 10 * thousands
        if count < 1 << (power + 10):
            return f"{count / (1 << power):.3g} {unit}" if count < 1000 << power else f"{count >> power} {unit}"
    return f"2^{count.bit_length() - 1} B"

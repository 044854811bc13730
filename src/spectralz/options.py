"""The checks that options share: a value is returned as what it should be, or refused by its name."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "bytes_in_words",
    "check_choice",
    "checked_bytes",
    "checked_count",
    "checked_fraction",
    "checked_names",
    "checked_positive",
    "is_number",
]

LARGEST_COUNT = 10**300


def check_choice(value: object, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of ``choices``."""
    if value not in choices:
        raise OptionError(f"{name} is {value!r}; it must be one of " + ", ".join(repr(c) for c in choices))


def is_number(value: object) -> bool:
    """Say whether a value is a real number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def checked_count(value: Any, name: str, least: int) -> int:
    """Return a whole number that is at least ``least``, given as an int or a float such as 1e9."""
    if not is_number(value) or not -LARGEST_COUNT <= value <= LARGEST_COUNT or value != int(value) or value < least:
        raise OptionError(f"{name} is {_shown(value)}; it must be a whole number, {least} or more")
    return int(value)


def _shown(value: Any) -> str:
    """Write a value, but not all of a number with thousands of digits."""
    return "beyond all numbers" if isinstance(value, int) and abs(value) > LARGEST_COUNT else repr(value)


def checked_positive(value: Any, name: str, below: float = math.inf) -> float:
    """Return a number that is above zero and below ``below``."""
    if not is_number(value) or not 0.0 < value < below:
        limit = f" and below {below:g}" if below < math.inf else ""
        raise OptionError(f"{name} is {value!r}; it must be a number above 0{limit}")
    return float(value)


def checked_fraction(value: Any, name: str) -> float:
    """Return a number from 0 to 1, both included."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise OptionError(f"{name} is {value!r}; it must be a number from 0 to 1")
    return float(value)


def checked_names(value: Any, name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return names that are all known, given as a list or with commas between.

    Examples
    --------
    >>> checked_names("exact, ep", "exclude", ("exact", "ep"))
    ('exact', 'ep')
    """
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple | set | frozenset) or not all(isinstance(each, str) for each in given):
        raise OptionError(f"{name} is {value!r}; give a list of names, out of {', '.join(known)}")
    names = tuple(each.strip() for each in given if each.strip())
    for each in names:
        if each not in known:
            raise OptionError(f"{name} has {each!r}; known are {', '.join(known)}")
    return names


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def checked_bytes(value: Any, name: str) -> int:
    """Return a number of bytes, given as such or like ``"512 MiB"``.

    Examples
    --------
    >>> checked_bytes("4 GiB", "max_memory") == 4 * 2**30
    True
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", value)
        if match is None or match[2].upper() not in _UNITS:
            raise OptionError(f"{name} is {value!r}; write a number of bytes, or one like '512 MiB' or '4 GiB'")
        value = int(float(match[1]) * _UNITS[match[2].upper()])
    return checked_count(value, name, least=1)


def bytes_in_words(count: int) -> str:
    """Write a number of bytes with the unit that suits it.

    Examples
    --------
    >>> bytes_in_words(2**32), bytes_in_words(1500), bytes_in_words(2**200)
    ('4 GiB', '1.46 KiB', '2^200 B')
    """
    for power, unit in (
        (0, "B"),
        (10, "KiB"),
        (20, "MiB"),
        (30, "GiB"),
        (40, "TiB"),
        (50, "PiB"),
        (60, "EiB"),
    ):
        if count < 1 << (power + 10):
            return f"{count / (1 << power):.3g} {unit}" if count < 1000 << power else f"{count >> power} {unit}"
    return f"2^{count.bit_length() - 1} B"

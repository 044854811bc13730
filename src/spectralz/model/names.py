"""Names of spins: one per spin, any hashable, all different; and finding a spin by its name."""

from __future__ import annotations

import difflib
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spectralz.errors import ModelError, printable, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

# One name per spin, or None if the spins have none.
Names: TypeAlias = "tuple[Hashable, ...] | None"
# How many names a model's own text shows.
NAMES_SHOWN = 3


def checked_names(names: Any, n: int) -> Names:
    """Return n different names, or None if there are none."""
    if names is None:
        return None
    if isinstance(names, str | bytes):
        raise ModelError(f"names is the text {names!r}; give a list with one name per spin")
    try:
        spin_names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    except TypeError:
        raise ModelError(f"names is a {type(names).__name__}; give a list with one name per spin") from None
    if len(spin_names) != n:
        raise ModelError(f"there are {len(spin_names)} names and {n} spins; give one name per spin")
    seen: dict[Hashable, int] = {}
    for i, name in enumerate(spin_names):
        try:
            first = seen.setdefault(name, i)
        except TypeError:
            raise ModelError(f"name {i} is a {type(name).__name__}; a name must be hashable: text, say") from None
        if name is None or name != name:
            raise ModelError(f"name {i} is {name}, which cannot be a name; give each spin a text or a number")
        if first != i:
            raise ModelError(f"spins {first} and {i} have the same name {name!r}; names must differ")
    return spin_names


def are_default(names: Names) -> bool:
    """Say whether names are the default ones, 0 to n - 1."""
    return names is None or names == tuple(range(len(names)))


def places_of(names: Names) -> tuple[Mapping[Hashable, int] | None, bool]:
    """Return the index of every name, and whether a whole number is among them; without names, None and True."""
    if names is None:
        return None, True
    return {name: i for i, name in enumerate(names)}, any(isinstance(name, int) for name in names)


def index_of(name: Any, n: int, places: Mapping[Hashable, int] | None, has_number: bool) -> int:
    """Return the index of the spin called ``name``.

    A whole number is the index itself if the model has no names, or no whole number among its names.

    Parameters
    ----------
    name
        The name asked for.
    n
        Number of spins.
    places, has_number
        What `places_of` returns for the names.
    """
    if places is not None:
        try:
            if name in places:
                return places[name]
        except TypeError:
            pass
        if _is_whole(name) and shown(operator.index(name)) in places:  # a text of digits, not the number of a spin
            return places[shown(operator.index(name))]
        if has_number or not _is_whole(name):
            raise ModelError(f"no spin is called {shown(name)}; {_hint(name, places)}")
    if not _is_whole(name):
        raise ModelError(
            f"no spin is called {shown(name)}; "
            f"this model has no names, its spins are named by integers from 0 to {n - 1}"
        )
    index = operator.index(name)
    if not 0 <= index < n:
        raise ModelError(f"there is no spin {shown(index)}; spins run from 0 to {n - 1}")
    return index


def names_in_short(names: tuple[Hashable, ...]) -> str:
    """Return the first few names."""
    first = ", ".join(map(printable, names[:NAMES_SHOWN]))
    return f"names {first}" + (", ..." if len(names) > NAMES_SHOWN else "")


def _is_whole(name: Any) -> bool:
    try:
        operator.index(name)
    except TypeError:
        return False
    return True


def _hint(name: Any, places: Mapping[Hashable, int]) -> str:
    known = {str(other): other for other in places}
    if str(name) in known:
        return f"did you mean {known[str(name)]!r}, a {type(known[str(name)]).__name__}?"
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {known[close[0]]!r}?"
    return f"its {names_in_short(tuple(places))}" if places else "it has no spins"

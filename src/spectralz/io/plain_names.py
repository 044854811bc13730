"""Names of spins as JSON: text, numbers, and tuples of these as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["from_plain", "to_plain"]


def to_plain(name: Hashable) -> Any:
    """Return a name as a JSON value."""
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, tuple):
        return [to_plain(part) for part in name]
    if isinstance(name, (str, int)) or (isinstance(name, float) and np.isfinite(name)):
        return name
    raise ModelError(
        f"the name {name!r} is a {type(name).__name__}; files keep names that are text, numbers or tuples of these: "
        "give others with model.named(names), or none with model.named(None)"
    )


def from_plain(value: Any) -> Hashable:
    """Return the name for a JSON value, or raise ValueError."""
    if isinstance(value, list):
        return tuple(from_plain(part) for part in value)
    if isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"{value!r} cannot be a name; names are text, numbers or lists of these")

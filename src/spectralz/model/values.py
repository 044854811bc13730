"""How the owner of a model writes its variables: -1 and +1, or 0 and 1; the larger one is the spin +1 either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import ModelError

if TYPE_CHECKING:
    from spectralz.model.coupling.base import FloatArray, IntArray

Values = Literal["01", "pm1"]
LOW = {"01": 0, "pm1": -1}
# What is said of values that are neither.
SPELLINGS = {
    "pm1": "a spin is -1 or +1, by 2*v - 1 for 0/1 values v (only models made from 0/1 data take these)",
    "01": "a variable of this model is 0 or 1, or -1 and +1 throughout",
}


def spins_of(states: Any, values: Values, *, strictly: bool = False) -> Any:
    """Return states of -1 and +1, from states that are written as the model's owner may write them.

    Since 1 is +1 in both spellings, a model of 0/1 data takes states with 0 or with -1, but not with both; ``strictly``
    speaking only with 0.
    """
    array = np.asarray(states)
    low = LOW[values]
    if values == "01" and not strictly and array.dtype.kind in "if" and np.any(array == -1):
        low = -1
    if array.dtype.kind not in "biuf" or not np.all((array == low) | (array == 1)):
        raise ModelError(f"states must hold only {low} and 1: {SPELLINGS[values]}")
    return array if low == -1 else 2 * array.astype(np.int8) - 1


def checked_condition(
    spins: Any, index_of: Callable[[Any], int], values: Values = "pm1"
) -> tuple[IntArray, FloatArray]:
    """Return the indices of the fixed spins, found by their names, and their values, -1 or +1."""
    if not isinstance(spins, Mapping):
        raise ModelError(f"evidence is a mapping like {{3: +1, 7: {LOW[values]}}}, got {type(spins).__name__}")
    lows = {LOW[values], -1}
    fixed: dict[int, float] = {}
    written = set()
    for name, value in spins.items():
        i = index_of(name)
        if np.ndim(value) or value not in (*lows, 1):
            raise ModelError(f"evidence sets spin {name!r} to {value!r}; {SPELLINGS[values]}")
        if i in fixed:
            raise ModelError(f"evidence sets spin {i} twice, as {name!r} the second time; name each spin once")
        fixed[i] = 1.0 if value == 1 else -1.0
        written.add(int(value))
    if lows <= written and len(lows) > 1:
        raise ModelError(f"evidence has both 0 and -1; {SPELLINGS[values]}")
    return np.array(list(fixed), dtype=np.int64), np.array(list(fixed.values()), dtype=np.float64)

"""How the owner of a model writes its variables: -1 and +1, or 0 and 1; the larger one is the spin +1 either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import ModelError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def read_cells(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a table of data as numbers, 1 in place of missing cells, and which cells are missing.

    NaN, None, NA of pandas and masked entries are missing.

    Examples
    --------
    >>> numbers, missing = read_cells([[0, 1], [None, 1]])
    >>> numbers.tolist(), missing.tolist()
    ([[0.0, 1.0], [1.0, 1.0]], [[False, False], [True, False]])
    """
    try:
        array = np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(_dense(X))
    except ValueError:
        raise ModelError("X is not a rectangular table; are its rows of unequal length?") from None
    missing = np.array(np.ma.getmaskarray(X)) if isinstance(X, np.ma.MaskedArray) else np.zeros(array.shape, dtype=bool)
    if array.dtype.kind == "O":
        missing |= np.array([_is_missing(cell) for cell in array.flat], dtype=bool).reshape(array.shape)
        array = _numbers_of(np.where(missing, 1, array))
    elif array.dtype.kind == "f":
        missing |= np.isnan(array)
    return (np.where(missing, np.ones(1, array.dtype), array) if missing.any() else array), missing


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _numbers_of(array: NDArray[Any]) -> NDArray[Any]:
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ModelError("X holds a number that is too large; it must hold only -1 and +1, or only 0 and 1") from None
    except (TypeError, ValueError):
        other = next(entry for entry in array.flat if not isinstance(entry, int | float | bool | np.number))
        raise ModelError(f"X holds {shown(other)}; it must hold only -1 and +1, or only 0 and 1") from None


def checked_weights(weights: Any, rows: int) -> FloatArray:
    """Return how often each row was seen, once by default."""
    if weights is None:
        return np.ones(rows)
    try:
        weight = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"weights is {shown(weights)}; give one number per row") from None
    if weight.shape != (rows,):
        raise ModelError(f"weights has shape {weight.shape} and X has {rows} rows; give one number per row")
    if not np.all(np.isfinite(weight)) or np.any(weight < 0.0):
        raise ModelError("weights has a number that is negative or not finite; a weight says how often a row was seen")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ModelError("the weights add up to more than 1e308; scale them down")
    return weight


def checked_condition(
    spins: Any, index_of: Callable[[Any], int], values: Values = "pm1", what: str = "evidence"
) -> tuple[IntArray, FloatArray]:
    """Return the indices of the fixed spins, found by their names, and their values, -1 or +1."""
    if not isinstance(spins, Mapping):
        raise ModelError(f"{what} is a mapping like {{3: +1, 7: {LOW[values]}}}, got {type(spins).__name__}")
    lows = {LOW[values], -1}
    fixed: dict[int, float] = {}
    written = set()
    for name, value in spins.items():
        i = index_of(name)
        if np.ndim(value) or value not in (*lows, 1):
            raise ModelError(f"{what} sets spin {name!r} to {value!r}; {SPELLINGS[values]}")
        if i in fixed:
            raise ModelError(f"{what} sets spin {i} twice, as {name!r} the second time; name each spin once")
        fixed[i] = 1.0 if value == 1 else -1.0
        written.add(int(value))
    if lows <= written and len(lows) > 1:
        raise ModelError(f"{what} has both 0 and -1; {SPELLINGS[values]}")
    return np.array(list(fixed), dtype=np.int64), np.array(list(fixed.values()), dtype=np.float64)

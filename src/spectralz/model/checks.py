"""Checks of numbers at the border; after that the code trusts them."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError, TooLargeError, shown

if TYPE_CHECKING:
    from spectralz.model.coupling.base import FloatArray, IntArray

# Sums of all weights must stay finite, even after methods multiply them by 2 and n.
LARGEST_TOTAL_WEIGHT = 1e300
# Memory that a spin takes at least, in fields and couplings while a model is made; and more than any machine has.
BYTES_PER_SPIN, MORE_THAN_ANY = 64, 2.0**50


def as_float_array(values: Any, name: str) -> FloatArray:
    """Return values as an array of floats, or refuse them."""
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ModelError(f"{name} is a masked array with masked entries; fill them first, with values.filled(0.0), say")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ModelError(f"{name} is not a rectangular array of numbers; are its rows of unequal length?") from None
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{name} holds {array.dtype} values; it must hold real numbers")
    return array.astype(np.float64)


def refuse_non_finite(array: FloatArray, name: str) -> None:
    """Refuse an array with an infinity or a NaN, naming the first."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):  # then so are all terms, and nothing as large as the array need be written
            return
    for place in np.argwhere(~np.isfinite(array))[:1].tolist():
        raise ModelError(
            f"{name}[{', '.join(map(str, place))}] is {array[tuple(place)]}; every number of a model must be finite "
            "(write a hard constraint with model.with_constraints, not with an infinite weight)"
        )


def checked_count(n: Any) -> int:
    """Return a number of spins."""
    try:
        count = operator.index(n)
    except TypeError:
        raise ModelError(f"n is {n!r}; the number of spins must be an integer") from None
    if count < 0:
        raise ModelError(f"n is {count}; the number of spins cannot be negative")
    if count * BYTES_PER_SPIN > memory_of_machine():
        needed, there = (f"{size / 2**30:.3g} GiB" for size in (count * BYTES_PER_SPIN, memory_of_machine()))
        raise TooLargeError(f"a model of {shown(count)} spins needs {needed} of memory at least; there are {there}")
    return count


def memory_of_machine() -> float:
    """Return the bytes of memory that this machine has; where that is unknown, more than any has."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not on Windows
        return MORE_THAN_ANY


def checked_number(value: Any, name: str) -> float:
    """Return a single finite number."""
    number = as_float_array(value, name)
    if number.ndim != 0:
        raise ModelError(f"{name} has shape {number.shape}; it must be a single number")
    if not np.isfinite(number):
        raise ModelError(f"{name} is {float(number)}; it must be finite")
    return float(number)


def checked_field(field: Any, n: int, name: str = "field") -> FloatArray:
    """Return a field of n finite numbers."""
    array = as_float_array(field, name)
    if array.ndim != 1:
        hint = "; a coupling alone is Ising(coupling=A)" if name == "field" and array.ndim == 2 else ""
        raise ModelError(f"{name} has shape {array.shape}; it must be a vector with one number per spin{hint}")
    if len(array) != n:
        raise ModelError(f"{name} has {len(array)} numbers and coupling is {n} x {n}; their lengths must agree")
    refuse_non_finite(array, name)
    return array


def refuse_overflow(field: FloatArray, total_coupling: float, offset: float) -> None:
    """Refuse a model whose weights add up to so much that sums of them overflow."""
    with np.errstate(over="ignore"):
        total = float(np.abs(field).sum() + total_coupling + abs(offset))
    if not total <= LARGEST_TOTAL_WEIGHT:  # refuses NaN too
        raise ModelError(
            f"the absolute weights add up to {total:.3g}; above {LARGEST_TOTAL_WEIGHT:.0e} their sums overflow, "
            "so scale the model down"
        )


def checked_edges(edges: Any, n: int) -> IntArray:
    """Return pairs of spins (m x 2), each pair once and none of a spin with itself."""
    try:
        array = np.asarray(edges)
    except ValueError:
        raise ModelError("edges is not an array of pairs (i, j); are its rows of unequal length?") from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ModelError(f"edges has shape {array.shape}; it must be m x 2, one pair (i, j) per edge")
    if array.dtype.kind not in "iu":
        raise ModelError(f"edges holds {array.dtype} values; spins are named by integers from 0 to {n - 1}")
    pairs = array.astype(np.int64)
    for k in np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))[:1].tolist():
        raise ModelError(f"edge {k} joins spins {tuple(pairs[k].tolist())}; spins run from 0 to {n - 1}")
    for k in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1].tolist():
        raise ModelError(
            f"edge {k} joins spin {pairs[k, 0]} to itself; x_i x_i is 1, so add its weight to the offset instead"
        )
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys, first, count = np.unique(low * n + high, return_index=True, return_counts=True)
    if len(keys) < len(pairs):
        k = first[count > 1][0]
        raise ModelError(
            f"edge {(int(low[k]), int(high[k]))} is listed more than once; "
            "list each pair once, with the sum of its weights"
        )
    return pairs


def checked_spins(spins: Any, n: int) -> IntArray:
    """Return spins, each named once."""
    array = np.asarray(spins)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ModelError(
            f"spins holds {array.dtype} values of shape {array.shape}; "
            "give a list of integers (from a mask: np.flatnonzero)"
        )
    if array.min() < 0 or array.max() >= n:
        raise ModelError(f"spins names {int(array.min())} to {int(array.max())}; spins run from 0 to {n - 1}")
    if len(np.unique(array)) < len(array):
        raise ModelError("spins names a spin more than once; name each once")
    return array.astype(np.int64)

"""Edges between labels: the spins, their order, and the model of these edges; labels as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.model import FloatArray, IntArray, Ising
from spectralz.model.coupling import entries

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


# If more than this share of all pairs is coupled, the coupling is stored dense, which is then smaller and faster.
DENSE_FROM = 0.5


def in_order(labels: Iterable[Hashable]) -> list[Hashable]:
    """Return each label once: whole numbers in their order, others in the order of first appearance."""
    once = list(dict.fromkeys(labels))
    if all(isinstance(label, int | np.integer) and not isinstance(label, bool) for label in once):
        return sorted(once)  # type: ignore[type-var]
    return once


def numbered(labels: IntArray) -> tuple[tuple[int, ...] | None, IntArray]:
    """Return the names of spins that are numbers, in their order, and the spin of each mention.

    Spins called 0 to n - 1 need no names.
    """
    once, spins = np.unique(labels, return_inverse=True)
    is_plain = np.array_equal(once, np.arange(len(once)))
    return None if is_plain else tuple(once.tolist()), spins.reshape(labels.shape)


def symmetric(n: int, pairs: IntArray, weights: FloatArray) -> Any:
    """Return the n x n matrix with each pair's weight in both places, dense if many pairs are coupled.

    A pair that is listed more than once has the sum of its weights.
    """
    matrix = entries.symmetric(n, pairs, weights).tocsr()
    return matrix.toarray() if matrix.nnz > DENSE_FROM * n * (n - 1) else matrix


def energy_of_entries(
    is_binary: bool, n: int, pairs: IntArray, values: FloatArray, names: Iterable[Hashable] | None = None
) -> Ising:
    """Return the model of an energy whose linear terms are the entries of a variable with itself.

    Entries of the same pair, in either order, add up.
    """
    is_linear = pairs[:, 0] == pairs[:, 1]
    linear = np.bincount(pairs[is_linear, 0], values[is_linear], minlength=n).astype(np.float64)
    model = energy_pairs(is_binary, linear, symmetric(n, pairs[~is_linear], values[~is_linear]), 0.0, names)
    return model._having_lost(_lost_in_sums(pairs, values))


def _lost_in_sums(pairs: IntArray, values: FloatArray) -> float:
    """Bound what rounding changes where entries of the same pair, or variable, are added up."""
    _, which, counts = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True, return_counts=True)
    added = counts[which.reshape(-1)] - 1
    return float(np.finfo(np.float64).eps * (added * np.abs(values)).sum())


def energy_pairs(
    is_binary: bool, linear: FloatArray, pairs: Any, offset: float, names: Iterable[Hashable] | None
) -> Ising:
    """Return the model with log-weight ``-E``, where ``E = offset + sum linear_i v_i + sum_{i<j} pairs_ij v_i v_j``.

    Parameters
    ----------
    is_binary
        Whether variables are 0 and 1; otherwise they are -1 and +1.
    linear, offset
        As in E.
    pairs
        A symmetric matrix, with each pair's weight in both places.
    names
        One name per variable, or None.
    """
    if is_binary:
        return Ising.from_binary(-linear, -pairs, -offset, names)
    return Ising(-linear, pairs / -2.0, -offset, names)


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


def refuse_constraints(model: Ising, what: str) -> None:
    """Refuse a model with constraints, which another library's object cannot hold."""
    if model.constraints:
        raise ModelError(
            f"this model has {len(model.constraints)} constraints, and {what} cannot hold any; "
            "write an .npz, .json or .uai file instead"
        )

"""Edges between labels: the spins, their order, and the model of these edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import IntArray

__all__ = ["energy_pairs", "in_order", "numbered", "pair_keys", "symmetric"]

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


def pair_keys(pairs: IntArray, n: int) -> IntArray:
    """Return one number per pair of n spins, the same in either order."""
    keys: IntArray = pairs.min(axis=1) * max(n, 1) + pairs.max(axis=1)
    return keys


def symmetric(n: int, i: Sequence[int] | NDArray[Any], j: Sequence[int] | NDArray[Any], weights: Any) -> Any:
    """Return the n x n matrix with each pair's weight in both places, dense if many pairs are coupled.

    A pair that is listed more than once has the sum of its weights.
    """
    rows, columns = np.concatenate([i, j]).astype(np.int64), np.concatenate([j, i]).astype(np.int64)
    both = np.concatenate([weights, weights]).astype(np.float64)
    matrix = sp.coo_array((both, (rows, columns)), shape=(n, n)).tocsr()
    return matrix.toarray() if matrix.nnz > DENSE_FROM * n * (n - 1) else matrix


def energy_pairs(
    is_binary: bool, linear: NDArray[np.float64], pairs: Any, offset: float, names: Iterable[Hashable] | None
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

"""Choose the pairs whose marginals are computed: a dense model of 20,000 spins has 2e8 pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from spectralz._support.settings import settings, using_settings
from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from spectralz.model import IntArray, Model


def wanting_pairs(wanted: bool | Literal["all"]) -> AbstractContextManager[None]:
    """Set whether marginals inside the ``with`` block include coupled pairs, no pairs, or all pairs.

    Examples
    --------
    >>> import spectralz as sz
    >>> with wanting_pairs(False):
    ...     pairs_of(sz.generators.complete(n=5, strength=1.0, seed=0)).shape
    (0, 2)
    """
    return using_settings(pairs=wanted)


def are_pairs_wanted() -> bool:
    """Return whether marginals of pairs are wanted, too."""
    return bool(settings().pairs)


def pairs_of(model: Model) -> IntArray:
    """Return the pairs whose means are wanted: those of ``model.edges()``, in its order, all pairs, or none."""
    if settings().pairs == "all":
        return all_pairs(model.n)
    return model.edges()[0] if are_pairs_wanted() else np.empty((0, 2), dtype=np.int64)


def terms_of(model: Model) -> Terms:
    """Return the terms of three and more spins whose means are wanted: those of the model, or none."""
    return model.higher if are_pairs_wanted() else NO_TERMS


def all_pairs(n: int) -> IntArray:
    """Return all pairs i < j, in order.

    Examples
    --------
    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.column_stack(np.triu_indices(n, 1)).astype(np.int64)

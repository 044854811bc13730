"""Whether marginals are wanted of pairs, too: a dense model of 20,000 spins has 2e8 of them."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.model import IntArray, Ising

__all__ = ["are_pairs_wanted", "pairs_of", "wanting_pairs"]

# A context, no argument: methods of users have no such argument, and what they return of pairs is left out.
_wanted: ContextVar[bool] = ContextVar("spectralz_pairs_wanted", default=True)


@contextmanager
def wanting_pairs(wanted: bool) -> Iterator[None]:
    """Let marginals inside the ``with`` block be with pairs or without.

    Examples
    --------
    >>> import spectralz as sz
    >>> with wanting_pairs(False):
    ...     pairs_of(sz.generators.complete(n=5, strength=1.0, seed=0)).shape
    (0, 2)
    """
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def are_pairs_wanted() -> bool:
    """Say whether marginals are wanted of pairs, too."""
    return _wanted.get()


def pairs_of(model: Ising) -> IntArray:
    """Return the pairs whose means are wanted: those of ``model.edges()``, in its order, or none."""
    return model.edges()[0] if are_pairs_wanted() else np.empty((0, 2), dtype=np.int64)

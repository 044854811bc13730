"""Tables of allowed states, as the functions of mini-buckets: 0 where a state is allowed, and ``ZERO`` where not.

``ZERO`` stands for -inf. It is finite so that differences of two of them are numbers: sums of thousands of zeros and
weights are still below ``NOTHING``, and what is below that counts as -inf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray

ZERO, NOTHING = -1e30, -1e29


class Zeros(NamedTuple):
    """Tables of allowed states: their scopes, as terms whose weights are not used, and for each an axis per spin."""

    scopes: Terms
    allowed: Sequence[BoolArray]

    @classmethod
    def of(cls, scopes: Sequence[Sequence[int]], allowed: Sequence[BoolArray]) -> Zeros:
        """Return tables from their scopes and what they allow."""
        return cls(Terms.of(scopes, np.ones(len(scopes))), allowed) if len(scopes) else NO_ZEROS

    def with_terms(self, terms: Terms) -> Terms:
        """Return the scopes after some terms, for what is alike for both."""
        if not self.allowed:
            return terms
        return Terms.of([*terms.scopes(), *self.scopes.scopes()], [*terms.weight, *self.scopes.weight])

    def tables(self, rank: IntArray) -> list[FloatArray]:
        """Return the log-weights, flat: bit k of an index is the k-th spin by rank, 1 for +1."""
        found = []
        for scope, allowed in zip(self.scopes.scopes(), self.allowed, strict=True):
            last_first = np.argsort(-rank[list(scope)])
            found.append(np.where(allowed.transpose(last_first), 0.0, ZERO).ravel())
        return found


NO_ZEROS = Zeros(NO_TERMS, ())

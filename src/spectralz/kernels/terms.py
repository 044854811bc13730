"""Terms of three and more spins: a number times the product of the spins of each.

Pairs have kernels of their own, which are faster; what is here is added to them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz.kernels.coupling import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spectralz.kernels.arrays import FloatArray, IntArray

# Spins of states that are multiplied together.
SPINS_AT_ONCE = 4_000_000
# Terms of more spins than this are multiplied state by state, which is how memory is read fastest.
WIDE = 64


class Terms(NamedTuple):
    """Products of spins with their weights; a named tuple, which compiled functions take as one argument.

    Attributes
    ----------
    weight
        One number per term.
    start
        The spins of term k are ``spin[start[k] : start[k + 1]]``.
    spin
        The spins of all terms, those of each ascending.
    """

    weight: FloatArray
    start: IntArray
    spin: IntArray

    @classmethod
    def of(cls, scopes: Sequence[Sequence[int]], weights: Any) -> Terms:
        """Return terms from the spins of each and their weights."""
        start = np.cumsum([0, *map(len, scopes)])
        spin = np.array([i for scope in scopes for i in scope], dtype=np.int64)
        weight = np.array(weights, dtype=np.float64)
        return cls(frozen(weight), frozen(start.astype(np.int64)), frozen(spin))

    @property
    def number(self) -> int:
        """Number of terms."""
        return len(self.weight)

    @property
    def sizes(self) -> IntArray:
        """Number of spins of each term."""
        return np.diff(self.start)

    @property
    def largest(self) -> int:
        """Number of spins of the largest term."""
        return int(self.sizes.max(initial=0))

    @property
    def total(self) -> float:
        """The sum of the absolute weights."""
        return float(np.abs(self.weight).sum())

    def scopes(self) -> list[tuple[int, ...]]:
        """Return the spins of each term."""
        spin, start = self.spin.tolist(), self.start.tolist()
        return [tuple(spin[a:b]) for a, b in itertools.pairwise(start)]

    def items(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the spins of each term with its weight."""
        return list(zip(self.scopes(), self.weight.tolist(), strict=True))

    def term_of_spin(self) -> IntArray:
        """Return which term each entry of ``spin`` belongs to."""
        return np.repeat(np.arange(self.number), self.sizes)

    def by_spin(self, n: int) -> tuple[IntArray, IntArray]:
        """Return the terms of each of n spins: where they begin, n + 1 numbers, and all of them."""
        order = np.argsort(self.spin, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(self.spin, minlength=n))]).astype(np.int64)
        return start, self.term_of_spin()[order]

    def products(self, x: Any) -> Any:
        """Return the product of the spins of each term for states, one state per row."""
        found = np.ones((len(x), self.number), dtype=x.dtype)
        for size in np.unique(self.sizes).tolist():
            which = np.flatnonzero(self.sizes == size)
            if size > WIDE:
                scopes = self.spin[self.start[which][:, None] + np.arange(size)]
                found[:, which] = x[:, scopes].prod(axis=2, dtype=x.dtype)
                continue
            for place in range(size):
                found[:, which] *= x[:, self.spin[self.start[which] + place]]
        return found

    def log_weight(self, x: Any) -> FloatArray:
        """Return what the terms add to the log-weights of states of -1 and +1, one state per row."""
        sums = np.zeros(len(x))
        for part in self.parts_of(len(x)):
            sums[part] = self.products(x[part]) @ self.weight
        return sums

    def parts_of(self, rows: int) -> Iterator[slice]:
        """Divide states into parts whose products take little memory."""
        together = max(SPINS_AT_ONCE // max(len(self.spin), 1), 1)
        return (slice(begin, begin + together) for begin in range(0, rows, together))

    @property
    def pair_count(self) -> int:
        """Number of pairs of spins that share a term; a pair of two terms counts twice."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def chains(self, kept: Any = True) -> tuple[IntArray, IntArray]:
        """Return pairs that connect the spins of each term, or those of them that are kept, one after the other."""
        is_kept = np.broadcast_to(kept, self.spin.shape)
        spin, term = self.spin[is_kept], self.term_of_spin()[is_kept]
        follows = term[1:] == term[:-1]
        return spin[:-1][follows], spin[1:][follows]

    def all_pairs(self) -> tuple[IntArray, FloatArray]:
        """Return the pairs of spins of each term, k x 2, i < j, with its weight; a pair of two terms is there twice."""
        found, weights = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
        for size in np.unique(self.sizes).tolist():
            is_so_large = self.sizes == size
            scopes = self.spin[self.start[:-1][is_so_large][:, None] + np.arange(size)]
            i, j = np.triu_indices(size, 1)
            found.append(np.stack([scopes[:, i].ravel(), scopes[:, j].ravel()], axis=1))
            weights.append(np.repeat(self.weight[is_so_large], len(i)))
        return np.concatenate(found), np.concatenate(weights)

    def chosen(self, is_chosen: Any) -> Terms:
        """Return some of the terms."""
        where = np.asarray(is_chosen)
        spin = self.spin[np.repeat(where, self.sizes)]
        start = np.concatenate([[0], np.cumsum(self.sizes[where])]).astype(np.int64)
        return Terms(frozen(self.weight[where]), frozen(start), frozen(spin))

    def renamed(self, place: IntArray) -> Terms:
        """Return the same terms of spins that have other numbers, in the same order."""
        return self._replace(spin=frozen(place[self.spin]))

    def times(self, factor: float) -> Terms:
        """Return the terms times a number, without those that become 0."""
        scaled = self._replace(weight=frozen(factor * self.weight))
        return scaled.chosen(scaled.weight != 0.0)


NO_TERMS = Terms.of((), ())


class SpinTerms(NamedTuple):
    """Terms as in :class:`Terms`, and those of each spin: ``of_spin[first[i] : first[i + 1]]``."""

    weight: FloatArray
    start: IntArray
    spin: IntArray
    first: IntArray
    of_spin: IntArray

    @classmethod
    def of(cls, terms: Terms, n: int) -> SpinTerms:
        """List the terms of n spins by spin."""
        first, of_spin = terms.by_spin(n)
        return cls(*terms, frozen(first), frozen(of_spin))

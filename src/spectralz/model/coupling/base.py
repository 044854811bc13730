"""The interface of a model's coupling A, for every kind of storage.

Each kind of storage answers in its own way. Code that needs the entries themselves asks for ``written_out``, which is
dense or sparse. Nothing here changes a coupling in place; a model freezes its own arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from spectralz.errors import TooLargeError
from spectralz.kernels.error_free import Parts

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.model.coupling.entries import Entries

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.int64]"
# States of spins, -1 and +1, one per row, or a single state.
SpinArray: TypeAlias = "NDArray[np.int8]"
# scipy's stubs make the sparse classes generic; the scalar type is always float64 here.
Matrix: TypeAlias = "FloatArray | sp.csr_array[Any]"


class Factors(NamedTuple):
    """A coupling kept as ``sum_j values_j v_j v_j' + Diag(diagonal)``; the v_j are the rows of ``vectors``."""

    values: FloatArray
    vectors: FloatArray
    diagonal: FloatArray


class Conditioned(NamedTuple):
    """What remains of a coupling if some spins are fixed: the coupling of the others, their field, and a constant.

    Rounding of the field and the constant changes a log-weight by at most ``lost``.
    """

    rest: Coupling
    field: FloatArray
    constant: float
    lost: float


class Coupling(ABC):
    """A symmetric coupling A of n spins, in any kind of storage.

    ``word`` names the kind of storage; ``is_sparse`` says whether its matrix is a scipy CSR array.
    """

    word: ClassVar[str]
    is_sparse: ClassVar[bool]

    # Each kind of storage defines these.

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of spins."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that are kept."""

    @property
    @abstractmethod
    def written_out(self) -> Entries:
        """The same coupling entry by entry, dense or sparse."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """A_ii."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The sum of all |A_ij|, or a bound on it."""

    @property
    def rounding(self) -> float:
        """A bound on the sum over i != j of the rounding errors of A_ij when it is written out; 0 if there are none."""
        return 0.0

    def trace(self) -> Parts:
        """Return numbers that add up to the trace of A."""
        diagonal = self.diagonal
        return Parts(diagonal[diagonal != 0.0].tolist(), 0.0)

    @abstractmethod
    def quadratic(self, X: FloatArray) -> FloatArray:
        """Return x'Ax of states, the rows of X."""

    @abstractmethod
    def times(self, factor: float) -> Coupling:
        """Return the coupling times ``factor``."""

    def plus(self, other: Coupling) -> Coupling:
        """Return the sum of two couplings of the same spins."""
        return self.written_out.plus_entries(other.written_out)

    def equals(self, other: Coupling) -> bool:
        """Say whether every entry is the same, in whatever storage.

        Factors that are too large to be written out are equal only to themselves.
        """
        if type(self) is type(other) and all(map(np.array_equal, self.arrays, other.arrays)):
            return True
        try:
            mine, theirs = self.written_out, other.written_out
        except TooLargeError:
            return False
        return all(map(np.array_equal, (*mine.edges(), mine.diagonal), (*theirs.edges(), theirs.diagonal)))

    def plus_diagonal(self, d: FloatArray) -> Coupling:
        """Return A + Diag(d)."""
        return self.written_out.plus_diagonal(d)

    @abstractmethod
    def among(self, spins: IntArray) -> Coupling:
        """Return the coupling of some spins, in that order."""

    @abstractmethod
    def given(self, fixed: IntArray, value: FloatArray, free: IntArray) -> Conditioned:
        """Return what remains for the free spins, in order, if the fixed spins have values."""

    # These follow from the entries, unless there is a better way.

    @property
    def terms(self) -> Factors | None:
        """The rank-1 terms, if they are what is stored; otherwise None."""
        return None

    @property
    def matrix(self) -> Matrix:
        """A, a numpy array or a scipy CSR array."""
        return self.written_out.matrix

    @property
    def edge_count(self) -> int:
        """Number of pairs that are coupled."""
        return self.written_out.edge_count

    @property
    def density(self) -> float:
        """The share of all pairs that are coupled."""
        return self.edge_count / (self.n * (self.n - 1) // 2) if self.n > 1 else 0.0

    @property
    def mean_of_pairs(self) -> float:
        """The mean |A_ij| of the pairs that are coupled."""
        return self.without_diagonal().total / (2 * self.edge_count) if self.edge_count else 0.0

    @property
    def largest_of_pairs(self) -> float:
        """The largest |A_ij| off the diagonal."""
        return self.without_diagonal().largest

    @property
    def couples_nothing(self) -> bool:
        """Whether it is known, without writing anything out, that no pair is coupled."""
        return not self.edge_count

    @property
    def least_width(self) -> int:
        """A lower bound on the treewidth that needs no search: the least degree, or half of the mean degree."""
        return self.written_out.least_width

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the coupled pairs (m x 2, i < j, in order) and J_ij = 2 A_ij of each."""
        return self.written_out.edges()

    def component_labels(self) -> IntArray:
        """Return the number of each spin's connected component, counted in order of their smallest spins."""
        return self.written_out.component_labels()

    def components(self) -> list[IntArray]:
        """Return the spins of each connected component, in order of their smallest spin."""
        label = self.component_labels()
        count = int(label.max(initial=-1)) + 1
        grouped = np.argsort(label, kind="stable").astype(np.int64)
        bounds = np.searchsorted(label[grouped], np.arange(1, count))
        return sorted(np.split(grouped, bounds), key=lambda spins: int(spins[0])) if self.n else []

    def without_diagonal(self) -> Entries:
        """Return a copy of the entries whose diagonal is zero."""
        return self.written_out.without_diagonal()

    def bordered(self, column: FloatArray) -> Entries:
        """Return the coupling with one more spin at the end, which ``column`` couples to the others."""
        return self.written_out.bordered(column)

    def dense(self) -> FloatArray:
        """Return A as a numpy array that must not be changed."""
        return self.written_out.dense()

    def for_kernels(self) -> Couplings:
        """Return J = 2 A without its diagonal, as the compiled kernels take it."""
        return self._for_kernels

    @cached_property
    def _for_kernels(self) -> Couplings:
        # Cached: several methods ask for it in turn, and for a large model each copy takes as long as a sweep.
        return self.written_out.doubled()

    @cached_property
    def sides(self) -> tuple[IntArray, IntArray] | None:
        """The two sides of a bipartite graph, the second as large as it can be; None if the graph is not bipartite."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components

        n = self.n
        if not n or 4 * self.edge_count > n * n:  # more edges than between two sides of n / 2 spins
            return None
        i, j = self.edges()[0].T
        # Every spin twice, each copy coupled to the other copies of its neighbors: on an odd cycle the copies meet.
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i]) + n
        cover = sp.coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(2 * n, 2 * n))
        _, label = connected_components(cover, directed=False)
        first, second = label[:n], label[n:]
        if np.any(first == second):
            return None
        is_first, component = first < second, np.minimum(first, second)
        surplus = np.bincount(component, weights=np.where(is_first, 1.0, -1.0), minlength=2 * n)
        is_larger = is_first == (surplus[component] >= 0.0)
        return np.flatnonzero(~is_larger), np.flatnonzero(is_larger)

    def summary(self) -> str:
        """Describe it in a few words, for the model's own text."""
        sizes = f"|A| mean {self.mean_of_pairs:.3g} max {self.largest_of_pairs:.3g}"
        return f"edges={self.edge_count}, density={self.density:.3g}, {sizes}"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Cached values are not pickled.
        return type(self), tuple(getattr(self, part.name) for part in fields(cast("Any", self)))

    def freeze(self) -> None:
        """Make all arrays read-only."""
        for array in self.arrays:
            array.flags.writeable = False

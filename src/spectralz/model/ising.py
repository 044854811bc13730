"""The model: a pairwise binary distribution, checked once and then trusted.

Convention (Eq. (1) of the paper), the only one inside the package:
``x`` in {-1,+1}^n and ``P(x) = exp(offset + <field, x> + x' coupling x) / Z``. The coupling is symmetric, so
an edge that is counted once weighs ``J_ij = 2 A_ij``; the diagonal adds its trace to ``log Z`` and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError
from spectralz.model.checks import (
    as_float_array,
    checked_condition,
    checked_count,
    checked_edges,
    checked_field,
    checked_number,
    checked_spins,
    refuse_non_finite,
    refuse_overflow,
)
from spectralz.model.coupling import Bipartite, Factored, coupling_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from spectralz.model.coupling import Coupling, Factors, FloatArray, IntArray, Matrix

__all__ = ["Ising"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Ising:
    """A pairwise binary model with ``P(x) = exp(offset + <field, x> + x' coupling x) / Z``.

    Parameters
    ----------
    field
        theta, one number a spin; None for no field.
    coupling
        A, symmetric n x n, a numpy array or anything of scipy.sparse (kept as CSR). An edge counted once
        weighs ``J_ij = 2 A_ij``: see :meth:`from_edges` for models written that way.
    offset
        A constant added to every state's log-weight, and so to log Z.

    Raises
    ------
    ModelError
        If the arrays do not make a model; each way of failing has its own message.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising(field=[0.1, -0.2], coupling=[[0.0, 0.5], [0.5, 0.0]])
    >>> model
    Ising(n=2, edges=1, density=1, |A| mean 0.5 max 0.5, |field| max 0.2, dense)
    >>> float(model.log_weight([+1, -1]))
    -0.7
    """

    field: FloatArray
    offset: float
    storage: Coupling

    def __init__(self, field: ArrayLike | None, coupling: ArrayLike | Any, offset: float = 0.0) -> None:
        self._keep(*_checked(field, coupling_of(coupling), offset))

    def _keep(self, field: FloatArray, storage: Coupling, offset: float) -> None:
        """Keep numbers that make a model, unless they are too large; from here on nobody writes to them."""
        with np.errstate(over="ignore"):
            total = storage.total
        refuse_overflow(field, total, offset)
        field.flags.writeable = False
        storage.freeze()
        for name, value in (("field", field), ("offset", offset), ("storage", storage)):
            object.__setattr__(self, name, value)

    @classmethod
    def _of(cls, field: FloatArray, storage: Coupling, offset: float) -> Ising:
        """Make a model of parts that are made for it and checked."""
        model = object.__new__(cls)
        model._keep(field, storage, offset)
        return model

    @classmethod
    def from_factors(
        cls,
        field: ArrayLike | None,
        values: ArrayLike,
        vectors: ArrayLike,
        diagonal: ArrayLike = 0.0,
        offset: float = 0.0,
    ) -> Ising:
        """Make a model whose coupling ``sum_j values_j v_j v_j' + Diag(diagonal)`` is never written out as a matrix.

        Memory is that of the factors, so that a million spins of rank 1 are nothing special; the methods ``quadrature``
        and ``low_rank`` work on them as they are. Whoever asks for ``coupling`` or ``edges()`` gets the matrix, up to
        20,000 spins.

        Parameters
        ----------
        field
            theta, one number a spin; None for no field.
        values, vectors
            One number, and one row of n numbers, for each rank-1 term; the rows need be neither unit nor orthogonal.
        diagonal
            Added to the coupling's diagonal; one number a spin, or one for all.
        offset
            As in :class:`Ising`.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> sz.Ising.from_factors(None, [0.5], np.full((1, 1_000_000), 1e-3), diagonal=-5e-7)
        Ising(n=1000000, rank 1 plus diagonal, |A| at most 5e-07, |field| max 0)
        """
        return cls._of(*_checked(field, Factored.checked(values, vectors, diagonal), offset))

    @classmethod
    def from_bipartite(cls, weights: ArrayLike, field: ArrayLike | None = None, offset: float = 0.0) -> Ising:
        """Make a model of two layers of spins that are coupled only to each other, as in an RBM.

        The log-weight is ``<field, x> + sum_ij weights_ij x_i x_(rows + j)``: only the block of weights is kept.

        Parameters
        ----------
        weights
            J, first layer x second layer; an edge is counted once.
        field
            theta of the first layer's spins, then of the second's; None for no field.
        offset
            As in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_bipartite([[1.0, -2.0]])
        >>> float(model.log_weight([1, 1, -1]))
        3.0
        """
        return cls._of(*_checked(field, Bipartite.checked(weights), offset))

    @property
    def coupling(self) -> Matrix:
        """A, symmetric n x n: a numpy array or a scipy CSR array, read-only."""
        return self.storage.matrix

    @property
    def factors(self) -> Factors | None:
        """The rank-1 terms of the coupling, where it is kept so."""
        return self.storage.terms

    @classmethod
    def from_edges(
        cls,
        n: int,
        edges: ArrayLike,
        weights: ArrayLike,
        field: ArrayLike | None = None,
        offset: float = 0.0,
    ) -> Ising:
        """Make a sparse model from edges that are counted once: log-weight ``<field, x> + sum J_ij x_i x_j``.

        Parameters
        ----------
        n
            Number of spins.
        edges
            Pairs of spins, m x 2, each pair once and in either order.
        weights
            J, one number an edge or one for all; stored as ``A_ij = A_ji = J_ij / 2``.
        field, offset
            As in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> chain = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0])
        >>> float(chain.log_weight([1, 1, -1]))
        3.0
        """
        n = checked_count(n)
        pairs = checked_edges(edges, n)
        try:
            J = np.broadcast_to(as_float_array(weights, "weights"), (len(pairs),))
        except ValueError:
            raise ModelError(
                f"weights has shape {np.shape(weights)} but there are {len(pairs)} edges; "
                "give one weight for each edge, or a single number for all"
            ) from None
        refuse_non_finite(J, "weights")
        i, j = pairs.T
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
        halves = np.concatenate([J, J]) / 2.0
        coupling = sp.coo_array((halves, (rows, columns)), shape=(n, n))
        return cls(np.zeros(n) if field is None else field, coupling, offset)

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    @property
    def is_sparse(self) -> bool:
        """Whether the coupling is a sparse matrix."""
        return self.storage.is_sparse

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of the coupling, which only adds its sum to log Z."""
        return self.storage.diagonal

    @property
    def edge_count(self) -> int:
        """Number of pairs that are coupled, counted without listing them."""
        return self.storage.edge_count

    @property
    def density(self) -> float:
        """The share of all pairs that are coupled."""
        return self.storage.density

    @property
    def coupling_mean(self) -> float:
        """The mean |A_ij| of the pairs that are coupled."""
        return self.storage.mean_of_pairs

    @property
    def coupling_max(self) -> float:
        """The largest |A_ij| off the diagonal."""
        return self.storage.largest_of_pairs

    @property
    def constant(self) -> float:
        """What every state's log-weight has in common: the offset and the trace of the coupling."""
        return self.offset + float(np.sum(self.diagonal))

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the edges (m x 2, i < j, in order) and their weights ``J_ij = 2 A_ij``, as `from_edges` takes them.

        Examples
        --------
        >>> import spectralz as sz
        >>> pairs, J = sz.Ising([0, 0], [[0, 0.5], [0.5, 0]]).edges()
        >>> pairs.tolist(), J.tolist()
        ([[0, 1]], [1.0])
        """
        return self._edges

    @cached_property
    def _edges(self) -> tuple[IntArray, FloatArray]:
        pairs, weights = self.storage.edges()
        pairs.flags.writeable = weights.flags.writeable = False
        return pairs, weights

    def log_weight(self, x: ArrayLike) -> FloatArray | np.float64:
        """Return log of the unnormalised probability of one state (n,) or of many (m, n).

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Ising([1.0], [[0.0]]).log_weight([[-1], [+1]]).tolist()
        [-1.0, 1.0]
        """
        states = np.asarray(x)
        if states.ndim not in (1, 2) or states.shape[-1] != self.n:
            raise ModelError(
                f"states have shape {states.shape}; a model of {self.n} spins wants ({self.n},) or (m, {self.n})"
            )
        if states.dtype.kind not in "biuf" or not np.all((states == 1) | (states == -1)):
            raise ModelError("states must hold only -1 and +1; turn 0/1 values into spins by 2*x - 1")
        X = np.atleast_2d(states).astype(np.float64)
        values: FloatArray = self.offset + X @ self.field + self.storage.quadratic(X)
        return values if states.ndim == 2 else values[0]

    def absorb_field(self) -> Ising:
        """Turn the field into one more spin, the last (paper, Sec. 3): ``Z = Z' / 2``.

        The result has n + 1 spins, no field, and ``field / 2`` in the last row and column of its coupling.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> model = sz.generators.complete(n=5, strength=1.0, seed=0)
        >>> whole = sz.log_z(model.absorb_field()).log_z
        >>> bool(np.isclose(sz.log_z(model).log_z, whole - np.log(2)))
        True
        """
        return Ising._of(np.zeros(self.n + 1), self.storage.bordered(self.field / 2.0), self.offset)

    def shift_diagonal(self, d: ArrayLike) -> Ising:
        """Add ``d`` to the diagonal of the coupling (Eq. (10)): ``log Z(A + D) = log Z(A) + sum(d)``.

        Parameters
        ----------
        d
            One number a spin, or one for all.
        """
        shift = as_float_array(d, "d")
        if shift.shape not in ((), (self.n,)):
            raise ModelError(f"d has shape {shift.shape}; a model of {self.n} spins wants ({self.n},) or one number")
        shift = np.broadcast_to(shift, (self.n,))
        refuse_non_finite(shift, "d")
        return Ising._of(self.field, self.storage.plus_diagonal(shift), self.offset)

    def condition(self, spins: Mapping[int, int]) -> Ising:
        """Fix some spins and return the model of the others, in their old order.

        Its Z is the sum over the states that agree with ``spins``, so that the probability of the
        fixed values is the ratio of the two partition functions.

        Examples
        --------
        >>> import spectralz as sz
        >>> pair = sz.Ising([0.0, 0.0], [[0.0, 0.5], [0.5, 0.0]])
        >>> pair.condition({0: +1})
        Ising(n=1, edges=0, density=0, |A| mean 0 max 0, |field| max 1, dense)
        """
        index, value = checked_condition(spins, self.n)
        kept = np.setdiff1d(np.arange(self.n), index)
        left = self.storage.given(index, value, kept)
        constant = self.offset + float(self.field[index] @ value) + left.constant
        return Ising._of(self.field[kept] + left.field, left.rest, constant)

    def submodel(self, spins: ArrayLike) -> Ising:
        """Return the model of some spins alone, without the offset and without couplings to the others."""
        index = checked_spins(spins, self.n)
        return Ising._of(self.field[index], self.storage.among(index), 0.0)

    def scaled(self, beta: float) -> Ising:
        """Return the model at inverse temperature ``beta``: every log-weight, offset included, times beta."""
        factor = checked_number(beta, "beta")
        with np.errstate(over="ignore"):
            return Ising._of(factor * self.field, self.storage.times(factor), factor * self.offset)

    def components(self) -> list[IntArray]:
        """Return the spins of each connected component, in order of their smallest spin.

        ``log Z`` is the offset plus the sum over the components' submodels.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_edges(4, [(0, 2)], [1.0])
        >>> [spins.tolist() for spins in model.components()]
        [[0, 2], [1], [3]]
        """
        from scipy.sparse.csgraph import connected_components

        pairs, _ = self.edges()
        ones = np.ones(len(pairs), dtype=np.int8)
        graph = sp.coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(self.n, self.n))
        count, label = connected_components(graph, directed=False)
        grouped = np.argsort(label, kind="stable").astype(np.int64)
        bounds = np.searchsorted(label[grouped], np.arange(1, count))
        return sorted(np.split(grouped, bounds), key=lambda spins: int(spins[0])) if self.n else []

    def __repr__(self) -> str:
        field = f"|field| max {float(np.abs(self.field).max(initial=0.0)):.3g}"
        offset = f", offset {self.offset:.6g}" if self.offset else ""
        kept = f", {self.storage.word}" if self.storage.terms is None else ""
        return f"Ising(n={self.n}, {self.storage.summary()}, {field}{offset}{kept})"

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.model(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the couplings, by :func:`spectralz.plots.model`; return the Axes."""
        from spectralz.show import plots

        return plots.model(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain Python values, ready for ``json.dumps``; edges are counted once, with weights J.

        Raises
        ------
        TooLargeError
            If the coupling is kept as factors and is too large to be written out.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0], field=[0.5, 0.0, 0.0])
        >>> plain = model.to_dict()
        >>> plain["edges"], plain["weights"], plain["storage"]
        ([[0, 1], [1, 2]], [1.0, -2.0], 'sparse')
        >>> again = sz.Ising.from_edges(plain["n"], plain["edges"], plain["weights"], plain["field"], plain["offset"])
        >>> again.shift_diagonal(plain["diagonal"])
        Ising(n=3, edges=2, density=0.667, |A| mean 0.75 max 1, |field| max 0.5, sparse)
        """
        pairs, J = self.edges()
        return {
            "n": self.n,
            "field": self.field.tolist(),
            "edges": pairs.tolist(),
            "weights": J.tolist(),
            "diagonal": self.diagonal.tolist(),
            "offset": self.offset,
            "storage": self.storage.word,
        }

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Rebuilding it keeps the arrays of a copy read-only too.
        return Ising._of, (self.field, self.storage, self.offset)


def _checked(field: Any, storage: Coupling, offset: Any) -> tuple[FloatArray, Coupling, float]:
    """Return the parts of a model, the field and the offset checked."""
    own = np.zeros(storage.n) if field is None else checked_field(field, storage.n)
    return own, storage, checked_number(offset, "offset")

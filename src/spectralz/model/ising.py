"""The model: a pairwise binary distribution, checked once and then trusted.

Convention (Eq. (1) of the paper), the only one inside the package:
``x`` in {-1,+1}^n and ``P(x) = exp(offset + <field, x> + x' coupling x) / Z``. The coupling is symmetric, so
an edge that is counted once weighs ``J_ij = 2 A_ij``; the diagonal adds its trace to ``log Z`` and nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError, TooLargeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Factors", "Ising"]

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.int64]"
# scipy's stubs make the sparse classes generic; the scalar type is always float64 here.
Coupling: TypeAlias = "FloatArray | sp.csr_array[Any]"

# Products of rounded numbers (a covariance, say) are symmetric to a few units in the last place of the
# largest entry; anything beyond that is a mistake that averaging would hide.
SYMMETRY_TOLERANCE = 1e-10
# Sums of all weights must stay finite with room for the factors 2 and n that methods put on them.
LARGEST_TOTAL_WEIGHT = 1e300
# A coupling kept as factors is written out as a matrix only up to this many spins (3 GiB).
MOST_DENSE_SPINS = 20_000


class Factors(NamedTuple):
    """A coupling kept as ``sum_j values_j v_j v_j' + Diag(diagonal)``; the v_j are the rows of ``vectors``."""

    values: FloatArray
    vectors: FloatArray
    diagonal: FloatArray


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
    factors: Factors | None
    _matrix: Coupling | None

    def __init__(self, field: ArrayLike | None, coupling: ArrayLike | Any, offset: float = 0.0) -> None:
        checked = _checked_coupling(coupling)
        n = checked.shape[0]
        checked_field = np.zeros(n) if field is None else _checked_field(field, n)
        checked_offset = _checked_offset(offset)
        _refuse_overflow(checked_field, checked, checked_offset)
        self._set(checked_field, checked_offset, _frozen_coupling(checked), None)

    def _set(self, field: FloatArray, offset: float, matrix: Coupling | None, factors: Factors | None) -> None:
        object.__setattr__(self, "field", _frozen(field))
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "_matrix", matrix)

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
        checked_values = np.atleast_1d(_as_float_array(values, "values"))
        checked_vectors = np.atleast_2d(_as_float_array(vectors, "vectors"))
        if checked_values.ndim != 1 or checked_vectors.ndim != 2 or len(checked_values) != len(checked_vectors):
            raise ModelError(
                f"values has shape {checked_values.shape} and vectors {checked_vectors.shape}; "
                "give one number and one row of n numbers for each rank-1 term"
            )
        n = checked_vectors.shape[1]
        spread = _as_float_array(diagonal, "diagonal")
        if spread.shape not in ((), (n,)):
            raise ModelError(f"diagonal has shape {spread.shape}; a model of {n} spins wants ({n},) or one number")
        for array, name in ((checked_values, "values"), (checked_vectors, "vectors"), (spread, "diagonal")):
            _refuse_non_finite(array, name)
        checked_field = np.zeros(n) if field is None else _checked_field(field, n)
        checked_offset = _checked_offset(offset)
        with np.errstate(over="ignore"):
            norms = np.abs(checked_vectors).sum(axis=1)
            sizes = np.append(np.abs(checked_values) * norms**2, np.abs(np.broadcast_to(spread, (n,))).sum())
        _refuse_overflow(checked_field, sizes, checked_offset)
        factors = Factors(_frozen(checked_values), _frozen(checked_vectors), _frozen(np.broadcast_to(spread, (n,))))
        model = object.__new__(cls)
        model._set(checked_field, checked_offset, None, factors)
        return model

    @cached_property
    def coupling(self) -> Coupling:
        """A, symmetric n x n: a numpy array or a scipy CSR array, read-only."""
        if self._matrix is not None:
            return self._matrix
        assert self.factors is not None
        if self.n > MOST_DENSE_SPINS:
            raise TooLargeError(
                f"the coupling of {self.n} spins is kept as factors and would take {8 * self.n**2 / 2**30:.3g} GiB "
                "as a matrix; use a method that works on factors (quadrature, low_rank)"
            )
        values, vectors, diagonal = self.factors
        A = (values[:, None] * vectors).T @ vectors
        A = (A + A.T) / 2.0
        A[np.diag_indices(self.n)] += diagonal
        return _frozen(A)

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
        n = _checked_count(n)
        pairs = _checked_edges(edges, n)
        try:
            J = np.broadcast_to(_as_float_array(weights, "weights"), (len(pairs),))
        except ValueError:
            raise ModelError(
                f"weights has shape {np.shape(weights)} but there are {len(pairs)} edges; "
                "give one weight for each edge, or a single number for all"
            ) from None
        _refuse_non_finite(J, "weights")
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
        """Whether the coupling is kept as a sparse matrix."""
        return bool(sp.issparse(self._matrix))

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of the coupling, which only adds its sum to log Z."""
        if self.factors is not None:
            values, vectors, diagonal = self.factors
            return np.asarray(diagonal + np.einsum("j,ji,ji->i", values, vectors, vectors))
        own: FloatArray = self.coupling.diagonal()
        return own

    @cached_property
    def edge_count(self) -> int:
        """Number of pairs that are coupled, counted without listing them."""
        A: Any = self.coupling
        stored = A.nnz if self.is_sparse else np.count_nonzero(A)
        return int(stored - np.count_nonzero(A.diagonal())) // 2

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
        if self.is_sparse:
            upper = sp.triu(self.coupling, k=1, format="coo")
            i, j, values = upper.row, upper.col, upper.data
            order = np.lexsort((j, i))
            i, j, values = i[order], j[order], values[order]
        else:
            i, j = np.nonzero(np.triu(np.asarray(self.coupling), k=1))
            values = np.asarray(self.coupling)[i, j]
        pairs = np.column_stack([i, j]).astype(np.int64)
        return _frozen(pairs), _frozen(2.0 * values)

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
        if self.factors is not None:
            quadratic = (X @ self.factors.vectors.T) ** 2 @ self.factors.values + self.factors.diagonal.sum()
        else:
            quadratic = np.einsum("mi,im->m", X, self.coupling @ X.T)
        values: FloatArray = self.offset + X @ self.field + quadratic
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
        half = (self.field / 2.0)[:, None]
        if self.is_sparse:
            column = sp.csr_array(half)
            coupling = sp.block_array([[self.coupling, column], [column.T, None]], format="csr")
        else:
            coupling = np.block([[np.asarray(self.coupling), half], [half.T, np.zeros((1, 1))]])
        return Ising(np.zeros(self.n + 1), coupling, self.offset)

    def shift_diagonal(self, d: ArrayLike) -> Ising:
        """Add ``d`` to the diagonal of the coupling (Eq. (10)): ``log Z(A + D) = log Z(A) + sum(d)``.

        Parameters
        ----------
        d
            One number a spin, or one for all.
        """
        shift = _as_float_array(d, "d")
        if shift.shape not in ((), (self.n,)):
            raise ModelError(f"d has shape {shift.shape}; a model of {self.n} spins wants ({self.n},) or one number")
        shift = np.broadcast_to(shift, (self.n,))
        _refuse_non_finite(shift, "d")
        if self.factors is not None:
            values, vectors, diagonal = self.factors
            return Ising.from_factors(self.field, values, vectors, diagonal + shift, self.offset)
        if self.is_sparse:
            return Ising(self.field, self.coupling + sp.diags_array(shift, format="csr"), self.offset)
        return Ising(self.field, np.asarray(self.coupling) + np.diag(shift), self.offset)

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
        index, value = _checked_condition(spins, self.n)
        kept = np.setdiff1d(np.arange(self.n), index)
        if self.factors is not None:
            return self._condition_factors(index, value, kept)
        A, theta = self.coupling, self.field
        if self.is_sparse:
            rest, cross, fixed = A[kept][:, kept], A[kept][:, index], A[index][:, index]
        else:
            rest, cross, fixed = A[np.ix_(kept, kept)], A[np.ix_(kept, index)], A[np.ix_(index, index)]
        constant = self.offset + float(theta[index] @ value + value @ (fixed @ value))
        return Ising(theta[kept] + 2.0 * (cross @ value), rest, constant)

    def _condition_factors(self, index: IntArray, value: FloatArray, kept: IntArray) -> Ising:
        assert self.factors is not None
        values, vectors, diagonal = self.factors
        sums = vectors[:, index] @ value
        constant = float(self.field[index] @ value + values @ sums**2 + diagonal[index].sum())
        field = self.field[kept] + 2.0 * (values * sums) @ vectors[:, kept]
        return Ising.from_factors(field, values, vectors[:, kept], diagonal[kept], self.offset + constant)

    def submodel(self, spins: ArrayLike) -> Ising:
        """Return the model of some spins alone, without the offset and without couplings to the others."""
        index = _checked_spins(spins, self.n)
        if self.factors is not None:
            values, vectors, diagonal = self.factors
            return Ising.from_factors(self.field[index], values, vectors[:, index], diagonal[index])
        A = self.coupling
        return Ising(self.field[index], A[index][:, index] if self.is_sparse else A[np.ix_(index, index)])

    def scaled(self, beta: float) -> Ising:
        """Return the model at inverse temperature ``beta``: every log-weight, offset included, times beta."""
        factor = _checked_number(beta, "beta")
        with np.errstate(over="ignore"):
            if self.factors is not None:
                values, vectors, diagonal = self.factors
                return Ising.from_factors(
                    factor * self.field, factor * values, vectors, factor * diagonal, factor * self.offset
                )
            return Ising(factor * self.field, factor * self.coupling, factor * self.offset)

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
        if self.factors is not None:
            values, vectors, _ = self.factors
            most = float((np.abs(values) * (vectors**2).max(axis=1, initial=0.0)).sum())
            return f"Ising(n={self.n}, rank {len(values)} plus diagonal, |A| at most {most:.3g}, {field}{offset})"
        return (
            f"Ising(n={self.n}, edges={self.edge_count}, density={self.density:.3g}, "
            f"|A| mean {self.coupling_mean:.3g} max {self.coupling_max:.3g}, {field}{offset}, {self.storage})"
        )

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
            "storage": self.storage,
        }

    @property
    def storage(self) -> str:
        """How the coupling is kept: dense, sparse or factors."""
        return "factors" if self.factors is not None else "sparse" if self.is_sparse else "dense"

    @property
    def density(self) -> float:
        """The share of all pairs that are coupled."""
        possible = self.n * (self.n - 1) // 2
        return self.edge_count / possible if possible else 0.0

    @property
    def coupling_mean(self) -> float:
        """The mean |A_ij| of the pairs that are coupled."""
        size = np.abs(self.coupling.data if self.is_sparse else self.coupling)
        total = float(size.sum()) - float(np.abs(self.diagonal).sum())
        return total / (2 * self.edge_count) if self.edge_count else 0.0

    @property
    def coupling_max(self) -> float:
        """The largest |A_ij| off the diagonal."""
        if self.is_sparse:
            off = self.coupling - sp.diags_array(self.diagonal, format="csr")
            return float(np.abs(off.data).max(initial=0.0))
        A = np.abs(np.asarray(self.coupling))
        np.fill_diagonal(A, 0.0)
        return float(A.max(initial=0.0))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Rebuilding through the constructors keeps the arrays of a copy read-only too.
        if self.factors is not None:
            return Ising.from_factors, (self.field, *self.factors, self.offset)
        return Ising, (self.field, self.coupling, self.offset)


def _frozen(array: Any) -> Any:
    array = np.array(array)
    array.flags.writeable = False
    return array


def _frozen_coupling(coupling: Any) -> Any:
    if not sp.issparse(coupling):
        return _frozen(coupling)
    for part in (coupling.data, coupling.indices, coupling.indptr):
        part.flags.writeable = False
    return coupling


def _as_float_array(values: Any, name: str) -> FloatArray:
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ModelError(f"{name} is a masked array with masked entries; fill them first, with values.filled(0.0), say")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ModelError(f"{name} is not a rectangular array of numbers; are its rows of unequal length?") from None
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{name} holds {array.dtype} values; it must hold real numbers")
    return array.astype(np.float64)


def _refuse_non_finite(array: FloatArray, name: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = ", ".join(str(int(k)) for k in bad[0])
        raise ModelError(
            f"{name}[{place}] is {array[tuple(bad[0])]}; every number of a model must be finite "
            "(write a hard constraint with Ising.condition, not with an infinite weight)"
        )


def _checked_count(n: Any) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise ModelError(f"n is {n!r}; the number of spins must be an integer") from None
    if count < 0:
        raise ModelError(f"n is {count}; the number of spins cannot be negative")
    return count


def _checked_number(value: Any, name: str) -> float:
    number = _as_float_array(value, name)
    if number.ndim != 0:
        raise ModelError(f"{name} has shape {number.shape}; it must be a single number")
    if not np.isfinite(number):
        raise ModelError(f"{name} is {float(number)}; it must be finite")
    return float(number)


def _checked_offset(offset: Any) -> float:
    return _checked_number(offset, "offset")


def _checked_field(field: Any, n: int) -> FloatArray:
    array = _as_float_array(field, "field")
    if array.ndim != 1:
        raise ModelError(f"field has shape {array.shape}; it must be a vector with one number a spin")
    if len(array) != n:
        raise ModelError(f"field has {len(array)} numbers and coupling is {n} x {n}; their lengths must agree")
    _refuse_non_finite(array, "field")
    return array


def _checked_coupling(coupling: Any) -> Coupling:
    if sp.issparse(coupling):
        return _checked_sparse(coupling)
    A = _as_float_array(coupling, "coupling")
    if A.shape == (0,):
        A = A.reshape(0, 0)
    _refuse_not_square(A.shape)
    _refuse_non_finite(A, "coupling")
    if np.array_equal(A, A.T):
        return A
    difference = np.abs(A / 2.0 - A.T / 2.0)
    i, j = np.unravel_index(int(np.argmax(difference)), A.shape)
    _refuse_asymmetric(float(difference[i, j]), float(np.abs(A).max()), int(i), int(j), float(A[i, j]), float(A[j, i]))
    return A / 2.0 + A.T / 2.0


def _checked_sparse(coupling: Any) -> Coupling:
    if coupling.dtype.kind not in "biuf":
        raise ModelError(f"coupling holds {coupling.dtype} values; it must hold real numbers")
    _refuse_not_square(coupling.shape)
    A = sp.csr_array(coupling, dtype=np.float64, copy=True)
    A.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(A.data))
    if len(bad):
        row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
        raise ModelError(
            f"coupling[{row}, {int(A.indices[bad[0]])}] is {A.data[bad[0]]}; every number of a model must be finite "
            "(write a hard constraint with Ising.condition, not with an infinite weight)"
        )
    difference = (A / 2.0 - A.T / 2.0).tocoo()
    if len(difference.data) and np.any(difference.data):
        worst = int(np.argmax(np.abs(difference.data)))
        i, j = int(difference.row[worst]), int(difference.col[worst])
        size = float(np.abs(A.data).max())
        _refuse_asymmetric(abs(float(difference.data[worst])), size, i, j, float(A[i, j]), float(A[j, i]))
        A = sp.csr_array(A / 2.0 + A.T / 2.0)
    A.eliminate_zeros()
    A.sort_indices()
    return A


def _refuse_not_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ModelError(f"coupling has shape {shape}; it must be a square matrix, n x n")


def _refuse_asymmetric(difference: float, size: float, i: int, j: int, a_ij: float, a_ji: float) -> None:
    if difference > SYMMETRY_TOLERANCE * size:
        raise ModelError(
            f"coupling is not symmetric: [{i}, {j}] is {a_ij:.6g} and [{j}, {i}] is {a_ji:.6g}; "
            "pass (A + A.T) / 2, which gives every state the same weight"
        )


def _refuse_overflow(field: FloatArray, coupling: Any, offset: float) -> None:
    values = coupling.data if sp.issparse(coupling) else coupling
    with np.errstate(over="ignore"):
        total = float(np.abs(field).sum() + np.abs(values).sum() + abs(offset))
    if total > LARGEST_TOTAL_WEIGHT:
        raise ModelError(
            f"the absolute weights add up to {total:.3g}; above {LARGEST_TOTAL_WEIGHT:.0e} their sums overflow, "
            "so scale the model down"
        )


def _checked_edges(edges: Any, n: int) -> IntArray:
    try:
        array = np.asarray(edges)
    except ValueError:
        raise ModelError("edges is not an array of pairs (i, j); are its rows of unequal length?") from None
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ModelError(f"edges has shape {array.shape}; it must be m x 2, one pair (i, j) an edge")
    if array.dtype.kind not in "iu":
        raise ModelError(f"edges holds {array.dtype} values; spins are named by integers from 0 to {n - 1}")
    pairs = array.astype(np.int64)
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if len(outside):
        k = outside[0]
        raise ModelError(f"edge {k} joins spins {tuple(pairs[k].tolist())}; spins run from 0 to {n - 1}")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        k = loops[0]
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


def _checked_spins(spins: Any, n: int) -> IntArray:
    array = np.asarray(spins)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ModelError(
            f"spins holds {array.dtype} values of shape {array.shape}; "
            "give a list of integers (of a mask: np.flatnonzero)"
        )
    if array.min() < 0 or array.max() >= n:
        raise ModelError(f"spins names {int(array.min())} to {int(array.max())}; spins run from 0 to {n - 1}")
    if len(np.unique(array)) < len(array):
        raise ModelError("spins names a spin more than once; name each once")
    return array.astype(np.int64)


def _checked_condition(spins: Any, n: int) -> tuple[IntArray, FloatArray]:
    if not isinstance(spins, Mapping):
        raise ModelError(f"condition wants a mapping like {{3: +1, 7: -1}}, got {type(spins).__name__}")
    index = []
    for spin, value in spins.items():
        try:
            i = operator.index(spin)
        except TypeError:
            raise ModelError(f"condition names spin {spin!r}; spins are named by integers from 0 to {n - 1}") from None
        if not 0 <= i < n:
            raise ModelError(f"condition names spin {i}; spins run from 0 to {n - 1}")
        if value not in (-1, 1):
            raise ModelError(f"condition sets spin {i} to {value!r}; a spin is -1 or +1")
        index.append(i)
    return np.array(index, dtype=np.int64), np.array([float(v) for v in spins.values()])

"""The model: a pairwise binary distribution, checked once and then trusted.

Convention (Eq. (1) of the paper), the only one inside the package:
``x`` in {-1,+1}^n and ``P(x) = exp(offset + <field, x> + x' coupling x) / Z``. The coupling is symmetric, so
an edge that is counted once weighs ``J_ij = 2 A_ij``; the diagonal adds its trace to ``log Z`` and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError, printable
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.error_free import Lost, Parts, RowSums, exact_sum, row_sums, two_sum
from spectralz.kernels.terms import NO_TERMS, SpinTerms, Terms
from spectralz.model.checks import (
    as_float_array,
    checked_count,
    checked_edges,
    checked_field,
    checked_number,
    checked_spins,
    refuse_non_finite,
    refuse_overflow,
)
from spectralz.model.columns import column_names, states_in_order
from spectralz.model.constraints import NO_CONSTRAINTS, Constraints
from spectralz.model.coupling.entries import coupling_of, joined, symmetric
from spectralz.model.coupling.structured import Bipartite, Factored
from spectralz.model.names import Names, are_default, checked_names, index_of, names_in_short, places_of
from spectralz.model.pairs import checked_pairs
from spectralz.model.statements import Statement, placed
from spectralz.model.values import checked_condition, spins_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from spectralz.model.coupling.base import Coupling, Factors, FloatArray, IntArray, Matrix
    from spectralz.model.polynomial import Polynomial
    from spectralz.model.values import Values


NOTHING_LOST = Lost()


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Ising:
    r"""Make a pairwise binary model: spins that are -1 or +1, with a field each and couplings between pairs.

    The probability of a state x is

    .. math::

       P(x) = \frac{1}{Z} \exp\Bigl(\text{offset} + \sum_i \theta_i x_i + x^\top A x\Bigr),

    where Z is the sum over all states.

    Parameters
    ----------
    field
        theta, one number per spin; None for no field.
    coupling
        A, symmetric n x n, a numpy array or any scipy.sparse matrix (stored as CSR); None for spins that are not
        coupled. An edge counted once weighs ``J_ij = 2 A_ij``: see :meth:`from_edges` and :meth:`from_hamiltonian`
        for models written that way.
    offset
        A constant added to every state's log-weight, and so to log Z.
    names
        One name per spin, all different: text, numbers or anything hashable. Evidence, marginals, samples, pictures and
        files then use them. Without names (None) spins are called 0 to n - 1.

    Attributes
    ----------
    values
        How evidence and states may be written: ``"pm1"``, -1 and +1; or ``"01"`` for models made from 0/1 data, which
        take 0 and 1 as well. The 1 is the spin +1 in both. Answers are in -1 and +1.
    constraints
        What states must satisfy to have any weight, by spin index; none at first (:meth:`with_constraints`).

    Raises
    ------
    ModelError
        If the arrays do not make a model; the message says what is wrong.

    Notes
    -----
    ``model == other`` compares every number, exactly, and the names; the storage of the coupling does not matter.
    Models can be members of sets and keys of dictionaries. ``model + other`` adds log-weights, ``beta * model``
    multiplies them.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising(field=[0.1, -0.2], coupling=[[0.0, 0.5], [0.5, 0.0]])
    >>> model
    Ising(n=2, edges=1, density=1, |A| mean 0.5 max 0.5, |field| max 0.2, dense)
    >>> float(model.log_weight([+1, -1]))
    -0.7
    >>> 2.0 * model == model + model
    True
    """

    field: FloatArray
    offset: float
    storage: Coupling
    names: tuple[Hashable, ...] | None
    values: Values
    lost: Lost
    constraints: Constraints

    # numpy must leave arithmetic to this class: np.float64(2) * model is a model, not an array.
    __array_ufunc__ = None

    def __init__(
        self,
        field: ArrayLike | None = None,
        coupling: ArrayLike | Any = None,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> None:
        self._keep(*_checked(field, coupling_of(_no_coupling(field) if coupling is None else coupling), offset, names))

    def _keep(
        self,
        field: FloatArray,
        storage: Coupling,
        offset: float,
        names: Names = None,
        values: Values = "pm1",
        lost: Lost = NOTHING_LOST,
        constraints: Constraints = NO_CONSTRAINTS,
    ) -> None:
        """Keep numbers that make a model, unless they are too large; from here on they are read-only.

        ``lost`` bounds what rounding has changed on the way from the numbers of the user to these.
        """
        with np.errstate(over="ignore"):
            total = storage.total
        refuse_overflow(field, total, offset)
        field.flags.writeable = False
        storage.freeze()
        for part, value in zip(fields(self), (field, offset, storage, names, values, lost, constraints), strict=True):
            object.__setattr__(self, part.name, value)

    @classmethod
    def _of(cls, *parts: Any, **others: Any) -> Ising:
        """Make a model from parts that are checked and not shared, as :meth:`_keep` takes them."""
        model = object.__new__(cls)
        model._keep(*parts, **others)
        return model

    def _changed(self, **parts: Any) -> Ising:
        """Return the same model with other parts."""
        return Ising._of(**({part.name: getattr(self, part.name) for part in fields(self)} | parts))

    def _having_lost(self, in_terms: float, in_constant: float = 0.0) -> Ising:
        """Return the same model, whose log-weights rounding may have changed by so much more."""
        return self._changed(lost=self.lost.and_more(in_terms, in_constant))

    @classmethod
    def from_factors(
        cls,
        field: ArrayLike | None,
        values: ArrayLike,
        vectors: ArrayLike,
        diagonal: ArrayLike = 0.0,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> Ising:
        """Make a model whose coupling ``sum_j values_j v_j v_j' + Diag(diagonal)`` is never written out as a matrix.

        Only the factors take memory, so that a million spins of rank 1 are no problem. The methods ``quadrature`` and
        ``low_rank`` work on the factors directly. ``coupling`` and ``edges()`` write out the matrix, for up to 20,000
        spins.

        Parameters
        ----------
        field
            theta, one number per spin; None for no field.
        values, vectors
            One number, and one row of n numbers, per rank-1 term; the rows need not be unit vectors or orthogonal.
        diagonal
            Added to the coupling's diagonal; one number per spin, or one for all.
        offset, names
            As in :class:`Ising`.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> sz.Ising.from_factors(None, [0.5], np.full((1, 1_000_000), 1e-3), diagonal=-5e-7)
        Ising(n=1000000, rank 1 plus diagonal, |A| at most 5e-07, |field| max 0)
        """
        return cls._of(*_checked(field, Factored.checked(values, vectors, diagonal), offset, names))

    @classmethod
    def from_bipartite(
        cls,
        weights: ArrayLike,
        field: ArrayLike | None = None,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> Ising:
        """Make a model of two layers of spins that are coupled only to each other, as in an RBM.

        The log-weight is ``<field, x> + sum_ij weights_ij x_i x_(rows + j)``; only the block of weights is stored.

        Parameters
        ----------
        weights
            J, first layer x second layer; an edge is counted once.
        field
            theta of the spins of the first layer, then of the second; None for no field.
        offset, names
            As in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_bipartite([[1.0, -2.0]])
        >>> float(model.log_weight([1, 1, -1]))
        3.0
        """
        return cls._of(*_checked(field, Bipartite.checked(weights), offset, names))

    @property
    def coupling(self) -> Matrix:
        """A, symmetric n x n: a numpy array or a scipy CSR array, read-only."""
        return self.storage.matrix

    @property
    def factors(self) -> Factors | None:
        """The rank-1 terms of the coupling, if it is stored as such; otherwise None."""
        return self.storage.terms

    @classmethod
    def from_edges(
        cls,
        n: int,
        edges: ArrayLike,
        weights: ArrayLike,
        field: ArrayLike | None = None,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> Ising:
        """Make a sparse model from edges that are counted once: log-weight ``<field, x> + sum J_ij x_i x_j``.

        Parameters
        ----------
        n
            Number of spins.
        edges
            Pairs of spins, m x 2, each pair once and in either order.
        weights
            J, one number per edge or one for all; stored as ``A_ij = A_ji = J_ij / 2``.
        field, offset, names
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
        return cls(field, symmetric(n, pairs, J / 2.0), offset, names)

    @classmethod
    def from_hamiltonian(
        cls,
        h: ArrayLike | None,
        J: ArrayLike | Any,
        beta: float = 1.0,
        names: Iterable[Hashable] | None = None,
    ) -> Ising:
        """Make a model from a Hamiltonian in the convention of physics, at inverse temperature ``beta``.

        ``H(s) = - sum_{i<j} J_ij s_i s_j - sum_i h_i s_i``, and P(s) = exp(-beta H(s)) / Z.

        Parameters
        ----------
        h
            One number per spin; None for no field.
        J
            n x n, symmetric or zero below its diagonal; either way each pair i < j counts once. An array or any
            scipy.sparse matrix. Anything else is refused, and so is a weight on the diagonal.
        beta
            Inverse temperature.
        names
            As in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> pair = sz.Ising.from_hamiltonian(h=[0.5, 0.0], J=[[0, 2], [2, 0]], beta=0.1)
        >>> pair == sz.Ising.from_hamiltonian(h=[0.5, 0.0], J=[[0, 2], [0, 0]], beta=0.1)
        True
        >>> round(float(pair.log_weight([+1, -1])), 12)  # -0.1 H, where H = +2 - 0.5
        -0.15
        """
        pairs = checked_pairs(J, "J", "s_i s_i is 1, so it only adds a constant to H")
        return cls(h, pairs / 2.0, names=names).scaled(beta)

    @classmethod
    def from_binary(
        cls,
        bias: ArrayLike | None,
        weights: ArrayLike | Any,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> Ising:
        """Make a model from variables that are 0 and 1, as in a Boltzmann machine.

        ``log-weight(v) = offset + sum_i bias_i v_i + sum_{i<j} weights_ij v_i v_j``, v in {0, 1}^n. Spin i is +1 if
        v_i is 1 and -1 if it is 0: ``v = (1 + x) / 2``.

        Parameters
        ----------
        bias
            One number per variable; None for none.
        weights
            n x n, symmetric or zero below its diagonal; either way each pair i < j counts once. An array or any
            scipy.sparse matrix. Anything else is refused, and so is a weight on the diagonal; it belongs to the bias.
        offset, names
            As in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_binary(bias=[1.0, 0.0], weights=[[0, 2], [0, 0]])
        >>> [float(w) for w in model.log_weight([[-1, -1], [1, -1], [1, 1]])]  # of v = 00, 10, 11
        [0.0, 1.0, 3.0]
        """
        pairs = checked_pairs(weights, "weights", "v_i v_i is v_i, so add it to the bias")
        n = pairs.shape[0]
        biases = np.zeros(n) if bias is None else checked_field(bias, n, "bias")
        constant = checked_number(offset, "offset")
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are too large are refused by their size
            field, constant, lost = field_of_binary(biases, row_sums(pairs), constant)
        return cls._of(field, coupling_of(pairs / 8.0), constant, checked_names(names, n), "01", lost)

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    def index(self, name: Hashable) -> int:
        """Return the index of the spin called ``name``.

        A whole number is the index itself if the model has no names, or no whole number among its names.

        Examples
        --------
        >>> import spectralz as sz
        >>> pair = sz.Ising([0.5, 0.0], [[0, 1], [1, 0]], names=["rain", "wet"])
        >>> pair.index("wet"), pair.index(0)
        (1, 0)
        """
        return index_of(name, self.n, *self._places)

    @cached_property
    def _places(self) -> tuple[Mapping[Hashable, int] | None, bool]:
        """The index of every name, and whether one of them is a whole number."""
        return places_of(self.names)

    def label(self, i: int) -> str:
        """Return the printed name of spin ``i``: its name, or ``spin 3``.

        Examples
        --------
        >>> import spectralz as sz
        >>> pair = sz.Ising([0.5, 0.0], [[0, 1], [1, 0]])
        >>> pair.label(1), pair.named(["rain", "wet"]).label(1)
        ('spin 1', 'wet')
        """
        return f"spin {i}" if self.names is None else printable(self.names[i])

    def named(self, names: Iterable[Hashable] | None) -> Ising:
        """Return the same model with these names, one per spin; None for none."""
        return self._changed(names=checked_names(names, self.n))

    def with_constraints(self, *constraints: Statement) -> Ising:
        """Return the model in which states that break one of these constraints have weight zero.

        They are made by :mod:`spectralz.constraints`, and are added to those that the model has.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising([0.5, 0.0], names=["a", "b"]).with_constraints(sz.constraints.equal("a", "b"))
        >>> model
        Ising(n=2, edges=0, density=0, |A| mean 0 max 0, |field| max 0.5, sparse, 1 constraint, names a, b)
        >>> model.log_weight([[+1, +1], [+1, -1]]).tolist()
        [0.5, -inf]
        """
        more = placed(constraints, self.index, self.values)
        return self._changed(constraints=Constraints.of([*self.constraints, *more]))

    @property
    def unconstrained(self) -> Ising:
        """The same terms without the constraints, so that every state has weight."""
        return self._changed(constraints=NO_CONSTRAINTS)

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
    def higher(self) -> Terms:
        """The terms of three and more spins: none, unlike those of a :class:`Polynomial`."""
        return NO_TERMS

    @property
    def terms_by_spin(self) -> SpinTerms:
        """The same terms, and those of each spin."""
        return SpinTerms.of(NO_TERMS, self.n)

    def simplest(self) -> Ising:
        """Return the model itself, which has no terms of three and more spins."""
        return self

    @property
    def graph(self) -> IntArray:
        """The pairs of spins that are coupled or share a constraint, m x 2, i < j, in order."""
        return self.connections.edges()[0]

    @property
    def pair_count(self) -> int:
        """Number of pairs that are coupled or share a constraint, or somewhat more."""
        return self.edge_count + (len(self.constraints.cliques) if self.constraints else 0)

    @property
    def connections(self) -> Coupling:
        """A coupling with the same graph: the model's own if it has no constraints."""
        return joined(self.storage, self.constraints.cliques) if self.constraints else self.storage

    @property
    def constant(self) -> float:
        """The constant in every log-weight: the offset plus the trace of the coupling, rounded once."""
        return self._constant[0]

    @cached_property
    def _constant(self) -> tuple[float, float]:
        """The constant, and a bound on its error."""
        numbers, left_out = self.storage.trace()
        return exact_sum(Parts([self.offset, *numbers], left_out))

    @property
    def rounding(self) -> float:
        """The largest error of a log-weight that is summed exactly from ``field``, ``edges()`` and ``constant``.

        It is zero if the entries of the coupling are stored and the constant is a double-precision number. If the
        coupling is stored as factors, its entries are sums of products, which are rounded. A model that was made from
        other numbers, of variables 0 and 1 or by fixing spins, includes what that has rounded.

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Ising([0.1, 0.2], [[0.0, 0.3], [0.3, 0.0]]).rounding
        0.0
        >>> 0.0 < sz.Ising.from_factors([0.1, 0.2], [0.3], [[0.4, 0.5]]).rounding < 1e-16
        True
        """
        return self.rounding_of_terms + self._constant[1] + self.lost.in_constant

    @property
    def rounding_of_terms(self) -> float:
        """The part of :attr:`rounding` that differs from state to state, and so changes means."""
        return self.storage.rounding + self.lost.in_terms

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
        """Return the log of the unnormalized probability of one state (n,) or of many (m, n).

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Ising([1.0], [[0.0]]).log_weight([[-1], [+1]]).tolist()
        [-1.0, 1.0]
        """
        states = np.asarray(states_in_order(x, column_names(self)))
        if states.ndim not in (1, 2) or states.shape[-1] != self.n:
            raise ModelError(
                f"states have shape {states.shape}; a model of {self.n} spins needs ({self.n},) or (m, {self.n})"
            )
        X = np.atleast_2d(spins_of(states, self.values)).astype(np.float64)
        values: FloatArray = self.offset + X @ self.field + self.storage.quadratic(X)
        if self.constraints:
            values[~self.constraints.hold(X)] = -np.inf
        return values if states.ndim == 2 else values[0]

    def absorb_field(self) -> Ising:
        """Return the model with the field turned into one more spin at the end (paper, Sec. 3): ``Z = Z' / 2``.

        The result has n + 1 spins, no field, and ``field / 2`` in the last row and column of its coupling.

        Examples
        --------
        >>> import numpy as np, spectralz as sz
        >>> model = sz.generators.complete(n=5, strength=1.0, seed=0)
        >>> whole = sz.log_z(model.absorb_field()).log_z
        >>> bool(np.isclose(sz.log_z(model).log_z, whole - np.log(2)))
        True
        """
        if self.constraints:
            raise ModelError("absorb_field turns all spins at once, which constraints do not allow; keep the field")
        bordered = self.storage.bordered(self.field / 2.0)
        return self._changed(field=np.zeros(self.n + 1), storage=bordered, names=None)

    def shift_diagonal(self, d: ArrayLike) -> Ising:
        """Return the model with ``d`` added to its diagonal (Eq. (10)): ``log Z(A + D) = log Z(A) + sum(d)``.

        Parameters
        ----------
        d
            One number per spin, or one for all.
        """
        shift = as_float_array(d, "d")
        if shift.shape not in ((), (self.n,)):
            raise ModelError(f"d has shape {shift.shape}; a model of {self.n} spins needs ({self.n},) or one number")
        shift = np.broadcast_to(shift, (self.n,))
        refuse_non_finite(shift, "d")
        return self._changed(storage=self.storage.plus_diagonal(shift))

    def condition(self, spins: Mapping[Any, int]) -> Ising:
        """Fix some spins, by their names, and return the model of the others, in their old order.

        Its Z is the sum over the states that agree with ``spins``. So the probability of the fixed values is the
        ratio of the two partition functions. A model made from 0/1 data takes 0 for -1 (:attr:`values`).

        Examples
        --------
        >>> import spectralz as sz
        >>> pair = sz.Ising([0.0, 0.0], [[0.0, 0.5], [0.5, 0.0]])
        >>> pair.condition({0: +1})
        Ising(n=1, edges=0, density=0, |A| mean 0 max 0, |field| max 1, dense)
        """
        return self._given(*self.evidence(spins))

    def _given(self, index: IntArray, value: FloatArray) -> Ising:
        """Return the model of the spins that are not in ``index``, whose values, -1 or +1, are given."""
        kept = np.setdiff1d(np.arange(self.n), index)
        left = self.storage.given(index, value, kept)
        field = self.field[kept] + left.field
        terms = [self.offset, *(self.field[index] * value).tolist(), left.constant]
        constant, in_constant = exact_sum(Parts(terms, left.lost))
        lost = self.lost.and_more(left.lost + UNIT_ROUNDOFF * float(np.abs(field).sum()), in_constant)
        place = np.full(self.n, -1)
        place[kept] = np.arange(len(kept))
        fixed = dict(zip(index.tolist(), value.astype(int).tolist(), strict=True))
        return self._changed(
            field=field,
            storage=left.rest,
            offset=constant,
            names=self._names_of(kept),
            lost=lost,
            constraints=self.constraints.given(fixed).renamed(place),
        )

    def evidence(self, spins: Mapping[Any, int]) -> tuple[IntArray, FloatArray]:
        """Return the indices of spins given by name, and their values, checked."""
        return checked_condition(spins, self.index, self.values)

    def _names_of(self, index: IntArray) -> Names:
        return None if self.names is None else tuple(self.names[i] for i in index)

    def submodel(self, spins: ArrayLike) -> Ising:
        """Return the model of some spins alone, without the offset, and the couplings and constraints with others."""
        index = checked_spins(spins, self.n)
        parts = {"field": self.field[index], "storage": self.storage.among(index), "names": self._names_of(index)}
        if self.constraints:
            parts["constraints"] = self.constraints.among(index)
        return self._changed(offset=0.0, lost=Lost(self.lost.in_terms), **parts)

    def scaled(self, beta: float) -> Ising:
        """Return the model at inverse temperature ``beta``: every log-weight, offset included, times beta.

        Constraints stay as they are, so that log Z at beta = 0 is the log of the number of states that satisfy them.
        """
        factor = checked_number(beta, "beta")
        with np.errstate(over="ignore"):
            field, storage, offset = factor * self.field, self.storage.times(factor), factor * self.offset
            lost = Lost(abs(factor) * self.lost.in_terms, abs(factor) * self.lost.in_constant)
            if abs(math.frexp(factor)[0]) != 0.5:  # products with powers of two are not rounded
                lost = lost.and_more(*_rounding_of(field, storage, offset))
        return self._changed(field=field, storage=storage, offset=offset, lost=lost)

    def __mul__(self, beta: Any) -> Ising:
        return self.scaled(beta) if np.isscalar(beta) or np.ndim(beta) == 0 else NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Ising:
        if not isinstance(other, Ising):
            return NotImplemented
        if self.n != other.n:
            raise ModelError(f"the models have {self.n} and {other.n} spins; add only models of the same spins")
        if self.names is not None and other.names is not None and self.names != other.names:
            raise ModelError("the models' names or their order differ; give both the same names first, with named")
        names = other.names if self.names is None else self.names
        with np.errstate(over="ignore"):
            field, offset = self.field + other.field, self.offset + other.offset
            storage = self.storage.plus(other.storage)
            lost = self.lost.and_more(*other.lost).and_more(*_rounding_of(field, storage, offset))
        values: Values = "01" if "01" in (self.values, other.values) else "pm1"
        both = Constraints.of([*self.constraints, *other.constraints])
        return Ising._of(field, storage, offset, names, values, lost, both)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ising):
            return NotImplemented
        return self is other or (
            self._comparable == other._comparable
            and np.array_equal(self.field, other.field)
            and self.storage.equals(other.storage)
        )

    def __hash__(self) -> int:
        # The coupling is left out, since equal couplings may be stored differently. Adding 0.0 turns -0.0 into 0.0.
        return hash((self._comparable, (self.field + 0.0).tobytes()))

    @property
    def _comparable(self) -> tuple[Any, ...]:
        return self.n, self.offset, None if are_default(self.names) else self.names, frozenset(self.constraints)

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
        connected = joined(self.storage, self.constraints.pairs) if self.constraints else self.storage
        return connected.components()

    def __repr__(self) -> str:
        field = f"|field| max {float(np.abs(self.field).max(initial=0.0)):.3g}"
        offset = f", offset {self.offset:.6g}" if self.offset else ""
        kept = f", {self.storage.word}" if self.storage.terms is None else ""
        names = "" if self.names is None else f", {names_in_short(self.names)}"
        return f"Ising(n={self.n}, {self.storage.summary()}, {field}{offset}{kept}{self.constraints.in_words}{names})"

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.model(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the couplings with :func:`spectralz.plots.model`; return the Axes."""
        from spectralz.show import plots

        return plots.model(self, ax)

    def to_polynomial(self) -> Polynomial:
        """Return the same model as a :class:`Polynomial`, whose terms are the fields and the edges.

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0]).to_polynomial().terms
        {(0,): 0.5, (0, 1): 1.0}
        """
        from spectralz.model.polynomial import Polynomial

        constant, lost = self._constant
        edges, J = self.edges()
        pairwise = Ising.from_edges(self.n, edges, J, self.field, constant, self.names)
        more = self.lost.and_more(self.storage.rounding, lost)
        parts = {"values": self.values, "lost": more, "constraints": self.constraints}
        return Polynomial._of(pairwise._changed(**parts), NO_TERMS)

    def to_dimod(self) -> Any:
        """Return the ``dimod.BinaryQuadraticModel`` of spins whose energy is minus the log-weight (extra ``dimod``).

        ``E(x) = offset + sum linear_i x_i + sum_{i<j} quadratic_ij x_i x_j`` with linear = -field, quadratic = -J and
        offset = -constant; its variables have the spins' names. ``sz.from_dimod`` is the inverse.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0], names=["a", "b"])
        >>> float(model.to_dimod().energy({"a": +1, "b": +1}))
        -1.5
        >>> sz.from_dimod(model.to_dimod()) == model
        True
        """
        from spectralz.io.interop import to_dimod

        return to_dimod(self)

    def to_networkx(self) -> Any:
        """Return the ``networkx.Graph`` with J (counted once) as the edges' ``weight`` (extra ``networkx``).

        Nodes have the spins' names and the attribute ``field``; the graph has the attribute ``offset``.
        ``sz.from_networkx`` is the inverse.

        Examples
        --------
        >>> import spectralz as sz
        >>> G = sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0], names=["a", "b"]).to_networkx()
        >>> G.edges["a", "b"]["weight"], G.nodes["a"]["field"]
        (1.0, 0.5)
        """
        from spectralz.io.interop import to_networkx

        return to_networkx(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain Python values, ready for ``json.dumps``; edges are counted once, with weights J.

        Raises
        ------
        TooLargeError
            If the coupling is stored as factors and is too large to be written out.

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
            "names": None if self.names is None else list(self.names),
            **self.constraints.as_entry,
        }

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Rebuilding the model keeps the arrays of a copy read-only too.
        parts = (self.field, self.storage, self.offset, self.names, self.values, self.lost, self.constraints)
        return Ising._of, parts


def _rounding_of(field: FloatArray, storage: Coupling, offset: float) -> Lost:
    """Return what is lost if every number has been rounded once."""
    in_terms = float(np.abs(field).sum()) + storage.total
    return Lost(UNIT_ROUNDOFF * in_terms, UNIT_ROUNDOFF * abs(offset))


def field_of_binary(bias: FloatArray, sums: RowSums, offset: float) -> tuple[FloatArray, float, Lost]:
    """Return the field of spins x = 2 v - 1, the constant, and what rounding changes, for variables v that are 0 and 1.

    ``offset + sum_i bias_i v_i + sum_(i<j) w_ij v_i v_j`` is ``constant + sum_i field_i x_i + sum_(i<j) (w_ij / 4) x_i
    x_j``, where ``sums`` are the sums of w_ij over j.
    """
    half, high, low = bias / 2.0, sums.high / 4.0, sums.low / 4.0
    total, rest = two_sum(half, high)
    field, lost = two_sum(total, rest + low)
    left_out = float((np.abs(lost) + UNIT_ROUNDOFF * (np.abs(rest + low) + np.abs(low)) + sums.left_out / 4.0).sum())
    parts = [offset, *half.tolist(), *(high / 2.0).tolist(), *(low / 2.0).tolist()]
    constant, in_constant = exact_sum(Parts(parts, float(sums.left_out.sum()) / 8.0))
    return field, constant, Lost(1.01 * left_out, in_constant)


def _no_coupling(field: Any) -> Any:
    """Return the coupling of as many independent spins as the field has numbers."""
    if field is None:
        raise ModelError("there is neither a field nor a coupling; give one of them: Ising(coupling=A)")
    n = len(np.atleast_1d(as_float_array(field, "field")))
    return sp.csr_array((n, n))


def _checked(field: Any, storage: Coupling, offset: Any, names: Any) -> tuple[FloatArray, Coupling, float, Names]:
    """Return the parts of a model, all but the coupling checked."""
    theta = np.zeros(storage.n) if field is None else checked_field(field, storage.n)
    return theta, storage, checked_number(offset, "offset"), checked_names(names, storage.n)

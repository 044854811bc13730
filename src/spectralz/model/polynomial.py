"""Models with terms of three and more spins: the log-weight is a polynomial of the spins.

A model is kept in two parts: its terms of at most two spins, an :class:`Ising`, and the others. So whatever is fast for
pairs stays fast.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spectralz.errors import ModelError, TooLargeError, shown
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import frozen
from spectralz.kernels.error_free import NOTHING, Lost, Parts, exact_sum
from spectralz.kernels.terms import NO_TERMS, SpinTerms, Terms
from spectralz.model.checks import as_float_array, checked_count, checked_number, checked_spins, refuse_overflow
from spectralz.model.columns import column_names, states_in_order
from spectralz.model.coupling.entries import coupling_of, joined, symmetric
from spectralz.model.ising import Ising
from spectralz.model.names import Names, checked_names, index_of, names_in_short, places_of
from spectralz.model.values import Values, spins_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import ArrayLike

    from spectralz.model.constraints import Constraints
    from spectralz.model.coupling.base import Coupling, FloatArray, IntArray
    from spectralz.model.statements import Statement

# The spins of a term, ascending.
Scope: TypeAlias = tuple[int, ...]

# A term of k variables that are 0 and 1 becomes 2^k terms of spins; no more are made than this.
MOST_EXPANDED = 10_000_000
# Most pairs of spins that share a term, of a model whose graph is listed.
MOST_PAIRS = 20_000_000
# Weights from this size on are divided by so many without a rounding.
SMALLEST_EXPANDED = 2.0**-990


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Polynomial:
    r"""Make a model whose log-weight is a polynomial of the spins, with terms of any number of spins.

    With a number c_a for every term a, a set of spins, the log-weight of a state x is

    .. math::

       w(x) = \text{offset} + \sum_a c_a \prod_{i \in a} x_i.

    Every verb that takes an :class:`Ising` takes a Polynomial too; methods for pairs only say so.

    Parameters
    ----------
    terms
        A dictionary from tuples of spins to numbers, as ``{(0, 1, 2): 0.5, (3,): -0.1}``; spins by index or by name.
        The order of spins does not matter, equal tuples are added up, and a spin that occurs twice in a tuple cancels.
        ``{(0, 1): c}`` is an edge that is counted once: J_01 = c.
    n
        Number of spins; by default one more than the largest index, or the number of names.
    offset
        A constant added to every state's log-weight, and so to log Z.
    names
        One name per spin, all different. Without names (None), terms may name spins by text, in the order in which they
        occur; otherwise spins are called 0 to n - 1.

    Attributes
    ----------
    pairwise
        The terms of at most two spins, and the offset.
    higher
        The terms of three and more spins, as arrays.

    Raises
    ------
    ModelError
        If the terms do not make a model; the message says what is wrong.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Polynomial({(0, 1, 2): 0.5, (2, 1): 1.0, (3,): -0.1})
    >>> model
    Polynomial(n=4, terms=3, degree 3, |c| mean 0.533 max 1)
    >>> model.terms
    {(3,): -0.1, (1, 2): 1.0, (0, 1, 2): 0.5}
    >>> float(model.log_weight([+1, -1, +1, +1]))
    -1.6
    >>> print(f"{sz.log_z(model).log_z:.6f}")  # four independent parities: 4 log 2 + sum of log cosh c
    3.331476
    """

    pairwise: Ising
    higher: Terms

    __array_ufunc__ = None

    def __init__(
        self,
        terms: Mapping[Any, float],
        n: int | None = None,
        offset: float = 0.0,
        names: Iterable[Hashable] | None = None,
    ) -> None:
        scopes, count, spin_names = _placed(terms, n, names)
        weights = checked_weights(terms)
        constant = checked_number(offset, "offset")
        refuse_overflow(weights, 0.0, constant)  # before anything is added up
        parts = added_up(zip(scopes, weights.tolist(), strict=True), [constant])
        self._keep(*model_parts(parts, count, spin_names, "pm1"))

    @classmethod
    def _from_binary(cls, terms: Mapping[Any, float], names: Iterable[Hashable]) -> Polynomial:
        """Make a model of variables that are 0 and 1: the log-weight is the sum of c times the product of variables."""
        scopes, count, spin_names = _placed(terms, None, names)
        weights = checked_weights(terms)
        refuse_overflow(weights, 0.0, 0.0)
        parts = added_up(expanded(zip(scopes, weights.tolist(), strict=True)), [0.0])
        lost = NOTHING if np.any((weights != 0.0) & (np.abs(weights) < SMALLEST_EXPANDED)) else 0.0
        return cls._of(*model_parts(parts, count, spin_names, "01", lost))

    def _keep(self, pairwise: Ising, higher: Terms) -> None:
        refuse_overflow(pairwise.field, pairwise.storage.total + higher.total, pairwise.offset)
        object.__setattr__(self, "pairwise", pairwise)
        object.__setattr__(self, "higher", Terms(*map(frozen, higher)))  # copies of a model come with writable arrays

    @classmethod
    def _of(cls, pairwise: Ising, higher: Terms) -> Polynomial:
        """Make a model from parts that are checked: its pairs, and its other terms in order, none of them 0."""
        model = object.__new__(cls)
        model._keep(pairwise, higher)
        return model

    @property
    def n(self) -> int:
        """Number of spins."""
        return self.pairwise.n

    @property
    def offset(self) -> float:
        """The constant that is added to every log-weight."""
        return self.pairwise.offset

    @property
    def names(self) -> tuple[Hashable, ...] | None:
        """One name per spin, or None."""
        return self.pairwise.names

    @property
    def values(self) -> Values:
        """How evidence and states may be written, as in :class:`Ising`."""
        return self.pairwise.values

    @property
    def terms(self) -> dict[tuple[int, ...], float]:
        """All terms by their spins, ascending: those of one spin first, then pairs, then the others; none is 0."""
        return dict(self._terms)

    @cached_property
    def _terms(self) -> dict[tuple[int, ...], float]:
        single = {(i,): value for i, value in enumerate(self.field.tolist()) if value}
        edges, J = self.edges()
        pairs = {(i, j): weight for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True)}
        return single | pairs | dict(self.higher.items())

    @property
    def degree(self) -> int:
        """Number of spins of the largest term."""
        if self.higher.number:
            return self.higher.largest
        return 2 if self.edge_count else int(self.field.any())

    # What methods ask any model.

    @property
    def field(self) -> FloatArray:
        """The weights of the terms of one spin, for every spin."""
        return self.pairwise.field

    @property
    def storage(self) -> Coupling:
        """The weights of pairs, halved, as the coupling of an Ising model."""
        return self.pairwise.storage

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the pairs that are terms (m x 2, i < j, in order), and their weights."""
        return self.pairwise.edges()

    @property
    def edge_count(self) -> int:
        """Number of pairs that are terms."""
        return self.pairwise.edge_count

    @property
    def pair_count(self) -> int:
        """Number of pairs of spins that share a term, or somewhat more; without making a list of them."""
        return self.pairwise.pair_count + self.higher.pair_count

    @cached_property
    def terms_by_spin(self) -> SpinTerms:
        """The terms of three and more spins, and those of each spin."""
        return SpinTerms.of(self.higher, self.n)

    @cached_property
    def graph(self) -> IntArray:
        """All pairs of spins that share a term or a constraint, m x 2, i < j, in order."""
        if self.pair_count > MOST_PAIRS:
            raise TooLargeError(
                f"the terms connect about {self.pair_count:.2g} pairs of spins, the widest has {self.higher.largest} "
                f"spins; tables and lists of neighbors are for at most {MOST_PAIRS:.0e} pairs: ask for annealing"
            )
        pairs = np.concatenate([self.pairwise.graph, self.higher.all_pairs()[0]])
        codes = np.unique(pairs[:, 0] * self.n + pairs[:, 1])  # sorted much faster than pairs
        return np.stack(np.divmod(codes, max(self.n, 1)), axis=1)

    @cached_property
    def connections(self) -> Coupling:
        """A coupling with the same graph: all pairs of spins that share a term or a constraint."""
        return coupling_of(symmetric(self.n, self.graph, np.ones(len(self.graph))))

    @property
    def constant(self) -> float:
        """The constant in every log-weight: the offset."""
        return self.pairwise.constant

    @property
    def lost(self) -> Lost:
        """What rounding has changed on the way from the numbers of the user, as in :class:`Ising`."""
        return self.pairwise.lost

    @property
    def rounding(self) -> float:
        """The largest error of a log-weight that is summed exactly from the terms, as in :class:`Ising`."""
        return self.pairwise.rounding

    @property
    def rounding_of_terms(self) -> float:
        """The part of :attr:`rounding` that differs from state to state."""
        return self.pairwise.rounding_of_terms

    def index(self, name: Hashable) -> int:
        """Return the index of the spin called ``name``."""
        return self.pairwise.index(name)

    def label(self, i: int) -> str:
        """Return the printed name of spin ``i``."""
        return self.pairwise.label(i)

    def evidence(self, spins: Mapping[Any, int]) -> tuple[IntArray, FloatArray]:
        """Return the indices of spins given by name, and their values, checked."""
        return self.pairwise.evidence(spins)

    @property
    def constraints(self) -> Constraints:
        """What states must satisfy to have any weight."""
        return self.pairwise.constraints

    @property
    def unconstrained(self) -> Polynomial:
        """The same terms without the constraints."""
        return Polynomial._of(self.pairwise.unconstrained, self.higher)

    def with_constraints(self, *constraints: Statement) -> Polynomial:
        """Return the model in which states that break one of these constraints have weight zero, as in :class:`Ising`.

        Examples
        --------
        >>> import spectralz as sz
        >>> model = sz.Polynomial({(0, 1, 2): 2.0}).with_constraints(sz.constraints.exactly_one([0, 1, 2]))
        >>> model.log_weight([[-1, -1, 1], [1, 1, -1]]).tolist()
        [2.0, -inf]
        """
        return Polynomial._of(self.pairwise.with_constraints(*constraints), self.higher)

    def named(self, names: Iterable[Hashable] | None) -> Polynomial:
        """Return the same model with these names, one per spin; None for none."""
        return Polynomial._of(self.pairwise.named(names), self.higher)

    def log_weight(self, x: ArrayLike) -> FloatArray | np.float64:
        """Return the log of the unnormalized probability of one state (n,) or of many (m, n).

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Polynomial({(0, 1, 2): 2.0}).log_weight([[-1, -1, 1], [1, 1, -1]]).tolist()
        [2.0, -2.0]
        """
        states = np.asarray(states_in_order(x, column_names(self)))
        low = self.pairwise.log_weight(states)
        high = self.higher.log_weight(np.atleast_2d(spins_of(states, self.values)))
        return low + high if np.ndim(low) else low + high[0]

    def condition(self, spins: Mapping[Any, int]) -> Polynomial:
        """Fix some spins, by their names, and return the model of the others, in their old order.

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Polynomial({(0, 1, 2): 2.0, (0,): 1.0}).condition({0: -1}).terms
        {(0, 1): -2.0}
        """
        return self._given(*self.evidence(spins))

    def _given(self, index: IntArray, value: FloatArray) -> Polynomial:
        """Return the model of the spins that are not in ``index``, whose values, -1 or +1, are given."""
        fixed = dict(zip(index.tolist(), value.tolist(), strict=True))
        place = np.full(self.n, -1)
        kept = np.setdiff1d(np.arange(self.n), index)
        place[kept] = np.arange(len(kept))
        low = self.pairwise._given(index, value)
        is_touched = np.zeros(self.higher.number, dtype=np.bool_)
        is_touched[self.higher.term_of_spin()[place[self.higher.spin] < 0]] = True
        left = []
        touched = self.higher.chosen(is_touched)
        for scope, weight in touched.items():
            sign = math.prod(fixed.get(i, 1.0) for i in scope)
            left.append((tuple(int(place[i]) for i in scope if i not in fixed), sign * weight))
        whole = self.higher.chosen(~is_touched).renamed(place)
        left += whole.items()
        pairwise, higher = model_parts(added_up(left, [0.0]), len(kept), None, "pm1")
        return Polynomial._of(low + pairwise, higher)

    def submodel(self, spins: ArrayLike) -> Ising | Polynomial:
        """Return the simplest model of some spins alone, without the offset and the terms that other spins are in."""
        index = checked_spins(spins, self.n)
        place = np.full(self.n, -1)
        place[index] = np.arange(len(index))
        higher = self.higher
        outside = np.bincount(higher.term_of_spin(), place[higher.spin] < 0, minlength=higher.number)
        scopes = higher.chosen(outside == 0).renamed(place)
        rest = in_order([tuple(sorted(scope)) for scope in scopes.scopes()], scopes.weight.tolist())
        return Polynomial._of(self.pairwise.submodel(index), rest).simplest()

    def simplest(self) -> Ising | Polynomial:
        """Return the Ising model if no term has more than two spins, otherwise the model itself."""
        return self if self.higher.number else self.pairwise

    def to_ising(self) -> Ising:
        """Return the Ising model of the same log-weight, if no term has more than two spins."""
        if self.higher.number:
            scope = self.higher.scopes()[0]
            raise ModelError(
                f"the term of spins {scope} has {len(scope)} spins; an Ising model has terms of at most two. "
                "All verbs take the Polynomial itself"
            )
        return self.pairwise

    def components(self) -> list[IntArray]:
        """Return the spins of each connected component, in order of their smallest spin; a term connects its spins."""
        chains = np.column_stack(self.higher.chains())
        return joined(self.storage, np.concatenate([chains, self.constraints.pairs])).components()

    def scaled(self, beta: float) -> Polynomial:
        """Return the model at inverse temperature ``beta``: every log-weight, offset included, times beta."""
        factor = checked_number(beta, "beta")
        with np.errstate(over="ignore"):
            low, higher = self.pairwise.scaled(factor), self.higher.times(factor)
        lost = 0.0 if abs(math.frexp(factor)[0]) == 0.5 else UNIT_ROUNDOFF * higher.total
        return Polynomial._of(low._having_lost(lost), higher)

    def __mul__(self, beta: Any) -> Polynomial:
        return self.scaled(beta) if np.ndim(beta) == 0 else NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Polynomial:
        if not isinstance(other, Ising | Polynomial):
            return NotImplemented
        more = other.to_polynomial() if isinstance(other, Ising) else other
        terms = [(scope, c) for part in (self, more) for scope, c in part.higher.items()]
        pairwise, higher = model_parts(added_up(terms, [0.0]), self.n, None, "pm1")
        return Polynomial._of(self.pairwise + more.pairwise + pairwise, higher)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Polynomial):
            return NotImplemented
        return self.pairwise == other.pairwise and all(map(np.array_equal, self.higher, other.higher))

    def __hash__(self) -> int:
        return hash((self.pairwise, self.higher.weight.tobytes(), self.higher.spin.tobytes()))

    def __repr__(self) -> str:
        sizes = np.abs(np.concatenate([self.field[self.field != 0.0], self.edges()[1], self.higher.weight]))
        mean, largest = (float(sizes.mean()), float(sizes.max())) if len(sizes) else (0.0, 0.0)
        offset = f", offset {self.offset:.6g}" if self.offset else ""
        names = "" if self.names is None else f", {names_in_short(self.names)}"
        kind = f"terms={len(sizes)}, degree {self.degree}, |c| mean {mean:.3g} max {largest:.3g}"
        return f"Polynomial(n={self.n}, {kind}{offset}{self.constraints.in_words}{names})"

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.model(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain Python values, ready for ``json.dumps``.

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.Polynomial({(0, 1, 2): 0.5, (1,): -1.0}).to_dict()
        {'n': 3, 'terms': [[1], [0, 1, 2]], 'weights': [-1.0, 0.5], 'offset': 0.0, 'names': None}
        """
        terms = self.terms
        return {
            "n": self.n,
            "terms": [list(scope) for scope in terms],
            "weights": list(terms.values()),
            "offset": self.offset,
            "names": None if self.names is None else list(self.names),
            **self.constraints.as_entry,
        }

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Polynomial._of, (self.pairwise, self.higher)


def _placed(terms: Any, n: Any, names: Any) -> tuple[list[Scope], int, Names]:
    """Return the spins of each term by index, the number of spins, and their names."""
    if not isinstance(terms, Mapping):
        raise ModelError(f"terms is a {type(terms).__name__}; give a dictionary like {{(0, 1, 2): 0.5, (3,): -0.1}}")
    for key in terms:
        if not isinstance(key, tuple):
            raise ModelError(f"terms has the key {shown(key)}; keys are tuples of spins, such as (0, 1, 2) or (3,)")
    labels = dict.fromkeys(label for key in terms for label in key)
    are_whole = all(isinstance(label, int | np.integer) and not isinstance(label, bool) for label in labels)
    if names is None and not are_whole:
        names = list(labels)
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        names = list(names)
    largest = max((int(label) for label in labels), default=-1) if are_whole and names is None else -1
    known = len(names) if isinstance(names, list) else largest + 1
    count = known if n is None else checked_count(n)
    spin_names = checked_names(names, count)
    places = places_of(spin_names)
    where = {label: index_of(label, count, *places) for label in labels}
    return [tuple(where[label] for label in key) for key in terms], count, spin_names


def checked_weights(terms: Mapping[Any, Any]) -> FloatArray:
    """Return one finite number per term."""
    weights = as_float_array(list(terms.values()), "terms")
    if weights.shape != (len(terms),):
        raise ModelError(f"the values of terms have shape {weights.shape}; give one number per term")
    for scope, weight in zip(terms, weights.tolist(), strict=True):
        if not math.isfinite(weight):
            raise ModelError(f"the term {shown(scope)} has the weight {weight}; every number must be finite")
    return weights


def added_up(terms: Iterable[tuple[Iterable[int], float]], constants: list[float]) -> dict[Scope, Parts]:
    """Return the weights of each set of spins, unordered and repeated ones together; a spin twice in a term cancels.

    The constants belong to the empty set.
    """
    found: dict[Scope, Parts] = {(): Parts(list(constants), 0.0)}
    for spins, weight in terms:
        scope = tuple(sorted(spins))
        if len(set(scope)) < len(scope):
            scope = tuple(i for i, several in itertools.groupby(scope) if len(list(several)) % 2)
        if scope in found:
            found[scope].numbers.append(weight)
        else:
            found[scope] = Parts([weight], 0.0)
    return found


def model_parts(
    terms: Mapping[Scope, Parts], n: int, names: Names, values: Values, lost: float = 0.0
) -> tuple[Ising, Terms]:
    """Return the pairs and the other terms, in order, of weights that are added up; ``lost`` was lost before."""
    field, edges, J, in_terms = np.zeros(n), list[Scope](), list[float](), lost
    scopes, weights = list[Scope](), list[float]()
    constant, in_constant = exact_sum(terms.get((), Parts([0.0], 0.0)))
    for scope, parts in terms.items():
        weight, error = exact_sum(parts) if len(parts.numbers) > 1 or parts.left_out else (parts.numbers[0], 0.0)
        if not scope:
            continue
        in_terms += error
        if len(scope) == 1:
            field[scope[0]] = weight
        elif weight != 0.0 and len(scope) == 2:
            edges.append(scope)
            J.append(weight)
        elif weight != 0.0:
            scopes.append(scope)
            weights.append(weight)
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    storage = coupling_of(symmetric(n, pairs, np.array(J) / 2.0))
    return Ising._of(field, storage, constant, names, values, Lost(in_terms, in_constant)), in_order(scopes, weights)


def in_order(scopes: list[Scope], weights: list[float]) -> Terms:
    """Return terms sorted by their sizes, and then by their spins."""
    order = sorted(range(len(scopes)), key=lambda k: (len(scopes[k]), scopes[k]))
    return Terms.of([scopes[k] for k in order], [weights[k] for k in order]) if order else NO_TERMS


def expanded(terms: Iterable[tuple[tuple[int, ...], float]]) -> Iterator[tuple[Scope, float]]:
    """Yield the terms of spins x = 2 v - 1 for terms of variables v that are 0 and 1: the product of (1 + x_i) / 2.

    A variable twice in a term is there once, since v v = v. Dividing by a power of two rounds nothing, unless the
    number is tiny.
    """
    made = 0
    for variables, weight in terms:
        scope = sorted(set(variables))
        made += 1 << len(scope)
        if made > MOST_EXPANDED:
            raise ModelError(
                f"a term of {len(scope)} variables that are 0 and 1 becomes 2^{len(scope)} terms of spins, and there "
                f"would be more than {MOST_EXPANDED} in all; write the model in spins -1 and +1"
            )
        part = math.ldexp(weight, -len(scope))
        for size in range(len(scope) + 1):
            for chosen in itertools.combinations(scope, size):
                yield chosen, part

"""Hard constraints of a model: which states of some spins are allowed; all others have weight zero.

Each kind is a frozen value over spins by index, ascending. ``given`` returns what is left of it if some spins are
fixed: a tuple of constraints, empty if nothing is left to satisfy. What no state satisfies is ``NEVER``, the clause of
no spins.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz.errors import ModelError, shown
from spectralz.kernels.coupling import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from spectralz.model.coupling.base import IntArray

# A table of k spins has 2^k entries.
MOST_TABLE_SPINS = 16
# Constraints of up to so many spins are one table; wider ones are chains of tables over further spins.
MOST_NARROW_SPINS = 4


@dataclass(frozen=True, eq=False)
class Constraint(ABC):
    """A set of allowed states of the spins ``scope``, which ascend."""

    kind: ClassVar[str]
    scope: tuple[int, ...]

    @abstractmethod
    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each state of -1 and +1, one per row, whether it is allowed."""

    @abstractmethod
    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        """Return the constraints that are left if some spins have the values ``fixed``, in their simplest form."""

    @abstractmethod
    def _with_scope(self, scope: Sequence[int]) -> Constraint:
        """Return the same constraint of other spins, in any order."""

    def narrow(self, free: Iterable[int]) -> tuple[Table, ...]:
        """Return tables of few spins that together say the same.

        The values of further spins, which are taken from ``free``, follow from those of the scope.
        """
        return (self.tabulated(),) if len(self.scope) <= MOST_NARROW_SPINS else self._chained(free)

    @abstractmethod
    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        """Return the tables of a wide constraint."""

    def renamed(self, place: Sequence[int] | IntArray | Mapping[int, int]) -> Constraint:
        """Return the same constraint of spins that have other numbers: spin i is now ``place[i]``."""
        return self._with_scope([int(place[i]) for i in self.scope])

    def tabulated(self) -> Table:
        """Return the same constraint as one table."""
        states = np.indices((2,) * len(self.scope)).reshape(len(self.scope), 2 ** len(self.scope)).T * 2 - 1
        return Table(self.scope, self.renamed({i: k for k, i in enumerate(self.scope)}).holds(states))

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain Python values."""
        return {"kind": self.kind, **{part.name: _plain(getattr(self, part.name)) for part in fields(self)}}

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.kind, *(_hashable(getattr(self, part.name)) for part in fields(self)))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Constraint) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True, eq=False)
class Table(Constraint):
    """The states that are listed as allowed: axis i for ``scope[i]``, index 0 for -1 and index 1 for +1."""

    kind = "table"
    allowed: NDArray[np.bool_]

    def __post_init__(self) -> None:
        allowed = np.array(self.allowed, dtype=np.bool_).reshape((2,) * len(self.scope))
        object.__setattr__(self, "allowed", frozen(allowed))

    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        index = tuple((states[:, i] > 0).astype(np.int64) for i in self.scope)
        return np.broadcast_to(self.allowed[index], len(states))

    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        index = tuple(int(fixed[i] > 0) if i in fixed else slice(None) for i in self.scope)
        left = Table(tuple(i for i in self.scope if i not in fixed), self.allowed[index])
        return left._simplest()

    def _simplest(self) -> tuple[Constraint, ...]:
        """Return the same as a clause or a parity if it is one, with the spins apart that have only one value."""
        count = int(self.allowed.sum())
        if count == self.allowed.size:
            return ()
        if count == 0:
            return (NEVER,)
        if count == self.allowed.size - 1:
            (broken,) = np.argwhere(~self.allowed)
            return (Clause(self.scope, tuple((1 - 2 * broken).tolist())),)
        values = np.argwhere(self.allowed) * 2 - 1
        total = values.sum(axis=0)
        fixed = {i: int(values[0, k]) for k, i in enumerate(self.scope) if abs(total[k]) == count}
        if fixed:
            return tuple(Clause((i,), (value,)) for i, value in fixed.items()) + self.given(fixed)
        for k, i in enumerate(self.scope):
            without, other = np.moveaxis(self.allowed, k, 0)
            if np.array_equal(without, other):  # whatever the value of this spin
                return Table(tuple(j for j in self.scope if j != i), without)._simplest()
        return (self._as_parity() or self,)

    def _as_parity(self) -> Parity | None:
        if 2 * np.count_nonzero(self.allowed) != self.allowed.size:
            return None
        first = int(self.allowed.flat[0])
        parity = Parity(self.scope, (-1) ** (len(self.scope) + 1 - first))
        return parity if np.array_equal(parity.tabulated().allowed, self.allowed) else None

    def _with_scope(self, scope: Sequence[int]) -> Table:
        order = np.argsort(scope)
        return Table(tuple(sorted(scope)), self.allowed.transpose(order))

    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        return (self,)

    def tabulated(self) -> Table:
        return self


@dataclass(frozen=True, eq=False)
class Clause(Constraint):
    """At least one of the spins has its wanted value, -1 or +1."""

    kind = "clause"
    wanted: tuple[int, ...]

    @property
    def literals(self) -> list[tuple[int, int]]:
        """Each spin with its wanted value."""
        return list(zip(self.scope, self.wanted, strict=True))

    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.any(states[:, list(self.scope)] == np.array(self.wanted, dtype=np.int64), axis=1))

    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        if any(fixed.get(i) == value for i, value in self.literals):
            return ()
        left = [(i, value) for i, value in self.literals if i not in fixed]
        return (Clause(tuple(i for i, _ in left), tuple(value for _, value in left)),)

    def _with_scope(self, scope: Sequence[int]) -> Clause:
        order = sorted(range(len(scope)), key=scope.__getitem__)
        return Clause(tuple(sorted(scope)), tuple(self.wanted[k] for k in order))

    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        signs = dict(zip(self.scope, self.wanted, strict=True))
        # With a spin turned, its wanted value is +1; what is carried along is never turned.
        tables = _chain(self.scope, free, lambda seen, more: seen | more, lambda seen, more: seen | more)
        return tuple(_turned(table, signs) for table in tables)


@dataclass(frozen=True, eq=False)
class Parity(Constraint):
    """The product of the spins is ``product``, +1 or -1."""

    kind = "parity"
    product: int

    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        down = np.count_nonzero(states[:, list(self.scope)] < 0, axis=1)
        return np.asarray(down % 2 == (self.product < 0))

    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        left = tuple(i for i in self.scope if i not in fixed)
        product = self.product
        for i in self.scope:
            product *= int(fixed.get(i, 1))
        if not left:
            return () if product > 0 else (NEVER,)
        return (Clause(left, (product,)),) if len(left) == 1 else (Parity(left, product),)

    def _with_scope(self, scope: Sequence[int]) -> Parity:
        return Parity(tuple(sorted(scope)), self.product)

    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        # Of values that are 1 for +1: the product is +1 if an even number of them is 0.
        odd = (len(self.scope) % 2 == 1) == (self.product > 0)
        return _chain(self.scope, free, lambda seen, more: seen ^ more, lambda seen, more: (seen ^ more) == odd)


@dataclass(frozen=True, eq=False)
class AtMostOne(Constraint):
    """At most one of the spins is +1."""

    kind = "at_most_one"

    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.count_nonzero(states[:, list(self.scope)] > 0, axis=1) <= 1)

    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        left = tuple(i for i in self.scope if i not in fixed)
        up = sum(fixed.get(i) == 1 for i in self.scope)
        if up:
            return tuple(Clause((i,), (-1,)) for i in left) if up == 1 else (NEVER,)
        return (AtMostOne(left),) if len(left) > 1 else ()

    def _with_scope(self, scope: Sequence[int]) -> AtMostOne:
        return AtMostOne(tuple(sorted(scope)))

    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        return _chain(self.scope, free, lambda seen, more: None if seen and more else seen | more, _not_both)


@dataclass(frozen=True, eq=False)
class ExactlyOne(Constraint):
    """Exactly one of the spins is +1."""

    kind = "exactly_one"

    def holds(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.count_nonzero(states[:, list(self.scope)] > 0, axis=1) == 1)

    def given(self, fixed: Mapping[int, int]) -> tuple[Constraint, ...]:
        left = tuple(i for i in self.scope if i not in fixed)
        if any(fixed.get(i) == 1 for i in self.scope):
            return AtMostOne(self.scope).given(fixed)
        return (ExactlyOne(left),) if len(left) > 1 else (Clause(left, (1,) * len(left)),)

    def _with_scope(self, scope: Sequence[int]) -> ExactlyOne:
        return ExactlyOne(tuple(sorted(scope)))

    def _chained(self, free: Iterable[int]) -> tuple[Table, ...]:
        return _chain(
            self.scope,
            free,
            lambda seen, more: None if seen and more else seen | more,
            lambda seen, more: seen != more,
        )


NEVER = Clause((), ())
KINDS: Mapping[str, type[Constraint]] = {kind.kind: kind for kind in (Table, Clause, Parity, AtMostOne, ExactlyOne)}


def _not_both(seen: int, more: int) -> int:
    return not (seen and more)


def _chain(
    scope: Sequence[int],
    free: Iterable[int],
    step: Callable[[int, int], int | None],
    last: Callable[[int, int], int],
) -> tuple[Table, ...]:
    """Return tables that carry one bit along the spins, which count as 1 for +1 and as 0 for -1.

    ``step`` is the bit after one more spin, None where that is not allowed; ``last`` says whether the bit and the last
    spin are. The carried bits are further spins, taken from ``free``.
    """
    after = np.array([[step(seen, more) for more in (0, 1)] for seen in (0, 1)], dtype=object)
    moves = np.stack([after == 0, after == 1], axis=-1)  # by the bit, the spin, and the bit after it
    ends = np.array([[bool(last(seen, more)) for more in (0, 1)] for seen in (0, 1)])
    tables, carried, further = [], scope[0], iter(free)
    for spin in scope[1:-2]:
        now = next(further)
        tables.append(_table((carried, spin, now), moves))
        carried = now
    return (*tables, _table((carried, *scope[-2:]), np.einsum("abc,cd->abd", moves, ends)))


def _table(spins: Sequence[int], allowed: NDArray[np.bool_]) -> Table:
    """Return a table whose axes belong to spins in any order."""
    return Table(tuple(spins), allowed)._with_scope(spins)


def _turned(table: Table, wanted: Mapping[int, int]) -> Table:
    """Return a table with those of its spins turned whose wanted value is -1."""
    axes = tuple(k for k, i in enumerate(table.scope) if wanted.get(i) == -1)
    return Table(table.scope, np.flip(table.allowed, axes))


class Constraints(tuple[Constraint, ...]):
    """The constraints of a model, each of them once; all of them hold."""

    __slots__ = ()

    @classmethod
    def of(cls, constraints: Iterable[Constraint], fixed: Mapping[int, int] | None = None) -> Constraints:
        """Return what is left of constraints if some spins are fixed, in their simplest form, each once."""
        left = dict.fromkeys(part for constraint in constraints for part in constraint.given(fixed or {}))
        return cls((NEVER,) if NEVER in left else left)

    @property
    def is_impossible(self) -> bool:
        """Whether it is plain that no state satisfies them: one of them is ``NEVER``."""
        return NEVER in self

    @property
    def in_words(self) -> str:
        """Their number, for a model's own text; empty without any."""
        return f", {len(self)} constraint{'s' if len(self) > 1 else ''}" if self else ""

    @property
    def pairs(self) -> IntArray:
        """Pairs that connect the spins of each constraint, one after the other, k x 2."""
        chains = [pair for constraint in self for pair in itertools.pairwise(constraint.scope)]
        return np.array(chains, dtype=np.int64).reshape(-1, 2)

    @property
    def cliques(self) -> IntArray:
        """All pairs of spins that share a constraint, or neighbors among them if it has more than 16, k x 2."""
        found = [np.empty((0, 2), dtype=np.int64)]
        scopes = sorted((constraint.scope for constraint in self), key=len)
        for size, alike in itertools.groupby(scopes, len):
            scope = np.array(list(alike), dtype=np.int64)
            i, j = np.triu_indices(size, 1) if size <= MOST_TABLE_SPINS else (np.arange(size - 1), np.arange(1, size))
            found.append(np.stack([scope[:, i], scope[:, j]], axis=-1).reshape(-1, 2))
        return np.concatenate(found)

    def hold(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each state of -1 and +1, one per row, whether it satisfies all of them."""
        all_hold = np.ones(len(states), dtype=np.bool_)
        for constraint in self:
            all_hold &= constraint.holds(states)
        return all_hold

    def given(self, fixed: Mapping[int, int]) -> Constraints:
        """Return what is left if some spins are fixed; the others keep their numbers."""
        return Constraints.of(self, fixed)

    def renamed(self, place: Sequence[int] | IntArray | Mapping[int, int]) -> Constraints:
        """Return the same constraints of spins that have other numbers."""
        return Constraints(constraint.renamed(place) for constraint in self)

    def among(self, spins: Iterable[int]) -> Constraints:
        """Return those whose spins are all among some, which are numbered anew in this order."""
        place = {int(i): k for k, i in enumerate(spins)}
        return Constraints(
            constraint.renamed(place) for constraint in self if all(i in place for i in constraint.scope)
        )

    def narrow(self, n: int) -> tuple[tuple[Table, ...], int]:
        """Return tables of few spins that say the same, and the number of spins with the further ones.

        The values of spins n and on follow from those of the others: the number of states, and Z, are the same. Tables
        stay as they are.
        """
        further, tables = itertools.count(n), list[Table]()
        for constraint in self:
            tables += constraint.narrow(further)
        return tuple(tables), next(further)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the constraints as plain Python values."""
        return [constraint.to_dict() for constraint in self]

    @property
    def as_entry(self) -> dict[str, Any]:
        """The entry ``constraints`` of a model's ``to_dict``; none without constraints."""
        return {"constraints": self.to_dict()} if self else {}

    @classmethod
    def from_dict(cls, plain: Any, n: int) -> Constraints:
        """Return the constraints of n spins that :meth:`to_dict` wrote, checked."""
        if not isinstance(plain, list):
            raise ModelError(f"constraints is a {type(plain).__name__}; it must be a list of objects with a kind")
        return cls.of(_of_plain(parts, n) for parts in plain)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Constraints, (tuple(self),)


NO_CONSTRAINTS = Constraints()


def _of_plain(parts: Any, n: int) -> Constraint:
    """Return a constraint from plain values, checked."""
    kind = KINDS.get(str(parts.get("kind"))) if isinstance(parts, dict) else None
    if kind is None:
        raise ModelError(f"there is no constraint {shown(parts)}; each is an object whose kind is {', '.join(KINDS)}")
    scope, (detail,) = parts.get("scope"), [parts.get(part.name) for part in fields(kind)][1:] or [None]
    if not isinstance(scope, list) or not set(map(type, scope)) <= {int} or not all(0 <= i < n for i in scope):
        raise ModelError(f"a {kind.kind} has the scope {shown(scope)}; it must be a list of spins, 0 to {n - 1}")
    if any(i >= j for i, j in itertools.pairwise(scope)) or (kind is Table and len(scope) > MOST_TABLE_SPINS):
        raise ModelError(f"a {kind.kind} has the scope {shown(scope)}; its spins must ascend, at most 16 of a table")
    size, values = {Table: (2 ** len(scope), (0, 1)), Clause: (len(scope), (-1, 1))}.get(kind, (1, (-1, 1)))
    entries = detail if isinstance(detail, list) else [detail]
    if detail is None and kind in (AtMostOne, ExactlyOne):
        return kind(tuple(scope))
    if (
        isinstance(detail, list) != (kind is not Parity)
        or len(entries) != size
        or not all(type(entry) is int and entry in values for entry in entries)
    ):
        raise ModelError(f"a {kind.kind} of {len(scope)} spins takes {size} numbers, {values[0]} or {values[1]}")
    return kind(tuple(scope), detail if kind is Parity else tuple(entries))  # type: ignore[call-arg]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(int).ravel().tolist()
    return list(value) if isinstance(value, tuple) else value


def _hashable(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else value

"""Assign functions to mini-buckets: the partitions of mini-bucket elimination.

``passes.py`` explains buckets and mini-buckets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.elimination.tables import compressed
from spectralz.kernels.logsum import log1p_exp_minus, log_2cosh
from spectralz.kernels.mini_buckets.branches import PLACES_SHARE
from spectralz.kernels.mini_buckets.scopes import divide_by_scope, post_order_of, ranked
from spectralz.kernels.mini_buckets.zeros import NO_ZEROS, Zeros
from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import FloatArray, IntArray

Report = Callable[[float], None]
# Takes the number of mini-buckets of a bucket; returns the weight of the first one, and that of each other one.
Powers = Callable[[int], tuple[float, float]]

# Powers closer to 0 are replaced by this: inverses must be finite, and 0 times them must be 0.
LEAST_POWER = 1e-300
# The score of a merge is the mean over at most this many states of the separator.
SCORED_STATES = 512


@dataclass(frozen=True)
class Cover:
    """All mini-buckets in order of elimination; those of one spin are consecutive, and the first holds its field.

    Attributes
    ----------
    order
        The spins in order of elimination; a spin's place there is its rank.
    ranks
        For each mini-bucket, the rank of its spin.
    separator_start, separators
        The ranks of a mini-bucket's other spins, ascending: those of the table that it leaves.
    edge_part, term_part
        For each edge of the model, and each term of more spins, the mini-bucket that holds it.
    parent
        For each mini-bucket, the one that takes in its table; -1 if its table is a number.
    """

    order: IntArray
    ranks: IntArray
    separator_start: IntArray
    separators: IntArray
    edge_part: IntArray
    term_part: IntArray
    parent: IntArray

    @property
    def splits(self) -> int:
        """Number of mini-buckets beyond one per spin; if 0, elimination is exact."""
        return len(self.ranks) - len(self.order)

    @cached_property
    def widths(self) -> IntArray:
        """Spins of each separator."""
        return np.diff(self.separator_start)

    @cached_property
    def sizes(self) -> FloatArray:
        """Entries of each table, which may be too many for an integer."""
        return np.exp2(self.widths)

    @cached_property
    def children(self) -> tuple[IntArray, IntArray]:
        """Where the children of each mini-bucket begin, and all of them, the widest table first, then by creation."""
        child = np.flatnonzero(self.parent >= 0)
        child = child[np.lexsort((-self.widths[child], self.parent[child]))]
        count = np.bincount(self.parent[child], minlength=len(self.ranks))
        return np.concatenate([[0], np.cumsum(count)]).astype(np.int64), child

    @cached_property
    def sequence(self) -> IntArray:
        """The mini-buckets in an order, children first, that keeps few tables at once: a stack."""
        sequence: IntArray = post_order_of(self.sizes, *self.children, self.parent)
        return sequence

    def entries(self, *, keep: bool) -> float:
        """Return the table entries that a pass needs, including the scratch space of its widest step."""
        sizes = self.sizes
        used = np.bincount(self.parent[self.parent >= 0], sizes[self.parent >= 0], minlength=len(sizes))
        height = np.cumsum((sizes - used)[self.sequence])
        stack = float(height.max(initial=0.0) + 2.0 * sizes.max(initial=0.0))
        return stack + (1.0 + PLACES_SHARE) * float(sizes.sum()) if keep else stack

    @property
    def widest(self) -> int:
        """Spins in the widest mini-bucket."""
        return int(1 + self.widths.max()) if len(self.ranks) else 0

    @cached_property
    def counts(self) -> IntArray:
        """How many mini-buckets each spin has, by rank."""
        return np.bincount(self.ranks, minlength=len(self.order))

    def buckets(self, edges: IntArray, terms: Terms = NO_TERMS) -> list[tuple[int, list[dict[str, Any]]]]:
        """Return for each spin its mini-buckets: scope, edges, and messages as (spin, which of its mini-buckets).

        Terms of more spins, if the model has any, are listed too.
        """
        order, first = self.order.tolist(), (np.cumsum(self.counts) - self.counts)[self.ranks]
        spins = self.order[self.ranks].tolist()
        name = list(zip(spins, (np.arange(len(spins)) - first).tolist(), strict=True))
        scopes = np.split(self.order[self.separators], self.separator_start[1:-1])
        pairs = _by_part(self.edge_part, [(i, j) for i, j in edges.tolist()], len(spins))
        higher = _by_part(self.term_part, terms.scopes(), len(spins)) if terms.number else None
        child_start, children = (array.tolist() for array in self.children)
        listed: list[tuple[int, list[dict[str, Any]]]] = [(spin, []) for spin in order]
        for m, (rank, scope) in enumerate(zip(self.ranks.tolist(), scopes, strict=False)):
            messages = [name[c] for c in children[child_start[m] : child_start[m + 1]]]
            part = {"scope": [spins[m], *scope.tolist()], "edges": pairs[m], "messages": messages}
            if higher is not None:
                part["terms"] = higher[m]
            listed[rank][1].append(part)
        return listed


def _by_part(part: IntArray, items: Sequence[Any], count: int) -> list[list[Any]]:
    """Return what each mini-bucket holds, in order."""
    held: list[list[Any]] = [[] for _ in range(count)]
    for m, item in zip(part.tolist(), items, strict=True):
        held[m].append(item)
    return held


@dataclass(eq=False)
class _Function:
    """Functions of a bucket that are grouped: one at first, a mini-bucket in the end."""

    scope: set[int]  # ranks
    given: list[int] = field(default_factory=list)  # edges, and terms counted after them
    children: list[int] = field(default_factory=list)
    table: FloatArray | None = None  # over the scope in ascending order, where contents count

    def join(self, other: _Function, table: FloatArray | None = None) -> None:
        self.scope |= other.scope
        self.given += other.given
        self.children += other.children
        self.table = table


class _NoRoomError(Exception):
    pass


class _ByContent:
    """Merge first the pair whose separate sums are the loosest; this computes the tables on the way."""

    def __init__(self, ibound: int, fields: FloatArray, powers: Powers, max_entries: int) -> None:
        self.ibound = ibound
        self.fields = fields  # by rank
        self.powers = powers
        self.room = max_entries

    def divide(self, rank: int, functions: list[_Function]) -> list[_Function]:
        groups = functions or [_Function({rank}, table=np.zeros(2))]
        scores = {pair: self._score(*pair) for pair in itertools.combinations(groups, 2) if self._fits(*pair)}
        while scores:
            f, g = max(scores, key=scores.__getitem__)
            self._merge(f, g)
            groups.remove(g)
            scores = {pair: score for pair, score in scores.items() if not {f, g} & set(pair)}
            scores |= {(f, other): self._score(f, other) for other in groups if other is not f and self._fits(f, other)}
        groups.sort(key=lambda group: -_contrast(_table_of(group)))
        return groups

    def tables_left(self, rank: int, groups: list[_Function]) -> list[FloatArray | None]:
        first, other = self.powers(len(groups))
        tables = []
        for k, group in enumerate(groups):
            whole = _table_of(group)
            tables.append(_table_left(whole, 0.0 if k else float(self.fields[rank]), other if k else first))
            self.room += len(whole) - len(tables[-1])
            group.table = None
        return [*tables]

    def _fits(self, f: _Function, g: _Function) -> bool:
        return len(f.scope | g.scope) <= self.ibound

    def _score(self, f: _Function, g: _Function) -> float:
        """Return the gain of a merge."""
        width, mask_f, mask_g = _joint_masks(f, g)
        if width + 1 == max(len(f.scope), len(g.scope)):
            return np.inf  # what fits inside is always merged, since it costs nothing
        return float(_hoelder_gap(_table_of(f), mask_f, _table_of(g), mask_g, width))

    def _merge(self, f: _Function, g: _Function) -> None:
        width, mask_f, mask_g = _joint_masks(f, g)
        old = len(_table_of(f)) + len(_table_of(g))
        if 2 * (2 << width) > self.room:  # eliminating the spin will temporarily need as much again
            raise _NoRoomError
        joint = np.empty(2 << width)
        _add_tables(_table_of(f), mask_f, _table_of(g), mask_g, joint)
        f.join(g, joint)
        self.room += old - (2 << width)


def cover_by_scope(order: IntArray, edges: IntArray, ibound: int, terms: Terms = NO_TERMS) -> Cover:
    """Fill mini-buckets greedily, the widest function first, each into the first one with room.

    Among functions of equal width, edges and terms come first and then messages, in the order in which they came.
    """
    order = np.asarray(order, dtype=np.int64)
    return Cover(order, *divide_by_scope(order, edges, ibound, terms))


def cover_by_content(
    order: Sequence[int] | IntArray,
    edges: IntArray,
    weights: FloatArray,
    fields: FloatArray,
    ibound: int,
    powers: Powers,
    max_entries: int,
    report: Report,
    terms: Terms = NO_TERMS,
    zeros: Zeros = NO_ZEROS,
) -> Cover | None:
    """Merge the pair whose separate sums are the loosest, of all pairs that fit into ``ibound``, until none fits.

    The looseness is Hoelder's gap at equal weights, (1/2) log sum f^2 + (1/2) log sum g^2 - log sum f g, averaged over
    the states of the other spins. The field and the first weight go to the mini-bucket where the two states of the spin
    differ most: there a sum is closest to a maximum. Tables are computed on the way, with the weights ``powers``.
    Returns None if more than ``max_entries`` would be alive at once.
    """
    order = np.asarray(order, dtype=np.int64)
    everything, rank = zeros.with_terms(terms), np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    room = max_entries - 4 * len(edges) - int(np.exp2(everything.sizes).sum())
    if room < 0 and everything.number:
        return None
    tables = [np.array([J, -J, -J, J]) for J in weights.tolist()]
    tables += [_parities(len(scope), weight) for scope, weight in terms.items()]
    tables += zeros.tables(rank)
    try:
        return _cover(order, edges, everything, tables, _ByContent(ibound, fields[order], powers, room), report)
    except _NoRoomError:
        return None


def _parities(size: int, weight: float) -> FloatArray:
    """Return the table of a term: its weight times the product of the spins."""
    table = np.array([weight if size % 2 == 0 else -weight])
    for _ in range(size):
        table = np.concatenate([table, -table])
    return table


def _cover(
    order: IntArray, edges: IntArray, terms: Terms, tables: Sequence[FloatArray], rule: _ByContent, report: Report
) -> Cover:
    n = len(order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    waiting: list[list[_Function]] = [[] for _ in range(n)]
    for e, scope in enumerate([*rank[edges].tolist(), *ranked(terms, rank).scopes()]):
        waiting[min(scope)].append(_Function(set(scope), given=[e], table=tables[e]))
    ranks: list[int] = []
    separators: list[list[int]] = []
    part, parent = np.zeros(len(tables), dtype=np.int64), list[int]()
    for r in range(n):
        groups = rule.divide(r, waiting[r])
        waiting[r] = []
        for group, table in zip(groups, rule.tables_left(r, groups), strict=True):
            separator, m = sorted(group.scope - {r}), len(ranks)
            if separator:
                waiting[separator[0]].append(_Function(set(separator), children=[m], table=table))
            part[group.given] = m
            for child in group.children:
                parent[child] = m
            ranks.append(r)
            separators.append(separator)
            parent.append(-1)
        report((r + 1) / n)
    start = np.cumsum([0, *(len(separator) for separator in separators)])
    flat = np.array([s for separator in separators for s in separator], dtype=np.int64)
    of_edges, of_terms = part[: len(edges)], part[len(edges) :]
    return Cover(order, np.array(ranks, dtype=np.int64), start, flat, of_edges, of_terms, np.array(parent, np.int64))


def _table_of(function: _Function) -> FloatArray:
    assert function.table is not None
    return function.table


def _contrast(table: FloatArray) -> float:
    """Return the average difference between the two states of the spin."""
    return float(np.abs(table[1::2] - table[::2]).mean())


def _joint_masks(f: _Function, g: _Function) -> tuple[int, int, int]:
    """Return the width of the joint separator, and which of its bits belong to each of the two."""
    joint = sorted(f.scope | g.scope)
    mask_f = mask_g = 0
    for bit, r in enumerate(joint[1:]):  # the spin itself comes first in all of them
        mask_f |= (r in f.scope) << bit
        mask_g |= (r in g.scope) << bit
    return len(joint) - 1, mask_f, mask_g


@inner
def _log_cosh_gap(a: float, b: float) -> float:
    """Return Hoelder's gap of two functions whose log-ratios between the spin's states are 2a and 2b."""
    return 0.5 * (log_2cosh(2.0 * a) + log_2cosh(2.0 * b)) - log_2cosh(a + b)


@compiled
def _hoelder_gap(f: FloatArray, mask_f: int, g: FloatArray, mask_g: int, width: int) -> float:
    """Return the mean gap over the states of the joint separator, or over evenly spread states if there are many."""
    size = 1 << width
    count = size if size < SCORED_STATES else SCORED_STATES
    total = 0.0
    for k in range(count):
        # With an odd multiplier the low bits also run through all their values.
        s = k if count == size else (k * 0x9E3779B1) & (size - 1)
        i = 2 * compressed(s, mask_f)
        j = 2 * compressed(s, mask_g)
        total += _log_cosh_gap(0.5 * (f[i + 1] - f[i]), 0.5 * (g[j + 1] - g[j]))
    return total / count


@compiled
def _add_tables(f: FloatArray, mask_f: int, g: FloatArray, mask_g: int, out: FloatArray) -> None:
    """Write the sum of two log-tables over their joint scope."""
    for s in range(len(out) // 2):
        i = 2 * compressed(s, mask_f)
        j = 2 * compressed(s, mask_g)
        out[2 * s] = f[i] + g[j]
        out[2 * s + 1] = f[i + 1] + g[j + 1]


def _table_left(table: FloatArray, h: float, power: float) -> FloatArray:
    """Eliminate the first spin of a table."""
    minus, plus = table[::2] - h, table[1::2] + h
    out = np.empty(len(minus))
    _take_out(minus, plus, power, out)
    return out - out[0]


@compiled
def _take_out(minus: FloatArray, plus: FloatArray, power: float, out: FloatArray) -> None:
    take_out(minus, plus, len(out), power, out, 0)


@inner
def inverse_of(power: float) -> float:
    """Return 1 / power, and a very large number for a power of 0."""
    if abs(power) < LEAST_POWER:
        return -1.0 / LEAST_POWER if power < 0.0 else 1.0 / LEAST_POWER
    return 1.0 / power


@inner
def take_out(minus: FloatArray, plus: FloatArray, size: int, power: float, out: FloatArray, at: int) -> None:
    """Write the power sum of the two states of a spin, starting at place ``at``.

    That is f + w log(1 + exp(-|f - g| / |w|)), where f is the larger of the two at positive powers w, and the smaller
    at negative ones.
    """
    inverse = abs(inverse_of(power))
    above = power >= 0.0
    for i in range(size):
        apart = plus[i] - minus[i]
        nearest = plus[i] if (apart > 0.0) == above else minus[i]
        out[at + i] = nearest + power * log1p_exp_minus(abs(apart) * inverse)

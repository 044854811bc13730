"""Mini-buckets of large graphs, compiled: divide buckets by scope, order the tables, and number their bits.

``Cover`` in ``cover.py`` and ``Steps`` in ``passes.py`` describe the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.terms import NO_TERMS, Terms

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray


def divide_by_scope(
    order: IntArray, edges: IntArray, ibound: int, terms: Terms = NO_TERMS
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return ranks, separators (where each begins, and all), the mini-buckets of edges and of terms, and the parents.

    No term may have more than ``ibound`` spins.
    """
    n, count = len(order), len(edges)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    pairs = np.sort(rank[edges], axis=1) if count else np.empty((0, 2), dtype=np.int64)
    by_rank = ranked(terms, rank)
    given = count + terms.number
    size = np.concatenate([np.full(count, 2), terms.sizes])
    scope = np.concatenate([pairs.ravel(), by_rank.spin])
    start = np.cumsum(size) - size
    by_early = np.argsort(scope[start], kind="stable")
    functions = _Functions(n, size[by_early], scope[ragged(start[by_early], size[by_early])])
    functions.divide(min(ibound, n))
    start, home, ranks = (array[: functions.made] for array in (functions.start, functions.home, functions.rank))
    part = np.empty(given, dtype=np.int64)
    part[by_early] = home[:given]
    first = len(scope)
    separator_start = np.append(start[given:], functions.used) - first
    separators = functions.scopes[first : functions.used]
    return ranks[given:], separator_start, separators, part[:count], part[count:], home[given:]


def ranked(terms: Terms, rank: IntArray) -> Terms:
    """Return the terms with the ranks of their spins, those of each term ascending."""
    scope = rank[terms.spin]
    return terms._replace(spin=scope[np.lexsort((scope, terms.term_of_spin()))])


def ragged(starts: IntArray, counts: IntArray) -> IntArray:
    """Return starts[0], starts[0] + 1, ..., counts[0] of them, then those from starts[1] on, and so forth."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts))


class _Functions:
    """The functions of all buckets: first those given, by their earliest spins, then the tables of mini-buckets.

    Given are edges and terms of more spins; those of one bucket are in the order in which they are given.

    The scope of a function has ``width`` spins from ``start`` on in ``scopes``, ascending; the first is the one whose
    bucket it waits for. ``rank`` is the spin of the mini-bucket that left it. ``home`` is the mini-bucket that takes it
    in, numbered from 0. The functions that wait for a bucket, ``waiting`` in number, are a list from ``head`` to
    ``tail``, linked by ``following``.
    """

    def __init__(self, n: int, sizes: IntArray, scopes: IntArray) -> None:
        given, starts = len(sizes), np.cumsum(sizes) - sizes
        self.made, self.used = given, len(scopes)
        room = n + 2 * given
        self.start, self.width, self.rank, self.home, self.following = (np.full(room, -1) for _ in range(5))
        self.scopes = np.concatenate([scopes, np.full(2 * (n + given), -1)])
        self.start[:given], self.width[:given] = starts, sizes
        self.waiting = np.bincount(scopes[starts], minlength=n)
        end = np.cumsum(self.waiting)
        self.head = np.where(self.waiting > 0, end - self.waiting, -1)
        self.tail = np.where(self.waiting > 0, end - 1, -1)
        self.following[:given] = np.arange(1, given + 1)
        self.following[self.tail[self.tail >= 0]] = -1

    def divide(self, most: int) -> None:
        """Divide all buckets into mini-buckets of at most ``most`` spins."""
        r, given = 0, self.made
        while True:
            lists = self.head, self.tail, self.waiting, self.following
            tables = self.start, self.width, self.scopes, self.rank, self.home
            r, self.made, self.used = _divide(most, r, given, self.made, self.used, *lists, *tables)
            if r == len(self.head):
                return
            for name in ("start", "width", "scopes", "rank", "home", "following"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.full(len(array) + most, -1)]))


@compiled
def _divide(
    most: int,
    r: int,
    given: int,
    made: int,
    used: int,
    head: IntArray,
    tail: IntArray,
    waiting: IntArray,
    following: IntArray,
    start: IntArray,
    width: IntArray,
    scopes: IntArray,
    rank: IntArray,
    home: IntArray,
) -> tuple[int, int, int]:
    """Divide the buckets from rank ``r`` on, until there is no room for more; return the rank, ``made`` and ``used``.

    There are ``made`` functions, and ``used`` is where their scopes end. From there on, each mini-bucket of a bucket
    has room for ``most`` spins while it is filled.
    """
    widest = most if most > 2 else 2
    while r < len(head):
        if made + waiting[r] >= len(start) or used + (waiting[r] + 1) * most > len(scopes):
            break
        end = made
        for wide in range(widest, 0, -1):  # the widest first, those given before tables, in the order of the list
            f = head[r]
            while f >= 0:
                if width[f] == wide:
                    # The first mini-bucket with room for the spins that it lacks; the spin itself is not counted.
                    lacks = wide - 1
                    g = made
                    while g < end:
                        lacks = 0
                        a, stop = start[g], start[g] + width[g]
                        for b in range(start[f] + 1, start[f] + wide):
                            while a < stop and scopes[a] < scopes[b]:
                                a += 1
                            if a == stop or scopes[a] != scopes[b]:
                                lacks += 1
                        if width[g] + lacks < most:
                            break
                        lacks = wide - 1
                        g += 1
                    if g == end:
                        start[g], width[g] = used + (g - made) * most, 0
                        end += 1
                    home[f] = g - given
                    # Merge the two scopes from behind; once none is lacking, the others are in place.
                    a, b = start[g] + width[g] - 1, start[f] + wide - 1
                    width[g] += lacks
                    while lacks > 0:
                        if a >= start[g] and scopes[a] >= scopes[b]:
                            if scopes[a] == scopes[b]:
                                b -= 1
                            scopes[a + lacks] = scopes[a]
                            a -= 1
                        else:
                            scopes[a + lacks] = scopes[b]
                            b -= 1
                            lacks -= 1
                f = following[f]
        if end == made:
            start[made], width[made] = used, 0
            end += 1
        for g in range(made, end):
            rank[g] = r
            for b in range(width[g]):
                scopes[used + b] = scopes[start[g] + b]
            start[g] = used
            used += width[g]
            if width[g] > 0:
                to = scopes[start[g]]
                if tail[to] >= 0:
                    following[tail[to]] = g
                else:
                    head[to] = g
                tail[to] = g
                waiting[to] += 1
        made = end
        r += 1
    return r, made, used


def post_order_of(sizes: FloatArray, start: IntArray, child: IntArray, parent: IntArray) -> IntArray:
    """Return the steps, children first, as ``kernels/forest.py`` does, but for tables that are written in place.

    The children of a step, which have smaller numbers, are at ``start`` of ``child``.
    """
    n = len(sizes)
    order, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    _post_order(sizes, start, child.copy(), parent, np.empty(n), stack, order)
    return order


@compiled
def _post_order(
    sizes: FloatArray,
    start: IntArray,
    child: IntArray,
    parent: IntArray,
    peak: FloatArray,
    stack: IntArray,
    order: IntArray,
) -> None:
    n = len(sizes)
    for m in range(n):
        for k in range(start[m] + 1, start[m + 1]):  # those first that need the most extra stack above their result
            c, to = child[k], k
            while to > start[m] and sizes[child[to - 1]] - peak[child[to - 1]] > sizes[c] - peak[c]:
                child[to] = child[to - 1]
                to -= 1
            child[to] = c
        height, most = 0.0, sizes[m]
        for k in range(start[m], start[m + 1]):
            c = child[k]
            if height + peak[c] > most:
                most = height + peak[c]
            height += sizes[c]
        peak[m] = most
    # Parents first, children from right to left; reversed, this is post-order.
    top, left = 0, n
    for m in range(n - 1, -1, -1):
        if parent[m] < 0:
            stack[top] = m
            top += 1
    while top:
        top -= 1
        m = stack[top]
        left -= 1
        order[left] = m
        for k in range(start[m], start[m + 1]):
            stack[top] = child[k]
            top += 1


def number_bits(
    start: IntArray, separators: IntArray, later: IntArray, part: IntArray, parent: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the bit of each edge in its mini-bucket's separator, and the bits of each table in the parent's.

    ``later`` holds the rank of each edge's later spin. The parent's own spin, which comes first, is not counted.
    """
    edge_bit, mask = np.empty(len(later), np.int64), np.zeros(len(parent), np.int64)
    _number_bits(start, separators, later, part, parent, edge_bit, mask)
    return edge_bit, mask


@compiled
def _number_bits(
    start: IntArray,
    separators: IntArray,
    later: IntArray,
    part: IntArray,
    parent: IntArray,
    edge_bit: IntArray,
    mask: IntArray,
) -> None:
    for e in range(len(later)):
        first = start[part[e]]
        bit = 0
        while separators[first + bit] != later[e]:
            bit += 1
        edge_bit[e] = bit
    for m in range(len(parent)):
        if parent[m] >= 0:
            at = start[parent[m]]
            bit = 0
            for k in range(start[m] + 1, start[m + 1]):
                while separators[at + bit] != separators[k]:
                    bit += 1
                mask[m] |= 1 << bit


def term_masks(start: IntArray, separators: IntArray, terms: Terms, part: IntArray) -> IntArray:
    """Return the bits that the other spins of each term, given by rank, have in its mini-bucket's separator."""
    later = np.ones(len(terms.spin), dtype=np.bool_)
    later[terms.start[:-1]] = False
    of_entry, n = terms.term_of_spin()[later], int(separators.max(initial=0)) + 1
    # All separators one after the other ascend, if they are told apart.
    keys = np.repeat(np.arange(len(start) - 1), np.diff(start)) * n + separators
    bit = np.searchsorted(keys, part[of_entry] * n + terms.spin[later]) - start[part[of_entry]]
    masks = np.zeros(terms.number, dtype=np.int64)
    np.bitwise_or.at(masks, of_entry, np.left_shift(np.int64(1), bit))
    return masks

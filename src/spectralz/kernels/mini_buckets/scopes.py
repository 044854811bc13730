"""Mini-buckets of large graphs, compiled: divide buckets by scope, order the tables, and number their bits.

``Cover`` in ``cover.py`` and ``Steps`` in ``passes.py`` describe the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.compiling import compiled, inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray


def divide_by_scope(
    order: IntArray, edges: IntArray, ibound: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return ranks, separators (where each begins, and all), the mini-bucket of each edge, and the parents."""
    n = len(order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    early, late = np.sort(rank[edges], axis=1).T if len(edges) else np.empty((2, 0), dtype=np.int64)
    by_early = np.argsort(early, kind="stable")
    edge_start = np.searchsorted(early[by_early], np.arange(n + 1)).astype(np.int64)
    later = np.ascontiguousarray(late[by_early])
    ranks, start, separators, part, parent = _divide(min(ibound, n), edge_start, later)
    edge_part = np.empty(len(edges), dtype=np.int64)
    edge_part[by_early] = part
    return ranks, start, separators, edge_part, parent


@inner
def longer(array: Any, size: int) -> Any:
    """Return a row of numbers, or if it has less than ``size`` a copy with room for twice as many."""
    if len(array) >= size:
        return array
    copy = np.empty(2 * size, array.dtype)
    for k in range(len(array)):
        copy[k] = array[k]
    return copy


@compiled
def _divide(
    most: int, edge_start: IntArray, later: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Divide one bucket after the other, into mini-buckets of at most ``most`` spins.

    A function is given by a number: that of an edge, or -1 - m for the table of mini-bucket m. The tables that wait for
    a bucket are a list from ``head`` to ``tail``.
    """
    n, edges = len(edge_start) - 1, len(later)
    # One number per mini-bucket, per spin of a separator, and per function of a bucket.
    expected = n + edges // 2 + 1
    ranks, following, parent = np.empty(expected, np.int64), np.empty(expected, np.int64), np.empty(expected, np.int64)
    start, separators = np.zeros(expected + 1, np.int64), np.empty(2 * expected, np.int64)
    function, group, size = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16, np.int64)
    scope, of_width = np.empty(16 * most, np.int64), np.zeros(n + 2, np.int64)
    head, tail = np.full(n, -1), np.full(n, -1)
    part = np.empty(edges, np.int64)
    made = 0
    for r in range(n):
        count = edge_start[r + 1] - edge_start[r]
        widest = 2
        of_width[2] = count
        m = head[r]
        while m >= 0:
            width = start[m + 1] - start[m]
            while widest < width:
                widest += 1
                of_width[widest] = 0
            of_width[width] += 1
            count += 1
            m = following[m]
        function, group, size = longer(function, count), longer(group, count), longer(size, count)
        scope = longer(scope, count * most)
        ranks, following = longer(ranks, made + count + 1), longer(following, made + count + 1)
        parent, start = longer(parent, made + count + 1), longer(start, made + count + 2)
        separators = longer(separators, start[made] + (count + 1) * most)

        # The widest first, edges before tables, in the order in which they came: places by counting.
        place = 0
        for width in range(widest, 0, -1):
            place += of_width[width]
            of_width[width] = place - of_width[width]
        for e in range(edge_start[r], edge_start[r + 1]):
            function[of_width[2]] = e
            of_width[2] += 1
        m = head[r]
        while m >= 0:
            width = start[m + 1] - start[m]
            function[of_width[width]] = -1 - m
            of_width[width] += 1
            m = following[m]
        of_width[1] = 0

        # Scopes are kept without the spin itself, ascending; that of group g is at g * most.
        groups = 0
        for k in range(count):
            f = function[k]
            begin = 0 if f >= 0 else start[-1 - f] + 1
            width = 1 if f >= 0 else start[-f] - begin
            chosen = -1
            for g in range(groups):
                # How many spins of the function are not in the group.
                lacks, a, end = 0, g * most, g * most + size[g]
                for b in range(width):
                    s = later[f] if f >= 0 else separators[begin + b]
                    while a < end and scope[a] < s:
                        a += 1
                    if a == end or scope[a] != s:
                        lacks += 1
                if size[g] + lacks < most:
                    chosen = g
                    break
            if chosen < 0:
                chosen = groups
                size[groups] = 0
                groups += 1
            group[k] = chosen
            first = chosen * most
            for b in range(width):
                s = later[f] if f >= 0 else separators[begin + b]
                a = first + size[chosen]
                while a > first and scope[a - 1] > s:
                    a -= 1
                if a > first and scope[a - 1] == s:
                    continue
                for c in range(first + size[chosen], a, -1):
                    scope[c] = scope[c - 1]
                scope[a] = s
                size[chosen] += 1
        for k in range(count):
            f = function[k]
            if f >= 0:
                part[f] = made + group[k]
            else:
                parent[-1 - f] = made + group[k]
        if not groups:
            size[0] = 0
            groups = 1

        for g in range(groups):
            m = made + g
            ranks[m], parent[m], following[m] = r, -1, -1
            start[m + 1] = start[m] + size[g]
            for b in range(size[g]):
                separators[start[m] + b] = scope[g * most + b]
            if size[g]:
                to = scope[g * most]
                if tail[to] >= 0:
                    following[tail[to]] = m
                else:
                    head[to] = m
                tail[to] = m
        made += groups
    return ranks[:made].copy(), start[: made + 1].copy(), separators[: start[made]].copy(), part, parent[:made].copy()


@compiled
def post_order_of(sizes: FloatArray, start: IntArray, child: IntArray, parent: IntArray) -> IntArray:
    """Return the steps, children first, as ``kernels/forest.py`` does, but for tables that are written in place.

    The children of a step, which have smaller numbers, are at ``start`` of ``child``.
    """
    n = len(sizes)
    child, peak, stack, out = child.copy(), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
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
            most = max(most, height + peak[c])
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
        out[left] = m
        for k in range(start[m], start[m + 1]):
            stack[top] = child[k]
            top += 1
    return out


@compiled
def number_bits(
    start: IntArray, separators: IntArray, later: IntArray, part: IntArray, parent: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the bit of each edge in its mini-bucket's separator, and the bits of each table in the parent's.

    ``later`` holds the rank of each edge's later spin. The parent's own spin, which comes first, is not counted.
    """
    edge_bit, mask = np.empty(len(later), np.int64), np.zeros(len(parent), np.int64)
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
    return edge_bit, mask

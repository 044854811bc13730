"""Mini-buckets of large graphs, compiled: divide buckets by scope, order the tables, and number their bits.

``Cover`` in ``cover.py`` and ``Steps`` in ``passes.py`` describe the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled

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
    most = min(ibound, n)  # spins of a mini-bucket
    count = n + len(edges) // 2 + 1
    # One number per mini-bucket, per spin of a separator, and per function of a bucket.
    ranks, following, parent = np.empty((3, count), dtype=np.int64)
    start, separators = np.zeros(count + 1, dtype=np.int64), np.empty(2 * count, dtype=np.int64)
    head, tail = np.full((2, n), -1)
    part = np.empty(len(edges), dtype=np.int64)
    function, group, size = np.empty((3, 16), dtype=np.int64)
    scope, of_width = np.empty(16 * most, dtype=np.int64), np.zeros(n + 2, dtype=np.int64)
    state = np.zeros(3, dtype=np.int64)  # the next rank, how many mini-buckets there are, functions in the next bucket
    while True:
        _divide(
            most, edge_start, later, ranks, start, separators, following, parent, head, tail, part,
            function, group, size, scope, of_width, state,
        )  # fmt: skip
        r, count, functions = state.tolist()
        if r == n:
            whole = np.empty(len(edges), dtype=np.int64)
            whole[by_early] = part
            used = int(start[count])
            return (
                ranks[:count].copy(),
                start[: count + 1].copy(),
                separators[:used].copy(),
                whole,
                parent[:count].copy(),
            )
        if functions > len(function):
            function, group, size = np.empty((3, 2 * functions), dtype=np.int64)
            scope = np.empty(2 * functions * most, dtype=np.int64)
        if count + functions + 1 > len(ranks):
            more = len(ranks) + functions + 1
            ranks, following, parent = (
                np.concatenate([a, np.empty(more, np.int64)]) for a in (ranks, following, parent)
            )
            start = np.concatenate([start, np.empty(more, np.int64)])
        if int(start[count]) + (functions + 1) * most > len(separators):
            separators = np.concatenate([separators, np.empty(len(separators) + (functions + 1) * most, np.int64)])


@compiled
def _divide(
    most: int,
    edge_start: IntArray,
    later: IntArray,
    ranks: IntArray,
    start: IntArray,
    separators: IntArray,
    following: IntArray,
    parent: IntArray,
    head: IntArray,
    tail: IntArray,
    part: IntArray,
    function: IntArray,
    group: IntArray,
    size: IntArray,
    scope: IntArray,
    of_width: IntArray,
    state: IntArray,
) -> None:
    """Divide one bucket after the other, until some array is too short.

    A function is given by a number: that of an edge, or -1 - m for the table of mini-bucket m. The tables that wait for
    a bucket are a list from ``head`` to ``tail``.
    """
    n = len(edge_start) - 1
    for r in range(state[0], n):
        made = state[1]
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
        state[2] = count
        no_room = count > len(function) or made + count + 1 > len(ranks)
        if no_room or start[made] + (count + 1) * most > len(separators):
            return

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
        state[0], state[1] = r + 1, made + groups


@compiled
def post_order_of(
    sizes: FloatArray,
    start: IntArray,
    child: IntArray,
    parent: IntArray,
    peak: FloatArray,
    stack: IntArray,
    out: IntArray,
) -> None:
    """Write the steps, children first, as ``kernels/forest.py`` does with tables that are written in place.

    The children of a step, which have smaller numbers, are at ``start`` of ``child``; they are sorted there.
    """
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


@compiled
def number_bits(
    ranks: IntArray,
    start: IntArray,
    separators: IntArray,
    later: IntArray,
    part: IntArray,
    parent: IntArray,
    edge_bit: IntArray,
    mask: IntArray,
) -> None:
    """Write the bit of each edge in its mini-bucket's separator, and the bits of each table in the parent's.

    ``later`` holds the rank of each edge's later spin. The parent's own spin, which comes first, is not counted.
    """
    for e in range(len(later)):
        first = start[part[e]]
        bit = 0
        while separators[first + bit] != later[e]:
            bit += 1
        edge_bit[e] = bit
    for m in range(len(ranks)):
        mask[m] = 0
        if parent[m] >= 0:
            at = start[parent[m]]
            bit = 0
            for k in range(start[m] + 1, start[m + 1]):
                while separators[at + bit] != separators[k]:
                    bit += 1
                mask[m] |= 1 << bit

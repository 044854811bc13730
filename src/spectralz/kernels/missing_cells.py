"""Sums over the missing cells of rows of data, in which 0 stands for a missing value.

Missing cells of a row that are coupled, directly or through others that are missing, form a group. Given the other
cells, groups are independent, and each is summed over its 2^k states. The log-weights of all states are the Walsh
transform of the group's fields and couplings, and the transform of their probabilities has the mean product of every
set of its spins.
"""

from __future__ import annotations

import numpy as np

from spectralz._support.compiling import compiled, compiled_for_kernels
from spectralz.kernels.walsh import normalize, sum_over_sets, sum_over_states


@compiled
def groups_of(x, start, neighbor):  # type: ignore[no-untyped-def]
    """Return the row of each group, where its spins begin in the list of all, and that list.

    Parameters
    ----------
    x
        Rows of -1, 0 and +1.
    start, neighbor
        The graph: the neighbors of spin i are ``neighbor[start[i] : start[i + 1]]``.
    """
    missing = 0
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            missing += x[r, i] == 0
    row = np.empty(missing, dtype=np.int64)
    first = np.empty(missing + 1, dtype=np.int64)
    spin = np.empty(missing, dtype=np.int64)
    seen = np.full(x.shape[1], -1, dtype=np.int64)
    groups, end = 0, 0
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            if x[r, i] != 0 or seen[i] == r:
                continue
            row[groups], first[groups] = r, end
            groups += 1
            seen[i], spin[end] = r, i
            at, end = end, end + 1
            while at < end:
                for k in range(start[spin[at]], start[spin[at] + 1]):
                    j = neighbor[k]
                    if x[r, j] == 0 and seen[j] != r:
                        seen[j], spin[end] = r, j
                        end += 1
                at += 1
    first[groups] = end
    return row[:groups].copy(), first[: groups + 1].copy(), spin


@compiled_for_kernels
def _largest(first):  # type: ignore[no-untyped-def]
    largest = 0
    for g in range(len(first) - 1):
        largest = max(largest, first[g + 1] - first[g])
    return largest


@compiled_for_kernels
def _probabilities(x, r, begin, size, spin, start, neighbor, edge, field, coupling, place, table):  # type: ignore[no-untyped-def]
    """Fill in the probabilities of the states of a group, bit a for its spin a, and return the log of their sum."""
    states = 1 << size
    for a in range(size):
        place[spin[begin + a]] = a
    for s in range(states):
        table[s] = 0.0
    for a in range(size):
        i = spin[begin + a]
        h = field[i]
        for k in range(start[i], start[i + 1]):
            j = neighbor[k]
            if x[r, j] != 0:
                h += coupling[edge[k]] * x[r, j]
            elif place[j] > a:
                table[(1 << a) | (1 << place[j])] = coupling[edge[k]]
        table[1 << a] = h
    sum_over_sets(table, size)
    return normalize(table, size)


@compiled
def sum_out(  # type: ignore[no-untyped-def]
    x, weight, row, first, spin, start, neighbor, edge, field, coupling, log_sum, up, moments, information
):
    """Sum over the states of every group.

    Parameters
    ----------
    x, weight
        Rows of -1, 0 and +1, and how much each counts in the last two results.
    row, first, spin
        The groups, as ``groups_of`` returns them.
    start, neighbor, edge
        The graph, with the number of the edge to each neighbor.
    field, coupling
        theta of every spin, and J of every edge.
    log_sum
        Per row: the log of the sum is added to it, over the terms that contain a missing cell.
    up
        Per cell: becomes P(x_i = +1 | the row) of the missing ones, which keeps its digits however small it is.
    moments
        Of fields, then edges: the weighted sums of E[x_i | row] and E[x_i x_j | row] with a missing cell are added to
        it; left alone if it is empty.
    information
        The weighted sum of the covariances of x_i and x_i x_j given the rows is added to it; left alone if empty.
    """
    n = x.shape[1]
    largest = _largest(first)
    table = np.empty(1 << largest)
    place = np.zeros(n, dtype=np.int64)
    # The statistics that a group changes: number, spins of the group as bits, product of the others.
    most = min(len(moments), largest * (n + 1)) if len(information) else 0
    number, bits, sign = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
    for g in range(len(row)):
        r, begin, size = row[g], first[g], first[g + 1] - first[g]
        log_sum[r] += _probabilities(x, r, begin, size, spin, start, neighbor, edge, field, coupling, place, table)
        for a in range(size):
            total = 0.0
            for s in range(1 << size):
                if s >> a & 1:
                    total += table[s]
            up[r, spin[begin + a]] = total
        sum_over_states(table, size)
        if not len(moments):
            continue
        count = 0
        for a in range(size):
            i = spin[begin + a]
            moments[i] += weight[r] * table[1 << a]
            if len(information):
                number[count], bits[count], sign[count] = i, 1 << a, 1.0
                count += 1
            for k in range(start[i], start[i + 1]):
                j = neighbor[k]
                if x[r, j] != 0:
                    mask, other = 1 << a, float(x[r, j])
                elif place[j] > a:
                    mask, other = (1 << a) | (1 << place[j]), 1.0
                else:
                    continue
                moments[n + edge[k]] += weight[r] * other * table[mask]
                if len(information):
                    number[count], bits[count], sign[count] = n + edge[k], mask, other
                    count += 1
        for u in range(count):
            mean_u = sign[u] * table[bits[u]]
            for v in range(count):
                product = sign[u] * sign[v] * table[bits[u] ^ bits[v]]
                information[number[u], number[v]] += weight[r] * (product - mean_u * sign[v] * table[bits[v]])


@compiled
def draw(x, row, first, spin, start, neighbor, edge, field, coupling, uniform, drawn):  # type: ignore[no-untyped-def]
    """Fill in the missing cells of ``drawn[d, r]``, copies of row r, by states of its groups.

    ``uniform[d, g]`` is a random number from 0 to 1 for draw d of group g.
    """
    table = np.empty(1 << _largest(first))
    place = np.zeros(x.shape[1], dtype=np.int64)
    for g in range(len(row)):
        r, begin, size = row[g], first[g], first[g + 1] - first[g]
        _probabilities(x, r, begin, size, spin, start, neighbor, edge, field, coupling, place, table)
        for d in range(len(uniform)):
            rest, s = uniform[d, g], 0
            while s < (1 << size) - 1 and rest >= table[s]:
                rest -= table[s]
                s += 1
            for a in range(size):
                drawn[d, r, spin[begin + a]] = 1 if s >> a & 1 else -1

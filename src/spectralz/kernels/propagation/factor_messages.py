r"""Messages between spins and factors: log-weights of several spins together, kept as tables.

The graph has a node for each spin, 0 to n - 1, and for each factor, from n on; its edges join a factor to its spins, in
ascending order. :class:`spectralz.kernels.propagation.messages.Graph` lays out the messages: into spin i goes the field
u_{a->i} that factor a exerts on it, and into factor a the field h_{i\a} of its spin without that:

    h_{i\a} = theta_i + sum_{b != a} u_{b->i},
    u_{a->i} = half of log Z_a(x_i = +1) - log Z_a(x_i = -1),   Z_a(x_i) = sum exp(T_a(x) + sum_{j != i} h_{j\a} x_j).

Here T_a is the table, 2^k log-weights: bit p of an index is 1 where spin p of the factor is +1. The sums are over all
spins of a but i. They are added up as logs, spin by spin, so that nothing overflows; the field of i itself is never
subtracted from them, since beside a field of 1e12 a message of 1e-6 would lose its digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, compiled_for_kernels
from spectralz.kernels.logsum import log_add_exp
from spectralz.kernels.propagation.messages import fields_of, larger_change
from spectralz.kernels.walsh import normalize, sum_over_sets, sum_over_states

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.propagation.messages import Graph


class Tables(NamedTuple):
    """Numbers for all states, or all sets, of the spins of each factor.

    Attributes
    ----------
    entry
        The tables, one after the other.
    start
        The table of factor a begins at ``start[a]``; one number more than factors.
    largest
        Number of spins of the largest factor.
    """

    entry: FloatArray
    start: IntArray
    largest: int


@compiled
def log_weights(graph: Graph, n: int, weight: Tables) -> FloatArray:
    """Turn the weights of products, one for each set of a factor's spins, into log-weights of all states."""
    entry = weight.entry.copy()
    for a in range(len(weight.start) - 1):
        size = graph.start[n + a + 1] - graph.start[n + a]
        sum_over_sets(entry[weight.start[a] : weight.start[a + 1]], size)
    return entry


@compiled_for_kernels
def _sum_out(tables, a, h, first, size, work, rest, message, half_sum):  # type: ignore[no-untyped-def]
    """Sum over the spins of a factor that have the fields ``h[first:first + size]``; return log Z_a of all.

    For each spin p this writes half the difference and half the sum of log Z_a(+1) and log Z_a(-1), which are sums over
    the others. ``work`` holds what is left after the spins above p; from its copy the spins below are summed out.
    """
    for s in range(1 << size):
        work[s] = tables.entry[tables.start[a] + s]
    for p in range(size - 1, -1, -1):
        half = 1 << p
        for s in range(2 * half):
            rest[s] = work[s]
        for q in range(p):
            b = h[first + q]
            for s in range(1 << (p - q)):
                rest[s] = log_add_exp(rest[2 * s] - b, rest[2 * s + 1] + b)
        message[p] = 0.5 * (rest[1] - rest[0])
        half_sum[p] = 0.5 * (rest[1] + rest[0])
        b = h[first + p]
        for s in range(half):
            work[s] = log_add_exp(work[s] - b, work[s + half] + b)
    return work[0]


def iterations(
    graph: Graph,
    order: IntArray,
    field: FloatArray,
    tables: Tables,
    u: FloatArray,
    damping: float,
    tol: float,
    count: int,
) -> tuple[FloatArray, int, float]:
    """Update all messages, up to ``count`` times or until none into a spin moves by more than ``tol``.

    They go one after the other, in sweeps backwards and forwards along ``order``, an order of all nodes, as in
    ``messages.iterations``: a breadth-first order solves a forest at once. If all spins come before all factors, the
    messages of an iteration are computed from those of the last, all at once.

    Returns
    -------
    u, done, residual
        The messages, the number of iterations, and the largest change in the last one, before damping.
    """
    u, damping, ones = u.copy(), float(damping), np.ones(len(u))
    residual = np.inf
    for done in range(count):
        residual = float(_renew_in_turn(graph, order, field, ones, tables, u, damping))
        if residual <= tol:
            return u, done + 1, residual
    return u, count, residual


@compiled
def _renew_in_turn(
    graph: Graph, order: IntArray, field: FloatArray, ones: FloatArray, tables: Tables, u: FloatArray, damping: float
) -> float:
    """Update the messages in one sweep backwards and one forwards; return the largest change before damping."""
    n, nodes = len(field), len(order)
    position, without = np.empty(nodes, np.int64), np.empty(len(u))
    work, rest = np.empty(1 << tables.largest), np.empty(1 << tables.largest)
    message, half_sum = np.empty(tables.largest), np.empty(tables.largest)
    for step in range(nodes):
        position[order[step]] = step
    residual = 0.0
    for step in range(2 * nodes):
        is_backwards = step < nodes
        i = order[nodes - 1 - step] if is_backwards else order[step - nodes]
        begin, end = graph.start[i], graph.start[i + 1]
        targets = 0
        for s in range(begin, end):
            targets += (position[graph.source[s]] < position[i]) == is_backwards
        if targets == 0:
            continue
        if i < n:
            fields_of(field[i], ones, u, begin, end, without)
        else:
            _sum_out(tables, i - n, u, begin, end - begin, work, rest, message, half_sum)
        for s in range(begin, end):
            if (position[graph.source[s]] < position[i]) == is_backwards:
                r = graph.reverse[s]
                if i < n:
                    u[r] = without[s]
                else:
                    sent = message[s - begin]
                    residual = larger_change(residual, u[r], sent)
                    u[r] = (1.0 - damping) * sent + damping * u[r]
    return residual


@compiled
def sums(graph: Graph, n: int, tables: Tables, h: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return log Z_a of every factor, and for its slots the messages u_{a->i}, and the other halves.

    ``h`` has the fields h_{i\a} in the slots of the factors. Summing out all spins of a factor but i leaves
    exp(other half + u_{a->i} x_i). Slots of spins get 0.
    """
    factors = len(tables.start) - 1
    log_z, message, half_sum = np.empty(factors), np.zeros(len(h)), np.zeros(len(h))
    work, rest = np.empty(1 << tables.largest), np.empty(1 << tables.largest)
    for a in range(factors):
        begin, end = graph.start[n + a], graph.start[n + a + 1]
        log_z[a] = _sum_out(tables, a, h, begin, end - begin, work, rest, message[begin:end], half_sum[begin:end])
    return log_z, message, half_sum


@compiled
def means_of_sets(graph: Graph, n: int, tables: Tables, h: FloatArray) -> FloatArray:
    r"""Return the mean of the product of each set of a factor's spins, in tables, for the fields h_{i\a}."""
    mean = tables.entry.copy()
    for a in range(len(tables.start) - 1):
        begin, end = graph.start[n + a], graph.start[n + a + 1]
        table = mean[tables.start[a] : tables.start[a + 1]]
        for p in range(end - begin):
            b = h[begin + p]
            for s in range(len(table)):
                table[s] += b if s >> p & 1 else -b
        normalize(table, end - begin)
        sum_over_states(table, end - begin)
    return mean


@compiled
def flip_what_gains(graph: Graph, field: FloatArray, tables: Tables, x: FloatArray, state: IntArray) -> int:
    """Sweep once over the spins of a state, with its index in each table; return how many were flipped."""
    n, flips = len(field), 0
    for i in range(n):
        gain = -2.0 * field[i] * x[i]
        for s in range(graph.start[i], graph.start[i + 1]):
            node = graph.source[s]
            place = tables.start[node - n] + state[node - n]
            turned = tables.start[node - n] + (state[node - n] ^ (1 << (graph.reverse[s] - graph.start[node])))
            gain += tables.entry[turned] - tables.entry[place]
        if gain > 0.0:
            x[i] = -x[i]
            for s in range(graph.start[i], graph.start[i + 1]):
                node = graph.source[s]
                state[node - n] ^= 1 << (graph.reverse[s] - graph.start[node])
            flips += 1
    return flips

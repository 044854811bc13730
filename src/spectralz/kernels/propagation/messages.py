r"""Messages along the edges of a graph of spins: one number per message, in the log domain, for any weights.

A message from k to i is proportional to exp(u x_i), so the field u on i determines it. Messages are kept in slots,
those *into* a spin side by side: slot s of spin i holds the message that ``source[s]`` sends to i, and ``reverse[s]``
is the slot of the opposite message. The same loops serve belief propagation and its tree-reweighted version. With
weights w on the edges and couplings J, the field of i without the message from j is

    h_{i\j} = theta_i + sum_{k != j} w_ik u_{k->i} + (w_ij - 1) u_{j->i},
    u_{i->j} = atanh(tanh J_ij tanh h_{i\j}).

Belief propagation has w = 1. A sum without one term is computed from a sum from the left and one from the right, never
by subtracting the term: next to a message of 1e12, a field of 1e-6 would lose its digits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.logsum import exp_minus, log1p_exp_minus, log_2cosh, log_add_exp

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray

# Up to this size tanh and atanh keep the digits of small messages; above it sums of logs do, without overflow.
SMALL = 0.5


class Graph(NamedTuple):
    """The slots of the messages of a graph with n spins and m edges.

    Attributes
    ----------
    start
        Spin i has the slots ``start[i]`` to ``start[i + 1]``; n + 1 numbers.
    source, reverse, edge
        For each slot: the sending spin, the slot of the opposite message, and the edge; 2 m numbers.
    slots
        For each edge (i, j): the slots of the messages into i and into j; m x 2.
    """

    start: IntArray
    source: IntArray
    reverse: IntArray
    edge: IntArray
    slots: IntArray


def graph_of(n: int, pairs: IntArray) -> Graph:
    """Lay out the messages of a graph; ``pairs`` (m x 2) lists each edge once."""
    m = len(pairs)
    source, target = pairs.T.ravel(), pairs[:, ::-1].T.ravel()
    order = np.argsort(target, kind="stable")
    slot = np.empty(2 * m, dtype=np.int64)
    slot[order] = np.arange(2 * m)
    reverse = np.concatenate([slot[m:], slot[:m]])[order]
    start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=n))]).astype(np.int64)
    slots = np.ascontiguousarray(np.column_stack([slot[m:], slot[:m]]))
    return Graph(start, source[order], reverse, order % max(m, 1), slots)


@inner
def message(J: float, h: float) -> float:
    """Return atanh(tanh J tanh h), accurate to about 16 units of 2^-53 at any size, and at most |J| and |h|."""
    low, high = (abs(J), abs(h)) if abs(J) < abs(h) else (abs(h), abs(J))
    if low < SMALL:
        # (1 + tanh J tanh h) / (1 - tanh J tanh h) = 1 + (1 - p)(1 - q) / (p + q) with p = exp(-2 |J|), q = exp(-2 |h|)
        a = -math.expm1(-2.0 * low)
        b = -math.expm1(-2.0 * high) if high < SMALL else 1.0 - exp_minus(2.0 * high)
        u = 0.5 * math.log1p(a * b / (2.0 - a - b))
        u = u if u < low else low
    else:
        # (log cosh(J + h) - log cosh(J - h)) / 2
        u = low + 0.5 * (log1p_exp_minus(2.0 * (low + high)) - log1p_exp_minus(2.0 * (high - low)))
    return u if (J < 0.0) == (h < 0.0) else -u


@inner
def mean_log_2cosh(J: float, h: float) -> float:
    """Return half of log(2 cosh(h + J)) + log(2 cosh(h - J)).

    Summing out a spin leaves this in addition to its message: sum_x exp(h x + J x y) = exp(this + message(J, h) y).
    """
    rest = log1p_exp_minus(2.0 * abs(h + J)) + log1p_exp_minus(2.0 * abs(h - J))
    return (abs(h) if abs(h) > abs(J) else abs(J)) + 0.5 * rest


@inner
def _log_pair_sum(J: float, a: float, b: float) -> float:
    """Return log of the sum over x, y of exp(J x y + a x + b y)."""
    return log_add_exp(J + log_2cosh(a + b), -J + log_2cosh(a - b))


@inner
def fields_of(theta: float, weight: FloatArray, u: FloatArray, begin: int, end: int, without: FloatArray) -> float:
    """Write the fields of one spin without each of its messages into ``without``; return its whole field."""
    total = theta
    for s in range(begin, end):
        without[s] = total + (weight[s] - 1.0) * u[s]
        total += weight[s] * u[s]
    right = 0.0
    for s in range(end - 1, begin - 1, -1):
        without[s] += right
        right += weight[s] * u[s]
    return total


@compiled
def fields(graph: Graph, field: FloatArray, weight: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return every spin's field under the messages ``u``, and for each slot that field without the slot's message."""
    total, without = np.empty(len(field)), np.empty(len(u))
    for i in range(len(field)):
        total[i] = fields_of(field[i], weight, u, graph.start[i], graph.start[i + 1], without)
    return total, without


@compiled
def messages_between(J: FloatArray, h: FloatArray) -> FloatArray:
    """Return ``message(J, h)`` for arrays of both."""
    u = np.empty(len(J))
    for k in range(len(u)):
        u[k] = message(J[k], h[k])
    return u


@inner
def larger_change(residual: float, old: float, new: float) -> float:
    """Return how far a message moved, relative to its size if that is above 1, or ``residual`` if that is larger."""
    change = abs(new - old)
    if change > residual and abs(new) > 1.0:
        change /= abs(new)
    return change if change > residual else residual


def iterations(
    graph: Graph,
    order: IntArray | None,
    field: FloatArray,
    coupling: FloatArray,
    weight: FloatArray,
    u: FloatArray,
    damping: float,
    tol: float,
    count: int,
) -> tuple[FloatArray, int, float]:
    """Update all messages, up to ``count`` times or until none moves by more than ``tol``.

    Without an order all are updated at once; otherwise one after the other, in sweeps backwards and forwards along
    ``order``. Backwards every spin writes to the spins before it, forwards to those after it, so that an iteration
    updates each message once. One iteration solves a forest in breadth-first order: the messages go up to the roots,
    then down.

    Returns
    -------
    u, done, residual
        The messages, the number of iterations, and the largest change in the last one, before damping.
    """
    u, damping = u.copy(), float(damping)
    residual = np.inf
    for done in range(count):
        if order is None:
            residual = float(_renew_all(graph, field, coupling, weight, u, damping))
        else:
            residual = float(_renew_in_turn(graph, order, field, coupling, weight, u, damping))
        if residual <= tol:
            return u, done + 1, residual
    return u, count, residual


@compiled
def _renew_all(
    graph: Graph, field: FloatArray, J: FloatArray, weight: FloatArray, u: FloatArray, damping: float
) -> float:
    """Update all messages at once; return the largest change before damping."""
    without, new = np.empty(len(u)), np.empty(len(u))
    residual = 0.0
    for i in range(len(field)):
        fields_of(field[i], weight, u, graph.start[i], graph.start[i + 1], without)
        for s in range(graph.start[i], graph.start[i + 1]):
            r = graph.reverse[s]
            sent = message(J[s], without[s])
            residual = larger_change(residual, u[r], sent)
            new[r] = (1.0 - damping) * sent + damping * u[r]
    for s in range(len(u)):
        u[s] = new[s]
    return residual


@compiled
def _renew_in_turn(
    graph: Graph, order: IntArray, field: FloatArray, J: FloatArray, weight: FloatArray, u: FloatArray, damping: float
) -> float:
    """Update the messages in one sweep backwards and one forwards; return the largest change before damping."""
    n = len(field)
    without, position = np.empty(len(u)), np.empty(n, np.int64)
    for step in range(n):
        position[order[step]] = step
    residual = 0.0
    for step in range(2 * n):
        is_backwards = step < n
        i = order[n - 1 - step] if is_backwards else order[step - n]
        fields_of(field[i], weight, u, graph.start[i], graph.start[i + 1], without)
        for s in range(graph.start[i], graph.start[i + 1]):
            if (position[graph.source[s]] < position[i]) == is_backwards:
                r = graph.reverse[s]
                sent = message(J[s], without[s])
                residual = larger_change(residual, u[r], sent)
                u[r] = (1.0 - damping) * sent + damping * u[r]
    return residual


@compiled
def bethe_terms(
    graph: Graph, field: FloatArray, coupling: FloatArray, without: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return log Z_i of every spin and log Z_ij of every edge; Bethe's log Z is the first sum minus the second.

    With the cavity fields h_{i\j} as variables (Mezard and Montanari, Chapter 14), and without the norms 2 cosh
    h_{i\j}, because each occurs once in a Z_i and once in a Z_ij,

        Z_i  = sum_x exp(theta_i x) prod_k sum_y exp(J_ik x y + h_{k\i} y),
        Z_ij = sum_{x,y} exp(J_ij x y + h_{i\j} x + h_{j\i} y).

    Their derivatives with respect to the cavity fields vanish exactly where the messages are a fixed point.
    """
    spin, edge = np.empty(len(field)), np.empty(len(graph.slots))
    for i in range(len(field)):
        total, rest = field[i], 0.0
        for s in range(graph.start[i], graph.start[i + 1]):
            h = without[graph.reverse[s]]
            total += message(coupling[s], h)
            rest += mean_log_2cosh(coupling[s], h)
        spin[i] = log_2cosh(total) + rest
    for e in range(len(edge)):
        s, r = graph.slots[e, 0], graph.slots[e, 1]
        edge[e] = _log_pair_sum(coupling[s], without[s], without[r])
    return spin, edge


@compiled
def forest_terms(up: IntArray, total: FloatArray, without: FloatArray, coupling: FloatArray) -> FloatArray:
    """Return the term that each spin contributes when a forest is summed out toward the roots.

    For each spin ``up`` holds the slot of its parent's message, or -1. The sum of the terms is log Z.
    """
    terms = np.empty(len(total))
    for i in range(len(total)):
        s = up[i]
        terms[i] = log_2cosh(total[i]) if s < 0 else mean_log_2cosh(coupling[s], without[s])
    return terms


@compiled
def reweighted_terms(
    graph: Graph, field: FloatArray, coupling: FloatArray, parent: FloatArray, root: FloatArray, without: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the terms of the tree-reweighted upper bound at any cavity fields, and their sizes for rounding errors.

    Parameters
    ----------
    coupling
        J / rho of each slot.
    parent
        For each slot, how often the receiving spin is the parent of the sending one; the two of an edge add up to rho.
    root
        How often each spin is the root.
    without
        c of each slot, any numbers: the cavity field from which the receiving spin would reply.

    Returns
    -------
    terms
        One number per spin; their sum is the bound. See ``methods/tree_reweighted.py`` for its derivation.
    sizes
        Times the unit roundoff, these bound the error of each term.
    """
    terms, sizes = np.empty(len(field)), np.empty(len(field))
    for i in range(len(field)):
        argument, size = field[i], abs(field[i])
        rest, rest_size = 0.0, 1.0
        for s in range(graph.start[i], graph.start[i + 1]):
            r = graph.reverse[s]
            u = message(coupling[s], without[r])
            argument += parent[s] * u - parent[r] * without[s]
            size += parent[s] * abs(u) + parent[r] * abs(without[s])
            rest += parent[s] * mean_log_2cosh(coupling[s], without[r])
            rest_size += parent[s] * (1.0 + abs(coupling[s]) + abs(without[r]))
        terms[i] = root[i] * log_2cosh(argument / root[i]) + rest
        # Each sum has 2 per neighbor additions, each of its terms is good to some 24 roundoffs, and so is J / rho.
        sizes[i] = (2.0 * (graph.start[i + 1] - graph.start[i]) + 32.0) * (size + rest_size)
    return terms, sizes


def breadth_first(graph: Graph, used: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Walk through the graph along the edges in ``used``, component by component.

    Returns
    -------
    order
        The spins in the order of the walk.
    up
        For each spin the slot of the message from its parent, or -1 at a root.
    label
        The component of each spin, numbered from 0.
    """
    n = len(graph.start) - 1
    order, up, label = np.empty(n, np.int64), np.full(n, -1), np.full(n, -1)
    _walk(graph.start, graph.source, graph.reverse, graph.edge, used, order, up, label)
    return order, up, label


@compiled
def _walk(
    start: IntArray,
    source: IntArray,
    reverse: IntArray,
    edge: IntArray,
    used: BoolArray,
    order: IntArray,
    up: IntArray,
    label: IntArray,
) -> None:
    """Write what :func:`breadth_first` returns; parents and labels are -1 at first."""
    taken = given = count = 0
    for first in range(len(order)):
        if label[first] >= 0:
            continue
        label[first] = count
        order[given] = first
        given += 1
        while taken < given:
            i = order[taken]
            taken += 1
            for s in range(start[i], start[i + 1]):
                j = source[s]
                if used[edge[s]] and label[j] < 0:
                    label[j] = count
                    up[j] = reverse[s]
                    order[given] = j
                    given += 1
        count += 1


def orient(graph: Graph, used: BoolArray) -> FloatArray:
    """Return how often a spin is another's parent, for the forest of the edges ``used`` and uniformly drawn roots.

    For each slot this is the probability that the receiving spin is the parent of the sending one. It equals the share
    of the spins on the receiver's side of the edge, and is 0 off the forest.
    """
    order, up, label = breadth_first(graph, used)
    below = np.ones(len(order))
    _add_up(order, up, graph.source, below)
    whole = np.bincount(label, minlength=1)[label]
    children = np.flatnonzero(up >= 0)
    parent = np.zeros(len(graph.source))
    parent[up[children]] = below[children] / whole[children]
    parent[graph.reverse[up[children]]] = (whole[children] - below[children]) / whole[children]
    return parent


@compiled
def _add_up(order: IntArray, up: IntArray, source: IntArray, below: FloatArray) -> None:
    """Add every spin's number to its parent's, starting from the last spin of the walk."""
    for k in range(len(order) - 1, -1, -1):
        i = order[k]
        if up[i] >= 0:
            below[source[up[i]]] += below[i]


def climb(graph: Graph, field: FloatArray, coupling: FloatArray, x: FloatArray, max_sweeps: int) -> FloatArray:
    """Improve a state by flips of single spins until none gains (iterated conditional modes) or the sweeps are over."""
    x = x.copy()
    for _ in range(max_sweeps):
        if not _flip_what_gains(graph, field, coupling, x):
            break
    return x


@compiled
def _flip_what_gains(graph: Graph, field: FloatArray, coupling: FloatArray, x: FloatArray) -> int:
    """Sweep once over the spins; return how many were flipped."""
    flips = 0
    for i in range(len(field)):
        h = field[i]
        for s in range(graph.start[i], graph.start[i + 1]):
            h += coupling[s] * x[graph.source[s]]
        if h * x[i] < 0.0:
            x[i] = -x[i]
            flips += 1
    return flips

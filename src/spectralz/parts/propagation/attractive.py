"""Attractive models, on which Bethe's approximation is a proven lower bound.

A model is attractive if signs of spins can be switched so that no coupling is negative; fields may be anything. The
Bethe objective is then at most log Z for all locally consistent marginals of spins and edges (Ruozzi, "The Bethe
partition function of log-supermodular graphical models", NIPS 2012), whether or not belief propagation has converged.

Marginals are given by the probability s_i <= 1/2 of the less likely state of each spin and, for each edge, the
probability t_ij that both spins are in it. Every t from 0 to min(s_i, s_j) is consistent, even in floating point; the
best one has a closed form (Welling, Teh, "Belief optimization for binary networks", UAI 2001).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.model import FloatArray, Ising

# Models with more edges are skipped; the edges of dense couplings would have to be listed first.
MOST_EDGES, MOST_DENSE_EDGES = 5_000_000, 500_000
# Messages that start in a phase have this initial field; they have converged at this residual.
STARTING_FIELD, TOL = 3.0, 1e-9
SWEEPS, SWEEPS_TOGETHER = 1000, 10


def signs_of(model: Ising) -> FloatArray | None:
    """Return signs of the spins with which no coupling s_i J_ij s_j is negative, or None if there are none.

    Examples
    --------
    >>> import spectralz as sz
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> signs_of(sz.Ising.from_edges(3, ring, [1.0, -1.0, -2.0])).tolist()
    [1.0, 1.0, -1.0]
    >>> signs_of(sz.Ising.from_edges(3, ring, [1.0, 1.0, -2.0])) is None
    True
    """
    from spectralz.kernels.balance import balance_of

    if model.edge_count > (MOST_EDGES if model.storage.is_sparse else MOST_DENSE_EDGES):
        return None
    clock.charge(costs.SIGNS_EDGE * (model.n + model.edge_count))
    balance = balance_of(model.storage.for_kernels())
    return balance.sign if balance.balanced.all() else None


def bethe_bound(model: Ising, field: FloatArray) -> tuple[float, float]:
    """Return the Bethe objective of an attractive model at the means tanh(field), and that minus its rounding error."""
    from scipy.special import entr, expit  # entr(p) is -p log p

    (first, second), J = model.edges()[0].T, model.edges()[1]
    turned = np.where(field < 0.0, -1.0, 1.0)
    small = expit(-2.0 * np.abs(field))
    degree = np.bincount(first, minlength=model.n) + np.bincount(second, minlength=model.n)
    entropy = entr(small) + _entr_of_rest(small)
    alone = turned * model.field * (1.0 - 2.0 * small) + (1.0 - degree) * entropy
    s, r, K = small[first], small[second], J * turned[first] * turned[second]
    t = _both(s, r, K)
    differ = (s - t) + (r - t)
    pairs = K * (1.0 - 2.0 * differ) + entr(t) + entr(s - t) + entr(r - t) + _entr_of_rest(differ + t)
    value = math.fsum([*alone.tolist(), *pairs.tolist(), model.constant])
    # Probabilities are rounded by a few units of their own size, and that of the rest by a few units of 1, which p log
    # p turns into up to 150. What is computed from them is rounded by a few units of |J|, |theta| and 1.
    rounding = 16.0 * float(np.abs(model.field).sum() + np.abs(J).sum() + (degree + 1.0).sum()) + 256.0 * len(J)
    rounding += 4.0 * (abs(value) + abs(model.constant))
    return value, value - UNIT_ROUNDOFF * rounding - model.rounding


def _both(s: FloatArray, r: FloatArray, K: FloatArray) -> FloatArray:
    """Return the best probability of both less likely states of a pair, whose states without them have coupling K.

    It solves t (1 - s - r + t) = exp(4 K) (s - t) (r - t).
    """
    weak = np.exp(-4.0 * np.abs(K))
    is_up = K >= 0.0
    middle = np.where(is_up, weak + (1.0 - weak) * (s + r), 1.0 - (1.0 - weak) * (s + r))
    root = np.sqrt(np.maximum(middle**2 - np.where(is_up, 1.0, -weak) * 4.0 * (1.0 - weak) * s * r, 0.0))
    below = middle + root
    t = np.where(is_up, 2.0, 2.0 * weak) * s * r / np.where(below > 0.0, below, 1.0)
    return np.clip(t, 0.0, np.minimum(s, r))


def _entr_of_rest(z: FloatArray) -> FloatArray:
    """Return -p log p of p = 1 - z."""
    rest = np.maximum(1.0 - z, 0.0)
    return np.asarray(-rest * np.log1p(-np.where(rest > 0.0, z, 0.0)))


def bethe_bounds(model: Ising, signs: FloatArray) -> Iterator[tuple[float, str]]:
    """Yield proven lower bounds where messages converge: from zero, and from the two states with all spins aligned."""
    from spectralz.kernels.propagation.messages import fields, iterations, messages_between
    from spectralz.parts.propagation.network import Network

    network = Network.of(model)
    graph, ones = network.graph, network.ones
    starts = {"no messages": 0.0, "all spins aligned": STARTING_FIELD}
    if np.any(network.field):
        starts["all spins aligned the other way"] = -STARTING_FIELD
    for name, size in starts.items():
        u = messages_between(network.coupling, size * signs[graph.source])
        residual, sweeps = math.inf, 0
        while sweeps < SWEEPS and residual > TOL:
            u, made, residual = iterations(
                graph, network.order, network.field, network.coupling, ones, u, 0.0, TOL, SWEEPS_TOGETHER
            )
            sweeps += made
            clock.charge(costs.MESSAGE * made * len(u))
            report("passing messages", sweeps / SWEEPS)
            if deadline.is_past():
                break
        total, _ = fields(graph, network.field, ones, u)
        yield bethe_bound(model, total)[1], f"Bethe's approximation of an attractive model, messages from {name}"
        if deadline.is_past():
            return

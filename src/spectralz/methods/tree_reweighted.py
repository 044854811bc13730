"""Tree-reweighted belief propagation: an upper bound on log Z that is proven at any messages, converged or not.

Draw a spanning tree of every component and a root in it. For any distribution the entropy is at most that of the tree,
H(x) <= H(x_root) + sum over its edges of H(child | parent); on average over trees and roots

    H(x) <= sum_i r_i H(x_i) + sum_{i->j} p_{j|i} H(x_j | x_i),

where r_i says how often i is the root and p_{j|i} how often i is the parent of j; rho_ij = p_{j|i} + p_{i|j}. Now take
the model's own distribution, for which log Z is H plus the mean log-weight. Give every pair a number c_{i->j} in each
direction, with any value, and divide the pair's log-weight J x_i x_j between the two directions of its edge,

    f_{j|i}(x_i, x_j) = p_{j|i} (J x_i x_j / rho + c_{j->i} x_j) - p_{i|j} c_{i->j} x_i,
    f_{j|i} + f_{i|j} = J x_i x_j.

Given x_i, the mean of f_{j|i} plus p_{j|i} H(x_j | x_i) is at most p_{j|i} log sum_{x_j} exp(f_{j|i} / p_{j|i}), a
function of x_i alone. With K = J / rho, c = c_{j->i}, u_{j->i} = atanh(tanh K tanh c) and k_{j->i} half of
log 2cosh(c + K) + log 2cosh(c - K), it is p_{j|i} (k_{j->i} + u_{j->i} x_i) - p_{i|j} c_{i->j} x_i. The terms of one
spin, with r_i H(x_i) added, are again at most r_i times a log-sum:

    log Z <= sum_i r_i log 2cosh(a_i / r_i) + sum_{i->j} p_{j|i} k_{j->i},
    a_i = theta_i + sum_j (p_{j|i} u_{j->i} - p_{i|j} c_{i->j}).

This holds for all c. It is convex in c, and its least value is the tree-reweighted log Z (Globerson and Jaakkola),
reached at the fixed points of the messages, where c_{i->j} is the field of i without the message from j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp

from spectralz._support import deadline
from spectralz._support.options import below_one, count, option, positive, threads_option
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.propagation.network import Forest, Network, beliefs
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.propagation.messages import Graph
    from spectralz.model import FloatArray, Ising

# Up to this size of a component the inverse of its Laplacian is computed: 32 MB and a second or two.
MOST_DENSE_SPINS = 2000
# Larger components use the mean of at least this many spanning trees that share the edges evenly.
TREES = 32
# The bound is evaluated, and progress reported, after about this many messages, but at most every tenth iteration.
MESSAGES_PER_LOOK = 500_000
ITERATIONS_PER_LOOK = 10


@dataclass(frozen=True)
class _Trees:
    """A distribution over spanning trees and roots, as far as the bound needs it.

    Attributes
    ----------
    parent
        For each slot, how often the receiving spin is the parent of the sending one.
    root
        How often each spin is the root of its component's tree.
    error
        Bound on the sum of the errors of ``parent``.
    """

    parent: FloatArray
    root: FloatArray
    error: float

    def rho(self, graph: Graph) -> FloatArray:
        """Return how often the edge of each slot appears."""
        return np.asarray(self.parent + self.parent[graph.reverse])


@dataclass(frozen=True)
class _Messages:
    """The last messages of one distribution over trees, and the best bound on the way."""

    u: FloatArray
    bound: float
    iterations: int
    residual: float | None


@dataclass(frozen=True, kw_only=True)
class TreeReweighted(Method):
    r"""Bound log Z from above, with proof, by tree-reweighted belief propagation.

    The entropy is bounded by the mean entropy of spanning trees, in which an edge appears with probability rho:

    .. math::

       \log Z \le \max_\tau \Bigl( E_\tau[w(x)] + \sum_i H_i(\tau) - \sum_{(i, j)} \rho_{ij} I_{ij}(\tau) \Bigr),

    where tau are marginals of spins and edges that agree with each other, H their entropies, I the mutual informations
    of the edges, and w is the log-weight. The messages minimize a formula whose least value is this maximum. It bounds
    log Z at any messages, so ``upper`` is proven, with rounding, whether they converged or not. The bound is tight for
    weak couplings and few loops, and exact on a forest.

    Parameters
    ----------
    max_iter
        Most iterations; with ``optimize_edges``, for each choice of the edge probabilities.
    damping
        Share of the old message that is kept, from 0 to below 1.
    tol
        Converged when no message would change by more than this, relatively for messages above 1, without damping.
    optimize_edges
        How many times to move the edge probabilities towards the spanning tree of largest mutual information
        (conditional gradients). 0 keeps the probabilities of uniformly drawn spanning trees, or in components of more
        than 2,000 spins those of trees that share the edges evenly.
    threads
        Most threads for linear algebra; by default all cores that the process may use. Up to 1,000 spins one thread is
        used; beyond that, the answer depends on the number of threads, but only by rounding.

    See Also
    --------
    BeliefPropagation : an estimate, often closer, without a guarantee.

    References
    ----------
    .. [1] Wainwright, Jaakkola, Willsky, "A new class of upper bounds on the log partition function", IEEE Trans. Inf.
       Theory 51, 2005.
    .. [2] Globerson, Jaakkola, "Convergent propagation algorithms via oriented trees", UAI 2007.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=8, strength=0.5, seed=0)
    >>> result = sz.log_z(model, sz.TreeReweighted())
    >>> print(result.kind, "|", result.status)
    upper bound | converged after ... iterations
    >>> 0 < result.upper - sz.log_z(model, "exact").log_z < 10
    True
    >>> sz.log_z(model, sz.TreeReweighted(optimize_edges=5)).upper < result.upper
    True
    """

    max_iter: int = option(1000, count(least=0))
    damping: float = option(0.5, below_one)
    tol: float = option(1e-8, positive())
    optimize_edges: int = option(0, count(least=0))
    threads: int | None = threads_option()

    name: ClassVar[str] = "trw"
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        network = Network.of(model)
        if network.is_forest:
            return Forest.of(network).outcome(model)
        return self._run(model, network)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        from spectralz.kernels.propagation.messages import fields

        network = Network.of(model)
        if network.is_forest:
            return Forest.of(network).marginal_outcome(model)
        outcome, trees, messages = self._run(model, network)
        rho = trees.rho(network.graph)
        total, without = fields(network.graph, network.field, rho, messages.u)
        return beliefs(network.graph, network.coupling / rho, total, without, outcome)

    def _run(self, model: Ising, network: Network) -> tuple[Outcome, _Trees, _Messages]:
        """Return the outcome on a graph with loops, and the trees and messages that gave the best bound."""
        trees = _spanning_trees(network)
        best_trees, best = trees, self._iterate(network, trees, np.zeros(len(network.coupling)))
        messages, iterations = best, best.iterations
        for step in range(self.optimize_edges):
            if deadline.is_past():
                break
            # Steps of 2 / (k + 2) that begin at k = 2: a full first step would remove all other edges.
            share, tree = 2.0 / (step + 4.0), _most_informative_tree(network, trees, messages.u)
            trees = replace(trees, parent=(1.0 - share) * trees.parent + share * tree)
            messages = self._iterate(network, trees, messages.u)
            iterations += messages.iterations
            if messages.bound < best.bound:
                best_trees, best = trees, messages
        upper = best.bound + model.constant + model.rounding
        upper += 4.0 * UNIT_ROUNDOFF * (abs(upper) + abs(best.bound))
        outcome = Outcome(
            log_z=upper,
            kind=Kind.UPPER_BOUND,
            status=self._status(best),
            upper=upper,
            iterations=iterations,
            details={
                "residual": best.residual,
                "is_forest": False,
                "edge_probability": best_trees.rho(network.graph)[network.graph.slots[:, 0]],
            },
        )
        return outcome, best_trees, best

    def _status(self, messages: _Messages) -> Status:
        choices = f", best of {self.optimize_edges + 1} choices of edges" if self.optimize_edges else ""
        if messages.residual is not None and messages.residual <= self.tol:
            return Status(f"converged after {messages.iterations} iterations{choices}")
        residual = "" if messages.residual is None else f" with residual {messages.residual:.2g}"
        words = f"stopped after {messages.iterations} iterations{residual}{choices}"
        return Status(f"{words}; the bound holds, but could be lower", converged=False)

    def _iterate(self, network: Network, trees: _Trees, u: FloatArray) -> _Messages:
        """Pass messages until they converge or ``max_iter`` is reached; return the best bound seen on the way."""
        from spectralz.kernels.propagation.messages import iterations

        rho = trees.rho(network.graph)
        coupling = network.coupling / rho
        bound = _bound(network, trees, rho, coupling, u)
        block = max(ITERATIONS_PER_LOOK, MESSAGES_PER_LOOK // len(u))
        done, residual = 0, math.inf
        while done < self.max_iter and residual > self.tol and not deadline.is_past():
            count = min(block, self.max_iter - done)
            u, made, residual = iterations(
                network.graph, None, network.field, coupling, rho, u, self.damping, self.tol, count
            )
            done += made
            bound = min(bound, _bound(network, trees, rho, coupling, u))
            report("passing messages", done / self.max_iter)
        return _Messages(u, bound, done, residual if done else None)


def _bound(network: Network, trees: _Trees, rho: FloatArray, coupling: FloatArray, u: FloatArray) -> float:
    """Return the upper bound at the messages ``u``, raised by its rounding error."""
    from spectralz.kernels.propagation.messages import fields, reweighted_terms

    _, without = fields(network.graph, network.field, rho, u)
    terms, sizes = reweighted_terms(network.graph, network.field, coupling, trees.parent, trees.root, without)
    rounding = UNIT_ROUNDOFF * (float(sizes.sum()) + float(np.abs(terms).sum()))
    # If a tree's probability is too small by d, the bound on the entropy is too small by d log 2 at most.
    return math.fsum(terms.tolist()) + rounding + math.log(2.0) * trees.error


def _spanning_trees(network: Network) -> _Trees:
    """Return uniform spanning trees of each component, or an even mixture of some trees if it is too large."""
    graph, label = network.graph, network.label
    size = np.bincount(label)
    parent = np.zeros(len(graph.source))
    error = UNIT_ROUNDOFF * network.n
    by_component = np.argsort(label, kind="stable")
    place = np.empty(network.n, dtype=np.int64)  # of each spin in its component
    place[by_component] = np.arange(network.n) - np.repeat(np.cumsum(size) - size, size)
    report("drawing spanning trees", 0.0)
    for spins in np.split(by_component, np.cumsum(size)[:-1]):
        if 1 < len(spins) <= MOST_DENSE_SPINS:
            error += _add_uniform_trees(graph, spins, place, parent)
    is_large = size[label] > MOST_DENSE_SPINS
    if np.any(is_large):
        even = _even_trees(network)
        slots = is_large[graph.source]
        parent[slots] = even[slots]
        error += 8.0 * UNIT_ROUNDOFF * float(even[slots].sum())
    return _Trees(parent, 1.0 / size[label], error)


def _add_uniform_trees(graph: Graph, spins: NDArray[np.int64], place: NDArray[np.int64], parent: FloatArray) -> float:
    """Fill in ``parent`` for one component, for uniform spanning trees and uniform roots; return a bound on the error.

    By the matrix-tree theorem for directed trees, i is the parent of j with probability G_jj - G_ij, where G is the
    inverse of the Laplacian L without the root's row and column. The mean over the roots is X_jj - X_ij with the
    pseudo-inverse X of L. Both directions add up to the effective resistance of the edge. If L X has the error R, then
    in the network of unit resistors the error of X_jj - X_ij is the current that the sources in column j of R drive
    through one edge. It is at most half of their absolute sum.
    """
    n = len(spins)
    degree = np.diff(graph.start)[spins]
    slots = np.concatenate([np.arange(graph.start[i], graph.start[i + 1]) for i in spins])
    receiver, sender = np.repeat(np.arange(n), degree), place[graph.source[slots]]
    L = np.diag(degree.astype(np.float64))
    L[receiver, sender] = -1.0
    X = np.linalg.inv(L + 1.0 / n) - 1.0 / n
    R = L @ X - np.eye(n) + 1.0 / n
    rounding = 2.0 * n * UNIT_ROUNDOFF * (2.0 * degree @ np.abs(X) + 2.0)
    parent[slots] = np.maximum(X[sender, sender] - X[receiver, sender], 0.0)
    column = 0.5 * (np.abs(R).sum(axis=0) + rounding) + 4.0 * UNIT_ROUNDOFF * np.abs(X).max()
    return float(column[sender].sum())


def _even_trees(network: Network) -> FloatArray:
    """Return how often each spin is another's parent, in the mean of spanning trees that share the edges evenly.

    Each tree prefers the edges used least so far: conditional gradients towards the least sum of rho_e^2.
    """
    from spectralz.kernels.propagation.messages import orient

    counts = np.zeros(len(network.graph.slots))
    parent = np.zeros(len(network.coupling))
    drawn = 0
    while drawn < TREES or not np.all(counts):
        tree = _least_spanning_forest(network, 1.0 + counts)
        counts += tree
        parent += orient(network.graph, tree)
        drawn += 1
        report("choosing spanning trees", min(drawn / TREES, 1.0))
    return np.asarray(parent / drawn)


def _least_spanning_forest(network: Network, cost: FloatArray) -> NDArray[np.bool_]:
    """Return which edges are in the spanning forest of least cost; costs must be above 0, since scipy drops others."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    first, second = network.graph.slots.T
    source = network.graph.source.astype(np.int32)  # the type that scipy's tree functions take
    i, j = source[second], source[first]  # i receives in the first slot, j sends
    n, m = network.n, len(cost)
    # The rank of an edge in order of cost identifies the edge.
    rank = np.empty(m, dtype=np.int64)
    rank[np.argsort(cost, kind="stable")] = np.arange(1, m + 1)
    chosen = minimum_spanning_tree(sp.coo_array((rank.astype(np.float64), (i, j)), shape=(n, n)).tocsr())
    return np.isin(rank, chosen.data.astype(np.int64))


def _most_informative_tree(network: Network, trees: _Trees, u: FloatArray) -> FloatArray:
    """Return which spin is which one's parent in the spanning forest of largest mutual information."""
    from spectralz.kernels.propagation.messages import fields, orient

    graph, rho = network.graph, trees.rho(network.graph)
    _, without = fields(graph, network.field, rho, u)
    first, second = graph.slots.T
    information = _mutual_information((network.coupling / rho)[first], without[first], without[second])
    return np.asarray(orient(graph, _least_spanning_forest(network, 1.0 + information.max() - information)))


def _mutual_information(J: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the mutual information of pairs with weights exp(J x y + a x + b y)."""
    from scipy.special import softmax, xlogy

    logs = np.stack([J + a + b, -J + a - b, -J - a + b, J - a - b])
    p = softmax(logs, axis=0).reshape(2, 2, -1)
    x, y = p.sum(axis=1), p.sum(axis=0)
    return np.asarray(xlogy(p, p).sum(axis=(0, 1)) - xlogy(x, x).sum(axis=0) - xlogy(y, y).sum(axis=0))

"""A model laid out for messages, and forests, for which one sweep of messages is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.outcome import (
    MarginalOutcome,
    Outcome,
    exact_outcome,
    impossible_outcome,
    probabilities,
    with_kind_of_means,
)
from spectralz.parts.pairs import are_pairs_wanted
from spectralz.result import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.propagation.messages import Graph
    from spectralz.model import FloatArray, Ising, Model
    from spectralz.parts.propagation.factors import FactorNetwork

# Single flips end long before, unless rounding makes each of two states look better than the other.
MOST_CLIMBS = 1000


@dataclass(frozen=True)
class Network:
    """A model laid out for messages: its graph, and the coupling of each message's edge.

    ``order``, ``up`` and ``label`` are those of :func:`spectralz.kernels.propagation.messages.breadth_first`.
    """

    graph: Graph
    field: FloatArray
    coupling: FloatArray
    order: NDArray[np.int64]
    up: NDArray[np.int64]
    label: NDArray[np.int64]

    lightest = -math.inf
    graph_word = "graph"
    remark = ""

    @classmethod
    def of(cls, model: Ising) -> Network:
        """Lay out a model."""
        from spectralz.kernels.propagation.messages import breadth_first, graph_of

        pairs, J = model.edges()
        graph = graph_of(model.n, pairs)
        walk = breadth_first(graph, np.ones(len(pairs), dtype=np.bool_))
        # Copies, because the model's read-only arrays are a different type to compiled code.
        return cls(graph, np.array(model.field), J[graph.edge], *walk)

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    @property
    def ones(self) -> FloatArray:
        """The weights of plain belief propagation, one per slot."""
        return np.ones(len(self.coupling))

    @property
    def is_forest(self) -> bool:
        """Whether there is no loop: every edge leads to a spin's parent."""
        return len(self.graph.slots) == int(np.count_nonzero(self.up >= 0))

    @property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + np.abs(self.coupling).sum() / 2.0)

    @property
    def work(self) -> float:
        """Number of messages of an iteration."""
        return len(self.coupling)

    def start(self) -> FloatArray:
        """Return the first messages, all 0."""
        return np.zeros(len(self.coupling))

    def iterations(
        self, u: FloatArray, schedule: str, damping: float, tol: float, count: int
    ) -> tuple[FloatArray, int, float]:
        """Return messages after up to ``count`` iterations, how many were made, and the last residual."""
        from spectralz.kernels.propagation.messages import iterations

        order = self.order if schedule == "sequential" else None
        return iterations(self.graph, order, self.field, self.coupling, self.ones, u, damping, tol, count)

    def fields(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return every spin's field, and for each slot that field without the slot's message."""
        from spectralz.kernels.propagation.messages import fields

        return fields(self.graph, self.field, self.ones, u)  # type: ignore[no-any-return]

    def bethe(self, without: FloatArray) -> float:
        """Return Bethe's log Z, whose derivatives with respect to the cavity fields vanish at fixed points."""
        from spectralz.kernels.propagation.messages import bethe_terms

        spin, edge = bethe_terms(self.graph, self.field, self.coupling, without)
        return math.fsum([*spin.tolist(), *(-edge).tolist()])

    def forest_terms(self, total: FloatArray, without: FloatArray) -> FloatArray:
        """Return the terms whose sum is log Z of a forest."""
        from spectralz.kernels.propagation.messages import forest_terms

        return forest_terms(self.up, total, without, self.coupling)  # type: ignore[no-any-return]

    def forest_rounding(self) -> float:
        """Bound the rounding error of log Z of a forest.

        A wrong message is the right one in a model with another field, and an error d in a field changes log Z by at
        most d. Spin i adds up as many messages as it has neighbors, with no partial sum above |theta_i| + sum_j
        |J_ij|. A message and its remaining term are accurate to 24 roundoffs of that size, or of 1.
        """
        degree = np.diff(self.graph.start)
        owner = np.repeat(np.arange(self.n), degree)
        sizes = np.abs(self.field) + np.bincount(owner, np.abs(self.coupling), minlength=self.n)
        return 1.01 * UNIT_ROUNDOFF * float(((degree + 24.0) * sizes).sum() + 24.0 * self.n)

    def beliefs(
        self, total: FloatArray, without: FloatArray, outcome: Outcome, kind: Kind = Kind.ESTIMATE
    ) -> MarginalOutcome:
        """Return the marginals of the spins and, if wanted, of the edges."""
        return beliefs(self.graph, self.coupling, total, without, outcome, kind)

    def log_weight_near(self, total: FloatArray) -> float:
        """Return the log-weight of the signs of the means, improved by single flips."""
        from spectralz.kernels.propagation.messages import climb

        x = climb(self.graph, self.field, self.coupling, np.where(total < 0.0, -1.0, 1.0), MOST_CLIMBS)
        first, second = self.graph.slots.T
        pairs = self.coupling[first] * x[self.graph.source[first]] * x[self.graph.source[second]]
        return math.fsum([*(self.field * x).tolist(), *pairs.tolist()])


@dataclass(frozen=True)
class Forest:
    """A solved forest: the messages of one sweep up and down, and a bound on the rounding error."""

    network: Network | FactorNetwork
    total: FloatArray
    without: FloatArray
    log_z: float
    rounding: float

    @classmethod
    def of(cls, network: Network | FactorNetwork) -> Forest:
        """Send the messages up to the roots, then down."""
        u, _, _ = network.iterations(network.start(), "sequential", 0.0, 0.0, 1)
        total, without = network.fields(u)
        terms = network.forest_terms(total, without)
        return cls(network, total, without, math.fsum(terms.tolist()), network.forest_rounding())

    def outcome(self, model: Model) -> Outcome:
        """Pack the exact log Z."""
        if self.log_z + self.rounding < self.network.lightest:
            return impossible_outcome(f"exact: the {self.network.graph_word} is a forest")
        log_z = self.log_z + model.constant
        rounding = self.rounding + 2.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(self.log_z)) + model.rounding
        words = f"exact: the {self.network.graph_word} is a forest, solved by one sweep up and down"
        details = {"residual": 0.0, "is_forest": True, "rounding": rounding}
        return exact_outcome(log_z, rounding, words, iterations=1, details=details)

    def marginal_outcome(self, model: Model) -> MarginalOutcome:
        """Pack the exact marginals, or report that the weights are too large for them."""
        # A total error r of the fields changes a mean by at most r, and that of a pair by at most 2 r.
        outcome, kind = with_kind_of_means(self.outcome(model), 2.0 * (self.rounding + model.rounding_of_terms))
        return self.network.beliefs(self.total, self.without, outcome, kind)


def beliefs(
    graph: Graph,
    coupling: FloatArray,
    total: FloatArray,
    without: FloatArray,
    outcome: Outcome,
    kind: Kind = Kind.ESTIMATE,
) -> MarginalOutcome:
    """Return P(x_i = -1) and P(x_i = +1), E[x_i] and, if wanted, E[x_i x_j] of each edge, from the messages.

    A pair's weights are exp(J x y + a x + b y) with the fields a, b of its spins without each other's message, so
    that its mean is tanh(J + log(cosh(a + b) / cosh(a - b)) / 2), which is tanh(J + atanh(tanh a tanh b)).
    """
    from spectralz.kernels.propagation.messages import messages_between

    first, second = graph.slots.T if are_pairs_wanted() else graph.slots[:0].T
    pair_mean = np.tanh(coupling[first] + messages_between(without[first], without[second]))
    return MarginalOutcome(probabilities(total), np.tanh(total), pair_mean, kind, outcome)

"""A model with terms of three and more spins laid out for messages between its spins and its factors.

A factor has the spins of a term that no larger term contains. Every term belongs to one factor that has all its spins;
the fields stay with the spins. The larger the factors, the fewer loops there are between them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.single_spin import log_2cosh
from spectralz.model import Polynomial
from spectralz.parts.elimination.constrained import zeros_of
from spectralz.parts.outcome import MarginalOutcome, Outcome, probabilities
from spectralz.parts.pairs import are_pairs_wanted
from spectralz.parts.propagation.network import MOST_CLIMBS, Network
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.propagation.factor_messages import Tables
    from spectralz.kernels.propagation.messages import Graph
    from spectralz.model import FloatArray, IntArray, Model

# A factor of k spins has a table of 2^k numbers; all tables together take a gigabyte at most.
MOST_SPINS, MOST_ENTRIES = 16, 2**27
# States that break a constraint weigh together less than any other by this many nats, half of which tell the two apart.
MARGIN = 120.0
# The time for an entry of a table in an iteration, in messages between pairs, as measured.
MESSAGES_PER_ENTRY = 0.3


def network_of(model: Model) -> Network | FactorNetwork:
    """Lay out a model: the messages of pairs, or those of factors if there are terms of three and more spins."""
    if isinstance(model, Polynomial) or model.constraints:
        return FactorNetwork.of(model)
    return Network.of(model)


@dataclass(frozen=True)
class FactorNetwork:
    """Spins and factors laid out for messages; :class:`Network` has the same for pairs.

    Attributes
    ----------
    graph
        The graph of spins and factors, as ``kernels/propagation/factor_messages.py`` describes it.
    field
        One number per spin.
    tables
        The log-weights of each factor.
    place, weight
        For each term, the pairs first, the entry that is its set of spins, and its weight.
    order, up
        Those of :func:`spectralz.kernels.propagation.messages.breadth_first`.
    sizes
        For each spin, |theta_i| and the absolute weights of its terms and zeros together, which no field of it exceeds.
    zeros
        Half of what the log-weights of zeros in the tables add up to, times the spins of each.
    lightest
        States of a smaller log-weight break a constraint.
    """

    graph: Graph
    field: FloatArray
    tables: Tables
    place: IntArray
    weight: FloatArray
    order: IntArray
    up: IntArray
    sizes: FloatArray
    zeros: float = 0.0
    lightest: float = -math.inf

    graph_word = "graph of spins and terms"
    remark = "; the size of the error is not known"

    @classmethod
    def of(cls, model: Model) -> FactorNetwork:
        """Lay out a model whose constraints are tables.

        A zero is so small a weight that all states together which break a constraint add exp(-``MARGIN`` / 2) to Z,
        relatively, or there are no others: messages of it keep the digits of other messages.
        """
        from spectralz.kernels.propagation.factor_messages import Tables, log_weights
        from spectralz.kernels.propagation.messages import breadth_first, graph_of

        if model.higher.largest > MOST_SPINS:
            raise TooLargeError(
                f"bp makes a table of 2^k numbers for a term of k spins, and one has {model.higher.largest}; it takes "
                f"terms of up to {MOST_SPINS}. Ask for another method, such as annealing"
            )
        pairs, J = model.edges()
        scopes = [*map(tuple, pairs.tolist()), *model.higher.scopes()]
        weight = np.concatenate([J, model.higher.weight])
        tables = zeros_of(model)
        factors, owner, mask = factors_of([*scopes, *tables.scopes.scopes()])
        owner, of_tables = np.split(owner, [len(scopes)])
        mask = mask[: len(scopes)]
        size = np.array([len(factor) for factor in factors])
        start = np.concatenate([[0], np.cumsum(1 << size)]).astype(np.int64)
        if start[-1] > MOST_ENTRIES:
            raise TooLargeError(
                f"the tables of bp would have {start[-1]:.2g} numbers, 2^k for each term of k spins that is in no "
                f"larger one; it makes up to {MOST_ENTRIES:.2g}. Ask for another method, such as annealing"
            )
        spins = np.array([i for factor in factors for i in factor], dtype=np.int64)
        nodes = np.repeat(model.n + np.arange(len(factors)), size)
        graph = graph_of(model.n + len(factors), np.column_stack([spins, nodes]))
        order, up, _ = breadth_first(graph, np.ones(len(spins), dtype=np.bool_))
        place = start[owner] + mask
        entry = np.zeros(start[-1])
        entry[place] = weight
        raw = Tables(entry, start, int(size.max()))
        entry, most = log_weights(graph, model.n, raw), float(np.abs(model.field).sum() + np.abs(weight).sum())
        zero = 2.0 * most + model.n * math.log(2.0) + MARGIN if model.constraints else 0.0
        for scope, allowed, a in zip(tables.scopes.scopes(), tables.allowed, of_tables.tolist(), strict=True):
            states = np.arange(1 << size[a])
            bits = tuple(states >> factors[a].index(i) & 1 for i in scope)
            entry[start[a] : start[a + 1]] -= np.where(allowed[bits], 0.0, zero)
        sizes = np.abs(model.field) + _absolute_weights(model.n, scopes, weight)
        sizes += zero * np.bincount(tables.scopes.spin, minlength=model.n)
        of_zeros = zero * float(size[of_tables].sum())
        lightest = -most - MARGIN / 2.0 if model.constraints else -math.inf
        network = cls(graph, np.array(model.field), raw._replace(entry=entry), place, weight, order, up, sizes)
        return replace(network, zeros=of_zeros, lightest=lightest)

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    @property
    def edges(self) -> int:
        """Number of spins of all factors together; the slots of spins are these many, and come first."""
        return len(self.graph.slots)

    @property
    def is_forest(self) -> bool:
        """Whether there is no loop: every edge leads to the parent of a spin or of a factor."""
        return self.edges == int(np.count_nonzero(self.up >= 0))

    @property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + np.abs(self.weight).sum())

    @property
    def work(self) -> float:
        """How many messages between pairs take as long as an iteration."""
        return self.edges + MESSAGES_PER_ENTRY * len(self.tables.entry)

    def start(self) -> FloatArray:
        """Return the first messages: 0 into the spins, and what these say then."""
        return self.fields(np.zeros(2 * self.edges))[1]

    def iterations(
        self, u: FloatArray, schedule: str, damping: float, tol: float, count: int
    ) -> tuple[FloatArray, int, float]:
        """Return messages after up to ``count`` iterations, how many were made, and the last residual."""
        from spectralz.kernels.propagation.factor_messages import iterations

        order = self.order if schedule == "sequential" else np.arange(len(self.order))
        return iterations(self.graph, order, self.field, self.tables, u, damping, tol, count)

    def fields(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return every spin's field, and the messages with what the spins say to their factors made anew."""
        from spectralz.kernels.propagation.messages import fields

        total, without = fields(self.graph, self.field, np.ones(len(u)), u)
        h = u.copy()
        h[self.graph.reverse[: self.edges]] = without[: self.edges]
        return total, h

    def bethe(self, h: FloatArray) -> float:
        r"""Return Bethe's log Z, whose derivatives with respect to the fields h_{i\a} vanish at fixed points.

        It is sum_i log Z_i + sum_a log Z_a - sum_ia log Z_ia, where Z_ia, of a spin and one of its factors, is Z_a
        divided by what is left after all spins of a but i are summed out.
        """
        from spectralz.kernels.propagation.factor_messages import sums

        log_z, message, half_sum = sums(self.graph, self.n, self.tables, h)
        spins, first = self.graph.source[self.edges :], self.graph.start[self.n : -1] - self.edges
        spin = log_2cosh(self.field + np.bincount(spins, message[self.edges :], minlength=self.n))
        factor = np.add.reduceat(half_sum[self.edges :], first) - (self._factor_sizes - 1) * log_z
        return math.fsum([*spin.tolist(), *factor.tolist()])

    @property
    def _factor_sizes(self) -> IntArray:
        return np.diff(self.graph.start[self.n :])

    def forest_terms(self, total: FloatArray, h: FloatArray) -> FloatArray:
        """Return the terms whose sum is log Z of a forest, summed out toward its roots, which are spins."""
        from spectralz.kernels.propagation.factor_messages import sums

        _, _, half_sum = sums(self.graph, self.n, self.tables, h)
        return np.concatenate([log_2cosh(total[self.up[: self.n] < 0]), half_sum[self.up[self.n :]]])

    def forest_rounding(self) -> float:
        """Bound the rounding error of log Z of a forest.

        As for pairs, a wrong message is the right one in another field, and an error d in a field changes log Z by at
        most d. Each sum over a spin of a factor of k spins is accurate to 10 roundoffs of the sizes of the numbers in
        it: the weights of the factor, the fields of the spins that are summed out, and 1 for each of these. The k sums
        lead to a message and to a term. A spin is summed out in one factor only, whichever is the root.
        """
        degree, largest = np.diff(self.graph.start[: self.n + 1]), np.zeros(self.n)
        np.maximum.at(largest, self.graph.source[self.edges :], np.repeat(self._factor_sizes, self._factor_sizes))
        factor = np.searchsorted(self.tables.start, self.place, side="right") - 1
        tables = float(24.0 * (self._factor_sizes[factor] * np.abs(self.weight)).sum()) + 24.0 * self.zeros
        fields = float(((degree + 24.0 * (largest + 1.0)) * (self.sizes + 1.0)).sum())
        return 1.01 * UNIT_ROUNDOFF * (tables + fields)

    def log_weight_near(self, total: FloatArray) -> float:
        """Return the log-weight of the signs of the means, improved by single flips."""
        from spectralz.kernels.propagation.factor_messages import flip_what_gains

        x = np.where(total < 0.0, -1.0, 1.0)
        first = self.graph.start[self.n : -1] - self.edges
        bit = np.arange(self.edges) - np.repeat(first, self._factor_sizes)
        state = np.add.reduceat((x[self.graph.source[self.edges :]] > 0.0).astype(np.int64) << bit, first)
        for _ in range(MOST_CLIMBS):
            if not flip_what_gains(self.graph, self.field, self.tables, x, state):
                break
        return math.fsum([*(self.field * x).tolist(), *self.tables.entry[self.tables.start[:-1] + state].tolist()])

    def beliefs(
        self, total: FloatArray, h: FloatArray, outcome: Outcome, kind: Kind = Kind.ESTIMATE
    ) -> MarginalOutcome:
        """Return the marginals of the spins and, if wanted, the means of pairs and of the other terms."""
        from spectralz.kernels.propagation.factor_messages import means_of_sets

        mean = np.empty(0)
        if are_pairs_wanted():
            mean = np.clip(means_of_sets(self.graph, self.n, self.tables, h)[self.place], -1.0, 1.0)
        return MarginalOutcome(probabilities(total), np.tanh(total), mean, kind, outcome)


def factors_of(scopes: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], IntArray, IntArray]:
    """Return the scopes that no other contains, which of them each scope belongs to, and its spins there, as bits.

    Examples
    --------
    >>> factors, owner, mask = factors_of([(0, 1), (1, 3), (0, 1, 2)])
    >>> factors, owner.tolist(), mask.tolist()
    ([(0, 1, 2), (1, 3)], [0, 1, 0], [3, 3, 7])
    """
    factors: list[tuple[int, ...]] = []
    sets: list[set[int]] = []
    of_spin: dict[int, list[int]] = {}
    owner, mask = np.empty((2, len(scopes)), dtype=np.int64)
    by_size = sorted(range(len(scopes)), key=lambda term: -len(scopes[term]))
    for _, terms in itertools.groupby(by_size, key=lambda term: len(scopes[term])):
        larger = len(factors)
        for term in terms:
            scope = scopes[term]
            nearby = min((of_spin.get(i, []) for i in scope), key=len)
            owner[term] = next((a for a in nearby if sets[a].issuperset(scope)), len(factors))
            if owner[term] == len(factors):
                factors.append(scope)
                sets.append(set(scope))
            mask[term] = sum(1 << factors[owner[term]].index(i) for i in scope)
        for a in range(larger, len(factors)):  # only now, because scopes of the same size do not contain each other
            for i in factors[a]:
                of_spin.setdefault(i, []).append(a)
    return factors, owner, mask


def _absolute_weights(n: int, scopes: Sequence[tuple[int, ...]], weight: FloatArray) -> FloatArray:
    """Return for each spin the sum of the absolute weights of its terms."""
    spins = np.array([i for scope in scopes for i in scope], dtype=np.int64)
    sizes = np.repeat(np.abs(weight), [len(scope) for scope in scopes])
    return np.bincount(spins, sizes, minlength=n).astype(np.float64)

"""Belief propagation written out: a message is a table over {-1, +1}, a sum is a loop, numbers have fifty digits.

Nothing is taken from the package but the numbers of the model, read off as arrays.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np

from tests.reference.states import dense

SPINS = (-1, 1)


def normalized(table):
    total = mpmath.fsum(table.values())
    return {x: value / total for x, value in table.items()}


class LoopyBeliefPropagation:
    """Parallel updates from uniform messages; ``messages[i, j]`` is what i says to j, a table over x_j."""

    def __init__(self, model, damping=0.0):
        A = dense(model)
        self.n = model.n
        self.damping = mpmath.mpf(damping)
        self.constant = mpmath.mpf(model.offset) + mpmath.fsum(np.diag(A).tolist())
        self.theta = [mpmath.mpf(float(t)) for t in model.field]
        self.J = {
            (i, j): 2 * mpmath.mpf(float(A[i, j])) for i, j in itertools.permutations(range(model.n), 2) if A[i, j] != 0
        }
        self.neighbors = [[j for j in range(model.n) if (i, j) in self.J] for i in range(model.n)]
        self.messages = {pair: {x: mpmath.mpf(1) / 2 for x in SPINS} for pair in self.J}

    def cavity(self, i, j):
        """The distribution of x_i in the absence of j."""
        table = {}
        for x in SPINS:
            table[x] = mpmath.exp(self.theta[i] * x)
            for k in self.neighbors[i]:
                if k != j:
                    table[x] *= self.messages[k, i][x]
        return normalized(table)

    def update(self, i, j):
        """What i should say to j."""
        table = self.cavity(i, j)
        return normalized({y: mpmath.fsum(mpmath.exp(self.J[i, j] * x * y) * table[x] for x in SPINS) for y in SPINS})

    def iterate(self, count):
        with mpmath.workdps(50):
            for _ in range(count):
                wanted = {(i, j): self.update(i, j) for i, j in self.J}
                # Damping is a mean of logs: a geometric mean of the tables.
                self.messages = {
                    pair: normalized(
                        {x: new[x] ** (1 - self.damping) * self.messages[pair][x] ** self.damping for x in SPINS}
                    )
                    for pair, new in wanted.items()
                }
        return self

    def log_z(self):
        """Sum of log Z_i less sum of log Z_ij, each by its definition with the cavity distributions."""
        with mpmath.workdps(50):
            nu = {(i, j): self.cavity(i, j) for i, j in self.J}
            value = self.constant
            for i in range(self.n):
                total = mpmath.mpf(0)
                for x in SPINS:
                    term = mpmath.exp(self.theta[i] * x)
                    for k in self.neighbors[i]:
                        term *= mpmath.fsum(mpmath.exp(self.J[i, k] * x * y) * nu[k, i][y] for y in SPINS)
                    total += term
                value += mpmath.log(total)
            for i, j in self.J:
                if i < j:
                    terms = [mpmath.exp(self.J[i, j] * x * y) * nu[i, j][x] * nu[j, i][y] for x in SPINS for y in SPINS]
                    value -= mpmath.log(mpmath.fsum(terms))
            return float(value)

    def means(self):
        """E[x_i] by the beliefs, and E[x_i x_j] (n x n, 0 where there is no edge) by those of the edges."""
        with mpmath.workdps(50):
            mean, pair = np.zeros(self.n), np.zeros((self.n, self.n))
            for i in range(self.n):
                table = self.cavity(i, None)
                mean[i] = float(table[1] - table[-1])
            for i, j in self.J:
                a, b = self.cavity(i, j), self.cavity(j, i)
                both = normalized(
                    {(x, y): mpmath.exp(self.J[i, j] * x * y) * a[x] * b[y] for x in SPINS for y in SPINS}
                )
                pair[i, j] = float(mpmath.fsum(x * y * p for (x, y), p in both.items()))
            return mean, pair


def spanning_trees(n, pairs):
    """All spanning trees of a connected graph, each a tuple of edge numbers, by trying every choice of n - 1 edges."""
    for chosen in itertools.combinations(range(len(pairs)), n - 1):
        label = list(range(n))
        for e in chosen:
            a, b = (label[v] for v in pairs[e])
            label = [b if c == a else c for c in label]
        if len(set(label)) == 1:
            yield chosen


def tree_reweighted_objective(model, rho, mean, pair_mean):
    """Mean log-weight plus entropies of the spins less rho times mutual informations; rho, pair_mean by edge."""
    A = dense(model)

    def entropy(table):
        p = np.asarray(table)
        p = p[p > 0]
        return -np.sum(p * np.log(p))

    value = model.offset + np.trace(A) + model.field @ mean
    single = [entropy([(1 - m) / 2, (1 + m) / 2]) for m in mean]
    value += sum(single)
    for (i, j), c in pair_mean.items():
        table = [(1 + x * mean[i] + y * mean[j] + x * y * c) / 4 for x in SPINS for y in SPINS]
        value += 2 * A[i, j] * c - rho[i, j] * (single[i] + single[j] - entropy(table))
    return value

"""Expectation consistency by its definition: moments matched by a general root finder, three log Z, loops.

Opper and Winther, JMLR 6, 2005, Sec. 3. Nothing is taken from the package but the numbers of the model.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import root

from tests.reference.states import dense


class ExpectationConsistency:
    """q = exp(x' (J - Lambda) x / 2 + gamma x), r of spins, s = their overlap; all agree on E x_i and E x_i^2."""

    def __init__(self, model):
        self.n, self.theta = model.n, np.array(model.field)
        self.constant = model.offset + np.trace(dense(model))
        self.J = np.zeros((model.n, model.n))
        for i in range(model.n):
            for j in range(model.n):
                if i != j:
                    self.J[i, j] = dense(model)[i, j] + dense(model)[j, i]
        # A feasible start: the spins without couplings, and a diagonal that dominates.
        precision = np.cosh(self.theta) ** 2 + np.abs(self.J).sum(axis=1)
        found = root(self._mismatch, np.concatenate([precision, precision * np.tanh(self.theta)]), tol=1e-13)
        assert np.abs(self._mismatch(found.x)).max() < 1e-11, "the root finder failed: take a weaker model"
        self.Lambda, self.gamma = found.x[: self.n], found.x[self.n :]
        self.S = np.linalg.inv(np.diag(self.Lambda) - self.J)
        self.m = self.S @ self.gamma
        assert np.linalg.eigvalsh(self.S)[0] > 0

    def _mismatch(self, x):
        """Mean and variance of q less those of the spins in the field that q leaves them without their own factors."""
        precision, gamma = x[: self.n], x[self.n :]
        S = np.linalg.inv(np.diag(precision) - self.J)
        mean = S @ gamma
        wrong = []
        for i in range(self.n):
            cavity = mean[i] / S[i, i] - gamma[i]
            spin = math.tanh(self.theta[i] + cavity)
            wrong += [mean[i] - spin, S[i, i] - (1 - spin * spin)]
        return np.array(wrong)

    def log_z(self):
        """log Z_q + log Z_r - log Z_s."""
        sign, log_det = np.linalg.slogdet(np.diag(self.Lambda) - self.J)
        assert sign > 0
        value = self.n / 2 * math.log(2 * math.pi) - log_det / 2 + self.gamma @ self.S @ self.gamma / 2
        for i in range(self.n):
            v = 1 - self.m[i] ** 2
            total_precision, total_linear = 1 / v, self.m[i] / v
            spin_precision, spin_linear = total_precision - self.Lambda[i], total_linear - self.gamma[i]
            weights = [math.exp((self.theta[i] + spin_linear) * x - spin_precision * x * x / 2) for x in (-1, 1)]
            value += math.log(sum(weights))
            value -= math.log(2 * math.pi / total_precision) / 2 + total_linear**2 / total_precision / 2
        return value + self.constant

    def correction(self):
        """The sums for l = 3 and for l = 4."""
        totals = {3: 0.0, 4: 0.0}
        for i in range(self.n):
            for j in range(self.n):
                if i == j:
                    continue
                for order in totals:
                    ratio = self.S[i, j] / ((1 - self.m[i] ** 2) * (1 - self.m[j] ** 2))
                    product = cumulant(order, self.m[i]) * cumulant(order, self.m[j])
                    totals[order] += product / math.factorial(order) * ratio**order / 2
        return totals[3], totals[4]


def loops(mean, variance, correlation):
    """Corrections of three and four spins by their definition: two triangles, the square, the tetrahedron.

    A labeled graph of p vertices has the weight 1 / p! and 1 / l! for each bundle of l lines; a triangle with two
    double sides has 3 labelings, a square with two of them 6, the others 1.
    """
    n, C = len(mean), correlation - np.diag(np.diag(correlation))
    k3, k4 = (np.array([cumulant(k, m) / v ** (k / 2) for m, v in zip(mean, variance, strict=True)]) for k in (3, 4))
    triangle, double, square, tetrahedron = 0.0, 0.0, 0.0, 0.0
    for i, j, k in itertools.product(range(n), repeat=3):
        triangle += 3 / 6 / 4 * k4[i] * k3[j] * k3[k] * C[i, j] ** 2 * C[i, k] ** 2 * C[j, k]
        double += 1 / 6 / 8 * k4[i] * k4[j] * k4[k] * (C[i, j] * C[i, k] * C[j, k]) ** 2
        for m in range(n):
            vertices = k3[i] * k3[j] * k3[k] * k3[m]
            square += 6 / 24 / 4 * vertices * C[i, j] ** 2 * C[j, k] * C[k, m] ** 2 * C[m, i]
            tetrahedron += vertices / 24 * C[i, j] * C[i, k] * C[i, m] * C[j, k] * C[j, m] * C[k, m]
    return triangle, double, square, tetrahedron


def cumulant(order, m):
    """Third or fourth cumulant of a spin of mean m, from the moments about the mean."""
    central = [sum((1 + x * m) / 2 * (x - m) ** k for x in (-1, 1)) for k in range(5)]
    return central[3] if order == 3 else central[4] - 3 * central[2] ** 2

"""Models whose log Z has a formula, or an algorithm unlike any of ours."""

from __future__ import annotations

import mpmath
import numpy as np


def curie_weiss(n: int, strength: float, field: float) -> float:
    """Sum over magnetisations: C(n, k) states have M = 2k - n, and sum_{i<j} x_i x_j = (M^2 - n) / 2."""
    with mpmath.workdps(50):
        J = mpmath.mpf(strength) / n
        terms = []
        for k in range(n + 1):
            M = 2 * k - n
            terms.append(mpmath.binomial(n, k) * mpmath.exp(J * (M * M - n) / 2 + mpmath.mpf(field) * M))
        return float(mpmath.log(mpmath.fsum(terms)))


def chain(field: np.ndarray, J: np.ndarray) -> float:
    """Transfer matrices of an open chain, in fifty digits."""
    with mpmath.workdps(50):
        vector = [mpmath.exp(-mpmath.mpf(float(field[0]))), mpmath.exp(mpmath.mpf(float(field[0])))]
        for theta, weight in zip(field[1:], J, strict=True):
            theta, weight = mpmath.mpf(float(theta)), mpmath.mpf(float(weight))
            vector = [
                mpmath.exp(x * theta) * sum(vector[k] * mpmath.exp(weight * x * y) for k, y in ((0, -1), (1, 1)))
                for x in (-1, 1)
            ]
        return float(mpmath.log(sum(vector)))


def ferromagnet_on_torus(side: int, K: float) -> float:
    """Kaufman's formula (1949) for the square lattice Ising model on a side x side torus, J = K on every edge."""
    with mpmath.workdps(50):
        K, m = mpmath.mpf(K), side
        gamma = []
        for k in range(2 * m):
            if k == 0:
                gamma.append(2 * K + mpmath.log(mpmath.tanh(K)))
            else:
                c = mpmath.cosh(2 * K) / mpmath.tanh(2 * K) - mpmath.cos(mpmath.pi * k / m)
                gamma.append(mpmath.acosh(c))
        odd, even = gamma[1::2], gamma[0::2]
        products = [
            mpmath.fprod(2 * f(m * g / 2) for g in part) for part in (odd, even) for f in (mpmath.cosh, mpmath.sinh)
        ]
        return float(mpmath.log((2 * mpmath.sinh(2 * K)) ** (mpmath.mpf(m * m) / 2) * mpmath.fsum(products) / 2))

"""Algorithm 2 of the paper, line by line, every expectation over all 2^n states written out."""

from __future__ import annotations

import math

import mpmath
import numpy as np

import spectralz as sz
from tests.reference import algorithm_1, states


def log_z_hat(model: sz.Ising, D: np.ndarray, quantised: bool = False) -> float:
    """log Z-hat for a given D (n + 1 numbers if there is a field), offset included."""
    A = states.dense(model)
    has_field = bool(np.any(model.field))
    if has_field:
        half = model.field[:, None] / 2
        A = np.block([[A, half], [half.T, np.zeros((1, 1))]])
    n = len(A)
    lam, v = np.linalg.eigh(A + np.diag(D))
    X = states.all_states(n).astype(float)
    total = n * math.log(2) - math.fsum(D) + model.offset - (math.log(2) if has_field else 0.0)
    for j in range(n):
        if quantised and abs(lam[j]) > 1e-12:
            c = np.array([math.sqrt(abs(lam[j])) / 1000])
            total += algorithm_1.log_z_hat(np.zeros(n), lam[j : j + 1], v[:, j : j + 1].T, c) - n * math.log(2)
        else:
            exponents = lam[j] * (X @ v[:, j]) ** 2
            with mpmath.workdps(40):
                total += float(mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(e)) for e in exponents) / 2**n))
    return total

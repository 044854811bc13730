"""Algorithm 1 of the paper, transcribed state by state: Eqs. (5) to (9), slow and literal."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np


def nearest_integer(value: float) -> int:
    """The argmin of |c k - value| over integers k; ties may go either way."""
    return int(np.rint(value))


def f_of_state(x: np.ndarray, u: np.ndarray, c: float) -> int:
    """Eqs. (8) and (9): start from all spins -1 and add u_hat_i for every spin that is +1."""
    k = nearest_integer(-u.sum() / c)
    for i, spin in enumerate(x):
        if spin == 1:
            k += nearest_integer(2 * u[i] / c)
    return k


def log_z_hat(theta: np.ndarray, lam: np.ndarray, v: np.ndarray, c: np.ndarray) -> float:
    """Eq. (5): sum over states of exp(<theta, x>) exp(sum_j sign(lambda_j) (c_j f_j(x))^2)."""
    u = np.sqrt(np.abs(lam))[:, None] * v
    with mpmath.workdps(40):
        terms = []
        for x in itertools.product([-1, 1], repeat=len(theta)):
            x = np.array(x)
            exponent = mpmath.fsum(mpmath.mpf(float(t)) * int(s) for t, s in zip(theta, x, strict=True))
            for j in range(len(lam)):
                exponent += int(np.sign(lam[j])) * (mpmath.mpf(float(c[j])) * f_of_state(x, u[j], c[j])) ** 2
            terms.append(mpmath.exp(exponent))
        return float(mpmath.log(mpmath.fsum(terms)))


def claim_1_half(u: np.ndarray, c: float) -> int:
    """b_j of Claim 1."""
    return int(np.ceil(np.abs(u).sum() / c + (len(u) + 1) / 2))

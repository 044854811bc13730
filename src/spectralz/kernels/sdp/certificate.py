"""Prove in floating point that Diag(y) - C is positive semidefinite.

With positive y the question is whether S = Y^(-1/2) C Y^(-1/2) is at most the identity. The diagonal of I - S is 1 for
any size of the couplings, so one margin suits all spins. Let the margin be as large as all rounding errors together. If
the factorization of I - S minus this margin succeeds, then I - S is semidefinite.

*Dense*, by Cholesky. R' R = M + E with |E_ij| <= g / (1 - g) sqrt(M_ii M_jj), g = (n + 1) u / (1 - (n + 1) u) (Higham
2002, Theorem 10.3), hence |E|_2 <= g / (1 - g) Tr M, about n^2 u (Rump 2006 makes the same step).

*Sparse*, by SuperLU with pivots on the diagonal. L U = M + E with |E| <= g |L| |U| (Higham 2002, Theorem 9.3) where
g counts the terms of an inner product; and U is D L' up to F, which is at hand. So M = L D L' + (L F - E), the first
semidefinite if all pivots are positive, the second symmetric and so no larger than its largest row sum, which two
products with |L| bound. Both theorems hold for any order of the sums; they exclude products by Strassen's method.

*Dense, on a device*, by any factor. Libraries for GPUs may solve with inverted blocks, which Theorem 10.3 does not
cover, so that their factor L is taken as a guess and multiplied out: L L' is semidefinite whatever L is, and M differs
from it by the residual that is computed, F, and by what rounding does to the product. That is at most g |L| |L|' entry
by entry, g = n u / (1 - n u), for any order of the sums and with or without fused multiplications (Higham 2002, Eq.
(3.13)), and so at most g |L|_F^2 in the 2-norm. F counts by its Frobenius norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray

# Extra operations per entry beyond those of an inner product: a division instead of a product, reciprocals of pivots.
FEW = 4
# S is C_ij (given to one rounding) times two reciprocals of roots: 6 roundings, and 2 to spare.
SCALING_ROUNDINGS = 8.0
# On a device the margin is so many times that by Cholesky, which leaves the residual as much as the product's rounding.
ROOM_FOR_RESIDUAL = 2.0


def is_dominated(C: Any, y: FloatArray) -> bool:
    """Say whether Diag(y) - C >= 0 is proven, for symmetric C with zero diagonal.

    C is dense or sparse, or a dense array of JAX on a device, where the proof is then made. The entries of
    C may each be off by a unit roundoff relative to themselves. False proves nothing.
    """
    if not len(y):
        return True
    if not (np.all(np.isfinite(y)) and y.min() > 0.0):
        return False
    with np.errstate(all="ignore"):  # an overflow makes the factorization fail
        roots = 1.0 / np.sqrt(y)
        if sp.issparse(C):
            return _sparse(C, roots)
        return _dense(C, roots) if isinstance(C, np.ndarray) else _dense_on_device(C, roots)


def rounding_margin(n: int) -> float:
    """Return the relative margin of the proof by Cholesky: no smaller gap can be proven."""
    return 1.01 * (n + FEW) * n * UNIT_ROUNDOFF


def _dense(C: FloatArray, roots: FloatArray) -> bool:
    from scipy.linalg.lapack import dpotrf

    n = len(roots)
    M = C * -roots[:, None]
    M *= roots[None, :]
    row_sum = float(np.abs(M).sum(axis=1).max())
    margin = rounding_margin(n) + SCALING_ROUNDINGS * UNIT_ROUNDOFF * row_sum
    if not margin < 1.0:  # nor NaN
        return False
    M[np.diag_indices(n)] = 1.0 - margin
    # LAPACK reads columns: the transpose of a symmetric array is the array, without a copy.
    _, info = dpotrf(M.T, lower=False, clean=False, overwrite_a=True)
    return bool(info == 0)


def _dense_on_device(C: Any, roots: FloatArray) -> bool:
    from spectralz.kernels.device.certificate import factor_and_residual, largest_row_sum

    n = len(roots)
    scaling = SCALING_ROUNDINGS * UNIT_ROUNDOFF * largest_row_sum(C, roots)
    margin = ROOM_FOR_RESIDUAL * rounding_margin(n) + scaling
    if not margin < 1.0:  # nor NaN
        return False
    squares, residual = factor_and_residual(C, roots, 1.0 - margin)
    # Both are sums of n^2 terms, good to n^2 units, and the residual's terms are differences good to one.
    needed = 1.01 * ((n + FEW) * UNIT_ROUNDOFF * squares + residual) + scaling
    return bool(needed <= margin)  # which no NaN is: where there is no factor, all of it is NaN


def _sparse(C: Any, roots: FloatArray) -> bool:
    from scipy.sparse.linalg import splu

    n = len(roots)
    scale = sp.diags_array(roots, format="csr")
    S = sp.csr_array(scale @ C @ scale)
    row_sum = float(abs(S).sum(axis=1).max())
    if not np.isfinite(row_sum):
        return False
    # The margin is known only after the factorization, which then checks this guess.
    guess = 64.0 * UNIT_ROUNDOFF * (n + row_sum)
    while guess < 1e-3:
        M = sp.csc_array((1.0 - guess) * sp.eye_array(n, format="csc") - S)
        try:
            factors = splu(
                M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
            )
        except RuntimeError:  # a pivot of zero
            return False
        if not np.array_equal(factors.perm_r, factors.perm_c):
            return False
        pivots = factors.U.diagonal()
        if not (np.all(np.isfinite(pivots)) and pivots.min() > 0.0):
            return False
        needed = _lu_margin(factors.L, factors.U, pivots) + SCALING_ROUNDINGS * UNIT_ROUNDOFF * row_sum
        if needed <= guess:
            return True
        guess = 1.5 * needed
    return False


def _lu_margin(L: Any, U: Any, pivots: FloatArray) -> float:
    """Bound |M - L D L'|_2, D the diagonal of U."""
    L, U = sp.csr_array(L), sp.csr_array(U)
    F = sp.csr_array(U - sp.diags_array(pivots, format="csr") @ L.T)
    terms = int(np.diff(L.indptr).max()) + FEW
    gamma = 1.01 * terms * UNIT_ROUNDOFF
    ones = np.ones(len(pivots))
    # F is itself computed, with two roundings per entry.
    beyond = abs(F) @ ones + (gamma + 4.0 * UNIT_ROUNDOFF) * (abs(U) @ ones)
    return 1.01 * float((abs(L) @ beyond).max())

"""Find a diagonal D such that A + D has low rank, if there is one.

Split the spins into two halves P and Q. The block B = A[P, Q] contains no diagonal entry, so its rank is at most that
of L = A + D. Its truncated singular value decomposition B = U S W' can be computed without knowing D. For a spin i of
Q, row i of L satisfies the same linear relation as column i of B. Solving B[:, Q - i] y = B[:, i] with the least |y|
gives y = W w_i / (1 - |w_i|^2), where w_i is row i of W, and hence

    L_ii = sum over j in Q, j != i, of A_ij (w_j . w_i) / (1 - |w_i|^2).

All of Q contributes to every entry. |w_i|^2 is the spin's leverage; where it is near 1 the spin alone carries a
direction in this half, and another split may do better. The same holds for P with U. Cost: a few products of A with r +
8 vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.kernels.arrays import FloatArray, IntArray

OVERSAMPLING = 8
MOST_SPLITS = 4
MOST_POLISHES = 20
FEW_SPINS = 12  # with so few spins, the off-diagonal entries do not always determine the diagonal
LARGEST_HINT = 1e8  # a diagonal so much larger than all other entries tells nothing about them
FIT_TOLERANCE = 1e-9  # the largest residual allowed, as a share of all |A_ij|
# Singular values below this share of the largest are rounding, for matrices of up to some ten thousand rows.
RANK_TOLERANCE = 1e-10
ROWS_AT_A_TIME = 512
# Spins on each side of a block that shows at once that a large matrix has no low rank.
FEW_ROWS = 32


@dataclass(frozen=True)
class LowRankForm:
    """A + Diag(shift) = sum_j values_j v_j v_j' up to a residual.

    Attributes
    ----------
    values, vectors
        Eigenvalues (r), the largest in size first, and unit eigenvectors (r x n).
    shift
        D.
    residual
        The sum of |A_ij - sum_k values_k v_ki v_kj| over i != j: no state's log-weight has a larger error.
    """

    values: FloatArray
    vectors: FloatArray
    shift: FloatArray
    residual: float


def find_low_rank(A: FloatArray, max_rank: int, tol: float = 0.0, seed: int = 0) -> LowRankForm | None:
    """Return a form of rank at most ``max_rank``, or None if none was found; components are treated separately.

    With ``tol``, weak directions are left out, as long as the residual stays below about that much.
    """
    n = len(A)
    if _is_hopeless(A, max_rank, tol, np.random.default_rng(seed)):
        return None
    values: list[float] = []
    vectors: list[FloatArray] = []
    shift, residual = np.zeros(n), 0.0
    for spins in _components(A):
        part = A if len(spins) == n else A[np.ix_(spins, spins)]
        form = _connected_form(part, max_rank - len(values), tol, np.random.default_rng(seed))
        if form is None:
            return None
        shift[spins] = form.shift
        residual += form.residual
        for value, vector in zip(form.values.tolist(), form.vectors, strict=True):
            values.append(value)
            vectors.append(np.zeros(n))
            vectors[-1][spins] = vector
    return LowRankForm(np.array(values), np.array(vectors).reshape(len(values), n), shift, residual)


def _is_hopeless(A: FloatArray, max_rank: int, tol: float, rng: np.random.Generator) -> bool:
    """Say whether a small block proves that no form is close enough.

    It has no diagonal entry, so a form of rank r has at most that rank there, and the next singular value is at most
    what the form leaves over: the residual. That of each component is limited, those of all together to what is here.
    """
    n = len(A)
    if n < 4 * FEW_ROWS or max_rank >= FEW_ROWS:
        return False
    spins = rng.permutation(n)[: 2 * FEW_ROWS]
    singular = np.linalg.svd(A[np.ix_(spins[:FEW_ROWS], spins[FEW_ROWS:])], compute_uv=False)
    with np.errstate(over="ignore"):  # then it is not known
        return bool(singular[max_rank] > n * (FIT_TOLERANCE * float(np.linalg.norm(A)) + tol))


def _components(A: FloatArray) -> list[IntArray]:
    n = len(A)
    if n < 2 or np.all(A[0, 1:] != 0.0):
        return [np.arange(n)] if n else []
    _, label = connected_components(csr_array(A != 0.0), directed=False)
    return [np.flatnonzero(label == k) for k in range(label.max() + 1)]


def _connected_form(A: FloatArray, max_rank: int, tol: float, rng: np.random.Generator) -> LowRankForm | None:
    n = len(A)
    given = np.array(np.diagonal(A))
    if n == 1:
        return LowRankForm(np.empty(0), np.empty((0, 1)), -given, 0.0)
    if max_rank < 1:
        return None
    # The diagonal is the unknown: a given one is at best a hint, and a huge one would hide the rest. Dividing by a
    # power of two does not round, and keeps squares from overflowing.
    C = A.copy()
    np.fill_diagonal(C, 0.0)
    _, power = math.frexp(float(np.abs(C).max()))
    np.ldexp(C, -power, out=C)
    off = float(np.abs(C).sum())
    with np.errstate(over="ignore"):  # a hint that is out of proportion is ignored
        given, tol = np.ldexp(given, -power), float(np.ldexp(tol, -power))
    best: LowRankForm | None = None
    floor = tol / n
    for diagonal in _candidate_diagonals(C, given, max_rank, floor, rng):
        form = _polished(C, diagonal, max_rank, floor, off)
        if form.residual <= max(FIT_TOLERANCE * off, tol) and (best is None or len(form.values) < len(best.values)):
            best = form
            if n > FEW_SPINS:
                break
    if best is None:
        return None
    shift = np.ldexp(best.shift, power) - np.diagonal(A)
    return LowRankForm(np.ldexp(best.values, power), best.vectors, shift, math.ldexp(best.residual, power))


def _candidate_diagonals(
    C: FloatArray, given: FloatArray, max_rank: int, floor: float, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield diagonals to try for C, which has none: from splits of the spins, and some more if the spins are few.

    The additional ones are ``given``, and this or zero, shifted so that an eigenvalue is zero.
    """
    n = len(C)
    if n <= FEW_SPINS:
        hints = [given] if float(np.abs(given).max()) < LARGEST_HINT else []
        yield from hints
        for base in (*hints, np.zeros(n)):
            for eigenvalue in np.linalg.eigvalsh(C + np.diag(base)).tolist():
                yield base - eigenvalue
    least = np.full(n, np.inf)
    diagonal = np.zeros(n)
    most = 0
    for _ in range(MOST_SPLITS if n > 2 else 0):
        halves = rng.permutation(n)
        P, Q = halves[: n // 2], halves[n // 2 :]
        U, W = _block_vectors(C, P, Q, max_rank, floor, rng)
        if U is None or W is None:
            return
        if U.shape[1] < most:
            continue  # this split does not see all directions
        if U.shape[1] > most:
            least[:], most = np.inf, U.shape[1]
        for part, vectors in ((P, U), (Q, W)):
            leverage = np.minimum((vectors**2).sum(axis=1), 1.0)
            spread = np.zeros((n, vectors.shape[1]))
            spread[part] = vectors
            product = (C @ spread)[part]
            estimate = (product * vectors).sum(axis=1) / np.maximum(1.0 - leverage, 1e-12)
            better = leverage < least[part]
            diagonal[part[better]] = estimate[better]
            least[part[better]] = leverage[better]
        yield diagonal


def _block_vectors(
    A: FloatArray, P: IntArray, Q: IntArray, max_rank: int, floor: float, rng: np.random.Generator
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the singular vectors of A[P, Q], by a randomized range finder; None if its rank exceeds ``max_rank``."""
    columns = min(max_rank + OVERSAMPLING, len(P), len(Q))
    probe = np.zeros((len(A), columns))
    probe[Q] = rng.normal(size=(len(Q), columns))
    basis, _ = np.linalg.qr((A @ probe)[P])
    spread = np.zeros((len(A), basis.shape[1]))
    spread[P] = basis
    left, singular, right = np.linalg.svd((A @ spread)[Q].T, full_matrices=False)
    # A @ spread = B' basis, so that its transpose is basis' B = left S right.
    rank = int((singular > max(RANK_TOLERANCE * singular[0], floor)).sum()) if singular[0] > 0.0 else 0
    if rank > max_rank:
        return None, None
    return basis @ left[:, :rank], right[:rank].T


def _polished(C: FloatArray, diagonal: FloatArray, max_rank: int, floor: float, off: float) -> LowRankForm:
    """Return the leading eigenpairs of C + Diag(diagonal), refitting the diagonal to them while that helps."""
    best: LowRankForm | None = None
    for _ in range(MOST_POLISHES):
        values, vectors = _leading_eigenpairs(C, diagonal, max_rank, floor)
        diagonal = np.einsum("j,ji,ji->i", values, vectors, vectors)
        form = LowRankForm(values, vectors, diagonal, residual_sum(C, values, vectors))  # C itself has no diagonal
        if best is not None and form.residual > 0.5 * best.residual:
            return min(best, form, key=lambda form: form.residual)
        best = form
        if form.residual < 1e-14 * off or form.residual > 1e-3 * off:
            break
    assert best is not None
    return best


def _leading_eigenpairs(A: FloatArray, shift: FloatArray, max_rank: int, floor: float) -> tuple[FloatArray, FloatArray]:
    n = len(A)
    columns = min(max_rank + OVERSAMPLING, n)
    probe = np.random.default_rng(1).normal(size=(n, columns))
    basis = probe
    for _ in range(2):  # one would do for a matrix of exactly low rank
        basis, _ = np.linalg.qr(A @ basis + shift[:, None] * basis)
    small = basis.T @ (A @ basis + shift[:, None] * basis)
    values, inner = np.linalg.eigh((small + small.T) / 2.0)
    order = np.argsort(-np.abs(values))[:max_rank]
    order = order[np.abs(values[order]) > max(RANK_TOLERANCE * np.abs(values).max(initial=0.0), floor)]
    return values[order], (basis @ inner[:, order]).T


def residual_sum(A: FloatArray, values: FloatArray, vectors: FloatArray) -> float:
    """Return the sum of |A - V' Diag(values) V| off the diagonal, a few rows at a time."""
    total = 0.0
    for begin in range(0, len(A), ROWS_AT_A_TIME):
        rows = slice(begin, begin + ROWS_AT_A_TIME)
        left_over = A[rows] - (values[:, None] * vectors[:, rows]).T @ vectors
        total += float(np.abs(left_over).sum())
        at = np.arange(left_over.shape[0])
        total -= float(np.abs(left_over[at, begin + at]).sum())
    return max(total, 0.0)

"""What the low-rank methods start from: A + D = sum_j lambda_j v_j v_j', found or given, and what was left over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Ising

__all__ = ["Decomposition", "decompose"]

# The search works on dense matrices; a large sparse coupling hardly ever has low rank.
MOST_SPARSE_SPINS = 5000


@dataclass(frozen=True)
class Decomposition:
    """The rank-1 terms of A + D.

    Attributes
    ----------
    values, vectors
        lambda_j (r), none of them zero, and v_j (r x n).
    shift
        D, as a vector.
    residual
        Bound on what the terms leave over in any state's log-weight, and so in log Z.
    """

    values: FloatArray
    vectors: FloatArray
    shift: FloatArray
    residual: float

    @property
    def rank(self) -> int:
        """Number of terms."""
        return len(self.values)

    @property
    def signs(self) -> FloatArray:
        """sign(lambda_j)."""
        return np.sign(self.values)

    @property
    def directions(self) -> FloatArray:
        """u_j = sqrt|lambda_j| v_j (Alg. 1, line 3)."""
        return np.sqrt(np.abs(self.values))[:, None] * self.vectors

    def constant(self, model: Ising) -> float:
        """Return what log Z of the model has above that of its low-rank part: the offset and -Tr D (Eq. (10))."""
        return model.offset - float(np.sum(self.shift))

    def details(self) -> dict[str, Any]:
        """Return what a result should tell of it."""
        return {"rank": self.rank, "eigenvalues": self.values, "residual": self.residual}


def decompose(model: Ising, max_rank: int, tol: float) -> Decomposition:
    """Find D such that A + D has rank at most ``max_rank``, leaving at most ``tol`` over in log Z.

    Raises
    ------
    ModelError
        If there is no such D, or what is left over is too much.
    """
    if model.storage.terms is not None:
        values, vectors, diagonal = model.storage.terms
        used = np.flatnonzero((values != 0.0) & np.any(vectors != 0.0, axis=1))
        given = Decomposition(values[used], vectors[used], -diagonal, 0.0)
        if given.rank > max_rank:
            given = _with_independent_terms(given)
        if given.rank > max_rank:
            raise ModelError(f"the coupling has {given.rank} rank-1 terms; max_rank is {max_rank}: raise it")
        return given
    if model.is_sparse and model.n > MOST_SPARSE_SPINS:
        raise ModelError(
            f"a sparse coupling of {model.n} spins is not searched for a low rank beyond {MOST_SPARSE_SPINS}; "
            "if it has one, give it with Ising.from_factors"
        )
    from spectralz.kernels.low_rank.plus_diagonal import find_low_rank

    form = find_low_rank(model.storage.dense(), max_rank, tol)
    if form is None:
        raise ModelError(
            f"no diagonal was found that gives the coupling a rank of at most {max_rank}; "
            "raise max_rank or use a method for couplings of any rank"
        )
    if form.residual > tol:
        raise ModelError(
            f"the coupling has rank {len(form.values)} plus diagonal only up to a residual that may change log Z by "
            f"{form.residual:.3g}; tol is {tol:.3g}: raise it to accept an interval wider by that much"
        )
    return Decomposition(form.values, form.vectors, form.shift, form.residual)


def _with_independent_terms(form: Decomposition) -> Decomposition:
    """Write linearly dependent terms as fewer, orthogonal ones; what is dropped goes into the residual."""
    basis, mixing = np.linalg.qr(form.vectors.T)
    values, inner = np.linalg.eigh((mixing * form.values) @ mixing.T)
    vectors = (basis @ inner).T
    kept = np.abs(values) > 1e-13 * np.abs(values).max()
    dropped = float((np.abs(values[~kept]) * np.abs(vectors[~kept]).sum(axis=1) ** 2).sum())
    return Decomposition(values[kept], vectors[kept], form.shift, form.residual + dropped)

"""Find or take the decomposition A + D = sum_j lambda_j v_j v_j' for low-rank methods, with its residual."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.error_free import Parts, balanced, exact_sum, pair_rounding, trace_of_terms

if TYPE_CHECKING:
    from spectralz.model import Factors, FloatArray, IntArray, Ising

# The search works on dense matrices; a large sparse coupling hardly ever has low rank.
MOST_SPARSE_SPINS = 5000
# Eigenvalues below this share of the largest are dropped when dependent terms are combined.
LEAST_SHARE = 1e-13
# A term that can add at most this to a log-weight is dropped, since its square root would not be a normal number.
NEGLIGIBLE = 1e-280


@dataclass(frozen=True)
class Decomposition:
    """The rank-1 terms of A + D.

    Attributes
    ----------
    values, vectors
        lambda_j (r), none of them zero, and v_j (r x n).
    constant
        log Z of the model minus that of the terms alone: the offset and -Tr D (Eq. (10)).
    rounding
        Bound on the error of the constant.
    residual
        Bound on the difference in any state's log-weight, and so in log Z, including rounding.
    """

    values: FloatArray
    vectors: FloatArray
    constant: float
    rounding: float
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
        return _directions(self.values, self.vectors)

    def details(self) -> dict[str, Any]:
        """Return its entries for the details of a result."""
        return {"rank": self.rank, "eigenvalues": self.values, "residual": self.residual}


def decompose(model: Ising, max_rank: int, tol: float) -> Decomposition:
    """Find D such that A + D has rank at most ``max_rank``, up to a residual of at most ``tol`` in log Z.

    Raises
    ------
    ModelError
        If there is no such D, or the residual is too large.
    """
    terms = model.storage.terms
    form = _found(model, max_rank, tol) if terms is None else _given(model.offset, terms, max_rank)
    form = replace(form, rounding=form.rounding + model.lost.total)
    if form.residual > tol:
        raise ModelError(
            f"the coupling has rank {form.rank} plus diagonal only up to a residual that may change log Z by "
            f"{form.residual:.3g}; tol is {tol:.3g}: raise it to accept an interval wider by that much"
        )
    return form


def _given(offset: float, terms: Factors, max_rank: int) -> Decomposition:
    """Take the given terms; if there are too many, combine dependent ones."""
    values, vectors, diagonal = terms
    used, residual = _without_negligible(values, vectors)
    values, vectors = values[used], vectors[used]
    if len(values) > max_rank:
        fewer = _independent_terms(values, vectors)
        if len(fewer[0]) > max_rank:
            raise ModelError(f"the coupling has {len(fewer[0])} rank-1 terms; max_rank is {max_rank}: raise it")
        residual += _left_over(values, vectors, *fewer)
        values, vectors = fewer
    # The terms have their own diagonal; the one given in addition is -D.
    constant, rounding = exact_sum(Parts([offset, *diagonal[diagonal != 0.0].tolist()], 0.0))
    return Decomposition(values, vectors, constant, rounding, residual)


def _found(model: Ising, max_rank: int, tol: float) -> Decomposition:
    """Search for terms in the entries of a matrix."""
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
    used, residual = _without_negligible(form.values, form.vectors)
    values, vectors = form.values[used], form.vectors[used]
    # For any D, its trace is that of the terms minus that of A.
    trace, of_terms = model.storage.trace(), trace_of_terms(values, vectors)
    numbers = [model.offset, *trace.numbers, *(-number for number in of_terms.numbers)]
    constant, rounding = exact_sum(Parts(numbers, trace.left_out + of_terms.left_out))
    residual += form.residual + pair_rounding(values, vectors, len(values) + 4.0)
    return Decomposition(values, vectors, constant, rounding, residual)


def _directions(values: FloatArray, vectors: FloatArray) -> FloatArray:
    values, vectors = balanced(values, vectors)
    return np.asarray(np.sqrt(np.abs(values))[:, None] * vectors)


def _without_negligible(values: FloatArray, vectors: FloatArray) -> tuple[IntArray, float]:
    """Return which terms to keep, and a bound on what the others can add to a log-weight."""
    there = np.flatnonzero((values != 0.0) & np.any(vectors != 0.0, axis=1))
    sizes = np.abs(_directions(values[there], vectors[there])).sum(axis=1) ** 2
    kept = there[sizes > NEGLIGIBLE]
    return kept, 2.0 * NEGLIGIBLE * (len(there) - len(kept))


def _independent_terms(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Combine linearly dependent terms into fewer orthogonal ones, up to rounding and very small parts."""
    values, vectors = balanced(values, vectors)
    _, power = math.frexp(float(np.abs(values).max()))
    basis, mixing = np.linalg.qr(vectors.T)
    eigenvalues, inner = np.linalg.eigh((mixing * np.ldexp(values, -power)) @ mixing.T)
    kept = np.abs(eigenvalues) > LEAST_SHARE * np.abs(eigenvalues).max()
    return np.ldexp(eigenvalues[kept], power), (basis @ inner[:, kept]).T


def _left_over(values: FloatArray, vectors: FloatArray, fewer: FloatArray, rows: FloatArray) -> float:
    """Bound the sum of all entries of the difference between two sums of terms; those of the second are orthogonal.

    With v_j = sum_k c_jk w_k + r_j, whatever the c_jk, it is the sum over k, l of (c' Diag(values) c - Diag(fewer))_kl
    w_k w_l', and terms with an r_j. Products of matrices are accurate to as many units as they have terms.
    """
    values, vectors = balanced(values, vectors)
    c = vectors @ rows.T
    units = (len(values) + len(fewer) + 4.0) * UNIT_ROUNDOFF
    norms, row_norms = np.abs(vectors).sum(axis=1), np.abs(rows).sum(axis=1)
    rest = np.abs(vectors - c @ rows).sum(axis=1) + units * (norms + np.abs(c) @ row_norms)
    inner = np.abs((c.T * values) @ c - np.diag(fewer)) + units * ((np.abs(c).T * np.abs(values)) @ np.abs(c))
    inner += units * np.diag(np.abs(fewer))
    return 1.01 * float(row_norms @ inner @ row_norms + np.abs(values) @ (rest * (2.0 * norms + rest)))

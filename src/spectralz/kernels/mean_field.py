"""Naive mean field by coordinate ascent, compiled: product distributions given by fields h with means tanh(h).

Keeping h instead of the mean loses no digits where a spin is almost fixed: there 1 - |tanh(h)| is of order exp(-2 |h|),
which the mean itself cannot represent.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dasum

from spectralz._support.compiling import compiled_in_any_order, inner
from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import entropy
from spectralz.kernels.terms import NO_TERMS, SpinTerms, Terms

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray
    from spectralz.kernels.coupling import Couplings

# The fields of this many spins, for all starts, are computed by one matrix product.
SPINS_TOGETHER = 64


NONE_BY_SPIN = SpinTerms.of(NO_TERMS, 0)


def ascend(
    h: FloatArray,
    theta: FloatArray,
    couplings: Couplings,
    sweeps: int,
    tol: float,
    terms: SpinTerms = NONE_BY_SPIN,
) -> tuple[int, float]:
    """Sweep over the spins, setting each h_i to its best given the others; return the sweeps made and the last change.

    Each step maximizes the bound over one spin, so that it never decreases. Stops once no mean changes by more than
    ``tol`` in a sweep.
    """
    done, change = _ascend(h, np.tanh(h), frozen(theta), couplings, terms, sweeps, tol)
    return int(done), float(change)


@inner
def _field_of_terms(i: int, terms: SpinTerms, mean: FloatArray) -> float:
    """Return the field on spin i from its terms: weights times products of the other means, which may be 0."""
    total = 0.0
    for k in range(terms.first[i], terms.first[i + 1]):
        term = terms.of_spin[k]
        product = terms.weight[term]
        for place in range(terms.start[term], terms.start[term + 1]):
            if terms.spin[place] != i:
                product *= mean[terms.spin[place]]
        total += product
    return total


@compiled_in_any_order
def _ascend(
    h: FloatArray,
    mean: FloatArray,
    theta: FloatArray,
    couplings: Couplings,
    terms: SpinTerms,
    sweeps: int,
    tol: float,
) -> tuple[int, float]:
    change = 0.0
    has_terms = len(terms.of_spin) > 0
    for sweep in range(sweeps):
        change = 0.0
        for i in range(len(h)):
            field = theta[i]
            begin, end = couplings.indptr[i], couplings.indptr[i + 1]
            if couplings.is_dense:
                for j in range(end - begin):
                    field += couplings.data[begin + j] * mean[j]
            else:
                for place in range(begin, end):
                    field += couplings.data[place] * mean[couplings.indices[place]]
            if has_terms:
                field += _field_of_terms(i, terms, mean)
            h[i] = field
            new = math.tanh(field)
            if abs(new - mean[i]) > change:
                change = abs(new - mean[i])
            mean[i] = new
        if change <= tol:
            return sweep + 1, change
    return sweeps, change


def ascend_together(h: FloatArray, mean: FloatArray, theta: FloatArray, J: FloatArray) -> FloatArray:
    """Sweep once over the spins of several starts, one per column, like :func:`ascend`; return the largest changes.

    ``theta`` has a column for each start, or one for all. Each row of a large matrix is read once for all of them.
    """
    change = np.zeros(h.shape[1])
    for begin in range(0, len(h), SPINS_TOGETHER):
        block = slice(begin, min(begin + SPINS_TOGETHER, len(h)))
        field = J[block] @ mean
        field += theta[block]
        _ascend_block(h[block], mean[block], field, np.ascontiguousarray(J[block, block]), change)
    return change


@compiled_in_any_order
def _ascend_block(h: FloatArray, mean: FloatArray, field: FloatArray, J: FloatArray, change: FloatArray) -> None:
    spins, starts = h.shape
    moved = np.empty(starts)
    for i in range(spins):
        for k in range(starts):
            new = math.tanh(field[i, k])
            moved[k] = new - mean[i, k]
            h[i, k] = field[i, k]
            mean[i, k] = new
            change[k] = max(change[k], abs(moved[k]))
        for j in range(i + 1, spins):
            for k in range(starts):
                field[j, k] += J[j, i] * moved[k]


def bounds(h: FloatArray, theta: FloatArray, couplings: Couplings) -> tuple[FloatArray, float]:
    """Return the result of :func:`bound` for each column of fields; the couplings are dense."""
    n, mean = len(h), np.tanh(h)
    terms = mean * (theta[:, None] + 0.5 * (couplings.data.reshape(n, n) @ mean)) + entropy(h)
    sizes = float(np.abs(theta).sum()) + 2.0 * n + float(couplings.row_sums_of_sizes().sum())
    return np.array([math.fsum(column.tolist()) for column in terms.T]), sizes


def bound(h: FloatArray, theta: FloatArray, couplings: Couplings, higher: Terms = NO_TERMS) -> tuple[float, float]:
    """Return the lower bound on log Z of the product distribution, and the sum of sizes that enters its rounding error.

    <theta, m> + sum of J_ij m_i m_j over pairs + sum of weights times products of means over higher terms + entropy.
    """
    mean = np.tanh(h)
    terms = mean * (theta + 0.5 * couplings.times(mean)) + entropy(h)
    # BLAS adds up sizes without storing them first, which would take longer than everything else here.
    sizes = float(np.abs(theta).sum()) + 2.0 * len(h) + float(dasum(couplings.data) if len(couplings.data) else 0.0)
    if higher.number:
        terms = np.concatenate([terms, higher.weight * higher.products(mean[None])[0]])
        # Each factor of a product is rounded, and so is the product with each of them.
        sizes += float((np.abs(higher.weight) * higher.sizes).sum())
    return math.fsum(terms.tolist()), sizes

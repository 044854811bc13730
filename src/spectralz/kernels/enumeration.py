"""Sum over all states one by one, as a simple reference for all other methods.

The low spins run through all their states inside a block, the high spins from block to block. The weights of each block
are summed relative to the largest so far. No log-weight is carried from block to block, so rounding errors cannot build
up over the 2^n states.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inlined
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import frozen
from spectralz.kernels.elimination.tables import sign_of
from spectralz.kernels.logsum import exp_minus
from spectralz.kernels.sums import add
from spectralz.kernels.terms import NO_TERMS, Terms
from spectralz.kernels.walsh import sum_over_sets

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray

BLOCK_SPINS = 10  # the 2^10 weights of a block stay in the first-level cache


def rounding_bound(n: int, total_weight: float, terms: int = 0) -> float:
    """Bound the rounding error of log Z.

    A log-weight adds up n fields, n (n - 1) / 2 couplings and other terms, with partial sums below ``total_weight``.
    Its distance from the largest is rounded too; this changes log Z in proportion to the mean of that distance, at most
    n log 2. A block's sum of positive terms has an error of one unit per term, and the compensated sum over the blocks
    at most as much.
    """
    additions = n * (n + 1) / 2 + 4 + (terms + BLOCK_SPINS + 1 if terms else 0)
    return 1.01 * UNIT_ROUNDOFF * (additions * total_weight + n + 2.0 * (2 ** min(n, BLOCK_SPINS) + 8))


Sums = tuple[float, "FloatArray", "FloatArray", "FloatArray"]


def enumerate_blocks(
    field: FloatArray, coupling: FloatArray, begin: int, end: int, moments: bool, terms: Terms = NO_TERMS
) -> Sums:
    """Sum the weights of blocks ``begin`` to ``end`` of states.

    Parameters
    ----------
    field, coupling
        theta (n) and J (n x n), the weight of a pair counted once; only J below the diagonal is read.
    begin, end
        Blocks: block b holds the states whose bits from ``BLOCK_SPINS`` on are b (bit i is spin i, 1 for +1).
    moments
        Whether to sum the means too.
    terms
        Terms of three and more spins.

    Returns
    -------
    largest
        The largest log-weight seen.
    first, second, third
        Sums of exp(log-weight - largest) times x_i (entry n: times 1), times x_i x_j, and times the product of each
        term.
    """
    n = len(field)
    low = min(n, BLOCK_SPINS)
    sign = 2.0 * ((np.arange(1 << low)[:, None] >> np.arange(low)) & 1) - 1.0
    # The couplings' part of the log-weight among the low spins, for each of their states.
    among_low = np.zeros(1 << low)
    for i in range(low):
        for j in range(i):
            among_low += coupling[i, j] * sign[:, i] * sign[:, j]
    masks = np.array([sum(1 << i for i in scope) for scope in terms.scopes()], dtype=np.int64)
    arguments = begin, end, moments, among_low, masks, terms.weight
    largest, first, second, third = _sum_blocks(frozen(field), coupling, *arguments)
    return float(largest), first, second, third


@compiled
def _sum_blocks(
    field: FloatArray,
    coupling: FloatArray,
    begin: int,
    end: int,
    moments: bool,
    among_low: FloatArray,
    term_mask: IntArray,
    term_weight: FloatArray,
) -> Sums:
    """Return the largest log-weight of the blocks and their sums."""
    n, size = len(field), len(among_low)
    low = min(n, BLOCK_SPINS)
    first, second, third = np.zeros(n + 1), np.zeros((n, n)), np.zeros(len(term_mask))
    of_terms = np.zeros(size)
    x, weight = np.empty(n), np.empty(size)
    largest = -np.inf
    lost = 0.0
    for block in range(begin, end):
        constant = 0.0
        for i in range(low, n):
            x[i] = 1.0 if (block >> (i - low)) & 1 else -1.0
            local = field[i]
            for j in range(low, i):
                local += coupling[i, j] * x[j]
            constant += x[i] * local
        # weight[s] = log-weight, doubled up spin by spin
        weight[0] = constant
        for i in range(low):
            local = field[i]
            for j in range(low, n):
                local += coupling[j, i] * x[j]
            for s in range(1 << i):
                weight[s + (1 << i)] = weight[s] + local
                weight[s] -= local
        if len(term_mask):
            # The spins of a term in the high bits turn its sign; its other spins are a set, summed over by a transform.
            of_terms[:] = 0.0
            for k in range(len(term_mask)):
                of_terms[term_mask[k] & (size - 1)] += term_weight[k] * sign_of(block, term_mask[k] >> low)
            sum_over_sets(of_terms, low)
            for s in range(size):
                weight[s] += of_terms[s]
        block_largest = -np.inf
        for s in range(size):
            weight[s] += among_low[s]
            block_largest = weight[s] if weight[s] > block_largest else block_largest
        if block_largest > largest:
            factor = math.exp(largest - block_largest)
            lost *= factor
            for i in range(n + 1):
                first[i] *= factor
            if moments:
                for i in range(n):
                    for j in range(i):
                        second[i, j] *= factor
                for k in range(len(third)):
                    third[k] *= factor
            largest = block_largest
        for s in range(size):
            weight[s] = exp_minus(largest - weight[s]) if largest - weight[s] < 700.0 else 0.0
        if moments:
            _add_moments(low, weight, x, first, second)
            for k in range(len(third)):
                third[k] += weight[term_mask[k] & (size - 1)] * sign_of(block, term_mask[k] >> low)
        else:
            block_sum = 0.0
            for s in range(size):
                block_sum += weight[s]
            first[n], lost = add(first[n], lost, block_sum)
    first[n] += lost
    return largest, first, second, third


@inlined
def _add_moments(low: int, weight: FloatArray, x: FloatArray, first: FloatArray, second: FloatArray) -> None:
    """Add one block's moments, using the Walsh-Hadamard transform of its weights.

    Entry m of the transform is the sum of weight times the product of the spins whose bits are set in m.
    """
    n = len(x)
    for i in range(low):
        half = 1 << i
        for start in range(0, 1 << low, 2 * half):
            for s in range(start, start + half):
                a, b = weight[s], weight[s + half]
                weight[s] = a + b
                weight[s + half] = b - a
    total = weight[0]
    first[n] += total
    for i in range(low):
        first[i] += weight[1 << i]
        for j in range(i):
            second[i, j] += weight[(1 << i) | (1 << j)]
    for i in range(low, n):
        first[i] += x[i] * total
        for j in range(low):
            second[i, j] += x[i] * weight[1 << j]
        for j in range(low, i):
            second[i, j] += x[i] * x[j] * total


def combine(a: Sums, b: Sums) -> Sums:
    """Add two results of :func:`enumerate_blocks`."""
    if b[0] > a[0]:
        a, b = b, a
    factor = np.exp(b[0] - a[0])
    return a[0], a[1] + factor * b[1], a[2] + factor * b[2], a[3] + factor * b[3]

"""All states of a small model, listed once: everything that is a sum over them follows, at any temperature.

The log-weights of all 2^n states are the Walsh transform of the coefficients of all sets of spins, and the means of the
products of all sets are that of the probabilities. Bit i of an index is spin i: in a set if it is 1, and -1 in a state
if it is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import hadamard

from spectralz._support import clock, costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model

# Most spins: their tables of 2^n numbers take a quarter of a gigabyte each. Spins that are transformed together.
MOST_SPINS, TOGETHER = 25, 5
STATES_TOGETHER = 1 << 16


def operations(n: int) -> float:
    """Return the operations of a transform of all states of n spins."""
    return costs.EXACT_TERM * 2.0**n * max(n, 1)


def walsh(table: FloatArray) -> FloatArray:
    """Return the sums of numbers of sets over all sets, times the products of their spins, for every state.

    States take the place of sets and sets that of states if the numbers are those of states.

    Examples
    --------
    >>> walsh(np.array([1.0, 0.5])), walsh(np.array([0.0, 0.0, 0.0, 2.0]))
    (array([1.5, 0.5]), array([ 2., -2., -2.,  2.]))
    """
    n = len(table).bit_length() - 1
    clock.charge(operations(n))
    for begin in range(0, n, TOGETHER):
        signs = hadamard(2 ** min(TOGETHER, n - begin), dtype=np.float64)
        cut = table.reshape(-1, len(signs), 2**begin)
        table = (cut[:, :, 0] @ signs if begin == 0 else signs @ cut).ravel()
    return table


def log_weights(model: Model) -> FloatArray:
    """Return the log-weight of every state, without the model's constant."""
    edges, J = model.edges()
    table = np.zeros(2**model.n)
    table[1 << np.arange(model.n)] = model.field
    np.add.at(table, (1 << edges).sum(axis=1), J)
    for scope, weight in model.higher.items():
        table[sum(1 << i for i in scope)] += weight
    return walsh(table)


def are_allowed(model: Model) -> NDArray[np.bool_]:
    """Return whether every state satisfies the constraints."""
    allowed = np.ones(2**model.n, dtype=np.bool_)
    for constraint in model.constraints:
        for begin in range(0, len(allowed), STATES_TOGETHER):
            index = np.arange(begin, min(begin + STATES_TOGETHER, len(allowed)))
            states = 1 - 2 * ((index[:, None] >> np.array(constraint.scope, dtype=np.int64)) & 1)
            own = constraint.renamed({i: k for k, i in enumerate(constraint.scope)})
            allowed[index] &= own.holds(states)
    return allowed


def downs(n: int) -> NDArray[np.uint8]:
    """Return how many spins are -1 in every state."""
    counts = np.zeros(1, np.uint8)
    for _ in range(n):
        counts = np.concatenate([counts, counts + np.uint8(1)])
    return counts


def overlaps(products: FloatArray) -> FloatArray:
    """Return the probability that two independent states differ by each set, from the means of products of all sets."""
    return np.asarray(np.maximum(walsh(products**2), 0.0) / len(products))

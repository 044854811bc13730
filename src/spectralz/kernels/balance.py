"""Components of a graph with signs, and whether they are balanced: no cycle has an odd number of negative couplings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from spectralz._support.compiling import compiled
from spectralz.kernels.coupling import Couplings

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray


class Balance(NamedTuple):
    """The number of each spin's component and its sign there, and for each component whether it is balanced.

    If a component is balanced, s_i s_j J_ij >= 0 with the signs s of its spins, as on every forest and in every
    ferromagnet. The first spin of each has the sign 1.
    """

    label: IntArray
    sign: FloatArray
    balanced: BoolArray


def balance_of(couplings: Couplings) -> Balance:
    """Return the components of couplings, whose diagonal does not count."""
    n = len(couplings.indptr) - 1
    label, sign, balanced = np.full(n, -1, dtype=np.int64), np.ones(n), np.ones(n, dtype=np.bool_)
    count = _visit(couplings, label, balanced, sign, np.empty(n, dtype=np.int64))
    return Balance(label, sign, balanced[:count])


def components_and_balance(A: Any) -> list[tuple[IntArray, bool]]:
    """Return the spins of each connected component, in order, and whether its signs are balanced; dense or sparse."""
    if not A.shape[0]:
        return []
    balance = balance_of(Couplings.of_csr(A) if sp.issparse(A) else Couplings.of_dense(A))
    grouped = np.argsort(balance.label, kind="stable").astype(np.int64)
    bounds = np.searchsorted(balance.label[grouped], np.arange(1, len(balance.balanced)))
    return list(zip(np.split(grouped, bounds), balance.balanced.tolist(), strict=True))


@compiled
def _visit(couplings: Couplings, label: IntArray, balanced: BoolArray, sign: FloatArray, waiting: IntArray) -> int:
    """Traverse the graph and give each spin its component and the sign that it needs.

    Labels are -1 and signs 1 at first. Returns the number of components.
    """
    n = len(label)
    count = labelled = 0
    for start in range(n):
        if label[start] >= 0:
            continue
        label[start] = count
        waiting[0] = start
        taken, given = 0, 1
        while taken < given:
            i = waiting[taken]
            taken += 1
            begin = couplings.indptr[i]
            for place in range(begin, couplings.indptr[i + 1]):
                weight = couplings.data[place]
                j = place - begin if couplings.is_dense else couplings.indices[place]
                if weight == 0.0 or i == j:
                    continue
                wanted = sign[i] if weight > 0.0 else -sign[i]
                if label[j] < 0:
                    label[j] = count
                    sign[j] = wanted
                    waiting[given] = j
                    given += 1
                elif sign[j] != wanted:
                    balanced[count] = False
            if labelled + given == n and not balanced[count]:
                return count + 1  # nothing else can be found; of a dense matrix most rows need not be read
        labelled += given
        count += 1
    return count

"""Structure of the diagonal SDP: how it splits into components, and where its solution is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz._support.compiling import compiled
from spectralz.kernels.coupling import Couplings

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray


def components_and_balance(A: Any) -> list[tuple[IntArray, bool]]:
    """Return the spins of each connected component, in order, and whether its signs are balanced.

    Balanced means that no cycle has an odd number of negative couplings: then there are spins s with s_i s_j A_ij >= 0
    for all pairs, as on every forest and in every ferromagnet. Dense or sparse; the diagonal does not count.
    """
    n = A.shape[0]
    if not n:
        return []
    couplings = Couplings.of_csr(A) if sp.issparse(A) else Couplings.of_dense(A)
    label, balanced = np.full(n, -1, dtype=np.int64), np.ones(n, dtype=np.bool_)
    count = _visit(couplings, label, balanced, np.ones(n), np.empty(n, dtype=np.int64))
    grouped = np.argsort(label, kind="stable").astype(np.int64)
    bounds = np.searchsorted(label[grouped], np.arange(1, count))
    return list(zip(np.split(grouped, bounds), balanced[:count].tolist(), strict=True))


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

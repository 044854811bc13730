"""Many models of a few spins at once: log Z, moments and their covariance by sums over all states."""

from __future__ import annotations

import numpy as np

from spectralz._support.compiling import compiled
from spectralz.kernels.walsh import normalize, sum_over_sets, sum_over_states


@compiled
def solve_all(parameters, masks, size, log_z, mean, products, covariance):  # type: ignore[no-untyped-def]
    """Solve every model, one per row of ``parameters``.

    Parameters
    ----------
    parameters, masks
        Fields and couplings, one column each, and the spins of each as bits; columns of the same spins are added up.
    size
        Number of spins.
    log_z, mean
        Become log Z of every model, and the mean product of the spins of every column.
    products, covariance
        If ``products`` is not empty, it has a number per column and model, and ``covariance``, of the same shape,
        becomes the covariance of the columns times these numbers.
    """
    table = np.empty(1 << size)
    count = len(masks)
    for b in range(len(parameters)):
        for s in range(1 << size):
            table[s] = 0.0
        for k in range(count):
            table[masks[k]] += parameters[b, k]
        sum_over_sets(table, size)
        log_z[b] = normalize(table, size)
        sum_over_states(table, size)
        for k in range(count):
            mean[b, k] = table[masks[k]]
        if not len(products):
            continue
        inside = 0.0
        for j in range(count):
            inside += mean[b, j] * products[b, j]
        for k in range(count):
            total = 0.0
            for j in range(count):
                total += table[masks[k] ^ masks[j]] * products[b, j]
            covariance[b, k] = total - mean[b, k] * inside

"""Quadratic unconstrained binary optimization: a dictionary or a matrix Q."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz.errors import ModelError
from spectralz.io.labels import energy_of_entries, energy_pairs, in_order
from spectralz.model.checks import as_float_array, refuse_non_finite

if TYPE_CHECKING:
    from spectralz.model import Ising


def from_qubo(Q: Any, beta: float = 1.0) -> Ising:
    """Return the model of a QUBO at inverse temperature ``beta``.

    ``E(v) = v' Q v = sum_ij Q_ij v_i v_j`` with v in {0, 1}^n, and P(v) = exp(-beta E(v)) / Z. Every entry counts:
    the diagonal is linear, since v_i v_i = v_i, and Q_ij and Q_ji add up. So an upper triangular matrix and the
    symmetric one with half of its entries off the diagonal are the same QUBO. Spin +1 is 1: ``v = (1 + x) / 2``.

    Parameters
    ----------
    Q
        A dictionary from pairs of labels to numbers, as ``{("a", "a"): -1.0, ("a", "b"): 2.0}``; a matrix; or any
        scipy.sparse matrix. Labels of a dictionary become names: whole numbers in their order, others as they come.
    beta
        Inverse temperature.

    Returns
    -------
    Ising
        The model, with the labels of a dictionary as names.

    Raises
    ------
    ModelError
        If ``Q`` is not such a dictionary or a square matrix, or if a number is not finite.

    See Also
    --------
    from_polynomial : energies with products of three and more variables.
    read : QUBOs in files.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.from_qubo({("a", "a"): -1.0, ("a", "b"): 2.0})
    >>> [float(w) for w in model.log_weight([[-1, -1], [+1, -1], [+1, +1]])]  # of v = 00, 10, 11
    [0.0, 1.0, -1.0]
    >>> model == sz.from_qubo([[-1.0, 2.0], [0.0, 0.0]]).named(["a", "b"])
    True
    """
    return (_of_dict(Q) if isinstance(Q, Mapping) else _of_matrix(Q)).scaled(beta)


def _of_dict(Q: Mapping[Any, Any]) -> Ising:
    for key in Q:
        if not isinstance(key, tuple) or len(key) != 2:
            raise ModelError(f"Q has the key {key!r}; keys are pairs of labels, such as ('a', 'b')")
    names = in_order(label for pair in Q for label in pair)
    place = {name: k for k, name in enumerate(names)}
    pairs = np.array([(place[u], place[v]) for u, v in Q], dtype=np.int64).reshape(-1, 2)
    values = as_float_array(list(Q.values()), "Q's values")
    refuse_non_finite(values, "Q's values")
    return energy_of_entries(True, len(names), pairs, values, names)


def _of_matrix(Q: Any) -> Ising:
    matrix: Any = sp.csr_array(Q, dtype=np.float64) if sp.issparse(Q) else as_float_array(Q, "Q")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"Q has shape {matrix.shape}; it must be a square matrix, or a dictionary of pairs")
    refuse_non_finite(*((matrix.data, "Q's entries") if sp.issparse(matrix) else (matrix, "Q")))
    linear = np.array(matrix.diagonal())
    both = matrix + matrix.T
    # What rounding took from a sum, if the larger number is subtracted first; each pair is there in both ways.
    lost = float(abs((both - matrix) - matrix.T).sum())
    if sp.issparse(both):
        both = sp.csr_array(both - sp.diags_array(both.diagonal()))
    else:
        np.fill_diagonal(both, 0.0)
    return energy_pairs(True, linear, both, 0.0, None)._having_lost(1.01 * lost)

"""Binary quadratic models and polynomials of dimod, the input of D-Wave's samplers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import ModelError
from spectralz.io.interop.polynomial import from_polynomial
from spectralz.io.labels import energy_pairs, refuse_constraints, symmetric

if TYPE_CHECKING:
    from collections.abc import Hashable

    from spectralz.model import Ising, Model


def from_dimod(bqm: Any, beta: float = 1.0) -> Model:
    """Return the model of a ``dimod.BinaryQuadraticModel`` or ``BinaryPolynomial`` at inverse temperature ``beta``.

    ``E(v) = offset + sum_i linear_i v_i + sum_{i<j} quadratic_ij v_i v_j`` and P(v) = exp(-beta E(v)) / Z, with v in
    {-1, +1} (SPIN) or {0, 1} (BINARY; then spin +1 is 1: ``v = (1 + x) / 2``). Offset and names are kept, so that
    log-weights are ``-beta E`` for either kind of variables. Of a BinaryPolynomial, E has terms of any number of
    variables, and the model is a :class:`Polynomial`; otherwise it is an :class:`Ising`.

    Parameters
    ----------
    bqm
        A ``dimod.BinaryQuadraticModel`` or ``dimod.BinaryPolynomial``, of SPIN or BINARY variables.
    beta
        Inverse temperature.

    Returns
    -------
    Ising or Polynomial
        The model, with the names of the variables.

    Raises
    ------
    ModelError
        If ``bqm`` is something else, or if a number is not finite.

    See Also
    --------
    Ising.to_dimod : the reverse.

    Examples
    --------
    >>> import dimod, spectralz as sz
    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -2.0}, 0.5, "BINARY")
    >>> model = sz.from_dimod(bqm, beta=2.0)
    >>> model.names
    ('a', 'b')
    >>> float(model.log_weight([+1, +1])), -2.0 * float(bqm.energy({"a": 1, "b": 1}))
    (1.0, 1.0)
    """
    vartype = getattr(getattr(bqm, "vartype", None), "name", None)
    if vartype in ("SPIN", "BINARY") and isinstance(bqm, Mapping):
        terms = {tuple(sorted(labels, key=_place)): bias for labels, bias in bqm.items()}
        return from_polynomial(terms, "01" if vartype == "BINARY" else "pm1", beta)
    if vartype not in ("SPIN", "BINARY") or not hasattr(bqm, "to_numpy_vectors"):
        raise ModelError(
            f"bqm is a {type(bqm).__name__}; it must be a dimod.BinaryQuadraticModel, with variables SPIN or BINARY"
        )
    names = list(bqm.variables)
    linear, (i, j, biases), offset = bqm.to_numpy_vectors(variable_order=names)
    pairs = symmetric(len(names), np.column_stack([i, j]), np.asarray(biases, dtype=np.float64))
    fields = np.asarray(linear, dtype=np.float64)
    return energy_pairs(vartype == "BINARY", fields, pairs, float(offset), names).scaled(beta)


def _place(label: Hashable) -> tuple[str, str]:
    """Order the labels of a term: dimod keeps them as a set, whose order differs from run to run."""
    return type(label).__name__, str(label)


def to_dimod(model: Ising) -> Any:
    """Return the ``dimod.BinaryQuadraticModel`` whose energy is minus the model's log-weight; see Ising.to_dimod."""
    dimod = from_extra("dimod", "dimod", "to_dimod")
    refuse_constraints(model, "a binary quadratic model")
    pairs, J = model.edges()
    names = list(range(model.n)) if model.names is None else list(model.names)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        -model.field, (pairs[:, 0], pairs[:, 1], -J), -model.constant, "SPIN", variable_order=names
    )

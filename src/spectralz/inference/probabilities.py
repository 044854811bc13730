"""Probabilities of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import ModelError
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.verbs import log_z
from spectralz.model import RBM, Ising
from spectralz.model.ising import LOW
from spectralz.result import LogProb

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spectralz.methods import Method


def log_prob(
    model: Ising | RBM,
    X: ArrayLike,
    method: str | Method = "auto",
    *,
    values: Literal["pm1", "01"] | None = None,
    executor: Any = None,
    **options: Any,
) -> LogProb:
    """Return log P(x) of states of ``model``, with the error of their common log Z.

    Parameters
    ----------
    model
        The model, an Ising or an RBM.
    X
        States, one per row, or a single one; for an RBM, states of all units, the visible ones first.
    method, executor, **options
        How to find log Z, as in :func:`log_z`.
    values
        The values in the states: ``"pm1"``, -1 and +1, or ``"01"``, 0 and 1, where 1 is the spin +1. By default
        -1 and +1, or for an RBM the values of its units.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=10, strength=0.3, seed=0)
    >>> data = sz.sample(model, 1000, seed=1)
    >>> sz.log_prob(model, data)
    LogProb(1000 states, mean -4.6..., log Z = 10.4227849 by exact)
    >>> other = sz.generators.complete(n=10, strength=0.3, seed=1)
    >>> sz.log_prob(other, data).mean < sz.log_prob(model, data).mean
    True
    """
    whole = ModelWithEvidence.checked(model, None).whole
    states = _spins(X, values or (model.values if isinstance(model, RBM) else "pm1"), whole.n)
    weights = np.atleast_1d(np.asarray(whole.log_weight(states), dtype=np.float64))
    estimate = log_z(model, method, executor=executor, **options)
    return LogProb(weights - estimate.log_z, weights, estimate)


def _spins(X: Any, values: str, n: int) -> Any:
    """Return states as rows of -1 and +1."""
    if values not in LOW:
        raise ModelError(f"values is {values!r}; states are 'pm1' (-1 and +1) or '01' (0 and 1)")
    try:
        given = np.atleast_2d(np.asarray(X))
    except ValueError:
        raise ModelError("the states have rows of different lengths; give one row of all spins per state") from None
    if given.size == 0 and given.shape[-1] != n:
        given = given.reshape(0, n)
    if given.ndim != 2 or given.shape[1] != n:
        raise ModelError(f"states have shape {np.shape(X)}; the model has {n} spins: give rows of {n} values")
    low = LOW[values]
    if given.dtype.kind not in "biuf" or not np.all((given == low) | (given == 1)):
        other = "01" if values == "pm1" else "pm1"
        raise ModelError(f"states must hold only {low} and 1; for other values, give values={other!r}")
    return (given if low == -1 else 2 * given.astype(np.int8) - 1).astype(np.int8)

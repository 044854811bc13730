"""Probabilities of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import ModelError
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.verbs import log_z
from spectralz.model import RBM, Ising
from spectralz.model.values import LOW, spins_of
from spectralz.result import LogProb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from spectralz.methods import Method
    from spectralz.model.values import Values


def log_prob(
    model: Ising | RBM,
    X: ArrayLike,
    method: str | Method = "auto",
    *,
    values: Literal["pm1", "01"] | None = None,
    given: Mapping[Any, int] | None = None,
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
        The values in the states: ``"pm1"``, -1 and +1, or ``"01"``, 0 and 1, where 1 is the spin +1. By default as
        the model was made: a model of 0/1 data takes both, an RBM the values of its units.
    given
        Evidence, as in :func:`log_z`: the result is log P(x | given), -inf for states that contradict it.

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
    conditioned = ModelWithEvidence.checked(model, given)
    whole = conditioned.whole
    if values is None:
        states = _spins(X, model.values, whole.n, strictly=isinstance(model, RBM))
    else:
        states = _spins(X, values, whole.n, strictly=True)
    weights = np.atleast_1d(np.asarray(whole.log_weight(states), dtype=np.float64))
    estimate = log_z(model, method, given=given, executor=executor, **options)
    agrees = np.all(states[:, conditioned.fixed] == conditioned.value, axis=1)
    return LogProb(np.where(agrees, weights - estimate.log_z, -np.inf), weights, estimate)


def _spins(X: Any, values: Values, n: int, *, strictly: bool) -> Any:
    """Return states as rows of -1 and +1."""
    if values not in LOW:
        raise ModelError(f"values is {values!r}; states are 'pm1' (-1 and +1) or '01' (0 and 1)")
    try:
        rows = np.atleast_2d(np.asarray(X))
    except ValueError:
        raise ModelError("the states have rows of different lengths; give one row of all spins per state") from None
    if rows.size == 0 and rows.shape[-1] != n:
        rows = rows.reshape(0, n)
    if rows.ndim != 2 or rows.shape[1] != n:
        raise ModelError(f"states have shape {np.shape(X)}; the model has {n} spins: give rows of {n} values")
    try:
        return spins_of(rows, values, strictly=strictly).astype(np.int8)
    except ModelError as error:
        raise ModelError(f"{error}; or give values={'01' if values == 'pm1' else 'pm1'!r}") from None

"""Probabilities of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import NotConvergedError, refuse_impossible
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.rows import read_rows, rows_under, with_part
from spectralz.inference.verbs import as_method, log_z
from spectralz.result import Kind, LogProb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from spectralz.methods import Method
    from spectralz.model import RBM, Ising, Polynomial
    from spectralz.model.columns import Columns


def log_prob(
    model: Ising | RBM | Polynomial,
    X: ArrayLike,
    method: str | Method = "auto",
    *,
    values: Literal["pm1", "01"] | None = None,
    columns: Columns = "labels",
    given: Mapping[Any, int] | None = None,
    executor: Any = None,
    **options: Any,
) -> LogProb:
    r"""Return log P(x) of states of ``model``, with the error of their common log Z.

    For a whole state x, and for the known cells y of a state in which others are missing,

    .. math::

       \log P(x) = w(x) - \log Z, \qquad \log P(y) = \log Z(y) - \log Z,

    where w is the log-weight and Z(y) the sum over the states that have these cells.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    X
        States, one per row, or a single one; for an RBM, states of all units, the visible ones first, or of the
        visible ones alone. Cells may be missing (NaN, None or NA): the result is then the log-probability of the
        others. Rows for which this takes a method share its budget.
    method, executor, **options
        How to find log Z, as in :func:`log_z`.
    values
        The values in the states: ``"pm1"``, -1 and +1, or ``"01"``, 0 and 1, where 1 is the spin +1. By default as
        the model was made: a model of 0/1 data takes both, an RBM the values of its units.
    columns
        ``"labels"``: the columns of a DataFrame are the spins of these names, or of these numbers if the model has no
        names; spins without a column are missing. ``"position"``: they are all spins in order, whatever their labels;
        so are those of an array.
    given
        Evidence, as in :func:`log_z`: the result is log P(x | given), -inf for states that contradict it.

    Returns
    -------
    LogProb
        ``log_prob``, one number per state, their ``mean``, and the common log Z (``estimate``).

    Other Parameters
    ----------------
    budget : float, default None
        Seconds to spend at most, ten if neither this nor ``work`` is given.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    tol : float, default None
        ``auto`` stops once the standard error of log Z is this small.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.
    seed : int, default 0
        Seed of all random choices.
    max_memory : int or str, default "4 GiB"
        Most memory for tables and populations, in bytes or like ``"512 MiB"``.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    device : str, default "auto"
        ``"cpu"``, ``"gpu"``, or ``"auto"`` for a GPU if there is one and the model is large.

    Raises
    ------
    ModelError
        If the states do not have the shape or the values of the model's.
    OptionError
        If the method has no such option, or if a value is out of range.

    See Also
    --------
    log_z : the normalization alone.
    predict : the probabilities of missing cells.

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
    states = read_rows(X, model, values, whole, columns)
    agrees = np.all((states[:, conditioned.fixed] == conditioned.value) | (states[:, conditioned.fixed] == 0), axis=1)
    states[:, conditioned.fixed] = conditioned.value
    chosen = as_method(method, options)
    half = with_part(chosen, 2)
    rows = rows_under(whole, states, half, cells=False)
    estimate = log_z(model, chosen if rows.is_exact else half, given=given, executor=executor)
    if estimate.kind is not Kind.EXACT and estimate.log_z == -np.inf:
        raise NotConvergedError(f"log Z is not known: {estimate.status}")
    refuse_impossible(estimate.log_z)
    log_prob = np.where(agrees, rows.log_weight - estimate.log_z, -np.inf)
    error = rows.error if (states == 0).any() else None
    return LogProb(log_prob, rows.log_weight, estimate, error, rows.is_exact, rows.trusted)

"""``predict``: the missing cells of rows, given the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import showing_interrupts, warn_inaccurate
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.rows import columns_of, read_rows, rows_under
from spectralz.inference.verbs import as_method, refuse_without_marginals
from spectralz.portfolio.auto import Auto
from spectralz.result import Prediction

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spectralz.methods import Method
    from spectralz.model import RBM, Ising, Polynomial
    from spectralz.model.columns import Columns


def predict(
    model: Ising | RBM | Polynomial,
    X: ArrayLike,
    method: str | Method = "auto",
    *,
    values: Literal["pm1", "01"] | None = None,
    columns: Columns = "labels",
    seed: int = 0,
    **options: Any,
) -> Prediction:
    """Return for every missing cell of a table the probability that it is +1 (or 1), given the rest of its row.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    X
        Rows x variables, or a single row: an array, a list of lists, or a DataFrame, whose columns may be some of the
        model's spins in any order. Missing cells are NaN, None or NA.
        Rows of an RBM have all its units, the visible ones first, or the visible ones alone.
    method, **options
        How to find means where a row lacks many values, as in :func:`marginals`; such rows share the ``budget``. With
        ``auto`` and ``exact``, up to 18 missing values that are coupled with one another are summed over exactly.
    values
        The values in ``X``: ``"pm1"``, -1 and +1, or ``"01"``, 0 and 1. By default as the model was made.
    columns
        ``"labels"``: the columns of a DataFrame are the spins of these names, or of these numbers if the model has no
        names. ``"position"``: they are all spins in order, whatever their labels; so are those of an array.
    seed
        Seed of the random numbers, if the method draws any.

    Returns
    -------
    Prediction
        ``probability`` in the shape of ``X``, its ``std_error``, and which cells were ``missing``.

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
    max_memory : int or str, default "4 GiB"
        Most memory for tables and populations, in bytes or like ``"512 MiB"``.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    device : str, default "auto"
        ``"cpu"``, ``"gpu"``, or ``"auto"`` for a GPU if there is one and the model is large.

    Raises
    ------
    ModelError
        If the rows do not have the shape or the values of the model's.
    OptionError
        If the method gives no marginals, or has no such option.

    Warns
    -----
    InaccurateWarning
        If ``auto`` found means that cannot be trusted.

    See Also
    --------
    marginals : means under evidence that is the same for all.
    fit : a model from data.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 0.5], names=["rain", "wet", "cold"])
    >>> found = sz.predict(model, [[np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> found.probability.round(4).tolist()
    [[0.8808, 1.0, 1.0], [1.0, 0.8808, 0.676]]
    >>> found
    Prediction(3 missing cells in 2 rows, exact)
    """
    whole = ModelWithEvidence.checked(model, None).whole
    states = read_rows(X, model, values, whole, columns)
    chosen = as_method(method, _with_seed(method, options, seed))
    refuse_without_marginals(chosen)
    with showing_interrupts():
        rows = rows_under(whole, states, chosen, cells=True)
    shape = np.shape(X)
    places = columns_of(X, model, columns)
    places = np.arange(shape[-1] if shape else 0) if places is None else places
    error = None if rows.is_exact or rows.error is None else rows.error[:, places].reshape(shape)
    if isinstance(chosen, Auto) and not rows.trusted and not rows.interrupted:
        sentence = "these predictions are not to be trusted: some rows lack too many values; give a larger budget"
        warn_inaccurate(sentence, stacklevel=3)
    return Prediction(
        probability=rows.up[:, places].reshape(shape),
        std_error=error,
        missing=(states[:, places] == 0).reshape(shape),
        trusted=rows.trusted,
        is_exact=rows.is_exact,
        interrupted=rows.interrupted,
        names=None if whole.names is None else tuple(np.array(whole.names, dtype=object)[places]),
        index=getattr(X, "index", None) if hasattr(X, "columns") else None,
    )


def _with_seed(method: str | Method, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Add the seed to the options of a method that has one."""
    from spectralz.registry import METHODS

    kind = METHODS.get(method) if isinstance(method, str) else None
    return {"seed": seed, **options} if kind is not None and hasattr(kind, "seed") else options

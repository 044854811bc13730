"""Probabilities of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.result.equality import Compared
from spectralz.result.kinds import entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.result.estimate import Estimate


@dataclass(frozen=True, eq=False)
class LogProb(Compared):
    """Hold log P(x) of states, or of what is known of them: their log-weights minus their common log Z.

    Attributes
    ----------
    log_prob
        log P(x), one number per state; ``numpy.asarray(result)`` is the same.
    log_weight
        Log of the unnormalized probabilities, summed over missing cells.
    estimate
        The common log Z.
    row_error
        If cells are missing, standard errors of ``log_weight``, 0 where it is exact; otherwise None.
    rows_exact, rows_trusted
        Whether all of ``log_weight`` is exact, as it is without missing cells, and whether it can be trusted.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> model = sz.Ising.from_edges(2, [(0, 1)], [1.0])
    >>> logs = sz.log_prob(model, [[+1, +1], [+1, -1]])
    >>> np.exp(logs.log_prob).round(4).tolist()
    [0.4404, 0.0596]
    >>> logs.mean
    -1.82...
    """

    log_prob: NDArray[np.float64]
    log_weight: NDArray[np.float64]
    estimate: Estimate
    row_error: NDArray[np.float64] | None = None
    rows_exact: bool = True
    rows_trusted: bool = True

    @property
    def std_error(self) -> float | NDArray[np.float64] | None:
        """The standard error of every log P(x): that of log Z; None if it has none.

        If cells are missing, one number per row, which includes the error of its own sum over them.
        """
        common = self.estimate.std_error
        if self.row_error is None or (common is None and self.rows_exact):
            return common
        return np.hypot(self.row_error, common or 0.0)

    @property
    def lower(self) -> float | None:
        """A proven lower bound on log Z, so that no log P(x) is above ``log_weight - lower``; None if there is none."""
        return self.estimate.lower if self.rows_exact else None

    @property
    def upper(self) -> float | None:
        """A proven upper bound on log Z, so that no log P(x) is below ``log_weight - upper``; None if there is none."""
        return self.estimate.upper if self.rows_exact else None

    @property
    def trusted(self) -> bool:
        """Whether log Z can be trusted, and so can the sums over missing cells."""
        return self.estimate.trusted and self.rows_trusted

    @property
    def mean(self) -> float:
        """The mean over the states: the log-likelihood per row of data."""
        return float(np.mean(self.log_prob))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.log_prob, dtype=dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return entries(self, "log_prob log_weight std_error lower upper estimate")

    def __repr__(self) -> str:
        error = "" if self.std_error is None else f" ± {np.max(self.std_error, initial=0.0):.2g}"
        words = f"{len(self.log_prob)} states, mean {self.mean:.9g}{error}" if len(self.log_prob) else "no states"
        return f"LogProb({words}, log Z = {self.estimate.log_z:.9g} by {self.estimate.method.name})"

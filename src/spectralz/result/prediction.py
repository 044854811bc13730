"""Probabilities of missing cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.result.equality import Compared
from spectralz.result.kinds import entries

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Prediction(Compared):
    """Hold the probabilities of the missing cells of a table.

    Attributes
    ----------
    probability
        In the shape of the table: P(+1, or 1 in 0/1 data) of every missing cell, given the other cells of its row; 0 or
        1 for the others.
    std_error
        Standard errors in the same shape, 0 where a number is exact; None if all are, or if the method has none.
    missing
        Which cells were missing.
    trusted, is_exact, interrupted
        Whether all numbers can be trusted, whether all are exact, and whether an interrupt ended the work early.
    names
        One name per column, or None.

    Examples
    --------
    >>> import spectralz as sz
    >>> pair = sz.Ising.from_edges(2, [(0, 1)], [1.0], names=["rain", "wet"])
    >>> found = sz.predict(pair, [[None, 1], [None, -1]])
    >>> found.to_pandas().round(3)
        rain  wet
    0  0.881  1.0
    1  0.119  0.0
    """

    probability: NDArray[np.float64]
    std_error: NDArray[np.float64] | None
    missing: NDArray[np.bool_]
    trusted: bool
    is_exact: bool = True
    interrupted: bool = False
    names: tuple[Hashable, ...] | None = None
    index: Any = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.probability, dtype=dtype)

    def to_pandas(self) -> Any:
        """Return the probabilities as a DataFrame, with the columns and the index of the table."""
        from spectralz.show import tables

        return tables.prediction_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return entries(self, "probability std_error missing trusted is_exact interrupted names")

    def __repr__(self) -> str:
        count = int(self.missing.sum())
        rows = int(np.atleast_2d(self.missing).any(axis=1).sum())
        how = "exact" if self.is_exact else "trusted" if self.trusted else "NOT trusted"
        cells = f"{count} missing cell{'' if count == 1 else 's'} in {rows} row{'' if rows == 1 else 's'}"
        return f"Prediction({cells}, {how})"

"""Several methods side by side on one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.result.equality import Compared
from spectralz.result.kinds import AnyMethod, Kind, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from pandas import DataFrame

    from spectralz.errors import SpectralzError
    from spectralz.result.estimate import Estimate


@dataclass(frozen=True, eq=False)
class ComparisonRow(Compared):
    """Hold the result of one method in a comparison: its estimate, or the error in which it ended.

    Attributes
    ----------
    method
        The method, with its options.
    estimate
        Its :class:`Estimate`, or None if it failed.
    error
        The error in which it ended, or None.
    name
        The name that was asked for; it may be a label such as ``BP-200``.

    Examples
    --------
    >>> import spectralz as sz
    >>> row = sz.compare(sz.Ising(field=[1.0]), ["BP-200"]).rows[0]
    >>> row.name, row.method.name, row.error
    ('BP-200', 'bp', None)
    """

    method: AnyMethod
    estimate: Estimate | None
    error: SpectralzError | None
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.method.name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        if self.estimate is None:
            return {"name": self.name, "method": self.method.name, "error": str(self.error)}
        return {"name": self.name, **self.estimate.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Hold the results of several methods on one model, in the order in which they were asked for.

    Attributes
    ----------
    rows
        One :class:`ComparisonRow` per method.
    interrupted
        Whether an interrupt ended it; methods after that have no row.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=6, strength=1.0, seed=0)
    >>> table = sz.compare(model, ["exact"])
    >>> table["exact"].kind
    <Kind.EXACT: 'exact'>
    >>> table
    Comparison(1 method: exact)
    >>> print(table)
    method  log Z        error  kind   lower      upper      seconds  status
    exact   13.31902065  0      exact  13.319020  13.319021  ...      exact: ...
    """

    rows: tuple[ComparisonRow, ...]
    interrupted: bool = False

    @property
    def reference(self) -> Estimate | None:
        """The exact answer, if one of the methods gave it."""
        exact = (row.estimate for row in self.rows if row.estimate and row.estimate.kind is Kind.EXACT)
        return next(exact, None)

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Estimate:
        named = [row for row in self.rows if row.name == name]
        for row in named or [row for row in self.rows if row.method.name == name]:
            if row.error is not None:
                raise row.error
            assert row.estimate is not None
            return row.estimate
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; ``reference`` is the exact log Z."""
        reference = None if self.reference is None else self.reference.log_z
        rows = [row.to_dict() for row in self.rows]
        return {"reference": reference, "interrupted": self.interrupted, "rows": rows}

    def to_pandas(self) -> DataFrame:
        """Return a DataFrame with one row per method: its numbers, its error against the exact answer, its failure.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed; it comes with the extra ``pandas``.
        """
        from spectralz.show import tables

        return tables.comparison_frame(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the methods below each other with :func:`spectralz.plots.comparison`; return the Axes."""
        from spectralz.show import plots

        return plots.comparison(self, ax)

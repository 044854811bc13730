"""Proven bounds from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.errors import SolverError
from spectralz.result.kinds import Record, Shown, entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectralz.result.interval import Interval


@dataclass(frozen=True, eq=False)
class BoundsRow(Record):
    """Hold the result of one bounder: what it proved on each side, or why it proved nothing.

    Attributes
    ----------
    method
        The name of the bounder.
    lower, upper
        What it proved, or None.
    seconds
        How long it took.
    status
        How it ended, or why it proved nothing.
    interrupted
        Whether an interrupt ended it; what it had proven by then counts.

    Examples
    --------
    >>> import spectralz as sz
    >>> row = sz.bounds(sz.generators.chain(n=8, strength=0.5), budget=1.0).rows[0]
    >>> row.method, row.lower <= row.upper
    ('trivial', True)
    """

    method: str
    lower: float | None
    upper: float | None
    seconds: float
    status: str
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bounds(Shown):
    """Hold proven bounds on log Z, the best of several methods on each side.

    Attributes
    ----------
    lower, upper
        log Z is proven to lie between them, rounding included.
    lower_method, upper_method
        Which method proved them.
    seconds
        Wall-clock time of all methods together.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    rows
        Every bounder that was asked, in the order in which they ran.
    interval
        An interval that contains log Z with a stated probability, as (low, high, level). It assumes nothing but the
        quality of the random numbers. If a proven bound is better than an end, it takes its place. None unless a level
        was asked for.
    interval_status
        How its ends were found, as a sentence.
    interrupted
        Whether an interrupt ended the search; the bounds hold all the same.

    Examples
    --------
    >>> import spectralz as sz
    >>> bracket = sz.bounds(sz.generators.grid(side=6, strength=0.2, seed=0), budget=1.0)
    >>> bracket.lower < sz.log_z(sz.generators.grid(side=6, strength=0.2, seed=0)).log_z < bracket.upper
    True
    >>> print(bracket)
    33.30854299... <= log Z <= 33.30854299... (proven, width ...)
    lower by ..., upper by ...
    7 methods, ... s
    """

    lower: float
    upper: float
    lower_method: str
    upper_method: str
    seconds: float
    rows: tuple[BoundsRow, ...]
    interrupted: bool = False
    compile_seconds: float = 0.0
    interval: Interval | None = None
    interval_status: str = ""

    def __post_init__(self) -> None:
        if not self.lower <= self.upper < math.inf:
            raise SolverError(
                f"{self.lower_method} proved log Z >= {self.lower} and {self.upper_method} log Z <= {self.upper}; "
                "please report this model as a bug"
            )
        if self.interval is not None:
            self.interval.check("bounds")

    @classmethod
    def best_of(cls, rows: tuple[BoundsRow, ...], seconds: float, *, interrupted: bool = False) -> Bounds:
        """Return the best bound of all rows on each side; at least one row must have each."""
        lower, lower_method = max((row.lower, row.method) for row in rows if row.lower is not None)
        upper, upper_method = min((row.upper, row.method) for row in rows if row.upper is not None)
        return cls(
            lower=lower,
            upper=upper,
            lower_method=lower_method,
            upper_method=upper_method,
            seconds=seconds,
            rows=rows,
            interrupted=interrupted,
        )

    @property
    def width(self) -> float:
        """The distance between the bounds; 0 if both are -inf."""
        return self.upper - self.lower if self.upper > -math.inf else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        names = "lower upper width lower_method upper_method seconds compile_seconds interrupted"
        return entries(self, f"{names} interval interval_status rows")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds of each method and the bracket with :func:`spectralz.plots.bounds`; return the Axes."""
        from spectralz.show import plots

        return plots.bounds(self, ax)

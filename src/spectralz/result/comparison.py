"""Several methods side by side on one model, proven bounds from both sides, and what is known of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from spectralz.errors import SolverError
from spectralz.result.kinds import AnyMethod, Compared, Kind, Record, Shown, entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from pandas import DataFrame

    from spectralz.errors import SpectralzError
    from spectralz.result.estimate import Estimate
    from spectralz.result.kinds import Interval


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Description(dict[str, Any], Shown):  # type: ignore[misc]  # without a hash, as any dict
    """Hold what :func:`spectralz.describe` found out about a model; also a dict from these names to their values.

    Attributes
    ----------
    spins, edges, components, largest_component
        Their numbers, and the number of spins in the largest component.
    density, degree_mean, degree_max
        Share of all pairs that are coupled; mean and largest number of neighbors of a spin.
    coupling_mean, coupling_max, field_mean, field_max
        Sizes |A_ij| of the couplings and |theta_i| of the fields.
    offset, trace
        The constants: the offset, and the trace of the coupling.
    terms, largest_term, term_mean, term_max
        Number of terms of three and more spins, most spins of one, and sizes of their weights. Edges then are the pairs
        of spins that share a term.
    constraints, presolve
        Number of constraints, and what presolving makes of them. Edges are also the pairs of spins that share one; the
        treewidth and the cost are those of the model that presolving leaves.
    storage
        How the coupling is kept.
    is_forest
        Whether the graph has no loop.
    treewidth_lower, treewidth_upper
        The treewidth lies between them; the second is None if it would take long to find.
    exact_order, exact_memory, exact_terms
        The best elimination order found, its tables in bytes and its terms; None if no machine could do it.

    Examples
    --------
    >>> import spectralz as sz
    >>> print(sz.describe(sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0])))
    spins         3
    edges         2 (density 0.667, kept sparse)
    degree        mean 1.33, largest 2
    coupling |A|  mean 0.75, largest 1 (an edge counted once weighs J = 2 A)
    field         mean size 0, largest 0
    constant      0
    components    1, the largest of 3 spins, a forest
    treewidth     1
    exact answer  ... of tables by ... order, ... terms, under a second
    """

    spins: int
    edges: int
    density: float
    degree_mean: float
    degree_max: int
    coupling_mean: float
    coupling_max: float
    field_mean: float
    field_max: float
    offset: float
    trace: float
    storage: str
    components: int
    largest_component: int
    is_forest: bool
    treewidth_lower: int
    treewidth_upper: int | None
    exact_order: str | None
    exact_memory: int | None
    exact_terms: int | None
    terms: int = 0
    largest_term: int = 0
    term_mean: float = 0.0
    term_max: float = 0.0
    constraints: int = 0
    presolve: str = ""

    def __post_init__(self) -> None:
        self.update({entry.name: getattr(self, entry.name) for entry in fields(self)})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(self)

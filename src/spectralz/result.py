"""What a run gives back: a number, what kind of number it is, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from spectralz.errors import NotConvergedError, SolverError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from pandas import DataFrame

    from spectralz.errors import SpectralzError

__all__ = [
    "Bounds",
    "BoundsRow",
    "Comparison",
    "ComparisonRow",
    "Description",
    "Estimate",
    "Kind",
    "Marginals",
    "Status",
    "Trial",
    "Verdict",
]


class Kind(StrEnum):
    """What the number of a run is. It belongs to the run: belief propagation, say, is exact on a forest."""

    EXACT = "exact"
    LOWER_BOUND = "lower bound"
    UPPER_BOUND = "upper bound"
    ESTIMATE = "estimate"


class Status(str):
    """How a run ended, as a sentence; ``converged`` says whether the method did all that it set out to do.

    Examples
    --------
    >>> status = Status("stopped after 200 iterations with residual 0.3", converged=False)
    >>> print(status, status.converged)
    stopped after 200 iterations with residual 0.3 False
    """

    converged: bool

    def __new__(cls, sentence: str, *, converged: bool = True) -> Status:  # noqa: D102
        status = super().__new__(cls, sentence)
        status.converged = converged
        return status

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, bool]]:
        return (str(self),), {"converged": self.converged}


class Verdict(StrEnum):
    """What became of one of several methods that were tried."""

    CHOSEN = "chosen"
    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_TRUSTED = "not trusted"
    BOUND = "bound"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One of several methods that were tried: what it said, and what was made of it.

    Attributes
    ----------
    method
        The name of the method.
    log_z, std_error
        Its answer and the scale of its error, or None.
    lower, upper
        The bounds that it proved, or None.
    seconds
        How long it took.
    verdict
        What was made of it.
    why
        Its own account of itself, or why it was not run.
    """

    method: str
    log_z: float | None = None
    std_error: float | None = None
    lower: float | None = None
    upper: float | None = None
    seconds: float = 0.0
    verdict: Verdict
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return {**vars(self), "verdict": str(self.verdict)}


class AnyMethod(Protocol):
    """What a result needs to know of the method that made it."""

    name: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """log Z as one run found it.

    Attributes
    ----------
    log_z
        The answer, a natural logarithm.
    kind
        What the answer is: exact (up to rounding), a proven bound, or an estimate.
    status
        How the run ended, as a sentence; ``status.converged`` says whether it did all that it set out to do.
    lower, upper
        Proven bounds on log Z, rounding included, or None. Never heuristics.
    std_error
        The scale of the remaining error, statistical or not, or None: of sampling it is the standard error, of ``ep``
        what its corrections leave out, of ``auto`` what covers all that its methods disagree about.
    trusted
        Whether the answer is to be believed as what it is. An exact one is, and so are a proven bound, as a bound, and
        the middle of a proven interval (``quadrature``, ``low_rank``). Of ``auto``, ``ep``, ``annealing`` and
        ``states`` this is their own verdict; where it is False, ``status`` has not converged. A plain estimate, such
        as that of ``bp``, has nothing to show for itself and is not.
    interrupted
        Whether an interrupt ended the run; the answer is the best so far.
    tried
        The methods that were tried where several were, with what each said; else empty.
    iterations
        How many iterations the method made, or None where it has none.
    seconds
        Wall-clock time of the run.
    method
        The method that ran, with its options.
    details
        Diagnostics of the method that nothing else depends on: treewidth, rank, effective sample size and the like.

    Examples
    --------
    >>> import spectralz as sz
    >>> result = sz.log_z(sz.Ising(field=[0.0, 0.0], coupling=[[0.0, 0.5], [0.5, 0.0]]))
    >>> result
    Estimate(log Z = 1.8200751916, exact, by exact in ... s)
    >>> print(result)
    log Z = 1.8200751916 (exact)
    proven to within ...
    exact: ...
    exact, ... s
    >>> round(float(result), 6)
    1.820075
    """

    log_z: float
    kind: Kind
    status: Status
    lower: float | None = None
    upper: float | None = None
    std_error: float | None = None
    iterations: int | None = None
    seconds: float
    method: AnyMethod
    trusted: bool = None  # type: ignore[assignment]  # by its kind, if the method has no verdict of its own
    interrupted: bool = False
    tried: tuple[Trial, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trusted is None:
            object.__setattr__(self, "trusted", self.kind is not Kind.ESTIMATE)
        for name in ("log_z", "lower", "upper", "std_error"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SolverError(f"{self.method.name} gave {name} = {value}; please report this model as a bug")

    @property
    def disagreeing(self) -> tuple[Trial, ...]:
        """The methods that were tried, trust themselves, and do not agree with this answer."""
        return tuple(trial for trial in self.tried if trial.verdict is Verdict.DISAGREES)

    def check(self) -> Estimate:
        """Return the estimate itself, or raise NotConvergedError if the run did not converge."""
        if not self.status.converged:
            raise NotConvergedError(f"{self.method.name}: {self.status}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return {
            "log_z": self.log_z,
            "kind": str(self.kind),
            "lower": self.lower,
            "upper": self.upper,
            "std_error": self.std_error,
            "status": str(self.status),
            "converged": self.status.converged,
            "trusted": self.trusted,
            "interrupted": self.interrupted,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "method": self.method.name,
            "options": plain(vars(self.method)),
            "tried": [trial.to_dict() for trial in self.tried],
            "details": plain(self.details),
        }

    def __float__(self) -> float:
        return self.log_z

    def __repr__(self) -> str:
        from spectralz.show import text

        return text.estimate_repr(self)

    def __str__(self) -> str:
        from spectralz.show import text

        return text.estimate(self)

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.estimate(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the answer in its bracket and what was tried, by :func:`spectralz.plots.estimate`; return the Axes."""
        from spectralz.show import plots

        return plots.estimate(self, ax)


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Means of the spins and of the products along the edges, as one run found them.

    Attributes
    ----------
    mean
        E[x_i], one number a spin.
    probability
        P(x_i = -1) and P(x_i = +1), two numbers a spin, each with its digits where the other is close to 1.
    edges, pair_mean
        The edges (m x 2, i < j) and E[x_i x_j] on each.
    kind
        Whether these numbers are exact or an estimate.
    estimate
        The log Z, status and cost of the same run.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0]))
    >>> found
    Marginals(n=2, edges=1, exact, means +0.3519 to +0.4621, by exact)
    >>> print(found)
    marginals   2 spins, 1 edge (exact)
    means       +0.3519 to +0.4621, mean size 0.4070
    pair means  +0.7616 to +0.7616
    each        spin 0 +0.4621, spin 1 +0.3519
    run         log Z = 1.94018969856 (exact); exact, ... s
    status      exact: ...
    """

    mean: NDArray[np.float64]
    probability: NDArray[np.float64]
    edges: NDArray[np.int64]
    pair_mean: NDArray[np.float64]
    kind: Kind
    estimate: Estimate

    def __post_init__(self) -> None:
        for name in ("mean", "probability", "pair_mean"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise SolverError(f"{self.estimate.method.name} gave a {name} that is not finite; please report it")

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.estimate.status

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return {
            "mean": self.mean.tolist(),
            "probability": self.probability.tolist(),
            "edges": self.edges.tolist(),
            "pair_mean": self.pair_mean.tolist(),
            "kind": str(self.kind),
            "estimate": self.estimate.to_dict(),
        }

    def __repr__(self) -> str:
        from spectralz.show import text

        return text.marginals_repr(self)

    def __str__(self) -> str:
        from spectralz.show import text

        return text.marginals(self)

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.marginals(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean of every spin, by :func:`spectralz.plots.marginals`; return the Axes."""
        from spectralz.show import plots

        return plots.marginals(self, ax)


@dataclass(frozen=True)
class ComparisonRow:
    """One method of a comparison: its estimate, or the error that it ended in.

    ``name`` is what was asked for, which may be a label such as ``BP-200``.
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


@dataclass(frozen=True)
class Comparison:
    """Several methods on one model, in the order in which they were asked for.

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
    exact   13.31902065  0      exact  13.319021  13.319021  ...      exact: ...
    """

    rows: tuple[ComparisonRow, ...]

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
        asked = [row for row in self.rows if row.name == name]
        for row in asked or [row for row in self.rows if row.method.name == name]:
            if row.error is not None:
                raise row.error
            assert row.estimate is not None
            return row.estimate
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; ``reference`` is the exact log Z."""
        reference = None if self.reference is None else self.reference.log_z
        return {"reference": reference, "rows": [row.to_dict() for row in self.rows]}

    def to_pandas(self) -> DataFrame:
        """Return a DataFrame with one row per method: its numbers, its error against the exact answer, its failure.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed; it comes with the extra ``pandas``.
        """
        from spectralz.show import tables

        return tables.comparison_frame(self)

    def __repr__(self) -> str:
        from spectralz.show import text

        return text.comparison_repr(self)

    def __str__(self) -> str:
        from spectralz.show import text

        return text.comparison(self)

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.comparison(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the methods under each other, by :func:`spectralz.plots.comparison`; return the Axes."""
        from spectralz.show import plots

        return plots.comparison(self, ax)


@dataclass(frozen=True)
class BoundsRow:
    """One bounder of a bracket: what it proved on each side, or why it proved nothing.

    ``interrupted`` says whether an interrupt ended it; what it had proven by then counts.
    """

    method: str
    lower: float | None
    upper: float | None
    seconds: float
    status: str
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Proven bounds on log Z, the best of several methods on each side.

    Attributes
    ----------
    lower, upper
        log Z lies between them, proven, rounding included.
    lower_method, upper_method
        Which method proved them.
    seconds
        Wall-clock time of all together.
    rows
        Every bounder that was asked, in the order in which they ran.
    interrupted
        Whether an interrupt ended the search; the bounds hold all the same.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.bounds(sz.generators.grid(side=6, strength=0.2, seed=0), budget=1.0)
    >>> found.lower < sz.log_z(sz.generators.grid(side=6, strength=0.2, seed=0)).log_z < found.upper
    True
    >>> print(found)
    33.30854299... <= log Z <= 33.30854299... (proven, width ...)
    lower by wmbe, upper by wmbe
    7 methods, ... s
    """

    lower: float
    upper: float
    lower_method: str
    upper_method: str
    seconds: float
    rows: tuple[BoundsRow, ...]
    interrupted: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower <= self.upper):
            raise SolverError(
                f"{self.lower_method} proved log Z >= {self.lower} and {self.upper_method} log Z <= {self.upper}; "
                "please report this model as a bug"
            )

    @classmethod
    def best_of(cls, rows: tuple[BoundsRow, ...], seconds: float, *, interrupted: bool = False) -> Bounds:
        """Take the best bound of all rows on each side; one of them at least must have each."""
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
        """How far apart the bounds are."""
        return self.upper - self.lower

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "width": self.width,
            "lower_method": self.lower_method,
            "upper_method": self.upper_method,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "rows": [plain(vars(row)) for row in self.rows],
        }

    def __repr__(self) -> str:
        from spectralz.show import text

        return text.bounds_repr(self)

    def __str__(self) -> str:
        from spectralz.show import text

        return text.bounds(self)

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.bounds(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what each method proved and the bracket, by :func:`spectralz.plots.bounds`; return the Axes."""
        from spectralz.show import plots

        return plots.bounds(self, ax)


@dataclass(frozen=True, kw_only=True, eq=False)
class Description(Mapping[str, Any]):
    """What is worth knowing of a model before solving it; also a mapping from these names to their values.

    Attributes
    ----------
    spins, edges, components, largest_component
        Their numbers; spins of the largest component.
    density, degree_mean, degree_max
        Share of all pairs that are coupled, neighbors of a spin on average and at most.
    coupling_mean, coupling_max, field_mean, field_max
        Sizes |A_ij| of the couplings and |theta_i| of the fields.
    offset, trace
        The constants: the offset, and the trace of the coupling.
    storage
        How the coupling is kept.
    is_forest
        Whether there is no loop.
    treewidth_lower, treewidth_upper
        The treewidth lies between them; the second is None where it would take long to find.
    exact_order, exact_memory, exact_terms
        The best elimination order found, its tables in bytes and its terms; None where no machine could do it.

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

    def __getitem__(self, name: str) -> Any:
        if name not in set(self):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in fields(self))

    def __len__(self) -> int:
        return len(fields(self))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(self)

    def __str__(self) -> str:
        from spectralz.show import text

        return text.description(self)

    def _repr_html_(self) -> str:
        from spectralz.show import html

        return html.description(self)


def plain(value: Any) -> Any:
    """Turn numpy scalars, arrays and mappings into the plain Python values that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else str(value)

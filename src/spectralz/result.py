"""What a run gives back: a number, what kind of number it is, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from spectralz.errors import NotConvergedError, SolverError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.errors import SpectralzError

__all__ = ["Bounds", "BoundsRow", "Comparison", "ComparisonRow", "Estimate", "Kind", "Marginals", "Status"]


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
        How the run ended, as a sentence; ``status.converged`` is its verdict.
    lower, upper
        Proven bounds on log Z, rounding included, or None. Never heuristics.
    std_error
        Statistical standard error, or None.
    iterations
        How many iterations the method made, or None where it has none.
    seconds
        Wall-clock time of the run.
    method
        The method that ran, with its options.
    details
        Diagnostics of the method: treewidth, rank, effective sample size and the like.
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
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("log_z", "lower", "upper", "std_error"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SolverError(f"{self.method.name} gave {name} = {value}; please report this model as a bug")

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
            "iterations": self.iterations,
            "seconds": self.seconds,
            "method": self.method.name,
            "options": plain(vars(self.method)),
            "details": plain(self.details),
        }


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


@dataclass(frozen=True)
class ComparisonRow:
    """One method of a comparison: its estimate, or the error that it ended in."""

    method: AnyMethod
    estimate: Estimate | None
    error: SpectralzError | None


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
        for row in self.rows:
            if row.method.name == name:
                if row.error is not None:
                    raise row.error
                assert row.estimate is not None
                return row.estimate
        raise KeyError(name)


@dataclass(frozen=True)
class BoundsRow:
    """One bounder of a bracket: what it proved on each side, or why it proved nothing."""

    method: str
    lower: float | None
    upper: float | None
    seconds: float
    status: str


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


def plain(value: Any) -> Any:
    """Turn numpy scalars, arrays and mappings into the plain Python values that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else str(value)

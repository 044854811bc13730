"""The kind of a run's number, how the run ended, and the verdict on it; what all results share; plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from spectralz.errors import SolverError

# How long something took is no part of the answer, neither in a result nor in its rows and details; nor is what was
# known at which time, or how more would be computed.
LEFT_OUT = ("seconds", "compile_seconds", "history", "between")


class Compared:
    """Compare results by all their values except ``seconds``; a result that holds an array or a dict has no hash."""

    def __eq__(self, other: object) -> bool:
        return same(self, other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashed, _values(self).values())))


def same(a: Any, b: Any) -> bool:
    """Say whether two values are equal, arrays entry by entry; NaN equals NaN, and seconds do not count.

    Examples
    --------
    >>> nan = float("nan")
    >>> same({"means": np.array([0.5, nan]), "seconds": 1.0}, {"means": np.array([0.5, nan]), "seconds": 2.0})
    True
    >>> same([1, (2, nan)], [1, (2, 3.0)])
    False
    """
    if a is b:
        return True
    if isinstance(a, np.ndarray | np.generic) or isinstance(b, np.ndarray | np.generic):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if isinstance(a, BaseException) or _is_record(a):
        return type(a) is type(b) and same(_values(a), _values(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        names = a.keys() | b.keys()
        return all(name in a and name in b and same(a[name], b[name]) for name in names if name not in LEFT_OUT)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        alike = isinstance(a, tuple) == isinstance(b, tuple) and len(a) == len(b)
        return alike and all(map(same, a, b))
    if hasattr(a, "converged") and hasattr(b, "converged") and a.converged != b.converged:  # statuses
        return False
    return bool(a == b) or bool(a != a and b != b)


def _is_record(value: Any) -> bool:
    """Say whether a value is compared field by field: a result or another dataclass, unless it has its own ``==``."""
    made = None if isinstance(value, type) else getattr(value, "__dataclass_params__", None)
    return isinstance(value, Compared) or (made is not None and bool(made.eq))


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return same(a.tolist(), b.tolist())
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def _hashed(value: Any) -> Any:
    """Return what stands for a value in a hash: NaNs, and errors that say the same, are equal but not the same."""
    if isinstance(value, BaseException):
        return type(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _values(result: Any) -> dict[str, Any]:
    """Return what is compared of a result, of the options of a method, or of an error."""
    if isinstance(result, BaseException):
        return {"args": result.args}
    return {entry.name: getattr(result, entry.name) for entry in fields(result) if entry.name not in LEFT_OUT}


class Interval(NamedTuple):
    """Hold an interval that contains log Z with a stated probability, over the random numbers drawn.

    Nothing else is assumed: no equilibrium, no normal distribution, no large sample. It is not proven, and is never
    mixed with ``lower`` and ``upper``, which are.

    Attributes
    ----------
    low, high
        log Z lies between them; ``high`` is None if only the lower end is known.
    level
        The probability of this, at least.

    Examples
    --------
    >>> interval = Interval(1.5, 1.75, 0.999)
    >>> low, high, level = interval
    >>> interval.width, 1.6 in interval, 2.0 in interval
    (0.25, True, False)
    """

    low: float
    high: float | None
    level: float

    @property
    def width(self) -> float | None:
        """The distance between the ends, or None if there is only one."""
        return None if self.high is None else self.high - self.low

    def __contains__(self, log_z: Any) -> bool:
        """Say whether a value lies inside."""
        return bool(self.low <= log_z and (self.high is None or log_z <= self.high))

    def check(self, who: str) -> None:
        """Refuse an interval that has no lower end, or is empty."""
        ends = [end for end in (self.low, self.high) if end is not None]
        if not all(map(math.isfinite, ends)) or ends != sorted(ends):
            raise SolverError(f"{who} gave the interval {self.low} to {self.high}; please report this model as a bug")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(self._asdict())


class Kind(StrEnum):
    """Say what the number of a run is. The kind belongs to the run: belief propagation, say, is exact on a forest.

    Attributes
    ----------
    EXACT
        Exact, up to rounding.
    LOWER_BOUND, UPPER_BOUND
        A proven bound.
    ESTIMATE
        Anything else.

    Examples
    --------
    >>> import spectralz as sz
    >>> kind = sz.log_z(sz.Ising(field=[1.0])).kind
    >>> kind, kind == "exact", kind.is_proven
    (<Kind.EXACT: 'exact'>, True, True)
    """

    EXACT = "exact"
    LOWER_BOUND = "lower bound"
    UPPER_BOUND = "upper bound"
    ESTIMATE = "estimate"

    @property
    def is_proven(self) -> bool:
        """Whether a number of this kind is proven."""
        return self is not Kind.ESTIMATE


class Status(str):
    """Say how a run ended, as a sentence; ``converged`` says whether the method did all that it set out to do.

    Parameters
    ----------
    sentence
        How the run ended.
    converged
        Whether the method did all that it set out to do.

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
    """Say what became of one of several methods that were tried.

    Attributes
    ----------
    CHOSEN
        It gave the answer.
    AGREES, DISAGREES
        Its answer agrees with that one within the errors, or not.
    NOT_TRUSTED
        Its own checks fail, or its answer is outside the proven bounds.
    BOUND
        It proved a bound.
    NOT_RUN
        It was left out.

    Examples
    --------
    >>> import spectralz as sz
    >>> print(sz.Verdict.NOT_TRUSTED)
    not trusted
    """

    CHOSEN = "chosen"
    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_TRUSTED = "not trusted"
    BOUND = "bound"
    NOT_RUN = "not run"


class Record(Compared):
    """What results have in common: their fields, in order, as plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return entries(self, " ".join(vars(self)))


class Shown(Compared):
    """Print a result, and show it in notebooks, by the functions of ``spectralz.show`` with the name of its class."""

    def __repr__(self) -> str:
        return _shown(self, "text", "_repr")

    def __str__(self) -> str:
        return _shown(self, "text")

    def _repr_html_(self) -> str:
        return _shown(self, "html")


def _shown(result: Shown, form: str, suffix: str = "") -> str:
    show = import_module(f"spectralz.show.{form}")  # on first use: answers need no tables
    return str(getattr(show, f"{type(result).__name__.lower()}{suffix}")(result))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial(Record):
    """Hold the answer of one of several methods that were tried, and the verdict on it.

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
        What became of it.
    why
        Its own status, or why it was not run.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=12, strength=0.1, seed=0)
    >>> trials = sz.log_z(model, exclude=["exact"], work=1e8).tried
    >>> [trial.verdict for trial in trials].count("chosen")
    1
    """

    method: str
    log_z: float | None = None
    std_error: float | None = None
    lower: float | None = None
    upper: float | None = None
    seconds: float = 0.0
    verdict: Verdict
    why: str = ""


class AnyMethod(Protocol):
    """What a result needs to know about its method."""

    name: ClassVar[str]


def entries(result: object, names: str) -> dict[str, Any]:
    """Return attributes of a result as plain values, by their names, which are separated by blanks."""
    return {name: plain(getattr(result, name)) for name in names.split()}


def plain(value: Any) -> Any:
    """Turn results, numpy scalars, arrays and mappings into plain Python values that JSON can hold.

    Minus infinity, the log of zero, becomes a text.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        is_finite = value.dtype.kind in "biu" or (value.dtype.kind == "f" and not np.any(value == -math.inf))
        return value.tolist() if is_finite else plain(value.tolist())
    if isinstance(value, float) and value == -math.inf:
        return "-inf"
    return value if isinstance(value, int | float | bool | None) else str(value)

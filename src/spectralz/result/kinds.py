"""The kind of a run's number, how the run ended, and the verdict on it; and plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np

from spectralz.result.equality import Compared


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

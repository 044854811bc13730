"""The kind of a run's number, how the run ended, and the verdict on it; and plain values for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np


class Kind(StrEnum):
    """Say what the number of a run is. The kind belongs to the run: belief propagation, say, is exact on a forest."""

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
    """Say what became of one of several methods that were tried."""

    CHOSEN = "chosen"
    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_TRUSTED = "not trusted"
    BOUND = "bound"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Trial:
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
    """What a result needs to know about its method."""

    name: ClassVar[str]


def plain(value: Any) -> Any:
    """Turn numpy scalars, arrays and mappings into plain Python values that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else str(value)

"""The one interface of all methods, and the checks that their options share."""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from spectralz.errors import OptionError, TooLargeError
from spectralz.result import Estimate, Kind, Marginals, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from spectralz.model import Ising

__all__ = [
    "MarginalOutcome",
    "Method",
    "Outcome",
    "bytes_in_words",
    "check_choice",
    "checked_bytes",
    "checked_count",
]


# A byte each: what one call of sample may return.
MOST_SAMPLED_SPINS = 16 * 2**30


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What ``_solve`` of a method returns; ``run`` makes an Estimate of it.

    ``method`` names the method that really ran where it is not the one that was asked, as with ``auto``.
    """

    log_z: float
    kind: Kind
    status: Status
    lower: float | None = None
    upper: float | None = None
    std_error: float | None = None
    iterations: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    method: Method | None = None


@dataclass(frozen=True, kw_only=True)
class MarginalOutcome:
    """What ``_solve_marginals`` of a method returns; pairs are those of ``model.edges()``, in its order."""

    probability: NDArray[np.float64]
    mean: NDArray[np.float64]
    pair_mean: NDArray[np.float64]
    kind: Kind
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A method is its options: a frozen value that runs on a model, changes nothing and returns a result.

    A new method gives ``name`` and ``_solve``, and if it can ``_solve_marginals`` with ``gives_marginals = True`` and
    ``_sample`` with ``gives_samples = True``.
    The log Z of ``_solve`` is that of the whole model, its offset and the trace of its coupling included.
    """

    name: ClassVar[str]
    gives_marginals: ClassVar[bool] = False
    gives_samples: ClassVar[bool] = False

    @abstractmethod
    def _solve(self, model: Ising) -> Outcome: ...

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        raise OptionError(f"method {self.name!r} gives no marginals")

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        raise OptionError(f"method {self.name!r} gives no samples")

    @final
    def run(self, model: Ising) -> Estimate:
        """Return log Z of ``model`` as this method finds it."""
        started = time.perf_counter()
        return self._pack(self._solve(model), started)

    @final
    def run_marginals(self, model: Ising) -> Marginals:
        """Return the means of spins and edges of ``model`` as this method finds them."""
        started = time.perf_counter()
        found = self._solve_marginals(model)
        return Marginals(
            mean=found.mean,
            probability=found.probability,
            edges=model.edges()[0],
            pair_mean=found.pair_mean,
            kind=found.kind,
            estimate=self._pack(found.outcome, started),
        )

    @final
    def run_sample(self, model: Ising, size: int, seed: int) -> NDArray[np.int8]:
        """Return ``size`` independent states of ``model``, one a row, the same ones for the same seed."""
        count = checked_count(size, "size", least=0)
        if count * model.n > MOST_SAMPLED_SPINS:
            raise TooLargeError(
                f"{count} states of {model.n} spins take {bytes_in_words(count * model.n)}; "
                "draw them in parts, each with its own seed"
            )
        return self._sample(model, count, np.random.default_rng(checked_count(seed, "seed", least=0)))

    def _pack(self, outcome: Outcome, started: float) -> Estimate:
        values = {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name != "method"}
        return Estimate(**values, method=outcome.method or self, seconds=time.perf_counter() - started)

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Make the method, refusing options that it does not have by their names."""
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                wanted = "its options are " + ", ".join(known) if known else "it has none"
                raise OptionError(f"method {cls.name!r} has no option {name!r}; {wanted}")
        return cls(**options)


def check_choice(value: object, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of ``choices``."""
    if value not in choices:
        raise OptionError(f"{name} is {value!r}; it must be one of " + ", ".join(repr(c) for c in choices))


def checked_count(value: Any, name: str, least: int) -> int:
    """Return a whole number that is at least ``least``, given as an int or a float such as 1e9."""
    whole = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not whole or not math.isfinite(value) or value != int(value) or value < least:
        raise OptionError(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return int(value)


def checked_positive(value: Any, name: str, below: float = math.inf) -> float:
    """Return a number that is above zero and below ``below``."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not 0.0 < value < below:
        limit = f" and below {below:g}" if below < math.inf else ""
        raise OptionError(f"{name} is {value!r}; it must be a number above 0{limit}")
    return float(value)


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def checked_bytes(value: Any, name: str) -> int:
    """Return a number of bytes, given as such or like ``"512 MiB"``.

    Examples
    --------
    >>> checked_bytes("4 GiB", "max_memory") == 4 * 2**30
    True
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", value)
        if match is None or match[2].upper() not in _UNITS:
            raise OptionError(f"{name} is {value!r}; write a number of bytes, or one like '512 MiB' or '4 GiB'")
        value = int(float(match[1]) * _UNITS[match[2].upper()])
    return checked_count(value, name, least=1)


def bytes_in_words(count: int) -> str:
    """Write a number of bytes with the unit that suits it.

    Examples
    --------
    >>> bytes_in_words(2**32), bytes_in_words(1500), bytes_in_words(2**200)
    ('4 GiB', '1.46 KiB', '2^200 B')
    """
    for power, unit in (
        (0, "B"),
        (10, "KiB"),
        (20, "MiB"),
        (30, "GiB"),
        (40, "TiB"),
        (50, "PiB"),
        (60, "EiB"),
    ):
        if count < 1 << (power + 10):
            return f"{count / (1 << power):.3g} {unit}" if count < 1000 << power else f"{count >> power} {unit}"
    return f"2^{count.bit_length() - 1} B"

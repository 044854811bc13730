"""log Z as one run found it, the populations that said so, and counted states."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import NotConvergedError, SolverError
from spectralz.result.kinds import AnyMethod, Kind, Record, Shown, Status, Trial, Verdict, entries, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz._support.progress import Moment
    from spectralz.result.kinds import Interval


@dataclass(frozen=True, kw_only=True, eq=False)
class Populations(Record):
    """Hold what populations said of log Z, and how to send more of them: some kilobytes, without any states.

    ``log_z(model, more=answer)`` reads it, and so does a checkpoint.

    Attributes
    ----------
    probe
        Log-weights of a few fixed states, by which the model is known again.
    method
        The method that sent them.
    bases, points, sweeps, fields, own
        For each base its name, the points of its path, the sweeps at each, the fields of the independent spins that it
        begins from (None if the name says it), and the cell that it stays at one image of, or -1.
    centers, cell
        The centers of the cells, and the cell of each.
    coefficients, times
        How much each base counts in each cell, and its share of the time.
    base, size
        For each population its base, and its number of states.
    log_z
        For each population, logs of its groups' estimates of the weight of each cell; -inf where no state is.
    families, heaviest, covariances, log_scales
        What their families say of each cell, as in the evidence that trust reads.
    sources, light, search
        What the search for phases found, left out, and did not do.
    searched
        Whether that search was complete.
    calls, seconds, operations
        How many calls have sent populations, and the time and the counted operations of all.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=12, strength=0.3, seed=0)
    >>> first = sz.log_z(model, "annealing", population=16)
    >>> second = sz.log_z(model, "annealing", population=16, more=first)
    >>> second.populations.calls, second.populations.size
    (2, (512, 512))
    >>> second.std_error < first.std_error
    True
    """

    probe: NDArray[np.float64]
    bases: tuple[str, ...]
    points: tuple[NDArray[np.float64], ...]
    sweeps: tuple[int, ...]
    fields: tuple[NDArray[np.float64] | None, ...]
    own: tuple[int, ...]
    centers: NDArray[np.float64]
    cell: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    times: NDArray[np.float64]
    base: tuple[int, ...]
    size: tuple[int, ...]
    log_z: tuple[NDArray[np.float64], ...]
    families: NDArray[np.float64]
    heaviest: NDArray[np.float64]
    covariances: tuple[NDArray[np.float64], ...]
    log_scales: tuple[float, ...]
    sources: tuple[int, ...]
    light: tuple[float, ...]
    search: str
    searched: bool
    calls: int = 1
    method: str = ""
    seconds: float = 0.0
    operations: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; None stands for -inf."""
        finite = [[[x if x > -np.inf else None for x in row] for row in groups.tolist()] for groups in self.log_z]
        return {**super().to_dict(), "log_z": finite}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Populations:
        """Return what :meth:`to_dict` has made plain."""
        found = {field.name: values[field.name] for field in fields(cls)}
        for name in ("probe", "centers", "coefficients", "times", "families", "heaviest"):
            found[name] = np.array(found[name], dtype=np.float64)
        found["cell"] = np.array(found["cell"], dtype=np.int64)
        for name in ("points", "covariances"):
            found[name] = tuple(np.array(part, dtype=np.float64) for part in found[name])
        found["fields"] = tuple(None if part is None else np.array(part, dtype=np.float64) for part in found["fields"])
        found["log_z"] = tuple(
            np.array([[-np.inf if x is None else x for x in row] for row in part]) for part in found["log_z"]
        )
        for name in ("bases", "sweeps", "own", "base", "size", "log_scales", "sources", "light"):
            found[name] = tuple(found[name])
        return cls(**found)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Estimate(Shown):
    """Hold log Z as one run found it, with its kind, status, bounds and error.

    Attributes
    ----------
    log_z
        The answer, a natural logarithm; minus infinity if no state satisfies the constraints, or none was found.
    kind
        What the answer is: exact (up to rounding), a proven bound, or an estimate.
    status
        How the run ended, as a sentence; ``status.converged`` says whether it did all that it set out to do.
    lower, upper
        Proven bounds on log Z, rounding included, or None. Never heuristics.
    std_error
        The scale of the remaining error, statistical or not, or None. For sampling it is the standard error, for ``ep``
        what its corrections leave out, for ``auto`` a range that covers the disagreement of its methods.
    interval
        An interval that contains log Z with a stated probability, as (low, high, level). It assumes nothing but the
        quality of the random numbers. ``high`` is None if only the lower end is known. None unless the option ``level``
        asks for it.
    trusted
        Whether the method's own checks hold and nothing contradicts it. This is so for exact answers, for proven
        bounds, as bounds, and for the middle of a proven interval (``quadrature``, ``low_rank``). For ``auto``, ``ep``,
        ``mps``, ``annealing`` and ``states`` it is their own verdict; if it is False, ``status`` has not converged. It
        is False for a plain estimate, such as that of ``bp``, which has no check of its own.
    checked_by
        Names of the methods of another kind that agreed with a trusted answer; empty if there was none, and for an
        exact answer, which needs none. Only ``auto`` runs several methods.
    interrupted
        Whether an interrupt ended the run; the answer is the best so far.
    tried
        If several methods were tried, all of them with the answer of each; otherwise empty.
    iterations
        How many iterations the method made, or None if it has none.
    seconds
        Wall-clock time of the run.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    method
        The method that ran, with its options.
    details
        Diagnostics of the method that nothing else depends on: treewidth, rank, effective sample size and the like.
    populations
        What the populations of ``auto`` or ``annealing`` said, some kilobytes, to which ``log_z(model, more=answer)``
        adds; None if there are none.
    history
        How the answer came about: after some seconds log Z, its error, families, and the proven bounds.

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
    interval: Interval | None = None
    iterations: int | None = None
    seconds: float
    method: AnyMethod
    trusted: bool = None  # type: ignore[assignment]  # by its kind, if the method has no verdict of its own
    checked_by: tuple[str, ...] = ()
    interrupted: bool = False
    compile_seconds: float = 0.0
    tried: tuple[Trial, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    populations: Populations | None = None
    history: tuple[Moment, ...] = ()

    def __post_init__(self) -> None:
        if self.trusted is None:
            object.__setattr__(self, "trusted", self.kind.is_proven)
        for name in ("log_z", "lower", "upper", "std_error"):
            value = getattr(self, name)
            is_log_of_zero = value == -math.inf and name != "std_error"
            if value is not None and not (math.isfinite(value) or is_log_of_zero):
                raise SolverError(f"{self.method.name} gave {name} = {value}; please report this model as a bug")
        if self.interval is not None:
            self.interval.check(self.method.name)

    @property
    def disagreeing(self) -> tuple[Trial, ...]:
        """The methods that were tried and trust their own answer, but disagree with this one."""
        return tuple(trial for trial in self.tried if trial.verdict is Verdict.DISAGREES)

    def check(self) -> Estimate:
        """Return the estimate itself, or raise NotConvergedError if the run did not converge."""
        if not self.status.converged:
            raise NotConvergedError(f"{self.method.name}: {self.status}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return {
            **entries(self, "log_z kind lower upper std_error interval status"),
            "converged": self.status.converged,
            **entries(self, "trusted checked_by interrupted iterations seconds compile_seconds"),
            "method": self.method.name,
            "options": plain(vars(self.method)),
            **entries(self, "tried details populations"),
            "history": [moment._asdict() for moment in self.history],
        }

    def __float__(self) -> float:
        return self.log_z

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the answer, its bracket and what was tried with :func:`spectralz.plots.estimate`; return the Axes."""
        from spectralz.show import plots

        return plots.estimate(self, ax)

    def plot_history(self, ax: Axes | None = None) -> Axes:
        """Draw how the answer came about over time with :func:`spectralz.plots.history`; return the Axes."""
        from spectralz.show import plots

        return plots.history(self, ax)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Count(Shown):
    """Hold the number of states that satisfy all constraints of a model, or their weighted sum.

    Attributes
    ----------
    value
        The number, a Python int; with weights an int or a Fraction. None if there is only an estimate.
    estimate
        Its log, as an :class:`Estimate`: exact from the number, otherwise log Z of the constraints alone.
    method
        What counted: ``"elimination"``, ``"ganak"``, or the method of the estimate.
    status
        How it was found; if there is no value, why.
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    interrupted
        Whether an interrupt ended the work; the estimate is the best so far.

    Examples
    --------
    >>> import spectralz as sz
    >>> coins = sz.Ising([0.0] * 100).with_constraints(sz.constraints.clause({0: +1, 1: +1}))
    >>> print(sz.count(coins))
    count = 950737950171172051122527404032
    log = 69.0270359835 (exact)
    eliminated 2 spins modulo 1 number, widest table 2^1 entries
    elimination, ... s
    """

    value: int | Fraction | None
    estimate: Estimate
    method: str
    status: Status
    seconds: float
    compile_seconds: float = 0.0
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values; ``value`` is text, since numbers in JSON lose digits."""
        return {
            "value": None if self.value is None else in_full(self.value),
            **entries(self, "estimate method status interrupted seconds compile_seconds"),
        }


def in_full(value: int | Fraction) -> str:
    """Return all digits of a number; Python's own conversion ends at 4,300.

    Examples
    --------
    >>> in_full(Fraction(1, 3)), len(in_full(10**5000))
    ('1/3', 5001)
    """
    number = Fraction(value)
    top, bottom = str(Decimal(number.numerator)), str(Decimal(number.denominator))
    return top if number.denominator == 1 else f"{top}/{bottom}"

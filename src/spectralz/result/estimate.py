"""log Z as one run found it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spectralz.errors import NotConvergedError, SolverError
from spectralz.result.kinds import AnyMethod, Kind, Shown, Status, Trial, Verdict, entries, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from spectralz._support.progress import Moment
    from spectralz.result.interval import Interval
    from spectralz.result.populations import Populations


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

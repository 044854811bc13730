"""Curves over temperature, single numbers with errors, and the temperature of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import OptionError, SolverError, shown
from spectralz.result.kinds import Compared, Interval, Kind, Record, Shown, entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray
    from scipy.interpolate import CubicHermiteSpline

    from spectralz.result.kinds import Status


@dataclass(frozen=True, eq=False)
class Quantity(Record):
    """Hold a number with its error.

    Attributes
    ----------
    value
        The number; ``float(quantity)`` is the same.
    std_error
        Its standard error; for exact numbers, a bound on the rounding error.
    kind
        Whether it is exact or an estimate.
    trusted
        Whether value and error can be trusted.
    status
        How it was found.

    Examples
    --------
    >>> import spectralz as sz
    >>> energy = sz.energy(sz.Ising(field=[1.0]))
    >>> round(float(energy), 6), energy.kind
    (-0.761594, <Kind.EXACT: 'exact'>)
    """

    value: float
    std_error: float
    kind: Kind
    trusted: bool
    status: Status

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        words = "exact" if self.kind is Kind.EXACT else f"± {self.std_error:.2g}"
        return f"Quantity({self.value:.9g}, {words}{'' if self.trusted else ', not to be trusted'})"


QUANTITIES = ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "abs_magnetization", "overlap")
# What physicists plot to find transitions; the names of the columns of the first and third in tables.
MOMENTS = ("magnetization_moments", "binder", "overlap_moments", "overlap_binder")
COLUMNS = {
    "magnetization_moments": ("m1", "abs_m", "m2", "m4"),
    "overlap_moments": ("q2", "q4"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Thermodynamics(Compared):
    """Hold the curves of a model over its temperature: K numbers and K standard errors of each quantity.

    At the inverse temperature beta, P(x) is proportional to exp(beta w(x)), where w is the log-weight of the model. The
    energy of a state is -w(x), as in physics.

    Attributes
    ----------
    beta
        The inverse temperatures, in the order in which they were asked for.
    log_z, log_z_error
        log of the sum over all states of exp(beta w(x)).
    energy, energy_error
        The mean of -w(x); the derivative of -log Z.
    entropy, entropy_error
        log Z + beta * energy, in nats.
    heat_capacity, heat_capacity_error
        beta^2 times the variance of the energy.
    magnetization, magnetization_error
        The mean of the spins' mean, between -1 and 1.
    abs_magnetization, abs_magnetization_error
        The mean of its absolute value, which is not zero without a field; None from eliminations and contractions, as
        are the moments below.
    overlap, overlap_error
        The mean overlap of two independent states per spin: sum_i E[x_i]^2 / n. None for sampled models with very many
        spins.
    magnetization_moments, magnetization_moments_error
        The means of m, abs(m), m^2 and m^4, where m is the mean of the spins of a state, -1 or 1 each: (K, 4).
    binder, binder_error
        Binder's cumulant, 1 - <m^4> / (3 <m^2>^2): 0 if m is normal, 2/3 if it has one size.
    overlap_moments, overlap_moments_error
        The means of q^2 and q^4, where q is the overlap per spin of two independent states: (K, 2).
    overlap_binder, overlap_binder_error
        1 - <q^4> / (3 <q^2>^2).
    kind
        Whether these numbers are exact, up to rounding, or an estimate.
    trusted
        Whether the errors can be trusted at each temperature, K times True or False.
    status
        How they were found.
    method
        The name of the method: ``exact``, ``quadrature``, ``mps`` or ``annealing``; several are joined
        by "and".
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    n
        The number of spins.
    interrupted
        Whether an interrupt (Ctrl-C) ended it; temperatures without an answer by then are left out.
    between
        What computes the curves at other temperatures, for :meth:`at`.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> curves = sz.thermodynamics(sz.generators.grid(side=4, strength=1.0, seed=0), [0.5, 1.0, 2.0])
    >>> print(curves)
    16 spins at 3 temperatures (exact), by exact in ... s
      beta      log Z      energy   entropy  heat capacity  magnetization  size of the magnetization
       0.5  ...
    >>> bool(np.all(np.diff(curves.entropy) < 0))
    True
    """

    beta: NDArray[np.float64]
    log_z: NDArray[np.float64]
    log_z_error: NDArray[np.float64]
    energy: NDArray[np.float64]
    energy_error: NDArray[np.float64]
    entropy: NDArray[np.float64]
    entropy_error: NDArray[np.float64]
    heat_capacity: NDArray[np.float64]
    heat_capacity_error: NDArray[np.float64]
    magnetization: NDArray[np.float64]
    magnetization_error: NDArray[np.float64]
    abs_magnetization: NDArray[np.float64] | None = None
    abs_magnetization_error: NDArray[np.float64] | None = None
    overlap: NDArray[np.float64] | None = None
    overlap_error: NDArray[np.float64] | None = None
    magnetization_moments: NDArray[np.float64] | None = None
    magnetization_moments_error: NDArray[np.float64] | None = None
    binder: NDArray[np.float64] | None = None
    binder_error: NDArray[np.float64] | None = None
    overlap_moments: NDArray[np.float64] | None = None
    overlap_moments_error: NDArray[np.float64] | None = None
    overlap_binder: NDArray[np.float64] | None = None
    overlap_binder_error: NDArray[np.float64] | None = None
    kind: Kind
    trusted: NDArray[np.bool_]
    status: Status
    method: str
    seconds: float
    n: int
    interrupted: bool = False
    compile_seconds: float = 0.0
    between: Callable[[NDArray[np.float64]], Thermodynamics] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in (*self.names, *self.moments):
            for key in (name, f"{name}_error"):
                if not np.all(np.isfinite(getattr(self, key))):
                    raise SolverError(f"{self.method} gave a {key} that is not finite; please report this model")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities present."""
        return tuple(name for name in QUANTITIES if getattr(self, name) is not None)

    @property
    def moments(self) -> tuple[str, ...]:
        """The names of the moments present."""
        return tuple(name for name in MOMENTS if getattr(self, name) is not None)

    def at(self, beta: ArrayLike) -> Thermodynamics:
        """Return the curves at other inverse temperatures, between the lowest and the highest of these.

        Curves by annealing are read off the states that were kept at all temperatures. Where temperatures are so far
        apart that these states say little, the numbers are not trusted. Other curves are computed again, by the same
        method with the same budget.

        Parameters
        ----------
        beta
            One inverse temperature or several.

        Raises
        ------
        OptionError
            If one is not between those of the curves.

        Examples
        --------
        >>> import spectralz as sz
        >>> curves = sz.thermodynamics(sz.generators.grid(side=4, strength=1.0, seed=0), [0.5, 1.0, 2.0])
        >>> print(curves.at(0.7))
        16 spins at 1 temperature (exact), by exact in ... s
          beta      log Z      energy   entropy  heat capacity  magnetization  size of the magnetization
           0.7  18.485783  ...
        """
        try:
            betas = np.array(beta, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise OptionError(f"beta is {shown(beta)}; give one inverse temperature or several") from None
        if not len(betas):
            raise OptionError("beta is empty; give one inverse temperature or several")
        low, high = self.beta.min(), self.beta.max()
        outside = ~((betas >= low) & (betas <= high))
        if outside.any():
            raise OptionError(
                f"beta is {betas[outside][0]:g}; these curves go from {low:g} to {high:g}: "
                "ask thermodynamics for temperatures beyond them"
            )
        if self.between is None:
            raise OptionError("nothing is kept of what is between these temperatures; ask thermodynamics for them")
        return self.between(betas)

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each temperature and a column for each number and each error.

        The moments of the magnetization have the columns ``m1``, ``abs_m``, ``m2`` and ``m4``, those of the overlap
        ``q2`` and ``q4``.
        """
        pandas = from_extra("pandas", "pandas", "a table of curves")
        columns: dict[str, NDArray[Any]] = {"beta": self.beta}
        for name in (*self.names, *self.moments):
            for suffix in ("", "_error"):
                value = getattr(self, name + suffix)
                parts = COLUMNS.get(name, (name,))
                columns |= {part + suffix: value.reshape(len(value), -1)[:, k] for k, part in enumerate(parts)}
        return pandas.DataFrame(columns | {"trusted": self.trusted})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        curves = " ".join(f"{name} {name}_error" for name in (*self.names, *self.moments))
        return entries(self, f"n method kind status seconds compile_seconds interrupted beta trusted {curves}")

    def __repr__(self) -> str:
        first, last = (f"{beta:g}" for beta in (self.beta.min(), self.beta.max()))
        return f"Thermodynamics(n={self.n}, {len(self.beta)} temperatures, beta {first} to {last}, {self.kind})"

    def __str__(self) -> str:
        from spectralz.show import thermodynamics

        return thermodynamics.as_text(self)

    def plot(self, axes: Any = None) -> NDArray[Any]:
        """Draw free energy, energy, entropy and heat capacity per spin over the temperature; return the four Axes."""
        from spectralz.show import thermodynamics

        return thermodynamics.plot(self, axes)

    def plot_of(self, name: str, ax: Axes | None = None) -> Axes:
        """Draw one quantity over beta, with its errors; return the Axes."""
        from spectralz.show import thermodynamics

        return thermodynamics.plot_of(self, name, ax)


def energy_curve(
    beta: NDArray[np.float64], energy: NDArray[np.float64], slope: NDArray[np.float64]
) -> CubicHermiteSpline:
    """Return mean energies as a function of beta, by values and slopes at some temperatures."""
    from scipy.interpolate import CubicHermiteSpline

    return CubicHermiteSpline(beta, energy, slope)


@dataclass(frozen=True, kw_only=True, eq=False)
class EnergyTest(Record):
    """Hold the energies of samples beside those of the model at their temperature.

    Attributes
    ----------
    energy_observed, energy_predicted
        The mean energy of the samples, and of the model at beta; by the likelihood they are the same.
    variance_observed, variance_predicted
        The variance of the energy. If it differs, the samples are not those of the model at any temperature.
    p_value
        The probability of such a difference by chance, two-sided; None if there is no prediction.
    """

    energy_observed: float
    energy_predicted: float | None
    variance_observed: float
    variance_predicted: float | None
    p_value: float | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Temperature(Shown, Record):
    """Hold the inverse temperature at which samples look drawn from a model.

    Attributes
    ----------
    beta
        The inverse temperature: samples of the model itself have 1; infinite if all samples are ground states.
    std_error
        Its standard error, if the samples are independent; None if beta is infinite.
    samples
        How many samples.
    method
        What gave the mean energy, ``"pseudo"`` for the pseudo-likelihood, or ``"ground states"``.
    trusted
        Whether beta and its error can be trusted.
    status
        How it was found, and what is unusual.
    energy_observed, energy_predicted, variance_observed, variance_predicted, variance_error
        Mean and variance of the energy of the samples, and of the model at beta; None where they are not known.
    curve
        The temperatures tried, and the mean energies there; for infinite beta, minus the log-probability of the ground
        states instead. None for the pseudo-likelihood.
    curve_slope
        The slopes of the mean energies of ``curve``, which are minus variances; None where beta is infinite.
    interrupted, seconds
        Whether an interrupt ended the search, and how long it took.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.

    Examples
    --------
    >>> import spectralz as sz
    >>> coins = sz.Ising(field=[1.0] * 4)
    >>> found = sz.temperature(coins, [[1, 1, 1, -1], [1, -1, 1, 1], [1, 1, -1, 1]])
    >>> print(f"{found.beta:.4f} ± {found.std_error:.4f}")  # artanh of the mean, 1/2
    0.5493 ± 0.3333
    """

    beta: float
    std_error: float | None
    samples: float
    method: str
    trusted: bool
    status: Status
    energy_observed: float
    variance_observed: float
    energy_predicted: float | None = None
    variance_predicted: float | None = None
    variance_error: float | None = None
    curve: NDArray[np.float64] | None = None
    curve_slope: NDArray[np.float64] | None = None
    interrupted: bool = False
    seconds: float = 0.0
    compile_seconds: float = 0.0

    def confidence(self, level: float = 0.95) -> Interval:
        """Return an interval that contains beta with about this probability.

        It has the temperatures at which a test by the ratio of likelihoods would not reject; those of the
        pseudo-likelihood are within some standard errors. If all samples are ground states, it is infinite on one side,
        and on the other ends at the beta for which this would happen by chance. An end may also be infinite if the
        curve does not reach far enough.
        """
        from scipy.special import ndtri

        if not 0.0 < level < 1.0:
            raise OptionError(f"level is {level}; it must be a probability between 0 and 1, such as 0.95")
        if self.std_error is None:
            end = self._end(-math.log1p(-level) / self.samples)
            return Interval(end, None, level) if self.beta > 0.0 else Interval(-math.inf, end, level)
        errors = float(ndtri((1.0 + level) / 2.0))
        if self.curve_slope is None:
            return Interval(self.beta - errors * self.std_error, self.beta + errors * self.std_error, level)
        low, high = (self._far(sign, errors) for sign in (-1.0, 1.0))
        return Interval(low, high if math.isfinite(high) else None, level)

    def _far(self, sign: float, errors: float) -> float:
        """Return where the root of twice the log of the likelihoods' ratio is so many errors, on one side of beta."""
        from scipy.optimize import brentq

        assert self.curve is not None
        assert self.curve_slope is not None
        betas, energies = self.curve
        fall = energy_curve(betas, energies, self.curve_slope).antiderivative()
        variance = -float(np.interp(self.beta, betas, self.curve_slope))
        noise = self.samples * (self.std_error or 0.0) ** 2 * variance  # of 1, if there is no other noise

        def excess(beta: float) -> float:
            ratio = self.energy_observed * (beta - self.beta) - float(fall(beta) - fall(self.beta))
            return 2.0 * self.samples * ratio - errors**2 * noise

        end = float(betas[-1] if sign > 0.0 else betas[0])
        if excess(end) >= 0.0:
            return float(brentq(excess, self.beta, end))
        # Beyond its end the curve goes on at least as far from the samples as there.
        slope = 2.0 * self.samples * sign * (self.energy_observed - float(energies[-1 if sign > 0.0 else 0]))
        return end - sign * excess(end) / slope if slope > 0.0 else sign * math.inf

    def _end(self, excess: float) -> float:
        """Return the beta at which minus the log-probability of the ground states is ``excess``."""
        if self.curve is None:
            return -math.inf if self.beta > 0.0 else math.inf
        size, value = np.abs(self.curve[0]), self.curve[1]
        return math.copysign(float(np.interp(-excess, -value, size, left=0.0)), self.beta)

    def goodness(self) -> EnergyTest:
        """Return predicted and observed energies, and a test whether their variances agree."""
        from scipy.special import ndtr

        p_value = None
        if self.variance_predicted is not None and self.variance_error:
            z = (self.variance_observed - self.variance_predicted) / self.variance_error
            p_value = float(2.0 * ndtr(-abs(z)))
        return EnergyTest(
            energy_observed=self.energy_observed,
            energy_predicted=self.energy_predicted,
            variance_observed=self.variance_observed,
            variance_predicted=self.variance_predicted,
            p_value=p_value,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean energy of the model over beta, that of the samples, and where they meet; return the Axes."""
        from spectralz.show import thermodynamics

        return thermodynamics.draw_temperature(self, ax)

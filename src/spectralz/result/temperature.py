"""The temperature of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import OptionError
from spectralz.result.interval import Interval
from spectralz.result.kinds import Record, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from scipy.interpolate import CubicHermiteSpline

    from spectralz.result.kinds import Status


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

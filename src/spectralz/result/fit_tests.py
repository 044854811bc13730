"""Tests of a fit: of each parameter, of one model against another, and of the fit itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.result.kinds import Record

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Wald(Record):
    """Hold each estimated parameter with its standard error and a test of whether it is zero.

    Attributes
    ----------
    parameters
        ``(name,)`` for a field, ``(name, name)`` for a coupling; numbers of columns if they have no names.
    estimate, std_error
        The parameter (theta or J) and its standard error.
    z, p_value
        Their ratio, and the probability of a ratio at least this large by chance if the parameter is zero (two-sided).
    """

    parameters: tuple[tuple[Hashable, ...], ...]
    estimate: NDArray[np.float64]
    std_error: NDArray[np.float64]
    z: NDArray[np.float64]
    p_value: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        parameters: tuple[tuple[Hashable, ...], ...],
        estimate: NDArray[np.float64],
        std_error: NDArray[np.float64],
    ) -> Wald:
        """Return the tests of some estimates."""
        from scipy.special import ndtr

        z = np.divide(estimate, std_error, out=np.full(len(estimate), np.nan), where=std_error > 0.0)
        return cls(parameters=parameters, estimate=estimate, std_error=std_error, z=z, p_value=2.0 * ndtr(-np.abs(z)))

    def part(self, index: NDArray[np.int64]) -> Wald:
        """Return the tests of some of the parameters."""
        chosen = tuple(self.parameters[k] for k in index.tolist())
        return Wald.of(chosen, self.estimate[index], self.std_error[index])

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per parameter: names, estimate, standard error, z and p."""
        from spectralz.show import tables

        return tables.wald_frame(self)

    def __str__(self) -> str:
        from spectralz.show import fits, text

        return text.aligned(fits.wald_table(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictability(Record):
    """Hold the share of each variable's variance that the others explain, under the fitted model.

    Attributes
    ----------
    names
        The variables, by names or by numbers.
    share
        ``Var(E[x_i | others]) / Var(x_i)``, from 0 to 1; ``numpy.asarray(result)`` is the same.
    std_error
        Standard errors from drawing states; None if all states were summed over. They do not include that the data
        are a sample.
    """

    names: tuple[Hashable, ...]
    share: NDArray[np.float64]
    std_error: NDArray[np.float64] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.share, dtype=dtype)

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per variable: name, share and standard error."""
        from spectralz.show import tables

        return tables.predictability_frame(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares as bars, the largest at the top; return the Axes."""
        from spectralz.show import fits

        return fits.draw_predictability(self, ax)

    def __str__(self) -> str:
        from spectralz.show import fits, text

        return text.aligned(fits.predictability_table(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class LikelihoodRatio(Record):
    """Hold the test of whether a larger model is better than a nested one by more than chance explains.

    Attributes
    ----------
    statistic
        Twice the difference of the log-likelihoods of all rows.
    df
        How many more parameters the larger model has.
    p_value
        The probability of at least this difference by chance, if the smaller model is true (chi-squared).
    std_error
        Standard error of the statistic if a log-likelihood was sampled; otherwise None.
    """

    statistic: float
    df: int
    p_value: float
    std_error: float | None = None

    def __str__(self) -> str:
        error = "" if self.std_error is None else f" +- {self.std_error:.2g}"
        return f"likelihood ratio: 2 x difference = {self.statistic:.4g}{error}, df = {self.df}, p = {self.p_value:.3g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Goodness(Record):
    """Hold the model's predictions beside the data. All moments are those of -1 and +1.

    If values are missing, moments are those of the rows that have them, and numbers of +1 count known values only; the
    predictions are for states with the same values missing.

    Attributes
    ----------
    mean_observed, mean_predicted
        E[x_i].
    pairs, pair_observed, pair_predicted
        Pairs of variables, coupled or not, and their E[x_i x_j].
    triples, third_observed, third_predicted
        Triples of variables, all or some drawn at random, and their E[x_i x_j x_k]; the fit does not match these by
        construction.
    active_observed, active_predicted
        The probabilities that 0, 1, ..., n variables are +1.
    third_z
        The root mean square of (observed - predicted) third moments over their standard errors; about 1 if the model
        is right, or a little less, since the model was fitted to the same data.
    statistic, df, p_value
        The likelihood ratio against the saturated model, which has one parameter per state (G^2); None if there are
        too few rows for its distribution to be known. ``why`` then says so.
    why
        Why there is no such test, or an empty text.
    is_exact
        Whether predictions are exact; otherwise they are means over states drawn from the model.
    """

    mean_observed: NDArray[np.float64]
    mean_predicted: NDArray[np.float64]
    pairs: NDArray[np.int64]
    pair_observed: NDArray[np.float64]
    pair_predicted: NDArray[np.float64]
    triples: NDArray[np.int64]
    third_observed: NDArray[np.float64]
    third_predicted: NDArray[np.float64]
    active_observed: NDArray[np.float64]
    active_predicted: NDArray[np.float64]
    third_z: float | None
    statistic: float | None
    df: int | None
    p_value: float | None
    why: str = ""
    is_exact: bool = True

    def __str__(self) -> str:
        from spectralz.show import fits, text

        return text.aligned(fits.goodness_table(self))

"""Tests of a fit and of its parameters, estimates from data drawn again, and the likelihood of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError
from spectralz.result.kinds import Compared, Record, Status, entries

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.result.estimate import Estimate


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap(Record):
    """Hold the estimates of fits to rows drawn again, with replacement, from the rows of the data.

    Attributes
    ----------
    parameters
        ``(name,)`` for a field, ``(name, name)`` for a coupling, in the order of ``fit.to_pandas()``.
    estimate
        The estimates from the data themselves.
    estimates
        One row per repetition, one column per parameter.
    unbounded
        In how many repetitions a parameter would have been infinite; it then has the largest value of the search.
    interrupted
        Whether an interrupt ended it, so that there are fewer repetitions than asked for.
    """

    parameters: tuple[tuple[Hashable, ...], ...]
    estimate: NDArray[np.float64]
    estimates: NDArray[np.float64]
    unbounded: int = 0
    interrupted: bool = False

    @property
    def std_error(self) -> NDArray[np.float64]:
        """The standard deviation of each parameter over the repetitions."""
        return np.asarray(self.estimates.std(axis=0, ddof=1))

    def intervals(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the range that holds a share ``level`` of the repetitions of each parameter: low and high.

        Examples
        --------
        >>> import spectralz as sz
        >>> fit = sz.fit(sz.sample(sz.generators.chain(n=3, strength=0.5), 500, seed=0))
        >>> found = fit.bootstrap(count=50)
        >>> low, high = found.intervals()[3]  # the first coupling
        >>> bool(low < 0.5 < high)
        True
        """
        if not 0.0 < level < 1.0:
            raise OptionError(f"level is {level}; it must be a probability between 0 and 1, such as 0.95")
        tail = (1.0 - level) / 2.0
        return np.quantile(self.estimates, [tail, 1.0 - tail], axis=0).T

    def to_pandas(self, level: float = 0.95) -> Any:
        """Return a DataFrame with one row per parameter: names, estimate, standard error and interval."""
        from spectralz.show import tables

        return tables.bootstrap_frame(self, level)

    def plot(self, ax: Axes | None = None, level: float = 0.95) -> Axes:
        """Draw the couplings in the order of their size, with their intervals; return the Axes."""
        from spectralz.show import fits

        return fits.draw_bootstrap(self, ax, level)

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.estimates)} repetitions, {len(self.parameters)} parameters)"


@dataclass(frozen=True, kw_only=True, eq=False)
class DataLikelihood(Compared):
    """Hold the mean log-likelihood per row of data, with the error from log Z.

    Attributes
    ----------
    log_likelihood
        The mean of ``log_prob``.
    std_error
        The error of log Z, common to all rows, or None if it is exact. It does not include that the rows are a sample.
    sampling_error
        The standard error of the mean because the rows are a sample, or None if there is one row.
    lower, upper
        Proven bounds on ``log_likelihood`` if log Z has proven bounds, or None.
    log_prob
        log P of every row, hidden units summed out.
    estimate
        log Z as it was found.
    reverse, reverse_error
        The same mean from annealing backwards from some of the rows (``reverse_rows`` of them), corrected for the
        choice of rows, and its standard error; None if not asked for. Annealing forwards finds too little of Z,
        so that the likelihood is too high; backwards it is too low. If the two agree, both are right. A value beyond
        the proven bounds is replaced by the bound.
    status
        How the two compare, as a sentence; ``status.converged`` says whether they agree.
    """

    log_likelihood: float
    std_error: float | None
    sampling_error: float | None
    lower: float | None
    upper: float | None
    log_prob: NDArray[np.float64]
    estimate: Estimate
    reverse: float | None
    reverse_error: float | None
    reverse_rows: int
    status: Status

    def __float__(self) -> float:
        return self.log_likelihood

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        names = "log_likelihood std_error sampling_error lower upper log_prob reverse reverse_error reverse_rows"
        return {**entries(self, f"{names} estimate status"), "converged": self.status.converged}

    def __repr__(self) -> str:
        return f"DataLikelihood({_number(self.log_likelihood, self.std_error)} per row, {len(self.log_prob)} rows)"

    def __str__(self) -> str:
        lines = [f"log-likelihood  {_number(self.log_likelihood, self.std_error)} per row, {len(self.log_prob)} rows"]
        if self.sampling_error is not None:
            lines.append(f"sampling error  {self.sampling_error:.2g}, since the rows are a sample; ± is that of log Z")
        if self.reverse is not None:
            shown = _number(self.reverse, self.reverse_error)
            lines.append(f"backwards       {shown} per row, from {self.reverse_rows} of them")
        if self.lower is not None and self.upper is not None:
            lines.append(f"proven          between {self.lower:.6g} and {self.upper:.6g}")
        return "\n".join([*lines, f"status          {self.status}"])


def _number(value: float, error: float | None) -> str:
    return f"{value:.6g}" if not error else f"{value:.6g} ± {error:.2g}"

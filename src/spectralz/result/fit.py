"""A model fitted to data, and how far its numbers can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import NotConvergedError, OptionError
from spectralz.result.fit_tests import Goodness, LikelihoodRatio, Predictability, Wald
from spectralz.result.kinds import Shown, Status, entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from spectralz.result.fit_tests import Bootstrap


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Fit(Shown):
    """Hold a model fitted to data, with standard errors and the likelihood.

    Attributes
    ----------
    model
        The fitted :class:`spectralz.Ising`. Its spins are -1 and +1; if the data were 0 and 1, +1 stands for 1.
    edges
        The pairs that are coupled (m x 2), as in ``model.edges()[0]``.
    field_error, coupling_error
        Standard errors of ``model.field`` and of the weights J of ``model.edges()[1]``, from the Fisher information
        (for ``pseudo``, from the sandwich formula); 0 for values that were given. None with an l1 penalty, or if the
        fit did not converge.
    log_likelihood
        The mean log-likelihood **per row** of the model found, without the penalty; None if left out.
    std_error
        Its error from sampling log Z; None if log Z is exact. It does not include that the data are a sample.
    log_z
        log Z of ``model``, which the log-likelihood needs; None if left out.
    rows
        Number of rows, or the sum of their weights.
    parameters
        How many were estimated; with an l2 penalty their effective number, with l1 those that are not zero.
    method, penalty, strength
        ``"exact"``, ``"pseudo"`` or ``"sampled"``; ``None``, ``"l1"`` or ``"l2"``; and the strength of the penalty.
    status
        How the fit ended, as a sentence; ``status.converged`` says whether it reached what its method promises.
    values
        The values in the data: ``"pm1"`` or ``"01"``.
    iterations, seconds, interrupted
        Iterations and wall-clock time of the fit, and whether an interrupt ended it.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    details
        Diagnostics that nothing else depends on.
    covariance
        The covariance of the estimates, fields before couplings; None where there are no errors.

    Examples
    --------
    >>> import spectralz as sz
    >>> truth = sz.generators.grid(side=2, strength=0.5, seed=0)
    >>> fit = sz.fit(sz.sample(truth, 2000, seed=1), graph=truth)
    >>> fit
    Fit(n=4, edges=4, 2000 rows, log-likelihood -1.23... per row, by exact)
    >>> bool((abs(fit.model.field - truth.field) < 4 * fit.field_error).all())
    True
    """

    model: Any
    edges: NDArray[np.int64]
    field_error: NDArray[np.float64] | None
    coupling_error: NDArray[np.float64] | None
    log_likelihood: float | None
    std_error: float | None
    log_z: float | None
    rows: float
    parameters: float
    method: str
    penalty: str | None
    strength: float | None
    status: Status
    values: Literal["pm1", "01"]
    iterations: int
    seconds: float
    interrupted: bool = False
    compile_seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    table: Any = None
    covariance: NDArray[np.float64] | None = None
    recipe: Any = None

    def __hash__(self) -> int:
        return hash(self.model)

    @property
    def aic(self) -> float | None:
        """Akaike's criterion of all rows, ``-2 rows log_likelihood + 2 parameters``; smaller is better.

        None if the likelihood is not known or not the largest one, as with ``pseudo`` or a fit that did not converge.
        """
        return self._criterion(2.0)

    @property
    def bic(self) -> float | None:
        """The Bayesian criterion of all rows, ``-2 rows log_likelihood + parameters log(rows)``; smaller is better."""
        return self._criterion(math.log(self.rows))

    def _criterion(self, price: float) -> float | None:
        if self.log_likelihood is None or self.method == "pseudo" or not self.status.converged:
            return None
        return -2.0 * self.rows * self.log_likelihood + price * self.parameters

    def wald(self) -> Wald:
        """Return each estimated parameter with its standard error, z and p-value; printed, it is a table."""
        if self.field_error is None or self.coupling_error is None:
            raise OptionError(f"this fit has no standard errors: {self.details.get('no_errors', self.status)}")
        every = self.parameters_in("pm1")
        return every.part(np.flatnonzero(every.std_error > 0.0))

    def parameters_in(self, values: Literal["pm1", "01"]) -> Wald:
        """Return all parameters with errors and tests for variables of -1 and +1, or of 0 and 1.

        For v = 0 and 1 the log-weight is ``sum_i b_i v_i + sum_ij W_ij v_i v_j`` with ``W = 4 J`` and
        ``b_i = 2 theta_i - 2 sum_j J_ij``. Errors are NaN where there are none, z and p also for given parameters.

        Examples
        --------
        >>> import spectralz as sz
        >>> fit = sz.fit(sz.sample(sz.generators.chain(n=3, strength=0.5), 500, seed=0))
        >>> fit.parameters_in("01").estimate[3:] / fit.parameters_in("pm1").estimate[3:]
        array([4., 4., 4.])
        """
        if values not in ("pm1", "01"):
            raise OptionError(f'values is {values!r}; parameters are those of "pm1" (-1 and +1) or "01" (0 and 1)')
        names = range(self.model.n) if self.model.names is None else self.model.names
        where = [(names[i],) for i in range(self.model.n)] + [(names[i], names[j]) for i, j in self.edges.tolist()]
        theta, J = self.model.field, self.model.edges()[1]
        error = np.full(len(where), np.nan)
        if self.covariance is not None:
            error = np.sqrt(np.diag(self.covariance))
        if values == "01":
            sums = self._sums_of_binary()
            theta, J = np.split(sums @ np.concatenate([theta, J]), [self.model.n])
            if self.covariance is not None:
                variance = sums.multiply(sums @ self.covariance).sum(axis=1)
                error = np.sqrt(np.maximum(np.asarray(variance).ravel(), 0.0))
        return Wald.of(tuple(where), np.concatenate([theta, J]), error)

    def _sums_of_binary(self) -> Any:
        """Return a sparse matrix: each parameter for 0 and 1, a row, as a sum of those for -1 and +1."""
        from scipy.sparse import csr_array

        n, m = self.model.n, len(self.edges)
        rows = np.concatenate([np.arange(n + m), self.edges[:, 0], self.edges[:, 1]])
        columns = np.concatenate([np.arange(n + m), n + np.arange(m), n + np.arange(m)])
        values = np.repeat([2.0, 4.0, -2.0], [n, m, 2 * m])
        return csr_array((values, (rows, columns)), shape=(n + m, n + m))

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per parameter: names, estimate, standard error, z and p."""
        return self.parameters_in("pm1").to_pandas()

    def predictability(self, seed: int = 0) -> Predictability:
        """Return for each variable the share of its variance that the others explain, under the fitted model.

        This is ``Var(E[x_i | others]) / Var(x_i)``: 0 if the others say nothing about it, 1 if they determine it.

        Parameters
        ----------
        seed
            Seed for drawing states, if there are too many to sum over.

        Examples
        --------
        >>> import spectralz as sz
        >>> fit = sz.fit(sz.sample(sz.generators.chain(n=3, strength=0.5), 2000, seed=0))
        >>> found = fit.predictability()
        >>> bool(found.share[1] > found.share[0])  # the one in the middle has two neighbors
        True
        """
        from spectralz.learning.goodness import predictability_of

        return predictability_of(self, seed)

    def bootstrap(self, count: int = 500, seed: int = 0) -> Bootstrap:
        """Fit the model again to rows drawn with replacement, ``count`` times; return the estimates.

        The graph and the strength of a penalty stay as they are, so that how they were chosen adds nothing to the
        spread. Repetitions run in threads. Ctrl-C returns those that are done.
        """
        from spectralz.learning.goodness import bootstrapped

        return bootstrapped(self, count, seed)

    def compare(self, other: Fit) -> LikelihoodRatio:
        """Test whether the larger of two fits to the same data is better than chance explains.

        Both must be maximum-likelihood fits without a penalty, and the edges of one must be among those of the other.

        Examples
        --------
        >>> import spectralz as sz
        >>> X = sz.sample(sz.generators.chain(n=4, strength=0.8), 1000, seed=0)
        >>> print(sz.fit(X).compare(sz.fit(X, graph=[(0, 1), (1, 2), (2, 3)])))
        likelihood ratio: 2 x difference = ..., df = 3, p = ...
        """
        from scipy.special import chdtrc

        if not isinstance(other, Fit):
            raise OptionError(f"a fit is compared with a fit, not with a {type(other).__name__}")
        small, large = sorted((self, other), key=lambda fit: fit.parameters)
        for fit in (small, large):
            if fit.method == "pseudo" or fit.penalty is not None or fit.log_likelihood is None:
                raise OptionError(
                    "a likelihood-ratio test needs maximum-likelihood fits without a penalty; "
                    'fit again with method="exact" or "sampled" and penalty=None'
                )
        if (
            small.rows != large.rows
            or small.model.n != large.model.n
            or not np.array_equal(small.table.mean, large.table.mean)
        ):
            raise OptionError("the two fits are not of the same data; compare fits of the same rows")
        inside = {tuple(pair) for pair in small.edges.tolist()} <= {tuple(pair) for pair in large.edges.tolist()}
        df = round(large.parameters - small.parameters)
        if not inside or df < 1:
            raise OptionError(
                "the smaller model's edges are not all among the larger one's, with more parameters there; "
                "models that are not nested are compared by aic or bic"
            )
        error = math.hypot(small.std_error or 0.0, large.std_error or 0.0)
        statistic = 2.0 * large.rows * (large.log_likelihood - small.log_likelihood)  # type: ignore[operator]
        return LikelihoodRatio(
            statistic=statistic,
            df=df,
            p_value=float(chdtrc(df, max(statistic, 0.0))),
            std_error=2.0 * large.rows * error if error else None,
        )

    def goodness(self, seed: int = 0) -> Goodness:
        """Compare the model's predictions with the data: third moments, numbers of +1, and a test.

        Parameters
        ----------
        seed
            Seed for drawing triples and states, if there are too many to use all.
        """
        from spectralz.learning.goodness import goodness_of

        return goodness_of(self, seed)

    def score(self, X: Any, *, columns: Literal["labels", "position"] = "labels") -> float:
        """Return the mean log-likelihood per row of other data under the fitted model.

        The columns of a DataFrame are found by their labels, or by their ``"position"``.
        """
        from spectralz.learning.goodness import log_probabilities

        return float(log_probabilities(self, X, columns).mean())

    def check(self) -> Fit:
        """Return the fit itself, or raise NotConvergedError if it did not converge."""
        if not self.status.converged:
            raise NotConvergedError(f"fit: {self.status}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the data as plain Python values, ready for ``json.dumps``."""
        before = "model field_error coupling_error log_likelihood std_error log_z rows parameters aic bic"
        return {
            **entries(self, f"{before} method penalty strength status"),
            "converged": self.status.converged,
            **entries(self, "values iterations seconds compile_seconds interrupted details"),
        }

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw predicted against observed means, pairs and triples, and the numbers of +1; return the Figure."""
        from spectralz.show import fits

        return fits.draw(self, figure)

    def plot_network(self, ax: Axes | None = None) -> Axes:
        """Draw the variables as circles and the couplings as lines; return the Axes (extra ``networkx``).

        Red lines are positive couplings, blue ones negative; their width is the size of J. Couplings within two
        standard errors of zero are faint.
        """
        from spectralz.show import maps

        return maps.draw_network(self, ax)

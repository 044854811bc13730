"""A model fitted to data, and how far its numbers can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import NotConvergedError, OptionError
from spectralz.result.fit_tests import Goodness, LikelihoodRatio, Wald
from spectralz.result.kinds import Shown, Status, entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure
    from numpy.typing import NDArray


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
    details
        Diagnostics that nothing else depends on.

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
    details: Mapping[str, Any] = field(default_factory=dict)
    table: Any = None

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
        from scipy.special import ndtr

        if self.field_error is None or self.coupling_error is None:
            raise OptionError(f"this fit has no standard errors: {self.details.get('no_errors', self.status)}")
        names = range(self.model.n) if self.model.names is None else self.model.names
        where = [(names[i],) for i in range(self.model.n)] + [(names[i], names[j]) for i, j in self.edges.tolist()]
        estimate = np.concatenate([self.model.field, self.model.edges()[1]])
        error = np.concatenate([self.field_error, self.coupling_error])
        kept = np.flatnonzero(error > 0.0)
        z = estimate[kept] / error[kept]
        return Wald(
            parameters=tuple(where[k] for k in kept.tolist()),
            estimate=estimate[kept],
            std_error=error[kept],
            z=z,
            p_value=2.0 * ndtr(-np.abs(z)),
        )

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

    def score(self, X: Any) -> float:
        """Return the mean log-likelihood per row of other data under the fitted model."""
        from spectralz.learning.goodness import log_probabilities

        return float(log_probabilities(self, X).mean())

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
            **entries(self, "values iterations seconds interrupted details"),
        }

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw predicted against observed means, pairs and triples, and the numbers of +1; return the Figure."""
        from spectralz.show import fits

        return fits.draw(self, figure)

"""Standard errors of a fit, and its effective number of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray, SpinArray

# The inverse of a larger matrix takes minutes.
MOST_PARAMETERS = 3000
# A regular parameter never has this large an error: a cell of a table that was seen once fixes it to about one.
LARGEST_ERROR = 20.0


@dataclass(frozen=True)
class Precision:
    """Covariance of all parameters (0 for given ones), or None with the reason; and their effective number."""

    covariance: FloatArray | None
    parameters: float
    why: str = ""

    @property
    def error(self) -> FloatArray | None:
        """The standard errors."""
        return None if self.covariance is None else np.sqrt(np.diag(self.covariance))

    @property
    def is_singular(self) -> bool:
        """Whether the data do not determine all parameters."""
        return self.why == SINGULAR


SINGULAR = "the data do not determine all parameters"


def precision_of(
    problem: Problem, hessian: FloatArray, rows: float, scores: FloatArray | None = None, states: int | None = None
) -> Precision:
    """Return standard errors from the Hessian H of the mean negative log-likelihood per row.

    The covariance is ``(H + R)^-1 V (H + R)^-1' / rows``, where R is the penalty's part and V the covariance of the
    rows' scores. For the likelihood V is H itself, and without a penalty H^-1 / rows remains. For the sandwich it is
    that of the pseudo-likelihood.

    Parameters
    ----------
    problem
        The problem.
    hessian
        H, of all parameters.
    rows
        Number of rows.
    scores
        V; H itself by default.
    states
        The number of states from which H was estimated; the inverse of such a matrix is too large by a known factor.
    """
    free = np.flatnonzero(problem.free)
    curvature = hessian[np.ix_(free, free)]
    spread = curvature if scores is None else scores[np.ix_(free, free)]
    ridged = curvature + np.diag(problem.ridge[free])
    covariance = np.zeros((problem.size, problem.size))
    if not len(free):
        return Precision(covariance, 0.0)
    try:
        np.linalg.cholesky((ridged + ridged.T) / 2.0)
        inverse = np.linalg.inv(ridged)
    except np.linalg.LinAlgError:
        return Precision(None, float(len(free)), SINGULAR)
    of_free = inverse @ spread @ inverse.T / rows
    if states is not None:
        of_free *= max(states - len(free) - 2, 1) / states
    parameters = float(len(free)) if problem.penalty.l2 == 0.0 else float(np.sum(inverse * curvature.T))
    # If the likelihood has no maximum, the scores vanish with the curvature, so that a sandwich would hide it.
    flat = problem.penalty.is_none and np.diag(inverse).max() > LARGEST_ERROR**2 * max(rows, 1.0)
    if flat or not np.all(np.isfinite(of_free)) or np.diag(of_free).min() < 0.0:
        return Precision(None, parameters, SINGULAR)
    covariance[np.ix_(free, free)] = of_free
    return Precision(covariance, parameters)


def precision_by_states(problem: Problem, states: SpinArray, rows: float, lost: FloatArray | float = 0.0) -> Precision:
    """Return standard errors from states of the fitted model: H is the covariance of x_i and x_i x_j over them.

    ``lost`` is the information that is lost with missing cells.
    """
    x = states.astype(np.float64)
    features = np.hstack([x, x[:, problem.edges[:, 0]] * x[:, problem.edges[:, 1]]])
    features -= features.mean(axis=0)
    return precision_of(problem, features.T @ features / len(x) - lost, rows, states=len(x))

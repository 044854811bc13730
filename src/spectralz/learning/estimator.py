"""``IsingEstimator``: the fit with the interface of scikit-learn, which need not be installed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spectralz.errors import NotConvergedError, OptionError
from spectralz.inference import predict, sample
from spectralz.learning.fitting import fit
from spectralz.learning.goodness import log_probabilities

if TYPE_CHECKING:
    from spectralz.model import FloatArray, SpinArray


@dataclass(kw_only=True, eq=False, repr=False)
class IsingEstimator:
    """Fit an Ising model with the interface of scikit-learn: ``fit``, ``score``, ``score_samples``, ``sample``.

    Cells may be missing (NaN); ``missing_probability`` predicts them, and scores are those of the known part of rows.
    ``sklearn.base.clone``, ``cross_val_score`` and ``GridSearchCV`` work with it; scikit-learn itself is not needed.

    Parameters
    ----------
    graph, method, penalty, strength, fixed, values, select, tol, max_iter, budget, seed, threads
        As in :func:`spectralz.fit`.

    Attributes
    ----------
    model_
        The fitted :class:`spectralz.Ising`.
    fit_
        The whole :class:`spectralz.Fit`.
    n_features_in_
        Number of variables.

    See Also
    --------
    spectralz.fit : the function, which returns errors and tests too.

    Examples
    --------
    >>> import spectralz as sz
    >>> X = sz.sample(sz.generators.chain(n=5, strength=0.5), 2000, seed=0)
    >>> estimator = sz.IsingEstimator(penalty="l2", strength=0.01).fit(X)
    >>> estimator
    IsingEstimator(penalty='l2', strength=0.01)
    >>> print(f"{estimator.score(X):.1f}")  # the mean log-likelihood per row
    -3.0
    >>> estimator.sample(3).shape
    (3, 5)
    """

    # Stored unchanged and checked by fit, as scikit-learn requires.
    graph: Any = None
    method: str = "auto"
    penalty: str | None = None
    strength: float | str | None = None
    fixed: Any = None
    values: str = "auto"
    select: str = "ebic"
    tol: float = 1e-8
    max_iter: int = 200
    budget: float | None = None
    seed: int = 0
    threads: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows of data; ``y`` is not used, ``sample_weight`` says how often each row was seen."""
        self.fit_ = fit(X, weights=sample_weight, **self.get_params())
        self.model_ = self.fit_.model
        self.n_features_in_ = self.model_.n
        if self.model_.names is not None and all(isinstance(name, str) for name in self.model_.names):
            self.feature_names_in_ = np.array(self.model_.names, dtype=object)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood per row."""
        return float(self.score_samples(X).mean())

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-likelihood of every row, or of its known part."""
        return log_probabilities(self._fitted(), X)

    def missing_probability(self, X: Any) -> FloatArray:
        """Return P(1, or +1) of every missing cell of ``X`` given the rest of its row; 0 or 1 for the other cells."""
        fitted = self._fitted()
        return predict(fitted.model, X, values=fitted.values, seed=self.seed).probability

    def sample(self, n_samples: int = 1, random_state: int | None = None) -> SpinArray:
        """Return states drawn from the model, in the values of the data; ``seed`` is used if no other is given."""
        fitted = self._fitted()
        states = sample(fitted.model, n_samples, seed=self.seed if random_state is None else random_state)
        return states if fitted.values == "pm1" else (states + 1) // 2

    def _fitted(self) -> Any:
        if not hasattr(self, "fit_"):
            raise NotConvergedError("this IsingEstimator is not fitted yet; call its fit(X) first")
        return self.fit_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {parameter.name: getattr(self, parameter.name) for parameter in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise OptionError(f"IsingEstimator has no parameter {name!r}; it has {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = [(parameter, getattr(self, parameter.name)) for parameter in fields(self)]
        changed = [f"{parameter.name}={value!r}" for parameter, value in values if value is not parameter.default]
        return f"IsingEstimator({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="density_estimator",
            target_tags=TargetTags(required=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True),
        )

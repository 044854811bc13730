"""The estimator keeps to scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import NotConvergedError, OptionError


@pytest.fixture(scope="module")
def rows():
    return (sz.sample(sz.generators.complete(n=5, strength=0.3, seed=0), 600, seed=1) + 1) // 2


def test_it_fits_scores_and_samples(rows):
    X = rows
    estimator = sz.IsingEstimator()
    with pytest.raises(NotConvergedError, match="not fitted"):
        estimator.score(X)
    assert estimator.fit(X) is estimator
    assert estimator.score(X) == pytest.approx(estimator.fit_.log_likelihood)
    own = estimator.score_samples(X)
    assert own.shape == (600,)
    every = (np.arange(32)[:, None] >> np.arange(5)) & 1
    assert np.exp(estimator.score_samples(every)).sum() == pytest.approx(1.0)
    assert estimator.score_samples(np.ones((1, 5))) == pytest.approx(estimator.score_samples(every)[-1])
    drawn = estimator.sample(50, random_state=3)
    assert drawn.shape == (50, 5)
    assert set(np.unique(drawn)) == {0, 1}
    assert estimator.n_features_in_ == 5
    assert estimator.model_ is estimator.fit_.model
    weighted = sz.IsingEstimator().fit(X, sample_weight=np.full(600, 2.0))
    assert weighted.fit_.rows == 1200


def test_parameters_are_got_and_set():
    estimator = sz.IsingEstimator(penalty="l2", strength=0.1)
    assert repr(estimator) == "IsingEstimator(penalty='l2', strength=0.1)"
    assert estimator.get_params()["strength"] == 0.1
    assert estimator.set_params(strength=0.2).strength == 0.2
    with pytest.raises(OptionError, match="no parameter 'C'"):
        estimator.set_params(C=1.0)


@pytest.mark.slow
def test_scikit_learn_clones_and_cross_validates_it(rows):
    X = rows
    base, selection = pytest.importorskip("sklearn.base"), pytest.importorskip("sklearn.model_selection")
    estimator = sz.IsingEstimator(penalty="l2", strength=0.05)
    clone = base.clone(estimator.fit(X))
    assert clone is not estimator
    assert clone.get_params() == estimator.get_params()
    assert not hasattr(clone, "fit_")
    scores = selection.cross_val_score(estimator, X, cv=3)
    by_hand = [
        sz.IsingEstimator(penalty="l2", strength=0.05).fit(X[train]).score(X[test])
        for train, test in selection.KFold(3).split(X)
    ]
    assert scores == pytest.approx(by_hand)
    search = selection.GridSearchCV(sz.IsingEstimator(penalty="l2"), {"strength": [0.01, 1.0]}, cv=2).fit(X)
    assert search.best_params_ == {"strength": 0.01}

"""What fits say about unusual weights, fixed parameters, noise, missing values and options."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import InaccurateWarning, ModelError, OptionError, TooLargeError
from spectralz.learning import fitting, selecting
from spectralz.learning.sampled import Walk

X = np.random.default_rng(0).integers(0, 2, (400, 6))
PAIRS_ONLY = [(0, 1), (2, 3)]


def with_opposite(first, second):
    data = X.copy()
    data[:, second] = 1 - data[:, first]
    return data


# --------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("size", [1e-8, 1e-300, 1e300])
def test_only_the_shares_of_weights_decide_what_is_fitted(size):
    fit, plain = sz.fit(X, weights=np.full(400, size)), sz.fit(X)
    assert fit.status.converged
    assert np.allclose(fit.model.field, plain.model.field, atol=1e-9)
    assert np.allclose(fit.model.edges()[1], plain.model.edges()[1], atol=1e-9)
    assert fit.rows == pytest.approx(400 * size)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e300])
def test_a_pair_that_is_opposite_in_all_rows_is_named_with_their_number(size):
    with pytest.raises(ModelError, match=r"column 1 and column 5 are opposite in all 400 rows, so") as caught:
        sz.fit(with_opposite(1, 5), weights=np.full(400, size))
    assert "more such" not in str(caught.value)
    with pytest.raises(ModelError, match=r"column 2 is 1 in all 400 rows, so"):
        sz.fit(np.where(np.arange(6) == 2, 1, X), weights=np.full(400, size))


def test_weights_that_are_counts_are_rows():
    with pytest.raises(ModelError, match="column 0 is 1 in all 30 rows"):
        sz.fit([[1, 0], [1, 1]], weights=[10, 20])


def test_few_rows_of_tiny_weights_are_called_what_they_are():
    status = sz.fit(X, weights=np.full(400, 1e-8)).status
    assert "the weights add up to 4e-06 rows, few for 21 parameters" in status


def test_weights_whose_sum_is_too_large_are_refused():
    with pytest.raises(ModelError, match="weights add up to more than 1e308; scale them down"):
        sz.fit(X, weights=np.full(400, 1e306))


# ----------------------------------------------------------------------------------------------------------- noise


def walk(residual, noise):
    return Walk(np.zeros(1), np.zeros((1, 1), dtype=np.int8), residual, noise, 10, "")


def test_noise_is_never_more_than_the_whole():
    assert walk(0.28, 0.4).sentence == "moments match to 0.28 of their standard errors, within the noise of 0.4"
    assert "0.5 of their standard errors (of which 0.2 is noise)" in walk(0.5, 0.2).sentence


# -------------------------------------------------------------------------------------------------- missing values


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, r"X\[3, 2\] is missing; every value"),
        (2, r"X\[3, 2\] is missing, and so is 1 other; every value"),
        (3, "so are 2 others"),
    ],
)
def test_missing_values_are_counted(count, words):
    data = X.astype(float)
    data[3 : 3 + count, 2] = np.nan
    with pytest.raises(ModelError, match=words):  # machines need every value
        sz.RBM.fit(data, n_hidden=1)


# ------------------------------------------------------------------------------------------------ fixed parameters

SETTINGS = {
    "exact": {},
    "pseudo": {"method": "pseudo"},
    "sampled": {"method": "sampled", "max_iter": 3},
    "chosen": {"graph": "chosen"},
    "l1": {"penalty": "l1"},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("key", [0, (0, 1)])
@pytest.mark.parametrize("value", [1e300, -1e300, 2e100])
def test_a_huge_fixed_parameter_is_refused(name, key, value):
    with pytest.raises(OptionError, match=r"its size may be at most 1e\+100") as caught:
        sz.fit(X, fixed={key: value}, **SETTINGS[name])
    assert f"{value}" in str(caught.value)
    with pytest.raises(OptionError, match="too large"):
        sz.fit(X, fixed={key: 10**400}, **SETTINGS[name])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("key", [0, (0, 1)])
@pytest.mark.parametrize("value", [1e100, *(pytest.param(each, marks=pytest.mark.slow) for each in (-1e30, 1000.0))])
def test_a_large_fixed_parameter_warns_of_nothing_but_the_fit(name, key, value):
    """As always, warnings of numpy are errors here."""
    with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
        fit = sz.fit(X, fixed={key: value}, likelihood=False, **SETTINGS[name])
    assert np.all(np.isfinite(fit.model.field))


# ------------------------------------------------------------------------------------- options before any work

WIDE = np.random.default_rng(1).integers(0, 2, (60, 40))


@pytest.fixture
def no_work(monkeypatch):
    for module, name in ((selecting, "minimize"), (fitting, "minimize"), (fitting.sampled, "climb")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("it worked first"))


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (OptionError, "no l1 penalty", {"X": WIDE, "penalty": "l1", "strength": "ebic"}),
        (OptionError, "no l1 penalty", {"X": WIDE, "penalty": "l1", "strength": "cv", "method": "sampled"}),
        (OptionError, "no l1 penalty", {"X": X, "penalty": "l1", "method": "sampled"}),
        (TooLargeError, 'ask for method="sampled"', {"X": WIDE, "penalty": "l1", "strength": "cv", "method": "exact"}),
        (OptionError, "strength", {"X": X, "graph": "chosen", "penalty": "l2", "strength": -1.0}),
        (OptionError, "strength", {"X": X, "graph": "chosen", "strength": 0.1}),
        (OptionError, "strength", {"X": X, "graph": "chosen", "penalty": "l2", "strength": "ebic"}),
        (OptionError, "strength", {"X": X, "graph": "chosen", "penalty": "l2", "strength": "best"}),
        (OptionError, "penalty", {"X": X, "graph": "chosen", "penalty": "l3"}),
        (OptionError, "penalty", {"X": X, "penalty": "l3", "strength": "cv"}),
        (OptionError, "penalty", {"X": X, "penalty": ["l1"]}),
        (OptionError, "cross-validation needs", {"X": [[0, 1], [1, 0], [0, 0]], "graph": "chosen", "select": "cv"}),
        (OptionError, "needs the rows", {"moments": {}, "method": "pseudo"}),
        (OptionError, "fixed", {"X": X, "graph": "chosen", "fixed": {0: "a"}}),
        (OptionError, "threads", {"X": X, "threads": -1}),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_options_are_refused_before_any_work(error, words, options):
    if "moments" in options:
        options = options | {"moments": {"mean": np.zeros(3), "pair_mean": np.eye(3), "rows": 10}}
    with pytest.raises(error, match=words):
        sz.fit(**options)


# -------------------------------------------------------------------------------------------------------- machines


@pytest.mark.parametrize("rate", [1e30, 1e300])
def test_a_machine_that_diverges_blames_the_rate(rate):
    with pytest.raises(OptionError, match=rf"rate is {rate}".replace("+", r"\+")) as caught:
        sz.RBM.fit(X, 2, rate=rate)
    assert "smaller" in str(caught.value)
    assert "weights[" not in str(caught.value)


def test_a_machine_that_diverges_by_its_decay_says_so():
    with pytest.raises(OptionError, match=r"decay is 1e\+30"):
        sz.RBM.fit(X, 2, decay=1e30)
    assert math.isfinite(sz.RBM.fit(X, 2, rate=0.05, epochs=2).weights.sum())

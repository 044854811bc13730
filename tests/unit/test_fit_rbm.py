"""RBMs learned from data, and the likelihood of data under them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import ModelError, OptionError
from spectralz.learning import machines
from spectralz.learning.machines import free_energies, reverse_annealed

RNG = np.random.default_rng(0)
WEIGHTS, VISIBLE, HIDDEN = RNG.normal(size=(5, 3)), RNG.normal(size=5), RNG.normal(size=3)


def bits(n, values):
    return np.array(list(itertools.product((0, 1) if values == "01" else (-1, 1), repeat=n)))


@pytest.mark.parametrize("values", ["01", "pm1"])
def test_the_likelihood_of_data_sums_the_hidden_units_out(values):
    rbm = sz.RBM(WEIGHTS, VISIBLE, HIDDEN, values)
    every, hidden = bits(5, values), bits(3, values)
    weight = np.array([sum(np.exp(v @ WEIGHTS @ h + VISIBLE @ v + HIDDEN @ h) for h in hidden) for v in every])
    found = rbm.log_likelihood(every)
    assert found.log_prob == pytest.approx(np.log(weight / weight.sum()), abs=1e-10)
    assert found.log_likelihood == pytest.approx(found.log_prob.mean())
    assert found.std_error is None
    assert found.lower <= found.log_likelihood <= found.upper
    assert free_energies(rbm, 2 * (every == 1) - 1) == pytest.approx(np.log(weight), abs=1e-10)


@pytest.mark.parametrize("values", ["01", "pm1"])
def test_annealing_backwards_is_unbiased_however_short(values):
    rbm = sz.RBM(WEIGHTS, VISIBLE, HIDDEN, values)
    spins = np.tile(bits(5, "pm1"), (400, 1))
    rng = np.random.default_rng(1)
    short = np.exp(reverse_annealed(rbm, spins, 3, rng, np.full(5, 0.3)))
    total = short.reshape(400, 32).sum(axis=1)
    # What annealing forwards draws from is a distribution: the means of all states add up to one.
    assert total.mean() == pytest.approx(1.0, abs=4 * total.std() / 20)
    long = reverse_annealed(rbm, bits(5, "pm1"), 3000, rng, np.full(5, 0.3))
    exact = rbm.log_likelihood(bits(5, values)).log_prob
    assert long == pytest.approx(exact, abs=0.2)
    assert (long - exact).mean() == pytest.approx(0.0, abs=0.05)


def test_forwards_and_backwards_are_compared():
    rbm = sz.RBM(WEIGHTS, VISIBLE, HIDDEN)
    X = sz.sample(rbm, 50, seed=0)[:, :5]
    found = rbm.log_likelihood(X, "annealing", population=200)
    exact = rbm.log_likelihood(X).log_likelihood
    assert found.log_likelihood == pytest.approx(exact, abs=5 * found.std_error)
    assert found.reverse == pytest.approx(exact, abs=5 * np.hypot(found.reverse_error, found.std_error))
    assert found.status.converged
    assert "agree" in found.status
    assert "backwards" in str(found)
    assert found.to_dict()["reverse_rows"] == 50
    assert rbm.log_likelihood(X, "annealing", population=200, check=False).reverse is None


def test_no_value_beyond_a_proven_bound_is_shown(monkeypatch):
    rbm, X = sz.RBM(WEIGHTS, VISIBLE, HIDDEN), bits(5, "01")
    options = {"work": 1e8, "exclude": ["exact", "states", "mps"]}
    monkeypatch.setattr(machines, "reverse_annealed", lambda rbm, spins, *_: np.full(len(spins), 5.0))
    found = rbm.log_likelihood(X, **options)
    assert found.reverse == found.upper
    assert "backwards cut to a proven bound" in found.status
    monkeypatch.setattr(machines, "reverse_annealed", lambda rbm, spins, *_: np.full(len(spins), -99.0))
    assert rbm.log_likelihood(X, **options).reverse == pytest.approx(found.lower)


def test_the_scatter_of_the_rows_is_an_error_of_its_own():
    rbm, X = sz.RBM(WEIGHTS, VISIBLE, HIDDEN), bits(5, "01")
    found = rbm.log_likelihood(X)
    variance = sum((p - found.log_likelihood) ** 2 for p in found.log_prob) / 31
    assert found.sampling_error == pytest.approx((variance / 32) ** 0.5)
    assert found.to_dict()["sampling_error"] == found.sampling_error
    assert "sampling error" in str(found)
    assert rbm.log_likelihood(X[:1]).sampling_error is None


def test_a_machine_learns_patterns():
    rng = np.random.default_rng(2)
    patterns = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]])
    X = patterns[rng.integers(2, size=600)] ^ (rng.random((600, 8)) < 0.05)
    train, test = X[:400], X[400:]
    machine = sz.RBM.fit(train, n_hidden=2, epochs=60, seed=0)
    # Two patterns, and eight units that are flipped with probability 0.05.
    best = -np.log(2) + 8 * (0.05 * np.log(0.05) + 0.95 * np.log(0.95))
    assert machine.log_likelihood(test).log_likelihood == pytest.approx(best, abs=0.25)
    assert machine.values == "01"
    assert sz.RBM.fit(train, n_hidden=2, epochs=60, seed=0) == machine
    spins = sz.RBM.fit(2 * train - 1, n_hidden=2, epochs=60, seed=0)
    assert spins.values == "pm1"
    assert spins.log_likelihood(2 * test - 1).log_prob == pytest.approx(machine.log_likelihood(test).log_prob, abs=1e-8)


def test_bad_input_is_a_sentence():
    X = np.array([[0, 1], [1, 0]])
    for options in ({"n_hidden": 0}, {"n_hidden": 2, "rate": -1}, {"n_hidden": 2, "decay": -1.0}):
        with pytest.raises(OptionError):
            sz.RBM.fit(X, **options)
    with pytest.raises(ModelError, match="visible units"):
        sz.RBM(WEIGHTS).log_likelihood(X)

"""All states of small models by Walsh transforms, beside the definitions state by state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.parts.all_states import downs, log_weights, overlaps, walsh


def literal_walsh(table):
    return np.array([sum((-1) ** (s & t).bit_count() * c for t, c in enumerate(table)) for s in range(len(table))])


def states(n):
    """Bit i of the row's number is 1 where spin i is -1."""
    return 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def random_model(n, seed):
    rng = np.random.default_rng(seed)
    scopes = [scope for size in (1, 2, 3, 4) for scope in itertools.combinations(range(n), size)]
    return sz.Polynomial({scope: rng.normal() for scope in scopes}, n=n, offset=0.3)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 9, 11])
def test_the_transform_is_the_double_sum(n):
    table = np.random.default_rng(n).normal(size=2**n)
    assert walsh(table) == pytest.approx(literal_walsh(table), rel=1e-11, abs=1e-11)
    assert walsh(walsh(table)) == pytest.approx(table * 2**n, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_log_weights_are_those_of_the_model(n):
    model = random_model(n, n)
    assert log_weights(model) + model.constant == pytest.approx(model.log_weight(states(n)), rel=1e-11, abs=1e-11)


def test_log_weights_of_pairs():
    model = sz.generators.bipartite(10, 0.6, seed=2)
    assert log_weights(model) + model.constant == pytest.approx(model.log_weight(states(10)), rel=1e-11, abs=1e-11)


def test_downs_and_overlaps_are_counts_over_states_and_pairs():
    n = 5
    x, p = states(n), np.random.default_rng(1).dirichlet(np.ones(2**n))
    assert downs(n).tolist() == (x == -1).sum(axis=1).tolist()
    differ = np.zeros(2**n)
    for s, t in itertools.product(range(2**n), repeat=2):
        differ[s ^ t] += p[s] * p[t]
    assert overlaps(walsh(p)) == pytest.approx(differ, abs=1e-14)

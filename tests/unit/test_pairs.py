"""Marginals with pairs and without: the same means, and no list of edges where it is not wanted."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import OptionError
from spectralz.methods import base
from spectralz.registry import METHODS

ABLE = [name for name, method in METHODS.items() if method.gives_marginals]


def small():
    return sz.generators.grid(side=3, strength=0.4, seed=1)


@pytest.mark.parametrize("name", ABLE)
def test_means_are_the_same_without_pairs(name):
    model = sz.generators.curie_weiss(n=9, strength=0.5, field=0.1) if name == "quadrature" else small()
    if name == "planar":  # without fields
        model = sz.Ising(coupling=model.coupling)
    options = {"work": 1e7} if name == "auto" else {}
    whole, bare = (sz.marginals(model, name, pairs=pairs, **options) for pairs in (True, False))
    assert np.array_equal(bare.mean, whole.mean)
    assert np.array_equal(bare.probability, whole.probability)
    assert bare.estimate.log_z == whole.estimate.log_z
    assert (whole.has_pairs, bare.has_pairs) == (True, False)
    assert np.array_equal(whole.edges, model.edges()[0])
    assert (bare.edges.shape, bare.pair_mean.shape) == ((0, 2), (0,))


def test_pairs_are_listed_unasked_only_if_they_are_few(monkeypatch):
    model = small()
    assert sz.marginals(model).has_pairs
    monkeypatch.setattr(base, "MOST_PAIRS", model.edge_count - 1)
    assert not sz.marginals(model).has_pairs
    assert len(sz.marginals(model, pairs=True).pair_mean) == model.edge_count
    # It is the whole model that counts, whatever is left of it given some spins.
    assert not sz.marginals(model, given={0: 1, 4: -1}).has_pairs
    assert not sz.Exact().run_marginals(model).has_pairs


@pytest.mark.slow
def test_components_and_evidence_and_units_without_pairs():
    blocks = np.kron(np.eye(3), np.full((4, 4), 0.2) - 0.2 * np.eye(4))
    model = sz.Ising(np.linspace(-1, 1, 12), blocks)
    options = {"exclude": ["exact", "quadrature"], "work": 1e7}
    whole, bare = (sz.marginals(model, given={0: 1}, pairs=pairs, **options) for pairs in (True, False))
    assert np.array_equal(bare.mean, whole.mean)
    assert (len(whole.edges), len(bare.edges)) == (18, 0)
    machine = sz.RBM(np.ones((3, 2)), values="01")
    assert np.array_equal(sz.marginals(machine, pairs=False).mean, sz.marginals(machine).mean)


def test_what_is_printed_says_that_pairs_are_left_out():
    found = sz.marginals(small(), pairs=False)
    assert "pairs left out" in repr(found)
    assert "9 spins, pairs left out (exact)" in str(found)
    assert "pairs left out" in found._repr_html_()
    assert found.to_dict()["has_pairs"] is False
    assert found.to_dict()["pair_mean"] == []
    alone = sz.marginals(sz.Ising([0.5, 0.1]))
    assert alone.has_pairs
    assert "0 edges" in str(alone)


def test_pairs_is_true_false_or_none():
    with pytest.raises(OptionError, match="pairs is 1; it must be True or False"):
        sz.marginals(small(), pairs=1)


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mf", {"max_iter": 3}),
        ("ep", {"max_iter": 1, "restarts": 0, "correction": False}),
        pytest.param("annealing", {"population": 4, "runs": 2}, marks=pytest.mark.slow),
        pytest.param("auto", {"work": 2e8, "exclude": ["wmbe", "trw", "sdp", "convex_mf"]}, marks=pytest.mark.slow),
    ],
)
def test_no_list_of_edges_is_made_of_a_large_dense_model(name, options, monkeypatch):
    rng = np.random.default_rng(0)
    n = 400 if name == "ep" else 2000
    A = np.triu(rng.standard_normal((n, n)), 1) * (0.05 / np.sqrt(n))
    model = sz.Ising(np.zeros(n), A + A.T)

    def refuse(*_):
        raise AssertionError("edges of a large dense model were listed")

    monkeypatch.setattr(sz.Ising, "edges", refuse)
    monkeypatch.setattr(type(model.storage), "edges", refuse)
    found = sz.marginals(model, name, pairs=False, **options)
    assert found.mean.shape == (n,)


def test_factors_of_many_spins_have_marginals_without_pairs():
    found = sz.marginals(sz.generators.curie_weiss(n=20_000, strength=0.5, field=0.1))
    assert not found.has_pairs
    assert found.kind is sz.Kind.EXACT
    assert np.ptp(found.mean) < 1e-12

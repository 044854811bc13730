"""Symmetries against all sets of spins: which of them change no state's weight."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.sampling import symmetries
from spectralz.sampling.symmetries import images_of, symmetric_sets
from tests.reference.states import all_states


def as_set(images):
    return {tuple(image) for image in images.tolist()}


def symmetries_by_enumeration(model):
    """Return all sets of spins, as signs, that can be turned in every state without any change of its weight."""
    every = all_states(model.n)
    weight = model.log_weight(every)
    return {
        tuple(signs) for signs in every.tolist() if np.allclose(model.log_weight(every * signs), weight, atol=1e-12)
    }


# -------------------------------------------------------------------------------------------------------- the images


def some_models():
    rng = np.random.default_rng(0)
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    pair = [(4, 5), (5, 6)]
    J = [0.5, -0.8, 1.1, 0.7]
    triples = {(0, 1, 2): 0.7, (2, 3, 4): -0.4, (0, 3, 5): 0.9}
    return {
        "no fields": sz.Ising(np.zeros(6), np.array(sz.generators.complete(n=6, strength=0.7, seed=1).coupling)),
        "components": sz.Ising.from_edges(7, ring + pair, [*J, 0.6, -0.5], np.zeros(7)),
        "fields on one": sz.Ising.from_edges(7, ring + pair, [*J, 0.6, -0.5], [0, 0.3, 0, 0, 0, 0, 0]),
        "fields on all": sz.Ising.from_edges(7, ring + pair, [*J, 0.6, -0.5], rng.normal(size=7)),
        "fields on both": sz.Ising.from_edges(7, ring + pair, [*J, 0.6, -0.5], [0, 0.3, 0, 0, 0, 0, -0.1]),
        "triples": sz.Polynomial(triples, n=6),
        "triples and pairs": sz.Polynomial({**triples, (0, 1): 0.3, (3, 4): 0.2}, n=6),
        "triples and a field": sz.Polynomial({**triples, (5,): 0.3}, n=6),
        "fours": sz.Polynomial({(0, 1, 2, 3): 0.6, (2, 3, 4, 5): -0.5, (0, 5): 0.2}, n=6),
        "fours and a triple": sz.Polynomial({(0, 1, 2, 3): 0.6, (2, 3, 4, 5): -0.5, (0, 1, 4): 0.2}, n=6),
    }


@pytest.mark.parametrize("name", some_models())
def test_images_are_all_symmetries(name):
    model = some_models()[name]
    images = images_of(model)
    assert images.dtype == np.int8
    assert (images[0] == 1).all()
    assert len(as_set(images)) == len(images)
    assert as_set(images) == symmetries_by_enumeration(model)


def test_some_of_these_models_have_symmetries_and_others_have_none():
    counts = {name: len(images_of(model)) for name, model in some_models().items()}
    assert counts["no fields"] == 2
    assert counts["components"] == 4
    assert counts["fields on one"] == 2
    assert counts["fields on all"] == counts["fields on both"] == 1
    assert counts["triples"] == 2**3  # three independent terms of six spins
    assert counts["triples and a field"] == 2**2


def test_one_odd_term_leaves_no_symmetry_of_all_spins():
    pairs = {scope: 0.5 for scope in itertools.combinations(range(6), 2)}
    assert as_set(images_of(sz.Polynomial(pairs | {(0, 1, 2, 3): 0.1}, n=6))) == {(1,) * 6, (-1,) * 6}
    assert len(images_of(sz.Polynomial(pairs | {(0, 1, 2): 0.1}, n=6))) == 1
    assert len(images_of(sz.Polynomial(pairs | {(0, 1, 2, 3): 0.1, (4,): 0.1}, n=6))) == 1


def test_terms_and_couplings_of_weight_zero_hold_nothing():
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 0.5
    A[2, 3] = A[3, 2] = 0.5
    assert len(images_of(sz.Ising(np.zeros(4), A))) == 4
    pairs = {(0, 1): 0.5, (2, 3): 0.5, (0, 1, 2, 3): 0.2}
    assert as_set(images_of(sz.Polynomial({**pairs, (0, 1, 2): 0.0}, n=4))) == as_set(images_of(sz.Polynomial(pairs)))


def test_spins_on_their_own_are_no_sets_and_the_largest_come_first():
    edges = [(0, 1), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8)]
    model = sz.Ising.from_edges(11, edges, [0.5] * 6, np.zeros(11))
    found = [np.flatnonzero(turned).tolist() for turned in symmetric_sets(model)]
    assert found == [[5, 6, 7, 8], [2, 3, 4], [0, 1]]
    assert len(images_of(model)) == 8


def test_sets_of_models_with_terms_come_in_the_order_of_their_sizes():
    # The sets by themselves: one spin of its own, a pair, and three spins beside a term that they share.
    model = sz.Polynomial({(0, 1, 2, 3): 0.5, (4, 5): 0.3}, n=7)
    sizes = [int(turned.sum()) for turned in symmetric_sets(model)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 1


def test_no_more_than_six_sets_are_used():
    pairs = [(2 * k, 2 * k + 1) for k in range(9)]
    model = sz.Ising.from_edges(18, pairs, [0.5] * 9, np.zeros(18))
    assert len(as_set(images_of(model))) == len(images_of(model)) == 64
    terms = sz.Polynomial({(3 * k, 3 * k + 1, 3 * k + 2): 0.5 for k in range(6)}, n=18)
    assert len(as_set(images_of(terms))) == len(images_of(terms)) == 64


def test_too_many_terms_have_no_symmetries_here(monkeypatch):
    model = sz.Polynomial({(0, 1, 2): 0.5, (2, 3, 4): 0.5})
    assert len(images_of(model)) > 1
    monkeypatch.setattr(symmetries, "MOST_TERMS", 1)
    assert len(images_of(model)) == 1
    monkeypatch.setattr(symmetries, "MOST_TERMS", 2)
    monkeypatch.setattr(symmetries, "MOST_SPINS", 4)
    assert len(images_of(model)) == 1

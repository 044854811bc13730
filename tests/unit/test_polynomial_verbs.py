"""Exact answers about polynomials, and what every verb says of them, against sums over all states."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import ModelError, OptionError
from spectralz.methods import Exact
from spectralz.methods.base import TAKING_TERMS
from tests.helpers import with_slow
from tests.reference.states import all_states, chi_square, means_of, places_of


def random_polynomial(seed, n, terms, most=6, scale=1.0):
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(n, rng.integers(1, min(most, n) + 1), replace=False).tolist()) for _ in range(terms)]
    return sz.Polynomial({(0, 1, 2): scale, **{scope: scale * rng.standard_normal() for scope in scopes}}, n=n)


def probabilities(model):
    """Return log Z and the probability of every state, by the log-weights of the definition."""
    x = all_states(model.n)
    log_weight = np.full(len(x), model.offset)
    for scope, c in model.terms.items():
        log_weight = log_weight + c * x[:, list(scope)].prod(axis=1, dtype=float)
    log_z = np.logaddexp.reduce(log_weight)
    return float(log_z), np.exp(log_weight - log_z)


SMALL = [random_polynomial(seed, 8, 12) for seed in range(4)]


# ------------------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("algorithm", ["elimination", "enumeration"])
def test_wide_tables_and_many_blocks(seed, algorithm):
    """Tables of more than 2^9 entries and more than 2^10 states are filled block by block: terms lie across blocks."""
    model = random_polynomial(seed, 13, 40)
    log_z, p = probabilities(model)
    found = sz.marginals(model, "exact", algorithm=algorithm)
    if algorithm == "elimination":
        assert found.estimate.details["width"] > 9
    assert found.estimate.log_z == pytest.approx(log_z, abs=1e-11)
    x = all_states(13).astype(float)
    expected = [p @ x[:, list(scope)].prod(axis=1) for scope in found.terms]
    np.testing.assert_allclose(found.term_mean, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_slices_turn_the_signs_of_terms(seed):
    model = random_polynomial(seed, 12, 40, most=4)
    log_z, _ = probabilities(model)
    sliced = sz.log_z(model, "exact", algorithm="elimination", max_memory=8 * 256)
    assert sliced.details["sliced"] > 0
    assert sliced.log_z == pytest.approx(log_z, abs=1e-11)
    found = sz.marginals(model, Exact(algorithm="elimination", max_memory=8 * 256, max_terms=2**20))
    assert found.estimate.details["sliced"] > 0
    np.testing.assert_allclose(found.term_mean, means_of(model, found.terms), atol=1e-12)


def test_components_are_enumerated_apart():
    first, second = random_polynomial(0, 5, 6), random_polynomial(1, 6, 8)
    moved = {tuple(5 + i for i in scope): c for scope, c in second.terms.items()}
    both = sz.Polynomial({**first.terms, **moved}, offset=0.25)
    found = sz.marginals(both, "exact", algorithm="enumeration")
    assert found.estimate.log_z == pytest.approx(0.25 + probabilities(first)[0] + probabilities(second)[0], abs=1e-12)
    np.testing.assert_allclose(found.term_mean, means_of(both, found.terms), atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_samples_follow_the_distribution(seed):
    model = SMALL[seed]
    statistic, freedom = chi_square(model, sz.sample(model, 20_000, "exact", seed=seed))
    assert statistic < freedom + 5.0 * math.sqrt(2.0 * freedom)


@pytest.mark.parametrize("seed", range(3))
def test_the_heaviest_states(seed):
    model = SMALL[seed]
    _, p = probabilities(model)
    found = sz.map_state(model, count=5)
    assert found.proven
    expected = np.sort(np.asarray(model.log_weight(all_states(8))))[::-1][:5]
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-12)
    assert p[places_of(found.state[None])[0]] == pytest.approx(p.max())
    searched = sz.map_state(model, "search", work=1e7)
    assert searched.log_weight == pytest.approx(expected[0])
    assert searched.upper >= expected[0] - 1e-12


# ------------------------------------------------------------------------------------------------------------- verbs


def test_evidence_and_marginals():
    model = SMALL[0].named(list("abcdefgh"))
    found = sz.marginals(model, given={"b": -1, "e": +1})
    left = model.condition({"b": -1, "e": +1})
    names = [name for name in "abcdefgh" if name not in "be"]
    back = {"abcdefgh".index(name): k for k, name in enumerate(names)}
    inside = [tuple(back[i] for i in scope) for scope in found.terms]
    assert set(inside) == {*left.terms, *((i,) for i in range(6))}
    np.testing.assert_allclose(found.term_mean, means_of(left, inside), atol=1e-12)
    assert (found["b"], found["e"]) == (-1.0, 1.0)
    log_z, p = probabilities(model)
    x = all_states(8)
    share = p[(x[:, 1] == -1) & (x[:, 4] == 1)].sum()
    assert sz.log_z(model, given={"b": -1, "e": 1}).log_z == pytest.approx(log_z + math.log(share), abs=1e-12)


def test_a_polynomial_of_pairs_is_solved_by_any_method():
    ising = sz.generators.complete(6, 0.5, seed=0)
    model = ising.to_polynomial()
    assert isinstance(model, sz.Polynomial)
    assert model.to_ising() == ising
    for method in ("exact", "mps", "trw"):
        assert sz.log_z(model, method).log_z == pytest.approx(sz.log_z(ising, method).log_z, abs=1e-12)
    found, expected = sz.marginals(model), sz.marginals(ising)
    assert found.terms[6:] == tuple(map(tuple, expected.edges.tolist()))
    np.testing.assert_allclose(found.term_mean, [*expected.mean, *expected.pair_mean], atol=1e-12)
    assert "term means" in str(found)


def test_methods_for_pairs_say_so_in_a_sentence():
    model, takes = SMALL[0], {name for name, method in sz.METHODS.items() if method.takes_terms}
    assert takes == set(TAKING_TERMS.replace(" or ", ", ").split(", "))
    for name in set(sz.METHODS) - takes:
        with pytest.raises(OptionError, match=f"'{name}' takes pairs of spins only, and this model has terms of up to"):
            sz.log_z(model, name)
    rows = {row.method.name: row for row in sz.compare(model).rows}
    assert set(rows) == set(sz.METHODS) - {"auto"}
    for name, row in rows.items():
        assert (row.estimate is not None) == (name in takes), name
    with pytest.raises(OptionError, match="means of its terms"):
        sz.marginals(model, pairs="all")
    with pytest.raises(OptionError, match="models of pairs"):
        sz.temperature(model, sz.sample(model, 10))


@pytest.mark.parametrize("seed", range(2))
def test_probabilities_and_predictions(seed):
    model = SMALL[seed]
    log_z, p = probabilities(model)
    x = all_states(8)[::17]
    np.testing.assert_allclose(sz.log_prob(model, x).log_prob, np.log(p[::17]), atol=1e-11)
    row = x[3].astype(float)
    row[[1, 5]] = np.nan
    agrees = np.all((all_states(8) == x[3]) | np.isnan(row), axis=1)
    assert sz.log_prob(model, row[None]).log_prob[0] == pytest.approx(math.log(p[agrees].sum()), abs=1e-11)
    expected = p[agrees & (all_states(8)[:, 5] == 1)].sum() / p[agrees].sum()
    assert sz.predict(model, row[None]).probability[0, 5] == pytest.approx(expected, abs=1e-12)
    ratio = sz.log_ratio(model.scaled(1.1), model)
    assert float(ratio) == pytest.approx(probabilities(model.scaled(1.1))[0] - log_z, abs=1e-11)


def test_curves_are_those_of_all_states():
    model = SMALL[1] + sz.Ising(np.zeros(8), offset=0.5)
    betas = [0.0, 0.3, 1.0]
    found = sz.thermodynamics(model, betas)
    energy = -np.asarray(model.log_weight(all_states(8)))
    for k, beta in enumerate(betas):
        log_z, p = probabilities(model.scaled(beta))
        mean = p @ energy
        assert found.log_z[k] == pytest.approx(log_z, abs=1e-10)
        assert found.energy[k] == pytest.approx(mean, abs=1e-9)
        assert found.heat_capacity[k] == pytest.approx(beta**2 * (p @ (energy - mean) ** 2), abs=1e-5)
    for method in ("mps", "quadrature"):
        with pytest.raises(OptionError, match="pairs of spins only"):
            sz.thermodynamics(model, [1.0], method)
    sampled = sz.thermodynamics(model, [0.5, 1.0], "annealing", work=3e7)
    exact = sz.thermodynamics(model, [0.5, 1.0])
    assert np.all(np.abs(sampled.log_z - exact.log_z) < 5.0 * sampled.log_z_error + 1e-9)
    assert np.all(np.abs(sampled.energy - exact.energy) < 5.0 * sampled.energy_error + 1e-9)


def test_a_description_counts_terms():
    about = sz.describe(sz.Polynomial({(0, 1, 2): 0.5, (2, 3, 4, 5): -1.5, (0, 1): 2.0}, n=7))
    assert (about.spins, about.edges, about.terms, about.largest_term) == (7, 9, 2, 4)
    assert (about.term_mean, about.term_max, about.coupling_max) == (1.0, 1.5, 1.0)
    assert (about.components, about.treewidth_lower, about.treewidth_upper) == (2, 3, 3)
    assert "2 of up to 4 spins" in str(about)


@pytest.mark.parametrize("seed", with_slow(range(3), (1, 2)))
def test_bounds_and_auto_without_exact(seed):
    model = random_polynomial(seed, 12, 20, scale=0.5)
    truth, _ = probabilities(model)
    found = sz.bounds(model, work=3e7)
    assert found.lower <= truth <= found.upper
    assert {row.method for row in found.rows} >= {"trivial", "mf", "wmbe", "states"}
    answer = sz.log_z(model, work=1e8, exclude=["exact", "wmbe"], seed=seed)
    assert answer.trusted
    assert abs(answer.log_z - truth) < 5.0 * answer.std_error
    tried = {trial.method: trial.why for trial in answer.tried}
    assert "pairs" in tried["mps"]
    assert "pairs" in tried["ep"]
    means = sz.marginals(model, work=1e8, exclude=["exact", "wmbe"], seed=seed)
    off = np.abs(means.term_mean - means_of(model, means.terms))
    assert np.all(off < 6.0 * means.term_std_error + 1e-9)


def test_components_of_several_kinds_are_put_together():
    """One component has a term of three spins, another pairs only, and a spin is alone."""
    terms = {(0, 4, 2): 0.7, (0, 4): 0.3, (1, 3): -0.8, (3,): 0.2, (5,): 0.4}
    model = sz.Polynomial(terms, offset=1.0)
    found = sz.marginals(model, work=1e7, exclude=["exact"])
    assert found.estimate.log_z == pytest.approx(probabilities(model)[0], abs=0.05)
    off = np.abs(found.term_mean - means_of(model, found.terms))
    assert np.all(off < 6.0 * found.term_std_error + 1e-9)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_spins(n):
    model = sz.Polynomial({(0,): 0.5} if n else {}, n=n, offset=2.0)
    expected = 2.0 + n * math.log(2.0) + (math.log(math.cosh(0.5)) if n else 0.0)
    assert sz.log_z(model).log_z == pytest.approx(expected, abs=1e-14)
    assert sz.sample(model, 3).shape == (3, n)


def test_all_pairs_of_spins_of_a_term_are_the_graph():
    model = sz.Polynomial({(3, 1, 2): 1.0, (0, 1): 1.0})
    assert model.graph.tolist() == [[0, 1], *map(list, itertools.combinations((1, 2, 3), 2))]
    with pytest.raises(ModelError, match="has 3 spins"):
        model.to_ising()

"""Annealing, pools of states, phases and searches of models with terms of three and more spins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

import spectralz as sz
from spectralz._support.deadline import Deadline, budgeted
from spectralz.errors import OptionError
from spectralz.parts.leading import collective_directions
from spectralz.sampling.bridge import bridge
from spectralz.sampling.heavy.pool import state_pool
from spectralz.sampling.heavy.search import best_of_both, by_search, regions_of, rounding_of
from spectralz.sampling.path import from_coins, from_subgraph, path_to
from spectralz.sampling.population import Run, carry
from spectralz.sampling.proposals import satisfying_states
from spectralz.sampling.sweeps import fields, quench
from tests.helpers import with_slow
from tests.reference import states


def random_polynomial(seed, n=8, terms=14, scale=0.6, sizes=(1, 2, 3, 3, 4, 5)):
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(n, size, replace=False).tolist()) for size in rng.choice(sizes, terms)]
    terms = dict(zip([*scopes, (2, 0, 1)], scale * rng.normal(size=terms + 1), strict=True))
    return sz.Polynomial(terms, n=n, offset=0.5)


def all_triples(n, strength):
    """Return the ferromagnet of all triples, and its log Z, by magnetization; it has a first-order transition."""
    c = 6.0 * strength / n**2
    up = np.arange(n + 1)
    M = 2.0 * up - n
    counts = gammaln(n + 1) - gammaln(up + 1) - gammaln(n - up + 1)
    model = sz.Polynomial(dict.fromkeys(itertools.combinations(range(n), 3), c), n=n)
    return model, float(logsumexp(counts + c * (M**3 - 3 * n * M + 2 * M) / 6.0))


def planted(n, terms, c, seed):
    """Return parities of three spins that a hidden state satisfies, and that state."""
    rng, scopes = np.random.default_rng(seed), set()
    while len(scopes) < terms:
        scopes.add(tuple(sorted(rng.choice(n, 3, replace=False).tolist())))
    hidden = rng.choice(np.array([-1, 1], dtype=np.int8), size=n)
    return sz.Polynomial({scope: c * int(hidden[list(scope)].prod()) for scope in sorted(scopes)}, n=n), hidden


# --------------------------------------------------------------------------------------------------------- log Z


@pytest.mark.parametrize("seed", range(20))
def test_annealing_gives_log_z(seed):
    model = random_polynomial(seed, n=5 + seed % 5, scale=(0.3, 0.8, 1.5)[seed % 3])
    found, truth = sz.log_z(model, "annealing", population=400, seed=seed), float(states.log_z(model))
    assert found.trusted
    assert abs(found.log_z - truth) <= 4.0 * found.std_error
    assert found.std_error < 0.2


@pytest.mark.parametrize("scale", [20.0, 1e3, 1e6])
def test_annealing_of_strong_weights(scale):
    """The last in double precision, the others in single precision."""
    model = random_polynomial(1, scale=scale)
    assert path_to(model).in_double == (scale > 1e4)
    found, truth = sz.log_z(model, "annealing", population=400), float(states.log_z(model))
    assert abs(found.log_z - truth) <= 4.0 * found.std_error
    assert found.std_error <= 1e-3 * truth


@pytest.mark.parametrize("weight", [100.0, 1e4, 1e30])
def test_terms_alone_decide_the_precision(weight):
    model = sz.Polynomial({(0, 1, 2): weight, (1, 2, 3): -weight, (0, 2, 3, 4): weight})
    assert path_to(model).in_double == from_coins(model).in_double == (weight > 200.0)
    found = sz.log_z(model, "annealing", population=100)
    assert abs(found.log_z - 3.0 * weight - 2.0 * math.log(2.0)) <= 4.0 * found.std_error


def test_huge_weights_overflow_nowhere():
    model = sz.Polynomial({(0, 1, 2): 1e299, (1, 2, 3, 4): -1e280, (0, 4): 1e-300, (3,): -5e298, (1, 3, 4): 1e-200})
    for method in ("annealing", "states"):
        found = sz.log_z(model, method, population=100)
        assert found.log_z == pytest.approx(1.5e299, rel=1e-9)
    assert np.isfinite(sz.marginals(model, "annealing", population=100).term_mean).all()


def test_the_estimate_of_z_is_unbiased():
    model = random_polynomial(3, n=6, scale=1.0)
    path, points = path_to(model), np.linspace(0.0, 1.0, 4)
    z = np.exp(carry(path, points, 300, 64, np.random.default_rng(0)).log_z)
    truth = math.exp(float(states.log_z(model)) - model.constant)
    assert abs(z.mean() - truth) <= 4.0 * z.std() / math.sqrt(len(z))
    assert z.std() / math.sqrt(len(z)) < 0.05 * truth


def test_an_interval_has_log_z_above_its_lower_end():
    model = random_polynomial(4)
    found = sz.log_z(model, "annealing", population=400, level=0.999)
    low, high, level = found.interval
    assert high is None
    assert level == 0.999
    assert found.log_z - 0.5 < low < float(states.log_z(model))


def test_pairs_alone_give_the_same_whether_they_are_a_polynomial_or_not():
    """A field that holds a spin makes a term of three spins a pair: the same log Z, by another engine."""
    pairs = sz.generators.complete(n=7, strength=0.8, seed=0)
    edges, J = pairs.edges()
    terms = {(i,): h for i, h in enumerate(pairs.field.tolist())}
    terms |= {(i, j, 7): w for (i, j), w in zip(edges.tolist(), J.tolist(), strict=True)}
    model = sz.Polynomial({**terms, (7,): 300.0})
    found = sz.log_z(model, "annealing", population=400)
    assert abs(found.log_z - 300.0 - sz.log_z(pairs, "exact").log_z) <= 4.0 * found.std_error


def test_a_subgraph_is_refused():
    path = path_to(random_polynomial(0))
    assert not path.can_begin_from_subgraph
    with pytest.raises(OptionError):
        from_subgraph(path, 2)


# ------------------------------------------------------------------------------------------ marginals and samples


@pytest.mark.parametrize("seed", range(4))
def test_means_of_terms_are_within_their_errors(seed):
    model = random_polynomial(seed, n=7, scale=0.7)
    found = sz.marginals(model, "annealing", population=1000, seed=seed)
    off = np.abs(found.term_mean - states.means_of(model, found.terms))
    assert set(found.terms) >= set(model.terms)
    assert (off <= 4.0 * found.term_std_error).all()
    assert found.term_std_error.max() < 0.1
    assert (off <= 2.0 * found.term_std_error).mean() > 0.8


def test_means_of_terms_given_the_rest_are_less_noisy_than_products():
    """Where terms share no spin, a spin's tanh times the product of the others is the same in all states."""
    model = sz.Polynomial({(0, 1, 2): 0.4, (3, 4, 5, 6): -0.3})
    found = sz.marginals(model, "annealing", population=2000)
    means = dict(zip(found.terms, found.term_mean.tolist(), strict=True))
    assert means[(0, 1, 2)] == pytest.approx(math.tanh(0.4), abs=1e-12)
    assert means[(3, 4, 5, 6)] == pytest.approx(math.tanh(-0.3), abs=1e-12)


@pytest.mark.parametrize("method", ["annealing", "states"])
def test_means_of_spins_alone(method):
    model = random_polynomial(3, n=6, scale=0.5)
    found = sz.marginals(model, method, pairs=False, population=1000)
    assert found.terms == tuple((i,) for i in range(6))
    assert found.mean == pytest.approx(states.means_of(model, found.terms), abs=0.1)


@pytest.mark.parametrize("method", ["annealing", "states"])
def test_samples_follow_the_law(method):
    model = random_polynomial(5, n=5, scale=0.7)
    drawn = sz.sample(model, 4000, method, seed=1, population=4000)
    statistic, degrees = states.chi_square(model, drawn)
    assert statistic < chi2.ppf(0.9999, degrees)


# ---------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize("seed", range(3))
def test_all_states_give_exact_answers(seed):
    model = random_polynomial(seed, n=7, scale=0.3)
    found, truth = sz.log_z(model, "states", population=400), states.log_z(model)
    assert found.kind is sz.Kind.EXACT
    assert found.lower <= truth <= found.upper
    assert found.log_z == pytest.approx(float(truth), abs=1e-12)
    means = sz.marginals(model, "states", population=400)
    assert means.term_mean == pytest.approx(states.means_of(model, means.terms), abs=1e-12)


def test_heavy_states_bound_log_z_and_measure_their_share():
    model = random_polynomial(6, n=12, terms=30, scale=2.0)
    found, truth = sz.log_z(model, "states", population=200, max_states=300), states.log_z(model)
    assert found.lower <= truth
    assert abs(found.log_z - float(truth)) <= 4.0 * found.std_error + 1e-9


def test_a_pool_has_the_log_weights_of_its_states():
    model = random_polynomial(7, n=9)
    pool, path = state_pool(model, 1000), from_coins(model)
    assert pool.space.width == 9  # no side is summed out
    x = states.all_states(9)[::7]
    pool.add(x)
    assert pool.log_weight == pytest.approx(model.log_weight(x) - model.constant, abs=1e-12)
    changes = pool.space.flip_changes(x, path)
    for i in range(9):
        y = x.copy()
        y[:, i] *= -1
        assert changes[:, i] == pytest.approx(model.log_weight(y) - model.log_weight(x), abs=1e-11)
    assert pool.space.sizes() == pytest.approx(sum(map(abs, model.terms.values())))


def test_bipartite_pairs_beside_terms_are_not_summed_out():
    """The pairs alone are bipartite; summing out a side would drop the term."""
    pairs = {(i, j): 0.1 for i in range(3) for j in range(3, 40)}
    model = sz.Polynomial({**pairs, (0, 3, 4): 5.0})
    assert path_to(model).sides is None
    assert state_pool(model, 10).space.summed == 0


# ----------------------------------------------------------------------------------------- quenches, phases, mirrors


def test_quenches_end_in_local_maxima_of_all_states():
    model = random_polynomial(8, n=10, terms=30)
    path, x = from_coins(model), states.all_states(10)
    ends = quench(path, x)
    weights = np.asarray(model.log_weight(x))
    flipped = np.stack([weights[states.places_of(ends) ^ 1 << (9 - i)] for i in range(10)], axis=1)
    assert (flipped <= weights[states.places_of(ends)][:, None] + 1e-12).all()
    assert fields(path, ends) * ends == pytest.approx(
        0.5 * (weights[states.places_of(ends)][:, None] - flipped), abs=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.7, 0.6, 0.75, 0.9])
def test_a_ferromagnet_of_triples_is_right_or_not_trusted(strength):
    """Its ordered phase has no mirror image: counted twice, log Z would be too large by up to log 2."""
    model, truth = all_triples(24, strength)
    found = sz.log_z(model, "annealing", population=1000)
    assert not found.trusted or abs(found.log_z - truth) <= 4.0 * found.std_error


def test_the_ordered_phase_of_a_ferromagnet_lies_along_the_first_direction():
    model, _ = all_triples(12, 1.0)
    first, *_ = collective_directions(model, 1)
    assert abs(first.sum()) == pytest.approx(12.0, abs=1e-4)


def test_pairs_within_terms():
    model = sz.Polynomial({(0, 1, 2): 2.0, (0, 1, 2, 3): -1.0})
    pairs, weights = model.higher.all_pairs()
    assert sorted(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True)) == sorted(
        [(pair, 2.0) for pair in itertools.combinations(range(3), 2)]
        + [(pair, -1.0) for pair in itertools.combinations(range(4), 2)]
    )


def test_parities_that_a_state_satisfies_are_found_by_elimination():
    model, hidden = planted(150, 220, 0.9, seed=1)
    x = np.array(satisfying_states(model, 3, np.random.default_rng(1)))
    assert model.log_weight(x) == pytest.approx(220 * 0.9)
    assert model.log_weight(hidden) == pytest.approx(220 * 0.9)


def test_strong_terms_are_satisfied_before_weak_ones():
    """Frustrated: the product of all four is -1. Only the weakest gives way."""
    model = sz.Polynomial({(0, 1, 2): 3.0, (0, 1, 3): 2.0, (2, 3): -1.0, (4,): -0.5, (5, 6, 7): -1e-3}, n=9)
    x = np.array(satisfying_states(model, 8, np.random.default_rng(1)))
    assert model.log_weight(x) == pytest.approx(3.0 + 2.0 - 1.0 + 0.5 + 1e-3)
    assert set(x[:, 8].tolist()) == {-1, 1}  # no term knows it


def test_of_equally_strong_terms_another_one_gives_way_each_time():
    model = sz.Polynomial({(0, 1, 2): 1.0, (0, 1, 3): 1.0, (2, 3): -1.0}, n=4)
    x = np.array(satisfying_states(model, 40, np.random.default_rng(1)))
    assert model.log_weight(x) == pytest.approx(1.0)
    violated = {(x[r, 0] * x[r, 1] * x[r, 2] < 0, x[r, 0] * x[r, 1] * x[r, 3] < 0) for r in range(40)}
    assert violated == {(True, False), (False, True), (False, False)}


@pytest.mark.slow
def test_a_hidden_state_of_parities_is_not_missed():
    """Cooled states stay in the other phase, whose weight is e^40 times smaller, and look well there."""
    model, _ = planted(300, 450, 0.9, seed=3)
    found = sz.log_z(model, "annealing", population=500)
    assert found.log_z > 450 * 0.9  # the hidden state alone
    assert found.log_z > 300 * math.log(2.0) + 450 * math.log(math.cosh(0.9)) + 30.0


# --------------------------------------------------------------------------- curves, ratios, and the heaviest states


def test_curves_over_temperature():
    model = random_polynomial(9, n=8, scale=0.7)
    betas = np.array([0.3, 1.0])
    found = sz.thermodynamics(model, betas, "annealing", work=5e8)
    assert found.trusted.all()
    x = states.all_states(8)
    weights = np.asarray(model.log_weight(x))
    for k, beta in enumerate(betas):
        log_z = float(logsumexp(beta * weights))
        p = np.exp(beta * weights - log_z)
        for name, truth in (("log_z", log_z), ("energy", -p @ weights), ("magnetization", p @ x.mean(axis=1))):
            value, error = getattr(found, name), getattr(found, f"{name}_error")
            assert abs(value[k] - truth) <= 5.0 * error[k], name


def test_the_ratio_of_two_models_by_the_way_between_them():
    first = random_polynomial(10, n=7)
    second = sz.Polynomial({**first.terms, (0, 1, 6): 0.4, (2, 3): 0.5, (1, 4, 5): -0.2}, n=7)
    rng = np.random.default_rng(0)
    ends = [carry(path_to(model), np.linspace(0.0, 1.0, 20), 1, 1024, rng) for model in (first, second)]
    there, back = (Run.of_families(end.x, end.weights(), end.family) for end in ends)
    way = bridge(first, second, there, back, Deadline.after(2.0), rng)
    truth = float(states.log_z(second) - states.log_z(first)) - second.constant + first.constant
    assert np.concatenate([way.there, way.back]).mean() == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("seed", with_slow(range(3), (1, 2)))
def test_the_search_finds_the_heaviest_states(seed):
    model = random_polynomial(20 + seed, n=12, terms=40)
    with budgeted(None, 3e8) as deadline:  # operations, not seconds: the machine may be busy
        *_, pool = by_search(model, deadline, np.random.default_rng(seed), count=5)
    heaviest = np.sort(np.asarray(model.log_weight(states.all_states(12))))[::-1][:5]
    assert pool.weights[:5] == pytest.approx(heaviest, abs=rounding_of(model))


def test_the_search_satisfies_planted_pairs_and_triples():
    model, _ = planted(60, 300, 1.0, seed=4)
    with budgeted(None, 5e8) as deadline:
        *_, pool = by_search(model, deadline, np.random.default_rng(0))
    assert pool.weights[0] == pytest.approx(300.0)


def test_the_best_of_two_states_region_by_region():
    model = random_polynomial(30, n=60, terms=40, sizes=(1, 2, 3, 3, 4))
    rng = np.random.default_rng(31)
    x, other = rng.choice(np.array([-1, 1], dtype=np.int8), size=(2, 60))
    best = best_of_both(model, x, other)
    spins = np.flatnonzero(x != other)
    regions, expected = regions_of(model.connections.for_kernels(), spins), x.copy()
    assert np.array_equal(regions, regions_of(model.storage.for_kernels(), spins, model.higher))
    for region in range(regions.max() + 1):  # each by itself
        child = x.copy()
        child[spins[regions == region]] *= -1
        if model.log_weight(child) > model.log_weight(x):
            expected[spins[regions == region]] *= -1
    assert np.array_equal(best, expected)
    assert 0 < np.count_nonzero(best != x) < len(spins)
    assert regions.max() > 3

"""Sums over one side's states with the other side summed out, against sums over all states."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import spectralz as sz
from spectralz.kernels.sampling import flips
from spectralz.methods.states import States, pool_outcome
from spectralz.sampling.heavy.pool import (
    KeptSide,
    WholeStates,
    _add_from_random,
    fill,
    pool_marginals,
    search,
    share_held,
    space_of,
    state_pool,
)
from spectralz.sampling.path import path_to
from spectralz.sampling.population import Run
from tests.reference import states


def machine(kept=4, summed=6, strength=0.6, seed=0, field=0.5, offset=0.0):
    rng = np.random.default_rng(seed)
    weights = strength * rng.normal(size=(kept, summed))
    return sz.Ising.from_bipartite(weights, field * rng.normal(size=kept + summed), offset)


def random_states(count, n, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=(count, n))


MODELS = {
    "machine": machine(),
    "wide": machine(7, 3),
    "sparse": sz.generators.grid(side=3, strength=0.7, seed=1),
    "parts": sz.Ising.from_edges(9, [(0, 5), (5, 2), (3, 7), (7, 8)], [1.0, -2.0, 0.5, 0.3], np.linspace(-1, 1, 9)),
    "diagonal": sz.Ising(*(lambda m: (m.field, m.storage.dense()))(machine(3, 5)), 1.5).shift_diagonal(0.3),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e8])
def test_the_bound_is_the_sum_over_all_states_of_the_other_side_and_no_more(name, strength):
    import mpmath

    model = strength * MODELS[name]
    pool = state_pool(model, 1000)
    assert isinstance(pool.space, KeptSide)
    pool.add(random_states(5, model.n))
    everything = states.all_states(model.n).astype(np.int8)
    assert len(pool) == len(np.unique(pool.space.of_states(random_states(5, model.n)), axis=0))
    weights, power = states.whole_log_weights(model)
    with mpmath.workdps(50):
        held = everything[pool.contains(everything)]
        assert len(held) == len(pool) * 2**pool.space.summed
        truth, _ = states.summed([weights[place] for place in states.places_of(held)], power)
        assert pool.lower <= truth
        assert truth - pool.lower < 1e-11 * max(1.0, strength)


@pytest.mark.parametrize("name", MODELS)
def test_flips_change_log_weights_by_what_they_say(name):
    model = 2.0 * MODELS[name]
    space = space_of(model)
    v = random_states(20, space.width)
    found = space.flip_changes(v, path_to(model))
    for i in range(space.width):
        flipped = v.copy()
        flipped[:, i] *= -1
        assert np.allclose(found[:, i], space.log_weight(flipped) - space.log_weight(v), atol=1e-11)


def test_what_is_not_bipartite_keeps_all_spins():
    assert isinstance(space_of(sz.generators.complete(n=5, strength=1.0, seed=0)), WholeStates)
    assert isinstance(space_of(sz.Ising([0.1, 0.2])), WholeStates)


@pytest.mark.parametrize("name", MODELS)
def test_few_states_of_a_side_are_an_exact_answer(name):
    model = MODELS[name]
    result = sz.log_z(model, "states")
    truth = states.solve(model)[0]
    assert result.kind is sz.Kind.EXACT
    assert result.lower <= truth <= result.upper
    assert result.upper - result.lower < 1e-10
    assert "summed out" in result.status
    found, exact = sz.marginals(model, "states"), sz.marginals(model, "exact")
    assert found.kind is sz.Kind.EXACT
    assert np.allclose(found.mean, exact.mean, atol=1e-12)
    assert np.allclose(found.pair_mean, exact.pair_mean, atol=1e-12)


def test_samples_of_both_sides_have_the_models_law():
    model = machine(3, 4, strength=0.8)
    drawn = sz.sample(model, 50_000, "states", seed=1)
    counts = np.bincount((drawn > 0) @ 2 ** np.arange(7)[::-1], minlength=128)
    log_p = model.log_weight(states.all_states(7))
    expected = 50_000 * np.exp(log_p - logsumexp(log_p))
    order = [int(place) for place in (states.all_states(7) > 0) @ 2 ** np.arange(7)[::-1]]
    chi = ((counts[order] - expected) ** 2 / expected).sum()
    assert abs(chi - 127) < 4 * math.sqrt(2 * 127)


def test_the_share_is_that_of_the_side():
    """Exact samples are in the pool as often as its states' weights say, whatever their other side is."""
    model = machine(6, 9, strength=0.5)
    pool = state_pool(model, 20)
    pool.add(random_states(20, 15))
    x = sz.sample(model, 20_000, "exact", seed=1)
    run = Run.of_families(x, np.full(len(x), 1.0 / len(x)), np.arange(len(x)))
    share = share_held(pool, run)
    truth = pool.log_sum - sz.log_z(model, "exact").log_z
    assert abs(math.log(share.share) - truth) < 4 * share.std_error
    outcome = pool_outcome(pool, share)
    assert outcome.lower < sz.log_z(model, "exact").log_z


@pytest.mark.slow
def test_the_search_finds_nearly_all_weight_on_a_side():
    model = machine(18, 200, strength=0.3, seed=2)
    pool = state_pool(model, 20_000)
    path = path_to(model)
    fill(pool, path, random_states(0, path.n), 50, np.random.default_rng(0))
    assert not pool.is_complete
    search(pool, path)
    truth = sz.log_z(model, "exact").log_z
    assert truth - 1e-3 < pool.log_sum < truth + 1e-9
    means = pool_marginals(pool, pool_outcome(pool, share_held(pool, None))).mean
    assert np.allclose(means, sz.marginals(model, "exact").mean, atol=1e-3)


@pytest.mark.parametrize("error", ["cosh for 2cosh", "lost factor 2", "wrong sign"])
def test_planted_errors_are_seen(error, monkeypatch):
    model = machine()
    pool = state_pool(model, 1000)
    if error == "cosh for 2cosh":

        def halved(fields, sums, right=flips.sums_of_logs):
            right(fields, sums)
            sums -= fields.shape[1] * math.log(2.0)

        monkeypatch.setattr(flips, "sums_of_logs", halved)
    else:
        pool.space._weights = pool.space._weights * (0.5 if error == "lost factor 2" else -1.0)
    pool.add_all()
    assert not pool.lower <= states.solve(model)[0] <= 2.0 * pool.log_sum - pool.lower


def test_a_trained_machine_with_few_hidden_units_is_solved_at_once():
    neural_network = pytest.importorskip("sklearn.neural_network")
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    pixels = zoom(load_digits().images[:300] / 16.0, (1, 3.5, 3.5), order=1).clip(0.0, 1.0).reshape(300, 784)
    fitted = neural_network.BernoulliRBM(n_components=10, n_iter=10, learning_rate=0.05, random_state=0).fit(pixels)
    rbm = sz.RBM.from_sklearn(fitted)
    result = sz.log_z(rbm, States())
    assert result.kind is sz.Kind.EXACT
    h = np.array(list(itertools.product([0, 1], repeat=10)))
    pushed = rbm.visible + h @ rbm.weights.T
    truth = logsumexp(h @ rbm.hidden + np.logaddexp(0.0, pushed).sum(axis=1))
    assert result.log_z == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_quenches_of_a_side_end_where_no_flip_helps(name):
    model = 3.0 * MODELS[name]
    space = space_of(model)
    starts = random_states(20, space.width)
    ends = space.quench(starts)
    assert np.all(space.flip_changes(ends, path_to(model)) <= 1e-12)
    assert space.log_weight(ends).max() >= space.log_weight(starts).max()


def test_random_states_of_a_side_lead_to_heavy_ones():
    """Thirty units, of which five are coupled to all others, strongly, and held back by their fields."""
    rng = np.random.default_rng(0)
    weights = np.zeros((30, 60))
    weights[:5] = 1.0
    field = np.concatenate([np.full(30, -0.5), np.full(60, -0.5)])
    field[:5] = -20.0
    model = sz.Ising.from_bipartite(weights, field)
    pool = state_pool(model, 5000)
    _add_from_random(pool, 100, rng)
    search(pool, path_to(model))
    truth = 25 * np.logaddexp(0.5, -0.5) + logsumexp(
        [
            math.log(math.comb(5, up)) - 20.0 * (2 * up - 5) + 60 * np.logaddexp(2 * up - 5.5, 5.5 - 2 * up)
            for up in range(6)
        ]
    )
    assert pool.lower <= truth
    assert pool.log_sum > truth - 5.0

"""Sums over found states against enumeration: the set, the bound, the share."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import spectralz as sz
from spectralz.kernels.sampling.state_table import EMPTY, contains, insert, pack
from spectralz.methods.states import States, pool_outcome
from spectralz.sampling.heavy.pool import CUTOFF, distinct, fill, search, share_held, state_pool
from spectralz.sampling.path import path_to
from spectralz.sampling.population import Run
from spectralz.sampling.sweeps import fields, quench
from tests.reference import states


def random_states(count, n, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=(count, n))


def drawn_exactly(model, count, seed, family=None):
    """A population of exact samples, each its own family unless told."""
    x = sz.sample(model, count, "exact", seed=seed)
    family = np.arange(count) if family is None else family
    return Run.of_families(x, np.full(count, 1.0 / count), family)


# --------------------------------------------------------------------------------------------------------- the set


@pytest.mark.parametrize("n", [1, 3, 20, 64, 65, 130])
def test_the_pool_is_a_set(n):
    model = sz.Ising.from_edges(n, [], [], np.linspace(-1, 1, n))
    x = random_states(500, n)
    x = np.concatenate([x, x[::3]])
    pool = state_pool(model, 10_000)
    for part in np.array_split(x, 7):
        pool.add(part)
    kept = {tuple(state) for state in pool.states().tolist()}
    assert kept == {tuple(state) for state in x.tolist()}
    assert len(pool) == len(kept)
    assert np.allclose(pool.log_weight, model.log_weight(pool.states()))
    others = random_states(300, n, seed=1)
    assert pool.contains(others).tolist() == [tuple(state) in kept for state in others.tolist()]


def test_states_that_share_a_hash_are_kept_apart():
    # A table so small that all slots are in each other's way.
    model = sz.Ising.from_edges(12, [], [], np.zeros(12))
    pool = state_pool(model, 3000)
    pool._table = np.full(4096, -1, dtype=np.int64)
    x = np.array(list(itertools.product([-1, 1], repeat=12)), dtype=np.int8)[:2500]
    pool.add(np.concatenate([x, x]))
    assert len(pool) == 2500
    assert len(np.unique(pack(pool.states()))) == 2500


def test_a_full_pool_takes_no_more():
    model = sz.Ising.from_edges(20, [], [], np.zeros(20))
    pool = state_pool(model, 100)
    pool.add(random_states(500, 20))
    assert len(pool) == 100
    assert pool.is_full
    assert pool.lower < 20 * math.log(2)


# ------------------------------------------------------------------------------------------------------- the bound


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e8])
def test_the_bound_is_the_sum_over_the_states_and_no_more(strength):
    import mpmath

    model = sz.Ising(*_parts(sz.generators.complete(n=7, strength=strength, seed=3)), offset=-2.5).shift_diagonal(0.3)
    pool = state_pool(model, 1000)
    pool.add(random_states(40, 7))
    weights, power = states.whole_log_weights(model)
    with mpmath.workdps(50):
        truth, _ = states.summed([weights[place] for place in states.places_of(pool.states())], power)
        assert pool.lower <= truth
        assert truth - pool.lower < 1e-12 * max(1.0, strength)


def _parts(model):
    return model.field, model.coupling


def test_all_states_are_an_exact_answer():
    model = sz.generators.complete(n=8, strength=0.1, seed=0)
    result = sz.log_z(model, "states")
    assert result.kind is sz.Kind.EXACT
    truth = states.solve(model)[0]
    assert result.lower <= truth <= result.upper
    assert result.upper - result.lower < 1e-11
    found = sz.marginals(model, "states")
    assert found.kind is sz.Kind.EXACT
    assert np.allclose(found.mean, sz.marginals(model, "exact").mean, atol=1e-12)


# ------------------------------------------------------------------------------------------------------ the search


def test_the_search_finds_what_flips_of_heavy_states_lead_to():
    # A literal search in Python: flip each spin of every state known, keep what is within the cutoff, until done.
    model = sz.generators.complete(n=12, strength=1.5, seed=5)
    every = [tuple(x) for x in states.all_states(12).tolist()]
    weight = dict(zip(every, model.log_weight(states.all_states(12)).tolist(), strict=True))

    def neighbors(x):
        return [(*x[:i], -x[i], *x[i + 1 :]) for i in range(12)]

    peaks = [x for x in every if all(weight[y] < weight[x] for y in neighbors(x))]
    known, queue = set(peaks), list(peaks)
    while queue:
        for y in neighbors(queue.pop()):
            if y not in known and weight[y] > max(weight.values()) - CUTOFF:
                known.add(y)
                queue.append(y)
    pool = state_pool(model, 4096)
    pool.add(np.array(peaks, dtype=np.int8))
    search(pool, path_to(model))
    found = {tuple(state) for state in pool.states().tolist()}
    assert found <= known
    # What was not expanded holds a hundred-thousandth.
    assert logsumexp([weight[x] for x in found]) - logsumexp([weight[x] for x in known]) > -1e-4
    assert len(found) > len(peaks) + 50


def test_quenches_end_where_no_flip_helps():
    model = sz.generators.grid(side=6, strength=1.0, seed=0)
    path = path_to(model)
    ends = quench(path, random_states(50, 36))
    assert np.all(ends * fields(path, ends) >= 0)
    pool = state_pool(model, 10_000)
    fill(pool, path, random_states(0, 36), 200, np.random.default_rng(0))
    assert len(pool) > 20
    for i in range(36):
        flipped = ends.copy()
        flipped[:, i] *= -1
        assert np.all(model.log_weight(flipped) <= model.log_weight(ends) + 1e-12)


# ------------------------------------------------------------------------------------------------------- the share


def test_the_share_is_that_of_the_states_found_again():
    model = sz.generators.complete(n=6, strength=0.5, seed=1)
    pool = state_pool(model, 20)
    heavy = states.all_states(6)[np.argsort(-model.log_weight(states.all_states(6)))[:20]]
    pool.add(heavy)
    truth = math.exp(pool.log_sum - states.solve(model)[0])
    found = drawn_exactly(model, 40_000, 1)
    share = share_held(pool, found)
    assert share.share == pytest.approx(pool.contains(found.x).mean())
    # Independent states: the binomial error, and two parts in 40,000 for what all of them missed.
    binomial = math.sqrt(share.share * (1 - share.share) / 40_000) / share.share
    assert share.std_error == pytest.approx(math.hypot(binomial, 2 / 40_000), rel=1e-4)
    assert abs(math.log(share.share / truth)) < 3 * share.std_error
    outcome = pool_outcome(pool, share)
    assert outcome.log_z == pytest.approx(pool.log_sum - math.log(share.share), abs=1e-12)


def test_states_of_one_family_count_as_one():
    model = sz.generators.complete(n=6, strength=0.5, seed=1)
    pool = state_pool(model, 5)
    pool.add(states.all_states(6)[np.argsort(-model.log_weight(states.all_states(6)))[:5]])
    single = drawn_exactly(model, 1000, 3)
    family = np.repeat(np.arange(1000), 10)
    copied = Run.of_families(np.repeat(single.x, 10, axis=0), np.full(10_000, 1e-4), family)
    assert share_held(pool, copied).share == pytest.approx(share_held(pool, single).share)
    assert share_held(pool, copied).std_error == pytest.approx(share_held(pool, single).std_error)
    assert share_held(pool, copied).families == pytest.approx(1000)


def test_states_count_by_their_weights():
    model = sz.generators.complete(n=4, strength=0.5, seed=1)
    pool = state_pool(model, 5)
    pool.add(states.all_states(4)[:1])
    x = np.repeat(states.all_states(4)[:2], 10, axis=0)
    weight = np.repeat([0.025, 0.075], 10)
    assert share_held(pool, Run.of_families(x, weight, np.arange(20))).share == pytest.approx(0.25)


# ------------------------------------------------------------------------------------------------------- the method


@pytest.mark.parametrize("strength", [1.0, 2.0, 4.0, 8.0])
def test_strong_couplings_are_all_but_exact_at_twenty_spins(strength):
    for seed in range(3):
        model = sz.generators.complete(n=20, strength=strength, seed=40 + seed)
        result = sz.log_z(model, "states")
        truth = sz.log_z(model, "exact")
        assert result.lower <= truth.upper
        assert abs(result.log_z - truth.log_z) < 1e-3
        assert result.std_error < 0.02
        assert result.status.converged


def test_weak_couplings_are_said_to_be_out_of_reach():
    model = sz.generators.complete(n=100, strength=0.02, seed=0)
    result = sz.log_z(model, "states", population=200)
    assert result.kind is sz.Kind.LOWER_BOUND
    assert result.std_error is None
    assert not result.status.converged
    assert result.trusted is False
    assert "a loose lower bound" in result.status


@pytest.mark.slow
def test_estimates_where_the_pool_holds_a_part_only():
    model = sz.generators.complete(n=18, strength=0.1, seed=0)
    truth = sz.log_z(model, "exact").log_z
    errors = []
    for seed in range(10):
        result = sz.log_z(model, "states", population=1000, max_states=20_000, seed=seed)
        assert 0.1 < result.details["share"] < 0.95
        assert result.lower < truth - 0.03
        errors.append((result.log_z - truth) / result.std_error)
    assert np.abs(errors).max() < 4
    assert np.mean(np.square(errors)) < 2.5


def test_marginals_and_samples_are_those_of_the_states_found():
    model = sz.generators.complete(n=15, strength=2.0, seed=0)
    truth = sz.marginals(model, "exact")
    found = sz.marginals(model, "states")
    assert np.abs(found.mean - truth.mean).max() < 1e-4
    assert np.abs(found.pair_mean - truth.pair_mean).max() < 1e-4
    drawn = sz.sample(model, 4000, "states", seed=3)
    assert np.abs(drawn.mean(axis=0) - truth.mean).max() < 0.08
    assert States(max_states=2**15).run(model).kind is sz.Kind.ESTIMATE


def test_samples_of_a_small_share_come_with_a_warning():
    with pytest.warns(sz.errors.InaccurateWarning, match="hold"):
        sz.sample(sz.generators.complete(n=40, strength=0.05, seed=0), 5, States(population=50))


@pytest.mark.parametrize(
    "options", [{"population": 1}, {"runs": 1}, {"quenches": -1}, {"max_states": 0}, {"seed": 0.5}]
)
def test_bad_options_are_refused_by_name(options):
    with pytest.raises(sz.errors.OptionError, match=next(iter(options))):
        States(**options)


@pytest.mark.parametrize("how", ["offset", "diagonal"])
def test_a_huge_constant_does_not_touch_the_marginals(how):
    model = sz.Ising([0.3, 0.2], [[0.0, 0.5], [0.5, 0.0]])
    huge = sz.Ising(model.field, model.coupling, -1e15) if how == "offset" else model.shift_diagonal(1e15)
    assert np.allclose(sz.marginals(huge, "states").mean, sz.marginals(model, "exact").mean, atol=1e-12)
    result = sz.log_z(huge, "states")
    exact = sz.log_z(huge, "exact")
    assert result.lower <= exact.upper
    assert result.upper >= exact.lower


def test_states_that_share_a_slot_or_a_word_are_told_apart():
    """Tables as full as they may be, and states that differ in one of two words only."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = np.ones((7, 70), dtype=np.int8)
        x[:, rng.choice(70, size=3)] = rng.choice(np.array([-1, 1], dtype=np.int8), size=(7, 3))
        distinct = np.unique(x, axis=0)
        keys, table, is_new = np.empty((7, 2), dtype=np.uint64), np.full(8, EMPTY), np.empty(7, dtype=np.bool_)
        assert insert(table, keys, 0, pack(x), is_new) == len(distinct) == is_new.sum()
        found = np.empty(7, dtype=np.bool_)
        contains(table, keys, pack(x), found)
        assert found.all()
        contains(table, keys, pack(-x), found)
        assert not found.any()


def test_a_pool_of_more_spins_than_a_float_has_powers_of_two():
    pool = state_pool(sz.generators.chain(n=1200, strength=1.0), 10)
    assert not pool.can_be_filled


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (40, 3), (200, 5), (30, 700)])
def test_distinct_states_are_those_of_numpy(shape):
    x = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=shape)
    x = np.concatenate([x, x[::2]])
    np.testing.assert_array_equal(distinct(x), np.unique(x, axis=0))

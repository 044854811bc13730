"""What is made of log Z: probabilities of states, ratios of two models, covariances."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz.errors import ModelError, OptionError, TooLargeError
from spectralz.sampling.bridge import Bridge, bridge, difference_of, groups_of
from spectralz.sampling.path import from_model, path_to
from spectralz.sampling.population import Population, Run, carry, visit
from spectralz.sampling.sweeps import STEP, spaced_by
from spectralz.trust.judgment import Judgment
from spectralz.trust.states import judge_bridge
from tests.reference.states import all_states

MODELS = {
    "dense": sz.generators.complete(7, 0.6, seed=0),
    "grid": sz.generators.grid(3, 1.0, seed=1),
    "islands": sz.Ising.from_edges(5, [(0, 1), (3, 4)], [1.0, -2.0], field=[0.1, 0.0, 0.5, 0.0, -0.3]),
    "sure": sz.Ising.from_edges(3, [(0, 1), (1, 2)], [30.0, -40.0], field=[25.0, 0.0, 0.0]),
    "single": sz.Ising(field=[0.7]),
    "none": sz.Ising(field=[]),
}


def probabilities(model):
    weight = np.asarray(model.log_weight(all_states(model.n)), dtype=float)
    return np.exp(weight - np.logaddexp.reduce(weight))


# ---------------------------------------------------------------------------------------------- log P of states


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_all_states_add_up_to_one(name):
    model = MODELS[name]
    found = sz.log_prob(model, all_states(model.n))
    assert np.exp(found.log_prob) == pytest.approx(probabilities(model), abs=1e-12)
    assert np.asarray(found) is not found.log_prob
    assert found.lower <= found.estimate.log_z <= found.upper
    assert found.std_error is None


def test_values_of_states():
    model = MODELS["grid"]
    x = all_states(9)[::37]
    spins, bits = sz.log_prob(model, x), sz.log_prob(model, (x + 1) // 2, values="01")
    assert np.array_equal(spins.log_prob, bits.log_prob)
    assert sz.log_prob(model, x[0]).log_prob.shape == (1,)
    assert sz.log_prob(model, x == 1, values="01").mean == spins.mean
    machine = sz.RBM([[1.0, -2.0]], [0.5], [0.0, 1.0])
    units = (all_states(3) + 1) // 2
    assert np.exp(sz.log_prob(machine, units).log_prob).sum() == pytest.approx(1.0)


def test_estimates_have_an_error_and_a_method_of_ones_own():
    model = MODELS["dense"]
    found = sz.log_prob(model, all_states(7), "annealing", population=500, runs=2)
    assert found.std_error > 0.0
    assert "±" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["std_error"] == found.std_error


@pytest.mark.parametrize(
    ("states", "values", "words"),
    [
        ([[0, 1] * 3 + [1]], None, "values='01'"),
        ([[-1] * 7], "01", "values='pm1'"),
        ([[1] * 6], None, "rows of 7 values"),
        ([["a"] * 7], None, "only -1 and 1"),
        ([[1] * 7], "10", "'pm1'"),
        ([[1], [1, 2]], None, "different lengths"),
    ],
)
def test_states_that_are_none(states, values, words):
    with pytest.raises(ModelError, match=words):
        sz.log_prob(MODELS["dense"], states, values=values)


# ------------------------------------------------------------------------------------------------------ all pairs


@pytest.mark.parametrize("name", MODELS)
def test_the_covariance_of_all_pairs(name):
    model = MODELS[name]
    x, p = all_states(model.n), probabilities(model)
    found = sz.marginals(model, pairs="all")
    mean = p @ x
    assert found.covariance == pytest.approx((x * p[:, None]).T @ x - np.outer(mean, mean), abs=1e-12)
    assert found.has_all_pairs
    assert found.kind is sz.Kind.EXACT


@pytest.mark.parametrize("method", ["annealing", "states", "quadrature"])
def test_other_methods_of_all_pairs(method):
    model = sz.generators.curie_weiss(8, 0.8, field=0.1) if method == "quadrature" else MODELS["grid"]
    x, p = all_states(model.n), probabilities(model)
    mean = p @ x
    found = sz.marginals(model, method, pairs="all")
    assert found.covariance == pytest.approx((x * p[:, None]).T @ x - np.outer(mean, mean), abs=0.03)


def test_auto_of_all_pairs_where_nothing_is_exact():
    found = sz.marginals(MODELS["grid"], pairs="all", exclude=["exact", "quadrature"])
    assert found.estimate.method.name == "annealing"
    assert found.has_all_pairs


def test_pairs_with_evidence_and_tables():
    model = MODELS["grid"]
    x = all_states(9)
    p = probabilities(model) * (x[:, 4] == 1)
    p /= p.sum()
    found = sz.marginals(model, pairs="all", given={4: +1})
    mean = p @ x
    assert found.covariance == pytest.approx((x * p[:, None]).T @ x - np.outer(mean, mean), abs=1e-12)
    table = found.pair_table(8, 0)
    for row, a in enumerate((-1, 1)):
        for column, b in enumerate((-1, 1)):
            assert table[row, column] == pytest.approx(p[(x[:, 8] == a) & (x[:, 0] == b)].sum(), abs=1e-12)


def test_pairs_of_units():
    machine = sz.RBM([[1.0, -2.0], [0.3, 0.4]], [0.5, 0.1], [0.0, 1.0])
    v = (all_states(4) + 1) // 2
    p = probabilities(machine.to_ising())
    mean = p @ v
    found = sz.marginals(machine, pairs="all")
    assert found.covariance == pytest.approx((v * p[:, None]).T @ v - np.outer(mean, mean), abs=1e-12)
    assert found.pair_table("v0", "h1")[1, 1] == pytest.approx(p[(v[:, 0] == 1) & (v[:, 3] == 1)].sum())


def test_pairs_that_are_refused():
    with pytest.raises(OptionError, match="gives no means of pairs that are not coupled"):
        sz.marginals(MODELS["grid"], "bp", pairs="all")
    with pytest.raises(TooLargeError, match="pairs"):
        sz.marginals(sz.Ising(field=np.zeros(10_000)), pairs="all")
    found = sz.marginals(MODELS["grid"])
    with pytest.raises(ModelError, match='pairs="all"'):
        _ = found.covariance
    with pytest.raises(ModelError, match="not listed"):
        found.pair_table(0, 8)
    with pytest.raises(ModelError, match="no spin"):
        found.pair_table(0, 99)


# ---------------------------------------------------------------------------------------------------------- ratios


def close_to(model, seed):
    return model + 0.3 * sz.generators.complete(model.n, 0.3, seed=seed)


def test_ratios_of_models_that_are_solved():
    first, second = MODELS["dense"], close_to(MODELS["dense"], 5)
    found = sz.log_ratio(second, first)
    assert found.kind is sz.Kind.EXACT
    assert found.value == pytest.approx(sz.log_z(second).log_z - sz.log_z(first).log_z, abs=1e-12)


def test_the_way_from_one_model_to_another_is_right_and_so_is_its_error():
    deviations, errors = [], []
    for seed in range(10):
        first = sz.Ising([0.1] * 12, 0.2 * np.ones((12, 12)) * (seed + 1) / 10, offset=3.0)
        second = close_to(first, seed)
        rng = np.random.default_rng(seed)
        ends = [carry(path, spaced_by(path, STEP, rng), 1, 600, rng) for path in map(path_to, (first, second))]
        way = bridge(first, second, *map(as_run, ends), deadline=Deadline.after(0.2), rng=rng)
        found = judge_bridge(way, [])
        truth = sz.log_z(second).log_z - sz.log_z(first).log_z - second.constant + first.constant
        assert found.trusted
        deviations.append((found.log_z - truth) / found.std_error)
        errors.append(found.std_error)
    assert 0.4 < np.sqrt(np.mean(np.square(deviations))) < 1.6
    assert max(errors) < 0.1


# The way between two tiny models, whose states are listed.

PAIRS = {
    "dense": (sz.generators.complete(6, 0.5, seed=2), sz.generators.complete(6, 0.7, seed=3)),
    "sparse": (
        sz.Ising.from_edges(5, [(0, 1), (1, 2), (2, 3)], [0.8, -0.5, 0.6], [0.2, 0.0, -0.4, 0.1, 0.5], offset=2.0),
        sz.Ising.from_edges(5, [(0, 1), (2, 3), (3, 4)], [-0.6, 0.9, 0.7], [-0.3, 0.4, 0.0, 0.6, -0.2], offset=-1.0),
    ),
}


def ratio_of(first, second):
    """Return log(Z_second / Z_first) without constants, by enumeration."""
    above, below = (np.logaddexp.reduce(np.asarray(model.log_weight(all_states(model.n)))) for model in (second, first))
    return float(above - below) - second.constant + first.constant


def as_group(x, weight, family=None):
    """Return a population of one group; log Z of its model counts as 0."""
    return Population(np.zeros(1), x, weight[None], np.arange(len(x)) if family is None else family)


def as_run(population):
    return Run.of_families(population.x, population.weights(), population.family)


def exact_states(model, size, rng):
    """Return a group of independent states of a model."""
    p = probabilities(model)
    return as_group(all_states(model.n)[rng.choice(len(p), size, p=p)], np.full(size, 1.0 / size))


@pytest.mark.parametrize("resample_below", [0.5, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.0, 1.0))])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_way_from_exact_states_has_the_ratio_as_its_mean(pair, is_weighted, resample_below):
    first, second = PAIRS[pair]
    path, rng = from_model(first, second), np.random.default_rng(0)
    every, points, size = all_states(first.n), np.array([0.0, 0.4, 1.0]), 2**first.n
    # Every state once, with its probability as its weight: without the weights the answer would be another.
    whole = as_group(every, probabilities(first))
    ratios = []
    for _ in range(150):
        start = whole if is_weighted else exact_states(first, size, rng)
        (end,) = visit(path, points, (2,), start, rng, resample_below=resample_below)
        ratios.append(math.exp(end.mean_log_z - ratio_of(first, second)))
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert 0.001 < error < 0.1
    assert abs(np.mean(ratios) - 1.0) < 4.0 * error
    unweighted = np.logaddexp.reduce(difference_of(first, second, every)) - math.log(size)
    assert abs(math.exp(unweighted - ratio_of(first, second)) - 1.0) > 8.0 * error


@pytest.mark.parametrize("pair", PAIRS)
def test_weights_and_families_of_the_start_are_carried(pair):
    first, second = PAIRS[pair]
    path, size = from_model(first, second), 2**first.n
    weight = np.random.default_rng(1).dirichlet(np.ones(size))
    family = np.arange(size) // 3
    start = as_group(all_states(first.n), weight, family)
    rng = np.random.default_rng(2)
    begun, end = visit(path, np.array([0.0, 1.0]), (0, 1), start, rng, resample_below=0.0)
    assert begun.mean_log_z == pytest.approx(0.0, abs=1e-12)
    assert begun.weights() == pytest.approx(weight)
    change = np.asarray(second.log_weight(begun.x) - first.log_weight(begun.x)) - second.constant + first.constant
    total = weight @ np.exp(change)
    assert end.mean_log_z == pytest.approx(math.log(total))
    assert end.weights() == pytest.approx(weight * np.exp(change) / total)
    for population in begun, end:
        assert np.array_equal(population.family, family)
    shares = np.bincount(family, weights=end.weights(), minlength=size)
    assert end.families() == pytest.approx(1.0 / (shares**2).sum())
    assert np.array_equal(start.x, all_states(first.n))  # what was given is left as it was


def test_states_without_weight_die_on_the_way():
    first, second = PAIRS["dense"]
    size, rng = 64, np.random.default_rng(3)
    weight = np.where(np.arange(size) % 4 == 1, 4.0 / size, 0.0)
    start = as_group(all_states(6), weight, np.arange(size)[::-1].copy())
    (end,) = visit(from_model(first, second), np.linspace(0.0, 1.0, 4), (3,), start, rng, resample_below=1.0)
    assert set(end.family) <= set(start.family[weight > 0.0])
    assert len(set(end.family)) > 4
    assert np.isfinite(end.mean_log_z)


@pytest.mark.parametrize("resample_below", [0.0, 1.0])
def test_states_that_cannot_move_are_resampled_by_their_weights(resample_below):
    # Two spins held together in either way: what is resampled wrongly, no sweep mends.
    first, second = (sz.Ising.from_edges(2, [(0, 1)], [30.0], [field, field]) for field in (0.0, 0.6))
    size, rng = 2000, np.random.default_rng(6)
    x = np.repeat(np.array([[1, 1], [-1, -1]], np.int8), size // 2, axis=0)
    weight = np.where(x[:, 0] > 0, 0.25, 0.75) / (size / 2)
    points = np.array([0.0, 0.3, 0.7, 1.0])
    start = as_group(x, weight)
    (end,) = visit(from_model(first, second), points, (3,), start, rng, resample_below=resample_below)
    up, down = 0.25 * math.exp(1.2), 0.75 * math.exp(-1.2)
    assert math.exp(end.mean_log_z) == pytest.approx(up + down, rel=0.005)
    assert end.weights()[end.x[:, 0] > 0].sum() == pytest.approx(up / (up + down), rel=0.005)
    assert np.array_equal(end.x, start.x[end.family])
    assert (len(set(end.family)) < size) == (resample_below > 0.0)


def test_states_on_the_way_follow_the_models_in_between():
    first, second = PAIRS["sparse"]
    rng, count = np.random.default_rng(4), 20_000
    start = exact_states(first, count, rng)
    (seen,) = visit(from_model(first, second), np.array([0.6]), (0,), start, rng, sweeps=20)
    mean = probabilities(0.4 * first + 0.6 * second) @ all_states(5)
    assert np.abs(seen.x.mean(axis=0) - mean).max() < 5.0 / math.sqrt(count)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_bridge_between_exact_states_is_right(pair):
    first, second = PAIRS[pair]
    rng = np.random.default_rng(5)
    there, back = (as_run(exact_states(model, 1600, rng)) for model in (first, second))
    way = bridge(first, second, there, back, deadline=Deadline.after(1e6), rng=rng)
    assert len(way.there) == len(way.back) == 32
    assert way.models >= 1
    found = judge_bridge(way, [])
    assert found.trusted
    assert found.why == ""
    assert 0.0 < found.std_error < 0.1
    assert abs(found.log_z - ratio_of(first, second)) < 4.0 * found.std_error


@pytest.mark.parametrize("pair", PAIRS)
def test_weights_count_on_both_ways(pair):
    """States of all kinds alike, weighted by what they are in their model, each a family."""
    first, second = PAIRS[pair]
    rng, copies = np.random.default_rng(6), 101
    x = np.repeat(all_states(first.n), copies, axis=0)
    whole = [as_run(as_group(x, np.repeat(probabilities(model), copies) / copies)) for model in (first, second)]
    groups = groups_of(whole[0], rng)
    assert np.exp(groups.log_z).sum() == pytest.approx(1.0)
    drawn = (np.exp(groups.log_z)[:, None] * groups.share).ravel() @ groups.x
    assert np.abs(drawn - whole[0].weight @ whole[0].x).max() < 0.1
    way = bridge(first, second, *whole, deadline=Deadline.after(1e6), rng=rng)
    assert abs(judge_bridge(way, []).log_z - ratio_of(first, second)) < 0.2


# Judged by hand.


def test_the_middle_of_a_bridge_and_its_error_by_hand():
    found = judge_bridge(Bridge(np.log([1.0, 3.0]), np.log([2.0, 2.0]), 5), [])
    assert found.log_z == pytest.approx(math.log(2.0))
    # The jackknife over two runs: log 1 and log 3, whose variance is (log 3 / 2)^2; half of its root
    assert found.std_error == pytest.approx(math.log(3.0) / 4.0)
    assert found.trusted
    # Ways that are apart by more than their scatter
    apart = judge_bridge(Bridge(np.full(4, 0.2), np.full(4, 0.8), 5), [])
    assert apart.log_z == pytest.approx(0.5)
    assert apart.std_error == pytest.approx(0.3)


def test_a_bridge_is_not_trusted_if_something_is_wrong():
    close = Bridge(np.array([0.00, 0.02, 0.01, 0.01]), np.array([0.01, 0.03, 0.02, 0.00]), 5)
    good, few = Judgment(0.0, 0.1, True), Judgment(0.0, 0.1, False, "; too few families")
    assert judge_bridge(close, [good, good]).trusted
    for states in ([few, good], [good, few]):
        assert not judge_bridge(close, states).trusted
    # One run out of eight gets lost: its mean log is far away, but the log of the mean hardly moves.
    lost = Bridge(np.append(np.zeros(7), -100.0), np.zeros(8), 5)
    assert not judge_bridge(lost, [good, good]).trusted
    assert "out of equilibrium" in judge_bridge(lost, [good, good]).why


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_close_models_have_a_smaller_error_than_each():
    model = sz.generators.complete(70, 0.15, seed=0)
    found = sz.log_ratio(1.02 * model, model, work=1e9)
    each = sz.log_z(model, work=1e9)
    assert found.kind is sz.Kind.ESTIMATE
    assert found.std_error < 0.5 * each.std_error
    energy = sz.energy(model, "annealing", work=1e9)
    assert found.value == pytest.approx(-0.02 * energy.value, abs=0.02 * 3.0 * energy.std_error + 0.1)
    assert sz.log_ratio(1.02 * model, model, work=1e9) == found


def test_ratios_of_other_models_are_refused():
    with pytest.raises(ModelError, match="models of the same spins"):
        sz.log_ratio(MODELS["dense"], MODELS["grid"])


# --------------------------------------------------------------------------------------------------------- samples


def test_samples_take_a_generator_and_go_on():
    model = MODELS["grid"]
    rng = np.random.default_rng(7)
    first, second = sz.sample(model, 20, seed=rng), sz.sample(model, 20, seed=rng)
    assert np.array_equal(first, sz.sample(model, 20, seed=7))
    assert not np.array_equal(first, second)

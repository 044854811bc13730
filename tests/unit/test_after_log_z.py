"""What is made of log Z: probabilities of states, ratios of two models, covariances."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import ModelError, OptionError, TooLargeError
from spectralz.parts.annealer import Annealer
from spectralz.parts.bridging import bridge
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
        runs = []
        for model in (first, second):
            with Annealer(model) as annealer:
                runs.append(list(annealer.runs(annealer.temperatures(rng), 100, 6, rng)))
        found = bridge(first, second, *runs, seconds=0.2, rng=rng)
        truth = sz.log_z(second).log_z - sz.log_z(first).log_z - second.constant + first.constant
        deviations.append((found.value - truth) / found.std_error)
        errors.append(found.std_error)
    assert 0.4 < np.sqrt(np.mean(np.square(deviations))) < 1.6
    assert max(errors) < 0.1


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_close_models_have_a_smaller_error_than_each():
    model = sz.generators.complete(70, 0.15, seed=0)
    found = sz.log_ratio(1.02 * model, model, work=1e8)
    each = sz.log_z(model, work=1e8)
    assert found.kind is sz.Kind.ESTIMATE
    assert found.std_error < 0.5 * each.std_error
    energy = sz.energy(model, "annealing", work=2e8)
    assert found.value == pytest.approx(-0.02 * energy.value, abs=0.02 * 3.0 * energy.std_error + 0.1)
    assert sz.log_ratio(1.02 * model, model, work=1e8) == found


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

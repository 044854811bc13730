"""Chains with a side summed out: their weights, their law and their bases against sums over all states."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

import spectralz as sz
from spectralz.model.coupling.base import Coupling
from spectralz.model.coupling.structured import Bipartite
from spectralz.sampling.engines.collapsed import Sides, collapsed_engine, operations_of, sides_of, sides_that_pay
from spectralz.sampling.engines.dense import dense_operations
from spectralz.sampling.engines.sparse import sparse_operations
from spectralz.sampling.path import base_rates
from tests.helpers import with_slow

BETAS = np.linspace(0.0, 1.0, 21)


def machine(kept=4, summed=6, strength=0.6, seed=0, field=0.5):
    rng = np.random.default_rng(seed)
    weights = strength * rng.normal(size=(kept, summed))
    return sz.Ising.from_bipartite(weights, field * rng.normal(size=kept + summed))


def two_sides(model):
    """The sides of a bipartite model, also if there is nothing to keep."""
    sides = model.storage.sides
    return None if sides is None else Sides(*sides)


def all_states(n):
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)


def literal(model, sides, base, v, beta):
    """Log-weight of kept states at a point of the path, summed over every state of the other side."""
    found = []
    for kept in v:
        x = np.empty((2 ** len(sides.summed), model.n))
        x[:, sides.kept] = kept
        x[:, sides.summed] = all_states(len(sides.summed))
        found.append(logsumexp((1.0 - beta) * (x @ base) + beta * (model.log_weight(x) - model.constant)))
    return np.array(found)


def steps_of(betas):
    return np.append(betas[0], betas[:-1]), betas, np.append(betas[1:], betas[-1])


# ------------------------------------------------------------------------------------------------------- the sides


def test_sides_are_independent_and_the_larger_one_is_summed_out():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        color = rng.integers(2, size=n)
        pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if color[i] != color[j] and rng.random() < 0.3]
        model = sz.Ising.from_edges(n, pairs, np.ones(len(pairs)))
        sides = two_sides(model)
        assert sorted([*sides.kept, *sides.summed]) == list(range(n))
        assert not np.any(model.coupling.toarray()[np.ix_(sides.kept, sides.kept)])
        assert not np.any(model.coupling.toarray()[np.ix_(sides.summed, sides.summed)])
        # The larger color of each connected part.
        parts = model.storage.component_labels()
        assert len(sides.summed) == sum(
            max(np.sum(parts[sides.summed] == part), np.sum(parts[sides.kept] == part)) for part in set(parts.tolist())
        )
        assert len(sides.summed) >= len(sides.kept)


def test_what_is_not_bipartite_has_no_sides():
    triangle = sz.Ising.from_edges(5, [(0, 1), (1, 2), (0, 2), (3, 4)], np.ones(4))
    assert two_sides(triangle) is None
    assert two_sides(sz.generators.complete(n=30, strength=1.0, seed=0)) is None
    for sides in (sides_of, sides_that_pay):
        assert sides(sz.Ising([0.1, 0.2])) is None  # nothing to keep


def test_a_dense_matrix_of_two_layers_has_sides_too():
    model = machine(3, 5)
    dense = sz.Ising(model.field, model.storage.dense())
    assert [list(side) for side in (two_sides(dense).kept, two_sides(dense).summed)] == [[0, 1, 2], [3, 4, 5, 6, 7]]


@pytest.mark.parametrize("density", [1.0, 0.6, 0.2, 0.0])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (1, 6), (6, 1), (1, 1), (0, 3), (3, 0)])
def test_the_sides_of_a_machine_are_those_that_a_search_finds(shape, density):
    """A full row and a full column tell them at once, and without these it may have several parts."""
    rng = np.random.default_rng([*shape, int(10 * density)])
    for _ in range(20):
        storage = sz.Ising.from_bipartite(rng.normal(size=shape) * (rng.random(shape) < density)).storage
        searched = Coupling.sides.func(storage.written_out)  # edge by edge, whatever writes it out
        assert isinstance(storage, Bipartite)
        assert [side.tolist() for side in storage.sides] == [side.tolist() for side in searched]
        assert sorted(np.concatenate(storage.sides).tolist()) == list(range(sum(shape)))


def test_a_full_row_alone_does_not_tell_the_sides():
    weights = np.zeros((3, 4))
    weights[0] = 1.0  # the other two spins of the first side have no couplings, and are summed out with the second
    assert [side.tolist() for side in sz.Ising.from_bipartite(weights).storage.sides] == [[0], [1, 2, 3, 4, 5, 6]]
    assert [side.tolist() for side in sz.Ising.from_bipartite(weights.T).storage.sides] == [[4], [0, 1, 2, 3, 5, 6]]


def test_machines_are_collapsed_and_grids_are_not():
    assert sides_that_pay(machine(64, 100)) is not None
    assert sides_that_pay(machine(500, 784)) is not None
    assert sides_that_pay(machine(784, 10)) is not None
    for side in (6, 10, 30):
        assert sides_that_pay(sz.generators.grid(side=side, strength=1.0, seed=0)) is None
    assert sides_that_pay(sz.Ising.from_edges(500, [(i, i + 1) for i in range(499)], np.ones(499))) is None


# ----------------------------------------------------------------------------------------------------- the weights


@pytest.mark.parametrize("strength", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("shape", [(4, 6), (7, 3), (1, 1), (0, 3)])
def test_weights_change_along_the_path_as_sums_over_all_states_do(shape, strength):
    model = machine(*shape, strength=strength)
    sides = two_sides(model)
    base = np.random.default_rng(5).normal(size=model.n)
    engine = collapsed_engine(model, sides, base)
    chains = engine.start(70, np.random.default_rng(0))
    before, at, after = np.array([0.0, 0.2]), np.array([0.3, 0.7]), np.array([0.6, 1.0])
    for k in range(2):
        back, on = chains.sweep(before[k : k + 1], at[k : k + 1], after[k : k + 1], 2)
        v = chains.states()[:, sides.kept]
        here = literal(model, sides, base, v, at[k])
        # Couplings and exponentials have 7 digits, and there are some tens of terms.
        tolerance = 1e-6 * (1.0 + strength)
        assert np.allclose(back[0], literal(model, sides, base, v, before[k]) - here, atol=tolerance)
        assert np.allclose(on[0], literal(model, sides, base, v, after[k]) - here, atol=tolerance)
    assert engine.log_z_of_base == pytest.approx(logsumexp(all_states(model.n) @ base), abs=1e-9)


@pytest.mark.parametrize("field", [0.01, 1.0])
def test_many_summed_spins_take_more_than_one_logarithm(field):
    # With small fields the factors are about 2, and the product of all of them is no number.
    model = machine(5, 1300, strength=0.05 * field, field=0.3 * field)
    sides = two_sides(model)
    base = field * np.random.default_rng(5).normal(size=model.n)
    chains = collapsed_engine(model, sides, base).start(64, np.random.default_rng(0))
    (back,), (on,) = chains.sweep(np.array([0.4]), np.array([0.5]), np.array([0.7]), 1)
    v = chains.states()[:, sides.kept].astype(float)
    W = 2.0 * model.storage.dense()[np.ix_(sides.kept, sides.summed)]

    def log_weight(beta):
        fields = base + beta * (model.field - base)
        g = fields[sides.summed] + beta * (v @ W)
        return v @ fields[sides.kept] + np.logaddexp(g, -g).sum(axis=1)

    assert np.allclose(back, log_weight(0.4) - log_weight(0.5), atol=2e-5)
    assert np.allclose(on, log_weight(0.7) - log_weight(0.5), atol=2e-5)


# --------------------------------------------------------------------------------------------------------- the law


@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
def test_chains_end_in_the_law_of_their_point(beta):
    """All 2^7 states, kept side and drawn side, by chi-square."""
    model = machine(3, 4, strength=0.8)
    sides = two_sides(model)
    base = 0.4 * np.random.default_rng(2).normal(size=model.n)
    engine = collapsed_engine(model, sides, base)
    size = 128 * 400
    chains = engine.start(size, np.random.default_rng(1))
    chains.sweep(*(np.full(1, beta) for _ in range(3)), 40)
    counts = np.bincount((chains.states() > 0) @ 2 ** np.arange(7)[::-1], minlength=128)
    x = all_states(7)
    log_p = (1.0 - beta) * (x @ base) + beta * (model.log_weight(x) - model.constant)
    expected = size * np.exp(log_p - logsumexp(log_p))
    chi = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi - 127) < 4 * math.sqrt(2 * 127)


def test_states_are_drawn_from_the_base():
    model = machine(3, 4)
    base = np.linspace(-1.0, 1.0, 7)
    x = collapsed_engine(model, two_sides(model), base).start(40_000, np.random.default_rng(0)).states()
    assert np.abs(x.mean(axis=0) - np.tanh(base)).max() < 4 / math.sqrt(40_000)
    assert np.abs(np.cov(x.T) - np.diag(1 - np.tanh(base) ** 2)).max() < 4 / math.sqrt(40_000)


@pytest.mark.parametrize("base", [None, "field", "wrong"])
def test_annealed_weights_are_an_unbiased_estimate_of_z(base):
    model = machine(5, 8, strength=0.7, seed=4)
    sides = two_sides(model)
    chosen = {
        None: base_rates(model, sides),
        "field": model.field.copy(),
        "wrong": np.linspace(-1.0, 1.0, model.n),
    }[base]
    engine = collapsed_engine(model, sides, chosen)
    chains = engine.start(20_000, np.random.default_rng(0))
    _, on = chains.sweep(*steps_of(BETAS), 1)
    weight = np.exp(engine.log_z_of_base + on.sum(axis=0) - (sz.log_z(model, "exact").log_z - model.constant))
    assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / math.sqrt(20_000)
    assert weight.std() < 2.0


@pytest.mark.parametrize(
    "error", with_slow(["factor 2", "sign", "field", "base", "2cosh"], ["factor 2", "field", "base"])
)
def test_planted_errors_are_seen(error):
    """Engines with an error in their path, or cosh for 2cosh in the base: what is compared above is far off."""
    model = machine(5, 8, strength=0.7, seed=4)
    sides = two_sides(model)
    base = 0.3 * np.random.default_rng(5).normal(size=model.n)
    engine = collapsed_engine(model, sides, base)
    path = engine.path
    wrong = {
        "factor 2": path._replace(weights=path.weights / 2),
        "sign": path._replace(weights=-path.weights),
        "field": path._replace(summed_change=0 * path.summed_change),
        "base": path._replace(kept=0 * path.kept),
        "2cosh": path,
    }[error]
    lost = len(sides.summed) * math.log(2.0) if error == "2cosh" else 0.0
    engine = replace(engine, path=wrong, log_z_of_base=engine.log_z_of_base - lost)
    chains = engine.start(20_000, np.random.default_rng(0))
    _, on = chains.sweep(*steps_of(BETAS), 1)
    weight = np.exp(engine.log_z_of_base + on.sum(axis=0) - (sz.log_z(model, "exact").log_z - model.constant))
    assert abs(weight.mean() - 1.0) > 8.0 * weight.std() / math.sqrt(20_000)


# ------------------------------------------------------------------------------------------------------ the chains


def test_results_do_not_depend_on_threads_nor_on_calls():
    model = machine(20, 30)
    sides = two_sides(model)
    base = np.zeros(50)

    def run(each, pieces):
        chains = collapsed_engine(model, sides, base).start(200, np.random.default_rng(0), *each)
        parts = [chains.sweep(*(column[piece] for column in steps_of(BETAS)), 2) for piece in pieces]
        return np.concatenate([on for _, on in parts]), chains.states()

    with ThreadPoolExecutor(3) as pool:
        threaded = run([lambda work, numbers: list(pool.map(work, numbers))], [slice(0, 21)])
    alone = run([], [slice(0, 7), slice(7, 21)])
    assert np.array_equal(threaded[0], alone[0])
    assert np.array_equal(threaded[1], alone[1])


def test_given_states_come_back_and_are_taken():
    model = machine(20, 30)
    engine = collapsed_engine(model, two_sides(model), np.zeros(50))
    x = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(100, 50))
    chains = engine.start_from(x, np.random.default_rng(1))
    assert np.array_equal(chains.states(), x)
    places = np.random.default_rng(2).integers(100, size=100)
    chains.take(places)
    assert np.array_equal(chains.states(), x[places])
    # Weights after a step of no sweeps are those of the states taken.
    one = np.ones(1)
    back, _ = chains.sweep(0.5 * one, one, one, 0)
    fresh = engine.start_from(x[places], np.random.default_rng(3))
    assert np.allclose(back, fresh.sweep(0.5 * one, one, one, 0)[0])


def test_a_single_state_and_a_chunk_and_one_more():
    model = machine(3, 4)
    engine = collapsed_engine(model, two_sides(model), np.zeros(7))
    for size in (1, 64, 65):
        chains = engine.start(size, np.random.default_rng(0))
        back, on = chains.sweep(*steps_of(BETAS), 1)
        assert back.shape == on.shape == (21, size)
        assert chains.states().shape == (size, 7)
        assert set(np.unique(chains.states())) <= {-1, 1}


# -------------------------------------------------------------------------------------------------------- the base


def test_a_symmetric_model_has_a_symmetric_base():
    model = machine(10, 20, strength=2.0, field=0.0)
    assert not np.any(base_rates(model, two_sides(model)))


def test_a_base_between_two_phases_loses_neither():
    """A ferromagnet whose lighter phase has an eighth of the weight: chains must arrive in both."""
    model = sz.Ising.from_bipartite(np.full((16, 40), 0.12), np.full(56, 0.02))
    sides = two_sides(model)
    engine = collapsed_engine(model, sides, base_rates(model, sides))
    chains = engine.start(2000, np.random.default_rng(0))
    betas = np.linspace(0.0, 1.0, 101)
    _, on = chains.sweep(*steps_of(betas), 1)
    weight = np.exp(engine.log_z_of_base + on.sum(axis=0) - sz.log_z(model, "exact").log_z)
    assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / math.sqrt(2000)
    down = weight[chains.states().sum(axis=1) < 0].sum() / weight.sum()
    x = all_states(16)
    fields = 0.02 + 0.12 * x.sum(axis=1)
    log_p = 0.02 * x.sum(axis=1) + 40 * np.logaddexp(fields, -fields)
    truth = np.exp(logsumexp(log_p[x.sum(axis=1) < 0]) - logsumexp(log_p))
    assert down == pytest.approx(truth, abs=0.05)


def test_a_base_loses_no_phase_that_coins_come_to():
    """A machine with strong weights: the base that suits what its fields lead to would miss all but exp(-6) of Z."""
    model = sz.generators.rbm(12, 20, 2.0, seed=430_007)
    sides = two_sides(model)
    engine = collapsed_engine(model, sides, base_rates(model, sides))
    chains = engine.start(1000, np.random.default_rng(0))
    _, on = chains.sweep(*steps_of(np.linspace(0.0, 1.0, 101)), 1)
    found = logsumexp(on.sum(axis=0)) - math.log(1000) + engine.log_z_of_base + model.constant
    assert found == pytest.approx(sz.log_z(model, "exact").log_z, abs=0.5)


def test_a_trained_machine_has_even_weights():
    neural_network = pytest.importorskip("sklearn.neural_network")
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    pixels = load_digits().data / 16.0
    rbm = neural_network.BernoulliRBM(n_components=16, n_iter=15, learning_rate=0.05, random_state=0)
    model = sz.RBM.from_sklearn(rbm.fit((pixels > rng.random(pixels.shape)).astype(float))).to_ising()
    sides = sides_that_pay(model)
    assert len(sides.kept) == 16
    engine = collapsed_engine(model, sides, base_rates(model, sides))
    chains = engine.start(512, np.random.default_rng(0))
    _, on = chains.sweep(*steps_of(np.linspace(0.0, 1.0, 301)), 1)
    weight = np.exp(engine.log_z_of_base + on.sum(axis=0) + model.constant - sz.log_z(model, "exact").log_z)
    assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / math.sqrt(512)
    # From the model's own fields the weights scatter three times as much.
    assert weight.std() < 0.5


def test_sides_are_looked_for_unless_they_cannot_pay():
    """The quick test must not refuse what the cost of the sides themselves allows."""
    rng, answers = np.random.default_rng(0), set()
    for _ in range(60):
        left, right, share = rng.integers(1, 60), rng.integers(1, 60), rng.random()
        i, j = np.nonzero(rng.random((left, right)) < share)
        model = sz.Ising.from_edges(left + right, np.column_stack([i, j + left]), np.ones(len(i)))
        sides, entries = sides_of(model), 2 * model.edge_count
        cost = min(sparse_operations(model.n, entries), dense_operations(model.n))
        pays = sides is not None and operations_of(sides) <= cost
        assert (sides_that_pay(model) is not None) == pays
        answers.add(pays)
    assert answers == {True, False}

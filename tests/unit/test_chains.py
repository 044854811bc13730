"""Chains on a path from a base to a model: of every engine, for any number of states and spins."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz.kernels.coupling import Couplings
from spectralz.sampling.engines.dense import DenseEngine, dense_engine
from spectralz.sampling.engines.lanes import LARGEST_LOG_ODDS, fits_single_precision, log_z_of_fields
from spectralz.sampling.engines.sparse import SparseEngine, sparse_engine
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from tests.helpers import with_slow
from tests.reference import states

SPARSE = sz.Ising.from_edges(
    7,
    [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (1, 4)],
    [1.0, -2.0, 0.5, 1.5, 1.2, -0.7],
    [0.3, 0, -1, 0.2, 0, 0.5, 0.1],
)
DENSE = sz.generators.complete(n=7, strength=0.5, seed=1)


def base_of(name, theta):
    """Return the fields of the base: fair coins, or the fields of the model."""
    return np.zeros(len(theta)) if "coins" in name else theta


def make_engine(name, theta, couplings):
    make = dense_engine if couplings.is_dense else sparse_engine
    return make(theta, couplings, base_of(name, theta), in_double=name.startswith("double"))


def engine_of(name, model):
    return make_engine(name, np.ascontiguousarray(model.field), model.storage.for_kernels())


ENGINES = [
    pytest.param("sparse", SPARSE, id="sparse"),
    pytest.param("dense", DENSE, id="dense"),
    pytest.param("double", DENSE, id="double, dense"),
    pytest.param("double", SPARSE, id="double, sparse"),
    pytest.param("double from coins", DENSE, id="double from coins, dense"),
    pytest.param("double from coins", SPARSE, id="double from coins, sparse"),
]


def energy(name, model, x):
    """Return by how much log-weights grow from the base to the model."""
    return model.log_weight(x) - model.constant - x @ base_of(name, model.field)


def precision(name):
    """Return the largest error of energies of order ten."""
    return 1e-12 if name.startswith("double") else 1e-5


def steps(points):
    points = np.asarray(points, float)
    return np.append(points[0], points[:-1]), points, np.append(points[1:], points[-1])


# ------------------------------------------------------------------------------------------------ the estimate of Z


@pytest.mark.parametrize(("name", "model"), ENGINES)
@pytest.mark.parametrize(("size", "runs"), with_slow([(64 * 150, 1), (1, 2500), (65, 150)], [(1, 2500)]))
def test_weights_on_a_short_path_have_z_as_their_mean(name, model, size, runs):
    # Every state is independent of the others, so that all are draws of one number whose mean is 1.
    engine = engine_of(name, model)
    rng = np.random.default_rng(1)
    total = []
    for _ in range(runs):
        chains = engine.start(size, rng)
        _, on = chains.sweep(*steps([0.0, 0.1, 0.25, 0.45, 0.7, 1.0]), 1)
        total.append(on.sum(axis=0))
    ratio = np.exp(engine.log_z_of_base + np.concatenate(total) + model.constant - states.solve(model)[0])
    error = ratio.std(ddof=1) / math.sqrt(len(ratio))
    assert len(ratio) == size * runs
    assert 0.002 < error < 0.05  # a lost factor would be seen, and there is something to test
    assert abs(ratio.mean() - 1.0) < 4.0 * error


@pytest.mark.parametrize(("name", "model"), ENGINES)
@pytest.mark.parametrize("size", [1, 64, 65, 130])
def test_weights_change_by_the_energies_of_the_states_that_are_left(name, model, size):
    engine = engine_of(name, model)
    chains = engine.start(size, np.random.default_rng(2))
    for before, at, after in ((0.0, 0.0, 0.3), (0.0, 0.3, 0.9), (0.3, 0.9, 1.0), (0.9, 1.0, 1.0)):
        back, on = chains.sweep(np.array([before]), np.array([at]), np.array([after]), 2)
        x = chains.states()
        assert x.shape == (size, model.n)
        assert set(np.unique(x)) <= {-1, 1}
        assert back.shape == on.shape == (1, size)
        expected = energy(name, model, x)
        assert back[0] == pytest.approx((before - at) * expected, abs=precision(name))
        assert on[0] == pytest.approx((after - at) * expected, abs=precision(name))


@pytest.mark.parametrize(("name", "model"), ENGINES)
def test_a_path_in_parts_is_the_whole_path(name, model):
    before, at, after = steps(np.linspace(0.0, 1.0, 13))
    engine = engine_of(name, model)
    whole, parts = (engine.start(100, np.random.default_rng(3)) for _ in range(2))
    back, on = whole.sweep(before, at, after, 1)
    cuts = [slice(0, 1), slice(1, 6), slice(6, 13)]
    found = [parts.sweep(before[cut], at[cut], after[cut], 1) for cut in cuts]
    assert np.array_equal(np.concatenate([each for each, _ in found]), back)
    assert np.array_equal(np.concatenate([each for _, each in found]), on)
    assert np.array_equal(parts.states(), whole.states())


@pytest.mark.parametrize(("name", "model"), ENGINES)
def test_states_go_where_they_are_taken(name, model):
    rng = np.random.default_rng(4)
    chains = engine_of(name, model).start(100, rng)
    chains.sweep(*steps([0.0, 0.5]), 1)
    x = chains.states().copy()
    places = rng.integers(100, size=100)
    chains.take(places)
    assert np.array_equal(chains.states(), x[places])
    one = np.ones(1)
    back, _ = chains.sweep(0.0 * one, one, one, 1)  # with the fields of the states taken
    assert back[0] == pytest.approx(-energy(name, model, chains.states()), abs=precision(name))
    assert len(np.unique(chains.states(), axis=0)) > 10  # copies go their own ways


@pytest.mark.parametrize(("name", "model"), ENGINES)
@pytest.mark.parametrize("size", [1, 65])
def test_chains_begin_in_the_states_given(name, model, size):
    rng = np.random.default_rng(5)
    x = rng.choice(np.array([-1, 1], dtype=np.int8), size=(size, model.n))
    given = x.copy()
    chains = engine_of(name, model).start_from(x, rng)
    assert np.array_equal(chains.states(), given)
    one = np.ones(1)
    back, _ = chains.sweep(0.0 * one, one, one, 1)
    assert back[0] == pytest.approx(-energy(name, model, chains.states()), abs=precision(name))
    assert np.array_equal(x, given)


@pytest.mark.parametrize(("name", "model"), [*ENGINES, pytest.param("sparse", sz.Ising(field=[0.1]), id="one spin")])
def test_states_that_were_given_out_stay_as_they_were(name, model):
    chains = engine_of(name, model).start(100, np.random.default_rng(6))
    given = chains.states()
    kept = given.copy()
    chains.sweep(*steps([0.0, 0.2]), 1)
    assert np.array_equal(given, kept)


# --------------------------------------------------------------------------------------------------------- the ends


@pytest.mark.parametrize(
    ("name", "is_dense"),
    [
        ("sparse", False),
        ("dense", True),
        ("double", False),
        ("double", True),
        ("double from coins", False),
        ("double from coins", True),
    ],
)
@pytest.mark.parametrize("n", [0, 1])
def test_no_spin_and_one_spin(name, is_dense, n):
    couplings = Couplings.of_dense(np.zeros((n, n))) if is_dense else Couplings.of_csr(sp.csr_array((n, n)))
    theta = np.full(n, 0.4)
    engine = make_engine(name, theta, couplings)
    assert engine.operations > 0.0
    rng = np.random.default_rng(7)
    chains = engine.start(70, rng)
    _, on = chains.sweep(*steps(np.linspace(0.0, 1.0, 200)), 1)
    estimate = engine.log_z_of_base + on.sum(axis=0).mean()
    assert estimate == pytest.approx(n * math.log(2.0 * math.cosh(0.4)), abs=0.02)
    chains.take(np.arange(70)[::-1].copy())
    assert chains.states().shape == (70, n)
    again = engine.start_from(np.ones((3, n), dtype=np.int8), rng)
    assert np.array_equal(again.states(), np.ones((3, n)))


def test_log_z_of_independent_spins():
    theta = np.array([0.0, 1e-9, -0.3, 2.0, -17.0, 800.0])
    with mpmath.workdps(50):
        truth = mpmath.fsum(mpmath.log(2 * mpmath.cosh(mpmath.mpf(float(each)))) for each in theta)
    assert log_z_of_fields(theta) == pytest.approx(float(truth), rel=1e-14)
    assert log_z_of_fields(np.zeros(0)) == 0.0


# ---------------------------------------------------------------------------------------------- the choice of engine


@pytest.mark.parametrize("is_dense", [False, True])
def test_single_precision_is_for_fields_that_it_can_hold(is_dense):
    rng = np.random.default_rng(8)
    answers = []
    for _ in range(200):
        n = int(rng.integers(1, 7))
        J = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4) * 10.0 ** rng.uniform(1, 4), 1)
        J, theta = J + J.T, rng.normal(size=n) * 10.0 ** rng.uniform(1, 4)
        couplings = Couplings.of_dense(J) if is_dense else Couplings.of_csr(sp.csr_array(J))
        expected = all(2.0 * (abs(theta[i]) + sum(abs(J[i]))) <= LARGEST_LOG_ODDS for i in range(n))
        assert fits_single_precision(theta, couplings) == expected
        answers.append(expected)
    assert 20 < sum(answers) < 180


def test_spins_without_couplings_have_no_share_in_those_of_others():
    couplings = sz.Ising.from_edges(4, [(1, 2)], [1000.0]).storage.for_kernels()
    assert fits_single_precision(np.array([4500.0, 0.0, 0.0, 4500.0]), couplings)
    assert not fits_single_precision(np.array([0.0, 4500.0, 0.0, 0.0]), couplings)


@pytest.mark.parametrize(
    ("model", "kind", "in_double"),
    [
        (sz.generators.complete(8, 1.0, seed=0), DenseEngine, False),
        (sz.generators.grid(3, 1.0, seed=0), SparseEngine, False),
        (sz.generators.complete(8, 1e3, seed=0), DenseEngine, True),
        (sz.generators.grid(3, 1e3, seed=0), SparseEngine, True),
        (sz.Ising(field=[0.0, 6000.0]), SparseEngine, True),
        (sz.Ising(field=[0.0, 4000.0]), SparseEngine, False),
        (sz.Ising.from_edges(3, [(1, 2)], [5010.0]), SparseEngine, True),
    ],
)
def test_huge_fields_are_kept_in_double_precision(model, kind, in_double):
    assert type(path_to(model).engine) is kind
    assert path_to(model).engine.in_double is in_double


@pytest.mark.parametrize("scale", [1e4, 1e150])
def test_a_dense_model_beyond_single_precision_has_finite_energies_and_its_ground_state(scale):
    n = 8
    model = sz.generators.complete(n, scale, seed=3, field_strength=scale)
    path = path_to(model)
    assert path.engine.in_double
    every = states.all_states(n)
    weights = model.log_weight(every) - model.constant
    ground, highest = every[weights.argmax()], weights.max()
    assert np.sort(weights)[-2] < highest - 100.0  # the rest of the states hold nothing
    points = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 400) / scale, [1.0]])
    chains = path.engine.start(200, np.random.default_rng(10))
    back, on = chains.sweep(*steps(points), 1)
    assert np.isfinite(back).all()
    assert np.isfinite(on).all()
    energies, x = -chains.sweep(np.zeros(1), np.ones(1), np.ones(1), 1)[0][0], chains.states()
    assert energies == pytest.approx(model.log_weight(x) - model.constant, rel=1e-13)
    best = energies == energies.max()
    assert (x[best] == ground).all()
    assert best.mean() > 0.5  # single spins from there on: some are stuck elsewhere
    end = carry(path, points, 1, 200, np.random.default_rng(11))
    assert np.isfinite(end.mean_log_z)
    assert end.weights()[(end.x == ground).all(axis=1)].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["dense", "double", "double from coins"])
def test_fields_are_summed_up_anew_before_rounding_shows(name):
    chains = engine_of(name, DENSE).start(100, np.random.default_rng(9))
    at = np.full(1, 0.5)
    chains.sweep(0.0 * at, at, at, 1)
    chains._h += 0.25  # a rounding that shows
    for _ in range(64):
        back, _ = chains.sweep(0.0 * at, at, at, 1)
    assert back[0] == pytest.approx(-0.5 * energy(name, DENSE, chains.states()), abs=precision(name))

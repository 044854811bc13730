"""Flips of one side of a bipartite model with the other summed out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import spectralz as sz
from spectralz.kernels.sampling.side_flips import Tables, _find_logs, _find_probabilities, fill_tables
from spectralz.portfolio import policy
from spectralz.sampling.engines.collapsed import collapsed_engine, sides_of
from spectralz.sampling.path import LARGEST_BIAS, from_fields, weak_biases
from spectralz.sampling.population import carry
from tests.reference.states import all_states, places_of


def machine(kept=4, summed=6, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((summed, kept))
    return sz.RBM(4.0 * W, rng.standard_normal(summed), rng.standard_normal(kept)).to_ising()


def log_weights_at(engine, v, beta):
    """The log-weights of kept sides on the path, in plain words and double precision."""
    path = engine.path
    kept = path.kept + beta * path.kept_change
    summed = path.summed + beta * (path.summed_change + v.astype(float) @ path.weights.astype(float))
    return v @ kept + np.log(2.0 * np.cosh(summed)).sum(axis=1)


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_chains_visit_states_by_their_weights(beta):
    model = machine()
    sides = sides_of(model)
    engine = collapsed_engine(model, sides, 0.5 * model.field, flips=True)
    at, size, rounds = np.array([beta]), 6400, 12
    chains = engine.start(size, np.random.default_rng(1))
    counts = np.zeros(2 ** len(sides.kept))
    for k in range(rounds + 6):
        chains.sweep(at, at, at, 1)
        if k >= 6:
            counts += np.bincount(places_of(chains.states()[:, sides.kept]), minlength=len(counts))
    log_weight = log_weights_at(engine, all_states(len(sides.kept)), beta)
    p = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    # Successive states of a chain are correlated: their number counts as that of the chains.
    error = np.sqrt(p * (1.0 - p) / size)
    assert np.all(np.abs(counts / counts.sum() - p) < 4.5 * error)
    assert error.max() < 0.01


@pytest.mark.parametrize(("scale", "slack"), [(0.05, 1e-5), (1.0, 1e-4), (6.0, 1e-3)])
def test_ratios_of_flips_are_those_of_double_precision(scale, slack):
    """Also where couplings are so strong that 1 - tanh(y) tanh(2 J) would lose all digits."""
    model = machine(20, 300, scale, seed=3)
    sides, beta = sides_of(model), 0.8
    engine = collapsed_engine(model, sides, np.zeros(model.n), flips=True)
    path = engine.path
    shape = path.weights.shape
    tables = Tables(np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty((shape[0], 2)))
    fill_tables(0, shape[0], beta, path, tables)
    v = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), size=(30, shape[0]))
    v[0] = np.where(path.weights.sum(axis=1) > 0.0, 1, -1)
    pushes = (v.astype(float) @ path.weights).astype(np.float32)
    fields = (2.0 * (path.summed + beta * path.summed_change)).astype(np.float32)
    up, down = np.empty(shape[1], np.float32), np.empty(shape[1], np.float32)
    here = log_weights_at(engine, v, beta)
    logs = np.empty(2)
    for r in range(len(v)):
        _find_probabilities(up, down, pushes[r], fields, np.float32(2.0 * beta))
        for j in range(shape[0]):
            flipped = v[r].copy()
            flipped[j] *= -1
            wanted = log_weights_at(engine, flipped[None], beta)[0] - here[r]
            rows = (tables.less[j], tables.more[j]) if v[r, j] > 0 else (tables.more[j], tables.less[j])
            gain = tables.gain[j, 0 if v[r, j] > 0 else 1]
            _find_logs(up, down, down, up, *rows, logs)
            assert gain + logs[0] == pytest.approx(wanted, abs=slack)
            swapped = sum(math.log(float(q * a + p * b)) for p, q, a, b in zip(up, down, *rows, strict=True))
            assert logs[1] == pytest.approx(swapped, abs=slack)


def test_fields_of_the_summed_side_are_kept_up_to_date():
    model = machine(30, 90, 0.2, seed=5)
    chains = collapsed_engine(model, sides_of(model), model.field, flips=True).start(100, np.random.default_rng(0))
    at = np.linspace(0.1, 1.0, 10)
    before = chains._v.copy()
    chains.sweep(at, at, at, 2)
    assert np.mean(before != chains._v) > 0.1
    wanted = np.matmul(chains._path.weights.T, chains._v)
    assert chains._pushes == pytest.approx(wanted, abs=1e-5)


def test_the_mean_weight_is_z_however_few_points():
    model = machine(5, 8, 0.7, seed=2)
    sides = sides_of(model)
    path = replace(from_fields(model, 0.3 * model.field, sides=sides), flips=True)
    points = np.array([0.0, 0.4, 0.7, 1.0])
    end = carry(path, points, 48, 500, np.random.default_rng(0))
    ratio = np.exp(end.log_z + model.constant - sz.log_z(model, "exact").log_z)
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std(ddof=1) / math.sqrt(len(ratio)) < 0.1
    # The changes of log-weights there and back are those of the path.
    chains = path.engine.start(64, np.random.default_rng(0))
    back, on = chains.sweep(np.array([0.2]), np.array([0.5]), np.array([0.9]), 1)
    v = chains.states()[:, sides.kept]
    here = log_weights_at(path.engine, v, 0.5)
    assert back[0] == pytest.approx(log_weights_at(path.engine, v, 0.2) - here, abs=1e-4)
    assert on[0] == pytest.approx(log_weights_at(path.engine, v, 0.9) - here, abs=1e-4)


# ------------------------------------------------------------------------------------------------- in auto


def test_weak_biases_are_those_of_units_0_and_1():
    rng = np.random.default_rng(0)
    rbm = sz.RBM(rng.normal(size=(6, 4)), 0.8 * rng.normal(size=6), 3.0 * rng.normal(size=4))
    assert max(abs(rbm.hidden)) > 2.0 * LARGEST_BIAS > 2.0 * min(abs(rbm.hidden))  # some are limited
    biases = np.concatenate([rbm.visible, rbm.hidden]) / 2.0
    assert weak_biases(rbm.to_ising()) == pytest.approx(np.clip(biases, -LARGEST_BIAS, LARGEST_BIAS))


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize(("scale", "runs"), [(0.01, True), (0.3, False)])
def test_expectation_propagation_is_left_out_only_where_weights_are_strong(scale, runs):
    model = sz.generators.rbm(200, 110, scale, 0)
    assert model.n >= policy.MANY_SPINS_OF_SIDES
    answer = sz.log_z(model, exclude=["exact", "quadrature", "mps", "annealing", "states"], work=5e9)
    (ep,) = (trial for trial in answer.tried if trial.method == "ep")
    assert (ep.verdict != "not run") == runs
    assert answer.trusted == runs


@pytest.mark.parametrize("scale", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_answers_of_auto_on_trained_and_frozen_machines(scale):
    model = machine(12, 80, scale, seed=7)
    truth = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, exclude=["exact", "quadrature", "states", "mps"], work=1e9)
    assert abs(found.log_z - truth) < 4.0 * found.std_error
    assert found.std_error < 0.2

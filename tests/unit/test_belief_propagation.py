"""Belief propagation against exact answers on forests and its literal transcription on loops."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz._support.compiling import compiled
from spectralz.kernels.propagation import messages as kernel
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.parts.propagation.network import Network
from tests.helpers import forest, heard
from tests.reference import states
from tests.reference.bethe import LoopyBeliefPropagation
from tests.strategies import models

message, mean_log_2cosh = compiled(kernel.message), compiled(kernel.mean_log_2cosh)


def loopy(seed, n=6, strength=0.8, p=0.8):
    model = sz.generators.erdos_renyi(n, p, strength, seed)
    return sz.Ising(model.field, model.coupling, offset=-1.5).shift_diagonal(0.25)


@pytest.mark.parametrize("path", [True, False])
@pytest.mark.parametrize("strength", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_forests_of_a_thousand_spins_are_exact(path, strength, schedule):
    model = forest(1000, seed=7, strength=strength, path=path)
    truth = sz.marginals(model, "exact")
    found = sz.marginals(model, BeliefPropagation(schedule=schedule, max_iter=1))
    assert found.kind is sz.Kind.EXACT
    assert found.estimate.kind is sz.Kind.EXACT
    assert "forest" in found.status
    assert found.status.converged
    assert found.estimate.details["is_forest"]
    assert found.estimate.log_z == pytest.approx(truth.estimate.log_z, rel=1e-10)
    assert found.estimate.lower <= truth.estimate.upper
    assert found.estimate.upper >= truth.estimate.lower
    assert found.estimate.upper - found.estimate.lower < 1e-9 * max(1.0, strength)
    assert np.allclose(found.mean, truth.mean, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.pair_mean, truth.pair_mean, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.probability, truth.probability, rtol=1e-8, atol=0.0)


@given(model=models(max_spins=7))
@settings(max_examples=60)
def test_exactly_the_forests_are_called_exact(model):
    result = sz.log_z(model, BeliefPropagation())
    is_forest = len(model.edges()[0]) == model.n - len(model.components())
    assert (result.kind is sz.Kind.EXACT) == is_forest == result.details["is_forest"]
    if is_forest:
        truth = states.solve(model)[0]
        assert result.lower <= truth <= result.upper
    json.dumps(result.to_dict(), allow_nan=False)


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-300, 1e-8, 1.0, 1e3, 1e150]))
@settings(max_examples=60)
def test_the_bounds_of_forests_enclose_rounding_at_every_scale(seed, scale):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    edges = np.array([(rng.integers(0, i), i) for i in range(1, n)]).reshape(-1, 2)
    size = scale * 10.0 ** rng.uniform(-6, 6, 2 * n - 1)
    weights = size * rng.choice([-1, 1], 2 * n - 1)
    model = sz.Ising.from_edges(n, edges, weights[: n - 1], weights[n - 1 :])
    result = sz.log_z(model, BeliefPropagation())
    truth = states.log_z(model)
    assert result.lower <= truth <= result.upper
    assert result.upper - result.lower <= 1e-11 * max(1.0, float(truth))


@pytest.mark.parametrize("seed", range(2))
def test_the_bounds_enclose_the_rounding_of_a_long_sum(seed):
    # A star: the middle adds up thousands of messages of one sign, and is off by more than a few units of log Z.
    rng = np.random.default_rng(seed)
    field, J = rng.uniform(2.0, 3.0, 5000), rng.uniform(2.0, 3.0, 4999)
    star = sz.Ising.from_edges(5000, [(0, i) for i in range(1, 5000)], J, field)
    result = sz.log_z(star, BeliefPropagation())
    with mpmath.workdps(30):
        branches = [
            mpmath.fsum(
                [
                    s * mpmath.mpf(field[0]),
                    *(mpmath.log(2 * mpmath.cosh(h + s * j)) for h, j in zip(field[1:], J, strict=True)),
                ]
            )
            for s in (-1, 1)
        ]
        truth = max(branches) + mpmath.log1p(mpmath.exp(-abs(branches[0] - branches[1])))
        assert result.lower <= truth <= result.upper


@pytest.mark.parametrize("damping", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("iterations", [1, 2, 7])
@pytest.mark.parametrize("strength", [0.1, 0.8, 5.0])
def test_equals_the_literal_transcription(damping, iterations, strength):
    model = loopy(3, strength=strength)
    found = sz.marginals(model, BeliefPropagation(max_iter=iterations, damping=damping, tol=1e-300))
    wanted = LoopyBeliefPropagation(model, damping).iterate(iterations)
    mean, pair = wanted.means()
    assert found.estimate.log_z == pytest.approx(wanted.log_z(), rel=1e-12, abs=1e-11)
    assert np.allclose(found.mean, mean, rtol=1e-10, atol=1e-14)
    assert np.allclose(found.pair_mean, pair[tuple(found.edges.T)], rtol=1e-10, atol=1e-14)
    assert found.kind is found.estimate.kind is sz.Kind.ESTIMATE
    assert found.estimate.iterations == iterations
    assert found.estimate.lower is found.estimate.upper is None


def test_the_messages_equal_the_literal_ones():
    model = loopy(5, strength=1.5)
    network = Network.of(model)
    u, _, residual = kernel.iterations(
        network.graph,
        None,
        network.field,
        network.coupling,
        network.ones,
        np.zeros(len(network.coupling)),
        0.25,
        1e-300,
        4,
    )
    wanted = LoopyBeliefPropagation(model, 0.25).iterate(4).messages
    receiver = np.repeat(np.arange(model.n), np.diff(network.graph.start))
    for s, (i, j) in enumerate(zip(network.graph.source, receiver, strict=True)):
        table = wanted[int(i), int(j)]
        assert u[s] == pytest.approx(float(mpmath.log(table[1] / table[-1]) / 2), rel=1e-12, abs=1e-15)
    before = LoopyBeliefPropagation(model, 0.25).iterate(3)
    changes = []
    for i, j in before.J:
        old, new = (float(mpmath.log(t[1] / t[-1]) / 2) for t in (before.messages[i, j], before.update(i, j)))
        changes.append(abs(new - old) / max(1.0, abs(new)))
    assert residual == pytest.approx(max(changes), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_schedules_and_damping_reach_the_same_fixed_point(seed):
    model = sz.generators.grid(side=5, strength=0.4, seed=seed)
    ways = [{}, {"schedule": "sequential"}, {"damping": 0.5, "max_iter": 1000}]
    found = [sz.marginals(model, BeliefPropagation(tol=1e-13, **way)) for way in ways]
    assert all(f.status.converged for f in found)
    assert found[1].estimate.iterations < found[0].estimate.iterations < found[2].estimate.iterations
    for other in found[1:]:
        assert other.estimate.log_z == pytest.approx(found[0].estimate.log_z, abs=1e-11)
        assert np.allclose(other.mean, found[0].mean, atol=1e-11)
        assert np.allclose(other.pair_mean, found[0].pair_mean, atol=1e-11)


def bethe(network, without):
    spin, edge = kernel.bethe_terms(network.graph, network.field, network.coupling, without)
    return math.fsum([*spin, *-edge])


def test_the_bethe_value_is_stationary_at_a_fixed_point_and_only_there():
    network = Network.of(sz.generators.grid(side=4, strength=0.4, seed=1))
    u = np.zeros(len(network.coupling))
    slopes = []
    for count in (2, 500):
        u, _, _ = kernel.iterations(
            network.graph, None, network.field, network.coupling, network.ones, u, 0.0, 1e-15, count
        )
        _, without = kernel.fields(network.graph, network.field, network.ones, u)
        step = 1e-4 * np.eye(len(u))
        slopes.append([(bethe(network, without + d) - bethe(network, without - d)) / 2e-4 for d in step])
    assert np.abs(slopes[0]).max() > 1e-4
    assert np.abs(slopes[1]).max() < 1e-8  # rounding of some 1e-14 over 2e-4, and the third derivative


@pytest.mark.parametrize("J", [0.0, 1e-300, 1e-9, 0.3, 0.5, 2.0, 40.0, 1e6, 1e150])
@pytest.mark.parametrize("h", [0.0, 1e-300, 1e-9, 0.3, 0.499999, 2.0, 39.5, 1e6, 1e150])
def test_a_message_is_accurate_at_every_scale(J, h):
    with mpmath.workdps(400):
        a, b = mpmath.mpf(J), mpmath.mpf(h)
        if max(J, h) > 1e3:  # log cosh is its argument's absolute value less log 2
            wanted = min(a, b) - (mpmath.log(2) / 2 if h == J else 0)
        else:
            wanted = mpmath.atanh(mpmath.tanh(a) * mpmath.tanh(b))
        kappa = (
            (mpmath.log(2 * mpmath.cosh(a + b)) + mpmath.log(2 * mpmath.cosh(a - b))) / 2 if max(J, h) < 1e3 else None
        )
        wanted, kappa = float(wanted), kappa and float(kappa)
    for sign_J in (1, -1):
        for sign_h in (1, -1):
            got = message(sign_J * J, sign_h * h)
            assert got == pytest.approx(sign_J * sign_h * wanted, rel=2e-15, abs=1e-307)
            assert abs(got) <= min(J, h)
            if kappa is not None:
                assert mean_log_2cosh(sign_J * J, sign_h * h) == pytest.approx(kappa, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e3, 1e6, 1e150])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_no_scale_gives_anything_but_numbers(scale, schedule):
    rng = np.random.default_rng(0)
    for seed in range(5):
        base = sz.generators.erdos_renyi(12, 0.4, 1.0, seed)
        mixed = base.coupling.multiply(10.0 ** rng.integers(-6, 1))
        for field in (scale * base.field, base.field, np.zeros(12)):
            for A in (base.coupling, mixed):
                found = sz.marginals(sz.Ising(field, scale * A), BeliefPropagation(schedule=schedule, max_iter=50))
                assert np.isfinite(found.estimate.log_z)
                assert np.all(np.abs(found.pair_mean) <= 1)
                assert np.allclose(found.probability.sum(axis=1), 1.0)


def test_strong_ferromagnets_have_their_ground_states():
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 3)], 1e6, field=[1e6, 0, 0, 0])
    found = sz.marginals(model, BeliefPropagation())
    assert found.estimate.log_z == pytest.approx(5e6, rel=1e-14)
    assert np.allclose(found.mean, 1.0)
    assert np.allclose(found.pair_mean, 1.0)


def test_small_numbers_keep_their_digits():
    chain = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1e-9, 1e-9], field=[1e-3, 0.0, 40.0])
    found = sz.marginals(chain, BeliefPropagation())
    with mpmath.workdps(60):
        one = mpmath.atanh(mpmath.tanh(1e-9) * mpmath.tanh(1e-3)) + mpmath.atanh(mpmath.tanh(1e-9) * mpmath.tanh(40))
        other = mpmath.atanh(mpmath.tanh(1e-9) * mpmath.tanh(mpmath.atanh(mpmath.tanh(1e-9) * mpmath.tanh(1e-3))))
        down = mpmath.exp(-2 * (40 + other)) / (1 + mpmath.exp(-2 * (40 + other)))
        assert found.mean[1] == pytest.approx(float(mpmath.tanh(one)), rel=1e-14)
        assert found.probability[2, 0] == pytest.approx(float(down), rel=1e-13)


def test_fields_beside_huge_messages_are_not_lost():
    model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1e12, 1.0], field=[1e12, 0.3, 0.2])
    network = Network.of(model)
    u = np.array([0.0, 1e12, 0.125, 0.0])  # into 0 from 1, into 1 from 0, into 1 from 2, into 2 from 1
    total, without = kernel.fields(network.graph, network.field, network.ones, u)
    assert without[1] == 0.3 + 0.125
    assert total[1] == pytest.approx(1e12)


def test_few_spins_and_no_edges():
    empty = sz.log_z(sz.Ising([], [], offset=0.5), BeliefPropagation())
    assert (empty.log_z, empty.kind) == (0.5, sz.Kind.EXACT)
    one = sz.log_z(sz.Ising([0.3], [[2.0]]), BeliefPropagation())
    assert one.log_z == pytest.approx(math.log(2 * math.cosh(0.3)) + 2.0, rel=1e-15)
    free = sz.marginals(sz.Ising([0.3, -4.0, 0.0], np.zeros((3, 3))), BeliefPropagation())
    assert np.allclose(free.mean, np.tanh([0.3, -4.0, 0.0]), rtol=1e-15)
    assert free.pair_mean.shape == (0,)


def test_components_add_up():
    ring = sz.generators.grid(side=3, strength=0.5, seed=0)
    A = np.zeros((12, 12))
    A[:9, :9] = ring.coupling.toarray()
    A[9, 10] = A[10, 9] = 0.7
    field = np.concatenate([ring.field, [0.1, 0.2, 0.3]])
    whole = sz.log_z(sz.Ising(field, A), BeliefPropagation(tol=1e-14))
    alone = sz.log_z(ring, BeliefPropagation(tol=1e-14)).log_z
    rest = sz.log_z(sz.Ising(field[9:], A[9:, 9:]), "exact").log_z
    assert whole.log_z == pytest.approx(alone + rest, rel=1e-13)
    assert not whole.details["is_forest"]


def test_status_says_how_it_ended():
    grid = sz.generators.grid(side=5, strength=0.3, seed=0)
    settled = sz.log_z(grid, BeliefPropagation())
    assert settled.status == f"converged after {settled.iterations} iterations"
    assert settled.status.converged
    assert settled.details["residual"] <= 1e-10
    assert settled.details["is_possible"]
    short = sz.log_z(grid, BeliefPropagation(max_iter=3))
    assert short.status.startswith("stopped after 3 iterations with residual 0.")
    assert not short.status.converged
    with pytest.raises(sz.errors.NotConvergedError):
        short.check()


def test_impossible_values_are_named():
    # All pairs repel: the messages stay at zero, a fixed point with the value 4 log 2 + 6 log cosh 3.
    repelling = sz.Ising.from_edges(4, [(i, j) for i in range(4) for j in range(i)], -3.0, offset=2.0)
    above = sz.log_z(repelling, BeliefPropagation())
    assert above.log_z == pytest.approx(2.0 + 4 * math.log(2) + 6 * math.log(math.cosh(3)), rel=1e-14)
    assert above.details["best_log_weight"] == 2.0 + 6.0
    assert above.status.startswith("converged after 1 iterations; the value is probably wrong: 7.8")
    assert above.status.endswith("above n log 2 + the best log-weight found")
    assert not above.status.converged
    assert not above.details["is_possible"]
    # After few iterations, so that no rounding has grown.
    below = sz.log_z(sz.generators.grid(side=4, strength=10.0, seed=36), BeliefPropagation(max_iter=2))
    assert "the value is impossible: 2.96 below the log-weight of a single state" in below.status
    assert below.log_z < below.details["best_log_weight"] - 2.9
    assert not below.details["is_possible"]


def test_the_best_state_found_is_a_local_optimum_and_its_weight_is_right():
    model = sz.generators.complete(n=12, strength=1.0, seed=3)
    network = Network.of(model)
    start = np.where(np.arange(12) % 2, 1.0, -1.0)
    x = kernel.climb(network.graph, network.field, network.coupling, start, 1000)
    weight = float(model.log_weight(x))
    assert weight > model.log_weight(start)
    for i in range(12):
        flipped = x.copy()
        flipped[i] *= -1
        assert model.log_weight(flipped) <= weight
    assert network.log_weight_near(start) == pytest.approx(weight, rel=1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_iter": 0}, "max_iter is 0; it must be a whole number, 1 or more"),
        ({"damping": 1.0}, "damping is 1.0; it must be a number from 0 to below 1"),
        ({"damping": -0.1}, "damping is -0.1"),
        ({"damping": True}, "damping is True"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"schedule": "random"}, "schedule is 'random'; it must be one of 'parallel', 'sequential'"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(sz.errors.OptionError, match=words):
        BeliefPropagation(**options)


def test_progress_is_reported():
    with heard() as told:
        sz.log_z(sz.generators.grid(side=5, strength=0.3, seed=0), BeliefPropagation(max_iter=3))
    assert told[-1] == ("passing messages", 1.0)

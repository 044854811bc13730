"""Sweeps in JAX, run on the CPU: literal transcriptions with the same random numbers, and answers that are known."""

from __future__ import annotations

import importlib.util
import math
import time
from dataclasses import replace

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import clock, devices
from spectralz.errors import DeviceError, MissingDependencyError
from spectralz.sampling.engines import device as device_engines
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.path import from_fields, path_to
from spectralz.sampling.population import carry
from tests.reference.states import all_states, log_z

if importlib.util.find_spec("jax") is None:
    pytest.skip("needs JAX, of the extra gpu", allow_module_level=True)

import jax
import jax.numpy as jnp

from spectralz.kernels.device import collapsed_sweeps, dense_sweeps, side_flips
from tests.helpers import with_slow

CPU = jax.devices("cpu")[0]
STATES = 64


@pytest.fixture
def on_jax(monkeypatch):
    """Let JAX's CPU stand for a GPU, and few states be swept together."""
    monkeypatch.setattr(devices, "_gpus", lambda _: [CPU])
    monkeypatch.setattr(device_engines, "TOGETHER", STATES)
    monkeypatch.setattr(device_engines, "TOGETHER", STATES)


@pytest.fixture
def computing():
    with devices.computing_on(CPU):
        yield


def dense_path(n, seed, is_gpu=False):
    """Return fields and couplings padded to a block, as arrays and on the device."""
    rng = np.random.default_rng(seed)
    size = -(-n // dense_sweeps.BLOCK) * dense_sweeps.BLOCK
    J = np.zeros((size, size))
    J[:n, :n] = rng.normal(size=(n, n)) / math.sqrt(n)
    J = np.triu(J, 1) + np.triu(J, 1).T
    base, change = (np.pad(rng.normal(size=n), (0, size - n)) for _ in range(2))
    J, base, change = (each.astype(np.float32) for each in (J, base, change))
    return dense_sweeps.DensePath(base, change, dense_sweeps.pieces_of(J, is_gpu)), J, base, change


def swept_one_by_one(x, beta, J, base, change, noise):
    """One spin after the other, each given all others: the definition, in double precision."""
    x, J = x.astype(np.float64), J.astype(np.float64)
    for i in range(len(x)):
        x[i] = np.where(2.0 * (base[i] + beta * (change[i] + J[i] @ x)) > noise[i], 1.0, -1.0)
    return x


def energies_of(x, J, change):
    x, J = x.astype(np.float64), J.astype(np.float64)
    return change.astype(np.float64) @ x + 0.5 * np.einsum("is,ij,js->s", x, J, x)


@pytest.mark.parametrize("is_gpu", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["single", "three pieces"])
def test_a_sweep_draws_one_spin_after_the_other(computing, is_gpu):
    """Padded to two blocks; the couplings of a GPU are the sum of three pieces, and give the same states."""
    path, J, base, change = dense_path(150, seed=1, is_gpu=is_gpu)
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0], (len(base), STATES))
    noise = rng.logistic(size=x.shape)
    found, gained = dense_sweeps.sweep(
        jnp.asarray(x, path.pieces[0].dtype), jnp.float32(0.7), path, jnp.asarray(noise, jnp.float32), False
    )
    wanted = swept_one_by_one(x, 0.7, J, base, change, noise)
    assert np.array_equal(np.asarray(found, np.float64), wanted)
    assert np.asarray(gained) == pytest.approx(energies_of(wanted, J, change) - energies_of(x, J, change), abs=1e-4)
    assert np.asarray(dense_sweeps.energies(found, path)) == pytest.approx(energies_of(wanted, J, change), abs=1e-4)


@pytest.mark.slow
def test_the_kernel_of_gpus_turns_the_same_spins(computing):
    """Interpreted, since there is no GPU here."""
    rng = np.random.default_rng(3)
    shape = dense_sweeps.BLOCK, 2 * dense_sweeps.TILE
    before = jnp.asarray(rng.choice([-1.0, 1.0], shape), jnp.float32)
    own = rng.normal(size=(shape[0], shape[0])) / 8.0
    own = jnp.asarray(np.triu(own, 1) + np.triu(own, 1).T, jnp.float32)
    field, least = (jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(2))
    args = before, field, own, least, jnp.float32(0.8)
    found = dense_sweeps._turned_in_one(*args, interpret=True)
    assert np.array_equal(found, dense_sweeps._turned_in_groups(*args))
    assert 0.2 < np.mean(np.asarray(found) != 0.0) < 0.8


def test_three_pieces_are_as_good_as_single_precision(computing):
    J = np.random.default_rng(4).normal(size=(128, 128)).astype(np.float32)
    pieces = dense_sweeps.pieces_of(J, is_gpu=True)
    assert all(piece.dtype == jnp.bfloat16 for piece in pieces)
    total = sum(np.asarray(piece, np.float64) for piece in pieces)
    assert np.abs(total - J).max() <= 2.0**-24 * np.abs(J).max()
    two = sum(np.asarray(piece, np.float64) for piece in pieces[:2])
    assert np.abs(two - J).max() > 2.0**-20 * np.abs(J).max()  # two of them are not


def test_tf32_would_shift_the_law(computing):
    """Couplings with ten binary digits are those of another model: here log Z is off by half a nat.

    Single precision is off by a ten thousandth of that. So no product may be in TF32, and none is.
    """
    n, K = 20_000, 1.2345

    def log_z(strength):
        return sz.log_z(sz.generators.curie_weiss(n, strength)).log_z

    def rounded(number, digits):
        scale = 2.0 ** (digits - math.floor(math.log2(number)))
        return math.floor(number * scale) / scale

    truth = log_z(K)
    assert abs(log_z(rounded(K, 10)) - truth) > 0.5
    assert abs(log_z(rounded(K, 23)) - truth) < 1e-3
    path = dense_path(10, seed=0)[0]
    x = jnp.ones((dense_sweeps.BLOCK, 2), jnp.float32)
    text = str(jax.make_jaxpr(lambda x: dense_sweeps.sweep(x, jnp.float32(0.5), path, x, False))(x))
    assert text.count("dot_general") == text.count("precision=Precision.HIGHEST") + text.count(
        "precision=(Precision.HIGHEST, Precision.HIGHEST)"
    )
    assert "dot_general" in text


@pytest.mark.slow
def test_sides_are_drawn_and_weighed_as_they_should(computing):
    rng = np.random.default_rng(5)
    kept, summed, beta = 7, 9, 0.6
    W = rng.normal(size=(kept, summed))
    fields = [rng.normal(size=size) for size in (kept, kept, summed, summed)]
    path = collapsed_sweeps.SidesPath(jnp.asarray(W, jnp.float32), *map(jnp.asarray, fields))
    v = rng.choice([-1.0, 1.0], (kept, STATES))
    noises = rng.logistic(size=(summed, STATES)), rng.logistic(size=(kept, STATES))
    pushes = W.T @ v
    found, new_pushes = collapsed_sweeps.sweep_sides(
        jnp.asarray(v, jnp.float32), jnp.asarray(pushes, jnp.float32), beta, path, noises
    )
    k, dk, s, ds = (each[:, None] for each in fields)
    h = np.where(2.0 * (s + beta * (ds + pushes)) > noises[0], 1.0, -1.0)
    wanted = np.where(2.0 * (k + beta * (dk + W @ h)) > noises[1], 1.0, -1.0)
    assert np.array_equal(found, wanted)
    points = np.array([0.3, 0.6, 0.8])
    changes = np.asarray(collapsed_sweeps.changes_of_weight(found, new_pushes, points, path))
    assert np.asarray(new_pushes) == pytest.approx(W.T @ wanted, abs=1e-5)

    def weight(point):  # the sum over the other side, state by state, would be a product of sums
        return point * (dk * wanted).sum(axis=0) + np.log(2.0 * np.cosh(s + point * (ds + W.T @ wanted))).sum(axis=0)

    assert changes[0] == pytest.approx(weight(0.3) - weight(0.6), abs=1e-5)
    assert changes[1] == pytest.approx(weight(0.8) - weight(0.6), abs=1e-5)


@pytest.mark.parametrize("scale", with_slow([0.5, 3.0, 30.0], [0.5, 30.0]))
def test_flips_of_a_side_are_those_of_the_sum_over_the_other(computing, scale):
    rng = np.random.default_rng(6)
    kept, summed, beta = 5, 30, 0.7
    W = (scale * rng.normal(size=(kept, summed))).astype(np.float32)
    fields = [scale * rng.normal(size=size) for size in (kept, kept, summed, summed)]
    path = collapsed_sweeps.SidesPath(jnp.asarray(W), *map(jnp.asarray, fields))
    v = rng.choice([-1.0, 1.0], (kept, STATES))
    noise = scale * rng.logistic(size=(kept, STATES))
    found, pushes = side_flips.flip_side(
        jnp.asarray(v, jnp.float32), jnp.asarray(W.T @ v, jnp.float32), beta, path, jnp.asarray(noise)
    )
    k, dk, s, ds = (each[:, None] for each in fields)

    def weight(v):  # in double precision
        field = s + beta * (ds + W.astype(np.float64).T @ v)
        return ((k + beta * dk) * v).sum(axis=0) + np.logaddexp(field, -field).sum(axis=0)

    for j in range(kept):
        flipped = np.where(np.arange(kept)[:, None] == j, -v, v)
        strength, log_odds = 2.0 * beta * W[j], 2.0 * (s + beta * (ds + W.T @ v))
        ratio = side_flips.log_ratio(*(jnp.asarray(array, jnp.float32) for array in (log_odds, strength, v[j])))
        wanted = weight(flipped) - weight(v) + 2.0 * (k[j] + beta * dk[j]) * v[j]
        assert np.asarray(ratio) == pytest.approx(wanted, abs=1e-4 * max(scale, 1.0))
        v = np.where(weight(flipped) - weight(v) > noise[j], flipped, v)
    assert np.array_equal(found, v)
    assert np.asarray(pushes) == pytest.approx(W.T @ v, rel=1e-5, abs=1e-4)


@pytest.mark.slow
def test_flips_on_a_device_follow_the_law(on_jax):
    """The mean weight of states is Z by enumeration, whatever the points; so are the states at the end."""
    model = sz.Ising.from_edges(10, [(i, j) for i in range(4) for j in range(4, 10)], np.linspace(-1.5, 1.6, 24))
    model = sz.Ising(np.linspace(-0.5, 0.8, 10), model.coupling)
    x = all_states(10).astype(np.int8)
    exact_log_z = float(log_z(model))
    exact = np.exp(model.log_weight(x) - exact_log_z)
    path = replace(from_fields(model, np.full(10, 0.2), sides=sides_of(model)), flips=True)
    with devices.using_device("gpu"):
        end = carry(path, np.linspace(0.0, 1.0, 12), 40, 500, np.random.default_rng(0))
    ratio = np.exp(end.log_z + model.constant - exact_log_z)
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std(ddof=1) / math.sqrt(len(ratio)) < 0.1
    assert end.mean() == pytest.approx(exact @ x, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [sz.generators.complete(12, 0.4, seed=1), sz.generators.bipartite(14, 0.6, seed=2)], ids=["dense", "sides"]
)
def test_annealing_on_a_device_is_right_and_the_same_twice(on_jax, model):
    exact = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, "annealing", population=256, runs=4, seed=3, device="gpu")
    assert abs(found.log_z - exact) <= 3.0 * found.std_error
    assert found.std_error < 0.1
    assert found.log_z == sz.log_z(model, "annealing", population=256, runs=4, seed=3, device="gpu").log_z
    other = sz.log_z(model, "annealing", population=256, runs=4, seed=3, device="cpu")
    assert abs(found.log_z - other.log_z) <= 4.0 * math.hypot(found.std_error, other.std_error)
    assert found.log_z != other.log_z


@pytest.mark.slow
@pytest.mark.parametrize("bipartite", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_chains_begin_where_they_should_and_take_what_they_should(on_jax, bipartite):
    model = sz.generators.bipartite(14, 0.6, seed=2) if bipartite else sz.generators.complete(12, 0.4, seed=1)
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1, 1], np.int8), (5, model.n))
    with devices.using_device("gpu"):
        engine = path_to(model).engine
        chains = engine.start_from(x, rng)
        assert np.array_equal(chains.states(), x)
        chains.take(np.array([3, 3, 0, 1, 4]))
        assert np.array_equal(chains.states(), x[[3, 3, 0, 1, 4]])
        chains = engine.start(200, rng)  # of the base: independent spins in its fields
        back, on = chains.sweep(np.zeros(1), np.zeros(1), np.zeros(1), 1)
        assert back.shape == on.shape == (1, 200)
        assert not back.any()
        assert not on.any()
        assert not engine.takes_threads


def test_budgets_do_not_count_what_jax_compiles():
    devices._jax()
    program = jax.jit(lambda x: sum(jnp.sin(x + k) @ x for k in range(30)))
    x = np.ones((50, 50), np.float32)
    before, wall = clock.left_out(), time.perf_counter()
    program(x).block_until_ready()
    passed, left_out = time.perf_counter() - wall, clock.left_out() - before
    assert 0.3 * passed < left_out < passed
    before = clock.left_out()
    program(x).block_until_ready()
    assert clock.left_out() == before


def test_the_larger_model_decides_and_so_does_the_user(on_jax, monkeypatch):
    dense, sparse = sz.generators.complete(12, 0.4, seed=1), sz.generators.random_regular(40, 3, 1.0, seed=1)
    assert devices.device_for(devices.FEWEST_SPINS) is CPU
    assert devices.device_for(devices.FEWEST_SPINS - 1) is None
    assert devices.device_for(10**6, suits=False) is None
    with devices.using_device("cpu"):
        assert devices.device_for(10**6) is None
        with devices.using_device("auto"):  # leaves it to who has said something
            assert devices.device_for(10**6) is None
    with devices.using_device("gpu"):
        assert devices.device_for(10) is CPU
        assert not path_to(sparse).engine.takes_threads
    assert path_to(sparse).engine.takes_threads  # of too few spins
    monkeypatch.setattr(devices, "FEWEST_SPINS", 12)
    assert not path_to(dense).engine.takes_threads


def test_where_there_is_no_gpu_it_says_so(monkeypatch):
    model = sz.generators.complete(12, 0.4, seed=1)
    monkeypatch.setattr(devices, "_gpus", lambda _: [])
    with pytest.raises(DeviceError, match=r"JAX .* finds only: cpu\. .*pip install 'jax\[cuda13\]'"):
        sz.log_z(model, "annealing", device="gpu")
    with pytest.raises(sz.errors.OptionError, match="device is 'tpu'; it must be one of 'auto', 'cpu', 'gpu'"):
        sz.log_z(model, "annealing", device="tpu")
    monkeypatch.setattr(
        devices, "from_extra", lambda *_: (_ for _ in ()).throw(MissingDependencyError("the extra gpu"))
    )
    with pytest.raises(MissingDependencyError, match="gpu"):
        sz.log_z(model, "annealing", device="gpu")
    sz.log_z(model, "annealing", population=20, runs=1)


@pytest.mark.slow
def test_what_the_memory_does_not_hold_is_refused(on_jax, monkeypatch):
    model = sz.generators.complete(12, 0.4, seed=1)
    monkeypatch.setattr(devices, "memory_of", lambda _: 100_000.0)
    with pytest.raises(DeviceError, match=r"a model of 12 spins needs .* on the cpu, which has 97.7 KiB left"):
        sz.log_z(model, "annealing", device="gpu")
    monkeypatch.setattr(devices, "memory_of", lambda _: 400_000.0)
    with pytest.raises(DeviceError, match=r"a population of 100000 states needs .*; use fewer states, or device='cpu'"):
        sz.log_z(model, "annealing", population=100_000, device="gpu")


def test_the_command_takes_a_device(run, monkeypatch):
    sz.write(sz.generators.complete(12, 0.4, seed=1), "model.npz")
    monkeypatch.setattr(devices, "_gpus", lambda _: [])
    code, _, err = run("solve", "model.npz", "-m", "annealing", "--device", "gpu")
    assert code == 2
    assert "device='gpu' was asked for" in err
    code, _, err = run("solve", "model.npz", "--device", "tpu")
    assert code == 2
    assert "--device is 'tpu'; it must be one of 'auto', 'cpu', 'gpu'" in err

"""Sweeps of sparse graphs in JAX, run on the CPU: transcriptions, and random words and answers that are known."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import devices
from spectralz.errors import DeviceError
from spectralz.kernels.coloring import TILE, colored, first_fit
from spectralz.sampling.engines import device
from spectralz.sampling.path import from_coins, from_model, path_to
from spectralz.sampling.population import carry
from spectralz.sampling.round_trips import there_and_back
from spectralz.sampling.sweeps import relax
from tests.reference.states import all_states, log_z

if importlib.util.find_spec("jax") is None:
    pytest.skip("needs JAX, of the extra gpu", allow_module_level=True)

import jax
import jax.numpy as jnp
from jax.extend.random import threefry_2x32

from spectralz.kernels.device import sparse_sweeps

CPU = jax.devices("cpu")[0]
# A graph with a triangle, a hub, a spin without neighbors, fields, and couplings of both signs.
EDGES = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 5), (2, 6), (2, 7), (5, 8)])
VALUES = np.random.default_rng(0).normal(size=(2, 10))
MODEL = sz.Ising.from_edges(10, EDGES, VALUES[0, : len(EDGES)], field=0.4 * VALUES[1])
MODELS = {
    "triangle and hub": MODEL,
    "grid": sz.generators.grid(7, 0.8, seed=1),
    "odd torus": sz.generators.torus(5, 7, 0.4, field=0.123),
    "random graph": sz.generators.erdos_renyi(60, 0.1, 0.7, seed=2),
    "3D glass": sz.generators.spin_glass_3d(4, 0.7, seed=3),
    "star": sz.Ising.from_edges(80, [(0, k) for k in range(1, 80)], np.full(79, 0.1), field=np.full(80, 0.0123)),
    "many colors": sz.Ising.from_edges(12, [(i, j) for i in range(12) for j in range(i)], np.full(66, 0.05)),
    "one spin": sz.Ising(np.array([0.3]), np.zeros((1, 1))),
    "no edges": sz.Ising.from_edges(5, np.empty((0, 2), int), np.empty(0), field=np.linspace(-1.0, 1.0, 5)),
}


@pytest.fixture
def on_jax(monkeypatch):
    """Let JAX's CPU stand for a GPU, and few states be swept together."""
    monkeypatch.setattr(devices, "_gpus", lambda _: [CPU])
    monkeypatch.setattr(device, "MOST_TOGETHER", 128)
    monkeypatch.setattr(device, "POINTS_OF_SPARSE", 4)


def engine_of(model, base=None):
    couplings = model.storage.for_kernels()
    base = np.zeros(model.n) if base is None else base
    return device.device_sparse_engine(np.asarray(model.field), couplings, base, CPU)


def couplings_of(model):
    """Return J = 2 A without its diagonal."""
    J = np.zeros((model.n, model.n))
    (i, j), values = np.asarray(model.edges()[0]).reshape(-1, 2).T, model.edges()[1]
    J[i, j] = J[j, i] = values
    return J


# ----------------------------------------------------------------------------------------------------------- colors


@pytest.mark.parametrize("name", MODELS)
def test_coupled_spins_have_different_colors_and_every_coupling_has_its_place(name):
    model = MODELS[name]
    couplings = model.storage.for_kernels()
    if couplings.is_dense:
        pytest.skip("the layout is that of sparse graphs")
    layout = colored(couplings)
    assert len(set(layout.row.tolist())) == model.n
    assert layout.rows == layout.first[-1] * TILE
    color = np.searchsorted(layout.first, layout.row // TILE, side="right") - 1
    J = np.zeros((layout.rows, layout.rows))
    for tile in range(len(layout.begin) - 1):
        entries = np.arange(layout.begin[tile], layout.begin[tile + 1])
        rows = tile * TILE + (entries - layout.begin[tile]) % TILE
        np.add.at(J, (rows, layout.neighbor[entries]), layout.coupling[entries])
    assert np.array_equal(J[np.ix_(layout.row, layout.row)], couplings_of(model))
    assert np.count_nonzero(J) == np.count_nonzero(couplings_of(model))
    i, j = np.nonzero(couplings_of(model))
    assert (color[i] != color[j]).all()
    degree = np.bincount(i, minlength=model.n)
    for each in range(len(layout.first) - 1):  # spins with many neighbors come first
        inside = np.flatnonzero(color == each)
        assert (np.diff(degree[inside[np.argsort(layout.row[inside])]]) <= 0).all()


@pytest.mark.parametrize(
    ("model", "colors"),
    [
        (sz.generators.grid(9, 1.0, 0), 2),
        (sz.generators.torus(6, 8, 0.3), 2),
        (sz.generators.spin_glass_3d(6, 1.0, 0), 2),
    ],
    ids=["grid", "torus", "3D"],
)
def test_bipartite_graphs_have_two_colors(model, colors):
    couplings = model.storage.for_kernels()
    assert len(np.unique(first_fit(couplings.indptr, couplings.indices))) == colors


# ------------------------------------------------------------------------------------------------------ random words


def test_words_are_those_of_threefry():
    """The test vectors of Random123, and JAX's own generator."""

    def words(key, counter):
        return [
            int(word) for word in sparse_sweeps.threefry(*(tuple(map(jnp.uint32, each)) for each in (key, counter)))
        ]

    assert words((0, 0), (0, 0)) == [0x6B200159, 0x99BA4EFE]
    assert words((2**32 - 1, 2**32 - 1), (2**32 - 1, 2**32 - 1)) == [0x1CB996FC, 0xBB002BE7]
    assert words((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)) == [0xC4923A9C, 0x483DF7A0]
    theirs = threefry_2x32(jnp.array([5, 7], jnp.uint32), jnp.array([11, 13], jnp.uint32))
    assert np.asarray(theirs).tolist() == words((5, 7), (11, 13))


def test_probabilities_are_right_to_1e_7():
    """A spin turns against its field if its word is below q 2^32: counted with the words next to that."""
    field = np.concatenate([np.linspace(-11.0, 11.0, 4001), [0.0, 1e-6, -30.0, 80.0]]).astype(np.float32)
    q = 1.0 / (1.0 + np.exp(2.0 * np.abs(field.astype(float))))
    for shift, wanted in ((-1e-7, -1), (1e-7, 1)):  # below q against the field, above it along
        word = np.floor((q + shift) * 2.0**32)
        inside = (word >= 0) & (word < 2.0**32)
        spins = np.asarray(sparse_sweeps.drawn(jnp.asarray(field), jnp.asarray(np.where(inside, word, 0), jnp.uint32)))
        along = np.where(field >= 0.0, 1, -1)
        assert (spins[inside] == wanted * along[inside]).all()
    # a word of 0 is the only one that turns spins at q = 1e-10, and none does at 1e-20
    assert sparse_sweeps.drawn(jnp.float32(10.0), jnp.uint32(0)) == -1
    assert sparse_sweeps.drawn(jnp.float32(10.0), jnp.uint32(30)) == 1
    assert sparse_sweeps.drawn(jnp.float32(-30.0), jnp.uint32(0)) == -1


# ------------------------------------------------------------------------------------------------------------ sweeps


def swept_literally(model, base, layout, x, key, betas, sweeps):
    """Return states and energies, color by color as in the definition, in double precision.

    The word of a spin in a column: the first or second that Threefry gives for its row and the first column of the two.
    """
    J, change = couplings_of(model), np.asarray(model.field) - base
    color = np.searchsorted(layout.first, layout.row // TILE, side="right") - 1
    columns = np.arange(x.shape[1])
    half = sparse_sweeps.COLUMNS
    is_second, first = columns // half % 2 == 1, columns - half * (columns // half % 2)
    energies, step = [], 0
    for beta in betas:
        for _ in range(sweeps):
            pair = sparse_sweeps.threefry(
                (jnp.uint32(key[0]), jnp.uint32(key[1] + step)),
                (jnp.asarray(layout.row[:, None], jnp.uint32), jnp.asarray(first[None, :], jnp.uint32)),
            )
            u = (np.where(is_second, pair[1], pair[0]).astype(float) + 0.5) / 2.0**32
            for each in range(color.max() + 1):
                h = base[:, None] + beta * (change[:, None] + J @ x)
                against = u < 1.0 / (1.0 + np.exp(2.0 * np.abs(h)))
                x = np.where((color == each)[:, None], np.where((h >= 0.0) != against, 1.0, -1.0), x)
            step += 1
        energies.append(change @ x + 0.5 * np.einsum("is,ij,js->s", x, J, x))
    return x, np.array(energies)


@pytest.mark.parametrize(
    ("name", "sweeps"),
    [
        ("star", 3),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("triangle and hub", "grid", "odd torus", "star")),
        pytest.param("triangle and hub", 3, marks=pytest.mark.slow),
    ],
)
def test_a_sweep_draws_one_color_after_the_other(on_jax, name, sweeps):
    model = MODELS[name]
    rng = np.random.default_rng(4)
    base = 0.3 * rng.normal(size=model.n)
    engine, layout = engine_of(model, base), colored(model.storage.for_kernels())
    x = rng.choice(np.array([-1, 1], np.int8), (100, model.n))
    chains = engine.start_from(x, rng)
    key = np.asarray(chains._words).astype(int)
    betas = np.array([0.0, 0.4, 0.7, 0.9, 1.0, 0.2])
    back, on = chains.sweep(betas - 0.1, betas, betas + 0.2, sweeps)
    padded = x[np.minimum(np.arange(chains.lanes), len(x) - 1)].T.astype(float)
    # numbers of points are rounded up; the key has moved on by the sweeps that were made
    wanted, energies = swept_literally(model, base, layout, padded, key, betas, sweeps)
    assert np.array_equal(chains.states(), wanted.T[:100])
    assert on == pytest.approx(0.2 * energies[:, :100], abs=1e-12)
    assert back == pytest.approx(-0.1 * energies[:, :100], abs=1e-12)
    assert np.asarray(chains._words).astype(int).tolist() == [key[0], (key[1] + 6 * sweeps) % 2**32]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["many colors", "one spin", "no edges"])
def test_graphs_of_many_colors_and_without_couplings_follow_the_law(on_jax, name):
    """Chains at the model meet states as often as they should, by enumeration."""
    model = MODELS[name]
    couplings = model.storage.for_kernels()
    if couplings.is_dense:
        from spectralz.kernels.coupling import Couplings

        rows, columns = np.nonzero(couplings_of(model))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=model.n))])
        couplings = Couplings(couplings_of(model)[rows, columns], columns.astype(np.int32), indptr, False)
    engine = device.device_sparse_engine(np.asarray(model.field), couplings, np.zeros(model.n), CPU)
    chains, one = engine.start(2048, np.random.default_rng(5)), np.ones(4)
    states = []
    for _ in range(3):
        chains.sweep(one, one, one, 1)
        states.append(chains.states())
    x = all_states(model.n).astype(np.int8)
    weight = np.exp(model.log_weight(x) - float(log_z(model)))
    found = np.concatenate(states)
    assert found.mean(axis=0) == pytest.approx(weight @ x, abs=0.08)
    assert (found.T.astype(float) @ found) / len(found) == pytest.approx(x.T @ (weight[:, None] * x), abs=0.08)


@pytest.mark.slow
def test_colors_beyond_those_written_out_are_drawn_in_a_loop(on_jax, monkeypatch):
    model, rng = MODEL, np.random.default_rng(6)
    x = rng.choice(np.array([-1, 1], np.int8), (70, model.n))
    found = []
    for most in (8, 1):
        monkeypatch.setattr(sparse_sweeps, "MOST_WRITTEN_OUT", most)
        jax.clear_caches()
        chains = engine_of(model).start_from(x, np.random.default_rng(0))
        chains.sweep(np.ones(3), np.ones(3), np.ones(3), 2)
        found.append(chains.states())
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], x)


@pytest.mark.slow
def test_annealed_weights_give_z(on_jax):
    """The mean weight of states is Z by enumeration; so are the states at the end."""
    x = all_states(10).astype(np.int8)
    exact_log_z = float(log_z(MODEL))
    exact = np.exp(MODEL.log_weight(x) - exact_log_z)
    with devices.using_device("gpu"):
        path = from_coins(MODEL)
        end = carry(path, np.linspace(0.0, 1.0, 12), 40, 125, np.random.default_rng(0))
        trip = there_and_back(path, np.linspace(0.0, 1.0, 200), 256, np.random.default_rng(1))
    assert isinstance(path.engine, device.DeviceSparseEngine)
    ratio = np.exp(end.log_z + MODEL.constant - exact_log_z)
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std(ddof=1) / math.sqrt(len(ratio)) < 0.1
    assert end.mean() == pytest.approx(exact @ x, abs=0.06)
    assert abs(trip.log_z + MODEL.constant - exact_log_z) < 4.0 * trip.scatter + 0.1 * trip.gap < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grid", "odd torus", "random graph", "3D glass"])
def test_annealing_on_both_devices_agrees(on_jax, name):
    model = MODELS[name]
    options = {"population": 512, "runs": 4, "seed": 3}
    here, there, again = (sz.log_z(model, "annealing", device=device, **options) for device in ("cpu", "gpu", "gpu"))
    assert there.log_z == again.log_z != here.log_z
    assert abs(there.log_z - here.log_z) <= 4.0 * math.hypot(here.std_error, there.std_error)
    assert there.std_error < 0.1
    exact = sz.log_z(model, "exact").log_z
    assert abs(there.log_z - exact) <= 4.0 * there.std_error


@pytest.mark.slow
def test_chains_begin_where_they_should_and_take_what_they_should(on_jax):
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1, 1], np.int8), (5, MODEL.n))
    engine = engine_of(MODEL, np.asarray(MODEL.field))
    chains = engine.start_from(x, rng)
    assert np.array_equal(chains.states(), x)
    chains.take(np.array([3, 3, 0, 1, 4]))
    assert np.array_equal(chains.states(), x[[3, 3, 0, 1, 4]])
    drawn = engine.start(20_000, rng).states()
    assert drawn.mean(axis=0) == pytest.approx(np.tanh(MODEL.field), abs=0.03)
    assert not engine.takes_threads
    assert engine.points_together > 1


@pytest.mark.slow
def test_states_relax_in_parts(on_jax):
    """As many sweeps as asked for: the key counts them."""
    with devices.using_device("gpu"):
        path = from_coins(MODEL)
        x = relax(path, np.ones((64, MODEL.n), np.int8), 7, np.random.default_rng(0))
        chains = path.engine.start_from(np.ones((64, MODEL.n), np.int8), np.random.default_rng(0))
        for _ in range(7):
            chains.sweep(np.ones(1), np.ones(1), np.ones(1), 1)
    assert np.array_equal(x, chains.states())


# ----------------------------------------------------------------------------------------------------- which device


def test_clusters_and_subgraphs_stay_on_the_cpu(on_jax):
    torus, glass = sz.generators.torus(20, 20, 0.44), sz.generators.spin_glass_3d(6, 1.5, seed=1)
    with devices.using_device("gpu"):
        assert path_to(glass).device is CPU
        assert path_to(torus, clusters=None).device is None
        assert path_to(torus, clusters=False).device is CPU
        assert path_to(glass, in_double=True).device is None
        assert from_model(glass, glass.scaled(0.9)).device is None
    assert path_to(glass).device is None  # of fewer spins than are worth it
    assert path_to(sz.generators.spin_glass_3d(10, 1.0, seed=1)).device is CPU


@pytest.mark.slow
def test_what_the_device_cannot_hold_or_count_is_refused(on_jax, monkeypatch):
    assert device.can_be_swept(10**7)
    assert not device.can_be_swept(2**25)
    monkeypatch.setattr(devices, "memory_of", lambda _: 1_000.0)
    with pytest.raises(DeviceError, match=r"a model of 49 spins needs .* on the cpu, which has 1000 B left"):
        sz.log_z(MODELS["grid"], "annealing", device="gpu")
    monkeypatch.setattr(devices, "memory_of", lambda _: 1e9)
    monkeypatch.setattr(device, "MOST_SPINS", 10_000)
    with pytest.raises(DeviceError, match=r"a population of 500 states of 49 spins is too large for the cpu"):
        sz.log_z(MODELS["grid"], "annealing", population=500, device="gpu")

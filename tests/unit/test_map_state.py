"""The heaviest state: against all states, against elimination, and as files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, OptionError, TooLargeError
from spectralz.io import read_map, write_map
from spectralz.kernels.sampling import tabu
from spectralz.sampling.heavy.search import best_of_both, mixed, rounding_of
from tests.contract.fuzz import random_model
from tests.reference.states import all_states
from tests.strategies import models

MODELS = {
    "grid": sz.generators.grid(3, 1.0, seed=0),
    "dense": sz.generators.complete(9, 0.5, seed=1),
    "ties": sz.generators.torus(3, 4, 1.0),
    "islands": sz.Ising.from_edges(6, [(0, 1), (3, 4)], [1.0, -1.0]),
    "constant": sz.Ising([0.5, -0.25], 0.5 * np.ones((2, 2)), offset=-7.0),
    "huge": sz.Ising.from_edges(3, [(0, 1), (1, 2), (0, 2)], [1e30, -1e30, 3.0]),
    "single": sz.Ising(field=[-0.3]),
    "none": sz.Ising(field=[]),
}


def heaviest(model):
    return float(np.max(model.log_weight(all_states(model.n))))


@pytest.mark.parametrize("name", MODELS)
def test_elimination_finds_the_heaviest_of_all_states(name):
    model = MODELS[name]
    found = sz.map_state(model)
    assert found.proven
    assert found.method == "exact"
    assert found.log_weight == float(model.log_weight(found.state))
    assert found.log_weight == pytest.approx(heaviest(model), rel=1e-12, abs=1e-12)
    assert found.upper >= heaviest(model)
    assert found.upper == pytest.approx(found.log_weight, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ["grid", "dense", "ties", "islands", "constant", "single"])
def test_the_search_finds_it_too(name):
    found = sz.map_state(MODELS[name], "search", work=2e7)
    assert found.method == "search"
    assert found.log_weight == pytest.approx(heaviest(MODELS[name]), rel=1e-12, abs=1e-12)
    assert found.upper >= found.log_weight


def test_nothing_to_search_for():
    found = sz.map_state(sz.Ising([], offset=2.0), "search", work=1e5)
    assert found.states.shape == (1, 0)
    assert found.log_weight == 2.0
    assert found.proven


@pytest.mark.slow
def test_no_bound_is_below_any_state_whatever_the_numbers():
    rng = np.random.default_rng(3)
    for _ in range(60):
        model = random_model(rng)
        truth, rounding = heaviest(model), 2.0 * rounding_of(model)
        exact, search = sz.map_state(model), sz.map_state(model, "search", work=1e5)
        assert exact.proven
        assert exact.log_weight >= truth - rounding
        assert min(exact.upper, search.upper) >= truth - rounding
        assert search.log_weight <= truth + rounding


def test_a_large_grid_is_proven_and_the_search_comes_close():
    model = sz.generators.grid(12, 1.0, seed=0)
    exact, search = sz.map_state(model), sz.map_state(model, "search", work=2e8, seed=1)
    assert exact.proven
    assert exact.log_weight >= search.log_weight - 1e-9
    assert search.log_weight >= 0.99 * exact.log_weight
    assert exact.gap == 0.0 <= search.gap


@pytest.mark.slow
def test_the_same_work_finds_the_same_state():
    model = sz.generators.complete(40, 1.0, seed=0)
    first, second = (sz.map_state(model, "search", work=1e8, threads=threads) for threads in (1, 2))
    assert np.array_equal(first.state, second.state)
    assert first.upper == second.upper


# ------------------------------------------------------------------------------------------------ several states


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [2, 7, 40])
def test_elimination_finds_the_heaviest_states(name, count):
    model = MODELS[name]
    found = sz.map_state(model, count=count)
    weights = np.sort(model.log_weight(all_states(model.n)))[::-1][:count]
    assert found.proven
    assert found.log_weights == pytest.approx(weights, rel=1e-12, abs=1e-12)
    assert len(np.unique(found.states, axis=0)) == len(found.states) == min(count, 2**model.n)
    assert found.log_weights == pytest.approx(model.log_weight(found.states))
    assert np.array_equal(found.state, found.states[0])
    assert found.log_weight == found.log_weights[0]


@given(models(max_spins=8), st.integers(1, 60))
@settings(max_examples=60)
def test_the_heaviest_states_of_any_model(model, count):
    found = sz.map_state(model, "exact", count=count)
    weights = np.sort(model.log_weight(all_states(model.n)))[::-1][:count]
    assert found.log_weights == pytest.approx(weights, rel=1e-9, abs=1e-9)
    assert len(np.unique(found.states, axis=0)) == len(weights)


def test_the_search_finds_the_heaviest_states_too():
    model = sz.generators.complete(12, 1.0, seed=4)
    found = sz.map_state(model, "search", count=5, work=2e8)
    assert found.log_weights == pytest.approx(np.sort(model.log_weight(all_states(12)))[::-1][:5])


# ------------------------------------------------------------------------------------------------------- the search


def test_crossing_takes_the_best_of_each_region():
    """On a chain cut into pieces: against all ways to take pieces from either state."""
    rng = np.random.default_rng(1)
    model = sz.Ising.from_edges(
        24, [(i, i + 1) for i in range(23)], rng.normal(size=23), field=0.3 * rng.normal(size=24)
    )
    couplings = model.storage.for_kernels()
    for _ in range(20):
        x, other = rng.choice(np.array([-1, 1], dtype=np.int8), size=(2, 24))
        child = best_of_both(model, x, other)
        differs = np.flatnonzero(x != other)
        pieces = np.split(differs, np.flatnonzero(np.diff(differs) > 1) + 1)
        ways = np.repeat(x[None], 2 ** len(pieces), axis=0)
        for k, piece in enumerate(pieces):
            ways[np.ix_(np.arange(len(ways)) >> k & 1 == 1, piece)] = other[piece]
        assert float(model.log_weight(child)) == pytest.approx(float(np.max(model.log_weight(ways))))
        drawn = mixed(couplings, x, other, rng)
        assert ((drawn == x) | (drawn == other)).all()
        for piece in pieces:  # whole, unless there are few
            assert len(pieces) < 4 or len({bool(drawn[i] == x[i]) for i in piece}) == 1


@pytest.mark.parametrize("is_dense", [False, True])
def test_tabu_search_leaves_local_maxima(is_dense):
    model = sz.generators.complete(14, 1.0, seed=2) if is_dense else sz.generators.spin_glass_3d(3, 1.0, 5)
    couplings, rng = model.storage.for_kernels(), np.random.default_rng(0)
    assert couplings.is_dense == is_dense
    x = rng.choice(np.array([-1, 1], dtype=np.int8), size=model.n)
    h = model.field + couplings.times(x.astype(float))
    best, random = np.empty_like(x), np.array([12345], dtype=np.uint32)
    steps = tabu.search(x, h, couplings, 5000, 2000, np.array([2, 6]), random, best)
    assert h == pytest.approx(model.field + couplings.times(x.astype(float)), abs=1e-9)  # kept up to date
    assert 2000 < steps <= 5000
    if is_dense:
        assert float(model.log_weight(best)) == pytest.approx(heaviest(model))
    assert float(model.log_weight(best)) >= float(model.log_weight(x))


def test_exchange_ends_where_no_flip_and_no_coupled_pair_gains():
    model = sz.generators.complete(12, 1.0, seed=3)
    couplings = model.storage.for_kernels()
    for seed in range(5):
        x = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=12)
        tabu.exchange(x, model.field + couplings.times(x.astype(float)), couplings, True)
        flips = 1 - 2 * np.eye(12, dtype=np.int8)
        near = np.concatenate([x * flips, *(x * flips * flips[k] for k in range(12))])
        assert float(np.max(model.log_weight(near))) <= float(model.log_weight(x)) + 1e-9


def test_penalties_do_not_stop_the_search():
    """Choose 5 of 18: single flips break the penalty; against all states that keep it."""
    rng = np.random.default_rng(7)
    Q = np.triu(rng.normal(size=(18, 18)))
    Q += 10.0 * (1.0 - 2.0 * 5.0 * np.eye(18))
    model = sz.from_qubo(Q)
    found = sz.map_state(model, "search", work=1e8)
    assert found.log_weight == pytest.approx(heaviest(model))


def test_an_interrupted_search_returns_the_best_so_far(monkeypatch):
    model = sz.generators.complete(30, 1.0, seed=0)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spectralz.inference.heaviest._bound", interrupt)
    found = sz.map_state(model, "search", work=1e7)
    assert found.interrupted
    assert "interrupted" in found.status
    assert not found.status.converged
    assert found.upper >= found.log_weight == float(model.log_weight(found.state))


def test_evidence_and_machines():
    model = MODELS["grid"]
    found = sz.map_state(model, given={0: -1, 8: +1})
    x = all_states(9)
    x = x[(x[:, 0] == -1) & (x[:, 8] == 1)]
    assert found.state[[0, 8]].tolist() == [-1, 1]
    assert float(model.log_weight(found.state)) == pytest.approx(float(np.max(model.log_weight(x))))
    machine = sz.RBM([[1.0, -2.0]], [0.5], [0.0, 1.0])
    units = sz.map_state(machine).state
    assert set(units.tolist()) <= {0, 1}
    assert float(machine.log_weight(units)) == pytest.approx(heaviest(machine.to_ising()))


def test_what_is_refused():
    with pytest.raises(OptionError, match="exact, search"):
        sz.map_state(MODELS["grid"], "quench")
    with pytest.raises(OptionError, match="count"):
        sz.map_state(MODELS["grid"], count=0)
    with pytest.raises(OptionError, match=r"count is 1000000000: states of 1000 spins take .*max_memory"):
        sz.map_state(sz.generators.chain(1000, 1.0), count=10**9)
    with pytest.raises(TooLargeError, match="out of reach"):
        sz.map_state(sz.generators.complete(80, 1.0, seed=0), "exact")
    with pytest.raises(TooLargeError, match="max_memory"):
        sz.map_state(sz.generators.grid(12, 1.0, seed=0), "exact", max_memory="64 KiB")


def test_words():
    found = sz.map_state(MODELS["grid"])
    assert "proven" in repr(found)
    assert "no state is heavier" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["proven"] is True
    assert "at most" in repr(sz.map_state(sz.generators.complete(30, 1.0, seed=0), "search", work=1e6))


# ------------------------------------------------------------------------------------------------------------ files


def test_answers_go_out_and_come_back(tmp_path):
    state = np.array([1, -1, -1, 1], dtype=np.int8)
    write_map(state, tmp_path / "a.MAP")
    assert (tmp_path / "a.MAP").read_text() == "MAP\n4 1 0 0 1\n"
    assert np.array_equal(read_map(tmp_path / "a.MAP", 4), state)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MAR\n1 0\n", "MAP answer"),
        ("MAP\n3 0 1 0\n", "3 variables"),
        ("MAP\n2 0 2\n", "states are 0 and 1"),
        ("MAP\n2 0\n", "truncated"),
    ],
)
def test_answers_that_are_none(tmp_path, text, words):
    (tmp_path / "a.MAP").write_text(text)
    with pytest.raises(FormatError, match=words):
        read_map(tmp_path / "a.MAP", 2)


@pytest.fixture
def run(run):
    """Run the command line in a folder with the files that it reads."""
    sz.write(MODELS["grid"], "grid.uai")
    return run


def test_the_command(run, tmp_path):
    code, out, err = run("map", "grid.uai", "--map", "grid.MAP", "--states", "grid.csv")
    assert (code, "proven" in out) == (0, True), err
    state = read_map(tmp_path / "grid.MAP", 9)
    assert float(MODELS["grid"].log_weight(state)) == pytest.approx(heaviest(MODELS["grid"]))
    assert np.loadtxt(tmp_path / "grid.csv", delimiter=",").tolist() == state.tolist()
    code, out, _ = run("map", "grid.uai", "--json", "-m", "search", "-w", "1e7")
    assert json.loads(out)["log_weight"] == pytest.approx(heaviest(MODELS["grid"]))
    assert run("map", "grid.uai", "--map", "grid.uai")[0] == 2


def test_an_interrupted_command_exits_with_130(run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spectralz.inference.heaviest._bound", interrupt)
    code, out, err = run("map", "grid.uai", "-m", "search", "-w", "1e6", "--count", "3", "--states", "three.csv")
    assert (code, "best state so far" in err) == (130, True), out
    assert np.loadtxt("three.csv", delimiter=",").shape == (3, 9)

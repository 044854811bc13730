"""Curves over temperature: sums over all states, closed forms, and errors that hold."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import pickle
import time

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import clock
from spectralz.errors import ModelError, OptionError, TooLargeError
from tests.helpers import with_slow
from tests.reference.states import all_states

BETAS = [1.7, 0.0, 0.4, 1.0]
MODELS = {
    "grid": sz.generators.grid(3, 1.0, seed=0),
    "dense": sz.generators.complete(9, 0.4, seed=1),
    "bipartite": sz.generators.bipartite(10, 0.6, seed=2),
    "offset": sz.Ising([0.3, -0.2, 0.1], 0.4 * np.ones((3, 3)), offset=2.5),
    "single": sz.Ising(field=[0.7]),
    "none": sz.Ising(field=[]),
}
QUANTITIES = ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap")


def enumerated(model, beta):
    """The definitions, state by state."""
    x = all_states(model.n)
    weight = np.asarray(model.log_weight(x), dtype=float)
    log_z = float(np.logaddexp.reduce(beta * weight))
    p = np.exp(beta * weight - log_z)
    energy = -float(p @ weight)
    n = max(model.n, 1)
    mean, m = p @ x, x.sum(axis=1) / n
    overlap = x @ x.T / n
    m_moments = [float(p @ power) for power in (m, np.abs(m), m**2, m**4)]
    q_moments = [float(p @ overlap**power @ p) for power in (2, 4)]
    return {
        "log_z": log_z,
        "energy": energy,
        "entropy": -float(p @ np.log(p)),
        "heat_capacity": beta**2 * float(p @ (weight + energy) ** 2),
        "magnetization": float(p @ x.sum(axis=1)) / n,
        "abs_magnetization": float(p @ np.abs(x.sum(axis=1))) / n,
        "overlap": float(mean @ mean) / n,
        "magnetization_moments": m_moments,
        "binder": 1.0 - m_moments[3] / (3.0 * m_moments[2] ** 2) if model.n else 0.0,
        "overlap_moments": q_moments,
        "overlap_binder": 1.0 - q_moments[1] / (3.0 * q_moments[0] ** 2) if model.n else 0.0,
    }


@pytest.mark.parametrize("name", MODELS)
def test_exact_curves_are_sums_over_all_states(name):
    found = sz.thermodynamics(MODELS[name], BETAS)
    assert found.kind is sz.Kind.EXACT
    assert found.beta.tolist() == BETAS
    for k, beta in enumerate(BETAS):
        for quantity, value in enumerated(MODELS[name], beta).items():
            assert getattr(found, quantity)[k] == pytest.approx(value, abs=1e-9), (quantity, beta)
            off = np.abs(getattr(found, quantity)[k] - np.array(value))
            assert np.all(off <= getattr(found, f"{quantity}_error")[k] + 1e-12), quantity


def test_eliminations_give_the_same_as_a_list_of_states(monkeypatch):
    model = MODELS["dense"]
    listed = sz.thermodynamics(model, BETAS)
    monkeypatch.setattr("spectralz.inference.temperatures.seconds_of_all_states", lambda *_: np.inf)
    eliminated = sz.thermodynamics(model, BETAS)
    assert eliminated.binder is None
    for name in QUANTITIES:
        off = np.abs(getattr(listed, name) - getattr(eliminated, name))
        assert np.all(off <= getattr(listed, f"{name}_error") + getattr(eliminated, f"{name}_error") + 1e-12), name


def test_tables_have_a_column_for_each_moment():
    table = sz.thermodynamics(MODELS["grid"], BETAS).to_pandas()
    assert table["beta"].tolist() == BETAS
    assert {"m2", "m4_error", "q4", "binder", "log_z_error", "trusted"} <= set(table.columns)
    assert table["abs_m"].tolist() == table["abs_magnetization"].tolist()


@pytest.mark.parametrize("name", with_slow(["grid", "dense", "bipartite", "offset"], ["grid", "offset"]))
def test_annealed_curves_are_within_their_errors(name):
    found = sz.thermodynamics(MODELS[name], BETAS, "annealing", work=3e8, seed=3)
    assert found.kind is sz.Kind.ESTIMATE
    for k, beta in enumerate(BETAS):
        for quantity, value in enumerated(MODELS[name], beta).items():
            error = getattr(found, f"{quantity}_error")[k]
            off = np.abs(getattr(found, quantity)[k] - np.array(value))
            assert np.all(off <= 4.0 * error + 1e-12), (quantity, beta)
            assert np.all(error <= 0.03 * max(model_scale(MODELS[name]), 1.0)), (quantity, beta)


def model_scale(model):
    return float(np.abs(model.edges()[1]).sum()) ** 2 + model.n


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")  # too little work for trust
@pytest.mark.slow
def test_errors_are_as_large_as_the_scatter():
    """Over seeds, deviations are about one error: an error ten times too large would pass any bound."""
    model, betas = MODELS["dense"], [0.5, 1.0]
    truth = [enumerated(model, beta) for beta in betas]
    deviations = []
    for seed in range(12):
        found = sz.thermodynamics(model, betas, "annealing", work=1e7, seed=seed)
        for quantity in ("log_z", "energy", "heat_capacity", "abs_magnetization"):
            error = getattr(found, f"{quantity}_error")
            deviations += [(getattr(found, quantity)[k] - truth[k][quantity]) / error[k] for k in range(2)]
    assert 0.5 < float(np.sqrt(np.mean(np.square(deviations)))) < 1.4


def test_the_torus_of_onsager():
    """log Z of Kaufman, and its slope."""
    betas, step = np.array([0.3, 0.44]), 1e-4
    found = sz.thermodynamics(sz.generators.torus(6, 6, 1.0), betas, "exact")
    for k, beta in enumerate(betas):
        values = [sz.closed_forms.torus(6, 6, beta + shift * step) for shift in (-1, 0, 1)]
        assert found.log_z[k] == pytest.approx(values[1], rel=1e-12)
        assert found.energy[k] == pytest.approx((values[0] - values[2]) / (2 * step), rel=1e-6)
        assert found.heat_capacity[k] == pytest.approx(
            beta**2 * (values[0] - 2 * values[1] + values[2]) / step**2, rel=1e-4
        )


def test_low_rank_models_of_many_spins():
    found = sz.thermodynamics(sz.generators.curie_weiss(400, 1.0), [0.5, 1.0, 1.5])
    assert found.method == "quadrature"
    for k, beta in enumerate(found.beta):
        assert found.log_z[k] == pytest.approx(sz.closed_forms.curie_weiss(400, beta), rel=1e-12)
    assert np.argmax(found.heat_capacity) > 0


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")  # too little work for trust
@pytest.mark.slow
def test_the_same_work_gives_the_same_curves():
    first, second = (
        sz.thermodynamics(MODELS["grid"], [0.5, 1.0], "annealing", work=1e7, seed=1, threads=threads)
        for threads in (1, 2)
    )
    for name in first.names:
        assert np.array_equal(getattr(first, name), getattr(second, name))
    other = sz.thermodynamics(MODELS["grid"], [0.5, 1.0], "annealing", work=1e7, seed=2)
    assert not np.array_equal(first.log_z, other.log_z)


def test_evidence_and_machines():
    model = MODELS["grid"]
    found = sz.thermodynamics(model, [1.0], given={0: +1})
    assert found.log_z[0] == pytest.approx(sz.log_z(model, given={0: +1}).log_z)
    machine = sz.RBM([[1.0, -2.0]], [0.5], [0.0, 1.0])
    assert sz.thermodynamics(machine, [1.0]).log_z[0] == pytest.approx(sz.log_z(machine).log_z)


def test_energy_and_entropy_are_short_ways():
    truth = enumerated(MODELS["dense"], 1.0)
    assert float(sz.energy(MODELS["dense"])) == pytest.approx(truth["energy"])
    assert float(sz.entropy(MODELS["dense"])) == pytest.approx(truth["entropy"])
    assert float(sz.entropy(MODELS["dense"], base=2)) == pytest.approx(truth["entropy"] / np.log(2))
    with pytest.raises(OptionError, match="base is 1"):
        sz.entropy(MODELS["dense"], base=1)
    sampled = sz.energy(MODELS["dense"], "annealing", work=1e8)
    assert abs(sampled.value - truth["energy"]) < 4.0 * sampled.std_error
    assert "±" in repr(sampled)
    assert json.loads(json.dumps(sampled.to_dict()))["kind"] == "estimate"


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("strength", [1e5, 1e8, 1e11, 1e14, 1e17])
def test_differences_of_large_numbers_stay_within_what_is_certain(strength):
    """Far below the smallest gap only the ground states count; their number does not depend on the strength."""
    model = sz.generators.complete(n=6, strength=strength, seed=4)
    weights = model.log_weight(all_states(6))
    gaps = np.sort(weights.max() - weights)
    truth = float(np.log(np.exp(-gaps).sum()) + (gaps * np.exp(-gaps)).sum() / np.exp(-gaps).sum())
    found = sz.entropy(model)
    assert 0.0 <= found.value <= 6.0 * np.log(2.0)
    assert abs(found.value - truth) <= found.std_error + 1e-6
    if found.std_error > 0.01:
        assert found.kind is sz.Kind.ESTIMATE
        assert not found.trusted
        assert "not to be trusted" in repr(found)
    curves = sz.thermodynamics(model, [0.5, 1.0])
    assert np.all((curves.entropy >= 0.0) & (curves.entropy <= 6.0 * np.log(2.0)))
    assert np.all(curves.heat_capacity >= 0.0)
    for value, error in [(curves.heat_capacity, curves.heat_capacity_error), (curves.entropy, curves.entropy_error)]:
        assert np.all(error[curves.trusted] <= 0.01 * np.maximum(value, 1.0)[curves.trusted])


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_cold_curves_say_where_they_end():
    model = sz.generators.grid(8, 6.0, seed=0)
    found = sz.thermodynamics(model, [0.01, 3.0], "annealing", work=2e8)
    exact = sz.thermodynamics(model, [0.01, 3.0])
    assert found.trusted[0]
    if found.trusted[1]:
        assert abs(found.log_z[1] - exact.log_z[1]) < 5.0 * found.log_z_error[1]


@pytest.mark.parametrize(
    ("betas", "words"),
    [([], "empty"), ([-1.0], "-1"), ([math.nan], "nan"), ([math.inf], "inf"), ("cold", "numbers from 0 on")],
)
def test_betas_that_are_none(betas, words):
    with pytest.raises(OptionError, match=words):
        sz.thermodynamics(MODELS["grid"], betas)


def test_what_is_refused():
    with pytest.raises(OptionError, match="curves are made by one of"):
        sz.thermodynamics(MODELS["grid"], [1.0], "bp")
    with pytest.raises(TooLargeError, match="out of reach"):
        sz.thermodynamics(sz.generators.complete(60, 1.0, seed=0), [1.0], "exact")
    with pytest.raises(ModelError):
        sz.thermodynamics(sz.generators.grid(6, 1.0, seed=0), [1.0], "quadrature")


def test_pictures_and_words():
    import matplotlib.pyplot as plt

    found = sz.thermodynamics(MODELS["grid"], np.linspace(0.1, 2.0, 50))
    assert len(found.plot()) == 4
    axes = found.plot_of("magnetization")
    assert axes.get_ylabel() == "magnetization"
    with pytest.raises(OptionError, match="there is no 'color'"):
        found.plot_of("color")
    with pytest.raises(OptionError, match="four of them"):
        found.plot([axes])
    plt.close("all")
    assert "..." in str(found)
    assert set(found.to_dict()) >= {"beta", "log_z", "log_z_error", "trusted"}


@pytest.fixture
def run(run):
    """Run the command line in a folder with the files that it reads."""
    sz.write(MODELS["grid"], "grid.uai")
    return run


def test_the_command(run, tmp_path):
    code, out, err = run("curve", "grid.uai", "--betas", "0.5:1.5:3", "--plot", "curve.png")
    assert (code, "heat capacity" in out) == (0, True), err
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run("curve", "grid.uai", "--betas", "1,2", "--json")
    found = json.loads(out)
    assert found["beta"] == [1.0, 2.0]
    assert found["log_z"][0] == pytest.approx(sz.log_z(MODELS["grid"]).log_z)


@pytest.mark.parametrize("betas", ["1:2", "1:2:0", "a", "1:2:1e9", "-1,2"])
def test_the_command_refuses_what_is_no_list(run, betas):
    code, out, err = run("curve", "grid.uai", "--betas", betas)
    assert (code, out) == (2, "")
    assert "beta" in err


# ---------------------------------------------------------------------------------------------------- interrupts


def interrupt_after(monkeypatch, place, calls):
    """Let a function be interrupted after so many calls."""
    module, name = place.rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)
    count = itertools.count()

    def interrupted(*arguments, **options):
        if next(count) >= calls:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    monkeypatch.setattr(place, interrupted)


def test_an_interrupt_leaves_the_temperatures_that_are_done(monkeypatch):
    monkeypatch.setattr("spectralz.inference.temperatures.seconds_of_all_states", lambda *_: np.inf)
    interrupt_after(monkeypatch, "spectralz.inference.temperatures.quantities", 2)
    found = sz.thermodynamics(MODELS["grid"], BETAS, "exact")
    assert found.interrupted
    assert not found.status.converged
    assert str(found.status).startswith("interrupted")
    assert found.beta.tolist() == BETAS[:2]
    assert found.log_z[0] == pytest.approx(enumerated(MODELS["grid"], BETAS[0])["log_z"])
    assert json.loads(json.dumps(found.to_dict()))["interrupted"] is True


def test_an_interrupt_of_a_list_of_states_leaves_the_temperatures_that_are_done(monkeypatch):
    interrupt_after(monkeypatch, "spectralz.inference.all_states._at", 2)
    found = sz.thermodynamics(MODELS["grid"], BETAS)
    assert found.interrupted
    assert found.beta.tolist() == BETAS[:2]
    assert found.binder.shape == (2,)


def test_an_interrupt_before_the_first_temperature_is_an_interrupt(monkeypatch):
    interrupt_after(monkeypatch, "spectralz.inference.all_states._at", 0)
    with pytest.raises(KeyboardInterrupt):
        sz.thermodynamics(MODELS["grid"], BETAS, "exact")


@pytest.mark.parametrize("populations", [5, 70])
def test_an_interrupt_of_annealing_leaves_the_populations_that_are_done(monkeypatch, populations):
    """In the first population or in the second; what they say is not trusted."""
    interrupt_after(monkeypatch, "spectralz.sampling.curves.cooling.visit", populations)
    found = sz.thermodynamics(MODELS["grid"], [0.4, 1.0], "annealing", work=1e9, seed=0, threads=1)
    assert found.interrupted
    assert not found.trusted.any()
    for k, beta in enumerate(found.beta):
        truth = enumerated(MODELS["grid"], beta)
        assert abs(found.log_z[k] - truth["log_z"]) < 6.0 * found.log_z_error[k] + 0.1


def test_an_interrupt_before_the_first_population_is_an_interrupt(monkeypatch):
    interrupt_after(monkeypatch, "spectralz.sampling.curves.cooling.visit", 0)
    with pytest.raises(KeyboardInterrupt):
        sz.thermodynamics(MODELS["grid"], [0.4, 1.0], "annealing", work=1e9, threads=1)


@pytest.mark.parametrize(
    ("place", "calls"), [("inference.estimated_curves.cooled", 1), ("sampling.curves.cooling.visit", 5)]
)
def test_an_interrupt_with_constraints_leaves_the_temperatures_that_are_done(monkeypatch, place, calls):
    """Between two temperatures, and within the first one, which is then not trusted."""
    model = MODELS["grid"].with_constraints(sz.constraints.exactly_one([0, 1, 2]))
    interrupt_after(monkeypatch, f"spectralz.{place}", calls)
    found = sz.thermodynamics(model, [0.4, 1.0], "annealing", work=1e9, seed=0, threads=1)
    assert found.interrupted
    assert found.beta.tolist() == [0.4]
    assert found.trusted.tolist() == [calls == 1]
    truth = sz.log_z(model.scaled(0.4), "exact").log_z
    assert abs(found.log_z[0] - truth) < 6.0 * found.log_z_error[0] + 0.1


def test_an_interrupt_of_contractions_leaves_the_temperatures_that_are_done(monkeypatch):
    model = sz.generators.grid(6, 1.0, seed=0)
    interrupt_after(monkeypatch, "spectralz.inference.estimated_curves._at", 2)
    found = sz.thermodynamics(model, [0.3, 0.5, 0.8, 1.0], exclude=["exact"], work=1e10)
    assert found.interrupted
    assert found.method == "mps"
    assert found.beta.tolist() == [0.3, 0.5]
    assert found.log_z[0] == pytest.approx(sz.log_z(model.scaled(0.3), "exact").log_z)


@pytest.mark.slow
def test_contracted_curves_are_those_of_exact_sums():
    grid = sz.generators.grid(6, 1.0, seed=4)
    model = sz.Ising.from_edges(grid.n, *grid.edges(), field=grid.field, offset=1.5)
    betas = [0.0, 0.3, 1.0, 2.5]
    truth = sz.thermodynamics(model, betas, "exact")
    found = sz.thermodynamics(model, betas, "mps", budget=60)
    assert found.method == "mps"
    assert found.trusted.all()
    for name in ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap"):
        off = np.abs(getattr(found, name) - getattr(truth, name))
        assert (off <= getattr(found, f"{name}_error") + 1e-8).all(), name
        assert off.max() < 1e-4, name


def test_curves_say_why_a_method_cannot_answer_and_what_replaces_tempering():
    with pytest.raises(TooLargeError, match=r"mps|neighbors|frontier"):
        sz.thermodynamics(sz.generators.complete(60, 0.1, seed=0), [1.0], "mps")
    with pytest.raises(OptionError, match="exclude less"):
        sz.thermodynamics(sz.generators.random_regular(300, 3, 1.0, 0), [1.0], exclude=["mps", "annealing"], budget=1)
    with pytest.raises(OptionError, match=r"tempering was removed in 0\.3: use annealing"):
        sz.thermodynamics(MODELS["grid"], [1.0], "tempering")


def test_methods_can_be_left_out():
    model = sz.generators.grid(6, 1.0, seed=0)
    assert sz.thermodynamics(model, [0.5], exclude=["exact"], budget=5).method == "mps"
    with pytest.raises(OptionError, match="leaves no method"):
        sz.thermodynamics(model, [0.5], exclude=["exact", "quadrature", "planar", "mps", "annealing"])
    with pytest.raises(OptionError, match="exclude"):
        sz.thermodynamics(model, [0.5], exclude=["ep"])


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_where_time_is_short_curves_are_not_trusted_and_say_so():
    found = sz.thermodynamics(MODELS["grid"], [0.5, 1.0], "annealing", work=1e6)
    assert "no time to look for phases" in str(found.status)
    assert not found.trusted.any()
    for k, beta in enumerate(found.beta):
        assert abs(found.log_z[k] - enumerated(MODELS["grid"], beta)["log_z"]) < 6.0 * found.log_z_error[k] + 0.05


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_rough_curves_are_near_the_truth_where_it_is_hot():
    model = sz.generators.torus(40, 40, 0.3)
    found = sz.thermodynamics(model, [0.1, 0.2], "annealing", work=1e6)
    assert not found.trusted.any()
    for k, beta in enumerate([0.1, 0.2]):
        assert abs(found.log_z[k] - sz.closed_forms.torus(40, 40, 0.3 * beta)) < 2.0 * found.log_z_error[k] < 40.0
        slope = sz.closed_forms.torus(40, 40, 0.3 * (beta + 1e-4)) - sz.closed_forms.torus(40, 40, 0.3 * (beta - 1e-4))
        assert abs(found.energy[k] + slope / 2e-4) < 5.0 * found.energy_error[k] < 500.0


@pytest.mark.parametrize("later", with_slow([1.0, 1.5, 4.0], [1.0, 4.0]))
def test_trust_does_not_depend_on_how_busy_the_machine_is(later):
    """By a clock that is 1.5 times too fast, from the beginning or from the first second on even more."""
    began = time.perf_counter()

    def fast():
        passed = time.perf_counter() - began
        return 1.5 * (passed + (later - 1.0) * max(passed - 1.0, 0.0))

    with clock.using_clock(fast):
        found = sz.thermodynamics(sz.generators.sk(60, 1.0, seed=1), [0.5, 1.0], "annealing", budget=6)
    assert found.trusted.all()
    assert found.log_z_error.max() < 0.2


# ------------------------------------------------------------------------------------------ between the temperatures


@pytest.mark.parametrize("name", ["grid", "dense", "offset"])
@pytest.mark.parametrize("seed", range(3))
def test_curves_between_temperatures_are_sums_over_all_states(name, seed):
    between = [0.15, 0.45, 0.8, 1.1]
    curves = sz.thermodynamics(MODELS[name], [0.0, 0.3, 0.6, 1.0, 1.3], "annealing", work=3e7, seed=seed)
    found = curves.at(between)
    assert found.trusted.all()
    # Blocks have different numbers of the states that are kept, which is no error.
    assert found.log_z_error.max() < 2.0 * curves.log_z_error.max() < 0.05
    for k, beta in enumerate(between):
        truth = enumerated(MODELS[name], beta)
        for quantity in (*QUANTITIES[:5], "abs_magnetization", "magnetization_moments", "binder"):
            off = np.abs(getattr(found, quantity)[k] - truth[quantity])
            assert (off < 4.5 * getattr(found, f"{quantity}_error")[k] + 1e-9).all(), (quantity, beta)


def test_states_of_both_neighbors_count_by_their_log_z():
    """States of the colder temperature count by its log Z: too heavy there is too heavy in between."""
    truth = sz.thermodynamics(MODELS["dense"], [0.7], "exact")
    curves = sz.thermodynamics(MODELS["dense"], [0.5, 1.0], "annealing", work=3e8)
    states = curves.between.histograms
    log_z = curves.log_z + np.array([0.0, 1.0])
    shifted = type(states)(states.betas, log_z, states.kept)
    assert states.at(0.7)[0]["log_z"][0] == pytest.approx(truth.log_z[0], abs=0.05)
    assert 0.1 < shifted.at(0.7)[0]["log_z"][0] - truth.log_z[0] < 0.9


def test_other_curves_are_computed_again_between_their_temperatures():
    curves = sz.thermodynamics(MODELS["grid"], [0.2, 1.0])
    assert curves.method == "exact"
    again = pickle.loads(pickle.dumps(curves)).at(0.5)
    assert again == sz.thermodynamics(MODELS["grid"], [0.5])
    assert curves == pickle.loads(pickle.dumps(curves))


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_temperatures_too_far_apart_are_not_trusted_in_between():
    model = sz.generators.sk(60, 1.0, seed=1)
    curves = sz.thermodynamics(model, [0.01, 6.0], "annealing", work=1e9)
    found = curves.at([0.01, 2.0])
    assert found.trusted[0] == curves.trusted[0]
    assert not found.trusted[1]
    assert "too far away" in str(found.status)


@pytest.mark.parametrize("beta", [0.1, 1.1, math.nan, [0.5, 2.0], "cold", []])
def test_temperatures_outside_of_curves_are_refused(beta):
    curves = sz.thermodynamics(MODELS["grid"], [0.2, 1.0])
    with pytest.raises(OptionError, match=r"0\.2 to 1|give one inverse temperature"):
        curves.at(beta)

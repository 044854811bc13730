"""The method ``tempering``: ladders of all engines against sums over all states, and when answers are trusted."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import spectralz as sz
from spectralz._support import devices
from spectralz._support.deadline import Deadline
from spectralz.errors import OptionError, TooLargeError
from spectralz.sampling import tempering
from spectralz.sampling.engines import device_sparse
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.path import from_fields, path_to
from spectralz.sampling.phases import Phase, Phases, Stratum
from spectralz.sampling.tempering import (
    COPIES,
    FEWEST_VISITORS,
    Passed,
    Sight,
    Sights,
    Tempered,
    integrated,
    temper,
    unmet,
)
from spectralz.trust.tempering import judge_tempered
from tests.reference.states import all_states, log_z

BIPARTITE = sz.Ising.from_edges(9, [(i, j) for i in range(3) for j in range(3, 9)], np.linspace(-1.2, 1.4, 18))
BIPARTITE = sz.Ising(np.linspace(-0.5, 0.7, 9), BIPARTITE.coupling)
GLASS = sz.generators.spin_glass_3d(3, 1.5, seed=1)
POINTS = np.array([0.0, 0.2, 0.45, 0.7, 1.0])


def sum_at(model, base, point):
    """Return log Z at a point of the path from fields, without the model's constant, by enumeration."""
    x = all_states(model.n)
    start = x @ base
    return float(np.logaddexp.reduce(start + point * (np.asarray(model.log_weight(x)) - model.constant - start)))


def path_between_sides(flips):
    path = from_fields(BIPARTITE, np.linspace(0.3, -0.2, 9), sides=sides_of(BIPARTITE))
    return replace(path, flips=flips)


# ----------------------------------------------------------------------------------------------------------- ladders


@pytest.mark.parametrize("flips", [False, True], ids=["layers", "flips"])
@pytest.mark.parametrize("copies", [64, pytest.param(128, marks=pytest.mark.slow)])
def test_ladders_with_a_side_summed_out_are_sums_over_all_states(flips, copies):
    path, seen = path_between_sides(flips), []
    options = {"copies": copies, "most_rounds": 1000, "look": lambda sight: seen.append(sight.x), "looks": 60}
    found = temper(path, POINTS, Deadline(), np.random.default_rng(1), **options)
    assert found.rounds == 1000
    assert found.passed.on.shape == (500, 5, copies)
    logs, apart = found.log_z
    for k, point in enumerate(POINTS.tolist()):
        assert logs[k] == pytest.approx(sum_at(BIPARTITE, path.base, point), abs=0.04), point
        assert float(tempering.error_of(apart[k])) < 0.025
    x = all_states(9)
    weight = np.exp(np.asarray(BIPARTITE.log_weight(x)) - float(log_z(BIPARTITE)))
    states = np.concatenate([each[-1] for each in seen])
    assert states.mean(axis=0) == pytest.approx(weight @ x, abs=0.06)
    # the summed side belongs to the temperature of its copy: at the base spins are independent
    assert np.concatenate([each[0] for each in seen]).mean(axis=0) == pytest.approx(np.tanh(path.base), abs=0.06)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX, of the extra gpu")
def test_ladders_on_a_device_are_sums_over_all_states(monkeypatch):
    import jax

    monkeypatch.setattr(devices, "_gpus", lambda _: jax.devices("cpu"))
    monkeypatch.setattr(device_sparse, "MOST_TOGETHER", 128)
    model = sz.Ising.from_edges(9, [(i, i + 1) for i in range(8)] + [(0, 4)], np.linspace(-1.0, 1.3, 9))
    model = sz.Ising.from_edges(9, *model.edges(), field=np.linspace(-0.3, 0.4, 9))
    with devices.using_device("gpu"):
        path = path_to(model)
        assert isinstance(path.engine, device_sparse.DeviceSparseEngine)
        found = temper(path, POINTS, Deadline(), np.random.default_rng(1), most_rounds=300)
        answer = sz.log_z(model, "tempering", sweeps=200, device="gpu")
    for k, point in enumerate(POINTS.tolist()):
        assert found.log_z[0][k] == pytest.approx(sum_at(model, path.base, point), abs=0.04), point
    assert found.visitors[-1] > 100
    assert abs(answer.log_z - sz.log_z(model, "exact").log_z) < 4.0 * answer.std_error


def normal_ladder(rungs, rounds, deviation=2.0):
    """Return a ladder of independent copies whose energies are normal: log Z is m p + v p^2 / 2."""
    rng = np.random.default_rng(3)
    points = np.linspace(0.0, 1.0, rungs)
    energy = rng.normal(5.0 + deviation**2 * points[:, None], deviation, (rounds, rungs, COPIES))
    before, after = np.append(0.0, points[:-1]), np.append(points[1:], 1.0)
    passed = Passed((before - points)[:, None] * energy, (after - points)[:, None] * energy)
    half = Passed(*(part[: rounds // 2] for part in passed))
    visitors = np.full(rungs, 1000)
    return Tempered(
        points, passed, half, visitors, 7.0, np.ones(rungs - 1), rounds, np.ones((rungs, COPIES, 1), np.int8)
    )


def test_integration_and_ratios_give_what_normal_energies_have():
    found = normal_ladder(5, 4000)
    truth = 7.0 + 5.0 + 0.5 * 2.0**2
    by_integral, curvature = integrated(found)
    logs, apart = found.log_z
    assert logs[-1] == pytest.approx(truth, abs=0.02)
    assert by_integral == pytest.approx(truth, abs=0.02)
    assert curvature < 0.02
    assert float(tempering.error_of(apart[-1])) < 0.02
    assert np.allclose(found.energy[:, :-1], found.passed.on[:, :-1] / 0.25)
    assert np.allclose(found.energy[:, -1], -found.passed.back[:, -1] / 0.25)


@pytest.mark.slow
def test_curved_integrals_are_right_to_the_third_order():
    """Two spins: the mean change of log-weights is a hyperbolic tangent, and there are few points."""
    rng, K = np.random.default_rng(5), 1.5
    points = np.linspace(0.0, 1.0, 4)
    up = rng.random((200_000, 4, 8)) < ndtr(0.0) + 0.5 * np.tanh(K * points)[:, None]
    energy = K * np.where(up, 1.0, -1.0)
    before, after = np.append(0.0, points[:-1]), np.append(points[1:], 1.0)
    passed = Passed((before - points)[:, None] * energy, (after - points)[:, None] * energy)
    found = replace(normal_ladder(4, 4), points=points, passed=passed, log_z_of_base=math.log(2.0))
    truth = math.log(2.0 * math.cosh(K))
    without = found.log_z_of_base + 0.5 * float(
        (passed.on[:, :-1].mean(axis=(0, 2)) - passed.back[:, 1:].mean(axis=(0, 2))).sum()
    )
    assert abs(without - truth) > 0.008  # trapezoids alone
    assert integrated(found)[0] == pytest.approx(truth, abs=0.002)


# ------------------------------------------------------------------------------------------------------------- trust


def test_what_makes_an_answer_doubtful():
    good = normal_ladder(5, 400)
    judged = judge_tempered(good, 3.0)
    assert judged.trusted
    assert judged.why == ""
    assert abs(judged.log_z - 17.0) < 4.0 * judged.std_error < 0.3
    few = replace(good, visitors=np.array([1000, 1000, 500, 40, FEWEST_VISITORS - 1]))
    assert not judge_tempered(few, 0.0).trusted
    assert "at least 30 are needed: do not trust" in judge_tempered(few, 0.0).why
    assert judge_tempered(few, 0.0).std_error > 1.0 / FEWEST_VISITORS
    assert "12% of the copies at the model have never been" in judge_tempered(replace(good, stayed=0.12), 0.0).why
    moved = Passed(*(part + np.linspace(0.0, 0.5, 400)[:, None, None] for part in good.passed))
    assert "drift" in judge_tempered(replace(good, passed=moved), 0.0).why
    late = Passed(good.early.back - 0.3, good.early.on + 0.3)
    assert judge_tempered(replace(good, early=late), 0.0).std_error > judged.std_error
    skewed = Passed(good.passed.back, np.where(good.passed.on > 1.5, good.passed.on + 4.0, good.passed.on))
    early = Passed(*(part[:200] for part in skewed))
    assert "integrating mean energies" in judge_tempered(replace(good, passed=skewed, early=early), 0.0).why


def test_errors_come_from_groups_and_from_blocks_of_rounds():
    good = normal_ladder(3, 400)
    waves = np.repeat(np.tile([0.3, -0.3], 4), 50)[:, None, None]  # all copies together, block by block
    in_time = replace(good, passed=Passed(*(part + waves for part in good.passed)))
    lanes = 0.3 * np.repeat(np.tile([1.0, -1.0], 4), 8)  # group by group
    by_copies = replace(good, passed=Passed(good.passed.back - lanes, good.passed.on + lanes))
    small = judge_tempered(good, 0.0).std_error
    assert judge_tempered(by_copies, 0.0).std_error > 3.0 * small
    assert (
        judge_tempered(replace(in_time, passed=Passed(good.passed.back - waves, good.passed.on + waves)), 0.0).std_error
        > 3.0 * small
    )


def phases_of(n):
    """Return phases in which all spins are up, or all down, with a stratum of each."""
    up = Phase(np.full(n, 1.0 / n), 0.0)
    strata = tuple(Stratum(1 << k, sign * np.full(n, 2.0), 0.0) for k, sign in enumerate((1.0, -1.0)))
    return Phases((up, replace(up, pattern=-up.pattern)), strata)


def test_copies_that_began_in_a_phase_do_not_count():
    n, phases = 20, phases_of(20)
    x = np.ones((3, COPIES, n), np.int8)
    x[-1, ::2] = -1
    nothing = Passed(np.zeros((3, COPIES)), np.zeros((3, COPIES)))
    births = np.tile(np.arange(COPIES), (3, 1))
    births[-1, 1::2] = -1  # those that are up have not come from the base
    sights = Sights()
    sights.add(Sight(x, nothing, births))
    assert FEWEST_VISITORS < COPIES // 2
    assert [stratum.number for stratum in unmet(phases, sights).strata] == [1]
    sights.add(Sight(x, nothing, np.full((3, COPIES), 7)))  # one more is not enough
    assert [stratum.number for stratum in unmet(phases, sights).strata] == [1]
    run = sights.run(3.5)
    assert run.log_z == 3.5
    assert len(np.unique(run.family)) == COPIES // 2 + 2
    assert run.size == 2 * COPIES
    sights.add(Sight(x, nothing, np.tile(np.arange(COPIES), (3, 1))))
    assert unmet(phases, sights).strata == ()


def test_copies_start_in_the_phases_that_were_missed():
    model = sz.generators.curie_weiss(20, 3.0)
    path, phases = path_to(model), phases_of(20)
    x = np.where(np.arange(20) % 2, 1, -1) * np.ones((6, COPIES, 1), np.int8)
    start = tempering.in_phases(path, phases, x.astype(np.int8), np.random.default_rng(0), map_all)
    mean = start.mean(axis=2)
    assert np.array_equal(start[:3], x[:3])
    assert (mean[3:, 1::3] > 0.0).all()
    assert (mean[3:, 2::3] < 0.0).all()
    assert not mean[3:, ::3].any()


def map_all(work, numbers):
    for number in numbers:
        work(number)


# ------------------------------------------------------------------------------------------------------- the method


@pytest.mark.parametrize(
    "model",
    [
        GLASS,
        pytest.param(sz.generators.sk(14, 1.5, seed=1), marks=pytest.mark.slow),
        pytest.param(BIPARTITE, marks=pytest.mark.slow),
        pytest.param(sz.generators.torus(4, 5, 0.5), marks=pytest.mark.slow),
    ],
    ids=["sparse", "dense", "bipartite", "ferromagnet"],
)
def test_log_z_marginals_and_samples_are_right(model):
    exact = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, "tempering", sweeps=800)
    assert found.trusted
    assert abs(found.log_z - exact) < 4.0 * found.std_error < 0.6
    assert abs(found.details["by_integration"] - exact) < 4.0 * found.std_error + 0.05
    assert found.details["temperatures"] == len(found.details["points"])
    marginals = sz.marginals(model, "tempering", sweeps=800)
    truth = sz.marginals(model, "exact")
    assert (np.abs(marginals.mean - truth.mean) <= 5.0 * marginals.std_error).all()
    assert (np.abs(marginals.pair_mean - truth.pair_mean) <= 5.0 * marginals.pair_std_error).all()
    states = sz.sample(model, 500, "tempering", sweeps=800, seed=2)
    assert states.shape == (500, model.n)
    assert states.mean(axis=0) == pytest.approx(truth.mean, abs=0.3)


def test_a_huge_offset_is_rounding_and_nothing_overflows():
    found = sz.log_z(GLASS + sz.Ising(np.zeros(GLASS.n), offset=1e300), "tempering", sweeps=8)
    assert found.log_z == pytest.approx(1e300)
    assert 1e280 < found.std_error < 1e290


def test_options_say_what_they_do():
    found = sz.log_z(GLASS, "tempering", temperatures=6, population=65, sweeps=50)
    assert found.details["temperatures"] == 6
    assert "of 128 copies at 6 temperatures" in str(found.status)
    assert (
        sz.log_z(GLASS, "tempering", sweeps=30, seed=1).log_z == sz.log_z(GLASS, "tempering", sweeps=30, seed=1).log_z
    )
    assert (
        sz.log_z(GLASS, "tempering", sweeps=30, seed=1).log_z != sz.log_z(GLASS, "tempering", sweeps=30, seed=2).log_z
    )
    for options, words in (
        ({"temperatures": 1}, "temperatures is 1"),
        ({"population": 1}, "population is 1"),
        ({"sweeps": 3}, "sweeps is 3"),
    ):
        with pytest.raises(OptionError, match=words):
            sz.log_z(GLASS, "tempering", **options)
    with pytest.raises(OptionError, match=r"log-odds are at most 1,000.*use annealing"):
        sz.log_z(GLASS.scaled(1e5), "tempering")


@pytest.mark.slow
def test_threads_do_not_change_the_answer():
    model = sz.generators.spin_glass_3d(6, 1.0, seed=1)
    one, two = (sz.log_z(model, "tempering", sweeps=20, threads=threads).log_z for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    "model", [sz.Ising(field=[]), sz.Ising([0.7], [[0.0]]), sz.Ising([0.3, -0.2], np.zeros((2, 2)))]
)
def test_models_without_couplings(model):
    found = sz.log_z(model, "tempering", sweeps=40)
    assert found.trusted
    assert abs(found.log_z - sz.log_z(model, "exact").log_z) <= 4.0 * found.std_error < 0.2


def test_a_frozen_ladder_is_not_trusted():
    """Two phases far apart with rungs too few for copies to climb."""
    model = sz.Ising(np.full(60, 0.01), sz.generators.curie_weiss(60, 4.0).coupling)
    found = sz.log_z(model, "tempering", temperatures=2, sweeps=60)
    assert not found.trusted
    assert "do not trust" in str(found.status)


@pytest.mark.parametrize("call", [20, 100], ids=["on the first ladder", "on the second"])
def test_an_interrupt_keeps_what_there_is(monkeypatch, call):
    calls = iter(range(10**6))

    def interrupted(passed, lower, rng, changes=tempering._changes):
        if next(calls) == call:
            raise KeyboardInterrupt
        return changes(passed, lower, rng)

    monkeypatch.setattr(tempering, "_changes", interrupted)
    found = sz.log_z(GLASS, "tempering", sweeps=400)
    assert found.interrupted
    assert not found.trusted
    assert math.isfinite(found.log_z)
    assert next(calls) == call + 1  # it ends at once


def test_ladders_that_would_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr("spectralz.methods.tempering.MOST_MEMORY", 10_000)
    with pytest.raises(
        TooLargeError, match=r"64 copies of 27 spins at \d+ temperatures take .*, more than 9.77 KiB; use"
    ):
        sz.log_z(GLASS, "tempering")


def test_many_rounds_are_thinned(monkeypatch):
    monkeypatch.setattr(tempering, "MOST_KEPT", 100)
    found = temper(path_to(GLASS), POINTS, Deadline(), np.random.default_rng(0), copies=128, most_rounds=400)
    assert found.rounds == 400
    assert len(found.passed.on) == 50  # the second half of every fourth

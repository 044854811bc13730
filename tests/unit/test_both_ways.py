"""Annealing to the model and back: the middle of both ways, its error, and when to believe it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.portfolio.answers import Problem
from spectralz.portfolio.steps.anneal import _outcome_of_trip
from spectralz.sampling.engines.dense import DenseEngine
from spectralz.sampling.path import path_to
from spectralz.sampling.population import marginals_of
from spectralz.sampling.round_trips import RoundTrip, there_and_back
from spectralz.sampling.sweeps import survey
from spectralz.trust.states import inconsistency_of, judge_round_trip
from tests.helpers import with_slow
from tests.reference import states

LOG_Z = 7.0


def made_up(rng, variance, size=512, gap=None, variance_back=None):
    """Return log-weights that obey Crooks' relation, or not: normal, their means apart by their variance."""
    gap = variance if gap is None else gap
    variance_back = variance if variance_back is None else variance_back
    return RoundTrip(
        rng.normal(LOG_Z - gap / 2.0, math.sqrt(variance), size),
        rng.normal(LOG_Z + gap / 2.0, math.sqrt(variance_back), size),
        np.ones((size, 1), dtype=np.int8),
    )


def outcome_of(model, trip, missed=""):
    """Return what the schedule makes of a trip."""
    return _outcome_of_trip(Problem(model=model, tol=1e-3), trip, 10, missed)


# ------------------------------------------------------------------------------------------------ log-weights by hand


def test_the_middle_and_its_error_by_hand():
    found = RoundTrip(np.array([1.0, 3.0]), np.array([5.0, 9.0, 7.0, 7.0]), np.ones((2, 1), dtype=np.int8))
    assert found.log_z == 4.5
    assert found.gap == 5.0
    assert found.variances == pytest.approx((1.0, 2.0))
    assert inconsistency_of(found) == pytest.approx(abs(5.0 - 1.5) + 0.5)
    assert found.scatter == pytest.approx(0.5 * math.sqrt(1.0 + 2.0))
    # A third of the inconsistency, and a sixteenth of the gap
    judged = judge_round_trip(found)
    assert judged.log_z == 4.5
    assert judged.std_error == pytest.approx(math.hypot(found.scatter, 4.0 / 3.0, 5.0 / 16.0))


@pytest.mark.parametrize("variance", [0.1, 1.0, 9.0, 100.0])
@pytest.mark.parametrize("size", [64, 512])
def test_the_middle_is_right_near_equilibrium_and_its_error_covers_it(variance, size):
    rng = np.random.default_rng(1)
    found = [made_up(rng, variance, size) for _ in range(300)]
    off = np.array([each.log_z - LOG_Z for each in found])
    scatter = np.array([each.scatter for each in found])
    assert abs(off.mean()) < 4.0 * off.std() / math.sqrt(len(off))
    assert off.std() == pytest.approx(scatter.mean(), rel=0.15)  # of 300
    judged = [judge_round_trip(each) for each in found]
    assert (np.abs(off) < 4.0 * np.array([each.std_error for each in judged])).all()
    assert np.mean([each.trusted for each in judged]) > 0.85


@pytest.mark.parametrize(
    "violation",
    [
        {"variance": 4.0, "gap": 8.0},
        {"variance": 4.0, "gap": 1.0},
        {"variance": 4.0, "gap": -4.0},
        {"variance": 2.0, "variance_back": 8.0, "gap": 5.0},
        {"variance": 8.0, "variance_back": 2.0, "gap": 5.0},
        {"variance": 0.1, "gap": 0.5},
    ],
)
def test_what_is_out_of_equilibrium_is_not_trusted(violation):
    rng = np.random.default_rng(2)
    for _ in range(20):
        found = made_up(rng, **violation)
        judged = judge_round_trip(found)
        assert not judged.trusted
        assert judged.std_error > 0.1
        assert "out of equilibrium" in judged.why
        outcome = outcome_of(sz.Ising(field=[0.0]), found)
        assert outcome.trusted is False
        assert not outcome.status.converged
        assert "out of equilibrium" in outcome.status


def test_the_outcome_has_the_constant_of_the_model():
    found = made_up(np.random.default_rng(3), 1.0)
    model = sz.Ising(field=[0.0], offset=-100.0).shift_diagonal(2.0)
    judged = judge_round_trip(found, model.constant)
    outcome = outcome_of(model, found)
    for each in (judged, outcome):
        assert each.log_z == pytest.approx(found.log_z - 98.0)
        assert each.std_error == pytest.approx(judge_round_trip(found).std_error)
        assert each.trusted
    assert judged.why == ""
    assert outcome.status.converged
    assert outcome.details["gap"] == found.gap
    assert outcome.details["scatter"] == found.scatter
    assert outcome.details["inconsistency"] == inconsistency_of(found)


def test_states_that_missed_a_phase_are_not_trusted():
    found = made_up(np.random.default_rng(3), 1.0)
    outcome = outcome_of(sz.Ising(field=[0.0]), found, "; a phase is missing")
    assert outcome.trusted is False
    assert not outcome.status.converged
    assert outcome.status.endswith("; a phase is missing")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_large_models_go_both_ways():
    """A torus of 10,000 spins: no families would be left of a population."""
    result = sz.log_z(sz.generators.torus(100, 100, 0.4), exclude=["exact", "mps"], work=3e9)
    (row,) = (row for row in result.tried if row.method == "annealing")
    assert "states to the model and back through" in row.why
    assert abs(row.log_z - sz.closed_forms.torus(100, 100, 0.4)) < 5.0 * row.std_error


def test_a_round_trip_as_a_population():
    found = made_up(np.random.default_rng(4), 1.0, size=100)
    run = found.as_run()
    assert run.families == pytest.approx(100.0)
    assert run.weight == pytest.approx(0.01)


# -------------------------------------------------------------------------------------------------------- real states


@pytest.mark.parametrize(("seed", "strength"), with_slow(itertools.product([0, 1], [0.2, 0.44, 0.6]), [(0, 0.6)]))
def test_a_torus_is_within_its_error(strength, seed):
    model, rng = sz.generators.torus(16, 16, strength), np.random.default_rng(seed)
    path = path_to(model)
    found = there_and_back(path, survey(path, rng).spaced(600), 128, rng)
    judged = judge_round_trip(found, model.constant)
    truth = sz.closed_forms.torus(16, 16, strength)
    assert judged.log_z == pytest.approx(found.log_z + model.constant)
    assert abs(judged.log_z - truth) < 5.0 * judged.std_error
    # Too small on the way there, too large on the way back, up to noise
    noise = 6.0 * found.scatter
    assert found.there.mean() + model.constant - noise < truth < found.back.mean() + model.constant + noise
    assert found.gap > -noise
    if strength < 0.5:
        assert judged.trusted
        assert judged.std_error < 0.3


@pytest.mark.parametrize(
    "model", [sz.generators.complete(8, 0.4, seed=1), sz.generators.grid(3, 0.7, seed=1)], ids=["dense", "sparse"]
)
def test_a_slow_path_is_right_both_ways(model):
    rng = np.random.default_rng(5)
    found = there_and_back(path_to(model), np.linspace(0.0, 1.0, 300), 640, rng)
    truth = states.solve(model)[0] - model.constant
    for way in (found.there, found.back):
        # So slow that the variance, and with it the lag, is a hundredth.
        assert way.mean() == pytest.approx(truth, abs=4.0 * way.std() / math.sqrt(640) + way.var())
        assert way.var() < 0.1


def test_states_are_those_at_the_model_for_every_engine():
    # Two spins that are held together, in single and in double precision; at the base they would be independent.
    dense = sz.Ising([0.0, 0.0], [[0.0, 10_000.0], [10_000.0, 0.0]])
    assert isinstance(path_to(dense).engine, DenseEngine)
    assert path_to(dense).engine.in_double
    for model in (*(sz.Ising.from_edges(2, [(0, 1)], [strength]) for strength in (20.0, 20_000.0)), dense):
        rng = np.random.default_rng(6)
        path = path_to(model)
        found = there_and_back(path, survey(path, rng).spaced(50), 100, rng)
        assert (found.x[:, 0] == found.x[:, 1]).all()
        outcome = outcome_of(model, found)
        assert marginals_of(model, found.as_run(), outcome).pair_mean == pytest.approx([1.0])


def test_a_cold_ferromagnet_goes_back_from_the_ordered_states():
    model, truth = sz.generators.torus(32, 32, 0.6), sz.closed_forms.torus(32, 32, 0.6)
    ordered = np.array([np.ones(1024), -np.ones(1024)], dtype=np.int8)
    found = []
    for start in (None, ordered):
        rng = np.random.default_rng(7)
        path = path_to(model)
        found.append(there_and_back(path, survey(path, rng).spaced(60), 128, rng, ordered=start))
    plain, better = found
    assert not plain.is_ordered
    assert better.is_ordered
    # Walls between domains, in which states are stuck, weigh less.
    assert np.mean(np.abs(plain.x.mean(axis=1))) < 0.9
    assert np.array_equal(plain.there, better.there)
    assert better.back.mean() > truth - model.constant
    assert better.back.var() < 0.5 * plain.back.var()
    assert inconsistency_of(better) < inconsistency_of(plain)
    assert abs(better.log_z + model.constant - truth) < abs(plain.log_z + model.constant - truth)
    assert abs(better.log_z + model.constant - truth) < 5.0 * judge_round_trip(better).std_error


def test_a_hot_model_goes_back_from_its_own_states():
    model, rng = sz.generators.torus(16, 16, 0.2), np.random.default_rng(8)
    ordered = np.ones((1, 256), dtype=np.int8)
    assert not there_and_back(path_to(model), np.linspace(0.0, 1.0, 100), 128, rng, ordered=ordered).is_ordered


def test_progress_goes_on_both_ways():
    told = []
    path = path_to(sz.generators.grid(4, 0.5, seed=0))
    there_and_back(path, np.linspace(0.0, 1.0, 100), 64, np.random.default_rng(9), tell=told.append)
    assert told == sorted(told)
    assert told[0] < 0.1
    assert told[-1] == pytest.approx(1.0)
